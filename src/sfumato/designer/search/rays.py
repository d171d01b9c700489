"""Rays of the cone: simple ones to begin with, and all of them, which certifies a bound.

Members of the cone are compared on its cross-section ``p·r = 1``. An extreme ray is ``e^h`` on its
support, a set of symbols that contains, with x, every symbol that x owes something to. On the
support h is a vertex of a polyhedron (``polyhedron.py``). The vertices of a polyhedron and its edges
form a connected graph, so a walk from any vertex finds all of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from sfumato.contexts.cone import Cone
from sfumato.designer.search.polyhedron import Polyhedron, Vertices
from sfumato.foundation.arrays import Booleans, Floats

__all__ = ["CrossSection", "most_rays", "wider_rays"]

_ATTEMPTS = 8  # perturbations that are tried
_CHUNK = 1 << 21  # comparisons at a time
_MOST_SUPPORTS = 1 << 14


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
        """Return what remains of the column of ones when half of what a symbol may take is taken.

        With these, some channel made of the simplest rays favours every symbol.
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


class _Unlucky(Exception):
    """Two ways out of a vertex are equally long: another perturbation must be tried."""


class _TooMany(Exception):
    """There are more rays than were asked for."""


def most_rays(size: int) -> int:
    """The most extreme rays that a finite matrix of so many symbols can have: ``binom(2k − 2, k − 1)``.

    >>> [most_rays(k) for k in (4, 6, 8, 10)]
    [20, 252, 3432, 48620]
    """
    return comb(2 * size - 2, size - 1)


def wider_rays(E: Floats, limit: int) -> Floats | None:
    """The extreme rays of a cone that holds the cone of the closed matrix E, a row of logarithms each (−inf: 0).

    ``None`` if there are more than ``limit`` of them.

    >>> E = np.array([[0.0, 1.0], [2.0, 0.0]])
    >>> sorted(wider_rays(E, 10).round(5).tolist())
    [[-2.0, 0.0], [0.0, -1.0]]
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _rays(Polyhedron.around(E, attempt), limit)
        except _Unlucky:
            continue
        except _TooMany:
            break
    return None


def _rays(wider: Polyhedron, limit: int) -> Floats:
    found, left = [], limit
    for number, support in enumerate(_supports(wider.promises)):
        if number == _MOST_SUPPORTS:
            raise _TooMany
        part = wider.part(np.flatnonzero(support))
        vertices = _all_vertices(part, left)
        logarithms = np.full((len(vertices), wider.size), -np.inf)
        logarithms[:, support] = part.logarithms(vertices)
        found.append(logarithms)
        left -= len(vertices)
        if left < 0:
            raise _TooMany
    return np.vstack(found)


def _supports(owes: Booleans) -> Iterator[Booleans]:
    """Sets that hold all that their members owe something to, and do not fall apart into two such sets.

    Each is what single symbols drag along, added to one another as long as they overlap.
    """
    dragged = list(np.unique(owes, axis=0))
    waiting, seen = list(dragged), set()
    while waiting:
        support = waiting.pop()
        if support.tobytes() not in seen:
            seen.add(support.tobytes())
            yield support
            waiting += [
                support | row for row in dragged if (support & row).any() and (row & ~support).any()
            ]


def _all_vertices(polyhedron: Polyhedron, limit: int) -> Vertices:
    size = polyhedron.size
    if size == 1:
        return np.zeros((1, 1), dtype=np.int64)
    before, level = np.empty((0, size), dtype=np.int64), polyhedron.snapped(np.zeros((1, size)))
    levels, count = [level], 1
    while level.size:
        around = _neighbours(polyhedron, level)
        # A neighbour of this level lies in this level, the one before, or the next.
        level, before = _without(around, np.vstack([before, level])), level
        levels.append(level)
        count += len(level)
        if count > limit:
            raise _TooMany
    return np.vstack(levels)


def _neighbours(polyhedron: Polyhedron, vertices: Vertices) -> Vertices:
    """The neighbours of all vertices, each once, some vertices at a time."""
    chunk = max(_CHUNK // (polyhedron.size * max(polyhedron.tail.size, 1)), 1)
    found = []
    for start in range(0, len(vertices), chunk):
        around = polyhedron.neighbours(vertices[start : start + chunk])
        if around is None:
            raise _Unlucky
        found.append(_distinct(around[0][around[1]]))
    return _distinct(np.vstack(found))


def _distinct(vertices: Vertices) -> Vertices:
    return np.unique(_as_keys(vertices)).view(np.int64).reshape(-1, vertices.shape[1])


def _without(vertices: Vertices, known: Vertices) -> Vertices:
    keys, known_keys = _as_keys(vertices), np.sort(_as_keys(known))
    place = np.minimum(np.searchsorted(known_keys, keys), len(known_keys) - 1)
    return vertices[known_keys[place] != keys]


def _as_keys(vertices: Vertices) -> NDArray[np.void]:
    """Rows as single items, which NumPy can sort and compare."""
    whole = np.ascontiguousarray(vertices)
    return whole.view(np.dtype((np.void, whole.itemsize * whole.shape[1]))).ravel()
