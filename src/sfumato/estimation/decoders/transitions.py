"""How intensities change from a node of a tree to its children.

A child's intensity is its parent's times a random factor of mean 1. The logarithm of the factor is
about Laplace-distributed with a spread b, and the child is empty with a probability that grows as
its parent gets small. ``T[i, j]`` is the probability that the child is in state j if its parent is
in state i; every row has the mean of its parent's state.
"""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from sfumato.estimation.decoders.intensities import Floats32, IntensityScale
from sfumato.foundation.arrays import Floats

__all__ = ["PeaksAboveDust", "Roughness", "Transitions", "TreeShape"]

_MAX_SPREAD = 3.0
_SPREAD_STEP = 0.05  # spreads are rounded to a geometric grid with this step in log b
_EDGE_SHARE = 0.01  # this share of the factors has spread 1 at every level: edges
_EDGE_SPREAD = 1.0
_EMPTY_INTERCEPT = -3.5  # logit of the probability of an empty child: intercept …
_EMPTY_PER_LOG_SPREAD = 2.0  # … plus this times log(b/0.6) …
_EMPTY_PER_LOG_PARENT = 1.2  # … minus this times the log of the parent's intensity
_PEAK_WIDTH = 0.8  # in log intensity
_EMPTY_SHARE_OF_DUST = 0.2
_SPREAD_ABOVE_PEAKS = 0.15
_BISECTION_STEPS = 24
_FLOOR = 1e-15


class TreeShape(Protocol):
    """How rough a tree is at each level. Shapes are the parameters that evidence decides on."""

    def matrices(self, transitions: "Transitions", level_count: int) -> list[Floats32]:
        """Return the transitions of each level, from the cells to the root."""
        ...

    def fits(self, level_count: int) -> bool:
        """Whether the shape differs from others in a tree with this number of levels."""
        ...


@dataclass(frozen=True)
class Roughness:
    """Spread ``b_l = spread · exp(slope · l)`` at l levels above the cells.

    A negative slope is a map that is rougher close up than from afar. With ``smooth_levels``, the
    spread is ``spread · exp(−slope · (smooth_levels − l))`` below that level: smooth close up.
    """

    spread: float
    slope: float = 0.0
    smooth_levels: int = 0

    def at(self, level: int) -> float:
        """Return the spread at a level."""
        if self.smooth_levels:
            return float(self.spread * np.exp(-self.slope * max(self.smooth_levels - level, 0)))
        return float(self.spread * np.exp(self.slope * level))

    def matrices(self, transitions: "Transitions", level_count: int) -> list[Floats32]:
        """Return the transitions of each level, from the cells to the root."""
        return [transitions.with_edges(self.at(level)) for level in range(level_count)]

    def fits(self, level_count: int) -> bool:
        """Whether the tree is higher than the levels that are smooth."""
        return self.smooth_levels < level_count


@dataclass(frozen=True)
class PeaksAboveDust:
    """A share of the cells is dust: at ``dust`` times its parent, or empty. The others are peaks.

    Above the cells, the spread is ``spread``.
    """

    dust_share: float
    dust: float
    spread: float = _SPREAD_ABOVE_PEAKS

    def matrices(self, transitions: "Transitions", level_count: int) -> list[Floats32]:
        """Return the transitions of each level, from the cells to the root."""
        above = transitions.with_edges(self.spread)
        return [transitions.peaks(self.dust_share, self.dust), *[above] * (level_count - 1)]

    def fits(self, level_count: int) -> bool:
        """Whether the tree has a level."""
        return level_count > 0


