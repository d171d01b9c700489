"""Mechanisms that are small enough to store their channels and scores as matrices.

``LeftInverse`` computes scores for any such channel: ``A = M⁻¹ Q G`` with ``M = Q G Qᵀ``, where G
is the diagonal matrix of ``1/q(y)`` and q is the distribution of reports from an assumed
population, the *crowd*. These scores give the minimum-variance unbiased estimate if people are
distributed like the crowd. For any G, ``A Qᵀ = M⁻¹ M`` is the identity, so A is unbiased. The
entries of G can therefore be rounded to short integers; exact scores need no other rounding.
"""

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import NothingToLearn
from sfumato.foundation.arrays import Floats
from sfumato.foundation.elimination import solve_integers
from sfumato.mechanisms.channel import to_integers
from sfumato.mechanisms.mechanism import CompactRow, Mechanism
from sfumato.mechanisms.scores import Reach, Scores, float_vector

__all__ = [
    "DenseMechanism",
    "DenseScores",
    "LeftInverse",
    "MinimumVarianceScores",
    "are_independent_mod_prime",
]

_WEIGHT_BITS = 24  # G is computed with this many fractional bits, and keeps 16 of them
_ROUNDING_ERROR = 2.0**-53  # the rounding error of a float near 1
_TOLERANCE = 1e-10  # the largest error allowed, relative to the largest score
_MAX_RESIDUAL = 1e-3  # the largest residual of an approximate inverse that can be corrected
_INVERSE_BITS = 60  # the number of fractional bits of an approximate inverse in integers
_LIMB_BITS = 20
_LIMB_COLUMNS = 2**13  # floats can add this many products of limbs exactly
_PRIME = 2**31 - 1

_Integers = NDArray[np.object_]


class DenseMechanism(Mechanism):
    """A mechanism that computes everything from its integer rows."""

    @abstractmethod
    def integer_row(self, x: int) -> list[int]:
        """Return, for each report, how many of ``denominator`` draws make symbol x produce it."""

    def compact_row(self, x: int) -> CompactRow:
        """Return the row of x as its distinct integers, and the index of each report's integer."""
        row = self.integer_row(x)
        levels = list(dict.fromkeys(row))
        if len(levels) == len(row):
            return levels, np.arange(len(row))
        index_by_level = dict(zip(levels, range(len(levels)), strict=True))
        return levels, np.array([index_by_level[count] for count in row])

    @cached_property
    def _channel(self) -> Floats:
        return self.matrix()

    def forward(self, p: ArrayLike) -> Floats:
        """Return ``pᵀQ``."""
        return float_vector(p, self.inputs, "p") @ self._channel

    def adjoint(self, v: ArrayLike) -> Floats:
        """Return ``Qv``."""
        return self._channel @ float_vector(v, self.outputs, "v")


class DenseScores(Scores):
    """Scores stored as a matrix."""

    @cached_property
    def _A(self) -> Floats:
        """The scores, one row per symbol. By default they are computed with ``exact_column``."""
        columns = [self.exact_column(y) for y in range(self.mechanism.outputs)]
        return np.array(columns, dtype=np.float64).T

    def moments(self, frequencies: ArrayLike, power: int) -> Floats:
        """Return ``Σ_y f(y) A[x, y]^power``."""
        f = float_vector(frequencies, self.mechanism.outputs, "frequencies")
        return self._A**power @ f

    def totals(self, weights: ArrayLike) -> Floats:
        """Return ``wᵀA``."""
        return float_vector(weights, self.mechanism.inputs, "weights") @ self._A

    def squares(self) -> Floats:
        """Return ``Σ_x A[x, y]²``."""
        return (self._A**2).sum(axis=0)

    def _compute_reach(self) -> Reach:
        max_absolute_sum = float(np.abs(self._A).sum(axis=0).max())
        return Reach(self._A.max(axis=1), self._A.min(axis=1), max_absolute_sum)


class MinimumVarianceScores(DenseScores):
    """The unbiased scores with the minimum variance for people distributed like a crowd.

    ``crowd`` contains an integer weight for each symbol; by default, all weights are equal.
    """

    def __init__(self, mechanism: Mechanism, crowd: Sequence[int] | None = None) -> None:
        super().__init__(mechanism)
        self._crowd = crowd or [1] * mechanism.inputs

    @cached_property
    def _inverse(self) -> "LeftInverse":
        rows = list(map(self.mechanism.integer_row, range(self.mechanism.inputs)))
        return LeftInverse(rows, self.mechanism.denominator, self._crowd)

    def exact_column(self, y: int) -> list[Fraction]:
        """Return the scores of report y."""
        return self._inverse.column(y)

    @cached_property
    def _A(self) -> Floats:
        return self._inverse.to_floats()


