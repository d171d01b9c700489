"""Intensities: shares in units of the mean share, on a small scale of atoms and bins.

Write θ for the share of a cell divided by the mean share of all cells, and y for its unbiased
estimate, ``y ~ Normal(θ, s²)``. The distribution of a θ is stored as the probabilities of an
atom at 0, perhaps of another, and of bins whose edges form a geometric sequence. Within a bin, the
prior is even and the posterior is a piece of the normal density around y. So a bin may be much
wider than s: nothing is rounded to it.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["BinnedPosterior", "Floats32", "IntensityScale", "Likelihoods"]

Floats32 = NDArray[np.float32]

_STATE_COUNT = 40  # the atom and 39 bins; 56 bins are better by at most 0.3 %
_LOWEST_EDGE = 0.05
_TOP_STEP = 0.1  # in log intensity
_OUTLIER_LIKELIHOOD = 1e-8  # added to all likelihoods, for shares far from all bins
_TINY = 1e-290
_CHUNK_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class IntensityScale:
    """States in ascending order: ``atoms``, and the bins between successive ``edges``."""

    edges: Floats
    atoms: tuple[float, ...] = (0.0,)

    @classmethod
    def spanning(cls, y: Floats, s: Floats, cell_count: int) -> "IntensityScale":
        """Return a scale for these shares. No intensity is larger than the number of cells."""
        top = min(max(1.05 * y.max(), 4 * float(np.median(s))), 1.05 * cell_count)
        top = max(top, 40 * _LOWEST_EDGE)
        # There are few scales, so that their transitions can be kept between estimates.
        return _scale_up_to(math.ceil(math.log(top / _LOWEST_EDGE) / _TOP_STEP))

    @cached_property
    def _bounds(self) -> tuple[Floats, Floats]:
        lows = np.concatenate([self.atoms, self.edges[:-1]])
        highs = np.concatenate([self.atoms, self.edges[1:]])
        order = np.lexsort((highs, lows))
        return lows[order], highs[order]

    @property
    def lows(self) -> Floats:
        """The lower end of each state."""
        return self._bounds[0]

    @property
    def highs(self) -> Floats:
        """The upper end of each state; the same as the lower end for an atom."""
        return self._bounds[1]

    @cached_property
    def values(self) -> Floats:
        """The intensity of each atom, and the middle of each bin."""
        return (self.lows + self.highs) / 2

    @property
    def step(self) -> float:
        """The width of a bin in log intensity."""
        return float(np.log(self.edges[1] / self.edges[0]))

    def distances_in_gap(self, y: Floats) -> Floats:
        """Return how far each y between the atom at 0 and the lowest bin is from the nearer one.

        For any other y, return 0.
        """
        distances: Floats = np.maximum(np.minimum(y, self.edges[0] - y), 0.0)
        return distances

    def at(self, intensity: float) -> Floats32:
        """Return the distribution on the two nearest states whose mean is ``intensity``."""
        v = self.values
        upper = int(np.clip(np.searchsorted(v, intensity), 1, v.size - 1))
        part = np.clip((intensity - v[upper - 1]) / (v[upper] - v[upper - 1]), 0.0, 1.0)
        distribution = np.zeros(v.size, dtype=np.float32)
        distribution[upper - 1] = 1 - part
        distribution[upper] = part
        return distribution


@lru_cache(maxsize=64)
def _scale_up_to(steps: int) -> IntensityScale:
    top = _LOWEST_EDGE * math.exp(steps * _TOP_STEP)
    return IntensityScale(np.geomspace(_LOWEST_EDGE, top, _STATE_COUNT))


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """The density of each y, given that its θ is in a state.

    ``rows`` has a row for each cell, divided by the row's largest entry. ``log_scale`` is the sum
    of the logarithms of these.
    """

    rows: Floats32
    log_scale: float

    @classmethod
    def of_shares(cls, y: Floats, s: Floats, scale: IntensityScale) -> "Likelihoods":
        """Compute the likelihoods of noisy shares y with standard errors s."""
        rows = np.empty((y.size, scale.values.size), dtype=np.float32)
        log_scale = 0.0
        for start in range(0, y.size, _CHUNK_ROWS):
            chunk = slice(start, start + _CHUNK_ROWS)
            L = _densities(y[chunk], s[chunk], scale)
            largest = L.max(axis=1, keepdims=True)
            rows[chunk] = L / largest + _OUTLIER_LIKELIHOOD
            log_scale += float(np.log(largest).sum())
        return cls(rows, log_scale)


def _densities(y: Floats, s: Floats, scale: IntensityScale) -> Floats:
    """Return the density of y at the scale's atoms, and its mean over each bin."""
    from scipy.special import ndtr

    is_bin = scale.highs > scale.lows
    z = (scale.edges - y[:, None]) / s[:, None]
    low = z[:, :-1]
    high = z[:, 1:]
    is_above = low > 0  # use the normal's smaller tail, whose differences are exact
    masses = ndtr(np.where(is_above, -low, high)) - ndtr(np.where(is_above, -high, low))
    L = np.empty((y.size, is_bin.size))
    L[:, is_bin] = masses / np.diff(scale.edges)
    atoms = scale.lows[~is_bin]
    deviations = (y[:, None] - atoms) / s[:, None]
    L[:, ~is_bin] = np.exp(-0.5 * deviations**2) / (s[:, None] * np.sqrt(2 * np.pi))
    # A share further than 36 errors from all states is given to the nearest.
    lost = np.flatnonzero(~(L.max(axis=1) > _TINY))
    nearest = np.abs(y[lost, None] - scale.values).argmin(axis=1)
    L[lost] = 0.0
    L[lost, nearest] = _TINY
    return L


