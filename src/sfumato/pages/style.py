"""One quiet style for every picture: colours, labels, and which symbols are shown."""

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.domains import Label
from sfumato.estimation import Estimate

__all__ = [
    "BAR",
    "DARK",
    "FAINT",
    "FREE",
    "INK",
    "LONGEST_LABEL",
    "MAPPED",
    "MOST_BARS",
    "PALE",
    "PROMISED",
    "WHISKER",
    "most_frequent",
    "places_for",
    "short_label",
]

MOST_BARS = 30
LONGEST_LABEL = 36

INK, FAINT, PALE, FREE = "#2b2b2b", "#77736c", "#e4e1dc", "#f3f1ed"
BAR, WHISKER = "#7ba0bc", "#a8432c"
PROMISED = ("#b04a33", "#d08a74", "#f6e7e1")
MAPPED = ("#e3ebf1", "#8fb3cd", "#3d6b8c", "#12293d")

DARK = {
    INK: "#e8e4dd",
    FAINT: "#a19c93",
    PALE: "#3a3833",
    FREE: "#2a2824",
    BAR: "#5b87a8",
    WHISKER: "#f0a084",
    **dict(zip(PROMISED, ("#cf6f54", "#94503e", "#3d2c27"), strict=True)),
    **dict(zip(MAPPED, ("#24303a", "#3d6b8c", "#8fbbdb", "#fdf3d8"), strict=True)),
}
"""For each colour the one that takes its place on a dark page."""


def most_frequent(estimate: Estimate, most: int) -> NDArray[np.intp]:
    """The symbols of the largest decoded frequencies, largest first; ties by the unbiased estimate, then in order."""
    return np.lexsort((-estimate.unbiased, -estimate.frequencies))[:most]


def places_for(estimate: Estimate) -> int:
    """How many decimals a percentage deserves: two digits of a typical standard error."""
    known = estimate.standard_errors[
        np.isfinite(estimate.standard_errors) & (estimate.standard_errors > 0)
    ]
    if known.size == 0:
        return 2
    return min(max(1 - math.floor(math.log10(100 * float(np.median(known)))), 1), 6)


def short_label(label: Label, longest: int) -> str:
    """A label on one line, cut in the middle where it is too long."""
    name = " ".join(str(label).split())
    tail = longest // 3  # names that begin alike often end differently
    return (
        name
        if len(name) <= longest
        else f"{name[: longest - 1 - tail].rstrip()}…{name[-tail:].lstrip()}"
    )
