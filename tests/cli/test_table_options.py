"""Sheets, codes for missing answers, and the order of labels, in all commands that read tables."""

import json
import os
import pty
import subprocess
import sys

import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pyreadstat
import pytest

from sfumato.survey import Survey
from support.command import read_folder
from support.fake_aggregator import FakeAggregator

FROM = ("init", "--column", "a", "new.toml", "--force", "--from")


def labels_of(path):
    return list(Survey.load(path).context.domain.labels)


# --- sheets ---------------------------------------------------------------------------------------


@pytest.fixture
def workbook(folder):
    """Write a workbook with two sheets, which have a column of the same name."""
    book = openpyxl.Workbook()
    book.active.title = "2025"
    second = book.create_sheet("Year 2026")
    for sheet, answers in ((book.active, ["x", "y"]), (second, ["p", "q", "r"])):
        sheet.append(["id", "a"])
        for row, answer in enumerate(answers * 20):
            sheet.append([row, answer])
    book.save(folder / "book.xlsx")
    return "book.xlsx"


def test_init_reads_the_sheet_and_remembers_it(folder, call, workbook):
    assert call(*FROM, workbook).code == 0
    assert labels_of(folder / "new.toml") == ["x", "y"]
    result = call(*FROM, workbook, "--sheet", "Year 2026")
    assert result.code == 0
    assert "60 rows: 60 counted." in result.err
    assert labels_of(folder / "new.toml") == ["p", "q", "r"]
    assert Survey.load(folder / "new.toml").description.table.sheet == "Year 2026"
    assert call("privatize", "new.toml", workbook, "-o", "r.csv").code == 0
    assert (folder / "r.csv").read_text().count("\n") == 61


def write_survey(folder, *labels):
    """Write a survey that says nothing about tables."""
    (folder / "plain.toml").write_text(
        f'name = "plain"\nedition = 2\n[domain]\nkind = "labels"\nlabels = {json.dumps(labels)}\n'
        '[context]\nkind = "uniform"\nepsilon = 1\n'
    )


READ = ["plain.toml", "--column", "a"]
COMMANDS = {
    "privatize": ("privatize", *READ, "-o", "r.csv"),
    "simulate": ("simulate", *READ, "--runs", "1"),
    "compare": ("compare", "--survey", *READ, "--runs", "1"),
    "send": ("send", *READ),
}


def run(call, name, path, survey_path, *options):
    """Call a command with a file of answers in the place where it expects it."""
    command = [*COMMANDS[name], *options]
    command.insert(2 if name != "compare" else 1, path)
    if name != "send":
        return call(*command)
    with FakeAggregator(Survey.load(survey_path)) as aggregator:
        return call(*command, "--to", aggregator.url)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_reads_the_sheet(folder, call, workbook, name):
    write_survey(folder, "p", "q", "r")
    refused = run(call, name, workbook, folder / "plain.toml")
    assert refused.code == 2
    assert "40 of 40 rows have an answer that is not in the domain" in refused.err
    result = run(call, name, workbook, folder / "plain.toml", "--sheet", "Year 2026")
    assert result.code == 0, result.both
    assert "60 rows: 60 counted." in result.both


def test_an_unknown_sheet_is_refused_with_the_list(error_from, workbook):
    message = error_from(*FROM, workbook, "--sheet", "2027")
    assert "book.xlsx has no sheet '2027'; its sheets are '2025', 'Year 2026'." in message


def test_init_says_which_sheet_it_read(call, workbook):
    hint = "This is the sheet '2025'; to read another, pass --sheet: 'Year 2026'."
    assert hint in call(*FROM, workbook).err
    assert "This is the sheet" not in call(*FROM, workbook, "--sheet", "2025").err


# --- codes for missing answers --------------------------------------------------------------------


