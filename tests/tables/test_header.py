"""A first line of answers is not taken for a header, in CSV files and in workbooks."""

import openpyxl
import pytest

from sfumato.errors import InvalidTable
from sfumato.tables.header import looks_like_header
from support.tables import read_values


def test_a_header_must_differ_from_the_rows():
    assert looks_like_header(["age", "place"], [["31", "bar"], ["40", "park"]])
    assert looks_like_header(["who", "place"], [[f"P{i}", "bar"] for i in range(5)])
    assert not looks_like_header(["who", "place"], [[f"P{i}", "bar"] for i in range(4)])
    assert not looks_like_header(["P17", "place"], [[f"P{i}", "bar"] for i in range(5)])
    assert not looks_like_header(["Anna", "ward"], [["Bob", "bar"] for i in range(100)])
    assert not looks_like_header(["Anna", "n/a", "ward"], [["Bob", "31", "bar"]])
    assert not looks_like_header(["age", "place"], [["31", "bar"], ["40", "age"]])
    assert looks_like_header(["age", "place", ""], [["31", "bar", ""]])
    assert not looks_like_header(["age", "place"], [["31", "bar"], ["40", "place"]])
    assert not looks_like_header(["age", "place"], [])


def _error(tmp_path, rows):
    workbook = openpyxl.Workbook()
    for row in rows:
        workbook.active.append(row)
    workbook.save(tmp_path / "a.xlsx")
    with pytest.raises(InvalidTable) as caught:
        read_values(tmp_path / "a.xlsx", "where")
    return str(caught.value)


def test_answers_in_the_first_row_of_a_workbook_are_never_shown(tmp_path):
    message = _error(tmp_path, [["Anna", "clinic"], ["Bob", "bar"], ["Carl", "clinic"]])
    assert message == (
        "a.xlsx has no column 'where' among its 2 columns. "
        "The first row must be a header with their names."
    )
    message = _error(tmp_path, [["Anna", 31, "clinic"], ["Bob", 32, "bar"]])
    assert "among its 3 columns" in message


def test_columns_of_a_workbook_are_listed(tmp_path):
    message = _error(tmp_path, [["age", "place"], [31, "bar"]])
    assert message == "a.xlsx has no column 'where'; its columns are age, place."


def test_rare_keys_of_json_lines_are_not_shown(tmp_path):
    lines = '{"age": 1, "Anna": "bar"}\n{"age": 2, "Bob": "bar"}\n{"age": 3}\n'
    (tmp_path / "a.jsonl").write_text(lines)
    with pytest.raises(InvalidTable) as caught:
        read_values(tmp_path / "a.jsonl", "anna")
    assert str(caught.value) == "a.jsonl has no column 'anna'; its columns are age."
    assert read_values(tmp_path / "a.jsonl", "Anna") == ["bar", None, None]
