"""Pricing: which members of the cone would improve a mixture most.

A mixture with ``M⁻¹`` and multipliers ν is the best of all exactly if no member of the cone has a positive

    φ(r) = |W^½ M⁻¹ r|² − ν·r,   p·r = 1

φ is convex, so that its largest value is at an extreme ray; but there are too many of them to look at, except in
small domains (``rays.py``). Two searches look for good ones. *Climbing* moves one symbol's entry after another to an
end of what the others allow, for many starts at once: quick, and soon stuck. *Walking* goes from a vertex to its best
neighbour, which moves whole sets of symbols together. What they find is a lower bound of the maximum, never a proof.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.designer.search.master import Mixture
from sfumato.designer.search.polyhedron import Polyhedron, Vertices
from sfumato.designer.search.rays import CrossSection
from sfumato.foundation.arrays import Floats

__all__ = ["Price", "climbed", "walked"]

_ENOUGH = 1e-11  # relative improvement that counts as one
_NOTHING = 1e-4  # of the mean in the crowd
_MOST_STEPS = 100
_CHUNK = 1 << 23  # comparisons at a time


@dataclass(frozen=True)
class Price:
    """φ of a mixture: ``roots`` is ``W^½ M⁻¹``."""

    roots: Floats
    nu: Floats

    @classmethod
    def of(cls, mixture: Mixture, weights: Floats) -> "Price":
        """The price of a mixture that was made for these weights."""
        return cls(np.sqrt(weights)[:, None] * mixture.inverse, mixture.multipliers)

    def __call__(self, columns: Floats) -> Floats:
        """φ of each normalised column."""
        return ((columns @ self.roots.T) ** 2).sum(axis=1) - columns @ self.nu

    def at_most(self, columns: Floats) -> float:
        """An upper bound of the largest φ, whatever the rounding of floats.

        A sum of k products is off by at most ``γ Σ|…|`` with γ a little above ``k·2^−53`` (Higham 2002, chapter 3); the
        allowance here is several times that, to cover the rounding in the columns themselves.
        """
        gamma = (columns.shape[1] + 64) * 2.0**-50
        value = columns @ self.roots.T
        off = gamma * (columns @ np.abs(self.roots).T)
        phi = ((np.abs(value) + off) ** 2).sum(axis=1) - columns @ self.nu
        return float((phi + gamma * ((value**2).sum(axis=1) + columns @ np.abs(self.nu))).max())


def climbed(
    section: CrossSection, price: Price, starts: Floats, orders: Sequence[NDArray[np.intp]]
) -> Floats:
    """The members of the cone to which φ climbs from each start; each of ``orders`` is one sweep over all symbols."""
    G, p, k = price.roots.T @ price.roots, section.crowd, section.size
    others = ~np.eye(k, dtype=np.bool_)
    asked = np.where(others, section.cone.shrink, 0.0)  # asked[x2, x]·r_x2 is the least r_x
    allowed = np.where(others, section.cone.growth, np.inf)  # allowed[x, x2]·r_x2 is the most
    R = starts
    for order in orders:
        R = section.normalise(R)
        GR = R @ G
        square, linear, mean, moved = (R * GR).sum(axis=1), R @ price.nu, np.ones(len(R)), False
        for x in order.tolist():
            best = (square / mean - linear) / mean
            better_than, step = best + np.abs(best) * _ENOUGH + 1e-14, np.zeros(len(R))
            for end in ((R * asked[:, x]).max(axis=1), _least(R, allowed[x])):
                d = np.where(np.isfinite(end), end - R[:, x], 0.0)
                m = mean + d * p[x]
                something = (
                    m > _NOTHING
                )  # without it, a column of zeros would be the end of its climb
                m = np.where(something, m, 1.0)
                value = (
                    (square + d * (2 * GR[:, x] + d * G[x, x])) / m - linear - d * price.nu[x]
                ) / m
                take = (value > better_than) & something
                better_than, step = np.where(take, value, better_than), np.where(take, d, step)
            if step.any():
                moved = True
                square += step * (2 * GR[:, x] + step * G[x, x])
                GR += step[:, None] * G[x]
                linear += step * price.nu[x]
                mean += step * p[x]
                R[:, x] += step
        if not moved:
            break
    return section.lower(R)


def _least(R: Floats, allowed: Floats) -> Floats:
    """``min_x2 allowed_x2 r_x2`` over the symbols that allow a finite multiple."""
    finite = np.isfinite(allowed)
    return (R[:, finite] * allowed[finite]).min(axis=1, initial=np.inf)


def walked(section: CrossSection, price: Price, starts: Floats, polyhedron: Polyhedron) -> Floats:
    """The members of the cone that walks from vertex to best neighbour end at; starts must have no entry of 0."""
    vertices = polyhedron.snapped(np.log(starts))
    value = _value(section, price, polyhedron, vertices)
    walking = np.arange(len(vertices))
    for _ in range(_MOST_STEPS):
        if walking.size == 0:
            break
        best, to = _best_neighbours(section, price, polyhedron, vertices[walking])
        up = best > value[walking] + np.abs(value[walking]) * _ENOUGH
        walking, best, to = walking[up], best[up], to[up]
        vertices[walking], value[walking] = to, best
    return section.lower(np.exp(polyhedron.logarithms(vertices)))


def _best_neighbours(
    section: CrossSection, price: Price, polyhedron: Polyhedron, vertices: Vertices
) -> tuple[Floats, Vertices]:
    """The neighbour of largest φ of each vertex; of a vertex without a tree of its own, itself."""
    chunk = max(_CHUNK // (polyhedron.size * max(polyhedron.tail.size, 1)), 1)
    best, to = np.full(len(vertices), -np.inf), vertices.copy()
    for start in range(0, len(vertices), chunk):
        here = slice(start, start + chunk)
        around = polyhedron.neighbours(vertices[here])
        if around is None:
            continue
        value = np.where(around[1], _value(section, price, polyhedron, around[0]), -np.inf)
        chosen = value.argmax(axis=1)
        each = np.arange(len(chosen))
        best[here], to[here] = value[each, chosen], around[0][each, chosen]
    return best, to


def _value(
    section: CrossSection, price: Price, polyhedron: Polyhedron, vertices: Vertices
) -> Floats:
    columns = np.exp(polyhedron.logarithms(vertices)).reshape(-1, section.size)
    return price(section.normalise(columns)).reshape(vertices.shape[:-1])
