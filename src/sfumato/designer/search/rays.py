"""Rays of the cone: simple ones to start a search, or all of them, to certify a bound.

Members of the cone are compared on its cross-section ``p·r = 1``. An extreme ray is ``e^h`` on its
support and 0 elsewhere. If the support contains a symbol x, it also contains every x2 for which
E[x, x2] is finite. On the support, h is a vertex of a polyhedron (``polyhedron.py``). The vertices
and edges of a polyhedron form a connected graph, so all vertices can be reached from any one.
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
_MAX_COMPARISONS = 1 << 21  # in one chunk of vertices
_MAX_SUPPORTS = 1 << 14


@dataclass(frozen=True)
class CrossSection:
    """The members r of a cone with ``p·r = 1``, for a prior p."""

    cone: Cone
    prior: Floats

    @property
    def size(self) -> int:
        """The number of symbols, k."""
        return self.cone.size

    def normalise(self, columns: Floats) -> Floats:
        """Return the columns, each divided by its mean under the prior."""
        return columns / (columns @ self.prior)[:, None]

    def lower(self, columns: Floats) -> Floats:
        """Return the largest member of the cone below each column, normalised."""
        return self.normalise(self.cone.lower(columns))

    def simplest_rays(self) -> Floats:
        """Return the column of ones and, for each symbol, members that favour or disfavour it.

        Also return members with which some mixture of all these rays is a channel.
        """
        growth = self.cone.growth_factors
        disfavouring = growth.T[np.isfinite(growth).all(axis=0)]
        favouring = self.cone.shrink_factors
        ones = np.ones((1, self.size))
        return self.normalise(np.vstack([ones, favouring, disfavouring, self._remainders()]))

    def _remainders(self) -> Floats:
        """Return the column of ones minus half the largest possible multiple of each favouring ray.

        With these, some mixture of the simplest rays is a channel that favours every symbol.
        """
        shrink = self.cone.shrink_factors
        off_diagonal = ~np.eye(self.size, dtype=np.bool_)
        remainders = []
        for s in shrink:
            # 1 − c s is in the cone if c (s_x2 − e^−E s_x) ≤ 1 − e^−E for all x, x2.
            right_side = (1 - shrink)[off_diagonal]
            left_side = (s[None, :] - shrink * s[:, None])[off_diagonal]
            is_binding = left_side > 0
            c = (right_side[is_binding] / left_side[is_binding]).min(initial=1.0)
            remainders.append(1 - s * c / 2)
        return np.array(remainders)


class _Tie(Exception):
    """The equalities of some vertex do not form a tree; try another perturbation."""


class _TooManyRays(Exception):
    """There are more rays than ``max_rays``, or too many supports."""


def wider_rays(E: Floats, max_rays: int) -> Floats | None:
    """Return the extreme rays of a cone slightly wider than that of the closed matrix E.

    Each row contains the logarithms of one ray, with −inf for an entry of 0. Return ``None`` if
    there are more than ``max_rays`` rays or too many supports, or if every perturbation tried
    leaves a tie. (A finite matrix of k symbols has at most ``binom(2k − 2, k − 1)`` extreme rays.)

    >>> E = np.array([[0.0, 1.0], [2.0, 0.0]])
    >>> sorted(wider_rays(E, 10).round(5).tolist())
    [[-2.0, 0.0], [0.0, -1.0]]
    """
    for attempt in range(_MAX_ATTEMPTS):
        try:
            return _all_rays(Polyhedron.enclosing(E, attempt), max_rays)
        except _Tie:
            continue
        except _TooManyRays:
            break
    return None


def _all_rays(polyhedron: Polyhedron, max_rays: int) -> Floats:
    rays = []
    remaining_count = max_rays
    for index, support in enumerate(_supports(polyhedron.finite_mask)):
        if index == _MAX_SUPPORTS:
            raise _TooManyRays
        part = polyhedron.restrict(np.flatnonzero(support))
        vertices = _all_vertices(part, remaining_count)
        logarithms = np.full((len(vertices), polyhedron.size), -np.inf)
        logarithms[:, support] = part.logarithms(vertices)
        rays.append(logarithms)
        remaining_count -= len(vertices)
        if remaining_count < 0:
            raise _TooManyRays
    return np.vstack(rays)


def _supports(finite_mask: Booleans) -> Iterator[Booleans]:
    """Yield the support of every extreme ray, given which entries of E are finite.

    Each support is a union of overlapping rows of ``finite_mask``.
    """
    smallest_supports = list(np.unique(finite_mask, axis=0))
    pending = list(smallest_supports)
    seen = set()
    while pending:
        support = pending.pop()
        if support.tobytes() in seen:
            continue
        seen.add(support.tobytes())
        yield support
        for row in smallest_supports:
            if (support & row).any() and (row & ~support).any():
                pending.append(support | row)


def _all_vertices(polyhedron: Polyhedron, max_count: int) -> Vertices:
    """Return all vertices, found by breadth-first search."""
    size = polyhedron.size
    if size == 1:
        return np.zeros((1, 1), dtype=np.int64)
    previous_level = np.empty((0, size), dtype=np.int64)
    level = polyhedron.vertices_near(np.zeros((1, size)))
    levels = [level]
    vertex_count = 1
    while level.size:
        neighbours = _neighbours(polyhedron, level)
        # Every neighbour is in this level, the previous one or the next.
        next_level = _remove_known(neighbours, np.vstack([previous_level, level]))
        previous_level = level
        level = next_level
        levels.append(level)
        vertex_count += len(level)
        if vertex_count > max_count:
            raise _TooManyRays
    return np.vstack(levels)


def _neighbours(polyhedron: Polyhedron, vertices: Vertices) -> Vertices:
    """Return the neighbours of the given vertices, without duplicates."""
    chunk_size = polyhedron.chunk_size(_MAX_COMPARISONS)
    chunks = []
    for start in range(0, len(vertices), chunk_size):
        neighbours = polyhedron.neighbours(vertices[start : start + chunk_size])
        if neighbours is None:
            raise _Tie
        candidates, exists = neighbours
        chunks.append(_drop_duplicates(candidates[exists]))
    return _drop_duplicates(np.vstack(chunks))


def _drop_duplicates(vertices: Vertices) -> Vertices:
    return np.unique(_as_keys(vertices)).view(np.int64).reshape(-1, vertices.shape[1])


def _remove_known(vertices: Vertices, known_vertices: Vertices) -> Vertices:
    keys = _as_keys(vertices)
    known_keys = np.sort(_as_keys(known_vertices))
    position = np.minimum(np.searchsorted(known_keys, keys), len(known_keys) - 1)
    return vertices[known_keys[position] != keys]


def _as_keys(vertices: Vertices) -> NDArray[np.void]:
    """Return each row as a single item that NumPy can sort and compare."""
    contiguous = np.ascontiguousarray(vertices)
    row_bytes = contiguous.itemsize * contiguous.shape[1]
    return contiguous.view(np.dtype((np.void, row_bytes))).ravel()
