"""The distinct answers in a column, their labels, and their blocks."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import InvalidTable
from sfumato.tables import AnswerColumns, read_blocks, similar_labels, summarize_column
from sfumato.tables.column_summary import ColumnSummary
from support.error_text import full_error_text


@pytest.fixture
def write(tmp_path):
    """Write columns to a Parquet file; return its path."""

    def write_table(**columns):
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table(columns), path)
        return str(path)

    return write_table


def summarize(path, **rules):
    return summarize_column(path, AnswerColumns("a", **rules))


# --- summarize_column -----------------------------------------------------------------------------


def test_cells_are_counted_over_all_batches(write):
    cells = ["park", None, "bar", " ", "park", "NA"] * 50_000
    summary = summarize(write(a=cells), missing_codes=("NA",))
    assert summary.counts == {"park": 100_000, "bar": 50_000}
    assert (summary.missing, summary.rows) == (150_000, 300_000)


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        (["01234", "1234", "02139"], ["01234", "1234", "02139"]),
        (["10", "9", "9.0", "-1"], [-1, 9, 10]),
        (["1.5", "10", "9"], ["1.5", "9", "10"]),
        (["5 to 9", "10 to 19", "under 5"], ["under 5", "5 to 9", "10 to 19"]),
        (["10+", "5", "<5", "6", "none"], ["<5", "5", "6", "10+", "none"]),
        (["cafe\u0301", "caf\u00e9"], ["café"]),
        (pa.array([2.0, 1.0]), [1, 2]),
        (pa.array([0.1, 2.0], pa.float32()), ["0.1", "2"]),
        (pa.array([True, False]), ["False", "True"]),
        (pa.array([Decimal("2.50")]), ["2.50"]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.array([datetime.date(2026, 11, 18)]), ["2026-11-18"]),
        (pa.array([datetime.time(7, 30)]), ["07:30:00"]),
        (pa.array([datetime.timedelta(hours=2)]), ["2:00:00"]),
        (pa.array([7_200_000_000_001], pa.duration("ns")), ["2:00:00"]),
    ],
)
def test_labels(write, column, labels):
    assert list(summarize(write(a=column)).label_counts()) == labels


def test_cells_that_spell_one_label_are_added_up(write):
    assert summarize(write(a=["7", "7.0", "7.00", "8"])).label_counts() == {7: 3, 8: 1}


@pytest.mark.parametrize(
    ("column", "is_numeric", "is_whole"),
    [
        (["1", "2.0"], True, True),
        (["1", "02"], True, False),
        (["1", "2.5"], True, False),
        (["1", "two"], False, False),
        (["1", "infinity"], False, False),
    ],
)
def test_numbers(write, column, is_numeric, is_whole):
    summary = summarize(write(a=column))
    assert (summary.is_numeric, summary.is_whole) == (is_numeric, is_whole)


def test_missing_texts(write):
    assert summarize(write(a=["NA", " n/a", "Nan", "Nancy", "?"])).missing_texts() == [
        " n/a",
        "?",
        "NA",
        "Nan",
    ]


def test_columns_that_cannot_hold_answers_are_refused(write):
    with pytest.raises(InvalidTable, match="must contain text, numbers or dates"):
        summarize(write(a=[["park"]]))


def test_repr_contains_no_answer():
    summary = ColumnSummary("a", 1, {"canary": 7})
    assert repr(summary) == "ColumnSummary('a', 8 rows)"


# --- read_blocks ----------------------------------------------------------------------------------


def blocks_of(path):
    return read_blocks(path, AnswerColumns("a"), "b", summarize(path))


def test_every_label_has_its_block(write):
    path = write(a=["x", "y", None, "x", "z"] * 30_000, b=["N", "S", None, "N", "S"] * 30_000)
    assert blocks_of(path) == {"x": "N", "y": "S", "z": "S"}


@pytest.mark.parametrize(
    ("column", "blocks"),
    [
        (["01", "1", "1.0"], ["01", "1", "1.0"]),
        (pa.array([1, 2, 3]), ["1", "2", "3"]),
        (pa.array([1.0, 2.5, 3.0]), ["1", "2.5", "3"]),
        (pa.array([0.1, 0.5, 2], pa.float32()), ["0.1", "0.5", "2"]),
        (pa.array([True, False, True]), ["True", "False", "True"]),
        (pa.array([1, 2, 3], pa.duration("s")), ["0:00:01", "0:00:02", "0:00:03"]),
        (pa.array(["p", "q", "p"]).dictionary_encode(), ["p", "q", "p"]),
    ],
)
def test_blocks_have_their_most_literal_text(write, column, blocks):
    path = write(a=["x", "y", "z"], b=column)
    assert blocks_of(path) == dict(zip("xyz", blocks, strict=True))


def test_labels_of_any_type_have_blocks(write):
    assert blocks_of(write(a=pa.array([0.1, 0.1], pa.float32()), b=["N", "N"])) == {"0.1": "N"}
    assert blocks_of(write(a=["7", "7.0"], b=["N", "N"])) == {7: "N"}


@pytest.mark.parametrize(
    ("cells", "blocks", "problem"),
    [
        (["canary", "x"], [None, "N"], "has no block"),
        (["canary", "canary"], ["N", "S"], "is in two blocks"),
        (["7", "7.0"], ["01", "1"], "is in two blocks"),
    ],
)
def test_contradictory_blocks_are_refused_without_the_answer(write, cells, blocks, problem):
    with pytest.raises(InvalidTable, match=problem) as caught:
        blocks_of(write(a=cells, b=blocks))
    assert "canary" not in full_error_text(caught.value)


# --- similar_labels -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "groups"),
    [
        (["a", "b"], []),
        (["Straße", "STRASSE", "a  b", "A b"], [["Straße", "STRASSE"], ["a  b", "A b"]]),
        ([7, "7"], [[7, "7"]]),
        ([7, "07"], []),
        (["2.5", "2.50", "+1", "1e0", "1"], [["2.5", "2.50"], ["+1", "1e0", "1"]]),
    ],
)
def test_similar_labels(labels, groups):
    assert similar_labels(labels) == groups


# --- a planted fault ------------------------------------------------------------------------------


def test_a_text_that_is_not_literal_is_detected(write, monkeypatch):
    column = ["01", "1", "1.0"]
    test_blocks_have_their_most_literal_text(write, column, column)
    fault = "sfumato.tables.column_summary.cell_text"
    monkeypatch.setattr(fault, lambda cell: str(int(float(cell))) if cell[0] in "01" else cell)
    with pytest.raises(AssertionError):
        test_blocks_have_their_most_literal_text(write, column, column)
