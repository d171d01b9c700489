"""The cone that columns of a channel live in.

A channel keeps a matrix E when each of its columns, read as a function of the symbol, lies in

    C_E = {r ≥ 0 : r_x ≤ e^{E[x, x2]} r_x2 for all x, x2}

Sums of such columns are such columns, so a mechanism is a way to write the column of ones as a sum of members of the
cone, and the best ones use its extreme rays alone. For a closed E the largest member below any column, and the least
above it, have a formula each.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.foundation.arrays import Floats

__all__ = ["RayCone"]


@dataclass(frozen=True)
class RayCone:
    """The cone of a closed matrix, with ``crowd`` p, the distribution that columns are normalised by: ``p·r = 1``.

    >>> cone = RayCone(np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([0.5, 0.5]))
    >>> cone.lowered(np.array([[9.0, 1.0]])).round(3)
    array([[2.718, 1.   ]])
    """

    E: Floats
    crowd: Floats

    @property
    def size(self) -> int:
        """The number of symbols, k."""
        return len(self.E)

    @cached_property
    def shrink(self) -> Floats:
        """``e^{−E}``: 0 where nothing is promised."""
        return np.exp(-self.E)

    @cached_property
    def growth(self) -> Floats:
        """``e^E``: inf where nothing is promised."""
        return np.exp(self.E)

    def lowered(self, columns: Floats) -> Floats:
        """The largest member of the cone below each column: ``r_x = min_x2 e^{E[x, x2]} c_x2``."""
        lowest = columns.copy()
        for x2 in range(self.size):
            finite = np.isfinite(self.growth[:, x2])
            lowest[:, finite] = np.minimum(
                lowest[:, finite], self.growth[finite, x2] * columns[:, x2, None]
            )
        return lowest

    def raised(self, columns: Floats) -> Floats:
        """The least member of the cone above each column: ``r_x2 = max_x c_x e^{−E[x, x2]}``."""
        highest = columns.copy()
        for x in range(self.size):
            np.maximum(highest, columns[:, x, None] * self.shrink[x], out=highest)
        return highest

    def normalised(self, columns: Floats) -> Floats:
        """Each column over its mean in the crowd."""
        return columns / (columns @ self.crowd)[:, None]

    def simplest_rays(self) -> Floats:
        """The column of ones; and for every symbol x the members of the cone that speak for it, and against it."""
        against = self.growth.T[np.isfinite(self.growth).all(axis=0)]
        return self.normalised(
            np.vstack([np.ones((1, self.size)), self.shrink, against, self._rests()])
        )

    def _rests(self) -> Floats:
        """What is left of the column of ones when half of what can be is taken away for a symbol.

        So that every symbol can be spoken for in some channel made of the simplest rays.
        """
        off = ~np.eye(self.size, dtype=np.bool_)
        rests = []
        for s in self.shrink:
            # 1 − c s_x ≤ e^E (1 − c s_x2), divided by e^E, for all x, x2
            most, cost = (1 - self.shrink)[off], (s[None, :] - self.shrink * s[:, None])[off]
            rests.append(1 - s * (most[cost > 0] / cost[cost > 0]).min(initial=1.0) / 2)
        return np.array(rests)
