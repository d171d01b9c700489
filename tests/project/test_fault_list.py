"""The list of faults is true: every test that ``docs/faults.md`` names exists, and every row names one."""

import ast
import re

import pytest

from support.paths import ROOT

PAGE = ROOT / "docs" / "faults.md"
NAMED = re.compile(r"`((?:tests|clients)/[^`]+)`")


def _rows(text):
    """The cells of every row of every table, without heads and rules."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] != "fault" and not set("".join(row)) <= set("-|")]


def _missing(name):
    """Why a name is that of no test; nothing if it is one."""
    file, _, test = name.partition("::")
    if not (ROOT / file).is_file():
        return f"{file} is not there"
    if not file.endswith(".py"):
        return "" if not test else f"{file} is not Python"
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    tests = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
    }
    return "" if test in tests else f"{file} has no {test or 'test without a name'}"


ROWS = _rows(PAGE.read_text(encoding="utf-8"))


def test_the_list_is_as_long_as_it_was():
    assert len(ROWS) >= 32
    assert all(len(row) == 3 and all(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_every_fault_is_shown_by_tests_that_exist(row):
    names = NAMED.findall(row[2])
    assert names
    assert not re.sub(NAMED, "", row[2]).strip(), "something in the last column is no test"
    assert [problem for problem in map(_missing, names) if problem] == []


@pytest.mark.parametrize(
    "name",
    [
        "tests/unit/test_nowhere.py::test_a",
        "tests/project/test_fault_list.py::test_that_nobody_wrote",
        "tests/project/test_fault_list.py",
        "clients/javascript/test/nowhere.js",
    ],
)
def test_a_test_that_does_not_exist_is_found_out(name):
    assert _missing(name)
