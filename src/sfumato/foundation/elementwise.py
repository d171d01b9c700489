"""Operations for kernels: on Python integers for one person, or on arrays for many people.

A kernel is written once. NumPy takes about a microsecond per operation however short the array is,
so one person's report is computed from Python integers, by the same code. Operators such as ``+``
and ``//`` mean the same for both. This module contains everything else that kernels need.

Arrays contain unsigned 64-bit words, in which a negative number is 2^64 too large. Conditions are
booleans, or arrays of booleans.
"""

from bisect import bisect_right
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import PerPerson, Words

__all__ = [
    "add_if_negative",
    "as_bit",
    "bit_count",
    "index_of_range",
    "larger",
    "look_up",
    "select",
    "smaller",
    "subtract_if_reached",
    "zero_where",
]


def smaller(number: PerPerson, limit: int) -> PerPerson:
    """Return the number, or the limit if that is smaller, in a new array."""
    return min(number, limit) if isinstance(number, int) else np.minimum(number, limit)


def larger(number: PerPerson, limit: int) -> PerPerson:
    """Return the number, or the limit if that is larger, in a new array."""
    return max(number, limit) if isinstance(number, int) else np.maximum(number, limit)


def add_if_negative(number: PerPerson, size: int) -> PerPerson:
    """Return the number, from ``−size`` to ``size − 1``, plus ``size`` if it is negative.

    An array is overwritten.

    >>> add_if_negative(-1, 5), add_if_negative(np.array([2**64 - 1, 3], dtype=np.uint64), 5)
    (4, array([4, 3], dtype=uint64))
    """
    if isinstance(number, int):
        return number % size
    return np.minimum(number, number + size, out=number)  # a negative number is huge


def subtract_if_reached(number: PerPerson, size: int) -> PerPerson:
    """Return the number, from 0 to ``2·size − 1``, minus ``size`` if it is not below ``size``.

    An array is overwritten.

    >>> subtract_if_reached(7, 5), subtract_if_reached(np.array([7, 3], dtype=np.uint64), 5)
    (2, array([2, 3], dtype=uint64))
    """
    if isinstance(number, int):
        return number % size
    return np.minimum(number, number - size, out=number)  # a negative number is huge


def bit_count(number: PerPerson) -> PerPerson:
    """Return how many bits of the number are set."""
    return number.bit_count() if isinstance(number, int) else np.bitwise_count(number)


def as_bit(condition: Any) -> PerPerson:  # noqa: ANN401 - a boolean or an array
    """Return 1 where the condition is true, and 0 elsewhere."""
    return int(condition) if isinstance(condition, bool) else condition.view(np.uint8)


def select(condition: Any, number: PerPerson, other: PerPerson) -> PerPerson:  # noqa: ANN401
    """Return the number where the condition is true, and the other number elsewhere."""
    if isinstance(condition, bool):
        return number if condition else other
    return np.where(condition, number, other)


def zero_where(condition: Any, number: PerPerson) -> PerPerson:  # noqa: ANN401
    """Return 0 where the condition is true, which should be rare, and the number elsewhere.

    An array is overwritten.
    """
    if isinstance(condition, bool):
        return 0 if condition else number
    if condition.any():
        number[condition] = 0
    return number


def look_up(table: NDArray[Any], index: PerPerson, *, clip: bool = False) -> PerPerson:
    """Return the table's entry at the index.

    ``clip`` is needed if an index may be out of range, where the result is any entry.

    >>> table = np.array([3, 1, 4])
    >>> look_up(table, 2), look_up(table, np.array([2, 0], dtype=np.uint64))
    (4, array([4, 3]))
    """
    if isinstance(index, int):
        return table.item(min(max(index, 0), table.size - 1) if clip else index)
    return table.take(index.view(np.int64), mode="clip" if clip else "raise")


def index_of_range(starts: Words, number: PerPerson) -> PerPerson:
    """Return the index of the last start at or below the number. The first start must be 0.

    >>> index_of_range(np.array([0, 5, 9], dtype=np.uint64), 5)
    1
    """
    if isinstance(number, int):
        return bisect_right(starts, number) - 1
    return (np.searchsorted(starts, number, side="right") - 1).view(np.uint64)
