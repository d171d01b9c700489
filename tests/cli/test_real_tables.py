"""Tables from PyPI, with holes, decimals, dates and odd delimiters: from the file to a report page.

Three commands each, and nothing in between. `support/real_tables.py` says which tables they are.
"""

import csv
import re
import shlex
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from sfumato.survey import Survey
from sfumato.tables import count_files
from support.paths import ROOT
from support.real_tables import HEALTH, NO_ANSWER, PENGUINS, QUESTIONS, Answers

PAGE = ROOT / "docs" / "your_own_table.md"
LEVEL = 1 - 1e-8  # of an interval that holds the true share

by_question = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)


@pytest.fixture
def run(call):
    """Run a command that must succeed; return what it printed."""

    def run_command(*arguments):
        result = call(*arguments)
        assert result.code == 0, result.both
        return result.both

    return run_command


@by_question
def test_three_commands_from_the_file_to_a_page(question, folder, run):
    table = question.write_copy(folder)
    answers = question.count_answers()
    skipped_count = answers.missing if question.skips else 0
    counts = RowCounts(
        rows=answers.people,
        counted=answers.people - skipped_count,
        labelled=answers.missing - skipped_count,
        skipped=skipped_count,
    )
    printed = run("init", "--from", table.name, *question.options, "survey.toml")
    assert counts_in(printed) == counts

    printed = run("privatize", "survey.toml", table.name, "-o", "reports.parquet")
    if answers.missing:
        assert counts_in(printed) == counts
    assert f"{counts.counted:,} reports for survey" in printed
    assert pq.read_metadata(folder / "reports.parquet").num_rows == counts.counted

    pages = ("--html", "report.html", "-o", "estimate.csv")
    run("estimate", "survey.toml", "reports.parquet", *pages)
    assert "<html" in (folder / "report.html").read_text("utf-8")

    survey = Survey.load(folder / "survey.toml")
    estimate = survey.estimate(count_files(["reports.parquet"], survey))
    shares = true_shares(answers, skips=question.skips)
    assert labels_in(folder / "estimate.csv") == set(shares)
    assert not labels_that_are_off(estimate, shares)
    assert labels_that_are_off(estimate, rotate(shares))


def labels_in(path):
    with path.open(encoding="utf-8", newline="") as file:
        return {row["label"] for row in csv.DictReader(file)}


def true_shares(answers: Answers, *, skips: bool) -> dict[str, float]:
    """Return the true share of each label of the survey."""
    counts = dict(answers.counts)
    if answers.missing and not skips:
        counts[NO_ANSWER] = answers.missing
    people = sum(counts.values())
    return {label: count / people for label, count in counts.items()}


def labels_that_are_off(estimate, shares: dict[str, float]) -> list[str]:
    """Return the labels whose interval does not hold the true share."""
    lows, highs = estimate.interval(LEVEL)
    labels = [str(label) for label in estimate.labels]
    return [
        label
        for label, low, high in zip(labels, lows, highs, strict=True)
        if not low <= shares[label] <= high
    ]


def rotate(shares: dict[str, float]) -> dict[str, float]:
    """Give each label the share of another one: what a mix-up of labels would look like."""
    labels = list(shares)
    half = len(labels) // 2
    other_labels = labels[half:] + labels[:half]
    return {
        label: shares[other_label] for label, other_label in zip(labels, other_labels, strict=True)
    }


class RowCounts(NamedTuple):
    """The rows of a table: counted, counted as "no answer", and skipped."""

    rows: int
    counted: int
    labelled: int
    skipped: int


COUNTS = re.compile(
    r"^([\d,]+) rows: ([\d,]+) counted"
    rf"(?: \(([\d,]+) without an answer as '{NO_ANSWER}'\))?"
    r"(?:, ([\d,]+) skipped because they have no answer)?\.$",
    re.MULTILINE,
)


def counts_in(text: str) -> RowCounts:
    """Return the counts that a command printed."""
    (numbers,) = COUNTS.findall(text)
    return RowCounts(*(int(number.replace(",", "") or 0) for number in numbers))


