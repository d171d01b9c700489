"""Each example runs, prints correct results, and has a line in examples/README.md.

Their reports are random, like real ones. The assertions fail less than once in a million runs:
estimates lie within six standard errors, and few intervals miss the truth.
"""

import re
import shutil
import subprocess
import sys
from functools import cache
from typing import NamedTuple

import pytest

from support.paths import ROOT
from support.run_here import run_program

EXAMPLES = ROOT / "examples"
NAMES = ("yes_no", "places", "health", "salaries", "web_pages")

NUMBER = r"([\d,]+(?:\.\d+)?)"
ROW = re.compile(
    rf"^(\S.*?) +\*? *{NUMBER} +(-?[\d.]+) +{NUMBER} to {NUMBER}(?: +± {NUMBER})?$", re.MULTILINE
)


@pytest.fixture(scope="module")
def run_example(tmp_path_factory):
    """Run an example once, in an empty folder; return its output and the folder."""

    @cache
    def run(name, *arguments):
        folder = tmp_path_factory.mktemp(name)
        result = run_program(EXAMPLES / f"{name}.py", *arguments, folder=folder)
        assert result.code == 0, result.both
        assert result.err == "", result.both
        return result.out, folder

    return run


class Row(NamedTuple):
    """A row of a table: the truth, the estimate and its 95 % interval."""

    label: str
    truth: float
    estimate: float
    low: float
    high: float
    other: float  # the last column of tables that compare two margins, or NaN


def rows_of(text):
    rows = []
    for label, *figures in ROW.findall(text):
        numbers = [float(figure.replace(",", "") or "nan") for figure in figures]
        rows.append(Row(label, *numbers))
    return rows


def wrong_labels(rows, rounding):
    """Return the labels whose estimate is more than six standard errors from the truth.

    The standard errors follow from the widths of the intervals.
    """
    labels = []
    for row in rows:
        margin = max(row.estimate - row.low, row.high - row.estimate)
        six_errors = 6 / 1.96 * margin
        if abs(row.estimate - row.truth) > six_errors + rounding:
            labels.append(row.label)
    return labels


def missed_labels(rows, rounding):
    """Return the labels whose interval does not contain the truth."""
    return [row.label for row in rows if not row.low - rounding <= row.truth <= row.high + rounding]


def check_rows(rows, expected, *, rounding):
    assert len(rows) == expected
    assert wrong_labels(rows, rounding) == []
    # Of 12 intervals, seven miss the truth once in two million runs.
    assert len(missed_labels(rows, rounding)) <= 6


def test_rows_are_parsed_and_wrong_ones_detected():
    text = (
        "cancer                 *   0.9       1.4  0.5 to 2.4\n"
        "Shanghai, CN   8.77   -9.96    8.10 to 11.83   ± 3.78\n"
    )
    right, wrong = rows_of(text)
    assert right[:5] == ("cancer", 0.9, 1.4, 0.5, 2.4)
    assert wrong == ("Shanghai, CN", 8.77, -9.96, 8.1, 11.83, 3.78)
    assert wrong_labels([right, right._replace(truth=4.6)], 0.05) == ["cancer"]
    assert missed_labels([right, right._replace(truth=0.4)], 0.05) == ["cancer"]


# --- the examples ---------------------------------------------------------------------------------


def test_yes_no(tmp_path):
    """As people run it, in a process of its own."""
    command = [sys.executable, "-W", "error", EXAMPLES / "yes_no.py"]
    result = subprocess.run(
        command, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=300
    )
    assert (result.returncode, result.stderr) == (0, ""), result.stdout + result.stderr
    text = result.stdout
    assert "2000 reports" in text
    (line,) = [line for line in text.splitlines() if line.startswith("Share of yes:")]
    share, low, high = (float(figure) for figure in re.findall(r"(\d+\.\d) %", line))
    # The truth is 15 %. n·Var = q(1 − q)/(1 − 1/e)² with q = 0.463: the standard error is 1.77 %.
    assert abs(share - 15) < 6 * 1.77
    assert low < share < high


def test_places(run_example):
    text, folder = run_example("places", "map.png")
    rows = rows_of(text)
    check_rows(rows, 12, rounding=0.005)
    # Intervals are narrower than if all cities had the same promise.
    assert all(row.high - row.low < 2 * row.other for row in rows)
    intervals, covered = re.search(
        rf"Of all {NUMBER} intervals, {NUMBER} % hold the truth", text
    ).groups()
    assert int(intervals.replace(",", "")) > 1000
    assert abs(float(covered) - 95) < 2  # six standard errors of 5,829 intervals are 1.7
    assert int(re.search(r"(\d+) times as many people", text)[1]) > 10
    assert (folder / "map.png").read_bytes().startswith(b"\x89PNG")


def test_health(run_example):
    text, folder = run_example("health")
    rows = rows_of(text)
    check_rows(rows, 11, rounding=0.1)
    # As planned: plus or minus one percentage point.
    assert max(row.high - row.low for row in rows) <= 2.2
    figures = re.findall(rf"{NUMBER} people", text)[:2]
    people, classical = (int(figure.replace(",", "")) for figure in figures)
    assert 50_000 < people < classical
    label = (folder / "health-label.html").read_text(encoding="utf-8")
    assert "What was your last prescription for?" in label
    assert "73.2" in label  # 50 : 50 becomes at most 73.2 : 26.8


def test_salaries(run_example):
    text, _ = run_example("salaries")
    rows = rows_of(text)
    check_rows(rows, 10, rounding=0.1)
    assert all(row.high - row.low < 2 * row.other for row in rows)
    figures = rf"{NUMBER} % \(95 % interval {NUMBER} to {NUMBER}; the truth is {NUMBER}\)"
    estimate, low, high, truth = map(float, re.search(figures, text).groups())
    assert wrong_labels([Row("rich", truth, estimate, low, high, 0)], 0.1) == []
    # The ends of this bracket are more than ten standard errors away.
    assert "The median lies in: $50,000 to $74,999\n" in text


def test_web_pages(run_example):
    text, _ = run_example("web_pages")
    check_rows(rows_of(text), 6, rounding=1)
    assert "300 devices answered, and 300 have a receipt." in text
    assert "Is that what was sent, report by report? True." in text
    assert "Reports that the aggregator has counted: 300." in text
    assert text.endswith("The aggregator ended with code 0.\n")


# --- the page that lists them ---------------------------------------------------------------------


def unlisted(examples):
    """Return examples that the first table of the page omits, and those only listed there."""
    table = (examples / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    listed = set(re.findall(r"^\| `(\w+\.py)` \|", table, re.MULTILINE))
    return listed ^ {file.name for file in examples.glob("*.py")}


def test_every_example_has_a_line_on_the_page():
    assert not unlisted(EXAMPLES)


def test_missing_lines_and_examples_are_detected(tmp_path):
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    (tmp_path / "examples" / "forgotten.py").write_text("")
    (tmp_path / "examples" / "places.py").unlink()
    assert unlisted(tmp_path / "examples") == {"forgotten.py", "places.py"}


def test_every_example_has_a_test():
    names = {file.stem for file in EXAMPLES.glob("*.py") if not file.stem.startswith("audit_")}
    assert names == set(NAMES)


def test_data_sources_are_named():
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    sources = page.partition("## Where the data come from")[2]
    for name in NAMES:
        assert f"`{name}.py`" in sources
    assert "CC BY 4.0" in sources
    assert "GeoNames" in (EXAMPLES / "places.py").read_text(encoding="utf-8")
