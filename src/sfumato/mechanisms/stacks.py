"""Groups of symbols that share a code, stacked so that one transform serves them all."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Symbols
from sfumato.codes import Code

__all__ = ["Stack", "stacked"]


@dataclass(frozen=True)
class Stack:
    """Some groups with one code: where their reports and symbols are."""

    code: Code
    groups: NDArray[np.int64]  # the groups' numbers
    sizes: NDArray[np.int64]
    reports: NDArray[np.int64]  # (groups, outputs of the code) → number of the report
    symbols: Symbols  # the symbols of these groups …
    rows: NDArray[np.int64]  # … with the row of their group in the stack …
    points: NDArray[np.int64]  # … and their point in it

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
        symbols = np.flatnonzero(code_of == number)
        reports = first_of_group[groups][:, None] + np.arange(code.outputs)
        rows = row_of_group[group_of[symbols]]
        stacks.append(Stack(code, groups, sizes[groups], reports, symbols, rows, point_of[symbols]))
    return stacks
