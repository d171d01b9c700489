"""Layouts: where the cells of a domain lie, which is all that a decoder needs to know of it.

A layout gives trees. A tree merges cells into pairs, these into pairs again, until one node is
left, so that cells close to each other meet early. No single tree treats all neighbours alike: two
cells next to each other may be on different sides of its root. So a layout gives many trees, which
differ in where the pairs begin.

A domain with places or with an order returns its layout from ``Domain.layout``. For a new kind of
domain, choose one of the layouts below, or write a class with ``size`` and ``tree``.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["Circle", "Layout", "Line", "Merge", "Nested", "Plane", "Scattered", "Tree"]

_TILE_BITS = 2  # the first 16 trees of a plane start at all cells of a tile of 4 × 4


@dataclass(frozen=True, eq=False)
class Merge:
    """One level of a tree: node i of the next level has the children ``first[i]``, ``second[i]``.

    A node with one child has −1 as its second.
    """

    first: Symbols
    second: Symbols

    @classmethod
    def of_row(cls, length: int, offset: int) -> "Merge":
        """Merge the neighbours in a row; if ``offset`` is 1, the first node keeps to itself."""
        node_count = (length + offset + 1) // 2
        second = 2 * np.arange(node_count) + 1 - offset
        first = second - 1
        second[second == length] = -1
        if offset:
            first[0] = 0
            second[0] = -1
        return cls(first, second)

    def in_every_row(self, row_count: int, length: int) -> "Merge":
        """Repeat the merge for ``row_count`` rows of ``length`` nodes, one after the other."""
        starts = length * np.arange(row_count)[:, None]
        second = np.where(self.second < 0, -1, starts + self.second)
        return Merge((starts + self.first).ravel(), second.ravel())

    def in_every_column(self, column_count: int) -> "Merge":
        """Merge rows of ``column_count`` nodes as this merge does with single nodes."""
        columns = np.arange(column_count)
        second = np.where(
            self.second[:, None] < 0, -1, column_count * self.second[:, None] + columns
        )
        return Merge((column_count * self.first[:, None] + columns).ravel(), second.ravel())


Tree = list[Merge]
"""The levels of a tree, from the cells to the root."""


class Layout(ABC):
    """Where cells lie. ``size`` is their number."""

    size: int

    @abstractmethod
    def tree(self, number: int) -> Tree:
        """Return a tree over the cells. Trees with different numbers pair different cells."""


@dataclass(frozen=True)
class Line(Layout):
    """Cells in a row: ages, incomes, minutes.

    >>> [merge.second.tolist() for merge in Line(5).tree(0)]
    [[1, 3, -1], [1, -1], [1]]
    """

    size: int

    def tree(self, number: int) -> Tree:
        """Return the tree whose pairs begin at an offset that depends on the number."""
        return _row_tree(self.size, _row_offset(number) % _next_power(self.size))


@dataclass(frozen=True)
class Circle(Layout):
    """Cells in a circle: hours of a day, directions. The last cell is next to the first."""

    size: int

    def tree(self, number: int) -> Tree:
        """Return a tree over the row that begins at a cell that depends on the number."""
        cells = (np.arange(self.size) + _row_offset(number)) % self.size
        tree = _row_tree(self.size, 0)
        if tree:
            second = np.where(tree[0].second < 0, -1, cells[tree[0].second])
            tree[0] = Merge(cells[tree[0].first], second)
        return tree


@dataclass(frozen=True)
class Plane(Layout):
    """Cells of a grid, row by row. Trees merge along columns and rows in turn."""

    rows: int
    columns: int

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of cells."""
        return self.rows * self.columns

    def tree(self, number: int) -> Tree:
        """Return the tree whose pairs begin at offsets that depend on the number."""
        offsets = list(self._offsets(number))
        shape = [self.rows, self.columns]
        axis = _scramble(number) >> 15 & 1
        tree = []
        while max(shape) > 1:
            if shape[axis] == 1 or shape[1 - axis] > 2 * shape[axis] + 1:
                axis = 1 - axis
            merge = Merge.of_row(shape[axis], offsets[axis] & 1)
            length = merge.first.size
            if axis == 0:
                tree.append(merge.in_every_column(shape[1]))
            else:
                tree.append(merge.in_every_row(shape[0], shape[1]))
            shape[axis] = length
            offsets[axis] >>= 1
            axis = 1 - axis
        return tree

    def _offsets(self, number: int) -> tuple[int, int]:
        """Return the offsets of rows and columns.

        Their lowest two bits go through all cells of a tile of 4 × 4, far ones first. The other
        bits are scrambled.
        """
        bits = [number >> i & 1 for i in range(4)]
        scrambled = _scramble(number)
        row = bits[0] | bits[2] << 1 | (scrambled >> 3 & 0xFFF) << _TILE_BITS
        column = bits[0] ^ bits[1] | (bits[2] ^ bits[3]) << 1 | scrambled >> 17 << _TILE_BITS
        return row % _next_power(self.rows), column % _next_power(self.columns)


