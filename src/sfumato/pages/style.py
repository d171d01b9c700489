"""One quiet style for every picture: its colours, and which symbols and digits it shows."""

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.estimation import Estimate

__all__ = [
    "BACKGROUND",
    "BAR",
    "DARK",
    "FAINT",
    "INK",
    "MAP_SCALE",
    "MAX_BARS",
    "PALE",
    "PROMISE_SCALE",
    "WHISKER",
    "decimal_places",
    "most_frequent",
]

MAX_BARS = 30
"""A bar chart shows at most this many symbols."""

INK = "#2b2b2b"
FAINT = "#77736c"
PALE = "#e4e1dc"
BACKGROUND = "#f3f1ed"
BAR = "#7ba0bc"
WHISKER = "#a8432c"
PROMISE_SCALE = ("#b04a33", "#d08a74", "#f6e7e1")
MAP_SCALE = ("#e3ebf1", "#8fb3cd", "#3d6b8c", "#12293d")

DARK = {
    INK: "#e8e4dd",
    FAINT: "#a19c93",
    PALE: "#3a3833",
    BACKGROUND: "#2a2824",
    BAR: "#5b87a8",
    WHISKER: "#f0a084",
    **dict(zip(PROMISE_SCALE, ("#cf6f54", "#94503e", "#3d2c27"), strict=True)),
    **dict(zip(MAP_SCALE, ("#24303a", "#3d6b8c", "#8fbbdb", "#fdf3d8"), strict=True)),
}
"""Maps each colour to the one that replaces it on a dark page."""


def most_frequent(estimate: Estimate, count: int) -> NDArray[np.intp]:
    """Return the symbols with the largest decoded frequencies, largest first.

    Ties go by the unbiased estimate, then by the order of the domain.
    """
    order = np.lexsort((-estimate.unbiased, -estimate.frequencies))
    return order[:count]


def decimal_places(estimate: Estimate) -> int:
    """Return how many decimals a percentage deserves: two digits of a typical standard error."""
    errors = estimate.standard_errors
    known = errors[np.isfinite(errors) & (errors > 0)]
    if known.size == 0:
        return 2
    exponent = math.floor(math.log10(100 * float(np.median(known))))
    return min(max(1 - exponent, 1), 6)
