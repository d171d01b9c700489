"""Values that NumPy wraps: narrow floats, arrays without dimensions, and masked arrays."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats

__all__ = ["is_collection", "read_number", "require_unmasked", "to_doubles", "unwrap_scalar"]


def is_collection(value: object) -> bool:
    """Return whether ``value`` has entries to iterate over; text and bytes do not count.

    >>> is_collection([1, 2]), is_collection("ab"), is_collection(np.array(1))
    (True, False, False)
    """
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def unwrap_scalar(value: object) -> object:
    """Return the only entry of an array without dimensions, and anything else unchanged.

    >>> unwrap_scalar(np.array(2)) + 1, unwrap_scalar("park")
    (np.int64(3), 'park')
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        entry: object = value[()]
        return entry
    return value


def read_number(value: object) -> float | None:
    """Return a number as a 64-bit float that prints like it, or ``None`` if it is no number.

    >>> read_number(np.float32(0.1)), read_number(np.array(2)), read_number(True)
    (0.1, 2.0, None)
    """
    number = unwrap_scalar(value)
    if isinstance(number, bool):
        return None
    if isinstance(number, int | float | np.integer | np.floating):
        return _to_double(number)
    return None


def to_doubles(numbers: object, name: str) -> Floats:
    """Return an array, or nested lists, of numbers as 64-bit floats that print like the entries.

    NumPy would turn a 32-bit 0.1 into 0.10000000149011612. Raise ``InvalidContext`` if an entry is
    masked; ``TypeError`` or ``ValueError`` if one is no number, or if rows differ in length.

    >>> to_doubles([np.array([0.1, np.inf], dtype=np.float32), [0.1, np.float32(0.2)]], "points")
    array([[0.1, inf],
           [0.1, 0.2]])
    """
    require_unmasked(numbers, name)
    if not hasattr(numbers, "__array__"):
        if is_collection(numbers):
            entries = [to_doubles(entry, name) for entry in numbers]  # type: ignore[attr-defined]
            return np.array(entries)
        return np.array(float(numbers))  # type: ignore[arg-type]
    array = np.asarray(numbers)
    if array.dtype == np.float64 or array.dtype.kind in "iu":
        return array.astype(np.float64)
    doubles = map(_to_double, array.flat)
    return np.fromiter(doubles, np.float64, array.size).reshape(array.shape)


def _to_double(entry: Any) -> float:  # noqa: ANN401 - any number
    return float(str(entry)) if isinstance(entry, np.floating) else float(entry)


def require_unmasked(values: object, name: str, error: type[Exception] = InvalidContext) -> None:
    """Raise ``error`` if ``values`` is a masked array, or an entry that such an array masks.

    NumPy keeps a number behind each masked entry, and most of its functions return that number.
    """
    if not isinstance(values, np.ndarray) or type(values) is np.ndarray:
        return  # without importing numpy.ma, which takes time
    if isinstance(values, np.ma.MaskedArray):
        raise error(
            f"{name} must not be masked: a masked entry has no value. Drop such entries with "
            "compressed(), or replace them with filled(value)."
        )
