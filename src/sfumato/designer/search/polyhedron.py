"""The cone in logarithms: a polyhedron in 64-bit integers, and the way from one of its vertices to the next.

For r > 0 write ``r = e^h``. The cone becomes ``{h : h_x − h_x2 ≤ E[x, x2]}``, up to an additive constant that ``h_0 =
0`` takes away. At a vertex the inequalities that hold with equality form a tree over the symbols. Relaxing one of
them moves one side of the tree, until another inequality stops it at the neighbouring vertex, or nothing does.

E is rounded up and perturbed upwards, by less than a millionth of its least entry where 64 bits allow that, so that no
vertex has more equalities than a tree. That only widens the cone: what holds for all of the wider cone holds for all of
the true one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import Booleans, Floats
from sfumato.randomness import KEY_BYTES, words_from

__all__ = ["Polyhedron", "Vertices"]

Vertices = NDArray[np.int64]
"""A vertex per row: ``h·scale``, with 0 for the first symbol."""

_UNBOUNDED = np.int64(1) << 62
_PERTURBATION = 2e-7  # of the least entry
_LEAST_NOISE = 2.0**24  # steps of the grid, so that ties stay unlikely


@dataclass(frozen=True)
class Polyhedron:
    """``{h : h_x − h_x2 ≤ N[x, x2]/scale}``; ``N`` is closed. Edges are the inequalities that no two others imply."""

    N: NDArray[np.int64]
    scale: float
    tail: NDArray[np.intp]
    head: NDArray[np.intp]

    @classmethod
    def around(cls, E: Floats, attempt: int = 0) -> "Polyhedron":
        """A polyhedron that holds that of the closed matrix E, and a little more; ``attempt`` chooses the little."""
        k = len(E)
        finite = np.isfinite(E) & ~np.eye(k, dtype=np.bool_)
        scale = 2.0 ** (59 - np.ceil(np.log2((k + 1) * E[finite].max())))
        words = words_from(attempt.to_bytes(KEY_BYTES, "big"), 0, k * k)[:, 0].reshape(k, k)
        most = max(_PERTURBATION * float(E[finite].min()) * scale, _LEAST_NOISE)
        noise = (words >> np.uint64(11)) * 2.0**-53 * most
        # What a detour promises as well is left to the detour: perturbed by itself, it would split rays into many.
        finite &= ~_implied(E)
        N = np.full((k, k), _UNBOUNDED, dtype=np.int64)
        # E·scale is exact, as scale is a power of two; the last digit of E is worth fewer than a thousand steps.
        N[finite] = (
            np.ceil(E[finite] * scale).astype(np.int64) + noise[finite].astype(np.int64) + 1024
        )
        np.fill_diagonal(N, 0)
        for z in range(k):
            np.minimum(N, _sum(N[:, z, None], N[None, z, :]), out=N)
        return cls._of(N, float(scale))

    @classmethod
    def _of(cls, N: NDArray[np.int64], scale: float) -> "Polyhedron":
        k = len(N)
        detour = np.full_like(N, _UNBOUNDED)
        for z in range(k):
            others = np.ix_(np.arange(k) != z, np.arange(k) != z)
            detour[others] = np.minimum(detour[others], _sum(N[:, z, None], N[None, z, :])[others])
        tail, head = np.nonzero((detour > N) & (N < _UNBOUNDED) & ~np.eye(k, dtype=np.bool_))
        return cls(N, scale, tail, head)

    @property
    def size(self) -> int:
        """The number of symbols."""
        return len(self.N)

    @property
    def promises(self) -> Booleans:
        """Where the matrix is finite."""
        return self.N < _UNBOUNDED

    def part(self, symbols: NDArray[np.intp]) -> "Polyhedron":
        """The polyhedron of these symbols alone."""
        return self._of(self.N[np.ix_(symbols, symbols)], self.scale)

    def logarithms(self, vertices: Vertices) -> Floats:
        """H of vertices, the largest entry of each 0."""
        return (vertices - vertices.max(axis=-1, keepdims=True)) / self.scale

    def snapped(self, logarithms: Floats) -> Vertices:
        """A vertex near each point: what is joined to the first symbol moves until it meets another, the nearest first.

        Points with entries of −inf are in no such polyhedron.
        """
        h = np.rint(logarithms * self.scale).astype(np.int64)
        each, joined = np.arange(len(h)), np.zeros(h.shape, dtype=np.bool_)
        joined[:, 0] = True
        for _ in range(self.size - 1):
            slack = np.where(self.promises, self.N - (h[:, :, None] - h[:, None, :]), _UNBOUNDED)
            fall = np.where(~joined[:, :, None] & joined[:, None, :], slack, _UNBOUNDED).min(axis=2)
            rise = np.where(joined[:, :, None] & ~joined[:, None, :], slack, _UNBOUNDED).min(axis=1)
            falls = fall.min(axis=1) <= rise.min(axis=1)
            h += np.where(joined, np.where(falls, -fall.min(axis=1), rise.min(axis=1))[:, None], 0)
            joined[each, np.where(falls, fall.argmin(axis=1), rise.argmin(axis=1))] = True
        return h - h[:, :1]

    def neighbours(self, vertices: Vertices) -> tuple[Vertices, Booleans] | None:
        """For each vertex and each of its equalities, the vertex that relaxing it leads to, and whether there is one.

        ``None`` where a vertex has more equalities than a tree, or fewer: the perturbation was unlucky.
        """
        slack = self.N[self.tail, self.head] - (vertices[:, self.tail] - vertices[:, self.head])
        equal = slack == 0
        if (np.count_nonzero(equal, axis=1) != self.size - 1).any():
            return None
        direction = self._directions(np.nonzero(equal)[1].reshape(len(vertices), self.size - 1))
        closing = direction[:, :, self.tail] > direction[:, :, self.head]
        steps: NDArray[np.int64] = np.where(closing, slack[:, None, :], _UNBOUNDED).min(axis=2)
        bounded = steps < _UNBOUNDED
        return vertices[:, None, :] + (steps * bounded)[:, :, None] * direction, bounded

    def _directions(self, trees: NDArray[np.intp]) -> NDArray[np.int64]:
        """For each tree and each of its edges, the way in which h moves when that inequality alone is relaxed.

        With B the incidence matrix of the tree, ``B d = −(unit vector of the edge)``. Inverses of such matrices hold
        nothing but 0 and ±1, so that rounding makes them exact.
        """
        count, edges = trees.shape
        B = np.zeros((count, edges, self.size))
        at = np.arange(count)[:, None], np.arange(edges)[None, :]
        B[(*at, self.tail[trees])] = 1.0
        B[(*at, self.head[trees])] = -1.0
        d = np.zeros((count, edges, self.size), dtype=np.int64)
        d[:, :, 1:] = -np.rint(np.linalg.inv(B[:, :, 1:])).astype(np.int64).transpose(0, 2, 1)
        return d


def _implied(E: Floats) -> Booleans:
    """Entries of a closed matrix that are sums of two others, in floats."""
    k = len(E)
    implied = np.zeros((k, k), dtype=np.bool_)
    for z in range(k):
        others = (np.arange(k) != z)[:, None] & (np.arange(k) != z)[None, :]
        implied |= others & (E[:, z, None] + E[None, z, :] <= E * (1 + 1e-12))
    return implied & ~np.eye(k, dtype=np.bool_)


def _sum(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where((a >= _UNBOUNDED) | (b >= _UNBOUNDED), _UNBOUNDED, a + b)