@dataclass(frozen=True, eq=False)
class Transitions:
    """The transition matrices on a scale of intensities; each is computed once."""

    scale: IntensityScale
    _matrices: dict[object, Floats32] = field(default_factory=dict, repr=False)

    @staticmethod
    @lru_cache(maxsize=16)
    def on(scale: IntensityScale) -> "Transitions":
        """Return the transitions on a scale. Those of recent scales are kept."""
        return Transitions(scale)

    def with_edges(self, spread: float) -> Floats32:
        """Return the transitions with a spread, and a hundredth of edges."""
        key = round(float(np.log(np.clip(spread, 1e-3, _MAX_SPREAD))) / _SPREAD_STEP)
        if key not in self._matrices:
            b = float(np.exp(_SPREAD_STEP * key))
            T = (1 - _EDGE_SHARE) * self._laplace(b) + _EDGE_SHARE * self._edges
            self._matrices[key] = T.astype(np.float32)
        return self._matrices[key]

    def peaks(self, dust_share: float, dust: float) -> Floats32:
        """Return the transitions from parents to peaks and dust."""
        key = ("peaks", dust_share, dust)
        if key not in self._matrices:
            self._matrices[key] = self._peaks(dust_share, dust).astype(np.float32)
        return self._matrices[key]

    @cached_property
    def _edges(self) -> Floats:
        return self._laplace(_EDGE_SPREAD)

    def _laplace(self, b: float) -> Floats:
        v = self.scale.values
        distances = np.abs(np.subtract.outer(np.arange(v.size - 1), np.arange(v.size - 1)))
        # Geometric steps q^|i − j| with the variance of Laplace(b).
        r = (b / self.scale.step) ** 2
        q = (2 * r + 1 - np.sqrt(4 * r + 1)) / (2 * r)
        K = q ** distances.astype(np.float64)
        logit = _EMPTY_INTERCEPT + _EMPTY_PER_LOG_SPREAD * np.log(b / 0.6)
        empty = 1 / (1 + np.exp(-(logit - _EMPTY_PER_LOG_PARENT * np.log(v[1:]))))
        T = np.zeros((v.size, v.size))
        T[1:, 1:] = K / K.sum(axis=1, keepdims=True) * (1 - empty)[:, None]
        T[1:, 0] = empty
        return self._with_means_of_parents(T)

    def _peaks(self, dust_share: float, dust: float) -> Floats:
        v = self.scale.values[1:]

        def around(centres: Floats) -> Floats:
            centres = np.clip(centres, v[0], 0.98 * v[-1])
            K = np.exp(-np.abs(np.log(v) - np.log(centres)[:, None]) / _PEAK_WIDTH)
            return np.asarray(K / K.sum(axis=1, keepdims=True), dtype=np.float64)

        T = np.zeros((v.size + 1, v.size + 1))
        T[1:, 1:] = (1 - dust_share) * around(v * (1 - dust_share * dust) / (1 - dust_share))
        T[1:, 0] = dust_share
        if dust:
            T[1:, 1:] += (1 - _EMPTY_SHARE_OF_DUST) * dust_share * around(v * dust)
            T[1:, 0] = _EMPTY_SHARE_OF_DUST * dust_share
        return self._with_means_of_parents(T)

    def _with_means_of_parents(self, T: Floats) -> Floats:
        """Tilt each row so that its mean is the parent's intensity. What is empty stays empty."""
        v = self.scale.values
        T[1:] = _tilt_to_means(T[1:] + _FLOOR, v, v[1:])
        T[0, 0] = 1.0
        return T


def _tilt_to_means(P: Floats, v: Floats, means: Floats) -> Floats:
    """Multiply row i of P by ``exp(t v/(v + mean_i))`` with the t that gives it the mean."""
    f = v / (v + means[:, None]) - 0.5
    low = np.full(means.size, -40.0)
    high = np.full(means.size, 40.0)
    W = P
    for _ in range(_BISECTION_STEPS):
        t = (low + high) / 2
        W = P * np.exp(t[:, None] * f)
        is_short = W @ v < means * W.sum(axis=1)
        low = np.where(is_short, t, low)
        high = np.where(is_short, high, t)
    return W / W.sum(axis=1, keepdims=True)
