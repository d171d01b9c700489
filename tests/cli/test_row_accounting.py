"""Every row of a table is counted, skipped or refused, and every command says so.

Random tables go through all commands that read answers. What a command prints is compared with a
model of a few lines that shares no code with the package: each row in is counted, skipped or
refused, in the file that is written as well as in the text.
"""

import json
import re
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sfumato.errors import SfumatoError
from sfumato.survey import AnswerReader, OtherWarning, Survey
from sfumato.tables import count_files
from support.fake_aggregator import FakeAggregator
from support.run_here import run_command

LABELS = ["park", "bar", "7"]
UNKNOWN = ["sea", "8", "7.5"]
OTHER = "elsewhere"
NO_ANSWER = "no answer"
EXAMPLES = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FORMATS = ["csv", "parquet", "jsonl"]


class Table(NamedTuple):
    """A column of cells, where ``None`` is an empty cell, and the rules for reading it."""

    cells: list[str | None]
    has_other: bool
    missing: str | None
    file_format: str

    def write(self, folder) -> str:
        """Write the answers and the survey; return the name of the file with the answers."""
        name = f"answers.{self.file_format}"
        path = folder / name
        if self.file_format == "parquet":
            pq.write_table(pa.table({"place": pa.array(self.cells, pa.string())}), path)
        elif self.file_format == "jsonl":
            lines = [json.dumps({"place": cell}) for cell in self.cells]
            path.write_text("\n".join(lines) + "\n", "utf-8")
        else:
            lines = [f"{row},{cell or ''}" for row, cell in enumerate(self.cells)]
            path.write_text("\n".join(["id,place", *lines]) + "\n", "utf-8")
        (folder / "survey.toml").write_text(self.survey_text(), "utf-8")
        return name

    def survey_text(self) -> str:
        labels = json.dumps([*LABELS, NO_ANSWER])
        other = f'other = "{OTHER}"\n' if self.has_other else ""
        missing = "" if self.missing is None else f'missing = "{self.missing}"\n'
        return (
            'name = "places"\nedition = 2\n'
            f'[domain]\nkind = "labels"\nlabels = {labels}\n{other}'
            '[context]\nkind = "uniform"\nepsilon = 1\n'
            f'[table]\ncolumn = "place"\n{missing}'
        )


class Rows(NamedTuple):
    """What must become of the rows of a table."""

    rows: int
    missing: int
    unknown: int
    counted: int
    skipped: int
    refused: int
    must_warn: bool


def expected_rows(table: Table) -> Rows:
    """Return what must become of the rows. A table is refused as a whole, or not at all."""
    rows = len(table.cells)
    missing = table.cells.count(None)
    unknown = sum(cell in UNKNOWN for cell in table.cells)
    other_rows = unknown
    if table.missing is None and table.has_other:
        other_rows += missing
    is_refused = (
        (missing > 0 and table.missing == "refuse")
        or (missing > 0 and table.missing is None and not table.has_other)
        or (unknown > 0 and not table.has_other)
        or (table.has_other and other_rows > rows / 2)
        or (table.missing == "skip" and missing == rows)
    )
    if is_refused:
        return Rows(rows, missing, unknown, 0, 0, rows, must_warn=False)
    skipped_count = missing if table.missing == "skip" else 0
    warns = table.has_other and unknown > rows / 5
    return Rows(rows, missing, unknown, rows - skipped_count, skipped_count, 0, must_warn=warns)


def tables(missing=(None, "refuse", "skip", NO_ANSWER)):
    cells = st.sampled_from([*LABELS, *LABELS, *LABELS, None, *UNKNOWN])
    return st.builds(
        Table,
        st.lists(cells, min_size=2, max_size=30),
        st.booleans(),
        st.sampled_from(missing),
        st.sampled_from(FORMATS),
    )


HOLES = Table(["park", None, "bar", "7", None], has_other=False, missing="skip", file_format="csv")
ALL_EMPTY = Table([None, None], has_other=True, missing=None, file_format="parquet")
FLOOD = Table(["sea", "8", "park"], has_other=True, missing="skip", file_format="jsonl")


