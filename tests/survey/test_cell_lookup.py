"""One cell, one symbol: every way to store an answer, and nothing guessed."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.errors import InvalidArgument, InvalidSymbols
from sfumato.survey import AnswerColumns, AnswerReader
from sfumato.survey.cell_date import date_part, require_date_format
from sfumato.survey.cell_lookup import MISSING, UNKNOWN, CellLookup, describe_cell, spellings
from sfumato.survey.cell_number import cell_number, decimal_style

WEEK = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
NOON = datetime.datetime(2026, 11, 18, 12, 30)


def find(labels, cell, **rules):
    return CellLookup(Domain(labels), AnswerColumns("a", **rules)).find(cell)


# --- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "symbol"),
    [
        (65, 0),
        (65.0, 0),
        ("65", 0),
        ("65.0", 0),
        ("65.00", 0),
        (np.float32(65), 0),
        (Decimal("65.0"), 0),
        ("065", UNKNOWN),
        ("65.000", UNKNOWN),
        ("+65", UNKNOWN),
        ("６５", UNKNOWN),
        ("65\n", UNKNOWN),
        (65.5, UNKNOWN),
        (float("inf"), UNKNOWN),
        ({"a": 65}, UNKNOWN),
    ],
)
def test_a_number_stands_for_its_label(cell, symbol):
    assert find([65, "other"], cell) == symbol
    assert find(["65", "other"], cell) == symbol


def test_codes_with_leading_zeros_are_different_labels():
    postcodes = ["01234", "1234", "02139"]
    assert [find(postcodes, cell) for cell in postcodes] == [0, 1, 2]
    assert find(postcodes, 1234) == 1
    assert find([1234], "01234") == UNKNOWN


@pytest.mark.parametrize(
    "cell",
    [
        None,
        "",
        "  ",
        float("nan"),
        np.float32("nan"),
        Decimal("nan"),
        pd.NA,
        pd.NaT,
        np.datetime64("NaT"),
        np.timedelta64("NaT"),
    ],
    ids=repr,
)
def test_missing_cells(cell):
    assert find(["a"], cell) == MISSING
    assert find(WEEK, cell, date="weekday") == MISSING


def test_a_blank_label_is_not_missing():
    assert find([" ", "a"], " ") == 0


@pytest.mark.parametrize("cell", [-99, -99.0, "-99", "-99.0", "NA"])
def test_missing_codes(cell):
    assert find([-99, "NA"], cell, missing_codes=("-99", "NA")) == MISSING


def test_spellings_of_dates_times_and_durations():
    assert spellings(NOON) == ["2026-11-18T12:30:00"]
    assert spellings(NOON.date()) == spellings(np.datetime64("2026-11-18")) == ["2026-11-18"]
    assert spellings(np.datetime64("2026-11-18T12:30", "ns")) == ["2026-11-18T12:30:00"]
    assert spellings(NOON.time()) == ["12:30:00"]
    assert spellings(datetime.timedelta(hours=2)) == ["2:00:00"]
    assert spellings(np.datetime64("20000-01-01")) == []


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        (float("inf"), "decimal numbers"),
        ("007", "numbers with leading zeros"),
        (" 7 ", "whole numbers"),
        ("2026-11", "text"),
        ("infinity", "text"),
        (NOON, "dates"),
        (NOON.time(), "times"),
        (datetime.timedelta(hours=2), "durations"),
    ],
)
def test_kinds(cell, kind):
    assert describe_cell(cell) == kind


# --- bins -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "symbol"),
    [
        ("0.69", 0),
        (np.float32(0.7), 1),  # as a 64-bit float, it is below 0.7
        ("0.7", 1),
        (" 1e0 ", 2),
        (Decimal(1), 2),
        (10**400, UNKNOWN),
        ("1e400", UNKNOWN),
        ("infinity", UNKNOWN),
        ("Inf", UNKNOWN),
        (float("inf"), UNKNOWN),
        ("٣", UNKNOWN),
        ("1_0", UNKNOWN),
        ("1,5", UNKNOWN),
        (True, UNKNOWN),
        ("high", 2),
    ],
)
def test_bins(cell, symbol):
    assert find(["low", "middle", "high"], cell, bins=(0.7, 1.0)) == symbol


@pytest.mark.parametrize(
    ("cells", "styles"),
    [
        (["1.000", "25", "15.500"], {"ambiguous"}),
        (["1.000", "0.500"], {"ambiguous", "decimal"}),
        (["1.000", "1000.000"], {"ambiguous", "decimal"}),
        (["1.5", "2"], {"decimal"}),
        (["12", 1.5], set()),
        (["a.500"], set()),
    ],
)
def test_ambiguous_decimal_points_are_noticed(cells, styles):
    lookup = CellLookup(Domain(["low", "high"]), AnswerColumns("a", bins=(10,)))
    for cell in cells:
        lookup.find(cell)
    assert lookup.decimal_styles == styles


def test_a_number_and_its_style():
    assert [cell_number(cell) for cell in ("", ".5", "5.", "-1.5E+1")] == [None, 0.5, 5.0, -15.0]
    assert decimal_style("1.234.567") == "decimal"  # not a number: it is never put into a bin


# --- dates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (NOON, ("2026-11-18", 2, 12, "2026-11")),
        (NOON.date(), ("2026-11-18", 2, None, "2026-11")),
        (NOON.time(), (None, None, 12, None)),
        (pd.Timestamp(NOON), ("2026-11-18", 2, 12, "2026-11")),
        (np.datetime64("2026-11-18"), ("2026-11-18", 2, None, "2026-11")),
        (np.datetime64("2026-11-18T12", "ns"), ("2026-11-18", 2, 12, "2026-11")),
        (np.datetime64("2026-11"), (None, None, None, "2026-11")),
        (np.datetime64("2026"), (None, None, None, None)),
        ("2026-11-18", ("2026-11-18", 2, None, "2026-11")),
        ("2026-11-18T23:30-05:00", ("2026-11-18", 2, 23, "2026-11")),
        (" 2026-11-18 07:00:00Z ", ("2026-11-18", 2, 7, "2026-11")),
        ("0001-01-01", ("0001-01-01", 0, None, "0001-01")),
        ("2026-W47-3", ("2026-11-18", 2, None, "2026-11")),
        ("2026-W47", (None, None, None, None)),
        ("2026-11", (None, None, None, "2026-11")),
        ("07:30", (None, None, 7, None)),
        ("2026-13", (None, None, None, None)),
        ("2026-02-30", (None, None, None, None)),
        ("20261118", (None, None, None, None)),
        (20261118, (None, None, None, None)),
        ("soon", (None, None, None, None)),
    ],
)
def test_only_parts_in_the_cell(cell, expected):
    parts = tuple(date_part(cell, part, None) for part in ("day", "weekday", "hour", "month"))
    assert parts == expected


def test_dates_in_a_format():
    assert find(WEEK, "18.11.2026", date="weekday", date_format="%d.%m.%Y") == 2
    assert find(WEEK, "2026-11-18", date="weekday", date_format="%d.%m.%Y") == UNKNOWN
    assert find(list(range(24)), "7:30 PM", date="hour", date_format="%I:%M %p") == 19


def test_an_hour_is_never_guessed():
    hours = list(range(24))
    for cell in ("2026-11-18", NOON.date(), "2026-11"):
        assert find(hours, cell, date="hour") == UNKNOWN
    assert find(hours, "2026-11-18T00:00", date="hour") == 0


@pytest.mark.parametrize(
    ("part", "date_format"),
    [
        ("weekday", "%H:%M"),
        ("weekday", "%d"),  # 18 January 1900 is a Thursday, too
        ("weekday", "%A"),
        ("day", "%m.%Y"),
        ("month", "%m"),
        ("hour", "%d.%m.%Y"),
        ("hour", "%I:%M"),
    ],
)
def test_a_format_without_the_part_is_rejected(part, date_format):
    with pytest.raises(InvalidArgument, match="needs a date_format with"):
        require_date_format(date_format, part)


@pytest.mark.parametrize("date_format", ["%Q", "%d.%d.%Y", "%", "\0", "%G-%V"])
def test_an_unreadable_format_is_rejected(date_format):
    columns = AnswerColumns("a", date="day", date_format=date_format)
    with pytest.raises(InvalidArgument, match="must be a format of strptime"):
        columns.check_rules(Domain(["2026-11-18"]))


@pytest.mark.parametrize(
    ("part", "date_format"),
    [
        ("weekday", "%d.%m.%y"),
        ("month", "%B %Y"),
        ("hour", "%H"),
        ("day", "%Y-%j"),
        ("day", "%G-%V-%u"),
        ("hour", "%Y-%m-%dT%H:%M:%S%z"),
        ("day", "%d.%m.%Y %Z"),
    ],
)
def test_formats_with_the_part(part, date_format):
    require_date_format(date_format, part)


# --- rules that do not fit ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "rules", "message"),
    [
        (IntegerDomain(5), {"bins": (1.0, 2.0)}, "bins needs a list of labels"),
        (IntegerDomain(24, start=1), {"date": "hour"}, "date needs a list of labels"),
        (IntegerDomain(25), {"date": "hour"}, "date needs a list of labels"),
        (IntegerDomain(7), {"date": "weekday"}, "date needs a list of labels"),
        (Domain(["a", "b"]), {"bins": (1.0, 2.0)}, "must start with 3 labels.*it has 2"),
        (Domain(["a"]), {"date": "year"}, "date must be one of day, weekday, hour, month; got"),
        (Domain(["a"]), {"date_format": "%Y"}, r"requires date \(--date\): .*\.$"),
        (Domain(["a"]), {"delimiter": ";;"}, "^delimiter must be a single ASCII character"),
        (GridDomain(0, 2, 0, 2, 1), {"bins": (1.0,)}, "not for positions"),
        (GridDomain(0, 2, 0, 2, 1), {"date": "day"}, "not for positions"),
        (H3Domain(["872a10088ffffff"]), {"date": "month"}, "not for positions"),
    ],
)
def test_rules_that_do_not_fit_are_rejected(domain, rules, message):
    with pytest.raises(InvalidArgument, match=message):
        AnswerColumns(**rules).check_rules(domain)


@pytest.mark.parametrize("answers", [["2026-11-18T07:30"], pa.array(["2026-11-18T07:30"])])
def test_a_range_of_24_integers_can_be_hours(answers):
    columns = AnswerColumns("a", date="hour")
    columns.check_rules(IntegerDomain(24))
    assert AnswerReader(IntegerDomain(24), columns).read(answers).symbols.tolist() == [7]


# --- columns --------------------------------------------------------------------------------------


def read(labels, answers, **rules):
    reader = AnswerReader(Domain(labels), AnswerColumns(**rules))
    return reader.read(answers).symbol_of_row.tolist()


@pytest.mark.parametrize(
    "column",
    [
        np.array([0.1, 0.5], dtype=np.float32),
        pa.array([0.1, 0.5], pa.float32()),
        pa.array([0.1, 0.5], pa.float32()).dictionary_encode(),
        np.array([0.1, 0.5], dtype=np.float16),
        pd.Series([0.1, 0.5], dtype="float32"),
    ],
    ids=["NumPy", "Arrow", "dictionary", "16 bits", "pandas"],
)
def test_narrow_floats_have_their_shortest_spelling(column):
    assert read(["0.1", "0.5"], column) == [0, 1]


def test_columns_of_several_types_are_read_cell_by_cell():
    column = pd.Series([1, "2", 3.0, None], dtype=object)
    assert read([1, 2, 3, "none"], column, missing="none") == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", [">i4", "<i4", ">f8", ">u2"])
def test_numpy_integers_of_any_byte_order(kind):
    assert read([1, 2], np.array([2, 1], dtype=kind)) == [1, 0]


@pytest.mark.parametrize(
    "answers",
    [
        {"park": 1},
        {"park"},
        frozenset(["park"]),
        np.array([["park", "park"]]),
        np.array([[1]]),
        np.array("park"),
    ],
    ids=["mapping", "set", "frozen set", "text matrix", "integer matrix", "scalar"],
)
def test_what_is_not_one_answer_per_person_is_rejected(answers):
    with pytest.raises(InvalidSymbols, match="answers must be"):
        read(["park", 1], answers)


def test_intervals_are_refused_with_the_conversion():
    reader = AnswerReader(Domain(["(17.9, 44.0]", "(44.0, 70.0]"]), AnswerColumns("age"))
    ages = pd.cut(pd.Series([18.0, 25.0, 70.0]), 2, precision=1)
    with pytest.raises(InvalidSymbols, match=r"answers must be text, but they are intervals"):
        reader.read(ages)
    assert reader.read(ages.astype(str)).symbol_of_row.tolist() == [0, 0, 1]


def test_durations_and_times_with_nanoseconds():
    durations = pa.array([7_200_000_000_001], pa.duration("ns"))
    assert read(["2:00:00"], durations) == [0]
    times = pa.array([27_000_000_000_001], pa.time64("ns"))
    assert read(list(range(24)), times, date="hour") == [7]


def test_times_are_on_the_wall_clock_of_their_zone():
    instant = pa.array([datetime.datetime(2026, 11, 18, 23, 30)], pa.timestamp("s", "UTC"))
    hours = list(range(24))
    assert read(hours, instant, date="hour") == [23]
    assert read(hours, instant.cast(pa.timestamp("s", "Asia/Tokyo")), date="hour") == [8]
    assert read(WEEK, instant.cast(pa.timestamp("s", "Asia/Tokyo")), date="weekday") == [3]


GRID = GridDomain(0, 2, 0, 2, 1)


def test_missing_codes_of_positions():
    reader = AnswerReader(GRID, AnswerColumns(missing="skip", missing_codes=("NA", "-99")))
    batch = reader.read([(0.5, 0.5), (-99, -99), (1, -99.0), (-98, 0), (None, 1)])
    assert batch.symbol_of_row.tolist() == [0, -1, -1, -1, -1]
    assert (batch.counts.missing, batch.counts.unknown) == (3, 1)


@pytest.mark.parametrize("frame", [pd.DataFrame({"lat": [1.0]}), pa.table({"lat": [1.0]})])
def test_a_table_of_positions_needs_two_columns(frame):
    with pytest.raises(InvalidSymbols, match="positions need two columns"):
        AnswerReader(GRID, AnswerColumns()).read(frame)
