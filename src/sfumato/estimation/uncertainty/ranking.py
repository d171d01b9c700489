"""Rankings that keep their word: which symbols are certainly, and which possibly, among the m most frequent.

From intervals that hold together: x is certainly among the top m if at most m − 1 others can be above it, and possibly
if at most m − 1 others must be. While all intervals hold, both statements are true.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.domains import Label
from sfumato.foundation.arrays import Floats

__all__ = ["Top", "top_of"]


@dataclass(frozen=True)
class Top:
    """The labels that are certainly among the ``size`` most frequent, and all that possibly are (the former too).

    Both by decreasing unbiased estimate. With probability at least ``level`` every label in ``certainly`` belongs
    there, and every label that belongs there is in ``possibly``.
    """

    size: int
    certainly: tuple[Label, ...]
    possibly: tuple[Label, ...]
    level: float


def top_of(
    labels: Sequence[Label], unbiased: Floats, low: Floats, high: Floats, size: int, level: float
) -> Top:
    """From simultaneous intervals, in one sort.

    >>> low, high = np.array([0.5, 0.2, 0.1]), np.array([0.6, 0.4, 0.3])
    >>> top_of("abc", low, low, high, 1, 0.95)
    Top(size=1, certainly=('a',), possibly=('a',), level=0.95)
    >>> top_of("abc", low, low, high, 2, 0.95).certainly
    ('a',)
    """
    may_exceed = (
        low.size - np.searchsorted(np.sort(high), low, side="right") - (high > low)
    )  # not itself
    must_exceed = low.size - np.searchsorted(np.sort(low), high, side="right")
    order = np.argsort(-unbiased, kind="stable")
    certainly, possibly = (
        tuple(labels[int(x)] for x in order[others[order] < size])
        for others in (may_exceed, must_exceed)
    )
    return Top(size, certainly, possibly, level)
