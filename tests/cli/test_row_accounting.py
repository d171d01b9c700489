"""Every row of a table is counted, skipped or refused, and every command says so.

Random tables go through all commands that read answers. What a command prints is compared with a
model of a few lines that shares no code with the package: each row in is counted, skipped or
refused, in the file that is written as well as in the text.
"""

import json
import re
from collections import Counter
from typing import NamedTuple

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sfumato.errors import SfumatoError
from sfumato.simulation.runs import survey_population
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
FORMATS = ["csv", "quoted", "single", "parquet", "jsonl", "xlsx"]


class Table(NamedTuple):
    """A column of cells, where ``None`` is an empty cell, and the rules for reading it.

    Three formats are CSV: plain, "quoted" with quotation marks, commas and line breaks in the
    cells, and "single" with a single column.
    """

    cells: list[str | None]
    has_other: bool
    missing: str | None
    file_format: str

    def write(self, folder) -> str:
        """Write the answers and the survey; return the name of the file with the answers."""
        name = self.write_answers(folder, "answers")
        (folder / "survey.toml").write_text(self.survey_text(), "utf-8")
        return name

    def write_answers(self, folder, stem: str) -> str:
        """Write the answers; return the name of the file."""
        is_csv = self.file_format in ("csv", "quoted", "single")
        name = f"{stem}.{'csv' if is_csv else self.file_format}"
        path = folder / name
        if self.file_format == "parquet":
            pq.write_table(pa.table({"place": pa.array(self.cells, pa.string())}), path)
        elif self.file_format == "xlsx":
            sheet = openpyxl.Workbook()
            sheet.active.append(["id", "place"])
            for row, cell in enumerate(self.cells):
                sheet.active.append([row, cell])
            sheet.save(path)
        elif self.file_format == "jsonl":
            lines = [json.dumps({"place": cell}) for cell in self.cells]
            path.write_text("\n".join(lines) + "\n", "utf-8")
        else:
            path.write_text("\n".join(self.csv_lines()) + "\n", "utf-8")
        return name

    def csv_lines(self) -> list[str]:
        if self.file_format == "single":
            return ["place", *(cell or '""' for cell in self.cells)]
        if self.file_format == "csv":
            return ["id,place", *(f"{row},{cell or ''}" for row, cell in enumerate(self.cells))]
        lines = [f'"a ""pipe"", 5\nlong","{cell or ""}"' for cell in self.cells]
        return ["note,place", *lines]

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


def expected_rows(*parts: Table) -> Rows:
    """Return what must become of the rows of one or more files with the same rules.

    They are refused as a whole, or not at all.
    """
    rows = sum(len(table.cells) for table in parts)
    missing = sum(table.cells.count(None) for table in parts)
    unknown = sum(cell in UNKNOWN for table in parts for cell in table.cells)
    is_skipping = parts[0].missing == "skip"
    if any(map(is_refused, parts)) or (is_skipping and missing == rows):
        return Rows(rows, missing, unknown, 0, 0, rows, must_warn=False)
    skipped_count = missing if is_skipping else 0
    counted_count = rows - skipped_count
    warns = parts[0].has_other and sum(map(count_other, parts)) > counted_count / 5
    return Rows(rows, missing, unknown, counted_count, skipped_count, 0, must_warn=warns)


def is_refused(table: Table) -> bool:
    missing = table.cells.count(None)
    unknown = sum(cell in UNKNOWN for cell in table.cells)
    if table.has_other:
        skipped_count = missing if table.missing == "skip" else 0
        is_flood = count_other(table) > (len(table.cells) - skipped_count) / 2
        return is_flood or (missing > 0 and table.missing == "refuse")
    return unknown > 0 or (missing > 0 and table.missing in (None, "refuse"))


def count_other(table: Table) -> int:
    """Return the number of rows that become `other` without a rule that says so."""
    count = sum(cell in UNKNOWN for cell in table.cells)
    if table.missing is None:
        count += table.cells.count(None)
    return count


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
# One person in five is unknown, but of those with an answer, it is everybody.
HIDDEN_FLOOD = Table(["sea", *[None] * 4], has_other=True, missing="skip", file_format="csv")
FLOOD = Table(["sea", "8", "park"], has_other=True, missing="skip", file_format="jsonl")
NOTHING = Table([None, None], has_other=False, missing="skip", file_format="single")
# Two of five rows become `other` only because they are empty.
MANY_HOLES = Table(
    ["park", None, "bar", None, "7"], has_other=True, missing=None, file_format="xlsx"
)


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

