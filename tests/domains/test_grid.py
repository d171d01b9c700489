"""Grids: from degrees to cells in integers of 1e-7 degree, and never a position in an error."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.domains import GridDomain
from sfumato.errors import InvalidContext, InvalidSymbols, SfumatoError, UnknownValue
from support.error_text import full_error_text

USA = GridDomain(25, 50, -130, -60, 0.2)
CANARY = 41.8723051


def _naive_cell(degrees, south, step):
    """``⌊(⌊degrees·10⁷ + ½⌋ − origin)/step⌋`` in fractions, for a decimal written as text."""
    units = math.floor(Fraction(degrees) * 10**7 + Fraction(1, 2))
    return math.floor((units - Fraction(south) * 10**7) / (Fraction(step) * 10**7))


# --- cells and their edges ------------------------------------------------------------------------


def test_grid_of_the_paper():
    assert USA.shape == (125, 350)
    assert USA.size == USA.cell_count == 43_750
    assert USA.other is None


def test_lower_edges_belong_to_a_cell_and_upper_edges_to_the_next():
    grid = GridDomain(0, 2, 0, 3, 1)
    assert grid.symbols_at([0, 0, 1, 1.9999999], [0, 1, 0, 2.9999999]).tolist() == [0, 1, 3, 5]
    for latitude, longitude in ((2, 0), (0, 3), (-0.0000001, 0), (0, -0.0000001)):
        with pytest.raises(UnknownValue):
            grid.symbols_at([latitude], [longitude])


@pytest.mark.parametrize(
    ("degrees", "row"), [("0.99999994", 0), ("0.99999995001", 1), ("0.99999996", 1), ("1", 1)]
)
def test_coordinates_are_rounded_to_the_seventh_decimal(degrees, row):
    assert GridDomain(0, 2, 0, 1, 1).symbols_at([float(degrees)], [0]).tolist() == [row]


def test_positions_just_outside_are_rounded_in_and_just_inside_out():
    grid = GridDomain(0, 1, 0, 1, 1)
    assert grid.symbols_at([-0.00000004], [0]).tolist() == [0]
    with pytest.raises(UnknownValue):
        grid.symbols_at([-0.00000006], [0])
    with pytest.raises(UnknownValue):
        grid.symbols_at([0.99999996], [0])


def test_edges_without_exact_floats_are_exact():
    rows = [f"{25 + Decimal(row) / 5:.1f}" for row in range(125)]
    columns = [f"{-130 + Decimal(column) / 5:.1f}" for column in range(350)]
    assert "25.2" in rows
    assert USA.symbols_at([float(row) for row in rows], [-130.0] * 125).tolist() == list(
        range(0, 43_750, 350)
    )
    assert USA.symbols_at([25.0] * 350, [float(column) for column in columns]).tolist() == list(
        range(350)
    )


def test_one_unit_below_an_edge_lies_in_the_cell_below():
    below = [(25 * 10**7 + row * 2 * 10**6 - 1) / 10**7 for row in range(1, 126)]
    assert USA.symbols_at(below, [-130.0] * 125).tolist() == list(range(0, 43_750, 350))


@given(st.integers(-90 * 10**7, 90 * 10**7), st.sampled_from([-4, -1, 0, 1, 4]))
def test_cells_match_exact_fractions(units, tenths):
    """Any coordinate of eight decimals that is not half way between two units."""
    text = str(Fraction(10 * units + tenths, 10**8))
    degrees = float(Fraction(text))
    grid = GridDomain("-63.7", "71.3", -3, 3, "0.3", other="else")
    row = _naive_cell(text, "-63.7", "0.3")
    expected = row * 20 if 0 <= row < 450 else grid.cell_count
    assert grid.symbols_at([degrees], [-3]).tolist() == [expected]


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, None, 91, -91, 1e300, -1e-3, 2.0, 360.5]
)
def test_positions_outside_raise_without_echo_or_become_other(bad):
    latitudes = np.array([1.0, bad], dtype=np.float64)
    grid = GridDomain(0, 2, 0, 2, 1)
    with pytest.raises(UnknownValue, match=r"1 of 2 values .* at position 1"):
        grid.symbols_at(latitudes, [0, 0])
    assert GridDomain(0, 2, 0, 2, 1, other="else").symbols_at(latitudes, [0, 0]).tolist() == [2, 4]
    assert GridDomain(0, 2, 0, 2, 1, other="else").symbols_at([0, 0], latitudes).tolist() == [1, 4]


def test_positions_may_be_pairs():
    grid = GridDomain(0, 2, 0, 2, 1, other="else")
    assert grid.symbols([(0, 1), (1.5, 0), (None, 0), (7, 7)]).tolist() == [1, 2, 4, 4]
    assert grid.symbols(np.array([[0.0, 1.0], [1.0, 1.0]])).tolist() == [1, 3]


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.0],
        [(1, 2, 3)],
        [[(1, 2)]],
        [(1, 2), (1,)],
        [("one", "two")],
        ["1,2"],
        [{"latitude": 1}],
        [object()],
    ],
    ids=["flat", "triples", "nested", "ragged", "words", "text", "mapping", "object"],
)
def test_other_shapes_and_types_raise(values):
    with pytest.raises(SfumatoError):
        GridDomain(0, 2, 0, 2, 1).symbols(values)


@pytest.mark.parametrize(
    ("latitudes", "longitudes"), [([1], [1, 1]), ([[1]], [[1]]), (1, 1), (["x"], [1]), ([{}], [1])]
)
def test_latitudes_and_longitudes_must_be_equally_long_numbers(latitudes, longitudes):
    with pytest.raises(InvalidSymbols, match="latitudes and longitudes"):
        GridDomain(0, 2, 0, 2, 1).symbols_at(latitudes, longitudes)


@pytest.mark.parametrize(
    "values",
    [
        [(CANARY, 0)],
        [(str(CANARY), 0)],
        [(f"{CANARY} N", 0)],
        [(CANARY, None)],
        [(0, 0), (CANARY,)],
        [CANARY],
    ],
)
def test_errors_do_not_echo_positions(values):
    with pytest.raises(SfumatoError) as caught:
        GridDomain(0, 2, 0, 2, 1).symbols(values)
    assert str(CANARY) not in full_error_text(caught.value)


def test_errors_of_two_columns_do_not_echo_positions():
    with pytest.raises(InvalidSymbols) as caught:
        GridDomain(0, 2, 0, 2, 1).symbols_at([f"{CANARY} N"], [0])
    assert str(CANARY) not in full_error_text(caught.value)


# --- the end of the globe -------------------------------------------------------------------------


GLOBE = GridDomain(-90, 90, -180, 180, 45)
NORTH_EAST = GridDomain(0, 90, 0, 180, 45)
SOUTH_WEST = GridDomain(-90, 0, -180, 0, 45)
EUROPE = GridDomain(30, 75, -15, 45, 15)


def _cells(grid, positions):
    return [grid.cells_at([latitude], [longitude]).item() for latitude, longitude in positions]


def test_poles_and_antimeridian_belong_to_a_grid_of_the_whole_globe():
    last_row = 3 * 8
    assert _cells(GLOBE, [(90, 0), (90, -180), (90, 180)]) == [last_row + 4, last_row, last_row]
    assert _cells(GLOBE, [(-90, 0), (-90, 180)]) == [4, 0]
    for latitude in (-90, -0.5, 44, 90):
        assert len(set(_cells(GLOBE, [(latitude, 180), (latitude, -180)]))) == 1
    assert _cells(GLOBE, [(0, 179.9999999), (0, 180), (0, -179.9999999)]) == [23, 16, 16]


def test_coordinates_that_round_to_the_end_of_the_globe_belong_to_it():
    assert _cells(GLOBE, [(90.00000004, 0), (0, 180.00000004), (0, -180.00000004)]) == [28, 16, 16]
    assert _cells(GLOBE, [(90.00000006, 0), (0, 180.00000006), (0, -180.00000006)]) == [-1, -1, -1]


def test_part_of_the_globe_contains_the_end_that_it_reaches():
    assert _cells(NORTH_EAST, [(90, 0), (0, 180), (0, -180), (90, 180)]) == [4, 3, 3, 7]
    assert _cells(SOUTH_WEST, [(-90, 180), (-90, -180), (0, -10), (-10, 0)]) == [0, 0, -1, -1]
    assert _cells(EUROPE, [(75, 0), (90, 0), (45, 45), (45, 180)]) == [-1, -1, -1, -1]


def test_arrays_of_positions_are_not_changed():
    latitudes = np.array([90.0, 90.0])
    longitudes = np.array([180.0, -180.0])
    assert GLOBE.symbols_at(latitudes, longitudes).tolist() == [24, 24]
    assert latitudes.tolist() == [90, 90]
    assert longitudes.tolist() == [180, -180]


def test_edition_1_keeps_the_end_of_the_globe_outside():
    old = GLOBE.for_edition(1)
    assert _cells(old, [(90, 0), (0, 180), (0, -180), (-90, 0)]) == [-1, -1, 16, 4]
    assert old == GLOBE
    assert old.to_record() == GLOBE.to_record()
    assert GLOBE.for_edition(2) is GLOBE
    assert old.for_edition(2)._joins_edges


@pytest.mark.parametrize("other", [None, "at sea"])
def test_survey_reads_the_end_of_the_globe_as_its_edition_does(other):
    grid = GridDomain(-90, 90, -180, 180, 45, other=other)
    outside = -1 if other is None else grid.cell_count
    for edition, cell in ((1, outside), (2, 24)):
        survey = sf.Survey("globe", sf.Uniform(grid, 1), edition=edition)
        for survey_as_read in (survey, sf.Survey.from_resolved(survey.resolved())):
            assert survey_as_read.fingerprint == survey.fingerprint
            assert survey_as_read.context.domain.find((90, 180)) == cell
            if cell < 0:
                with pytest.raises(UnknownValue):
                    survey_as_read.privatize([(90, 180)])
            else:
                assert len(survey_as_read.privatize([(90, 180)])) == 1


# --- labels ---------------------------------------------------------------------------------------


def test_label_is_the_south_western_corner():
    assert USA.labels[0] == "25,-130"
    assert USA.labels[351] == "25.2,-129.8"
    assert USA.labels[-1] == "49.8,-60.2"
    assert USA.labels[1:3] == ("25,-129.8", "25,-129.6")


def test_labels_round_trip():
    for grid in (USA, GridDomain("-0.3", "0.3", "-1.1", "1.3", "0.1", other="else")):
        sample = range(0, grid.size, 7)
        assert grid.label_symbols([grid.labels[x] for x in sample], "cells").tolist() == list(
            sample
        )


def test_labels_round_trip_at_the_finest_step_and_with_other():
    grid = GridDomain(
        "-0.0000002", "0.0000001", "9.9999999", "10.0000001", "0.0000001", other="else"
    )
    assert list(grid.labels)[:2] == ["-0.0000002,9.9999999", "-0.0000002,10"]
    assert grid.label_symbols(grid.labels, "cells").tolist() == list(range(7))
    assert len(grid.labels) == grid.size == 7
    assert grid.labels[6] == "else"
    with pytest.raises(IndexError):
        grid.labels[7]


def test_labels_are_distinct_even_with_other():
    try:
        grid = GridDomain(0, 2, 0, 2, 1, other="0,0")
    except InvalidContext:
        return
    assert len(set(grid.labels)) == grid.size


@pytest.mark.parametrize(
    "label",
    ["25.1,-130", "25.20,-129.8", "50,-60", "nowhere", "25", "nan,nan", "inf,0", 7, "1,2,3"],
)
def test_error_names_labels_that_are_not_corners(label):
    with pytest.raises(InvalidContext, match=r"cells contains .* not the south-western"):
        USA.label_symbols([label], "cells")


def test_centres_lie_in_their_cells():
    grid = GridDomain("-1.3", "1.4", 10, 11, "0.1")
    assert grid.symbols_at(*grid.centres()).tolist() == list(range(grid.cell_count))


def test_find_returns_the_symbol_of_one_value():
    """``find`` is how columns of tables are looked up."""
    grid = GridDomain(0, 2, 0, 2, 1, other="else")
    assert grid.find("somewhere") in (4, -1)


# --- what makes a grid ----------------------------------------------------------------------------


def test_decimals_are_exact():
    assert GridDomain("25.0", 50, -130.0, "-60", "0.20").to_record() == USA.to_record()
    assert GridDomain(25, 50, -130, -60, np.float64(0.2)) == USA
    assert USA.to_record() == {
        "kind": "grid",
        "south": "25",
        "north": "50",
        "west": "-130",
        "east": "-60",
        "step": "0.2",
        "other": None,
    }


def test_grids_differ_by_edge_step_and_other():
    others = [(24.8, 50, -130, -60, 0.2), (25, 50, -130, -60, 0.1), (25, 50, -130, -60.2, 0.2)]
    assert all(GridDomain(*edges) != USA for edges in others)
    assert GridDomain(25, 50, -130, -60, 0.2, other="else") != USA


@pytest.mark.parametrize(
    ("edges", "field"),
    [
        ((50, 25, -130, -60, 0.2), "south"),
        ((25, 25, -130, -60, 0.2), "south"),
        ((25, 91, -130, -60, 1), "north"),
        ((25, 50, -181, -60, 1), "west"),
        ((25, 50, -60, -130, 1), "west"),
        ((25, 50, -130, -60, 0), "step"),
        ((25, 50, -130, -60, -0.2), "step"),
        ((25, 50, -130, -60, 0.3), "step"),
        ((25, 50, -130, -60, "0.00000001"), "step"),
        ((math.nan, 50, -130, -60, 1), "south"),
        ((25, math.inf, -130, -60, 1), "north"),
        ((25, 50, "west", -60, 1), "west"),
        ((25, 50, None, -60, 1), "west"),
        ((25, 50, -130, True, 1), "east"),
        ((25, 50, -130, [1], 1), "east"),
        (("0." + "0" * 40 + "1", 50, -130, -60, 1), "south"),
        ((25 + 1e-12, 50, -130, -60, 1), "south"),
    ],
)
def test_invalid_edge_error_names_the_field(edges, field):
    with pytest.raises(InvalidContext, match=rf"\b{field}\b"):
        GridDomain(*edges)


def test_grid_must_have_fewer_than_2_to_the_31_cells():
    with pytest.raises(InvalidContext, match="larger step"):
        GridDomain(-90, 90, -180, 180, "0.005")
    assert GridDomain(-90, 90, -180, 180, "0.01").cell_count == 18_000 * 36_000


def test_other_must_be_a_label():
    with pytest.raises(InvalidContext, match="other"):
        GridDomain(0, 2, 0, 2, 1, other="")
