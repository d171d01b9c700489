"""Scores for any channel that is small enough to write out: exact ones as fractions, fast ones as floats.

``A = M⁻¹ Q G`` with ``M = Q G Qᵀ`` and G the diagonal of ``1/q(y)``, q the distribution of the reports that a crowd
sends: the least-variance unbiased estimate if people are distributed like the crowd. Unbiasedness, ``A Qᵀ = M⁻¹ M``,
holds for any G, so its entries are rounded to short integers, and everything else is exact.
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
_ACCURATE = 1e-10  # of the largest score
_LARGEST_RESIDUAL = 1e-3
_INVERSE_BITS = 60
_LIMB_BITS, _LIMB_COLUMNS = (
    20,
    2**13,
)  # products of limbs, added up over so many columns, are exact in floats
_PRIME = 2**31 - 1

_Integers = NDArray[np.object_]


class LeftInverse:
    """Scores A with ``Σ_y Q(y|x2) A[x, y] = [x = x2]``, for ``Q = rows / denominator`` and a crowd of integers.

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
        self._rows, self._denominator = np.array(rows, dtype=object), denominator
        sums = (np.array(crowd, dtype=object) @ self._rows).tolist()
        people = sum(crowd) * denominator << _WEIGHT_BITS
        self._G = np.array(
            [0 if total == 0 else max(1, people // total >> 8) for total in sums], dtype=object
        )

    @cached_property
    def _M(self) -> _Integers:
        return _product(self._rows * self._G, self._rows)

    # --- exactly ------------------------------------------------------------------------------------

    def column(self, y: int) -> list[Fraction]:
        """``A[·, y]``, exactly."""
        inverse, determinant = self._inverse
        column, factor = self._rows[:, y].tolist(), self._G[y] * self._denominator
        products = (sum(a * b for a, b in zip(row, column, strict=True)) for row in inverse)
        return [Fraction(product * factor, determinant) for product in products]

    @cached_property
    def _inverse(self) -> tuple[list[list[int]], int]:
        """``(det M) · M⁻¹`` and ``det M``."""
        k = len(self._rows)
        found = solve_integers(
            self._M.tolist(), [[int(x == x2) for x2 in range(k)] for x in range(k)]
        )
        if found is None:
            raise NothingToLearn(
                "this channel sends two mixtures of symbols to the same reports: nothing undoes it."
            )
        return found

    # --- in floats ----------------------------------------------------------------------------------

    def floats(self) -> Floats:
        """A in floats, right to 10⁻¹⁰ of its largest entry: by a float solve that is sure of that, or exactly."""
        fast = self._float_solve()
        if fast is not None:
            return fast
        columns = [[float(score) for score in self.column(y)] for y in range(self._rows.shape[1])]
        return np.array(columns).T

    def _float_solve(self) -> Floats | None:
        """A by way of a float inverse of M that was corrected once; ``None`` if rounding might show."""
        halves = [int(entry).bit_length() // 2 for entry in self._M.diagonal()]
        inverse = _float_inverse(self._M, halves)
        if inverse is None:
            return None
        Y, doubt = inverse
        units = np.ldexp(1.0, halves)[:, None]
        weighted = (
            self._rows.astype(np.float64)
            * self._G.astype(np.float64)
            * (float(self._denominator) / units)
        )
        A = Y @ weighted / units
        errors = (len(Y) + 8) * _HALF_UNIT * ((np.abs(Y) + doubt) @ weighted) / units
        return A if errors.max() <= _ACCURATE * np.abs(A).max() else None


def _float_inverse(M: _Integers, halves: list[int]) -> tuple[Floats, float] | None:
    """The inverse Y of M in units that make its diagonal about 1, and what its entries may be off by, in half-units.

    M Y0 = 1 − F for a first inverse Y0, with F in integers; then ``Y = Y0 (1 − F)⁻¹`` as far as floats go.
    """
    k, bits = len(M), 2 * max(halves)
    scaled = M << np.array([[bits - a - b for b in halves] for a in halves], dtype=object)
    try:
        first = np.linalg.inv((scaled / (1 << bits)).astype(np.float64))
    except np.linalg.LinAlgError:
        return None
    held = np.array(
        [[int(entry) for entry in row] for row in np.ldexp(first, _INVERSE_BITS).tolist()],
        dtype=object,
    )
    one = 1 << bits + _INVERSE_BITS
    F = ((np.eye(k, dtype=object) * one - scaled @ held) / one).astype(np.float64)
    residual = float(np.abs(F).sum(axis=1).max())
    if residual > _LARGEST_RESIDUAL:
        return None
    return first + first @ np.linalg.solve(np.eye(k) - F, F), residual * float(np.abs(first).max())


def _product(left: _Integers, right: _Integers) -> _Integers:
    """``left · rightᵀ`` for integers that are not negative: exact, in limbs that floats multiply exactly."""
    product = np.zeros((len(left), len(right)), dtype=object)
    for start in range(0, left.shape[1], _LIMB_COLUMNS):
        mine, theirs = (_limbs(side[:, start : start + _LIMB_COLUMNS]) for side in (left, right))
        for i, a in enumerate(mine):
            for j, b in enumerate(theirs):
                product += (a @ b.T).astype(np.int64).astype(object) << _LIMB_BITS * (i + j)
    return product


def _limbs(integers: _Integers) -> list[Floats]:
    """The digits of integers to base 2^20, the lowest first."""
    digits = -(-int(integers.max()).bit_length() // _LIMB_BITS)
    return [
        ((integers >> _LIMB_BITS * i) & (2**_LIMB_BITS - 1)).astype(np.float64)
        for i in range(digits)
    ]


def surely_independent(rows: Sequence[Sequence[int]]) -> bool:
    """Whether the rows are linearly independent modulo a large prime, and so independent.

    >>> surely_independent([[1, 2], [2, 3]]), surely_independent([[1, 2], [2, 4]])
    (True, False)
    """
    left = (np.array(rows, dtype=object) % _PRIME).astype(np.int64)
    while len(left):
        head, left = left[0], left[1:]
        pivots = np.flatnonzero(head)
        if pivots.size == 0:
            return False
        inverse = pow(int(head[pivots[0]]), -1, _PRIME)
        factors = left[:, pivots[0]] * inverse % _PRIME
        left = (left - factors[:, None] * head) % _PRIME
    return True