@pytest.mark.parametrize("codes", ["--missing-codes=-99,NA", "--missing-codes=NA,-99"])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_reads_missing_codes(folder, call, name, codes):
    write_survey(folder, "x", "y")
    rows = ["x", "y", "-99", "NA", ""] * 20
    (folder / "a.csv").write_text("id,a\n" + "".join(f"{i},{a}\n" for i, a in enumerate(rows)))
    refused = run(call, name, "a.csv", folder / "plain.toml", "--missing", "skip")
    assert refused.code == 2
    assert "40 of 100 rows have an answer that is not in the domain" in refused.err
    result = run(call, name, "a.csv", folder / "plain.toml", "--missing", "skip", codes)
    assert result.code == 0, result.both
    assert "100 rows: 40 counted, 60 skipped because they have no answer." in result.both


@pytest.mark.parametrize("name", COMMANDS)
def test_missing_codes_replace_those_of_the_survey_file(folder, call, name):
    write_survey(folder, "x", "y", "7")
    with (folder / "plain.toml").open("a") as file:
        file.write('[table]\nmissing = "skip"\nmissing_codes = ["7"]\n')
    rows = ["x", "y", "7", "NA"] * 20
    (folder / "a.csv").write_text("id,a\n" + "".join(f"{i},{a}\n" for i, a in enumerate(rows)))
    result = run(call, name, "a.csv", folder / "plain.toml", "--missing-codes", "NA")
    assert result.code == 0, result.both
    assert "80 rows: 60 counted, 20 skipped" in result.both


# --- what leaves the holder of the table ----------------------------------------------------------


def describe_outputs(folder, call, answers):
    """Privatize and estimate; return what the files contain besides numbers and identifiers."""
    table = "".join(f"{i},{answer}\n" for i, answer in enumerate(answers))
    (folder / "a.csv").write_text("id,a\n" + table)
    options = ("--column", "a", "--missing", "skip", "-o")
    for output in ("r.parquet", "t.json"):
        result = call("privatize", "plain.toml", "a.csv", *options, output)
        assert result.code == 0, result.both
    estimate = call("estimate", "plain.toml", "r.parquet", "--json", "--html", "e.html")
    schema = pq.read_schema(folder / "r.parquet")
    return {
        "columns": schema.names,
        "metadata": sorted(schema.metadata),
        "tally": sorted(json.loads((folder / "t.json").read_text())),
        "estimate": sorted(json.loads(estimate.out)),
        "reports": json.loads(estimate.out)["reports"],
        "words": [word in (folder / "e.html").read_text() for word in ("skip", "left out", "rows")],
    }


def test_counts_of_rows_are_in_no_file(folder, call):
    """They are exact, and estimates are not. Nobody may learn them from what is handed on."""
    write_survey(folder, "x", "y")
    complete = describe_outputs(folder, call, ["x", "y"] * 100)
    with_holes = describe_outputs(folder, call, ["x", "", "y", ""] * 100)
    assert with_holes == complete
    assert with_holes["reports"] == 200
    assert with_holes["columns"] == ["report"]
    assert with_holes["metadata"] == [b"sfumato.batch", b"sfumato.survey"]
    assert with_holes["tally"] == ["cells", "covers", "format", "survey", "tally"]
    assert not {"rows", "counted", "skipped", "missing", "other"} & set(with_holes["estimate"])


# --- the order of labels --------------------------------------------------------------------------

ORDER = ["never", "once", "often", "always"]  # neither alphabetical nor by number
CELLS = ["always", "never", "often", "once", "never", None]


def write_categories(path, *, is_ordered):
    column = pd.Categorical(CELLS * 10, categories=ORDER, ordered=is_ordered)
    frame = pd.DataFrame({"a": column})
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_feather(path)


def write_arrow_stream(path):
    indices = pa.array([None if cell is None else ORDER.index(cell) for cell in CELLS * 10])
    column = pa.DictionaryArray.from_arrays(indices, pa.array(ORDER), ordered=True)
    table = pa.table({"a": column})
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)


def coded_frame():
    code_of = {label: code for code, label in CODES.items()}
    return pd.DataFrame({"a": [None if cell is None else code_of[cell] for cell in CELLS * 10]})


