"""The cone in log space: a polyhedron over 64-bit integers, and how to move between its vertices.

For r > 0 write ``r = e^h``. The cone becomes ``{h : h_x − h_x2 ≤ E[x, x2]}``, up to an additive
constant, which ``h_0 = 0`` fixes. At a vertex, the inequalities that hold with equality form a tree
over the symbols. Relaxing one of them moves one side of the tree, either until another inequality
stops it at a neighbouring vertex, or without limit.

E is rounded up and perturbed upwards, so no vertex has more equalities than a tree has edges. The
perturbation is less than a millionth of the smallest entry if 64 bits are enough. It only widens
the cone, so a bound for the wider cone is valid for the true one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import Booleans, Floats
from sfumato.randomness import KEY_BYTES, words_from

__all__ = ["Polyhedron", "Vertices"]

Vertices = NDArray[np.int64]
"""One vertex per row: ``h·scale``, with 0 for the first symbol."""

_UNBOUNDED = np.int64(1) << 62  # stands for an infinite entry
_PERTURBATION = 2e-7  # relative to the smallest entry
_MIN_AMPLITUDE = 2.0**24  # of the perturbation, in integer steps; keeps ties unlikely


@dataclass(frozen=True)
class Polyhedron:
    """The set ``{h : h_x − h_x2 ≤ N[x, x2]/scale}``, where ``N`` is closed.

    ``tail`` and ``head`` list the inequalities (x, x2) that are not implied by two others.
    """

    N: NDArray[np.int64]
    scale: float
    tail: NDArray[np.intp]
    head: NDArray[np.intp]

    @classmethod
    def enclosing(cls, E: Floats, attempt: int = 0) -> "Polyhedron":
        """Return a polyhedron slightly larger than that of the closed matrix E.

        ``attempt`` selects the perturbation.
        """
        k = len(E)
        is_bounded = np.isfinite(E) & ~np.eye(k, dtype=np.bool_)
        # A power of two makes E·scale exact. With this one, sums along a path fit in 64 bits.
        scale = 2.0 ** (59 - np.ceil(np.log2((k + 1) * E[is_bounded].max())))
        words = words_from(attempt.to_bytes(KEY_BYTES, "big"), 0, k * k)[:, 0].reshape(k, k)
        amplitude = max(_PERTURBATION * float(E[is_bounded].min()) * scale, _MIN_AMPLITUDE)
        noise = (words >> np.uint64(11)) * 2.0**-53 * amplitude
        # Leave out entries implied by a detour: perturbing them would split one ray into several.
        is_bounded &= ~_is_implied(E)
        N = np.full((k, k), _UNBOUNDED, dtype=np.int64)
        # 1024 steps cover the rounding error of E, which is less than a thousand steps.
        rounded_up = np.ceil(E[is_bounded] * scale).astype(np.int64)
        N[is_bounded] = rounded_up + noise[is_bounded].astype(np.int64) + 1024
        np.fill_diagonal(N, 0)
        for z in range(k):
            np.minimum(N, _add(N[:, z, None], N[None, z, :]), out=N)
        return cls._from_closed(N, float(scale))

    @classmethod
    def _from_closed(cls, N: NDArray[np.int64], scale: float) -> "Polyhedron":
        k = len(N)
        detour = np.full_like(N, _UNBOUNDED)
        for z in range(k):
            is_other = np.arange(k) != z
            others = np.ix_(is_other, is_other)
            through_z = _add(N[:, z, None], N[None, z, :])
            detour[others] = np.minimum(detour[others], through_z[others])
        is_edge = (detour > N) & (N < _UNBOUNDED) & ~np.eye(k, dtype=np.bool_)
        tail, head = np.nonzero(is_edge)
        return cls(N, scale, tail, head)

    @property
    def size(self) -> int:
        """The number of symbols."""
        return len(self.N)

    @property
    def finite_mask(self) -> Booleans:
        """Which entries of the matrix are finite."""
        return self.N < _UNBOUNDED

    def restrict(self, symbols: NDArray[np.intp]) -> "Polyhedron":
        """Return the polyhedron for the given symbols alone."""
        return self._from_closed(self.N[np.ix_(symbols, symbols)], self.scale)

    def logarithms(self, vertices: Vertices) -> Floats:
        """Return h for each vertex, shifted so that its largest entry is 0."""
        return (vertices - vertices.max(axis=-1, keepdims=True)) / self.scale

    def chunk_size(self, max_comparisons: int) -> int:
        """Return how many vertices, at least 1, to pass to ``neighbours`` at once."""
        return max(max_comparisons // (self.size * max(self.tail.size, 1)), 1)

    def vertices_near(self, logarithms: Floats) -> Vertices:
        """Return a vertex near each point h, whose entries must be finite.

        The symbols connected to the first symbol move together until an inequality becomes an
        equality, which connects one more symbol.
        """
        h = np.rint(logarithms * self.scale).astype(np.int64)
        row = np.arange(len(h))
        in_tree = np.zeros(h.shape, dtype=np.bool_)
        in_tree[:, 0] = True
        for _ in range(self.size - 1):
            differences = h[:, :, None] - h[:, None, :]
            slack = np.where(self.finite_mask, self.N - differences, _UNBOUNDED)
            inward = ~in_tree[:, :, None] & in_tree[:, None, :]
            outward = in_tree[:, :, None] & ~in_tree[:, None, :]
            room_below = np.where(inward, slack, _UNBOUNDED).min(axis=2)
            room_above = np.where(outward, slack, _UNBOUNDED).min(axis=1)
            moves_down = room_below.min(axis=1) <= room_above.min(axis=1)
            step = np.where(moves_down, -room_below.min(axis=1), room_above.min(axis=1))
            h += np.where(in_tree, step[:, None], 0)
            added_symbol = np.where(
                moves_down, room_below.argmin(axis=1), room_above.argmin(axis=1)
            )
            in_tree[row, added_symbol] = True
        return h - h[:, :1]

    def neighbours(self, vertices: Vertices) -> tuple[Vertices, Booleans] | None:
        """Return the vertex reached by relaxing each equality, and whether it exists.

        Both arrays have one entry for each equality of each vertex. Return ``None`` if the
        equalities of some vertex do not form a tree, because of a tie among the perturbed entries.
        """
        differences = vertices[:, self.tail] - vertices[:, self.head]
        slack = self.N[self.tail, self.head] - differences
        is_equality = slack == 0
        if (np.count_nonzero(is_equality, axis=1) != self.size - 1).any():
            return None
        trees = np.nonzero(is_equality)[1].reshape(len(vertices), self.size - 1)
        direction = self._directions(trees)
        is_tightening = direction[:, :, self.tail] > direction[:, :, self.head]
        room = np.where(is_tightening, slack[:, None, :], _UNBOUNDED)
        steps: NDArray[np.int64] = room.min(axis=2)
        exists = steps < _UNBOUNDED
        return vertices[:, None, :] + (steps * exists)[:, :, None] * direction, exists

    def _directions(self, trees: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return, for each edge of each tree, the direction d in which relaxing it moves h.

        If B is the incidence matrix of the tree, ``B d = −(unit vector of the edge)``. The entries
        of the inverse of B are 0 and ±1, so rounding makes the inverse exact.
        """
        tree_count, edge_count = trees.shape
        tree = np.arange(tree_count)[:, None]
        edge = np.arange(edge_count)[None, :]
        B = np.zeros((tree_count, edge_count, self.size))
        B[tree, edge, self.tail[trees]] = 1.0
        B[tree, edge, self.head[trees]] = -1.0
        inverse = np.rint(np.linalg.inv(B[:, :, 1:])).astype(np.int64)
        d = np.zeros((tree_count, edge_count, self.size), dtype=np.int64)
        d[:, :, 1:] = -inverse.transpose(0, 2, 1)
        return d


def _is_implied(E: Floats) -> Booleans:
    """Return a mask of the entries that are sums of two others, up to rounding error.

    E must be closed.
    """
    k = len(E)
    is_implied = np.zeros((k, k), dtype=np.bool_)
    for z in range(k):
        is_other = np.arange(k) != z
        through_z = E[:, z, None] + E[None, z, :]
        is_implied |= np.outer(is_other, is_other) & (through_z <= E * (1 + 1e-12))
    return is_implied & ~np.eye(k, dtype=np.bool_)


def _add(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    is_unbounded = (a >= _UNBOUNDED) | (b >= _UNBOUNDED)
    return np.where(is_unbounded, _UNBOUNDED, a + b)