@by_question
def test_survey_file_remembers_how_to_read_the_table(question, folder, run):
    table = question.write_copy(folder)
    run("init", "--from", table.name, *question.options, "survey.toml")
    text = (folder / "survey.toml").read_text("utf-8")
    assert "[table]" in text


def test_counts_of_the_tables_are_known():
    """If a package changes its table, this test names it."""
    people = {question.name: question.count_answers().people for question in QUESTIONS}
    assert people == {
        "party": 944,
        "age": 6366,
        "result": 4820,
        "class": 2201,
        "drinking": 1629,
        "weight": 1629,
        "lead": 10337,
        "place": 10337,
        "sex": 344,
        "weekday": 336776,
        "delay": 336776,
    }
    missing = {question.name: question.count_answers().missing for question in QUESTIONS}
    assert {name: count for name, count in missing.items() if count} == {
        "result": 1940,
        "drinking": 5,
        "weight": 63,
        "lead": 5395,
        "sex": 11,
        "delay": 8255,
    }


def test_docs_list_the_tables_and_options_of_these_tests():
    section = PAGE.read_text("utf-8").partition("\n## Eight real tables\n")[2]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if "`--" in line]
    assert len(rows) == 8
    row_counts = {int(count.replace(",", "")) for _, count, _ in rows}
    assert row_counts == {question.count_answers().people for question in QUESTIONS}
    options = [options_by_name(shlex.split(code)) for code in re.findall("`(--.+?)`", section)]
    expected = [options_by_name(question.options) for question in QUESTIONS]
    assert sorted(options) == sorted(expected)


def options_by_name(words: list[str]) -> list[tuple[str, str]]:
    """Return the options, apart from ε: the page leaves it out, because it suits the test only."""
    parts = [part for word in words for part in word.split("=", 1)]
    options = dict(zip(parts[::2], parts[1::2], strict=True))
    options.pop("--epsilon", None)
    if options.get("--delimiter") == "\t":
        options["--delimiter"] = "tab"
    return sorted(options.items())


# --- what a real table is refused for -------------------------------------------------------------


def test_column_of_too_many_numbers_needs_bins(folder, call, error_from):
    """A few lines away from useful: weights of a survey, and lengths in millimetres."""
    (folder / "health.csv").write_bytes(HEALTH.locate().read_bytes())
    options = ("init", "--from", "health.csv", "--column", "finalwgt", "new.toml")
    message = error_from(*options)
    assert "column 'finalwgt' contains numbers, " in message
    assert "too many for labels. Pass --bins, such as --bins 10" in message
    assert call(*options, "--bins", "10").code == 0

    (folder / "penguins.csv").write_bytes(PENGUINS.locate().read_bytes())
    options = ("init", "--from", "penguins.csv", "--column", "bill_length_mm")
    message = error_from(*options, "--missing-codes", "NA", "lengths.toml")
    assert "a useful result needs about " in message
    assert "more than 1,000 times the 344 in this table" in message
    assert "Use fewer labels (--bins, --labels with --other), or pass --force-labels." in message


@pytest.mark.parametrize(("delimiter", "name"), [(";", "';'"), ("\t", "tab")])
def test_other_delimiters_are_named(folder, error_from, delimiter, name):
    text = HEALTH.locate().read_text("utf-8").replace(",", delimiter)
    (folder / "health.csv").write_text(text, "utf-8")
    message = error_from("init", "--from", "health.csv", "--column", "region", "new.toml")
    assert message.rstrip().endswith(f"Pass --delimiter {name}.")


def test_wrong_column_of_a_real_table_is_corrected(folder, error_from):
    (folder / "penguins.csv").write_bytes(PENGUINS.locate().read_bytes())
    message = error_from("init", "--from", "penguins.csv", "--column", "specis", "new.toml")
    assert "did you mean 'species'? Its columns are species, island, bill_length_mm," in message
    message = error_from("privatize", "lunch.toml", "penguins.csv", "-o", "r.csv")
    assert "the columns of penguins.csv are species, island, bill_length_mm," in message