class LeftInverse:
    """Scores A with ``Σ_y Q(y|x2) A[x, y] = [x = x2]``, for ``Q = rows / denominator``.

    They have the minimum variance for people distributed like ``crowd``, which contains an integer
    weight for each symbol.

    >>> scores = LeftInverse([[3, 1], [1, 3]], 4, crowd=[1, 1])
    >>> scores.column(0)
    [Fraction(3, 2), Fraction(-1, 2)]
    >>> scores.to_floats()
    array([[ 1.5, -0.5],
           [-0.5,  1.5]])
    """

    def __init__(
        self, rows: Sequence[Sequence[int]], denominator: int, crowd: Sequence[int]
    ) -> None:
        self._rows = np.array(rows, dtype=object)
        self._denominator = denominator
        scaled_total = sum(crowd) * denominator << _WEIGHT_BITS
        weights = []
        for frequency in (np.array(crowd, dtype=object) @ self._rows).tolist():
            weights.append(0 if frequency == 0 else max(1, scaled_total // frequency >> 8))
        self._G = np.array(weights, dtype=object)

    @cached_property
    def _M(self) -> _Integers:
        return _exact_product(self._rows * self._G, self._rows)

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
                "two mixtures of symbols give the same distribution of reports, so this channel "
                "cannot be inverted."
            )
        adjugate, determinant = solution
        return np.array(adjugate, dtype=object), determinant

    def to_floats(self) -> Floats:
        """Return A as floats, with errors of at most 10⁻¹⁰ times the largest entry.

        Solve in floating point if that is guaranteed to be accurate enough, otherwise exactly.
        """
        A = self._solve_in_floats()
        if A is not None:
            return A
        columns = [self.column(y) for y in range(self._rows.shape[1])]
        return np.array(columns, dtype=np.float64).T

    def _solve_in_floats(self) -> Floats | None:
        """Return A from a corrected float inverse of M, or ``None`` if A may be inaccurate."""
        half_bits = [int(entry).bit_length() // 2 for entry in self._M.diagonal()]
        inverse = _float_inverse(self._M, half_bits)
        if inverse is None:
            return None
        Y, error_bound = inverse
        units = np.ldexp(1.0, half_bits)[:, None]
        weighted = self._rows.astype(np.float64) * self._G.astype(np.float64)
        weighted = weighted * (float(self._denominator) / units)
        A = Y @ weighted / units
        errors = (len(Y) + 8) * _ROUNDING_ERROR * ((np.abs(Y) + error_bound) @ weighted) / units
        return A if errors.max() <= _TOLERANCE * np.abs(A).max() else None


def _float_inverse(M: _Integers, half_bits: list[int]) -> tuple[Floats, float] | None:
    """Return the inverse Y of the scaled M, and an error bound for its entries in units of 2^−53.

    M is scaled so that its diagonal is about 1. An approximate inverse Y0 satisfies
    ``M Y0 = 1 − F``, where F is computed exactly. Then ``Y = Y0 (1 − F)⁻¹``, up to float error.
    Return ``None`` if Y0 is too inaccurate.
    """
    k = len(M)
    bits = 2 * max(half_bits)
    exponents = np.array(half_bits, dtype=object)
    scaled = M << (bits - exponents[:, None] - exponents)
    try:
        Y0 = np.linalg.inv((scaled / (1 << bits)).astype(np.float64))
    except np.linalg.LinAlgError:
        return None
    one = 1 << bits + _INVERSE_BITS
    exact_F = np.eye(k, dtype=object) * one - scaled @ to_integers(np.ldexp(Y0, _INVERSE_BITS))
    F = (exact_F / one).astype(np.float64)
    residual = float(np.abs(F).sum(axis=1).max())
    if residual > _MAX_RESIDUAL:
        return None
    Y = Y0 + Y0 @ np.linalg.solve(np.eye(k) - F, F)
    return Y, residual * float(np.abs(Y0).max())


def _exact_product(left: _Integers, right: _Integers) -> _Integers:
    """Return ``left · rightᵀ`` for non-negative integers, computed exactly from their limbs."""
    product = np.zeros((len(left), len(right)), dtype=object)
    for start in range(0, left.shape[1], _LIMB_COLUMNS):
        columns = slice(start, start + _LIMB_COLUMNS)
        right_limbs = _limbs(right[:, columns])
        for i, a in enumerate(_limbs(left[:, columns])):
            for j, b in enumerate(right_limbs):
                product += (a @ b.T).astype(np.int64).astype(object) << _LIMB_BITS * (i + j)
    return product


def _limbs(integers: _Integers) -> list[Floats]:
    """Return the base-2^20 digits of the integers, least significant first."""
    limb_count = -(-int(integers.max()).bit_length() // _LIMB_BITS)
    limbs = []
    for i in range(limb_count):
        limb = (integers >> _LIMB_BITS * i) & (2**_LIMB_BITS - 1)
        limbs.append(limb.astype(np.float64))
    return limbs


def are_independent_mod_prime(rows: Sequence[Sequence[int]]) -> bool:
    """Return whether the rows are linearly independent modulo a large prime.

    If so, they are independent over the rationals. If not, they are probably dependent.

    >>> are_independent_mod_prime([[1, 2], [2, 3]]), are_independent_mod_prime([[1, 2], [2, 4]])
    (True, False)
    """
    remaining = (np.array(rows, dtype=object) % _PRIME).astype(np.int64)
    while len(remaining):
        pivot_row = remaining[0]
        remaining = remaining[1:]
        pivots = np.flatnonzero(pivot_row)
        if pivots.size == 0:
            return False
        inverse = pow(int(pivot_row[pivots[0]]), -1, _PRIME)
        factors = remaining[:, pivots[0]] * inverse % _PRIME
        remaining = (remaining - factors[:, None] * pivot_row) % _PRIME
    return True
