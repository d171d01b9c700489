"""Tables of results as CSV, Parquet and Excel files."""

import csv
import sys

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import InvalidSetting, MissingExtra
from sfumato.tables import formula_note, write_table

COLUMNS = ("label", "share")
HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://x","y")', "a,b", "\u202ex"]
ROWS = [(label, 0.125) for label in HOSTILE]


def test_csv_file(tmp_path):
    path = tmp_path / "t.csv"
    write_table(str(path), COLUMNS, ROWS)
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [list(COLUMNS), *([label, "0.125"] for label in HOSTILE)]


@pytest.mark.parametrize("label", [*HOSTILE[:1], *HOSTILE[3:5], "+1+1", "-1+1", " =1", "- none -"])
def test_labels_that_a_spreadsheet_may_compute_are_noticed(label):
    assert "A spreadsheet that opens the CSV file may compute them" in formula_note(["a", label])


@pytest.mark.parametrize("label", ["a=1", "a,b", -1, "-1", "+1", "-1.5", "-33.9,-70.6", "3 - 5"])
def test_other_labels_cause_no_note(label):
    assert formula_note([label]) == ""


def test_excel_file_has_text_and_no_formula(tmp_path):
    path = tmp_path / "t.xlsx"
    write_table(str(path), COLUMNS, ROWS)
    sheet = openpyxl.load_workbook(path).active
    header, *rows = sheet.iter_rows()
    assert [cell.value for cell in header] == list(COLUMNS)
    assert [row[0].value for row in rows] == [*HOSTILE[:-1], "\\u202ex"]
    assert {row[0].data_type for row in rows} == {"s"}
    assert {row[1].value for row in rows} == {0.125}
    assert {row[1].data_type for row in rows} == {"n"}


def test_parquet_file_keeps_types(tmp_path):
    path = str(tmp_path / "t.parquet")
    write_table(path, COLUMNS, [(1, 0.5), (2, 0.5)])
    assert pq.read_table(path).schema.types == [pa.int64(), pa.float64()]
    write_table(path, COLUMNS, [(1, 0.5), ("other", 0.5)])
    assert pq.read_table(path).to_pydict() == {"label": ["1", "other"], "share": [0.5, 0.5]}


def test_too_many_rows_for_excel(tmp_path):
    with pytest.raises(InvalidSetting, match="at most 1,048,576 rows"):
        write_table(str(tmp_path / "t.xlsx"), COLUMNS, [("a", 1.0)] * 2**20)
    assert not list(tmp_path.iterdir())


def test_other_extensions_are_refused(tmp_path):
    with pytest.raises(InvalidSetting, match=r"must end in \.csv, \.parquet or \.xlsx"):
        write_table(str(tmp_path / "t.txt"), COLUMNS, ROWS)


def test_excel_without_openpyxl_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtra, match=r"Excel files require openpyxl: pip install .*\[tables"):
        write_table(str(tmp_path / "t.xlsx"), COLUMNS, ROWS)
