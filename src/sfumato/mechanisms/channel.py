"""Integer channels: each row contains the number of words that map to each output.

A stochastic matrix must satisfy its context exactly even after rounding. So each column is rounded
and lifted into the context's cone, the set of columns that satisfy the context. Then the row sums
are corrected by adjusting the column that lies deepest inside the cone. If this moves the column
out of the cone, all columns are shrunk to leave more room, and the procedure is repeated.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from sfumato.contexts import Cone, Context, LongIntegers
from sfumato.errors import InvalidContext, NothingToLearn
from sfumato.foundation.arrays import Floats, PerPerson, Words
from sfumato.foundation.canonical import (
    Json,
    parse_count,
)
from sfumato.foundation.elementwise import look_up, select
from sfumato.foundation.numpy_values import is_collection, require_unmasked
from sfumato.randomness import exact_number

__all__ = [
    "IntegerChannel",
    "format_rows",
    "parse_rows",
    "parse_stochastic_rows",
    "round_solution",
    "round_table",
    "to_integers",
]

_WEIGHT_BITS = 128  # weights are integers in units of 2^−128
_SHRINK_BITS = 64  # the precision of the factor 1 − shrink
_MAX_SHRINK = 0.5  # give up if columns would have to shrink by more than this
_MIN_SHRINK = 2.0**-48  # with long words, floats cannot resolve a smaller change to a column
_BALANCING_ROUNDS = 3

to_integers = np.frompyfunc(int, 1, 1)
"""Truncate floats to Python integers, entry by entry."""


class IntegerChannel:
    """A channel in which ``rows[y][z]`` is the number of words that map input y to output z.

    Each row adds up to ``2^word_bits``.
    """

    def __init__(self, rows: Sequence[Sequence[int]], word_bits: int) -> None:
        total = 1 << word_bits
        output_count = len(rows[0]) if rows else 0
        is_channel = output_count > 0
        for row in rows:
            is_channel &= (
                len(row) == output_count and min(row, default=0) >= 0 and sum(row) == total
            )
        if not is_channel:
            raise InvalidContext(
                "the rows of a channel must contain non-negative integers, have the same length "
                f"and add up to exactly 2^{word_bits}."
            )
        self.rows = [list(row) for row in rows]
        self.outputs = output_count
        ends = np.cumsum(np.array(self.rows, dtype=object), axis=1)[:, :-1]
        # An output's end is the first word after its range. An end of 2^word_bits may not fit in 64
        # bits, but no word reaches it or any end after it, so only the ends before it matter.
        self._reachable_end_counts: Words = (ends < total).sum(axis=1).astype(np.uint64)
        bits = (self.outputs - 1).bit_length()
        self._steps = [1 << i for i in reversed(range(bits))]
        self._width = 1 << bits  # the number of entries of a row in `_ends`
        self._ends: Words = np.zeros((len(rows), self._width), dtype=np.uint64)
        self._ends[:, 1 : self.outputs] = ends % total

    def choose(self, row: PerPerson, word: PerPerson) -> PerPerson:
        """Return the output for each row and word: the number of ends at or below the word.

        This is a binary search that takes the same number of steps for every row and word.
        """
        end_counts = look_up(self._reachable_end_counts, row)
        row_start = row * self._width
        output = row & 0
        for step in self._steps:
            candidate = output + step
            end = look_up(self._ends, row_start + candidate)
            is_passed = (candidate <= end_counts) & (end <= word)
            output = select(is_passed, candidate, output)
        return output

    @classmethod
    def from_fractions(cls, rows: Sequence[Sequence[Fraction]], word_bits: int) -> "IntegerChannel":
        """Return the channel nearest to a matrix of fractions; zeros stay zero."""
        return cls([_round_row(row, 1 << word_bits) for row in rows], word_bits)


def _round_row(row: Sequence[Fraction], total: int) -> list[int]:
    """Scale a row by ``total`` and round it to integers with that sum, by largest remainders."""
    counts = [int(entry * total) for entry in row]
    by_remainder = sorted(range(len(row)), key=lambda z: counts[z] - row[z] * total)
    for z in by_remainder[: total - sum(counts)]:
        counts[z] += 1
    return counts


# --- reading and writing -------------------------------------------------------------------------


def format_rows(rows: Iterable[Sequence[int]]) -> list[Json]:
    """Return rows with integers as strings, because they may be too large for JSON numbers."""
    return [list(map(str, row)) for row in rows]


def parse_rows(rows: Iterable[Iterable[object]]) -> list[list[int]]:
    """Parse rows written by ``format_rows``; raise ``InvalidSurvey`` if an entry is invalid."""
    return [list(map(parse_count, row)) for row in rows]


def parse_stochastic_rows(
    matrix: object, name: str, hint: str = "Pass fractions such as Fraction(1, 3)."
) -> list[list[Fraction]]:
    """Return a matrix as fractions; raise ``InvalidContext`` unless it is stochastic.

    Error messages refer to the matrix as ``name``, and end with ``hint`` if a sum is not exact.
    """
    rows = []
    for row in _require_entries(matrix, name):
        entries = []
        for entry in _require_entries(row, name):
            number = exact_number(entry, f"an entry of {name}")
            if isinstance(number, float):
                raise InvalidContext(f"entries of {name} must be probabilities; got inf.")
            entries.append(Fraction(number))
        rows.append(entries)
    if not rows:
        raise InvalidContext(f"{name} must have at least one row; got none.")
    for y, entries in enumerate(rows):
        if len(entries) != len(rows[0]):
            raise InvalidContext(
                f"the rows of {name} must have the same length; row 0 has {len(rows[0])} entries, "
                f"and row {y} has {len(entries)}."
            )
        error = sum(entries) - 1
        if error != 0:
            raise InvalidContext(
                f"{name} must be stochastic: the entries of a row must add up to exactly 1, but "
                f"the sum of row {y} is off by {float(error):.2g}. {hint}"
            )
    return rows


def _require_entries(values: object, name: str) -> Iterable[object]:
    """Return the rows of a matrix or the entries of a row, if they can be iterated over."""
    require_unmasked(values, name)
    if not is_collection(values):
        raise InvalidContext(f"{name} must be a matrix: a list of rows, each a list of entries.")
    return values  # type: ignore[return-value]


# --- rounding that satisfies a context ------------------------------------------------------------


def round_table(
    rows: Sequence[Sequence[Fraction]], context: Context, word_bits: int
) -> list[list[int]]:
    """Return integer rows close to ``2^word_bits · rows``.

    Each row adds up to ``2^word_bits``, and together the rows satisfy ``context`` exactly.
    """
    weights = []
    for row in rows:
        weights.append([(q.numerator << _WEIGHT_BITS) // q.denominator for q in row])
    return _round(np.array(weights, dtype=object), Cone.from_context(context), word_bits)


def round_solution(Q: Floats, context: Context, word_bits: int) -> list[list[int]]:
    """Return integer rows close to ``2^word_bits · Q``, where Q is the matrix found by a solver.

    The rows of Q need only add up to about 1, and its columns need only be close to the cone.
    """
    cone = Cone.from_context(context)
    in_cone = np.ascontiguousarray(cone.snap(Q.T).T)
    floats = np.ldexp(_balance(in_cone), _WEIGHT_BITS)
    return _round(np.asarray(to_integers(floats)), cone, word_bits)


def _round(weights: LongIntegers, cone: Cone, word_bits: int) -> list[list[int]]:
    """Round ``weights · 2^(word_bits − 128)`` to integers that satisfy the context exactly."""
    total = 1 << word_bits
    shrink = 0.0
    while shrink <= _MAX_SHRINK:
        columns = cone.lift_integers(_shrink(weights, shrink, word_bits).T)
        deepest = int(cone.flat_parts(columns.astype(np.float64)).argmax())
        adjusted = columns[deepest] + (total - columns.sum(axis=0))
        if cone.contains(adjusted):
            columns[deepest] = adjusted
            return columns.T.tolist()
        # Adding `missing` to every entry would bring the adjusted column back into the cone. The
        # next attempt is rounded again and may need slightly more.
        flat_part = float(cone.flat_parts(adjusted[None].astype(np.float64))[0])
        missing = max(-flat_part, 0.0)
        shrink = max(4 * shrink, _MIN_SHRINK + 1.5 * (missing + 1) / total)
    raise NothingToLearn(
        f"{word_bits}-bit words are too short for this table to satisfy its context."
    )


def _shrink(weights: LongIntegers, shrink: float, word_bits: int) -> LongIntegers:
    """Return the integers nearest to ``weights · 2^(word_bits − 128) · (1 − shrink)``."""
    shift = _WEIGHT_BITS + _SHRINK_BITS - word_bits
    factor = (1 << _SHRINK_BITS) - int(np.ldexp(shrink, _SHRINK_BITS))
    return (weights * factor + (1 << shift - 1)) >> shift


def _balance(Q: Floats) -> Floats:
    """Rescale columns, as little as possible, so that rows add up to 1.

    Columns stay in the cone. Column y is multiplied by ``1 + δ_y``, where ``Σ_y Q(y|x) δ_y`` must
    equal the amount by which row x falls short of 1. With q the mean row,
    ``δ_y = Σ_x λ_x Q(y|x)/q(y)`` minimises ``Σ_y q(y) δ_y²``.
    """
    for _ in range(_BALANCING_ROUNDS):
        ratios = Q / Q.mean(axis=0)
        lambdas = np.linalg.lstsq(ratios @ Q.T, 1 - Q.sum(axis=1))[0]
        factors = 1 + lambdas @ ratios
        if factors.min() < 0.5:  # rescaling cannot correct these rows; leave them to _round
            break
        Q = Q * factors
    return Q
