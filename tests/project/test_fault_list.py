"""Every row of `docs/faults.md` names tests, and all of them exist."""

import re
from functools import cache

import pytest

from support.paths import ROOT

PAGE = ROOT / "docs" / "faults.md"
TEST_NAME = re.compile(r"`((?:tests|clients)/[^`]+)`")


def _rows(text):
    """Return the cells of every row of every table, without headings and rules."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] != "fault" and not set("".join(row)) <= set("-|")]


def _problem_with(name):
    """Return why a name is not that of a test, or an empty string."""
    file, _, test = name.partition("::")
    if not (ROOT / file).is_file():
        return f"{file} does not exist"
    if not file.endswith(".py"):
        return "" if not test else f"{file} is not Python"
    return "" if test in _tests_in(file) else f"{file} has no test {test!r}"


@cache
def _tests_in(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    return set(re.findall(r"^def (test\w*)\(", text, re.MULTILINE))


ROWS = _rows(PAGE.read_text(encoding="utf-8"))


def test_list_is_complete():
    assert len(ROWS) >= 32
    assert all(len(row) == 3 and all(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_fault_names_existing_tests(row):
    names = TEST_NAME.findall(row[2])
    assert names
    assert not re.sub(TEST_NAME, "", row[2]).strip(), "the last column must contain tests only"
    assert [problem for problem in map(_problem_with, names) if problem] == []


@pytest.mark.parametrize(
    "name",
    [
        "tests/unit/test_nowhere.py::test_a",
        "tests/project/test_fault_list.py::test_that_does_not_exist",
        "tests/project/test_fault_list.py",
        "clients/javascript/test/nowhere.js",
    ],
)
def test_missing_tests_are_detected(name):
    assert _problem_with(name)
