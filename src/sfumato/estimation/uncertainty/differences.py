"""Differences between two estimates: what changed, and where the reports cannot tell.

The difference of two shares has the interval of Donner and Zou (2012), made from the interval of
each:

    low  = p̂₂ − p̂₁ − √( (p̂₂ − low₂)² + (high₁ − p̂₁)² )
    high = p̂₂ − p̂₁ + √( (high₂ − p̂₂)² + (p̂₁ − low₁)² )

Each interval is at ``1 − (1 − level)/k``, so that all k hold together with probability ``level``:
with at least that probability, nothing is called changed that is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.domains import Label
from sfumato.foundation.arrays import Floats

__all__ = ["CANNOT_TELL", "CHANGED_DOWN", "CHANGED_UP", "Difference"]

CHANGED_UP = "changed up"
CHANGED_DOWN = "changed down"
CANNOT_TELL = "cannot tell"

Bounds = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False, repr=False)
class Difference:
    """The second estimate less the first, symbol by symbol.

    The intervals from ``low`` to ``high`` hold together with probability ``level``.
    """

    labels: Sequence[Label]
    differences: Floats
    low: Floats
    high: Floats
    level: float

    @classmethod
    def from_intervals(
        cls,
        labels: Sequence[Label],
        before: Floats,
        before_bounds: Bounds,
        after: Floats,
        after_bounds: Bounds,
        level: float,
    ) -> "Difference":
        """Compare two independent estimates by their simultaneous intervals, not cut to [0, 1]."""
        before_low, before_high = before_bounds
        after_low, after_high = after_bounds
        change = after - before
        down = np.hypot(after - after_low, before_high - before)
        up = np.hypot(after_high - after, before - before_low)
        return cls(labels, change, change - down, change + up, level)

    @property
    def verdicts(self) -> NDArray[np.str_]:
        """For each symbol ``changed up``, ``changed down`` or ``cannot tell``."""
        not_up = np.where(self.high < 0, CHANGED_DOWN, CANNOT_TELL)
        return np.where(self.low > 0, CHANGED_UP, not_up)

    @property
    def changed(self) -> list[Label]:
        """The labels that changed, the largest change first."""
        has_changed = (self.low > 0) | (self.high < 0)
        order = np.argsort(-np.abs(self.differences), kind="stable")
        return [self.labels[x] for x in order[has_changed[order]].tolist()]

    def __repr__(self) -> str:
        up = int((self.low > 0).sum())
        down = int((self.high < 0).sum())
        rest = len(self.labels) - up - down
        return (
            f"Difference({up} changed up, {down} changed down, {rest} cannot tell; "
            f"all at {self.level:.4g} together)"
        )
