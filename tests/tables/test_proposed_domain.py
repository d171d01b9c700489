"""Labels that a column suggests: its answers, bins, or parts of dates."""

import datetime
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.errors import InvalidArgument, InvalidTable
from sfumato.tables import AnswerColumns, summarize_column
from sfumato.tables.column_summary import ColumnSummary
from sfumato.tables.proposed_domain import bin_labels, propose_domain, round_cuts
from support.error_text import full_error_text

WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def propose(cells, missing_count=0, **options):
    """Propose a domain for cells that occur once each."""
    rules = {name: options.pop(name) for name in list(options) if name in RULES}
    summary = ColumnSummary("a", missing_count, dict.fromkeys(cells, 1))
    return propose_domain(summary, AnswerColumns("a", **rules), **options)


RULES = ("missing", "missing_codes", "bins", "date", "date_format", "delimiter")


def counts_of(proposal):
    """Return how many rows each label has, without labels that have none."""
    pairs = zip(proposal.domain.labels, proposal.counts, strict=True)
    return {label: count for label, count in pairs if count}


# --- answers --------------------------------------------------------------------------------------


def test_answers_are_labels():
    proposal = propose(["01234", "1234", "02139"])
    assert counts_of(proposal) == {"01234": 1, "1234": 1, "02139": 1}


def test_missing_answers_get_a_label_only_without_a_rule():
    assert counts_of(propose(["x"], 2)) == {"x": 1, "no answer": 2}
    assert counts_of(propose(["x"], 2, other="else")) == {"x": 1, "no answer": 2}
    assert counts_of(propose(["x"], 2, other="else", missing="else")) == {"x": 1, "else": 2}
    assert counts_of(propose(["x"], 2, missing="none")) == {"x": 1, "none": 2}
    for missing in ("skip", "refuse"):
        assert counts_of(propose(["x"], 2, missing=missing)) == {"x": 1}


def test_answers_beyond_the_given_labels():
    proposal = propose(["x", "y", "z"], labels=["x"], other="else")
    assert counts_of(proposal) == {"x": 1, "else": 2}
    assert proposal.other_count == proposal.row_counts.unknown == 2
    assert proposal.row_counts.rows == 3


def test_repr_contains_no_answer():
    assert "canary" not in repr(propose(["canary", "x"]))


def test_a_column_without_answers_is_refused():
    with pytest.raises(InvalidTable, match="column 'a' contains no answers"):
        propose([], 3)


# --- dates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "cells", "labels"),
    [
        ("day", ["2026-02-27", "2026-03-02"], ["2026-02-27", "2026-02-28", "2026-03-01"]),
        ("day", ["0001-01-01", "0001-01-02"], ["0001-01-01"]),
        ("day", [datetime.date(9999, 12, 30), "9999-12-31"], ["9999-12-30"]),
        ("month", ["2025-11-30", "2026-02-01"], ["2025-11", "2025-12", "2026-01"]),
        ("month", ["2026-11", "2026-12"], ["2026-11"]),
        ("month", ["0999-12-31", "1000-01-01"], ["0999-12"]),
        ("month", [datetime.datetime(9999, 11, 1), "9999-12"], ["9999-11"]),
    ],
)
def test_days_and_months_have_no_gaps(part, cells, labels):
    proposal = propose(cells, date=part)
    last_label = {"day": 10, "month": 7}[part]
    assert list(proposal.domain.labels) == [*labels, str(cells[-1])[:last_label]]
    assert sum(proposal.counts) == len(cells)


def test_weekdays():
    proposal = propose(
        ["2026-11-18", "2026-11-22T08:00", datetime.date(2026, 11, 16)], date="weekday"
    )
    assert list(proposal.domain.labels) == WEEKDAYS
    assert counts_of(proposal) == {"Wednesday": 1, "Sunday": 1, "Monday": 1}


def test_hours():
    cells = ["2026-11-18T07:30", datetime.datetime(2026, 11, 18, 23), datetime.time(0, 5)]
    proposal = propose(cells, date="hour")
    assert list(proposal.domain.labels) == list(range(24))
    assert counts_of(proposal) == {7: 1, 23: 1, 0: 1}


def test_dates_without_a_time_have_no_hour():
    proposal = propose(["2026-11-18", datetime.date(2026, 11, 19)], date="hour")
    assert (proposal.other_count, sum(proposal.counts)) == (2, 0)


def test_date_format():
    proposal = propose(["18.11.2026", "20.11.2026"], date="day", date_format="%d.%m.%Y")
    assert proposal.counts == (1, 0, 1)
    proposal = propose(["11/2026"], date="month", date_format="%m/%Y")
    assert list(proposal.domain.labels) == ["2026-11"]


def test_time_zones(tmp_path):
    """A time counts as on the wall clock of its own zone, in a column as well as in text."""
    instant = pa.array([datetime.datetime(2026, 11, 18, 23, 30)], pa.timestamp("s", "UTC"))
    tokyo = instant.cast(pa.timestamp("ns", "Asia/Tokyo"))
    pq.write_table(pa.table({"a": tokyo}), tmp_path / "a.parquet")
    for part, label in (("day", "2026-11-19"), ("weekday", "Thursday"), ("hour", 8)):
        columns = AnswerColumns("a", date=part)
        summary = summarize_column(str(tmp_path / "a.parquet"), columns)
        assert counts_of(propose_domain(summary, columns)) == {label: 1}
        assert counts_of(propose(["2026-11-19T08:30+09:00"], date=part)) == {label: 1}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"date": "year"}, "date must be one of day, weekday, hour, month"),
        ({"date": "day", "date_format": "%Q"}, "must be a format of strptime"),
        ({"date": "weekday", "date_format": "%H:%M"}, "needs a date_format with the year"),
        ({"date_format": "%Y"}, "requires date"),
        ({"bins": (2.0, 1.0)}, "bins must be increasing"),
        ({"bins": (2.0,), "date": "day"}, "choose either bins"),
        ({"delimiter": ";;"}, "delimiter must be a single"),
    ],
)
def test_invalid_rules_are_rejected_first(rules, message):
    with pytest.raises(InvalidArgument, match=message):
        propose(["2026-11-18"], **rules)