@pytest.fixture(scope="module")
def aggregator(tmp_path_factory):
    """An aggregator that has the surveys, with and without `other`."""
    folder = tmp_path_factory.mktemp("surveys")
    running = {}
    for has_other in (False, True):
        Table([], has_other=has_other, missing=None, file_format="csv").write(folder)
        running[has_other] = FakeAggregator(Survey.load(folder / "survey.toml"))
    with running[False], running[True]:
        yield running


# --- what a command prints ------------------------------------------------------------------------

SUMMARY = re.compile(r"^([\d,]+) rows: ([\d,]+) counted", re.MULTILINE)
SKIPPED = re.compile(r"([\d,]+) skipped because they have no answer")
LABELLED = re.compile(rf"([\d,]+) without an answer as '(?:{OTHER}|{NO_ANSWER})'")
UNKNOWNS = re.compile(rf"([\d,]+) not among the labels as '{OTHER}'")
REFUSED_MISSING = re.compile(r"([\d,]+) of ([\d,]+) rows have no answer")
REFUSED_UNKNOWN = re.compile(r"([\d,]+) of ([\d,]+) answers are not in the domain")
NOTHING_LEFT = re.compile(r"none of the ([\d,]+) rows has an answer")


def number_in(pattern: re.Pattern, text: str) -> int:
    match = pattern.search(text)
    return int(match[1].replace(",", "")) if match else 0


def check_text(rows: Rows, result, final_count: str) -> None:
    """Compare what a command printed with what must become of the rows.

    ``final_count`` is the pattern of its last line, with the number of people in it.
    """
    if rows.refused:
        check_refusal(rows, result)
        return
    assert result.code == 0, result.both
    assert number_in(re.compile(final_count), result.both) == rows.counted
    if rows.missing or rows.unknown:
        summary = SUMMARY.search(result.err)
        assert summary, result.both
        assert summary.groups() == (f"{rows.rows:,}", f"{rows.counted:,}")
        assert number_in(SKIPPED, result.err) == rows.skipped
        assert number_in(LABELLED, result.err) == rows.missing - rows.skipped
        assert number_in(UNKNOWNS, result.err) == rows.unknown
    assert ("WARNING" in result.err) == rows.must_warn


def check_refusal(rows: Rows, result) -> None:
    """A refused table: exit code 2, and the counts of the whole file."""
    assert result.code == 2, result.both
    if NOTHING_LEFT.search(result.err):
        assert number_in(NOTHING_LEFT, result.err) == rows.missing == rows.rows
        return
    for pattern, count in ((REFUSED_MISSING, rows.missing), (REFUSED_UNKNOWN, rows.unknown)):
        match = pattern.search(result.err)
        if match:
            assert match.groups() == (f"{count:,}", f"{rows.rows:,}")
    assert REFUSED_MISSING.search(result.err) or REFUSED_UNKNOWN.search(result.err), result.both


# --- the commands ---------------------------------------------------------------------------------


@EXAMPLES
@given(tables())
@example(HOLES)
@example(ALL_EMPTY)
@example(FLOOD)
def test_privatize_accounts_for_every_row(tmp_path_factory, table):
    check_privatize(tmp_path_factory.mktemp("table"), table)


def check_privatize(folder, table: Table) -> None:
    answers = table.write(folder)
    rows = expected_rows(table)
    for output in ("reports.parquet", "tally.json"):
        result = run_command("privatize", "survey.toml", answers, "-o", output, folder=folder)
        check_text(rows, result, r"([\d,]+) reports for survey")
        assert (folder / output).exists() == (rows.refused == 0)
    if not rows.refused:
        assert pq.read_metadata(folder / "reports.parquet").num_rows == rows.counted
        survey = Survey.load(folder / "survey.toml")
        assert count_files([str(folder / "tally.json")], survey).reports == rows.counted


@EXAMPLES
@given(tables())
@example(HOLES)
@example(ALL_EMPTY)
def test_send_accounts_for_every_row(tmp_path_factory, aggregator, table):
    folder = tmp_path_factory.mktemp("table")
    answers = table.write(folder)
    rows = expected_rows(table)
    running = aggregator[table.has_other]
    reports_before = running.reports
    result = run_command("send", "survey.toml", answers, "--to", running.url, folder=folder)
    check_text(rows, result, r"([\d,]+) reports for survey")
    assert running.reports - reports_before == rows.counted


