"""Partitions: tiles against a plain loop, nearest places against great-circle distances."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.contexts import Blocks
from sfumato.domains import GridDomain
from sfumato.domains.partitions import grid_tiles, nearest_places
from sfumato.errors import InvalidContext


def _naive_tiles(rows, columns, tile_rows, tile_columns):
    """Cell (i, j) lies in tile (i·R/rows, j·C/columns), rounded down."""
    return [
        (i * tile_rows // rows) * tile_columns + j * tile_columns // columns
        for i, j in itertools.product(range(rows), range(columns))
    ]


def _distance(latitude, longitude, latitude2, longitude2):
    """The angle between two points of the globe (Vincenty's form: accurate near and far)."""
    phi = math.radians(latitude)
    phi2 = math.radians(latitude2)
    d = math.radians(longitude2 - longitude)
    across = math.hypot(
        math.cos(phi2) * math.sin(d),
        math.cos(phi) * math.sin(phi2) - math.sin(phi) * math.cos(phi2) * math.cos(d),
    )
    return math.atan2(
        across, math.sin(phi) * math.sin(phi2) + math.cos(phi) * math.cos(phi2) * math.cos(d)
    )


# --- tiles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "columns", "tile_rows", "tile_columns"),
    [
        (1, 1, 1, 1),
        (5, 7, 2, 3),
        (5, 7, 5, 7),
        (5, 7, 1, 1),
        (10, 4, 3, 4),
        (7, 9, 4, 2),
        (125, 35, 25, 7),
    ],
)
def test_tiles_match_a_plain_loop(rows, columns, tile_rows, tile_columns):
    grid = GridDomain(0, rows * 0.5, 0, columns * 0.5, 0.5)
    tiles = grid_tiles(grid, tile_rows, tile_columns)
    assert tiles.tolist() == _naive_tiles(rows, columns, tile_rows, tile_columns)


@pytest.mark.parametrize(("length", "parts"), [(7, 3), (10, 4), (125, 60), (9, 9)])
def test_tiles_are_as_equal_as_possible(length, parts):
    sizes = np.bincount(grid_tiles(GridDomain(0, 1, 0, length, 1), 1, parts))
    assert sizes.size == parts
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("bad", [0, -1, 4, 1.0, True, None, "2"])
def test_invalid_numbers_of_tiles_raise(bad):
    grid = GridDomain(0, 3, 0, 3, 1)
    with pytest.raises(InvalidContext, match="rows must be an integer from 1 to 3"):
        grid_tiles(grid, bad, 1)
    with pytest.raises(InvalidContext, match="columns must be an integer from 1 to 3"):
        grid_tiles(grid, 1, bad)


@pytest.mark.parametrize(
    "make", [lambda grid: grid_tiles(grid, 2, 2), lambda grid: nearest_places(grid, [0, 3], [0, 3])]
)
def test_other_has_its_own_block(make):
    blocks = make(GridDomain(0, 3, 0, 3, 1, other="else"))
    assert blocks.size == 10
    assert blocks[-1] not in blocks[:-1]
    assert Blocks(blocks, 1, domain=GridDomain(0, 3, 0, 3, 1, other="else")).sizes[-1] == 1


# --- nearest places -------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.integers(-80, 70),
    st.integers(-180, 170),
    st.lists(st.tuples(st.floats(-90, 90), st.floats(-180, 180)), min_size=1, max_size=6),
)
def test_nearest_place_is_nearest_on_the_globe(south, west, places):
    grid = GridDomain(south, south + 10, west, west + 10, 2)
    nearest = nearest_places(grid, *zip(*places, strict=True))
    for latitude, longitude, place in zip(*grid.centres(), nearest.tolist(), strict=True):
        distances = [_distance(latitude, longitude, *other) for other in places]
        assert distances[place] <= min(distances) + 1e-9


def test_distances_cross_the_date_line():
    grid = GridDomain(0, 1, 178, 180, 1)
    assert nearest_places(grid, [0.5, 0.5], [-179.0, 177.0]).tolist() == [1, 0]


@pytest.mark.parametrize("first", [(0.5, 0.0), (0.5, 3.0)])
def test_ties_go_to_the_first_place(first):
    second = (0.5, 3.0 - first[1])
    assert nearest_places(GridDomain(0, 1, 0, 3, 1), *zip(first, second, strict=True))[1] == 0


@pytest.mark.parametrize("turn", range(4))
def test_four_way_ties_go_to_the_first_place(turn):
    corners = [(-1, -1), (-1, 1), (1, 1), (1, -1)]
    places = corners[turn:] + corners[:turn]
    assert nearest_places(GridDomain(-1, 1, -1, 1, 2), *zip(*places, strict=True)).tolist() == [0]


def test_duplicate_places_go_to_the_first():
    grid = GridDomain(0, 1, 0, 4, 1)
    assert nearest_places(grid, [0.5] * 4, [4.0, 0.0, 0.0, 4.0]).tolist() == [1, 1, 0, 0]
    assert nearest_places(grid, [0.5] * 2, [-180.0, 180.0]).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("latitudes", "longitudes"),
    [([], []), ([math.nan], [0]), ([0], [math.inf]), ([0, 1], [0]), (["x"], [0]), ([100], [0])],
    ids=["none", "NaN", "inf", "unequal", "text", "latitude"],
)
def test_invalid_places_raise(latitudes, longitudes):
    with pytest.raises(InvalidContext, match="latitudes"):
        nearest_places(GridDomain(0, 2, 0, 2, 1), latitudes, longitudes)
