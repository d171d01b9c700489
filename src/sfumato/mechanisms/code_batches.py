"""Groups of symbols that share a code, stacked so that one transform serves them all."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.codes import Code
from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["Stack", "stacked"]


Index = Any
"""What picks entries of an array: numbers, or a slice where they follow each other."""


@dataclass(frozen=True)
class Stack:
    """Some groups with one code: where their reports and symbols are."""

    code: Code
    groups: NDArray[np.int64]  # the groups' numbers
    sizes: NDArray[np.int64]
    first_reports: NDArray[np.int64]  # of each group
    reports: Index  # (groups, outputs of the code) → number of the report
    symbols: Index  # the symbols of these groups …
    rows: Index  # … with the row of their group in the stack …
    points: Index  # … and their point in it

    def by_point(self, values: Floats) -> Floats:
        """Values of symbols, laid out as (groups, points), 0 on unused points."""
        table = np.zeros((self.sizes.size, self.code.points))
        table[self.rows, self.points] = values[self.symbols]
        return table

    def fill(self, values: Floats, table: Floats) -> None:
        """The reverse: write the entries of a (groups, points) table to their symbols."""
        values[self.symbols] = table[self.rows, self.points]


def stacked(
    codes: list[Code],
    code_of_group: NDArray[np.int64],
    first_of_group: NDArray[np.int64],
    group_of: Symbols,
    point_of: Symbols,
) -> list[Stack]:
    """One stack for each code. Symbols with group −1 are in none."""
    sizes = np.bincount(group_of[group_of >= 0], minlength=code_of_group.size)
    code_of = np.append(code_of_group, -1)[group_of]  # the entry at −1 is for symbols in no group
    row_of_group = np.zeros(code_of_group.size, dtype=np.int64)
    stacks = []
    for number, code in enumerate(codes):
        groups = np.flatnonzero(code_of_group == number)
        row_of_group[groups] = np.arange(groups.size)
        symbols, first = np.flatnonzero(code_of == number), first_of_group[groups]
        rows, points = row_of_group[group_of[symbols]], point_of[symbols]
        where = _in_sequence(int(first[0]), code, symbols, points) if groups.size == 1 else None
        where = where or (first[:, None] + np.arange(code.outputs), symbols, rows, points)
        stacks.append(Stack(code, groups, sizes[groups], first, *where))
    return stacks


def _in_sequence(
    first: int, code: Code, symbols: Symbols, points: NDArray[np.int64]
) -> tuple[Index, Index, Index, Index] | None:
    """The indices of a single group whose symbols follow each other: slices, so that nothing large is copied."""
    x, size = int(symbols[0]), symbols.size
    if symbols[-1] - x != size - 1 or (points != np.arange(size)).any():
        return None
    return (None, slice(first, first + code.outputs)), slice(x, x + size), 0, slice(0, size)
