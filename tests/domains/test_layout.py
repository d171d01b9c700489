"""Trees over cells: each is a partition into pairs of neighbours, and together they pair all."""

import numpy as np
import pytest

from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.domains.layout import Circle, Line, Merge, Nested, Plane, Scattered

NUMBERS = range(21)
SIZES = [1, 2, 3, 5, 16, 37]
SHAPES = [(1, 1), (1, 5), (5, 1), (2, 2), (3, 4), (4, 16), (5, 7), (16, 3), (2, 37), (125, 35)]


def _random_nested(size):
    """Return cells in about size/3 groups, these in two regions; the cells are shuffled."""
    rng = np.random.default_rng(size)
    group_count = max(1, size // 3)
    group_of = np.concatenate([np.arange(group_count), rng.integers(0, group_count, size)])[:size]
    group_of = rng.permutation(group_of)
    region_of_group = np.arange(group_count) % min(2, group_count)
    return Nested.from_groups([group_of, region_of_group[group_of]], size)


LAYOUTS = [
    *(Line(size) for size in SIZES),
    *(Circle(size) for size in SIZES),
    *(Plane(*shape) for shape in SHAPES),
    *(Nested(size, ()) for size in SIZES),
    *(_random_nested(size) for size in SIZES),
    *(Scattered(np.random.default_rng(size).normal(size=(size, 3))) for size in SIZES),
    Scattered(np.zeros((5, 2))),  # all at one point
]
every_layout = pytest.mark.parametrize(
    "layout", LAYOUTS, ids=[f"{type(layout).__name__}-{layout.size}" for layout in LAYOUTS]
)


def _check_partition(tree, size):
    """Fail unless every node has exactly one parent, and the last level is one root."""
    for merge in tree:
        assert merge.first.shape == merge.second.shape
        assert (merge.first >= 0).all()
        assert (merge.second >= -1).all()
        children = np.concatenate([merge.first, merge.second[merge.second >= 0]])
        assert np.sort(children).tolist() == list(range(size))
        size = merge.first.size
    assert size == 1


def _nodes(tree, size):
    """Return the set of cells below every node: a list for each level, from the cells up."""
    levels = [[frozenset([x]) for x in range(size)]]
    for merge in tree:
        below = [*levels[-1], frozenset()]  # −1 is a missing child
        levels.append([below[i] | below[j] for i, j in zip(merge.first, merge.second, strict=True)])
    return levels


def _pairs_of_cells(layout, number, level_count=1):
    """Return the pairs of single cells that meet in the tree's first levels."""
    levels = _nodes(layout.tree(number)[:level_count], layout.size)
    return {node for level in levels for node in level if len(node) == 2}


# --- partitions -----------------------------------------------------------------------------------


@every_layout
def test_trees_are_partitions(layout):
    for number in NUMBERS:
        _check_partition(layout.tree(number), layout.size)


@pytest.mark.parametrize(
    "merge",
    [
        Merge(np.array([0, 1]), np.array([1, 2])),
        Merge(np.array([0]), np.array([2])),
        Merge(np.array([0, 2]), np.array([1, -1])),
    ],
    ids=["two parents", "no parent", "two roots"],
)
def test_check_detects_trees_that_are_no_partition(merge):
    with pytest.raises(AssertionError):
        _check_partition([merge], 3)


@every_layout
def test_trees_are_reproducible_and_low(layout):
    """Pairs halve the cells, but for a node at each end of a row and an odd node in each group."""
    for number in (0, 7):
        tree = layout.tree(number)
        again = layout.tree(number)
        assert [merge.first.tolist() for merge in tree] == [m.first.tolist() for m in again]
        assert [merge.second.tolist() for merge in tree] == [m.second.tolist() for m in again]
        assert len(tree) <= np.log2(layout.size) + 4


# --- neighbours -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_nodes_of_a_line_are_intervals(size):
    for number in NUMBERS:
        for level in _nodes(Line(size).tree(number), size):
            assert all(max(node) - min(node) == len(node) - 1 for node in level)


@pytest.mark.parametrize("size", SIZES)
def test_nodes_of_a_circle_are_arcs(size):
    """An arc has exactly one end, unless it is the whole circle."""
    for number in NUMBERS:
        for level in _nodes(Circle(size).tree(number), size):
            ends = [sum((x + 1) % size not in node for x in node) for node in level]
            assert ends == [int(len(node) < size) for node in level]


@pytest.mark.parametrize("shape", SHAPES[:-1])
def test_nodes_of_a_plane_are_rectangles(shape):
    rows, columns = shape
    for number in NUMBERS:
        for level in _nodes(Plane(rows, columns).tree(number), rows * columns):
            for node in level:
                places = np.array([divmod(x, columns) for x in node])
                assert np.prod(np.ptp(places, axis=0) + 1) == len(node)


def test_rectangles_of_a_plane_are_not_long():
    """On a square grid, a node's sides differ by a factor of at most two, except at the edges."""
    for number in NUMBERS:
        tree = Plane(32, 32).tree(number)
        for level in _nodes(tree, 1024)[:7]:
            for node in level:
                places = np.array([divmod(x, 32) for x in node])
                sides = np.ptp(places, axis=0) + 1
                is_inside = places.min() > 0 and places.max() < 31
                assert not is_inside or sides.max() <= 2 * sides.min()


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("kind", [Line, Circle])
def test_sixteen_trees_pair_all_neighbours(kind, size):
    layout = kind(size)
    pairs = set().union(*(_pairs_of_cells(layout, number) for number in range(16)))
    neighbours = {frozenset([x, x + 1]) for x in range(size - 1)}
    if kind is Circle:
        neighbours.add(frozenset([size - 1, 0]))
    assert pairs == neighbours


@pytest.mark.parametrize("kind", [Line, Circle])
def test_sixteen_trees_have_all_offsets(kind):
    """Every run of 16 cells is a node of one of them."""
    layout = kind(64)
    runs = set()
    for number in range(16):
        runs.update(_nodes(layout.tree(number), 64)[4])
    starts = range(64 if kind is Circle else 64 - 15)
    assert {frozenset((x + i) % 64 for i in range(16)) for x in starts} <= runs


@pytest.mark.parametrize("shape", [(4, 4), (5, 7), (16, 9)])
def test_sixteen_trees_of_a_plane_pair_all_neighbours(shape):
    rows, columns = shape
    layout = Plane(rows, columns)
    pairs = set().union(*(_pairs_of_cells(layout, number, 2) for number in range(16)))
    cells = np.arange(rows * columns).reshape(shape)
    below = zip(cells[:-1].ravel().tolist(), cells[1:].ravel().tolist(), strict=True)
    right = zip(cells[:, :-1].ravel().tolist(), cells[:, 1:].ravel().tolist(), strict=True)
    assert pairs == {frozenset(pair) for pair in (*below, *right)}


def test_sixteen_trees_of_a_plane_have_all_offsets():
    """Every square of 4 × 4 cells is a node of one of them."""
    layout = Plane(16, 16)
    squares = set()
    for number in range(16):
        squares.update(_nodes(layout.tree(number)[:4], 256)[4])
    cells = np.arange(256).reshape(16, 16)
    corners = np.argwhere(np.ones((13, 13)))
    assert {frozenset(cells[i : i + 4, j : j + 4].ravel().tolist()) for i, j in corners} <= squares


# --- groups ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_nested_cells_merge_in_their_groups_first(size):
    layout = _random_nested(size)
    group_of_cell = np.arange(size)
    groupings = []
    for level in layout.levels:
        group_of_cell = level[group_of_cell]
        groupings.append(group_of_cell)
    for number in NUMBERS:
        for level in _nodes(layout.tree(number), size):
            for node in level:
                for group_of in groupings:
                    groups = np.unique(group_of[list(node)])
                    whole_groups = np.flatnonzero(np.isin(group_of, groups))
                    assert groups.size == 1 or node == frozenset(whole_groups.tolist())


def test_each_group_becomes_a_node():
    layout = _random_nested(37)
    groups = {frozenset(np.flatnonzero(layout.levels[0] == g)) for g in range(12)}
    for number in NUMBERS:
        levels = _nodes(layout.tree(number), 37)
        assert groups <= set().union(*levels)


def test_trees_without_groups_pair_different_cells():
    first, second = (_pairs_of_cells(Nested(37, ()), number) for number in (0, 1))
    assert len(first & second) < len(first) / 2


def test_groups_that_add_nothing_are_left_out():
    everything = np.zeros(4, dtype=np.int64)
    assert Nested.from_groups([everything], 4).levels == ()
    pairs = np.array([0, 0, 1, 1])
    levels = Nested.from_groups([pairs, everything, everything], 4).levels
    assert [level.tolist() for level in levels] == [[0, 0, 1, 1]]


# --- domains --------------------------------------------------------------------------------------


def _describe(domain):
    return domain.layout, domain.cells.tolist()


def test_integers_lie_on_a_line():
    assert _describe(IntegerDomain(5, start=18)) == (Line(5), [0, 1, 2, 3, 4])


@pytest.mark.parametrize("other", [None, "elsewhere"])
def test_grids_lie_on_a_plane(other):
    domain = GridDomain(0, 2, 0, 3, 1, other=other)
    assert _describe(domain) == (Plane(2, 3), [0, 1, 2, 3, 4, 5])


def test_numeric_labels_lie_on_a_line():
    assert _describe(Domain([1, 2, 5])) == (Line(3), [0, 1, 2])
    assert _describe(Domain([1, 2, 5, "other"], other="other")) == (Line(3), [0, 1, 2])
    assert _describe(Domain(["other", 1, 2, 5], other="other")) == (Line(3), [1, 2, 3])
    ages = ["under 18", "18 to 29", "30 to 59", "60 and over", "no answer"]
    assert _describe(Domain(ages)) == (Line(4), [0, 1, 2, 3])


@pytest.mark.parametrize(
    "domain",
    [
        Domain(["park", "café"]),
        Domain([3, 1, 2]),
        Domain([1]),
        Domain([1, "other"], other="other"),
        Domain(["other"], other="other"),
    ],
    ids=["words", "shuffled", "one number", "one number and other", "only other"],
)
def test_other_labels_have_no_layout(domain):
    assert _describe(domain) == (None, [])


@pytest.mark.parametrize("other", [None, "elsewhere"])
def test_h3_cells_lie_on_the_globe(other):
    pytest.importorskip("h3")
    domain = H3Domain.box(7, south=40.6, north=40.9, west=-74.1, east=-73.8, other=other)
    layout = domain.layout
    assert domain.cells.tolist() == list(range(domain.cell_count))
    assert layout.size == domain.cell_count
    latitudes, longitudes = domain.centres()
    assert np.degrees(np.arcsin(layout.points[:, 2])) == pytest.approx(latitudes)
    east = np.degrees(np.arctan2(layout.points[:, 1], layout.points[:, 0]))
    assert east == pytest.approx(longitudes)


def test_scattered_nodes_are_compact():
    """Half-way up, nodes are small compared with nodes of cells that are chosen at random."""
    points = np.random.default_rng(3).uniform(size=(512, 2))
    layout = Scattered(points)
    for number in range(5):
        node_of = np.arange(512)
        for merge in layout.tree(number)[:5]:
            parent_of = np.empty(node_of.max() + 1, dtype=int)
            parent_of[merge.first] = np.arange(merge.first.size)
            parent_of[merge.second] = np.arange(merge.first.size)
            node_of = parent_of[node_of]
        assert np.bincount(node_of).tolist() == [32] * 16
        spreads = [points[node_of == node].std(axis=0).max() for node in range(16)]
        assert max(spreads) < 0.6 * points.std(axis=0).min()


def test_scattered_trees_differ():
    """The first pairs of some trees are not those of others, so that no pair is always split."""
    points = np.random.default_rng(4).uniform(size=(200, 2))
    pairs = set()
    for number in range(16):
        merge = Scattered(points).tree(number)[0]
        pairs |= {frozenset(pair) for pair in zip(merge.first, merge.second, strict=True)}
    assert len(pairs) > 400  # one tree has 100