@dataclass(frozen=True, eq=False)
class Nested(Layout):
    """Cells in groups, the groups in larger groups, and so on: regions, categories, H3 cells.

    ``size``: the number of cells.
    ``levels[0][x]`` is the group of cell x, ``levels[1][g]`` the larger group of group g, and so
    on. Groups are numbered from 0 without gaps.
    """

    size: int
    levels: tuple[Symbols, ...]

    @classmethod
    def from_groups(cls, groups: Sequence[Symbols], cell_count: int) -> "Nested":
        """Nest the cells in groups, given the group of every cell at each level, finest first.

        >>> nested = Nested.from_groups([np.array([0, 0, 1, 2]), np.array([0, 0, 0, 1])], 4)
        >>> [level.tolist() for level in nested.levels]
        [[0, 0, 1, 2], [0, 0, 1]]
        """
        levels = []
        first_cells = np.arange(cell_count)  # a cell of every node of the level below
        for group_of in groups:
            level = group_of[first_cells]
            if np.unique(level).size == 1:  # a single group has nothing to add
                break
            levels.append(level)
            first_cells = first_cells[np.unique(level, return_index=True)[1]]
        return cls(cell_count, tuple(levels))

    def tree(self, number: int) -> Tree:
        """Return the tree that merges groups; in which order, depends on the number."""
        tree = []
        node_count = int(self.levels[-1].max()) + 1 if self.levels else self.size
        everything: Symbols = np.zeros(node_count, dtype=np.int64)
        for depth, group_of in enumerate((*self.levels, everything)):
            tree.extend(_merge_groups(group_of, _scramble(number + 16 * depth)))
        return tree


@dataclass(frozen=True, eq=False)
class Scattered(Layout):
    """Cells at points in space: hexagons on the globe, stations, towns.

    ``points``: a row of coordinates for each cell. A tree halves the cells again and again, across
    the direction in which they are furthest apart. Trees see the points from different sides.
    """

    points: Floats

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of cells."""
        return int(self.points.shape[0])

    def tree(self, number: int) -> Tree:
        """Return the tree of the points after a rotation that depends on the number."""
        coordinates = self.points @ _rotation(self.points.shape[1], number)
        order: Symbols = np.arange(self.size)
        starts: Symbols = np.zeros(1, dtype=np.int64)
        while starts.size < self.size:
            order, starts = _halve_nodes(coordinates, order, starts)
        # Nodes of one cell were not halved further: nodes are now single cells, in order, at one
        # or at two depths. Merge upwards.
        return _merge_halves(order, self.size)


def _halve_nodes(coordinates: Floats, order: Symbols, starts: Symbols) -> tuple[Symbols, Symbols]:
    """Halve each node, a run of ``order``, at the median of its widest coordinate."""
    node_count = starts.size
    sizes = np.diff(np.append(starts, order.size))
    node_of = np.repeat(np.arange(node_count), sizes)
    ordered = coordinates[order]
    widths = np.maximum.reduceat(ordered, starts) - np.minimum.reduceat(ordered, starts)
    widest = widths.argmax(axis=1)
    keys = ordered[np.arange(order.size), widest[node_of]]
    order = order[np.lexsort((keys, node_of))]
    middles = starts + (sizes + 1) // 2
    halves = np.column_stack([starts, middles]).ravel()
    is_empty = np.append(np.diff(halves), order.size - halves[-1]) == 0
    return order, halves[~is_empty]


def _merge_halves(order: Symbols, size: int) -> Tree:
    """Return the tree whose nodes were halved until each was one cell of ``order``."""
    sizes_by_depth = [np.array([size])]
    while sizes_by_depth[-1].max() > 1:
        sizes = sizes_by_depth[-1]
        halves = np.column_stack([(sizes + 1) // 2, sizes // 2]).ravel()
        sizes_by_depth.append(halves[halves > 0])
    tree = []
    nodes = order
    for sizes in sizes_by_depth[-2::-1]:
        has_second = sizes > 1
        first = np.cumsum(np.append(0, 1 + has_second[:-1]))
        second = np.where(has_second, nodes[np.minimum(first + 1, nodes.size - 1)], -1)
        tree.append(Merge(nodes[first], second))
        nodes = np.arange(sizes.size)
    return tree


def _rotation(dimensions: int, number: int) -> Floats:
    """Return an orthogonal matrix that looks random."""
    seeds = number * dimensions**2 + np.arange(dimensions**2)
    entries = np.array([_scramble(int(seed)) for seed in seeds]) / 2**31 - 1
    rotation: Floats = np.linalg.qr(entries.reshape(dimensions, dimensions))[0]
    return rotation


def _merge_groups(group_of: Symbols, seed: int) -> Tree:
    """Merge nodes into pairs within their groups, until every group is one node."""
    scrambled = (np.arange(group_of.size) ^ seed) * 2654435761 % 2**32
    order = np.lexsort((scrambled, group_of))
    group = group_of[order]
    nodes = order
    tree: Tree = []
    while True:
        starts = np.searchsorted(group, group)  # where the node's group starts
        is_first = (np.arange(group.size) - starts) % 2 == 0
        positions = np.flatnonzero(is_first)
        if positions.size == group.size:
            # One node is left of every group. Put them in the groups' order, unless they are.
            return tree if tree else [Merge(nodes, np.full(nodes.size, -1))]
        following = np.minimum(positions + 1, group.size - 1)
        has_second = (following > positions) & (group[following] == group[positions])
        tree.append(Merge(nodes[positions], np.where(has_second, nodes[following], -1)))
        group = group[positions]
        nodes = np.arange(group.size)


def _row_tree(size: int, offset: int) -> Tree:
    tree = []
    while size > 1:
        tree.append(Merge.of_row(size, offset & 1))
        size = tree[-1].first.size
        offset >>= 1
    return tree


def _row_offset(number: int) -> int:
    """Return where the pairs begin: the first 16 trees have all offsets modulo 16."""
    return number % 16 | _scramble(number) >> 3 << 4


def _next_power(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _scramble(number: int) -> int:
    """Return 32 bits that look random (multiplicative hashing)."""
    return (number * 2654435761 + 97) % 2**32 * 2246822519 % 2**32
