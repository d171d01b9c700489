"""Stochastic matrices in integers: a choice from a row of weights by one word."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Words
from sfumato.randomness.odds import exact_number

__all__ = ["IntegerChannel", "stochastic_rows"]


class IntegerChannel:
    """Rows of non-negative integers that each add up to ``2^word_bits``: output z on ``rows[y][z]`` words of row y."""

    def __init__(self, rows: Sequence[Sequence[int]], word_bits: int) -> None:
        total = 1 << word_bits
        lengths = {len(row) for row in rows}
        if (
            len(lengths) != 1
            or 0 in lengths
            or any(min(row) < 0 or sum(row) != total for row in rows)
        ):
            raise InvalidContext(
                f"rows of a channel must be equally long and add up to exactly 2^{word_bits}."
            )
        self.rows = [list(row) for row in rows]
        self.outputs = lengths.pop()
        self.word_bits = word_bits
        ends = np.cumsum(np.array(self.rows, dtype=object), axis=1)[:, :-1]
        # An end of 2^64 does not fit a word. No word reaches it, nor any end after it: only those before are looked at.
        self._reached = (ends < total).sum(axis=1)
        self._steps = [1 << i for i in reversed(range((self.outputs - 1).bit_length()))]
        self._ends: Words = np.zeros(
            (len(rows), 2 * self._steps[0] if self._steps else 1), dtype=np.uint64
        )
        self._ends[:, 1 : self.outputs] = ends % total

    def choose(self, row: Words, word: Words) -> Words:
        """The output of each row for its word: the number of ends at or below it, by as many halvings for all."""
        reached, passed = self._reached[row], np.zeros(row.shape, dtype=np.int64)
        for step in self._steps:
            further = passed + step
            passed += step * ((further <= reached) & (self._ends[row, further] <= word))
        return passed.astype(np.uint64)

    @classmethod
    def nearest(cls, rows: Sequence[Sequence[Fraction]], word_bits: int) -> "IntegerChannel":
        """The channel of 2^B-ths nearest to given fractions; what is 0 stays 0."""
        return cls([_rounded(row, 1 << word_bits) for row in rows], word_bits)


def stochastic_rows(W: Sequence[Sequence[object]]) -> list[list[Fraction]]:
    """W in fractions, checked: rows equally long, entries non-negative, each row adding up to exactly 1."""
    entries = [[exact_number(entry, "an entry of W") for entry in row] for row in W]
    if not entries or any(isinstance(entry, float) for row in entries for entry in row):
        raise InvalidContext("W must have a row per report, of finite probabilities.")
    rows = [[Fraction(entry) for entry in row] for row in entries]
    for y, row in enumerate(rows):
        if len(row) != len(rows[0]) or sum(row) != 1:
            raise InvalidContext(
                f"W must be stochastic: rows of {len(rows[0])} entries that add up to exactly 1; row {y} adds up to "
                f"{float(sum(row)):g}. Pass fractions, for instance Fraction(1, 3)."
            )
    return rows


def _rounded(row: Sequence[Fraction], total: int) -> list[int]:
    down = [int(entry * total) for entry in row]
    by_rest = sorted(range(len(row)), key=lambda z: down[z] - row[z] * total)
    for z in by_rest[: total - sum(down)]:
        down[z] += 1
    return down
