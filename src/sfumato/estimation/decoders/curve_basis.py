"""Smooth curves over a line or a circle: the directions in which log intensities may move.

A curve is ``p = softmax(f)``. f is a cubic spline with few coefficients over position, or over the
logarithm of the position, for crowds that fall off from the first cell. Its directions are the
slope and the second differences of the coefficients, so that independent normal coefficients make
f″ white noise. A curve sees at most 1,024 cells: neighbours are merged where there are more.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["CurveBasis", "MergedShares", "make_closed_basis", "make_open_basis"]

_MAX_CELLS = 1_024


@dataclass(frozen=True, eq=False)
class MergedShares:
    """Estimated shares of cells, with neighbours merged.

    ``counts``: how many cells were merged into each.
    ``u``: the precision-weighted mean of their shares, of the total of all cells.
    ``precision``: the precision of ``u`` as the share of each of the cells.
    ``centres``: the mean position of the cells, from 0 to 1.
    ``constant``: the log density of the shares around their means ``u``.
    """

    counts: Floats
    u: Floats
    precision: Floats
    centres: Floats
    constant: float

    @classmethod
    def merge(cls, y: Floats, s: Floats, position: Floats) -> "MergedShares":
        """Merge cells whose positions fall into the same of 1,024 intervals.

        ``y``, ``s``: shares in units of the mean share. ``position``: ascending, from 0 to 1.
        """
        k = y.size
        starts: Symbols = np.arange(k)
        if k > _MAX_CELLS:
            intervals = np.minimum((position * _MAX_CELLS).astype(np.int64), _MAX_CELLS - 1)
            starts = np.unique(intervals, return_index=True)[1]
        counts = np.diff(np.append(starts, k)).astype(np.float64)
        w = (k / s) ** 2
        precision = np.add.reduceat(w, starts)
        u = np.add.reduceat(w * y / k, starts) / precision
        deviations = y / k - np.repeat(u, counts.astype(np.int64))
        constant = -float(np.log(s * np.sqrt(2 * np.pi)).sum() + 0.5 * (w * deviations**2).sum())
        centres = np.add.reduceat(position, starts) / counts
        return cls(counts, u, precision, centres, constant)


@dataclass(frozen=True, eq=False)
class CurveBasis:
    """The directions of log intensity on merged cells.

    ``design``: a row for each merged cell, a column for each direction.
    ``unit_scales``: the standard deviation of each coefficient if the curve's scale τ is 1.
    """

    title: str
    shares: MergedShares
    design: Floats
    unit_scales: Floats

    def intensities(self, f: Floats) -> Floats:
        """Return the share of a single cell, for log intensities f of the merged cells.

        The last axis of f is that of the cells.
        """
        p = np.exp(f - f.max(axis=-1, keepdims=True))
        p /= (p @ self.shares.counts)[..., None]
        return p

    def log_density(self, p: Floats) -> Floats | float:
        """Return the log density of the shares, up to ``shares.constant``."""
        residuals = self.shares.u - p
        return -0.5 * (residuals**2 @ self.shares.precision)

    @cached_property
    def size(self) -> int:
        """The number of directions."""
        return int(self.design.shape[1])


def make_open_basis(title: str, shares: MergedShares, coefficient_count: int) -> CurveBasis:
    """Return splines on a line: a slope, and the second differences."""
    from scipy.interpolate import BSpline

    inner = np.linspace(0, 1, coefficient_count - 2)
    knots = np.concatenate([[0.0] * 3, inner, [1.0] * 3])
    B = BSpline.design_matrix(np.clip(shares.centres, 0, 1), knots, 3).toarray()
    slope = np.linspace(-0.5, 0.5, coefficient_count)
    bends = np.linalg.pinv(np.diff(np.eye(coefficient_count), 2, axis=0))
    bends -= bends.mean(axis=0)
    bends -= np.outer(slope, slope @ bends / (slope @ slope))
    unit_scales = np.full(coefficient_count - 1, (coefficient_count - 1) ** -1.5)
    unit_scales[0] = 1.0
    return CurveBasis(title, shares, B @ np.column_stack([slope, bends]), unit_scales)


def make_closed_basis(title: str, shares: MergedShares, coefficient_count: int) -> CurveBasis:
    """Return periodic splines on a circle, with the second differences around it."""
    knots = np.arange(coefficient_count)
    distance = np.abs(shares.centres[:, None] * coefficient_count - knots)
    distance = np.minimum(distance, coefficient_count - distance)
    near = 2 / 3 - distance**2 + distance**3 / 2
    far = np.maximum(2 - distance, 0) ** 3 / 6
    B = np.where(distance < 1, near, far)
    identity = np.eye(coefficient_count)
    differences = np.roll(identity, 1, axis=0) + np.roll(identity, -1, axis=0) - 2 * identity
    bends = np.linalg.pinv(differences)
    unit_scales = np.full(coefficient_count, coefficient_count**-1.5)
    return CurveBasis(title, shares, B @ bends, unit_scales)
