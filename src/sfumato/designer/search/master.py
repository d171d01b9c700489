"""What a design minimises, and the best mixture of given rays: a convex problem.

The columns of the channel are ``θ_r r`` with ``p·r = 1``. The covariance of the best unbiased
estimate at p, times the number of people, is ``M⁻¹ − p pᵀ`` with ``M = Σ θ_r r rᵀ``. So for symbol
weights w

    minimise tr(W M⁻¹)   subject to   Σ θ_r r = 1,  θ ≥ 0

This is an A-optimal design of experiments (Pukelsheim 2006, "Optimal design of experiments") with
linear constraints. It is solved along the central path: for growing t, Newton's method minimises
``t·tr(W M⁻¹) − Σ log θ_r`` on the constraints. At the minimum, every ray satisfies

    |W^½ M⁻¹ r|² + 1/(tθ_r) = ν·r

with ν the multipliers of the constraints, and the value is within ``N/t`` of the best for N rays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, inf, isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidArgument
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import Mechanism

__all__ = ["Mixture", "Objective", "best_mixture"]

_PEOPLE = 10**6  # the total that shares of a prior are scaled to before rounding
_MAX_COUNT = 2**32
_MAX_WEIGHT_RATIO = 1e6

_GROWTH = 12.0  # of t
_MAX_GROWTHS = 40
_MAX_STEPS = 40  # of Newton's method for one t
_CENTRED = 1e-2  # Newton decrement at which t grows
_BALANCED = 1e-9  # how far Σ θ r may be from 1
_SHORT_OF_ZERO = 0.95  # of the way to θ = 0, at most
_MIN_LENGTH = 1e-12  # of a step


@dataclass(frozen=True)
class Objective:
    """The value ``tr(W M⁻¹)`` of a mechanism for a crowd p and symbol weights w, and its bounds.

    ``counts`` is p as integers without a common factor.

    >>> Objective.of(3, prior=[0.5, 0.25, 0.25], weights=None).crowd
    array([0.5 , 0.25, 0.25])
    """

    counts: tuple[int, ...]
    weights: Floats

    @classmethod
    def of(cls, size: int, prior: ArrayLike | None, weights: ArrayLike | None) -> "Objective":
        """Parse the arguments of ``design``; by default people are spread evenly, with weights 1.

        Counts are used as they are. Shares are rounded to millionths, and up to at least one.
        """
        counts = np.ones(size) if prior is None else _parse_prior(prior, size)
        w = np.ones(size) if weights is None else _parse_weights(weights, size)
        return cls(_coprime(counts.astype(np.int64).tolist()), w)

    def restrict(self, symbols: NDArray[np.int64]) -> "Objective":
        """Return the objective for these symbols alone."""
        counts = [self.counts[x] for x in symbols.tolist()]
        return Objective(_coprime(counts), self.weights[symbols])

    def scale(self, factor: float) -> "Objective":
        """Return the same crowd with all weights times ``factor``."""
        return Objective(self.counts, self.weights * factor)

    @property
    def crowd(self) -> Floats:
        """The distribution p."""
        counts = np.array(self.counts, dtype=np.float64)
        return counts / counts.sum()

    @property
    def is_even(self) -> bool:
        """Whether p is uniform and all weights are equal."""
        return len(set(self.counts)) == 1 and bool((self.weights == self.weights[0]).all())

    @property
    def offset(self) -> float:
        """``Σ w p²``: the difference between the value of a mechanism and its risk."""
        return float(self.weights @ self.crowd**2)

    @property
    def least_value(self) -> float:
        """``Σ w p``: the value of unrandomized answers, which no mechanism can beat."""
        return float(self.weights @ self.crowd)

    def value_of(self, mechanism: Mechanism) -> float:
        """Return ``tr(W M⁻¹)`` of a mechanism: its risk, plus ``offset``."""
        return float(self.weights @ mechanism.scores.variances(self.crowd, 1)) + self.offset


def _parse_prior(prior: ArrayLike, size: int) -> Floats:
    counts = _parse_numbers(prior, size, "prior")
    if not counts.any():
        raise InvalidArgument(f"prior must be {size} shares or counts, not all of them 0.")
    are_integers = (counts == np.rint(counts)).all() and counts.min() >= 1
    if are_integers and counts.max() <= _MAX_COUNT:
        return counts
    shares = counts / counts.max()  # so that no sum overflows
    return np.maximum(np.rint(shares / shares.sum() * _PEOPLE), 1)


def _parse_weights(weights: ArrayLike, size: int) -> Floats:
    w = _parse_numbers(weights, size, "weights")
    if not w.all() or w.max() / w.min() > _MAX_WEIGHT_RATIO:
        raise InvalidArgument(
            f"weights must be positive, with a ratio of at most {_MAX_WEIGHT_RATIO:.0e} between "
            "the largest and the smallest. Merge symbols that do not matter, or give them small "
            "weights."
        )
    return w


def _parse_numbers(numbers: ArrayLike, size: int, name: str) -> Floats:
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


def _coprime(counts: Sequence[int]) -> tuple[int, ...]:
    common = gcd(*counts)
    return tuple(count // common for count in counts)


# --- the central path -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Mixture:
    """Weights θ of the rays, ``M⁻¹``, the multipliers ν of ``Σ θ r = 1``, and ``tr(W M⁻¹)``.

    The value is inf if the rays do not tell all symbols apart, or cannot be mixed to 1: then they
    do not make a channel.
    """

    theta: Floats
    inverse: Floats
    multipliers: Floats
    value: float


def best_mixture(
    rays: Floats, weights: Floats, start: Floats, tolerance: float, first: float = 1.0
) -> Mixture:
    """Return weights for which ``tr(W M⁻¹)`` is within a relative ``tolerance`` of the least.

    ``start`` holds positive weights to begin with, which need not satisfy the constraints. The path
    is entered at the tolerance ``first``: the better the start, the smaller it may be.

    >>> rays = np.array([[1.5, 0.5], [0.5, 1.5], [1.0, 1.0]])
    >>> best_mixture(rays, np.ones(2), np.full(3, 1 / 3), 1e-9).theta.round(6) + 0.0
    array([0.5, 0.5, 0. ])
    """
    N = rays.shape[0]
    path = _Path(rays, np.sqrt(weights), start)
    if not isfinite(path.value):
        return Mixture(path.theta, path.inverse, path.multipliers, inf)
    t = N / (path.value * max(first, tolerance))
    for _ in range(_MAX_GROWTHS):
        # The path ends where floats run out of digits. Any point on it is a mixture.
        if not path.centre(t) or N / t <= tolerance * path.value:
            break
        t = min(t * _GROWTH, 1.01 * N / (tolerance * path.value))
    balanced = path.balance()
    return Mixture(path.theta, path.inverse, path.multipliers, path.value if balanced else inf)


class _Path:
    """A point on the central path."""

    def __init__(self, rays: Floats, roots: Floats, start: Floats) -> None:
        self._R = rays
        self._roots = roots  # √w
        self._move_to(start.copy())
        self.multipliers = np.zeros(rays.shape[1])

    def _move_to(self, theta: Floats) -> None:
        """Set θ, ``M⁻¹`` and the value."""
        self.theta = theta
        self.inverse = _inverse(self._R.T @ (theta[:, None] * self._R))
        value = float(self._roots**2 @ self.inverse.diagonal())
        self.value = value if value > 0 else inf

    def centre(self, t: float) -> bool:
        """Run Newton's method for one t, in ``d/θ``, where the barrier is roundest.

        Return False if the equations cannot be solved in floats.
        """
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        for _ in range(_MAX_STEPS):
            scaled = self._R * self.theta[:, None]
            V = scaled @ (self.inverse * self._roots)
            H = (self._R @ self.inverse @ self._R.T) * (V @ V.T) * (2 * t)  # Hessian, scaled
            H[np.diag_indices_from(H)] += 1
            try:
                factor = cho_factor(H, overwrite_a=True, check_finite=False)
            except LinAlgError:
                return False
            slope = (V**2).sum(axis=1) / self.theta * t + 1  # minus the gradient, scaled
            columns = cho_solve(factor, np.column_stack([slope, scaled]), check_finite=False)
            free = columns[:, 0]
            bound = columns[:, 1:]
            missing = 1 - scaled.sum(axis=0)
            nu = _solve(scaled.T @ bound, scaled.T @ free - missing)
            step = free - bound @ nu  # d/θ
            self.multipliers = nu / t
            decrement = float(np.sqrt(max(step @ (slope - scaled @ nu), 0.0)))
            balanced = float(np.abs(missing).max()) < _BALANCED
            length = min(1.0, _SHORT_OF_ZERO / max(-float(step.min()), 1e-300))
            length = self._advance(step, length, t, decrement if balanced else None)
            if (decrement < _CENTRED and balanced) or length < _MIN_LENGTH:
                break
        return True

    def balance(self) -> bool:
        """Make ``Σ θ r = 1`` hold to the last digits, by the least change relative to θ.

        Return whether that worked.
        """
        for _ in range(3):
            missing = 1 - self.theta @ self._R
            products = (self._R * self.theta[:, None]).T @ self._R
            change = self._R @ np.linalg.lstsq(products, missing, rcond=None)[0]
            if not (change > -1).all():
                return False
            self.theta = self.theta * (1 + change)
        self._move_to(self.theta)
        return isfinite(self.value) and float(np.abs(1 - self.theta @ self._R).max()) < _BALANCED

    def _advance(self, step: Floats, length: float, t: float, decrement: float | None) -> float:
        """Move along ``step`` as far as M has an inverse; return the length.

        Once the constraints hold, there is a ``decrement``, and the barrier function must fall.
        """
        theta = self.theta
        start = self._barrier(t)
        while length >= _MIN_LENGTH:
            self._move_to(theta * (1 + length * step))
            if decrement is None:
                accepted = isfinite(self.value)
            else:
                fall = start - self._barrier(t)
                accepted = fall >= 1e-4 * length * decrement**2 - 1e-9 * abs(start)
            if accepted:
                break
            length /= 2
        return length

    def _barrier(self, t: float) -> float:
        """Return ``t·tr(W M⁻¹) − Σ log θ_r``."""
        return t * self.value - float(np.log(self.theta).sum())


def _solve(A: Floats, b: Floats) -> Floats:
    """Return ``A⁻¹ b`` for a symmetric A; a ridge keeps A regular in its last digits."""
    ridge = 1e-14 * np.trace(A) / len(A)
    return np.linalg.solve(A + np.eye(len(A)) * ridge, b)


def _inverse(M: Floats) -> Floats:
    """Return the inverse of a symmetric matrix, exactly symmetric; infinite where singular."""
    try:
        inverse = np.linalg.inv((M + M.T) / 2)
    except np.linalg.LinAlgError:
        return np.full_like(M, inf)
    return (inverse + inverse.T) / 2
