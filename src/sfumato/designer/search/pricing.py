"""Pricing: which members of the cone would improve a mixture most.

A mixture with ``M⁻¹`` and multipliers ν is the best of all if and only if no member of the cone has
a positive

    φ(r) = |W^½ M⁻¹ r|² − ν·r,   p·r = 1

φ is convex, so it is largest at an extreme ray. Except in small domains (``rays.py``), there are
too many rays to try them all, so two searches look for good ones. *Climbing* moves the entry of one
symbol after another to an end of the range that the others allow, for many starts at once. It is
fast, but soon gets stuck. *Walking* goes from a vertex to its best neighbour, which moves sets of
symbols together. The result is a lower bound on the maximum, never a proof.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.designer.search.master import Mixture
from sfumato.designer.search.polyhedron import Polyhedron, Vertices
from sfumato.designer.search.rays import CrossSection
from sfumato.foundation.arrays import Floats

__all__ = ["Price", "climb", "walk"]

_MIN_GAIN = 1e-11  # relative improvement of φ that counts
_MIN_MEAN = 1e-4  # of a column in the crowd; without it a climb could end at a column of zeros
_MAX_STEPS = 100
_CHUNK = 1 << 23  # comparisons at a time


@dataclass(frozen=True)
class Price:
    """φ of a mixture: ``roots`` is ``W^½ M⁻¹``, ``nu`` the multipliers ν."""

    roots: Floats
    nu: Floats

    @classmethod
    def from_mixture(cls, mixture: Mixture, weights: Floats) -> "Price":
        """Return φ of the best mixture for these weights."""
        return cls(np.sqrt(weights)[:, None] * mixture.inverse, mixture.multipliers)

    def __call__(self, columns: Floats) -> Floats:
        """Return φ of each normalised column."""
        return ((columns @ self.roots.T) ** 2).sum(axis=1) - columns @ self.nu

    def upper_bound(self, columns: Floats) -> float:
        """Return a bound on the largest φ of these columns that holds in exact arithmetic.

        A sum of k products is off by at most ``γ Σ|…|`` with γ a little above ``k·2^−53`` (Higham
        2002, chapter 3). γ here is several times that, to cover the rounding of the columns too.
        """
        gamma = (columns.shape[1] + 64) * 2.0**-50
        value = columns @ self.roots.T
        error = gamma * (columns @ np.abs(self.roots).T)
        phi = ((np.abs(value) + error) ** 2).sum(axis=1) - columns @ self.nu
        summands = (value**2).sum(axis=1) + columns @ np.abs(self.nu)
        return float((phi + gamma * summands).max())


def climb(
    section: CrossSection, price: Price, starts: Floats, orders: Sequence[NDArray[np.intp]]
) -> Floats:
    """Return the member of the cone to which φ climbs from each start.

    Each of ``orders`` is one sweep over all symbols.
    """
    off_diagonal = ~np.eye(section.size, dtype=np.bool_)
    least = np.where(off_diagonal, section.cone.shrink_factors, 0.0)  # r_x ≥ least[x2, x]·r_x2
    most = np.where(off_diagonal, section.cone.growth_factors, np.inf)  # r_x ≤ most[x, x2]·r_x2
    climbers = _Climbers(section, price, starts)
    for order in orders:
        climbers.normalise()
        moved = False
        for x in order.tolist():
            R = climbers.columns
            lower_end = (R * least[:, x]).max(axis=1)
            upper_end = _min_product(R, most[x])
            step = climbers.best_step(x, lower_end, upper_end)
            if step.any():
                moved = True
                climbers.move(x, step)
        if not moved:
            break
    return section.lower(climbers.columns)


class _Climbers:
    """Columns R during a climb, and the terms from which changes of φ are computed.

    For G = roots' roots and a column r with mean m = p·r, φ(r/m) = (rᵀGr/m − ν·r)/m.
    """

    def __init__(self, section: CrossSection, price: Price, starts: Floats) -> None:
        self._section = section
        self._nu = price.nu
        self._G = price.roots.T @ price.roots
        self.columns = starts

    def normalise(self) -> None:
        """Scale all columns to mean 1, and compute their terms from scratch."""
        self.columns = self._section.normalise(self.columns)
        self._GR = self.columns @ self._G
        self._square = (self.columns * self._GR).sum(axis=1)
        self._linear = self.columns @ self._nu
        self._mean = np.ones(len(self.columns))

    def best_step(self, x: int, *ends: Floats) -> Floats:
        """Return how far to move entry x of each column: to the better end, or not at all."""
        best = (self._square / self._mean - self._linear) / self._mean
        best = best + np.abs(best) * _MIN_GAIN + 1e-14
        step = np.zeros(len(best))
        for end in ends:
            d = np.where(np.isfinite(end), end - self.columns[:, x], 0.0)
            m = self._mean + d * self._section.prior[x]
            allowed = m > _MIN_MEAN
            m = np.where(allowed, m, 1.0)
            square = self._square + d * (2 * self._GR[:, x] + d * self._G[x, x])
            value = (square / m - self._linear - d * self._nu[x]) / m
            better = (value > best) & allowed
            best = np.where(better, value, best)
            step = np.where(better, d, step)
        return step

    def move(self, x: int, step: Floats) -> None:
        """Move entry x of each column, and update the terms."""
        self._square += step * (2 * self._GR[:, x] + step * self._G[x, x])
        self._GR += step[:, None] * self._G[x]
        self._linear += step * self._nu[x]
        self._mean += step * self._section.prior[x]
        self.columns[:, x] += step


def _min_product(R: Floats, factors: Floats) -> Floats:
    """Return ``min_x2 factors_x2 r_x2`` over the finite factors."""
    finite = np.isfinite(factors)
    return (R[:, finite] * factors[finite]).min(axis=1, initial=np.inf)


def walk(section: CrossSection, price: Price, starts: Floats, polyhedron: Polyhedron) -> Floats:
    """Return where walks from vertex to best neighbour end; starts must have no entry of 0."""
    vertices = polyhedron.nearest_vertices(np.log(starts))
    value = _value(section, price, polyhedron, vertices)
    walking = np.arange(len(vertices))
    for _ in range(_MAX_STEPS):
        if walking.size == 0:
            break
        best, neighbour = _best_neighbours(section, price, polyhedron, vertices[walking])
        current = value[walking]
        improves = best > current + np.abs(current) * _MIN_GAIN
        walking = walking[improves]
        vertices[walking] = neighbour[improves]
        value[walking] = best[improves]
    return section.lower(np.exp(polyhedron.logarithms(vertices)))


def _best_neighbours(
    section: CrossSection, price: Price, polyhedron: Polyhedron, vertices: Vertices
) -> tuple[Floats, Vertices]:
    """Return the largest φ around each vertex, and the neighbour that has it.

    A vertex whose equalities do not form a tree keeps itself, with −inf.
    """
    chunk = polyhedron.chunk_size(_CHUNK)
    best = np.full(len(vertices), -np.inf)
    neighbour = vertices.copy()
    for start in range(0, len(vertices), chunk):
        part = slice(start, start + chunk)
        around = polyhedron.neighbours(vertices[part])
        if around is None:
            continue
        candidates, exists = around
        value = np.where(exists, _value(section, price, polyhedron, candidates), -np.inf)
        row = np.arange(len(value))
        chosen = value.argmax(axis=1)
        best[part] = value[row, chosen]
        neighbour[part] = candidates[row, chosen]
    return best, neighbour


def _value(
    section: CrossSection, price: Price, polyhedron: Polyhedron, vertices: Vertices
) -> Floats:
    columns = np.exp(polyhedron.logarithms(vertices)).reshape(-1, section.size)
    return price(section.normalise(columns)).reshape(vertices.shape[:-1])