SUMMARY = re.compile(r"^([\d,]+) rows?: ([\d,]+) counted", re.MULTILINE)
SKIPPED = re.compile(r"([\d,]+) skipped because (?:they have|it has) no answer")
LABELLED = re.compile(rf"([\d,]+) without an answer as '(?:{OTHER}|{NO_ANSWER})'")
UNKNOWNS = re.compile(rf"([\d,]+) not among the labels as '{OTHER}'")
REFUSED_OTHER = re.compile(
    r"[\d,]+ of [\d,]+ rows?(?: with an answer)?, more than half, would count as"
)
REFUSED_MISSING = re.compile(r"([\d,]+) of ([\d,]+) rows? ha(?:s|ve) no answer")
REFUSED_UNKNOWN = re.compile(
    r"([\d,]+) of ([\d,]+) rows? (?:has|have) an answer that is not in the domain"
)
NOTHING_LEFT = re.compile(r"none of the ([\d,]+) rows? has an answer")


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
    assert ("Warning: " in result.err) == rows.must_warn


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
    patterns = (REFUSED_MISSING, REFUSED_UNKNOWN, REFUSED_OTHER)
    assert any(pattern.search(result.err) for pattern in patterns), result.both


# --- the commands ---------------------------------------------------------------------------------


@EXAMPLES
@given(tables())
@example(HOLES)
@example(ALL_EMPTY)
@example(FLOOD)
@example(HIDDEN_FLOOD)
@example(NOTHING)
@example(MANY_HOLES)
@example(HOLES._replace(file_format="quoted"))
def test_privatize_accounts_for_every_row(tmp_path_factory, table):
    check_privatize(tmp_path_factory.mktemp("table"), table)


