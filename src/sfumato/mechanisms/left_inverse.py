"""Scores for any channel that is small enough to write out, as an exact identity of fractions."""

from collections.abc import Sequence
from fractions import Fraction

from sfumato.elimination import solved
from sfumato.errors import NothingToLearn

__all__ = ["left_inverse"]

_WEIGHT_BITS = 24


def left_inverse(rows: Sequence[Sequence[int]], denominator: int) -> list[list[Fraction]]:
    """Scores ``A`` with ``Σ_y Q(y|x2) A[x, y] = [x = x2]`` exactly, for ``Q = rows / denominator``.

    ``A = M⁻¹ Q G`` with ``M = Q G Qᵀ`` and G the diagonal of ``1/q(y)``, q the mean row: the least-variance
    unbiased estimate at the uniform distribution. Unbiasedness holds for any G, so its entries are rounded
    to short integers, and everything else is exact.

    >>> left_inverse([[3, 1], [1, 3]], 4)
    [[Fraction(3, 2), Fraction(-1, 2)], [Fraction(-1, 2), Fraction(3, 2)]]
    """
    k, columns = len(rows), range(len(rows[0]))
    sums = [sum(row[y] for row in rows) for y in columns]
    G = [0 if total == 0 else max(1, (k * denominator << _WEIGHT_BITS) // total >> 8) for total in sums]
    weighted = [[row[y] * G[y] for y in columns] for row in rows]
    M = [[sum(a * b for a, b in zip(row, other, strict=True)) for other in rows] for row in weighted]
    solution = solved(M, weighted)
    if solution is None:
        raise NothingToLearn("this channel sends two mixtures of symbols to the same reports: nothing undoes it.")
    inverse, determinant = solution
    return [[Fraction(entry * denominator, determinant) for entry in row] for row in inverse]
