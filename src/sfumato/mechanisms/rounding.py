"""Rounding a written-out channel to integers over a word, so that it keeps its context exactly.

Each column is rounded to integers and raised into the cone. What the rows then lack, or have too much, is given to
the column with most room for it, if the sum lies in the cone. If not, everything is shrunk to make room.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sfumato.contexts import Cone, Context, LongIntegers
from sfumato.errors import NothingToLearn
from sfumato.foundation.arrays import Floats

__all__ = ["near_table", "rounded_table"]

_WEIGHT_BITS = 128
_KEPT_BITS = 64
_LARGEST_SHRINK = 0.5
_SMALLEST_SHRINK = 2.0**-48  # what floats can say of the columns of a long word
_BALANCING_ROUNDS = 3


def rounded_table(
    rows: Sequence[Sequence[Fraction]], context: Context, word_bits: int
) -> list[list[int]]:
    """Integer rows that add up to ``2^word_bits``, keep ``context`` exactly and are close to ``rows``."""
    weights = [
        [(entry.numerator << _WEIGHT_BITS) // entry.denominator for entry in row] for row in rows
    ]
    return _rounded(np.array(weights, dtype=object), Cone.of(context), word_bits)


def near_table(Q: Floats, context: Context, word_bits: int) -> list[list[int]]:
    """The same for floats that a solver found: rows that nearly add up to 1, columns that nearly lie in the cone."""
    cone = Cone.of(context)
    members = np.ascontiguousarray(cone.snap(Q.T).T)
    floats = np.ldexp(_balanced(members), _WEIGHT_BITS)
    weights = [[int(weight) for weight in row] for row in floats.tolist()]
    return _rounded(np.array(weights, dtype=object), cone, word_bits)


def _rounded(weights: LongIntegers, cone: Cone, word_bits: int) -> list[list[int]]:
    """The integers for ``weights / 2^128``."""
    total, shrink = 1 << word_bits, 0.0
    while shrink <= _LARGEST_SHRINK:
        columns = cone.lift_integers(_shrunk(weights, shrink, word_bits).T)
        roomiest = int(cone.flat_parts(columns.astype(np.float64)).argmax())
        balance = columns[roomiest] + (total - columns.sum(axis=0))
        if cone.contains(balance):
            columns[roomiest] = balance
            return columns.T.tolist()
        # What a flat column would have to add; rounding again may need somewhat more.
        flat_part = float(cone.flat_parts(balance[None].astype(np.float64))[0])
        missing = max(-flat_part, 0.0)
        shrink = max(4 * shrink, _SMALLEST_SHRINK + 1.5 * (missing + 1) / total)
    raise NothingToLearn(
        f"a word of {word_bits} bits is too short to hold this table and keep its context."
    )


def _shrunk(weights: LongIntegers, shrink: float, word_bits: int) -> LongIntegers:
    """The integers nearest to ``weights / 2^128`` of the words, less a share ``shrink`` of them."""
    shift = _WEIGHT_BITS + _KEPT_BITS - word_bits
    kept = (1 << _KEPT_BITS) - int(np.ldexp(shrink, _KEPT_BITS))
    return (weights * kept + (1 << shift - 1)) >> shift


def _balanced(Q: Floats) -> Floats:
    """Q with its columns reweighted, as little as need be, so that rows add up to 1; what is in the cone stays there.

    Of all factors ``1 + δ_y`` that do it, those of least ``Σ_y q(y) δ_y²``, with q the mean row, are
    ``δ_y = Σ_x λ_x Q(y|x)/q(y)`` with ``Σ_y Q(y|x) δ_y`` what row x lacks.
    """
    for _ in range(_BALANCING_ROUNDS):
        ratios = Q / Q.mean(axis=0)
        lambdas = np.linalg.lstsq(ratios @ Q.T, 1 - Q.sum(axis=1))[0]
        factors = 1 + lambdas @ ratios
        if factors.min() < 0.5:  # rows that no weights can mend; shrinking will have to do
            break
        Q = Q * factors
    return Q