def test_a_column_without_dates_is_refused():
    with pytest.raises(InvalidTable, match="does not contain dates such as 2026-11-18"):
        propose(["canary"], date="day")


def test_a_long_span_is_refused_without_its_dates():
    cells = ["0001-01-01", "2026-11-18"]
    with pytest.raises(InvalidTable, match="at most 10,000 can be labels") as caught:
        propose(cells, date="day")
    assert "-01" not in full_error_text(caught.value)


# --- bins -----------------------------------------------------------------------------------------


def test_cells_are_put_into_bins():
    proposal = propose(["17", "18", "29.0", "060", 75], bins=(18.0, 30.0, 60.0))
    assert counts_of(proposal) == {"under 18": 1, "18 to 29": 2, "60 and over": 2}


def test_bins_of_decimal_numbers():
    proposal = propose(["1.5", Decimal("2.5"), 7], bins=(2.5, 5.0))
    assert counts_of(proposal) == {"under 2.5": 1, "2.5 to under 5": 1, "5 and over": 1}
    assert proposal.row_counts.decimal_styles == {"decimal"}


def test_bins_of_ambiguous_numbers_are_noticed():
    assert propose(["1.500", "25"], bins=(10.0,)).row_counts.decimal_styles == {"ambiguous"}


@pytest.mark.parametrize("cells", [["1", "two"], ["1", "infinity"], ["1", "٣"], ["1", "1_0"]])
def test_text_in_a_column_of_numbers_is_unknown(cells):
    for options in ({"bins": (1.0,)}, {"bin_count": 2}):
        proposal = propose([*cells, 9], **options)
        assert proposal.other_count == 1
        assert counts_of(propose([*cells, 9], other="odd", **options))["odd"] == 1


def test_bins_need_a_number():
    for options in ({"bins": (1.0,)}, {"bin_count": 2}):
        with pytest.raises(InvalidTable, match="column 'a' contains none: it looks like text"):
            propose(["one", "two"], **options)


@pytest.mark.parametrize("cells", [["7"], ["7", "7.0"], [7.0, float("inf")], [float("inf")]])
def test_a_number_of_bins_needs_two_numbers(cells):
    with pytest.raises(InvalidTable, match="two different finite numbers"):
        propose(cells, bin_count=3)


@pytest.mark.parametrize("bin_count", [-1, 0, 1, 1001])
def test_numbers_of_bins(bin_count):
    with pytest.raises(InvalidArgument, match="from 2 to 1000"):
        propose(["1", "2"], bin_count=bin_count)


@pytest.mark.parametrize(
    ("cuts", "whole", "labels"),
    [
        ([5], True, ["under 5", "5 and over"]),
        ([5, 6, 8], True, ["under 5", "5", "6 to 7", "8 and over"]),
        ([5, 6.5], True, ["under 5", "5 to under 6.5", "6.5 and over"]),
        ([-1, 0], False, ["under -1", "-1 to under 0", "0 and over"]),
    ],
)
def test_bin_labels(cuts, whole, labels):
    assert bin_labels(cuts, whole=whole) == labels


@pytest.mark.parametrize(
    ("low", "high", "bin_count", "whole", "cuts"),
    [
        (18, 91, 5, True, (20, 40, 60, 80)),
        (0, 1, 4, False, (0.25, 0.5, 0.75)),
        (0, 3, 2, True, (2,)),
        (-7, 7, 2, True, (0,)),
        (0.1, 0.3, 2, False, (0.2,)),
        (1e6, 9e6, 4, True, (2_500_000, 5_000_000, 7_500_000)),
    ],
)
def test_round_cuts(low, high, bin_count, whole, cuts):
    assert round_cuts(low, high, bin_count, whole=whole) == cuts


NUMBERS = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))


@given(NUMBERS, NUMBERS, st.integers(2, 50), st.booleans())
@example(low=-0.001, high=0.001, bin_count=3, whole=False)
def test_round_cuts_divide_the_range_evenly(low, high, bin_count, whole):
    """All numbers are within equal bins, and neither end is a cut unless it is round itself."""
    low, high = sorted((float(round(low)), float(round(high))) if whole else (low, high))
    if low == high:
        return
    cuts = round_cuts(low, high, bin_count, whole=whole)
    exact_cuts = [Decimal(repr(cut)) for cut in cuts]
    assert 1 <= len(cuts) <= bin_count - 1
    assert cuts[-1] <= high
    assert not whole or all(cut.is_integer() for cut in cuts)
    steps = {high_cut - low_cut for low_cut, high_cut in pairwise(exact_cuts)}
    assert len(steps) <= 1
    for step in steps:
        assert len(step.normalize().as_tuple().digits) <= 2
        assert exact_cuts[0] - step <= Decimal(repr(low)) < exact_cuts[0]
        assert Decimal(repr(high)) <= exact_cuts[-1] + step


# --- planted faults -------------------------------------------------------------------------------


def test_a_guessed_hour_is_detected(monkeypatch):
    test_dates_without_a_time_have_no_hour()
    monkeypatch.setattr("sfumato.survey.cell_lookup.date_part", lambda *arguments: 0)
    with pytest.raises(AssertionError):
        test_dates_without_a_time_have_no_hour()
