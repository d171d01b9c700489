"""H3 cells: one resolution, in a fixed order, with parents; and never a position in an error."""

import math
import traceback

import numpy as np
import pytest

from sfumato.contexts import Uniform
from sfumato.domains import H3Domain
from sfumato.domains.partitions import h3_parents
from sfumato.errors import InvalidContext, SfumatoError, UnknownValue
from sfumato.survey import Survey

h3 = pytest.importorskip("h3")

BOX = {"south": 40.70, "north": 40.82, "west": -74.02, "east": -73.92}
MANHATTAN = H3Domain.box(7, **BOX)
COARSE = h3.cell_to_parent(MANHATTAN.labels[0], 6)
CANARY = 40.7234517


def test_cells_are_labels_in_order():
    cells = list(MANHATTAN.labels[3:0:-1])
    domain = H3Domain(cells)
    assert list(domain.labels) == cells
    assert domain.symbols([cells[2], cells[0]]).tolist() == [2, 0]
    assert (domain.resolution, domain.cell_count, domain.size) == (7, 3, 3)


def test_box_contains_the_cells_with_centres_inside():
    near = {
        cell for base in h3.grid_disk(h3.latlng_to_cell(40.76, -73.97, 7), 12) for cell in [base]
    }
    centres = {cell: h3.cell_to_latlng(cell) for cell in near}
    inside = [
        cell
        for cell, (lat, lng) in centres.items()
        if BOX["south"] <= lat <= BOX["north"] and BOX["west"] <= lng <= BOX["east"]
    ]
    assert list(MANHATTAN.labels) == sorted(inside)


@pytest.mark.parametrize(("west", "east"), [(-120, 100), (-170, 170), (-180, 180)])
def test_wide_boxes_are_not_inverted(west, east):
    everywhere = [cell for base in h3.get_res0_cells() for cell in h3.cell_to_children(base, 1)]
    inside = [
        cell
        for cell, (lat, lng) in ((cell, h3.cell_to_latlng(cell)) for cell in everywhere)
        if -60 <= lat <= 60 and west <= lng <= east
    ]
    assert list(H3Domain.box(1, south=-60, north=60, west=west, east=east).labels) == sorted(inside)


def test_mixed_resolutions_raise():
    with pytest.raises(InvalidContext, match=r"the same resolution; got \[6, 7\]"):
        H3Domain([MANHATTAN.labels[0], COARSE])


@pytest.mark.parametrize(
    "cell", ["", "park", "872a10088fffff", 608_000_000_000_000_000, "000000000000000"]
)
def test_invalid_cells_raise(cell):
    with pytest.raises(InvalidContext):
        H3Domain([MANHATTAN.labels[0], cell])


@pytest.mark.parametrize("cells", [[], MANHATTAN.labels[0], None, [MANHATTAN.labels[0]] * 2])
def test_cells_must_be_distinct_indices(cells):
    with pytest.raises(InvalidContext):
        H3Domain(cells)


@pytest.mark.parametrize(
    "change",
    [
        {"south": 41},
        {"east": -75},
        {"south": -91},
        {"east": 181},
        {"south": math.nan},
        {"north": 40.7000001},
    ],
)
def test_empty_boxes_raise(change):
    with pytest.raises(InvalidContext, match=r"south|box"):
        H3Domain.box(7, **{**BOX, **change})


@pytest.mark.parametrize("resolution", [-1, 16])
def test_resolution_must_be_0_to_15(resolution):
    with pytest.raises(InvalidContext, match="between 0 and 15"):
        H3Domain.box(resolution, **BOX)


# --- positions ------------------------------------------------------------------------------------


def test_centres_lie_in_their_cells():
    assert MANHATTAN.symbols_at(*MANHATTAN.centres()).tolist() == list(range(MANHATTAN.size))


@pytest.mark.parametrize(
    ("latitude", "longitude"),
    [(math.nan, -74), (40.7, math.inf), (None, -74), (91, 0), (40.7, 181), (0, 0)],
)
def test_positions_outside_raise_or_become_other(latitude, longitude):
    at = np.array([40.76, latitude], dtype=float), np.array([-73.97, longitude], dtype=float)
    with pytest.raises(UnknownValue, match=r"1 of 2 values .* position 1"):
        MANHATTAN.symbols_at(*at)
    with_other = H3Domain(MANHATTAN.labels, other="else")
    assert with_other.symbols_at(*at).tolist()[1] == with_other.cell_count == MANHATTAN.size


@pytest.mark.parametrize(
    ("latitudes", "longitudes"),
    [
        ([f"{CANARY} N"], [0]),
        ([CANARY], [0]),
        ([CANARY, CANARY], [0]),
        ([[CANARY]], [[0]]),
        (CANARY, 0),
    ],
    ids=["text", "elsewhere", "unequal", "nested", "single"],
)
def test_errors_do_not_echo_positions(latitudes, longitudes):
    with pytest.raises(SfumatoError) as caught:
        MANHATTAN.symbols_at(latitudes, longitudes)
    seen = caught.value
    while seen is not None:
        assert str(CANARY) not in repr(seen) + str(seen)
        seen = seen.__cause__ or seen.__context__
    assert str(CANARY) not in "".join(traceback.format_exception(caught.value))


# --- parents, other, records ----------------------------------------------------------------------


def test_parents_contain_their_cells():
    parents = MANHATTAN.parents(5)
    assert parents == [h3.cell_to_parent(cell, 5) for cell in MANHATTAN.labels]
    blocks = h3_parents(MANHATTAN, 5).tolist()
    for x, parent in enumerate(parents):
        for x2, parent2 in enumerate(parents):
            assert (blocks[x] == blocks[x2]) == (parent == parent2)


@pytest.mark.parametrize("resolution", [-1, 7, 8])
def test_parents_must_be_coarser(resolution):
    with pytest.raises(InvalidContext, match=r"resolution of parents must be in 0\.\.6"):
        MANHATTAN.parents(resolution)


def test_other_has_its_own_block():
    blocks = h3_parents(H3Domain(MANHATTAN.labels, other="else"), 6)
    assert blocks.size == MANHATTAN.size + 1
    assert blocks[-1] not in blocks[:-1]


def test_record_lists_the_cells():
    record = H3Domain(MANHATTAN.labels[:2], other="else").to_record()
    assert record == {"kind": "h3", "cells": list(MANHATTAN.labels[:2]), "other": "else"}


def test_different_domains_have_different_records():
    """The order of labels is meaning: a survey must come back with every symbol where it was."""
    cells = list(MANHATTAN.labels[:3])
    try:
        domain = H3Domain(cells, other=cells[0])
    except InvalidContext:
        return
    again = Survey.from_resolved(Survey("where", Uniform(domain, 1)).resolved())
    assert list(again.context.domain.labels) == list(domain.labels)
