"""Stochastic matrices in integers: one word chooses from a row of weights."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Words
from sfumato.foundation.canonical import Json, parse_count
from sfumato.randomness import exact_number

__all__ = ["IntegerChannel", "format_rows", "parse_rows", "stochastic_rows"]


class IntegerChannel:
    """Row y sends output z on ``rows[y][z]`` words; each row adds up to ``2^word_bits``."""

    def __init__(self, rows: Sequence[Sequence[int]], word_bits: int) -> None:
        total = 1 << word_bits
        width = len(rows[0]) if rows else 0
        is_channel = width > 0
        for row in rows:
            is_channel &= len(row) == width and min(row, default=0) >= 0 and sum(row) == total
        if not is_channel:
            raise InvalidContext(
                f"rows of a channel must be equally long and add up to exactly 2^{word_bits}."
            )
        self.rows = [list(row) for row in rows]
        self.outputs = width
        self.word_bits = word_bits
        ends = np.cumsum(np.array(self.rows, dtype=object), axis=1)[:, :-1]
        # An end of 2^64 does not fit a word. No word reaches it or any end after it, so only the
        # ends before it count.
        self._reached = (ends < total).sum(axis=1)
        bits = (self.outputs - 1).bit_length()
        self._steps = [1 << i for i in reversed(range(bits))]
        self._ends: Words = np.zeros((len(rows), 1 << bits), dtype=np.uint64)
        self._ends[:, 1 : self.outputs] = ends % total

    def choose(self, row: Words, word: Words) -> Words:
        """Return the output of each row for its word: the number of ends at or below the word.

        A binary search with the same number of steps for all.
        """
        reached = self._reached[row]
        passed = np.zeros(row.shape, dtype=np.int64)
        for step in self._steps:
            next_end = passed + step
            passed += step * ((next_end <= reached) & (self._ends[row, next_end] <= word))
        return passed.astype(np.uint64)

    @classmethod
    def nearest(cls, rows: Sequence[Sequence[Fraction]], word_bits: int) -> "IntegerChannel":
        """Return the channel of 2^B-ths nearest to the given fractions; zeros stay zeros."""
        return cls([_round_row(row, 1 << word_bits) for row in rows], word_bits)


def format_rows(rows: Sequence[Sequence[int]]) -> list[Json]:
    """Write integers as text, as records do: they are too large for JSON."""
    return [list(map(str, row)) for row in rows]


def parse_rows(rows: Iterable[Iterable[object]]) -> list[list[int]]:
    """Undo ``format_rows``, for an untrusted record."""
    return [list(map(parse_count, row)) for row in rows]


def stochastic_rows(W: Sequence[Sequence[object]]) -> list[list[Fraction]]:
    """Return W in fractions. Refuse rows that do not add up to exactly 1."""
    rows = []
    for row in W:
        entries = []
        for entry in row:
            number = exact_number(entry, "an entry of W")
            if isinstance(number, float):
                raise InvalidContext("W must have a row per report, of finite probabilities.")
            entries.append(Fraction(number))
        rows.append(entries)
    if not rows:
        raise InvalidContext("W must have a row per report, of finite probabilities.")
    for y, entries in enumerate(rows):
        if len(entries) != len(rows[0]) or sum(entries) != 1:
            raise InvalidContext(
                f"W must be stochastic: rows of {len(rows[0])} entries that add up to exactly 1; "
                f"row {y} adds up to {float(sum(entries)):g}. Pass fractions, for instance "
                "Fraction(1, 3)."
            )
    return rows


def _round_row(row: Sequence[Fraction], total: int) -> list[int]:
    """Round a row to integers that add up to ``total``, by largest remainders."""
    counts = [int(entry * total) for entry in row]
    by_remainder = sorted(range(len(row)), key=lambda z: counts[z] - row[z] * total)
    for z in by_remainder[: total - sum(counts)]:
        counts[z] += 1
    return counts
