"""The objective of a design, and a solver for the best mixture of given rays.

The columns of the channel are ``θ_r r``, for rays r with ``p·r = 1``. The covariance of the best
unbiased estimate at p, times the number of people, is ``M⁻¹ − p pᵀ`` with ``M = Σ θ_r r rᵀ``. So,
for symbol weights w and ``W = diag(w)``,

    minimise tr(W M⁻¹)   subject to   Σ θ_r r = 1,  θ ≥ 0

This convex problem is an A-optimal design of experiments (Pukelsheim 2006, "Optimal design of
experiments") with linear constraints. It is solved along the central path: for increasing t,
Newton's method minimises ``t·tr(W M⁻¹) − Σ log θ_r`` subject to the constraints. At the minimum,
every ray satisfies

    |W^½ M⁻¹ r|² + 1/(tθ_r) = ν·r

where ν contains the multipliers of the constraints. For N rays, ``tr(W M⁻¹)`` is then within
``N/t`` of its minimum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, inf, isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidArgument
from sfumato.foundation.arrays import Floats
from sfumato.foundation.numpy_values import require_unmasked
from sfumato.mechanisms import Mechanism

__all__ = ["Mixture", "Objective", "best_mixture"]

_PRIOR_TOTAL = 10**6  # the shares of a prior are scaled to this total and rounded
_MAX_COUNT = 2**32  # larger counts are treated as shares
_MAX_WEIGHT_RATIO = 1e6  # of the largest weight to the smallest

_T_GROWTH = 12.0  # the factor from one t to the next
_MAX_T_COUNT = 40  # values of t on a path
_MAX_NEWTON_STEPS = 40  # for one t
_CENTRED_DECREMENT = 1e-2  # t grows once the Newton decrement is below this
_BALANCE_TOLERANCE = 1e-9  # the largest accepted |Σ θ r − 1|
_MAX_SHARE_TO_ZERO = 0.95  # a step covers at most this share of the distance to θ = 0
_MIN_STEP_LENGTH = 1e-12


@dataclass(frozen=True)
class Objective:
    """The value ``tr(W M⁻¹)`` of mechanisms, for a prior p and symbol weights w.

    ``counts`` contains coprime integers proportional to p.

    >>> Objective.parse(3, prior=[0.5, 0.25, 0.25], weights=None).prior
    array([0.5 , 0.25, 0.25])
    """

    counts: tuple[int, ...]
    weights: Floats

    @classmethod
    def parse(cls, size: int, prior: ArrayLike | None, weights: ArrayLike | None) -> "Objective":
        """Return the objective for arguments of ``design``: by default, uniform p and weights of 1.

        A prior of positive integers is used as given. Any other prior is scaled to shares, which
        are rounded to millionths, but never to 0.
        """
        counts = np.ones(size) if prior is None else _parse_prior(prior, size)
        w = np.ones(size) if weights is None else _parse_weights(weights, size)
        return cls(_make_coprime(counts.astype(np.int64).tolist()), w)

    def restrict(self, symbols: NDArray[np.int64]) -> "Objective":
        """Return the objective for the given symbols alone."""
        counts = [self.counts[x] for x in symbols.tolist()]
        return Objective(_make_coprime(counts), self.weights[symbols])

    def scale(self, factor: float) -> "Objective":
        """Return the objective with all weights multiplied by ``factor``."""
        return Objective(self.counts, self.weights * factor)

    @property
    def prior(self) -> Floats:
        """The distribution p."""
        counts = np.array(self.counts, dtype=np.float64)
        return counts / counts.sum()

    @property
    def is_uniform(self) -> bool:
        """Whether p is uniform and all weights are equal."""
        return len(set(self.counts)) == 1 and bool((self.weights == self.weights[0]).all())

    @property
    def offset(self) -> float:
        """``Σ w p²``: the difference between the value of a mechanism and its risk."""
        return float(self.weights @ self.prior**2)

    @property
    def min_value(self) -> float:
        """``Σ w p``: the value of sending answers unrandomized, which no mechanism can beat."""
        return float(self.weights @ self.prior)

    def value_of(self, mechanism: Mechanism) -> float:
        """Return ``tr(W M⁻¹)`` of a mechanism: its risk, plus ``offset``."""
        return float(self.weights @ mechanism.scores.variances(self.prior, 1)) + self.offset


def _parse_prior(prior: ArrayLike, size: int) -> Floats:
    counts = _parse_numbers(prior, size, "prior")
    if not counts.any():
        raise InvalidArgument(f"prior must be {size} shares or counts that are not all 0.")
    are_positive_integers = (counts == np.rint(counts)).all() and counts.min() >= 1
    if are_positive_integers and counts.max() <= _MAX_COUNT:
        return counts
    shares = counts / counts.max()  # scaled, so that the sum cannot overflow
    return np.maximum(np.rint(shares / shares.sum() * _PRIOR_TOTAL), 1)


def _parse_weights(weights: ArrayLike, size: int) -> Floats:
    w = _parse_numbers(weights, size, "weights")
    if not w.all() or w.max() / w.min() > _MAX_WEIGHT_RATIO:
        raise InvalidArgument(
            "weights must be positive, and the largest must be at most "
            f"{_MAX_WEIGHT_RATIO:.0e} times the smallest. Merge symbols that do not matter, or "
            "give them small weights."
        )
    return w


def _parse_numbers(numbers: ArrayLike, size: int, name: str) -> Floats:
    require_unmasked(numbers, name, InvalidArgument)
    requirement = f"{name} must be {size} finite, non-negative numbers, one per symbol"
    try:
        array = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{requirement}, in domain order.") from None
    if array.shape != (size,):
        raise InvalidArgument(f"{requirement}, in domain order; got shape {array.shape}.")
    if not np.isfinite(array).all() or (array < 0).any():
        raise InvalidArgument(f"{requirement}; at least one is negative or not finite.")
    return array


def _make_coprime(counts: Sequence[int]) -> tuple[int, ...]:
    divisor = gcd(*counts)
    return tuple(count // divisor for count in counts)


# --- the central path -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Mixture:
    """Weights θ of the rays, ``M⁻¹``, the multipliers ν of ``Σ θ r = 1``, and ``tr(W M⁻¹)``.

    The value is inf if the rays do not tell all symbols apart. It is also inf if no mixture of them
    is the column of ones, because then they do not form a channel.
    """

    theta: Floats
    inverse: Floats
    multipliers: Floats
    value: float


def best_mixture(
    rays: Floats,
    weights: Floats,
    initial_theta: Floats,
    tolerance: float,
    first_tolerance: float = 1.0,
) -> Mixture:
    """Return a mixture whose ``tr(W M⁻¹)`` is within a relative ``tolerance`` of the minimum.

    ``initial_theta`` contains positive weights, which need not satisfy the constraints. The path
    begins at ``first_tolerance``, which may be below 1 if these weights are nearly optimal.

    >>> rays = np.array([[1.5, 0.5], [0.5, 1.5], [1.0, 1.0]])
    >>> best_mixture(rays, np.ones(2), np.full(3, 1 / 3), 1e-9).theta.round(6) + 0.0
    array([0.5, 0.5, 0. ])
    """
    N = rays.shape[0]
    path = _Path(rays, np.sqrt(weights), initial_theta)
    if not isfinite(path.value):
        return Mixture(path.theta, path.inverse, path.multipliers, inf)
    t = N / (path.value * max(first_tolerance, tolerance))
    for _ in range(_MAX_T_COUNT):
        # Stop early if floats are not precise enough; every point on the path is a valid mixture.
        if not path.centre(t) or N / t <= tolerance * path.value:
            break
        t = min(t * _T_GROWTH, 1.01 * N / (tolerance * path.value))
    is_balanced = path.balance()
    return Mixture(path.theta, path.inverse, path.multipliers, path.value if is_balanced else inf)


class _Path:
    """The current point on the central path."""

    def __init__(self, rays: Floats, weight_roots: Floats, initial_theta: Floats) -> None:
        self._R = rays
        self._weight_roots = weight_roots  # √w
        self._move_to(initial_theta.copy())
        self.multipliers = np.zeros(rays.shape[1])

    def _move_to(self, theta: Floats) -> None:
        """Set θ, ``M⁻¹`` and the value."""
        self.theta = theta
        self.inverse = _inverse(self._R.T @ (theta[:, None] * self._R))
        value = float(self._weight_roots**2 @ self.inverse.diagonal())
        self.value = value if value > 0 else inf

    def centre(self, t: float) -> bool:
        """Run Newton's method for one t, in steps relative to θ, because they converge fastest.

        Return whether the equations could be solved in floating point.
        """
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        for _ in range(_MAX_NEWTON_STEPS):
            scaled_rays = self._R * self.theta[:, None]
            V = scaled_rays @ (self.inverse * self._weight_roots)
            H = (self._R @ self.inverse @ self._R.T) * (V @ V.T) * (2 * t)  # the scaled Hessian
            H[np.diag_indices_from(H)] += 1
            try:
                cholesky_factor = cho_factor(H, overwrite_a=True, check_finite=False)
            except LinAlgError:
                return False
            descent = (V**2).sum(axis=1) / self.theta * t + 1  # minus the scaled gradient
            right_sides = np.column_stack([descent, scaled_rays])
            solutions = cho_solve(cholesky_factor, right_sides, check_finite=False)
            unconstrained_step = solutions[:, 0]
            corrections = solutions[:, 1:]
            residual = 1 - scaled_rays.sum(axis=0)
            excess = scaled_rays.T @ unconstrained_step - residual
            nu = _solve(scaled_rays.T @ corrections, excess)
            step = unconstrained_step - corrections @ nu
            self.multipliers = nu / t
            decrement = float(np.sqrt(max(step @ (descent - scaled_rays @ nu), 0.0)))
            is_balanced = float(np.abs(residual).max()) < _BALANCE_TOLERANCE
            length = min(1.0, _MAX_SHARE_TO_ZERO / max(-float(step.min()), 1e-300))
            length = self._advance(step, length, t, decrement if is_balanced else None)
            if (decrement < _CENTRED_DECREMENT and is_balanced) or length < _MIN_STEP_LENGTH:
                break
        return True

    def balance(self) -> bool:
        """Make ``Σ θ r = 1`` hold to machine precision, with the smallest relative change in θ.

        Return whether that succeeded.
        """
        for _ in range(3):
            residual = 1 - self.theta @ self._R
            products = (self._R * self.theta[:, None]).T @ self._R
            change = self._R @ np.linalg.lstsq(products, residual, rcond=None)[0]
            if not (change > -1).all():
                return False
            self.theta = self.theta * (1 + change)
        self._move_to(self.theta)
        residual = 1 - self.theta @ self._R
        return isfinite(self.value) and float(np.abs(residual).max()) < _BALANCE_TOLERANCE

    def _advance(self, step: Floats, length: float, t: float, decrement: float | None) -> float:
        """Move along ``step``, halving ``length`` until the move is accepted; return the length.

        Until the constraints hold, ``decrement`` is ``None``, and a move is accepted if M has an
        inverse. After that, a move is accepted if the barrier function decreases enough.
        """
        theta = self.theta
        old_barrier = self._barrier(t)
        while length >= _MIN_STEP_LENGTH:
            self._move_to(theta * (1 + length * step))
            if decrement is None:
                is_accepted = isfinite(self.value)
            else:
                decrease = old_barrier - self._barrier(t)
                is_accepted = decrease >= 1e-4 * length * decrement**2 - 1e-9 * abs(old_barrier)
            if is_accepted:
                break
            length /= 2
        return length

    def _barrier(self, t: float) -> float:
        """Return ``t·tr(W M⁻¹) − Σ log θ_r``."""
        return t * self.value - float(np.log(self.theta).sum())


def _solve(A: Floats, b: Floats) -> Floats:
    """Return ``A⁻¹ b`` for a symmetric A, with a small ridge in case A is nearly singular."""
    ridge = 1e-14 * np.trace(A) / len(A)
    return np.linalg.solve(A + np.eye(len(A)) * ridge, b)


def _inverse(M: Floats) -> Floats:
    """Return an exactly symmetric inverse of a symmetric M, or a matrix of inf if M is singular."""
    try:
        inverse = np.linalg.inv((M + M.T) / 2)
    except np.linalg.LinAlgError:
        return np.full_like(M, inf)
    return (inverse + inverse.T) / 2
