"""Pricing: find the members of the cone that would improve a mixture most.

A mixture with ``M⁻¹`` and multipliers ν is optimal if and only if

    φ(r) = |W^½ M⁻¹ r|² − ν·r ≤ 0   for all members r of the cone with p·r = 1

φ is convex, so it is largest at an extreme ray. Except in small domains (``rays.py``), there are
too many rays to try them all, so two searches look for good ones. *Climbing*, from many starts at
once, visits one symbol after another and moves its entry to an end of the range that the other
entries allow. It is fast, but soon gets stuck. *Walking* repeatedly goes from a vertex to its best
neighbour. Each step changes the entries of several symbols together. The largest φ found is a lower
bound on the maximum, so it never proves that a mixture is optimal.
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

_MIN_GAIN = 1e-11  # the smallest relative increase in φ that counts
_MIN_MEAN = 1e-4  # of a column under the prior; keeps climbs away from the column of zeros
_MAX_STEPS = 100  # in a walk
_MAX_COMPARISONS = 1 << 23  # in one chunk of vertices


@dataclass(frozen=True)
class Price:
    """φ for a mixture: ``weighted_inverse`` is ``W^½ M⁻¹``, and ``nu`` are the multipliers ν."""

    weighted_inverse: Floats
    nu: Floats

    @classmethod
    def from_mixture(cls, mixture: Mixture, weights: Floats) -> "Price":
        """Return φ for a mixture that is optimal for the symbol weights ``weights``."""
        return cls(np.sqrt(weights)[:, None] * mixture.inverse, mixture.multipliers)

    def __call__(self, columns: Floats) -> Floats:
        """Return φ for each normalised column."""
        return ((columns @ self.weighted_inverse.T) ** 2).sum(axis=1) - columns @ self.nu

    def upper_bound(self, columns: Floats) -> float:
        """Return a bound on the largest φ of these columns that holds in exact arithmetic.

        The rounding error of a sum of k products is at most γ times the sum of their absolute
        values, with γ slightly above ``k·2^−53`` (Higham 2002, chapter 3). The γ used here is
        several times larger, so it also covers the rounding of the columns.
        """
        gamma = (columns.shape[1] + 64) * 2.0**-50
        value = columns @ self.weighted_inverse.T
        error = gamma * (columns @ np.abs(self.weighted_inverse).T)
        phi = ((np.abs(value) + error) ** 2).sum(axis=1) - columns @ self.nu
        magnitude = (value**2).sum(axis=1) + columns @ np.abs(self.nu)
        return float((phi + gamma * magnitude).max())


def climb(
    section: CrossSection, price: Price, starts: Floats, orders: Sequence[NDArray[np.intp]]
) -> Floats:
    """Return, for each start, the member of the cone at which a climb from there ends.

    Each of ``orders`` is the order in which one sweep visits the symbols.
    """
    off_diagonal = ~np.eye(section.size, dtype=np.bool_)
    # min_ratio[x2, x]·r_x2 ≤ r_x ≤ max_ratio[x, x2]·r_x2
    min_ratio = np.where(off_diagonal, section.cone.shrink_factors, 0.0)
    max_ratio = np.where(off_diagonal, section.cone.growth_factors, np.inf)
    climbers = _Climbers(section, price, starts)
    for order in orders:
        climbers.normalise()
        has_moved = False
        for x in order.tolist():
            R = climbers.columns
            lower_end = (R * min_ratio[:, x]).max(axis=1)
            upper_end = _min_product(R, max_ratio[x])
            step = climbers.best_step(x, lower_end, upper_end)
            if step.any():
                has_moved = True
                climbers.move(x, step)
        if not has_moved:
            break
    return section.lower(climbers.columns)


class _Climbers:
    """Columns during a climb, and the terms from which their φ is computed.

    For ``G = M⁻¹ W M⁻¹`` and a column r with mean ``m = p·r``, ``φ(r/m) = (rᵀGr/m − ν·r)/m``.
    """

    def __init__(self, section: CrossSection, price: Price, starts: Floats) -> None:
        self._section = section
        self._nu = price.nu
        self._G = price.weighted_inverse.T @ price.weighted_inverse
        self.columns = starts

    def normalise(self) -> None:
        """Scale all columns to a mean of 1 under the prior, and recompute their terms."""
        self.columns = self._section.normalise(self.columns)
        self._GR = self.columns @ self._G
        self._quadratic = (self.columns * self._GR).sum(axis=1)
        self._linear = self.columns @ self._nu
        self._mean = np.ones(len(self.columns))

    def best_step(self, x: int, *ends: Floats) -> Floats:
        """Return the best change to entry x of each column: a move to one of ``ends``, or 0."""
        best_phi = (self._quadratic / self._mean - self._linear) / self._mean
        best_phi = best_phi + np.abs(best_phi) * _MIN_GAIN + 1e-14
        step = np.zeros(len(best_phi))
        for end in ends:
            d = np.where(np.isfinite(end), end - self.columns[:, x], 0.0)
            m = self._mean + d * self._section.prior[x]
            is_allowed = m > _MIN_MEAN
            m = np.where(is_allowed, m, 1.0)
            quadratic = self._quadratic + d * (2 * self._GR[:, x] + d * self._G[x, x])
            phi = (quadratic / m - self._linear - d * self._nu[x]) / m
            is_better = (phi > best_phi) & is_allowed
            best_phi = np.where(is_better, phi, best_phi)
            step = np.where(is_better, d, step)
        return step

    def move(self, x: int, step: Floats) -> None:
        """Add ``step`` to entry x of each column, and update the terms."""
        self._quadratic += step * (2 * self._GR[:, x] + step * self._G[x, x])
        self._GR += step[:, None] * self._G[x]
        self._linear += step * self._nu[x]
        self._mean += step * self._section.prior[x]
        self.columns[:, x] += step


def _min_product(R: Floats, factors: Floats) -> Floats:
    """Return ``min_x2 factors_x2 r_x2`` over the finite factors."""
    is_finite = np.isfinite(factors)
    return (R[:, is_finite] * factors[is_finite]).min(axis=1, initial=np.inf)


def walk(section: CrossSection, price: Price, starts: Floats, polyhedron: Polyhedron) -> Floats:
    """Return, for each start, the column at which a walk from vertex to best neighbour ends.

    The entries of ``starts`` must be positive.
    """
    vertices = polyhedron.vertices_near(np.log(starts))
    phi = _phi_at(section, price, polyhedron, vertices)
    active_indices = np.arange(len(vertices))
    for _ in range(_MAX_STEPS):
        if active_indices.size == 0:
            break
        best_phi, neighbours = _best_neighbours(
            section, price, polyhedron, vertices[active_indices]
        )
        current_phi = phi[active_indices]
        is_better = best_phi > current_phi + np.abs(current_phi) * _MIN_GAIN
        active_indices = active_indices[is_better]
        vertices[active_indices] = neighbours[is_better]
        phi[active_indices] = best_phi[is_better]
    return section.lower(np.exp(polyhedron.logarithms(vertices)))


def _best_neighbours(
    section: CrossSection, price: Price, polyhedron: Polyhedron, vertices: Vertices
) -> tuple[Floats, Vertices]:
    """Return the largest φ among each vertex's neighbours, and the neighbour that attains it.

    Vertices are processed in chunks. If the equalities of any vertex in a chunk do not form a tree,
    return −inf and the vertex itself for every vertex in the chunk.
    """
    chunk_size = polyhedron.chunk_size(_MAX_COMPARISONS)
    best_phi = np.full(len(vertices), -np.inf)
    best_neighbours = vertices.copy()
    for start in range(0, len(vertices), chunk_size):
        chunk = slice(start, start + chunk_size)
        neighbours = polyhedron.neighbours(vertices[chunk])
        if neighbours is None:
            continue
        candidates, exists = neighbours
        phi = np.where(exists, _phi_at(section, price, polyhedron, candidates), -np.inf)
        rows = np.arange(len(phi))
        chosen = phi.argmax(axis=1)
        best_phi[chunk] = phi[rows, chosen]
        best_neighbours[chunk] = candidates[rows, chosen]
    return best_phi, best_neighbours


def _phi_at(
    section: CrossSection, price: Price, polyhedron: Polyhedron, vertices: Vertices
) -> Floats:
    columns = np.exp(polyhedron.logarithms(vertices)).reshape(-1, section.size)
    return price(section.normalise(columns)).reshape(vertices.shape[:-1])