CODES = {10: "always", -1: "never", 2: "once", 3: "often"}
ORDERED_FILES = {
    "a.sav": lambda path: pyreadstat.write_sav(
        coded_frame(), str(path), variable_value_labels={"a": CODES}
    ),
    "a.dta": lambda path: pyreadstat.write_dta(
        coded_frame(), str(path), variable_value_labels={"a": CODES}
    ),
    "a.parquet": lambda path: write_categories(path, is_ordered=True),
    "a.feather": lambda path: write_categories(path, is_ordered=True),
    "a.arrows": write_arrow_stream,
    "by polars": lambda path: pl.DataFrame(
        {"a": pl.Series(CELLS * 10, dtype=pl.Enum(ORDER))}
    ).write_parquet(path),
}


@pytest.mark.parametrize("name", ORDERED_FILES)
def test_init_keeps_the_order_of_the_file(folder, call, name):
    ORDERED_FILES[name](folder / name)
    result = call(*FROM, name)
    assert result.code == 0, result.both
    assert labels_of(folder / "new.toml") == [*ORDER, "no answer"]


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_categories_without_an_order_are_sorted(folder, call, name):
    write_categories(folder / name, is_ordered=False)
    assert call(*FROM, name).code == 0
    assert labels_of(folder / "new.toml") == [*sorted(ORDER), "no answer"]


def test_labels_option_overrides_the_order_of_the_file(folder, call):
    ORDERED_FILES["a.sav"](folder / "a.sav")
    assert call(*FROM, "a.sav", "--labels", "always,often,once,never").code == 0
    assert labels_of(folder / "new.toml") == [*ORDER[::-1], "no answer"]


def test_codes_without_an_answer_are_no_labels(folder, call):
    """A value label that nobody has says nothing about this table's people."""
    frame = coded_frame()
    frame["a"] = frame["a"].replace(10, 3)
    pyreadstat.write_sav(frame, str(folder / "a.sav"), variable_value_labels={"a": CODES})
    assert call(*FROM, "a.sav").code == 0
    assert labels_of(folder / "new.toml") == ["never", "once", "often", "no answer"]


def test_sorted_labels_are_detected(folder, call, monkeypatch):
    """The twin: without the order of the file, the labels are in natural order."""
    monkeypatch.setattr("sfumato.tables.column_summary._category_order", lambda column: [])
    with pytest.raises(AssertionError):
        test_init_keeps_the_order_of_the_file(folder, call, "a.parquet")


# --- what a terminal shows before it asks ---------------------------------------------------------


def run_on_terminal(folder, typed, *arguments):
    """Run the command with a terminal as its standard input; return its code and all its output."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "sfumato", *arguments]
    with subprocess.Popen(
        command, cwd=folder, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        os.close(theirs)
        os.write(ours, typed)
        output, _ = process.communicate()
    os.close(ours)
    return process.returncode, output.decode()


def test_columns_are_listed_before_anything_is_asked(folder):
    before = read_folder(folder)
    pq.write_table(pa.table({"age": [1, 2], "place of work": ["x", "y"]}), folder / "a.parquet")
    code, output = run_on_terminal(folder, b"\n\n\n\n", "init", "--from", "a.parquet", "new.toml")
    assert code == 2
    assert "the columns of a.parquet are age, place of work." in output
    assert "Sensitive labels" not in output
    (folder / "a.parquet").unlink()
    assert read_folder(folder) == before


def test_labels_are_listed_before_the_sensitive_ones_are_asked(folder):
    rows = [*["x", "y"] * 10, "Canary"]
    (folder / "a.csv").write_text("id,a\n" + "".join(f"{i},{a}\n" for i, a in enumerate(rows)))
    code, output = run_on_terminal(folder, b"x\n\n\n\n", *FROM, "a.csv")
    assert code == 0
    listed = output.index("The labels are 'x', 'y', and 1 more.")
    assert listed < output.index("Sensitive labels")
    assert "Canary" not in output