@dataclass(frozen=True, eq=False)
class BinnedPosterior:
    """The distribution of every θ, given all reports: a row of probabilities for each cell.

    Intensities are relative to ``root``: θ is the root's intensity times that of a state. ``y`` and
    ``s`` are relative to it, too.
    """

    scale: IntensityScale
    cumulative: Floats32
    y: Floats
    s: Floats
    root: Floats

    @classmethod
    def from_prior(
        cls,
        scale: IntensityScale,
        prior: Floats32,
        rows: Floats32,
        y: Floats,
        s: Floats,
        root: Floats,
    ) -> "BinnedPosterior":
        """Combine each cell's prior with its likelihoods, and overwrite the prior."""
        prior *= rows
        np.cumsum(prior, axis=1, out=prior)
        prior /= prior[:, -1:]
        return cls(scale, prior, y, s, root)

    def quantiles(self, levels: Floats) -> Floats:
        """Return the quantile of each θ, at the level given for its cell."""
        C = self.cumulative
        state = np.zeros(levels.size, dtype=np.int64)
        for start in range(0, levels.size, _CHUNK_ROWS):
            chunk = slice(start, start + _CHUNK_ROWS)
            state[chunk] = (C[chunk] < levels[chunk, None]).sum(axis=1)
        np.minimum(state, C.shape[1] - 1, out=state)
        theta = self.scale.lows[state]
        cells = np.flatnonzero(self.scale.highs[state] > theta)
        j = state[cells]
        below = C[cells, j - 1].astype(np.float64)  # an atom comes first, so j > 0
        part = (levels[cells] - below) / np.maximum(C[cells, j] - below, 1e-300)
        theta[cells] = self._within_bin(cells, j, np.clip(part, 0.0, 1.0))
        return self.root * theta

    def _within_bin(self, cells: Symbols, j: Symbols, part: Floats) -> Floats:
        """Return the quantile at level ``part`` of the normal density between a bin's edges."""
        from scipy.special import ndtr, ndtri

        low = self.scale.lows[j]
        high = self.scale.highs[j]
        y = self.y[cells]
        s = self.s[cells]
        # Mirror bins above y, so that the normal's smaller tail is used.
        is_above = low > y
        sign = np.where(is_above, -1.0, 1.0)
        near = sign * np.where(is_above, high, low)
        far = sign * np.where(is_above, low, high)
        from_level = np.where(is_above, 1 - part, part)
        a = ndtr((near - sign * y) / s)
        b = ndtr((far - sign * y) / s)
        z = ndtri(np.clip(a + from_level * (b - a), 1e-300, 1 - 1e-16))
        theta = y + sign * s * z
        is_even = (high - low < 1e-3 * s) | (b - a < 1e-200)
        return np.clip(np.where(is_even, low + part * (high - low), theta), low, high)
