"""Smooth curves over a line or a circle, and the stiff ones among them as roots of trees.

There is a curve for each scale τ of its bends, from flat to wild, for position and for its
logarithm, with few and with many coefficients. The posterior of a share is the mixture of the
draws of all curves, by their evidence.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.domains.layout import Circle, Layout, Line
from sfumato.estimation.decoders.cell_shares import CellShares, ModelResult
from sfumato.estimation.decoders.curve_basis import (
    CurveBasis,
    MergedShares,
    make_closed_basis,
    make_open_basis,
)
from sfumato.estimation.decoders.curve_posterior import CurvePosterior
from sfumato.estimation.decoders.seeded_variates import SeededVariates
from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["CurveModel", "RootCurve", "has_curves"]

_BELIEF_OF_TAU = {0.1: 1.0, 1.0: 1.0, 3.2: 1.0, 10.0: 1.0, 31.6: 0.35, 100.0: 0.1, 316.0: 0.04}
"""The scales τ and the belief in each, relative to the first. Wild curves are rarer, and if reports
say little, a wild curve by chance does more harm than a stiff one."""

_FEW_COEFFICIENTS = 12
_MANY_COEFFICIENTS = 40
_STIFF_TAUS = (3.2, 10.0, 31.6)
_DRAW_COUNT = 160
_MAX_KNOTS = 4_096
_MIN_ROOT = 1e-3


def has_curves(layout: Layout) -> bool:
    """Whether curves can be drawn over the cells."""
    return isinstance(layout, Line | Circle)


@dataclass(frozen=True, eq=False)
class RootCurve:
    """A stiff curve below which trees may hang: its mean is 1. ``cost``: its log evidence."""

    title: str
    intensities: Floats
    cost: float


class CurveModel:
    """Smooth curves: a mixture of all scales, by evidence."""

    def __init__(self, title: str, shares: CellShares, *, belief: float) -> None:
        self.title = title
        self._shares = shares
        self._variates = SeededVariates("curves")
        self._curves = list(self._fit_curves())
        beliefs = np.array([_BELIEF_OF_TAU[curve.tau] for curve in self._curves])
        evidence = np.array([curve.log_evidence for curve in self._curves])
        self._log_weights = evidence + np.log(belief * beliefs / beliefs.sum())
        self.log_weight = float(np.logaddexp.reduce(self._log_weights))

    def decode(self) -> ModelResult:
        """Return the mixture. Curves are mixed by their evidence alone: there is no gain."""
        return ModelResult(_DrawnPosterior.mix(self._sample_draws(), self._shares))

    def stiff_curves(self) -> Iterator[RootCurve]:
        """Yield the stiff curves with few coefficients."""
        for curve in self._curves:
            if curve.tau in _STIFF_TAUS and curve.basis.size <= _FEW_COEFFICIENTS:
                mean = curve.mean()[None, :]
                theta = _spread_over_cells(mean, curve.basis.shares, self._shares.size)[0]
                theta = np.maximum(theta * self._shares.size, _MIN_ROOT)
                yield RootCurve(curve.basis.title, theta / theta.mean(), curve.cost_of_mean())

    def _fit_curves(self) -> Iterator[CurvePosterior]:
        for basis in self._bases():
            mode = np.zeros(basis.size)
            for tau in _BELIEF_OF_TAU:
                curve = CurvePosterior.fit(basis, tau, mode, self._variates)
                yield curve
                mode = curve.mode

    def _bases(self) -> Iterator[CurveBasis]:
        y = self._shares.y
        s = self._shares.s
        k = self._shares.size
        position = (np.arange(k) + 0.5) / k
        is_closed = isinstance(self._shares.layout, Circle)
        log_position = np.log1p(np.arange(k)) / math.log(k)
        for count in (_FEW_COEFFICIENTS, _MANY_COEFFICIENTS):
            if count > _FEW_COEFFICIENTS and count > k // 2:
                continue
            size = min(count, max(5, k // 2))
            merged = MergedShares.merge(y, s, position)
            if is_closed:
                yield make_closed_basis("circle", merged, size)
            else:
                yield make_open_basis("position", merged, size)
                merged = MergedShares.merge(y, s, log_position)
                yield make_open_basis("logarithm of position", merged, size)

    def _sample_draws(self) -> list[tuple[MergedShares, Floats]]:
        """Return draws from all curves, as many from each as its weight says."""
        weights = np.exp(self._log_weights - self.log_weight)
        cumulative = np.append(0.0, np.cumsum(weights)) / weights.sum() * _DRAW_COUNT
        offset = float(self._variates.uniforms(1)[0])
        counts = np.diff(np.floor(cumulative + offset).astype(np.int64))
        draws = []
        for curve, count in zip(self._curves, counts.tolist(), strict=True):
            if count:
                p = curve.intensities()
                order = np.argsort(self._variates.uniforms(p.shape[0]))
                draws.append((curve.basis.shares, p[order[np.arange(count) % order.size]]))
        return draws


@dataclass(frozen=True, eq=False)
class _DrawnPosterior:
    """Draws of the intensities, sorted for each knot; cells lie between two knots.

    Knots are some of the cells if there are many, because curves are smooth.
    """

    draws: Floats
    lower: Symbols
    part: Floats

    @classmethod
    def mix(cls, draws: list[tuple[MergedShares, Floats]], shares: CellShares) -> "_DrawnPosterior":
        k = shares.size
        knots = _knots(k)
        rows = [_interpolate(p, merged, knots, k) for merged, p in draws]
        V = np.sort(np.concatenate(rows), axis=0).T * k
        cells = np.arange(k)
        lower = np.clip(np.searchsorted(knots, cells, side="right") - 1, 0, knots.size - 2)
        part = (cells - knots[lower]) / (knots[lower + 1] - knots[lower])
        return cls(V, lower, part)

    def quantiles(self, levels: Floats) -> Floats:
        """Return the quantile of each intensity, at the level given for its cell."""
        last = self.draws.shape[1] - 1
        place = levels * last
        draw = np.minimum(place.astype(np.int64), last - 1)
        fraction = place - draw

        def at(knot: Symbols) -> Floats:
            below = self.draws[knot, draw]
            return below + fraction * (self.draws[knot, draw + 1] - below)

        low = at(self.lower)
        return low + self.part * (at(self.lower + 1) - low)


def _knots(cell_count: int) -> Symbols:
    """Return all cells, or some thousands: at regular distances, and more of the first ones."""
    if cell_count <= _MAX_KNOTS:
        return np.arange(cell_count)
    regular = np.linspace(0, cell_count - 1, _MAX_KNOTS // 2)
    early = np.geomspace(1, cell_count, _MAX_KNOTS // 2) - 1
    return np.unique(np.concatenate([regular, early]).astype(np.int64))


def _interpolate(p: Floats, merged: MergedShares, cells: Symbols, cell_count: int) -> Floats:
    """Return the shares p of merged cells at some of the cells, row by row."""
    if merged.counts.size == cell_count:
        return p[:, cells]
    centres = np.cumsum(merged.counts) - (merged.counts + 1) / 2
    upper = np.clip(np.searchsorted(centres, cells), 1, centres.size - 1)
    part = (cells - centres[upper - 1]) / (centres[upper] - centres[upper - 1])
    part = np.clip(part, 0.0, 1.0)
    result: Floats = p[:, upper - 1] * (1 - part) + p[:, upper] * part
    return result


def _spread_over_cells(p: Floats, merged: MergedShares, cell_count: int) -> Floats:
    return _interpolate(p, merged, np.arange(cell_count), cell_count)
