"""The examples: each runs by itself, what it prints is true, and each has its line in examples/README.md.

Their reports are random, as real ones are. So what must hold is what fails less than once in a million runs: estimates
within six standard errors, and no more intervals beside the truth than that.
"""

import re
import shutil
import subprocess
import sys
from functools import cache
from typing import NamedTuple

import pytest

from support.paths import ROOT

EXAMPLES = ROOT / "examples"
STORIES = ("yes_no", "places", "health", "salaries", "web_pages")

NUMBER = r"([\d,]+(?:\.\d+)?)"
ROW = re.compile(
    rf"^(\S.*?) +\*? *{NUMBER} +(-?[\d.]+) +{NUMBER} to {NUMBER}(?: +± {NUMBER})?$", re.MULTILINE
)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What a story prints, run once, in an empty folder of its own; and that folder."""

    @cache
    def run(story, *arguments):
        folder = tmp_path_factory.mktemp(story)
        command = [sys.executable, "-W", "error", EXAMPLES / f"{story}.py", *arguments]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, encoding="utf-8", timeout=300
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return done.stdout, folder

    return run


class Row(NamedTuple):
    """A line of a table: what is true, what was found, and its 95 % interval."""

    label: str
    truth: float
    found: float
    low: float
    high: float
    other: float  # what the table compares with, if anything


def rows_of(text):
    numbers = [
        (found[0], *(float(figure.replace(",", "") or "nan") for figure in found[1:]))
        for found in ROW.findall(text)
    ]
    return [Row(*found) for found in numbers]


def untrue(rows, rounding):
    """Labels whose estimate is further from the truth than six standard errors, as the interval has them."""
    reach = [6 / 1.96 * max(row.found - row.low, row.high - row.found) for row in rows]
    return [
        row.label
        for row, far in zip(rows, reach, strict=True)
        if abs(row.found - row.truth) > far + rounding
    ]


def missed(rows, rounding):
    return [row.label for row in rows if not row.low - rounding <= row.truth <= row.high + rounding]


def assert_true(rows, expected, *, rounding):
    assert len(rows) == expected
    assert untrue(rows, rounding) == []
    assert (
        len(missed(rows, rounding)) <= 6
    )  # of 12 at one in twenty, seven miss once in two million runs


def test_tables_are_read_and_faults_seen():
    text = "cancer                 *   0.9       1.4  0.5 to 2.4\nShanghai, CN   8.77   -9.96    8.10 to 11.83   ± 3.78\n"
    sound, far = rows_of(text)
    assert sound[:5] == ("cancer", 0.9, 1.4, 0.5, 2.4)
    assert far == ("Shanghai, CN", 8.77, -9.96, 8.1, 11.83, 3.78)
    assert untrue([sound, sound._replace(truth=4.6)], 0.05) == ["cancer"]
    assert missed([sound, sound._replace(truth=0.4)], 0.05) == ["cancer"]


# --- the stories ------------------------------------------------------------------------------------------------------


def test_yes_no(printed):
    text, _ = printed("yes_no")
    assert "2000 reports" in text
    (line,) = [line for line in text.splitlines() if line.startswith("Share of yes:")]
    share, low, high = (float(figure) for figure in re.findall(r"(\d+\.\d) %", line))
    # The truth is 15 %; n·Var = q(1 − q)/(1 − 1/e)² with q = 0.463, so the standard error is 1.77 %.
    assert abs(share - 15) < 6 * 1.77
    assert low < share < high


def test_places(printed):
    text, folder = printed("places", "map.png")
    rows = rows_of(text)
    assert_true(rows, 12, rounding=0.005)
    assert all(
        row.high - row.low < 2 * row.other for row in rows
    )  # better known than if all cities were hidden alike
    intervals, covered = re.search(
        rf"Of all {NUMBER} intervals, {NUMBER} % hold the truth", text
    ).groups()
    assert int(intervals.replace(",", "")) > 1000
    assert abs(float(covered) - 95) < 2  # six standard errors of 5,829 intervals are 1.7
    assert int(re.search(r"(\d+) times as many people", text)[1]) > 10
    assert (folder / "map.png").read_bytes().startswith(b"\x89PNG")


def test_health(printed):
    text, folder = printed("health")
    rows = rows_of(text)
    assert_true(rows, 11, rounding=0.1)
    assert (
        max(row.high - row.low for row in rows) <= 2.2
    )  # a percentage point either way, as planned
    people, classical = (
        int(found.replace(",", "")) for found in re.findall(rf"{NUMBER} people", text)[:2]
    )
    assert 50_000 < people < classical
    label = (folder / "health-label.html").read_text(encoding="utf-8")
    assert "What was your last prescription for?" in label
    assert "73.2" in label  # 50 : 50 becomes at most 73.2 : 26.8


def test_salaries(printed):
    text, _ = printed("salaries")
    rows = rows_of(text)
    assert_true(rows, 10, rounding=0.1)
    assert all(row.high - row.low < 2 * row.other for row in rows)
    figures = rf"{NUMBER} % \(95 % interval {NUMBER} to {NUMBER}; the truth is {NUMBER}\)"
    found, low, high, truth = map(float, re.search(figures, text).groups())
    assert untrue([Row("rich", truth, found, low, high, 0)], 0.1) == []
    assert (
        "The median lies in: $50,000 to $74,999\n" in text
    )  # its ends are more than ten standard errors away


def test_web_pages(printed):
    text, _ = printed("web_pages")
    assert_true(rows_of(text), 6, rounding=1)
    assert "300 devices answered, and 300 have a receipt." in text
    assert "Is that what was sent, report by report? True." in text
    assert "Reports that the aggregator has counted: 300." in text
    assert text.endswith("The aggregator ended with code 0.\n")


# --- the page that lists them -----------------------------------------------------------------------------------------


def unlisted(examples):
    """Examples that have no line in the first table of the page, and lines of it that have no example."""
    table = (examples / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    listed = set(re.findall(r"^\| `(\w+\.py)` \|", table, re.MULTILINE))
    return listed ^ {file.name for file in examples.glob("*.py")}


def test_every_example_has_a_line_on_the_page():
    assert not unlisted(EXAMPLES)


def test_an_example_without_a_line_is_seen(tmp_path):
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    (tmp_path / "examples" / "forgotten.py").write_text("")
    (tmp_path / "examples" / "places.py").unlink()
    assert unlisted(tmp_path / "examples") == {"forgotten.py", "places.py"}


def test_every_story_is_told():
    stories = {file.stem for file in EXAMPLES.glob("*.py") if not file.stem.startswith("audit_")}
    assert stories == set(STORIES)


def test_the_sources_of_the_data_are_named():
    page = (
        (EXAMPLES / "README.md")
        .read_text(encoding="utf-8")
        .partition("## Where the data come from")[2]
    )
    for story in STORIES:
        assert f"`{story}.py`" in page
    assert "CC BY 4.0" in page
    assert "GeoNames" in (EXAMPLES / "places.py").read_text(encoding="utf-8")
