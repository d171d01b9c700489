"""What a design is good for: the distribution at which its risk is taken, and how much each symbol counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import Mechanism

__all__ = ["Aim"]

_PEOPLE = 10**6  # by which a prior is told
_FARTHEST = 1e6  # the most that weights may differ by
_LARGEST_COUNT = 2**32


@dataclass(frozen=True)
class Aim:
    """A crowd p as whole numbers without a common factor, and weights w, of all symbols or of a part of them.

    >>> Aim.of(3, prior=[0.5, 0.25, 0.25], weights=None).crowd
    array([0.5 , 0.25, 0.25])
    """

    counts: tuple[int, ...]
    weights: Floats

    @classmethod
    def of(cls, size: int, prior: ArrayLike | None, weights: ArrayLike | None) -> "Aim":
        """The aim that was asked for. Counts are taken as they are; of shares, those below a millionth count as one."""
        counts, w = np.ones(size), np.ones(size)
        if prior is not None:
            counts = _numbers(prior, size, "prior")
            if not counts.any():
                raise InvalidContext(
                    f"prior must be {size} shares or counts, one per symbol, not all 0."
                )
            if (
                (counts != np.rint(counts)).any()
                or counts.min() < 1
                or counts.max() > _LARGEST_COUNT
            ):
                shares = counts / counts.max()  # so that no sum overflows
                counts = np.maximum(np.rint(shares / shares.sum() * _PEOPLE), 1)
        if weights is not None:
            w = _numbers(weights, size, "weights")
            if not w.all() or w.max() / w.min() > _FARTHEST:
                raise InvalidContext(
                    f"weights must be above 0, and within a factor of {_FARTHEST:.0e} of one another; merge symbols "
                    "that do not matter, or give them little."
                )
        return cls(_coprime(counts.astype(np.int64).tolist()), w)

    def part(self, symbols: NDArray[np.int64]) -> "Aim":
        """The crowd and the weights of these symbols alone."""
        return Aim(_coprime([self.counts[x] for x in symbols.tolist()]), self.weights[symbols])

    @property
    def crowd(self) -> Floats:
        """The distribution p."""
        counts = np.array(self.counts, dtype=np.float64)
        return counts / counts.sum()

    def scaled(self, factor: float) -> "Aim":
        """The same crowd with all weights times a factor."""
        return Aim(self.counts, self.weights * factor)

    @property
    def even(self) -> bool:
        """Whether people are spread evenly, and symbols count the same."""
        return len(set(self.counts)) == 1 and bool((self.weights == self.weights[0]).all())

    @property
    def known(self) -> float:
        """``Σ w p²``: what the value ``tr(W M⁻¹)`` of a mechanism exceeds its risk by."""
        return float(self.weights @ self.crowd**2)

    @property
    def in_clear(self) -> float:
        """The value of answers in clear, below which nothing can be: ``Σ w p``."""
        return float(self.weights @ self.crowd)

    def value(self, mechanism: Mechanism) -> float:
        """``tr(W M⁻¹)`` of a mechanism: its risk, plus ``known``."""
        return float(self.weights @ mechanism.variances(self.crowd, 1)) + self.known


def _numbers(given: ArrayLike, size: int, name: str) -> Floats:
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidContext(
            f"{name} must be {size} numbers, one per symbol, in domain order."
        ) from None
    if array.shape != (size,) or not np.isfinite(array).all() or (array < 0).any():
        raise InvalidContext(
            f"{name} must be {size} finite numbers of at least 0, one per symbol, in domain order; "
            f"found shape {array.shape}, or an entry that is not."
        )
    return array


def _coprime(counts: Sequence[int]) -> tuple[int, ...]:
    common = reduce(gcd, counts)
    return tuple(count // common for count in counts)
