"""Rays of the cone: simple ones to begin with, or all of them, to certify a bound.

Members of the cone are compared on its cross-section ``p·r = 1``. An extreme ray is ``e^h`` on its
support. The support contains, for each of its symbols x, every symbol that x owes a promise to. On
the support, h is a vertex of a polyhedron (``polyhedron.py``). The vertices and edges of a
polyhedron form a connected graph, so a walk from any vertex finds them all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.contexts import Cone
from sfumato.designer.search.polyhedron import Polyhedron, Vertices
from sfumato.foundation.arrays import Booleans, Floats

__all__ = ["CrossSection", "wider_rays"]

_MAX_ATTEMPTS = 8  # perturbations to try
_CHUNK = 1 << 21  # comparisons at a time
_MAX_SUPPORTS = 1 << 14


@dataclass(frozen=True)
class CrossSection:
    """The members r of a cone with ``p·r = 1``, for a distribution ``crowd`` p."""

    cone: Cone
    crowd: Floats

    @property
    def size(self) -> int:
        """The number of symbols, k."""
        return self.cone.size

    def normalise(self, columns: Floats) -> Floats:
        """Divide each column by its mean in the crowd."""
        return columns / (columns @ self.crowd)[:, None]

    def lower(self, columns: Floats) -> Floats:
        """Return the largest member of the cone below each column, normalised."""
        return self.normalise(self.cone.lower(columns))

    def simplest_rays(self) -> Floats:
        """Return the column of ones, and for each symbol members that favour and disfavour it."""
        growth = self.cone.growth
        against = growth.T[np.isfinite(growth).all(axis=0)]
        ones = np.ones((1, self.size))
        return self.normalise(np.vstack([ones, self.cone.shrink, against, self._remainders()]))

    def _remainders(self) -> Floats:
        """Return what remains of the column of ones after each symbol takes half of what it may.

        With these, some mixture of the simplest rays is a channel that favours every symbol.
        """
        shrink = self.cone.shrink
        off_diagonal = ~np.eye(self.size, dtype=np.bool_)
        remainders = []
        for s in shrink:
            # 1 − c s stays in the cone while c (s_x2 − e^−E s_x) ≤ 1 − e^−E for all x, x2.
            room = (1 - shrink)[off_diagonal]
            cost = (s[None, :] - shrink * s[:, None])[off_diagonal]
            c = (room[cost > 0] / cost[cost > 0]).min(initial=1.0)
            remainders.append(1 - s * c / 2)
        return np.array(remainders)


class _Tie(Exception):
    """The error for two equally long ways out of a vertex: try another perturbation."""


class _TooManyRays(Exception):
    """The error for more rays than the limit."""


def wider_rays(E: Floats, limit: int) -> Floats | None:
    """Return the extreme rays of a cone slightly wider than that of the closed matrix E.

    Each row holds logarithms, −inf for an entry of 0. Return ``None`` above ``limit`` rays. (A
    finite matrix of k symbols has at most ``binom(2k − 2, k − 1)`` extreme rays.)

    >>> E = np.array([[0.0, 1.0], [2.0, 0.0]])
    >>> sorted(wider_rays(E, 10).round(5).tolist())
    [[-2.0, 0.0], [0.0, -1.0]]
    """
    for attempt in range(_MAX_ATTEMPTS):
        try:
            return _all_rays(Polyhedron.around(E, attempt), limit)
        except _Tie:
            continue
        except _TooManyRays:
            break
    return None


def _all_rays(wider: Polyhedron, limit: int) -> Floats:
    rays = []
    remaining = limit
    for number, support in enumerate(_supports(wider.is_finite)):
        if number == _MAX_SUPPORTS:
            raise _TooManyRays
        part = wider.restrict(np.flatnonzero(support))
        vertices = _all_vertices(part, remaining)
        logarithms = np.full((len(vertices), wider.size), -np.inf)
        logarithms[:, support] = part.logarithms(vertices)
        rays.append(logarithms)
        remaining -= len(vertices)
        if remaining < 0:
            raise _TooManyRays
    return np.vstack(rays)


def _supports(owes: Booleans) -> Iterator[Booleans]:
    """Yield the connected sets that contain every symbol that their members owe a promise to.

    Each is a union of overlapping sets ``owes[x]``.
    """
    smallest = list(np.unique(owes, axis=0))
    waiting = list(smallest)
    seen = set()
    while waiting:
        support = waiting.pop()
        if support.tobytes() in seen:
            continue
        seen.add(support.tobytes())
        yield support
        for row in smallest:
            if (support & row).any() and (row & ~support).any():
                waiting.append(support | row)


def _all_vertices(polyhedron: Polyhedron, limit: int) -> Vertices:
    """Walk the graph of vertices level by level, starting from any of them."""
    size = polyhedron.size
    if size == 1:
        return np.zeros((1, 1), dtype=np.int64)
    previous = np.empty((0, size), dtype=np.int64)
    level = polyhedron.nearest_vertices(np.zeros((1, size)))
    levels = [level]
    count = 1
    while level.size:
        around = _neighbours(polyhedron, level)
        # A neighbour of this level lies in this level, the previous one, or the next.
        following = _without(around, np.vstack([previous, level]))
        previous = level
        level = following
        levels.append(level)
        count += len(level)
        if count > limit:
            raise _TooManyRays
    return np.vstack(levels)


def _neighbours(polyhedron: Polyhedron, vertices: Vertices) -> Vertices:
    """Return the neighbours of all vertices, without duplicates."""
    chunk = polyhedron.chunk_size(_CHUNK)
    neighbours = []
    for start in range(0, len(vertices), chunk):
        around = polyhedron.neighbours(vertices[start : start + chunk])
        if around is None:
            raise _Tie
        candidates, exists = around
        neighbours.append(_distinct(candidates[exists]))
    return _distinct(np.vstack(neighbours))


def _distinct(vertices: Vertices) -> Vertices:
    return np.unique(_as_keys(vertices)).view(np.int64).reshape(-1, vertices.shape[1])


def _without(vertices: Vertices, known: Vertices) -> Vertices:
    keys = _as_keys(vertices)
    known_keys = np.sort(_as_keys(known))
    place = np.minimum(np.searchsorted(known_keys, keys), len(known_keys) - 1)
    return vertices[known_keys[place] != keys]


def _as_keys(vertices: Vertices) -> NDArray[np.void]:
    """View rows as single items, which NumPy can sort and compare."""
    contiguous = np.ascontiguousarray(vertices)
    row_bytes = contiguous.itemsize * contiguous.shape[1]
    return contiguous.view(np.dtype((np.void, row_bytes))).ravel()
