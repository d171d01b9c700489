"""Scores of any channel small enough to write out: exact as fractions, fast as floats.

``A = M⁻¹ Q G`` with ``M = Q G Qᵀ`` and G the diagonal of ``1/q(y)``, q the distribution of the
reports of a crowd: the least-variance unbiased estimate if people are distributed like the crowd.
A is unbiased, ``A Qᵀ = M⁻¹ M``, for any G. So the entries of G are rounded to short integers, and
everything else is exact.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import NothingToLearn
from sfumato.foundation.arrays import Floats
from sfumato.foundation.elimination import solve_integers

__all__ = ["LeftInverse", "surely_independent"]

_WEIGHT_BITS = 24
_HALF_UNIT = 2.0**-53
_TOLERANCE = 1e-10  # relative to the largest score
_MAX_RESIDUAL = 1e-3
_INVERSE_BITS = 60
_LIMB_BITS = 20
_LIMB_COLUMNS = 2**13  # floats add up this many products of limbs exactly
_PRIME = 2**31 - 1

_Integers = NDArray[np.object_]

_to_integers = np.frompyfunc(int, 1, 1)  # truncates floats to Python integers, entry by entry


class LeftInverse:
    """Scores A with ``Σ_y Q(y|x2) A[x, y] = [x = x2]``, for ``Q = rows / denominator``.

    They are of least variance for people distributed like ``crowd``, an integer for each symbol.

    >>> scores = LeftInverse([[3, 1], [1, 3]], 4, crowd=[1, 1])
    >>> scores.column(0)
    [Fraction(3, 2), Fraction(-1, 2)]
    >>> scores.floats()
    array([[ 1.5, -0.5],
           [-0.5,  1.5]])
    """

    def __init__(
        self, rows: Sequence[Sequence[int]], denominator: int, crowd: Sequence[int]
    ) -> None:
        self._rows = np.array(rows, dtype=object)
        self._denominator = denominator
        people = sum(crowd) * denominator << _WEIGHT_BITS
        weights = []
        for total in (np.array(crowd, dtype=object) @ self._rows).tolist():
            weights.append(0 if total == 0 else max(1, people // total >> 8))
        self._G = np.array(weights, dtype=object)

    @cached_property
    def _M(self) -> _Integers:
        return _exact_product(self._rows * self._G, self._rows)

    # --- exactly ---------------------------------------------------------------------------------

    def column(self, y: int) -> list[Fraction]:
        """Return ``A[·, y]`` exactly."""
        inverse, determinant = self._inverse
        products = inverse @ self._rows[:, y]
        factor = self._G[y] * self._denominator
        return [Fraction(product * factor, determinant) for product in products.tolist()]

    @cached_property
    def _inverse(self) -> tuple[_Integers, int]:
        """``(det M) · M⁻¹`` and ``det M``."""
        identity = np.eye(len(self._rows), dtype=np.int64).tolist()
        solution = solve_integers(self._M.tolist(), identity)
        if solution is None:
            raise NothingToLearn(
                "this channel sends two mixtures of symbols to the same reports: nothing undoes it."
            )
        adjugate, determinant = solution
        return np.array(adjugate, dtype=object), determinant

    # --- in floats -------------------------------------------------------------------------------

    def floats(self) -> Floats:
        """Return A in floats, right to 10⁻¹⁰ of its largest entry.

        By a float solve if that is surely accurate enough, otherwise exactly.
        """
        A = self._float_solve()
        if A is not None:
            return A
        columns = [self.column(y) for y in range(self._rows.shape[1])]
        return np.array(columns, dtype=np.float64).T

    def _float_solve(self) -> Floats | None:
        """Return A from a corrected float inverse of M; ``None`` if rounding might show."""
        halves = [int(entry).bit_length() // 2 for entry in self._M.diagonal()]
        inverse = _float_inverse(self._M, halves)
        if inverse is None:
            return None
        Y, doubt = inverse
        units = np.ldexp(1.0, halves)[:, None]
        weighted = self._rows.astype(np.float64) * self._G.astype(np.float64)
        weighted = weighted * (float(self._denominator) / units)
        A = Y @ weighted / units
        errors = (len(Y) + 8) * _HALF_UNIT * ((np.abs(Y) + doubt) @ weighted) / units
        return A if errors.max() <= _TOLERANCE * np.abs(A).max() else None


def _float_inverse(M: _Integers, halves: list[int]) -> tuple[Floats, float] | None:
    """Return the inverse Y of M, and a bound on the error of its entries in half-units.

    Y is in units that make the diagonal of M about 1. M Y0 = 1 − F for a first inverse Y0, with F
    in integers; then ``Y = Y0 (1 − F)⁻¹`` as far as floats go.
    """
    k = len(M)
    bits = 2 * max(halves)
    half_bits = np.array(halves, dtype=object)
    scaled = M << (bits - half_bits[:, None] - half_bits)
    try:
        first = np.linalg.inv((scaled / (1 << bits)).astype(np.float64))
    except np.linalg.LinAlgError:
        return None
    one = 1 << bits + _INVERSE_BITS
    exact_F = np.eye(k, dtype=object) * one - scaled @ _to_integers(np.ldexp(first, _INVERSE_BITS))
    F = (exact_F / one).astype(np.float64)
    residual = float(np.abs(F).sum(axis=1).max())
    if residual > _MAX_RESIDUAL:
        return None
    Y = first + first @ np.linalg.solve(np.eye(k) - F, F)
    return Y, residual * float(np.abs(first).max())


def _exact_product(left: _Integers, right: _Integers) -> _Integers:
    """Return ``left · rightᵀ`` for non-negative integers, in limbs that floats multiply exactly."""
    product = np.zeros((len(left), len(right)), dtype=object)
    for start in range(0, left.shape[1], _LIMB_COLUMNS):
        columns = slice(start, start + _LIMB_COLUMNS)
        right_limbs = _limbs(right[:, columns])
        for i, a in enumerate(_limbs(left[:, columns])):
            for j, b in enumerate(right_limbs):
                product += (a @ b.T).astype(np.int64).astype(object) << _LIMB_BITS * (i + j)
    return product


def _limbs(integers: _Integers) -> list[Floats]:
    """Return the digits of integers to base 2^20, the lowest first."""
    digits = -(-int(integers.max()).bit_length() // _LIMB_BITS)
    limbs = []
    for i in range(digits):
        limb = (integers >> _LIMB_BITS * i) & (2**_LIMB_BITS - 1)
        limbs.append(limb.astype(np.float64))
    return limbs


def surely_independent(rows: Sequence[Sequence[int]]) -> bool:
    """Return whether the rows are linearly independent modulo a large prime, and so independent.

    >>> surely_independent([[1, 2], [2, 3]]), surely_independent([[1, 2], [2, 4]])
    (True, False)
    """
    remaining = (np.array(rows, dtype=object) % _PRIME).astype(np.int64)
    while len(remaining):
        head = remaining[0]
        remaining = remaining[1:]
        pivots = np.flatnonzero(head)
        if pivots.size == 0:
            return False
        inverse = pow(int(head[pivots[0]]), -1, _PRIME)
        factors = remaining[:, pivots[0]] * inverse % _PRIME
        remaining = (remaining - factors[:, None] * head) % _PRIME
    return True
