"""Differences between two estimates: what changed, and what one cannot tell.

The difference of two shares has the interval of Donner and Zou (2012), made from the interval of each:

    low  = p̂₂ − p̂₁ − √( (p̂₂ − low₂)² + (high₁ − p̂₁)² ),      high  = p̂₂ − p̂₁ + √( (high₂ − p̂₂)² + (p̂₁ − low₁)² )

Each interval is at ``1 − (1 − level)/k``, so that all k hold together with probability ``level``: with at least that
probability, nothing is called changed that is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.domains import Label
from sfumato.foundation.arrays import Floats

__all__ = ["CANNOT_TELL", "CHANGED_DOWN", "CHANGED_UP", "Difference", "difference_of"]

CHANGED_UP, CHANGED_DOWN, CANNOT_TELL = "changed up", "changed down", "cannot tell"

Bounds = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False, repr=False)
class Difference:
    """What the second estimate is above the first, symbol by symbol; all intervals together hold at ``level``."""

    labels: Sequence[Label]
    differences: Floats
    low: Floats
    high: Floats
    level: float

    @property
    def verdicts(self) -> NDArray[np.str_]:
        """For each symbol ``changed up``, ``changed down`` or ``cannot tell``."""
        return np.where(
            self.low > 0, CHANGED_UP, np.where(self.high < 0, CHANGED_DOWN, CANNOT_TELL)
        )

    @property
    def changed(self) -> list[Label]:
        """The labels that changed, the largest change first."""
        order = np.argsort(-np.abs(self.differences), kind="stable")
        return [self.labels[int(x)] for x in order if self.low[x] > 0 or self.high[x] < 0]

    def __repr__(self) -> str:
        up, down = int((self.low > 0).sum()), int((self.high < 0).sum())
        rest = len(self.labels) - up - down
        return f"Difference({up} changed up, {down} changed down, {rest} cannot tell; all at {self.level:.4g} together)"


def difference_of(
    labels: Sequence[Label],
    before: Floats,
    before_bounds: Bounds,
    after: Floats,
    after_bounds: Bounds,
    level: float,
) -> Difference:
    """From two independent estimates and their simultaneous intervals, not cut to [0, 1]."""
    change = after - before
    down = np.hypot(after - after_bounds[0], before_bounds[1] - before)
    up = np.hypot(after_bounds[1] - after, before - before_bounds[0])
    return Difference(labels, change, change - down, change + up, level)
