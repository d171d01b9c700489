"""The decoded and unbiased estimates of the most frequent answers, for pages and figures."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.domains import Domain, GridDomain, H3Domain, Label
from sfumato.domains.label_order import are_in_numeric_order
from sfumato.foundation.arrays import Floats
from sfumato.foundation.formatting import format_share

if TYPE_CHECKING:
    from sfumato.estimation.estimate import Estimate

__all__ = [
    "MAX_BARS",
    "TopAnswers",
    "decimal_places",
    "in_reading_order",
    "most_frequent",
    "typical_error",
]

MAX_BARS = 30
"""The largest number of answers in a bar chart."""


@dataclass(frozen=True, eq=False)
class TopAnswers:
    """The decoded and unbiased estimates of the most frequent answers, most frequent first.

    ``low`` and ``high`` are the ends of the 95% interval of the unbiased estimate. ``decimals`` is
    the number of decimal places in a percentage.
    """

    labels: list[Label]
    decoded: Floats
    unbiased: Floats
    low: Floats
    high: Floats
    decimals: int

    @classmethod
    def from_estimate(cls, estimate: "Estimate", count: int) -> "TopAnswers":
        """Return the ``count`` most frequent answers of an estimate, or all if there are fewer."""
        symbols = most_frequent(estimate, count)
        low, high = estimate.interval(0.95)
        return cls(
            labels=[estimate.labels[x] for x in symbols.tolist()],
            decoded=estimate.frequencies[symbols],
            unbiased=estimate.unbiased[symbols],
            low=low[symbols],
            high=high[symbols],
            decimals=decimal_places(estimate.standard_errors[symbols]),
        )

    @property
    def points_to_draw(self) -> Floats:
        """The unbiased estimates, each clipped to its interval, for drawing."""
        return np.clip(self.unbiased, self.low, self.high)

    def format_share(self, share: float) -> str:
        """Return a share as a percentage with ``decimals`` decimal places."""
        return format_share(float(share), self.decimals)


def most_frequent(estimate: "Estimate", count: int) -> NDArray[np.intp]:
    """Return the ``count`` symbols with the largest decoded frequencies, largest first.

    Ties are broken by the unbiased estimate, then by the order of the domain.
    """
    order = np.lexsort((-estimate.unbiased, -estimate.frequencies))
    return order[:count]


def in_reading_order(
    estimate: "Estimate", domain: Domain, symbols: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return numbers and ranges of numbers in the order of the domain; keep all other symbols."""
    in_domain_order = np.sort(symbols)
    labels = [estimate.labels[x] for x in in_domain_order.tolist()]
    is_map = isinstance(domain, GridDomain | H3Domain)
    has_order = not is_map and are_in_numeric_order(labels, ignore=(domain.other,))
    return in_domain_order if has_order else symbols


def typical_error(standard_errors: Floats) -> float:
    """Return the median of the known, non-zero standard errors, or 0 without any."""
    positive = standard_errors[np.isfinite(standard_errors) & (standard_errors > 0)]
    return float(np.median(positive)) if positive.size else 0.0


def decimal_places(standard_errors: Floats) -> int:
    """Return how many decimals a percentage needs for one significant digit of a typical error.

    The result is between 1 and 6. It is 2 if no error is known.
    """
    error = typical_error(standard_errors)
    if error == 0:
        return 2
    exponent = math.floor(math.log10(100 * error))
    return min(max(-exponent, 1), 6)