def check_privatize(folder, table: Table) -> None:
    answers = table.write(folder)
    rows = expected_rows(table)
    for output in ("reports.parquet", "tally.json"):
        result = run_command("privatize", "survey.toml", answers, "-o", output, folder=folder)
        check_text(rows, result, r"([\d,]+) reports? for survey")
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
    check_text(rows, result, r"([\d,]+) reports? for survey")
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
@given(tables())
@example(HOLES)
@example(HOLES._replace(missing="refuse"))
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
    if table.missing == "refuse" and missing:
        check_refusal(Rows(rows, missing, 0, 0, 0, rows, must_warn=False), result)
        return
    assert result.code == 0, result.both
    skipped_count = missing if table.missing == "skip" else 0
    counted_count = rows - skipped_count
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
@example(NOTHING)
@example(MANY_HOLES)
def test_privatize_in_python_accounts_for_every_row(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("table")
    table.write(folder)
    survey = Survey.load(folder / "survey.toml")
    rows = expected_rows(table)
    if rows.refused:
        with pytest.raises(SfumatoError, match=r"\d+ of \d+|none of the \d+"):
            survey.privatize(table.cells, missing=table.missing)
    elif rows.must_warn:
        with pytest.warns(OtherWarning, match=rf"\d+ of {rows.rows} .*as '{OTHER}'"):
            assert len(survey.privatize(table.cells, missing=table.missing)) == rows.counted
    else:
        assert len(survey.privatize(table.cells, missing=table.missing)) == rows.counted


@settings(EXAMPLES, max_examples=25)
@given(tables(), st.lists(st.sampled_from(["park", "bar", None, "sea"]), min_size=1, max_size=9))
@example(NOTHING, ["park"])
@example(NOTHING, [None])
@example(HOLES._replace(missing=None), ["park"])
def test_privatize_accounts_for_every_row_of_two_files(tmp_path_factory, table, more_cells):
    folder = tmp_path_factory.mktemp("table")
    second_table = table._replace(cells=more_cells)
    files = (table.write(folder), second_table.write_answers(folder, "more"))
    rows = expected_rows(table, second_table)
    result = run_command("privatize", "survey.toml", *files, "-o", "reports.csv", folder=folder)
    assert (folder / "reports.csv").exists() == (rows.refused == 0)
    if rows.refused:
        assert result.code == 2, result.both
    else:
        check_text(rows, result, r"([\d,]+) reports? for survey")


# --- bins, dates and positions --------------------------------------------------------------------

# Each cell, and the label that it must get: "" if it is missing, and "?" if it is unknown.
BIN_OF_CELL = {
    "17": "young",
    "17.99": "young",
    "-3e1": "young",
    "18": "middle",
    " 44.5 ": "middle",
    "45": "old",
    "old": "old",
    "": "",
    "-99": "",
    "-99.0": "",
    "inf": "?",
    "1_000": "?",
    "sixty": "?",
    "٤٤": "?",
}
HOUR_OF_CELL = {
    "2026-11-18T00:10": "0",
    "2026-11-18 07:30:00Z": "7",
    "1999-01-01T23:59:59+05:00": "23",
    "07:30": "7",
    "0": "0",
    "": "",
    "-99": "",
    "2026-11-18": "?",
    "2026-11": "?",
    "2026-11-18T25:00": "?",
    "24": "?",
}
CELL_OF_POSITION = {
    "0.5,1.5": "0,1",
    "1,0": "1,0",
    " 1.5 ,1.5": "1,1",
    ",": "",
    " ,1": "",
    "NA,NA": "",
    "-99,0.5": "",
    "2,0": "?",
    "0.5,-0.5": "?",
    "inf,1": "?",
}
BIN_RULES = 'column = "cell"\nmissing_codes = ["-99"]\nbins = [18, 45]\n'
HOUR_RULES = 'column = "cell"\nmissing_codes = ["-99"]\ndate = "hour"\n'
POSITION_RULES = 'latitude = "cell"\nlongitude = "lon"\nmissing_codes = ["NA", -99]\n'
BIN_DOMAIN = 'kind = "labels"\nlabels = ["young", "middle", "old"]\n'
HOUR_DOMAIN = f'kind = "labels"\nlabels = {list(range(24))}\n'
GRID_DOMAIN = 'kind = "grid"\nsouth = 0\nnorth = 2\nwest = 0\neast = 2\nstep = 1\n'
RULES = {
    "bins": (BIN_OF_CELL, BIN_DOMAIN, BIN_RULES),
    "hours": (HOUR_OF_CELL, HOUR_DOMAIN, HOUR_RULES),
    "positions": (CELL_OF_POSITION, GRID_DOMAIN, POSITION_RULES),
}


def check_rules(folder, kind: str, cells: list[str], missing: str) -> None:
    """Every cell gets the label in the table above, and every row is accounted for."""
    label_of, domain, table = RULES[kind]
    header = "cell,lon" if kind == "positions" else "id,cell"
    lines = cells if kind == "positions" else [f"1,{cell}" for cell in cells]
    (folder / "a.csv").write_text("\n".join([header, *lines]) + "\n", "utf-8")
    (folder / "survey.toml").write_text(
        f'name = "q"\nedition = 2\n[domain]\n{domain}other = "{OTHER}"\n[context]\n'
        f'kind = "uniform"\nepsilon = 1\n[table]\n{table}missing = "{missing}"\n',
        "utf-8",
    )
    labels = Counter(label_of[cell] for cell in cells)
    unknown = labels["?"]
    skipped_count = labels[""] if missing == "skip" else 0
    counted_count = len(cells) - skipped_count
    is_flood = unknown > counted_count / 2
    is_empty = counted_count == 0
    result = run_command("privatize", "survey.toml", "a.csv", "-o", "r.csv", folder=folder)
    if is_flood or is_empty:
        assert result.code == 2, result.both
        return
    rows = Rows(
        rows=len(cells),
        missing=labels[""],
        unknown=unknown,
        counted=counted_count,
        skipped=skipped_count,
        refused=0,
        must_warn=unknown > counted_count / 5,
    )
    check_text(rows, result, r"([\d,]+) reports? for survey")
    labels[OTHER] += labels.pop("?", 0) + labels[""] - skipped_count
    del labels[""]
    survey = Survey.load(folder / "survey.toml")
    domain_labels = map(str, survey.context.domain.labels)
    columns = survey.description.table
    population = survey_population(str(folder / "a.csv"), columns, survey.context.domain)
    counts = Counter(dict(zip(domain_labels, population.counts.tolist(), strict=True)))
    assert +counts == +labels


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("missing", ["skip", OTHER])
@settings(EXAMPLES, max_examples=12)
@given(data=st.data())
def test_cells_with_rules_are_accounted_for(tmp_path_factory, kind, missing, data):
    label_of = RULES[kind][0]
    good_cells = [cell for cell, label in label_of.items() if label not in ("", "?")]
    cells = st.sampled_from([*label_of, *good_cells, *good_cells])
    check_rules(
        tmp_path_factory.mktemp("table"),
        kind,
        data.draw(st.lists(cells, min_size=1, max_size=20)),
        missing,
    )


@pytest.mark.parametrize("kind", RULES)
def test_every_listed_cell_gets_its_label(tmp_path, kind):
    label_of = RULES[kind][0]
    good_cells = [cell for cell, label in label_of.items() if label not in ("", "?")]
    check_rules(tmp_path, kind, [*label_of, *good_cells, *good_cells], "skip")


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


def test_a_reader_that_guesses_the_hour_is_detected(tmp_path, monkeypatch):
    cells = ["2026-11-18", "07:30", "07:30"]
    check_rules(tmp_path, "hours", cells, "skip")
    monkeypatch.setattr("sfumato.survey.cell_lookup.date_part", lambda *arguments: 0)
    with pytest.raises(AssertionError):
        check_rules(tmp_path, "hours", cells, "skip")


def test_a_reader_that_ignores_missing_codes_is_detected(tmp_path, monkeypatch):
    cells = ["NA,NA", "1,0", "1,0"]
    check_rules(tmp_path, "positions", cells, "skip")
    monkeypatch.setattr(AnswerReader, "_is_missing", lambda reader, degrees: degrees > 360)
    with pytest.raises(AssertionError):
        check_rules(tmp_path, "positions", cells, "skip")


def test_a_silent_command_is_detected(tmp_path, monkeypatch):
    check_privatize(tmp_path, HOLES)
    monkeypatch.setattr("sfumato.cli.privatize.notify_rows", lambda counter: None)
    with pytest.raises(AssertionError):
        check_privatize(tmp_path, HOLES)