@EXAMPLES
@given(tables())
@example(HOLES)
@example(ALL_EMPTY)
def test_simulate_accounts_for_every_row(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("table")
    answers = table.write(folder)
    rows = expected_rows(table)
    command = ("simulate", "survey.toml", answers, "--runs", "1", "--decoder", "projection")
    check_text(rows, run_command(*command, folder=folder), r"With ([\d,]+) people")
    if not rows.refused:
        counts = json.loads(run_command(*command, "--json", folder=folder).out)["rows"]
        assert counts == {
            "rows": rows.rows,
            "counted": rows.counted,
            "skipped": rows.skipped,
            "missing": rows.missing,
            "other": rows.unknown,
        }


@settings(EXAMPLES, max_examples=15)
@given(tables())
@example(HOLES)
@example(ALL_EMPTY)
def test_compare_accounts_for_every_row(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("table")
    answers = table.write(folder)
    command = ("compare", answers, "--survey", "survey.toml", "--runs", "2", "--workers", "1")
    result = run_command(*command, "--decoder", "projection", folder=folder)
    check_text(expected_rows(table), result, r"people: ([\d,]+)")


@EXAMPLES
@given(tables((None, "skip", NO_ANSWER)))
@example(HOLES)
def test_init_accounts_for_every_row(tmp_path_factory, table):
    """Init makes the labels, so nothing is unknown, and a column of one label is refused."""
    folder = tmp_path_factory.mktemp("table")
    answers = table.write(folder)
    rows = len(table.cells)
    missing = table.cells.count(None)
    options = () if table.missing is None else ("--missing", table.missing)
    result = run_command(
        *("init", "--from", answers, "--column", "place", "--force-labels", *options),
        "new.toml",
        folder=folder,
    )
    labels = {cell for cell in table.cells if cell is not None}
    if table.missing == NO_ANSWER or (missing and table.missing is None):
        labels.add(NO_ANSWER)
    if len(labels) < 2:
        assert result.code == 2, result.both
        return
    skipped_count = missing if table.missing == "skip" else 0
    counted_count = rows - skipped_count
    assert result.code == 0, result.both
    assert SUMMARY.search(result.err).groups() == (f"{rows:,}", f"{counted_count:,}")
    assert number_in(SKIPPED, result.err) == skipped_count
    assert number_in(LABELLED, result.err) == missing - skipped_count
    result = run_command("privatize", "new.toml", answers, "-o", "new.parquet", folder=folder)
    assert result.code == 0, result.both
    assert pq.read_metadata(folder / "new.parquet").num_rows == counted_count


@EXAMPLES
@given(tables())
@example(HOLES)
@example(ALL_EMPTY)
def test_privatize_in_python_accounts_for_every_row(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("table")
    table.write(folder)
    survey = Survey.load(folder / "survey.toml")
    rows = expected_rows(table)
    if rows.refused:
        with pytest.raises(SfumatoError, match=r"\d+ of \d+|none of the \d+"):
            survey.privatize(table.cells, missing=table.missing)
    elif rows.must_warn:
        with pytest.warns(OtherWarning, match=rf"{rows.unknown} of {rows.rows} answers"):
            assert len(survey.privatize(table.cells, missing=table.missing)) == rows.counted
    else:
        assert len(survey.privatize(table.cells, missing=table.missing)) == rows.counted


# --- planted faults -------------------------------------------------------------------------------


def test_a_reader_that_drops_rows_is_detected(tmp_path, monkeypatch):
    table = HOLES._replace(missing=NO_ANSWER)
    check_privatize(tmp_path, table)
    read_column = AnswerReader.read_column

    def drop_last(reader, column):
        return read_column(reader, column.slice(0, len(column) - 1))

    monkeypatch.setattr(AnswerReader, "read_column", drop_last)
    with pytest.raises(AssertionError):
        check_privatize(tmp_path, table)


def test_a_silent_command_is_detected(tmp_path, monkeypatch):
    check_privatize(tmp_path, HOLES)
    monkeypatch.setattr("sfumato.cli.privatize.notify_rows", lambda counter: None)
    with pytest.raises(AssertionError):
        check_privatize(tmp_path, HOLES)
