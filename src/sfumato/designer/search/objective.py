"""What a design optimises: the distribution at which its risk is taken, and symbol weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidArgument
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import Mechanism

__all__ = ["Objective"]

_PEOPLE = 10**6  # to which a prior of shares is rounded
_MAX_COUNT = 2**32
_MAX_WEIGHT_RATIO = 1e6


@dataclass(frozen=True)
class Objective:
    """The value ``tr(W M⁻¹)`` of a mechanism for a crowd p and symbol weights w, and its bounds.

    ``counts`` are p as integers without a common factor.

    >>> Objective.of(3, prior=[0.5, 0.25, 0.25], weights=None).crowd
    array([0.5 , 0.25, 0.25])
    """

    counts: tuple[int, ...]
    weights: Floats

    @classmethod
    def of(cls, size: int, prior: ArrayLike | None, weights: ArrayLike | None) -> "Objective":
        """Parse the arguments of ``design``; by default people are spread evenly, with weights 1.

        Counts are taken as they are. Shares are rounded to millionths, and to at least one.
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
        """``Σ w p²``: what the value of a mechanism exceeds its risk by."""
        return float(self.weights @ self.crowd**2)

    @property
    def least_value(self) -> float:
        """``Σ w p``: the value of answers in clear, which no mechanism can beat."""
        return float(self.weights @ self.crowd)

    def value_of(self, mechanism: Mechanism) -> float:
        """Return ``tr(W M⁻¹)`` of a mechanism: its risk, plus ``offset``."""
        return float(self.weights @ mechanism.scores.variances(self.crowd, 1)) + self.offset


def _parse_prior(prior: ArrayLike, size: int) -> Floats:
    counts = _parse_numbers(prior, size, "prior")
    if not counts.any():
        raise InvalidArgument(f"prior must be {size} shares or counts, not all of them 0.")
    whole = (counts == np.rint(counts)).all() and counts.min() >= 1
    if whole and counts.max() <= _MAX_COUNT:
        return counts
    shares = counts / counts.max()  # so that no sum overflows
    return np.maximum(np.rint(shares / shares.sum() * _PEOPLE), 1)


def _parse_weights(weights: ArrayLike, size: int) -> Floats:
    w = _parse_numbers(weights, size, "weights")
    if not w.all() or w.max() / w.min() > _MAX_WEIGHT_RATIO:
        raise InvalidArgument(
            f"weights must be positive, with a ratio of at most {_MAX_WEIGHT_RATIO:.0e} between "
            "the largest and the smallest. Merge symbols that do not matter, or weigh them little."
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
    common = reduce(gcd, counts)
    return tuple(count // common for count in counts)
