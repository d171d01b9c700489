"""Round a written-out channel to integers over a word, so that it keeps its context exactly.

Round each column to integers and lift it into the cone. Then correct the sums of the rows in the
column with the most room, if the corrected column is in the cone. If not, shrink all columns to
make room.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sfumato.contexts import Cone, Context, LongIntegers
from sfumato.errors import NothingToLearn
from sfumato.foundation.arrays import Floats

__all__ = ["round_solution", "round_table"]

_WEIGHT_BITS = 128
_SHRINK_BITS = 64
_MAX_SHRINK = 0.5
_MIN_SHRINK = 2.0**-48  # what floats can resolve in the columns of a long word
_BALANCING_ROUNDS = 3


def round_table(
    rows: Sequence[Sequence[Fraction]], context: Context, word_bits: int
) -> list[list[int]]:
    """Return integer rows close to ``rows``.

    They add up to ``2^word_bits`` and keep ``context`` exactly.
    """
    weights = []
    for row in rows:
        weights.append([(q.numerator << _WEIGHT_BITS) // q.denominator for q in row])
    return _round(np.array(weights, dtype=object), Cone.of(context), word_bits)


def round_solution(Q: Floats, context: Context, word_bits: int) -> list[list[int]]:
    """Return integer rows close to a matrix that a solver found.

    Its rows need only nearly add up to 1, and its columns only nearly lie in the cone.
    """
    cone = Cone.of(context)
    members = np.ascontiguousarray(cone.snap(Q.T).T)
    floats = np.ldexp(_balance(members), _WEIGHT_BITS)
    integers = np.frompyfunc(int, 1, 1)(floats)
    return _round(np.asarray(integers), cone, word_bits)


def _round(weights: LongIntegers, cone: Cone, word_bits: int) -> list[list[int]]:
    """Return the integers for ``weights / 2^128``."""
    total = 1 << word_bits
    shrink = 0.0
    while shrink <= _MAX_SHRINK:
        columns = cone.lift_integers(_shrink(weights, shrink, word_bits).T)
        roomiest = int(cone.flat_parts(columns.astype(np.float64)).argmax())
        balance = columns[roomiest] + (total - columns.sum(axis=0))
        if cone.contains(balance):
            columns[roomiest] = balance
            return columns.T.tolist()
        # What a flat column would have to add; rounding again may need somewhat more.
        flat_part = float(cone.flat_parts(balance[None].astype(np.float64))[0])
        missing = max(-flat_part, 0.0)
        shrink = max(4 * shrink, _MIN_SHRINK + 1.5 * (missing + 1) / total)
    raise NothingToLearn(
        f"a word of {word_bits} bits is too short to hold this table and keep its context."
    )


def _shrink(weights: LongIntegers, shrink: float, word_bits: int) -> LongIntegers:
    """Return the integers nearest to ``weights / 2^128``, less a share ``shrink`` of the words."""
    shift = _WEIGHT_BITS + _SHRINK_BITS - word_bits
    remaining = (1 << _SHRINK_BITS) - int(np.ldexp(shrink, _SHRINK_BITS))
    return (weights * remaining + (1 << shift - 1)) >> shift


def _balance(Q: Floats) -> Floats:
    """Reweight columns, as little as possible, so that rows add up to 1.

    Columns stay in the cone. Of all factors ``1 + δ_y`` that do it, those of least
    ``Σ_y q(y) δ_y²``, with q the mean row, are ``δ_y = Σ_x λ_x Q(y|x)/q(y)`` with
    ``Σ_y Q(y|x) δ_y`` what row x lacks.
    """
    for _ in range(_BALANCING_ROUNDS):
        ratios = Q / Q.mean(axis=0)
        lambdas = np.linalg.lstsq(ratios @ Q.T, 1 - Q.sum(axis=1))[0]
        factors = 1 + lambdas @ ratios
        if factors.min() < 0.5:  # no weights can correct these rows; shrinking must do
            break
        Q = Q * factors
    return Q
