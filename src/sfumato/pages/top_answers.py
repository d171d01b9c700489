"""Both readings of an estimate, decoded and unbiased, as pages and pictures show them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.domains import Label
from sfumato.estimation import Estimate
from sfumato.foundation.arrays import Floats
from sfumato.foundation.formatting import format_share

MAX_BARS = 30
"""A bar chart shows at most this many symbols."""


@dataclass(frozen=True, eq=False)
class TopAnswers:
    """Both readings of the most frequent answers, the largest decoded frequency first.

    ``low`` and ``high`` are the ends of the 95 % interval of the unbiased estimate. ``places`` is
    the number of decimals in a percentage.
    """

    labels: list[Label]
    decoded: Floats
    unbiased: Floats
    low: Floats
    high: Floats
    places: int

    @classmethod
    def from_estimate(cls, estimate: Estimate, count: int) -> "TopAnswers":
        """Read the ``count`` most frequent symbols of an estimate."""
        symbols = most_frequent(estimate, count)
        low, high = estimate.interval(0.95)
        return cls(
            labels=[estimate.labels[x] for x in symbols.tolist()],
            decoded=estimate.frequencies[symbols],
            unbiased=estimate.unbiased[symbols],
            low=low[symbols],
            high=high[symbols],
            places=decimal_places(estimate),
        )

    @property
    def middle(self) -> Floats:
        """Where to draw the unbiased estimate: at the end of its interval if it lies outside."""
        return np.clip(self.unbiased, self.low, self.high)

    def format(self, share: float) -> str:
        """Return a share in percent."""
        return format_share(float(share), self.places)


def most_frequent(estimate: Estimate, count: int) -> NDArray[np.intp]:
    """Return the symbols with the largest decoded frequencies, largest first.

    Ties are broken by the unbiased estimate, then by the order of the domain.
    """
    order = np.lexsort((-estimate.unbiased, -estimate.frequencies))
    return order[:count]


def typical_error(estimate: Estimate) -> float:
    """Return the median of the standard errors that are known and not zero; 0 without any."""
    errors = estimate.standard_errors
    positive = errors[np.isfinite(errors) & (errors > 0)]
    return float(np.median(positive)) if positive.size else 0.0


def decimal_places(estimate: Estimate) -> int:
    """Return the decimals of a percentage that show two digits of a typical standard error."""
    error = typical_error(estimate)
    if error == 0:
        return 2
    exponent = math.floor(math.log10(100 * error))
    return min(max(1 - exponent, 1), 6)
