"""Rankings: which symbols are certainly, and which possibly, among the m most frequent.

Given intervals that hold together, x is certainly among the top m if at most m − 1 others can be
above it, and possibly if at most m − 1 others must be. While all intervals hold, both are true.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.domains import Label
from sfumato.foundation.arrays import Floats

__all__ = ["Top"]


@dataclass(frozen=True)
class Top:
    """The labels that are certainly among the ``size`` most frequent, and those that possibly are.

    ``possibly`` includes ``certainly``. Both are sorted by decreasing unbiased estimate. With
    probability at least ``level`` every label in ``certainly`` belongs there, and every label that
    belongs there is in ``possibly``.
    """

    size: int
    certainly: tuple[Label, ...]
    possibly: tuple[Label, ...]
    level: float

    @classmethod
    def from_intervals(
        cls,
        labels: Sequence[Label],
        unbiased: Floats,
        low: Floats,
        high: Floats,
        size: int,
        level: float,
    ) -> "Top":
        """Rank symbols by simultaneous intervals, in one sort.

        >>> low = np.array([0.5, 0.2, 0.1])
        >>> high = np.array([0.6, 0.4, 0.3])
        >>> Top.from_intervals("abc", low, low, high, 1, 0.95)
        Top(size=1, certainly=('a',), possibly=('a',), level=0.95)
        >>> Top.from_intervals("abc", low, low, high, 2, 0.95).certainly
        ('a',)
        """
        k = low.size
        itself = high > low
        may_exceed = k - np.searchsorted(np.sort(high), low, side="right") - itself
        must_exceed = k - np.searchsorted(np.sort(low), high, side="right")
        order = np.argsort(-unbiased, kind="stable")
        certainly = _select(labels, order[may_exceed[order] < size])
        possibly = _select(labels, order[must_exceed[order] < size])
        return cls(size, certainly, possibly, level)


def _select(labels: Sequence[Label], symbols: NDArray[np.intp]) -> tuple[Label, ...]:
    return tuple(labels[x] for x in symbols.tolist())
