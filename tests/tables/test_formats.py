"""Tables in every format, written by the libraries that people use."""

import bz2
import datetime
import gzip
import io
import json
import re
import stat
import sys
import tempfile
import warnings
import zipfile
from array import array

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pyreadstat
import pytest

from sfumato.domains import Domain
from sfumato.errors import InvalidTable, MissingExtra, UnknownValue
from sfumato.foundation.installation import install_hint
from sfumato.survey import RowCounts, RowRules
from sfumato.tables import (
    AnswerColumns,
    answer_batches,
    excel_file,
    json_lines,
    open_table,
    statistics_file,
    table,
)
from sfumato.tables.csv_rows import CsvRow
from support.command import _Pipe
from support.tables import read_types, read_values

PLACES = ["park", "bar", None, "café", "bar"]


def _workbook(path, rows):
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for row in rows:
        sheet.append(row)
    workbook.create_sheet("second").append(["other"])
    workbook.save(path)
    return path


def _write_feather(path, **options):
    pa.feather.write_feather(pa.table({"age": range(5), "place": PLACES}), str(path), **options)


def _write_stream(path):
    content = pa.table({"age": range(5), "place": PLACES})
    with pa.ipc.new_stream(str(path), content.schema) as writer:
        writer.write_table(content)


def _write_json(path):
    rows = [{"age": age, "place": place} for age, place in enumerate(PLACES)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def _frame():
    return pd.DataFrame({"age": range(5), "place": PLACES})


WRITERS = {
    "csv": lambda path: _frame().to_csv(path, index=False),
    "csv.bz2": lambda path: _frame().to_csv(path, index=False, compression="bz2"),
    "csv.zst": lambda path: path.write_bytes(
        pa.compress(_frame().to_csv(index=False).encode(), codec="zstd", asbytes=True)
    ),
    "parquet": lambda path: pq.write_table(pa.table({"age": range(5), "place": PLACES}), path),
    "feather": _write_feather,
    "feather uncompressed": lambda path: _write_feather(path, compression="uncompressed"),
    "arrow stream": _write_stream,
    "json lines": _write_json,
    "json lines by pandas": lambda path: path.write_text(
        _frame().to_json(orient="records", lines=True)
    ),
    "json lines, gzip": lambda path: path.write_bytes(
        gzip.compress(_frame().to_json(orient="records", lines=True).encode())
    ),
    "json lines, bz2": lambda path: path.write_bytes(
        bz2.compress(_frame().to_json(orient="records", lines=True).encode())
    ),
    "json lines, byte-order mark": lambda path: path.write_text(
        _frame().to_json(orient="records", lines=True), encoding="utf-8-sig"
    ),
    "excel": lambda path: _workbook(
        path, [["age", "place"], *([age, place] for age, place in enumerate(PLACES))]
    ),
    "excel by pandas": lambda path: path.write_bytes(_excel_by_pandas()),
    "spss": lambda path: pyreadstat.write_sav(_frame(), str(path)),
    "spss compressed": lambda path: pyreadstat.write_sav(_frame(), str(path), compress=True),
    "stata": lambda path: pyreadstat.write_dta(_frame(), str(path)),
    "stata 12": lambda path: pyreadstat.write_dta(
        _frame().replace("café", "cafe"), str(path), version=12
    ),
    "stata by pandas": lambda path: _frame().to_stata(path, version=118, write_index=False),
}


def _excel_by_pandas():
    sink = io.BytesIO()
    _frame().to_excel(sink, index=False)
    return sink.getvalue()


@pytest.mark.parametrize("pipe", [False, True], ids=["file", "pipe"])
@pytest.mark.parametrize("name", WRITERS)
def test_the_same_answers_in_every_format(tmp_path, monkeypatch, name, pipe):
    path = tmp_path / "table.csv"  # the name does not matter
    WRITERS[name](path)
    if pipe:
        stdin = io.TextIOWrapper(io.BufferedReader(_Pipe(path.read_bytes())))
        monkeypatch.setattr(sys, "stdin", stdin)
    ages, places = read_values("-" if pipe else path, "age", "place")
    assert [None if place == "cafe" else place for place in places] == [
        None if name == "stata 12" and place == "café" else place for place in PLACES
    ]
    assert list(map(int, ages)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", WRITERS)
def test_a_pipe_may_deliver_a_byte_at_a_time(tmp_path, monkeypatch, name):
    class Drip(_Pipe):
        def readinto(self, buffer):
            return super().readinto(memoryview(buffer)[:1])

    path = tmp_path / "table"
    WRITERS[name](path)
    pipe = io.BufferedReader(Drip(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
    assert read_values("-", "place")[:2] == ["park", "bar"]


@pytest.mark.parametrize("name", WRITERS)
def test_columns_are_listed_in_every_format(tmp_path, name):
    path = tmp_path / "lunch"
    WRITERS[name](path)
    with pytest.raises(InvalidTable) as caught:
        read_values(path, "Palce")
    message = "lunch has no column 'Palce'; did you mean 'place'? Its columns are age, place."
    if name == "excel":
        message += " This is the sheet 'Sheet'; to read another, pass --sheet: 'second'."
    assert str(caught.value) == message


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_truncated_files_are_rejected_or_shorter(tmp_path, name, share):
    path = tmp_path / "table"
    WRITERS[name](path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    try:
        assert len(read_values(path, "place")) <= 5
    except InvalidTable as error:
        assert "table" in str(error)
        assert error.__context__ is None or "park" not in str(error.__context__)


# --- Arrow ----------------------------------------------------------------------------------------


def test_large_arrow_batches_are_split(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "BATCH_ROWS", 2)
    _write_feather(tmp_path / "a")
    with open_table(str(tmp_path / "a")) as opened:
        batches = list(opened.batches({"place": None, "age": None}))
    assert [batch.num_rows for batch in batches] == [2, 2, 1]
    assert batches[0].schema.names == ["place", "age"]


# --- JSON lines -----------------------------------------------------------------------------------


def _json_lines(tmp_path, text):
    path = tmp_path / "a.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_json_values_are_text(tmp_path):
    lines = ['{"a": "x"}', '{"a": 3}', '{"a": 3.0}', '{"a": 2.5}', '{"a": true}', "", '{"a": null}',
             '{"b": 1}', '{"a": ""}', '{"a": NaN}', '{"a": 1e300}']  # fmt: skip
    path = _json_lines(tmp_path, "\n".join(lines))
    assert read_values(path, "a") == ["x", "3", "3", "2.5", "true", *[None] * 4, "1e300"]
    assert read_types(path, "a") == {"string"}


def test_json_numbers(tmp_path):
    path = _json_lines(tmp_path, '{"a": 1}\n{"a": "2.5"}\n{}\n{"a": null, "b": "CANARY"}\n')
    assert read_values(path, types={"a": pa.float64()}) == [1.0, 2.5, None, None]
    with pytest.raises(InvalidTable) as caught:
        read_values(path, types={"b": pa.float64()})
    assert str(caught.value) == "a.jsonl, line 4: column 'b' must contain numbers."


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"a": {"CANARY": 1}}', "line 3: column 'a' must contain text or numbers, but this value"),
        ('{"a": ["CANARY"]}', "line 3: column 'a' must contain text or numbers, but this value"),
        ('{"a": "CANARY"', "line 3: expected a JSON object"),
        ('["CANARY"]', "line 3: expected a JSON object"),
        ('"CANARY"', "line 3: expected a JSON object"),
        ("[" * 100_000, "line 3: expected a JSON object"),
        ('{"a": ' + "9" * 5000 + "}", "line 3: expected a JSON object"),
    ],
)
def test_bad_json_lines(tmp_path, line, problem):
    path = _json_lines(tmp_path, f'{{"a": 1}}\n\n{line}\n')
    with pytest.raises(InvalidTable) as caught:
        read_values(path, "a")
    assert problem in str(caught.value)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None


def test_nested_values_in_other_columns_do_not_matter(tmp_path):
    assert read_values(_json_lines(tmp_path, '{"a": 1, "b": {"c": [2]}}\n'), "a") == ["1"]


def test_json_lines_that_are_not_utf8(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\n{"a": "caf\xe9"}\n')
    with pytest.raises(InvalidTable, match=r"a\.jsonl, line 2 is not valid UTF-8 \(it looks like"):
        read_values(tmp_path / "a.jsonl", "a")


def test_lone_surrogates_are_rejected(tmp_path):
    with pytest.raises(InvalidTable, match="not UTF-8") as caught:
        read_values(_json_lines(tmp_path, '{"a": "\\ud800CANARY"}\n'), "a")
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("size", [64, 100, 2**22])
def test_json_lines_across_blocks(tmp_path, monkeypatch, size):
    monkeypatch.setattr(json_lines, "_BLOCK_SIZE", size)
    path = _json_lines(tmp_path, "".join(f'{{"a": "é{i}"}}\n' for i in range(500)))
    assert read_values(path, "a") == [f"é{i}" for i in range(500)]


@pytest.mark.parametrize("line", ['{"a": "CANARY", "a": "x"}', '{"a": 1, "b": 2, "\\u0061": 3}'])
def test_json_lines_with_a_key_twice_are_refused(tmp_path, line):
    path = _json_lines(tmp_path, f'{{"a": "x"}}\n{line}\n')
    with pytest.raises(InvalidTable) as caught:
        read_values(path, "a")
    assert str(caught.value) == "a.jsonl, line 2 contains a key twice. Remove one of them."


def test_json_lines_with_a_key_twice_in_a_part(tmp_path):
    path = _json_lines(tmp_path, '{"a": "x", "b": {"c": 1, "c": 2}}\n')
    assert read_values(path, "a") == ["x"]
    with pytest.raises(InvalidTable, match=r"line 1: column 'b' .* nested"):
        read_values(path, "b")


# --- Excel ----------------------------------------------------------------------------------------


def _cells(tmp_path, *values):
    rows = [["n", "a"], *([i, value] for i, value in enumerate(values))]
    return _workbook(tmp_path / "a.xlsx", rows)


def test_excel_numbers(tmp_path):
    path = _cells(tmp_path, 1, 2.0, None, -3)
    assert read_values(path, "a") == [1, 2, None, -3]
    assert read_types(path, "a") == {"int64"}
    path = _cells(tmp_path, 1, 2.5, None)
    assert read_values(path, "a") == [1.0, 2.5, None]
    assert read_types(path, "a") == {"double"}


def test_excel_numbers_and_text(tmp_path):
    path = _cells(tmp_path, 1, 2.0, 2.5, "65+", None, True, datetime.date(2026, 1, 31))
    assert read_values(path, "a") == ["1", "2", "2.5", "65+", None, "TRUE", "2026-01-31"]
    assert read_types(path, "a") == {"string"}


def test_excel_dates(tmp_path):
    path = _cells(tmp_path, datetime.date(2026, 1, 31), None)
    assert read_values(path, "a") == [datetime.date(2026, 1, 31), None]
    path = _cells(tmp_path, datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 12, 30))
    assert read_types(path, "a") == {"timestamp[us]"}


def test_excel_degrees(tmp_path):
    path = _cells(tmp_path, 1, "2.5", None, " 3 ")
    assert read_values(path, types={"a": pa.float64()}) == [1.0, 2.5, None, 3.0]
    path = _cells(tmp_path, 1, None, "CANARY")
    with pytest.raises(InvalidTable) as caught:
        read_values(path, types={"a": pa.float64()})
    assert str(caught.value) == "a.xlsx, row 4: column 'a' must contain numbers."


def test_empty_excel_rows_are_skipped(tmp_path):
    path = _workbook(tmp_path / "a.xlsx", [["n", "a"], [1, "x"], [], [None, ""], [2], [], []])
    assert read_values(path, "a") == ["x", None]
    path = _workbook(tmp_path / "a.xlsx", [["a"], ["x"], [""], ["y"], [""], [""]])
    assert read_values(path, "a") == ["x", None, "y"]


def _with_result(path, formula, cell):
    """Replace the cells with a formula by ``cell``, which is XML."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            pattern = rf'<c r="(\w+)"><f>{re.escape(formula)}</f><v */></c>'.encode()
            archive.writestr(name, re.sub(pattern, cell.encode(), content))
    return path


@pytest.mark.parametrize("column", ["n", "a"])
def test_excel_formulas_without_a_result_are_refused(tmp_path, column):
    rows = [["n", "a"], [1, "x"], [None, None], [2, "y"], [f"={column}", "=1+1"]]
    path = _workbook(tmp_path / "a.xlsx", rows)
    with pytest.raises(InvalidTable) as caught:
        read_values(path, column)
    assert str(caught.value) == (
        f"a.xlsx, row 5: column {column!r} contains a formula that was never computed. "
        "Open the workbook in a spreadsheet program, and save it."
    )


def test_excel_formulas_with_a_result_are_read(tmp_path):
    rows = [["n", "a", "b"], [1, "=1+1", "=3"], [2, "x", "=4"], [3, None, "=5"]]
    path = _workbook(tmp_path / "a.xlsx", rows)
    with pytest.raises(InvalidTable, match="row 2: column 'a' contains a formula"):
        read_values(path, "a")
    number = _with_result(path, "1+1", r'<c r="\1"><f>1+1</f><v>2</v></c>')
    assert read_values(number, "a") == ["2", "x", None]
    assert read_values(number, "n") == [1, 2, 3]
    path = _workbook(tmp_path / "a.xlsx", rows)
    empty_text = _with_result(path, "1+1", r'<c r="\1" t="str"><f>1+1</f><v></v></c>')
    assert read_values(empty_text, "a") == [None, "x", None]


def test_excel_cells_have_no_repr():
    cells = excel_file._Cells([["CANARY"]], array("L", [7]), has_gaps=False)
    assert repr(cells) == "_Cells(has_gaps=False)"
    assert "CANARY" not in repr(CsvRow(1, 1, [b"CANARY"]))


def test_rows_without_an_answer_have_the_numbers_of_the_sheet(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "BATCH_ROWS", 2)
    rows = [["n", "a"], [1, "x"], [], [2, "x"], [3, "x"], [4, None], [5, "z"]]
    path = _workbook(tmp_path / "a.xlsx", rows)
    counts = RowCounts()
    for batch in answer_batches(str(path), AnswerColumns("a"), Domain(["x", "y"])):
        counts += batch.counts
    assert counts.first_missing == 6 - 1
    assert counts.first_unknown == 7 - 1
    with pytest.raises(UnknownValue, match=r"first in row 6\).*first in row 7\)"):
        RowRules(Domain(["x", "y"]), AnswerColumns("a")).check(counts, "a.xlsx")
    (tmp_path / "a.csv").write_text("n,a\n1,x\n\n2,x\n3,x\n4,\n5,z\n")
    (batch,) = answer_batches(str(tmp_path / "a.csv"), AnswerColumns("a"), Domain(["x", "y"]))
    assert batch.counts.first_missing == 4 - 1
    with pytest.raises(UnknownValue, match=r"first in data row 4\).*first in data row 5\)"):
        RowRules(Domain(["x", "y"]), AnswerColumns("a")).check(batch.counts, "a.csv")


def test_excel_headers(tmp_path):
    path = _workbook(tmp_path / "a.xlsx", [[None, 2024, "a", "a"], ["x", "y", 1, 2, 3]])
    assert read_values(path, "2024") == ["y"]
    with pytest.raises(InvalidTable, match="more than one column named 'a'"):
        read_values(path, "a")
    with pytest.raises(InvalidTable, match="must have a header"):
        read_values(_workbook(tmp_path / "b.xlsx", []), "a")


def test_excel_dimensions_may_be_wrong(tmp_path):
    path = _cells(tmp_path, "x", "y")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    assert b'<dimension ref="A1:B3" />' in members[sheet]
    members[sheet] = members[sheet].replace(b"A1:B3", b"A1:A1")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert read_values(path, "a") == ["x", "y"]


def test_only_the_first_sheet_is_read(tmp_path):
    with pytest.raises(InvalidTable, match="no column 'other'"):
        read_values(_cells(tmp_path, 1), "other")


# --- SPSS and Stata -------------------------------------------------------------------------------


def _spss(tmp_path, **options):
    frame = pd.DataFrame(
        {
            "vote": [1.0, 2.0, 9.0, 3.0, np.nan, 2.5],
            "code": ["a", "", "zz", "b", None, "a"],
            "age": [30.0, 40.0, np.nan, 50.0, 60.0, 70.0],
            "day": [datetime.date(2026, 1, 31)] * 5 + [None],
            "size": [1.5, 2.0, 3.0, 4.0, 5.0, 6.0],
        }
    )
    path = tmp_path / "a.sav"
    pyreadstat.write_sav(
        frame,
        str(path),
        variable_value_labels={
            "vote": {1: "yes", 2: "no", 9: "refused"},
            "code": {"a": "Alpha"},
        },
        missing_ranges={"vote": [9], "code": ["zz"], "age": [{"lo": 60, "hi": 70}]},
        **options,
    )
    return path


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize("options", [{}, {"compress": True}, {"row_compress": True}], ids=str)
def test_spss_labels_and_missing_values(tmp_path, monkeypatch, rows, options):
    monkeypatch.setattr(statistics_file, "_CHUNK_ROWS", rows)
    path = _spss(tmp_path, **options)
    assert read_values(path, "vote") == ["yes", "no", None, "3", None, "2.5"]
    assert read_values(path, "code") == ["Alpha", None, None, "b", None, "Alpha"]
    assert read_values(path, "age") == [30, 40, None, 50, None, None]
    assert read_values(path, "day") == [datetime.date(2026, 1, 31)] * 5 + [None]
    assert read_values(path, "size", "vote")[0] == [1.5, 2, 3, 4, 5, 6]
    assert read_values(path, types={"vote": pa.float64()}) == [1, 2, None, 3, None, 2.5]


def test_spss_types(tmp_path):
    path = _spss(tmp_path)
    assert read_types(path, "vote") == {"string"}
    assert read_types(path, "age") == {"int64"}
    assert read_types(path, "size") == {"double"}
    assert read_types(path, "day") == {"date32[day]"}
    with pytest.raises(InvalidTable, match=r"a\.sav, row 1: column 'code' must contain numbers\."):
        read_values(path, types={"code": pa.float64()})


def test_stata_labels_and_missing_values(tmp_path):
    path = tmp_path / "a.dta"
    frame = pd.DataFrame({"vote": ["a", 1, 2, 3, None], "name": ["x", "", "é", None, "y"]})
    pyreadstat.write_dta(
        frame,
        str(path),
        variable_value_labels={"vote": {1: "yes", 2: "no"}},
        missing_user_values={"vote": ["a"]},
    )
    assert read_values(path, "vote") == [None, "yes", "no", "3", None]
    assert read_values(path, "name") == ["x", None, "é", None, "y"]


def test_copies_of_pipes_are_private_and_removed(tmp_path, monkeypatch):
    path = _spss(tmp_path)
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    for content in (path.read_bytes(), path.read_bytes()[:300]):
        pipe = io.TextIOWrapper(io.BufferedReader(_Pipe(content)))
        monkeypatch.setattr(sys, "stdin", pipe)
        try:
            with open_table("-") as opened:
                (copy,) = folder.iterdir()
                assert stat.S_IMODE(copy.stat().st_mode) == 0o600
                assert len(list(opened.batches({"vote": None}))) == 1
        except InvalidTable as error:
            assert "truncated" in str(error)
            assert len(content) == 300
        assert list(folder.iterdir()) == []


# --- optional packages ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("package", "name"), [("openpyxl", "excel"), ("pyreadstat", "spss"), ("pyreadstat", "stata")]
)
def test_missing_packages_are_named(tmp_path, monkeypatch, package, name):
    WRITERS[name](tmp_path / "a")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"{package}: {re.escape(install_hint('tables'))}"):
        read_values(tmp_path / "a", "place")


# --- formats that are not read --------------------------------------------------------------------


def _zip(*names):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name in names:
            archive.writestr(name, "CANARY")
    return sink.getvalue()


FOREIGN = {
    "utf-16": ("age,place\n1,CANARY\n".encode("utf-16"), "is UTF-16 text, .* Save it as UTF-8"),
    "utf-16 without mark": ("age,place\n1,CANARY\n".encode("utf-16-le"), "Save it as UTF-8"),
    "utf-16 big-endian": ("age,place\n1,CANARY\n".encode("utf-16-be"), "Save it as UTF-8"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), r"old Excel file .* as \.xlsx"),
    "xlsb": (_zip("xl/workbook.bin"), r"binary workbook \(\.xlsb\), .* Save it as \.xlsx"),
    "ods": (_zip("mimetype", "content.xml"), r"OpenDocument file \(\.ods\), .* Save it as \.xlsx"),
    "zip": (_zip("answers.csv"), "is a zip archive, .* Extract the table"),
    "broken zip": (b"PK\x03\x04 and no more", "truncated or corrupt"),
    "broken workbook": (_zip("xl/workbook.xml"), "not a valid Excel workbook"),
    "xz": (b"\xfd7zXZ\x00" + bytes(20), "compressed with xz, .* Decompress it"),
    "sas": (bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\x00", "SAS file .* as CSV"),
    "sqlite": (b"SQLite format 3\x00" + bytes(80), "SQLite database, .* as CSV"),
    "pdf": (b"%PDF-1.7\n", "PDF document"),
    "feather 1": (b"FEA1" + bytes(20), "Feather file of version 1"),
    "json array": (b'[{"place": "CANARY"}]', "JSON array, .* one object per line"),
    "indented json array": (b'\n[\n  {"place": "CANARY"}\n]', "JSON array, .* one object per line"),
    "indented json object": (b'{\n  "place": "CANARY"\n}', "line 1: expected a JSON object"),
    "html": (b"<!DOCTYPE html>\n<table>", "HTML or XML"),
    "r": (gzip.compress(b"RDX3\nX\n\0\0\0\x03CANARY"), r"R data file, .* write\.csv"),
    "gzipped parquet": (gzip.compress(b"PAR1\x15CANARY"), "contains a Parquet file, compressed"),
    "gzipped utf-16": (gzip.compress("place\nCANARY".encode("utf-16")), "Save it as UTF-8"),
    "other bytes": (b"CANARY\x00\x01\x02" * 9, "neither UTF-8 text nor"),
    "spss by its first letters": (b"$FL2@(#)CANARY", "not a valid SPSS or Stata file"),
    "stata by its first letters": (b"<stata_dta>CANARY", "not a valid SPSS or Stata file"),
    "arrow by its first letters": (b"ARROW1\0\0CANARY", "not a valid Feather or Arrow file"),
    "truncated bz2": (bz2.compress(b"place\nCANARY\n" * 900)[:-9], "truncated or corrupt"),
}  # fmt: skip


@pytest.mark.parametrize("pipe", [False, True], ids=["file", "pipe"])
@pytest.mark.parametrize("name", FOREIGN)
def test_other_formats_are_named(tmp_path, monkeypatch, name, pipe):
    content, message = FOREIGN[name]
    path = tmp_path / "lunch"
    path.write_bytes(content)
    if pipe:
        stdin = io.TextIOWrapper(io.BufferedReader(_Pipe(content)))
        monkeypatch.setattr(sys, "stdin", stdin)
    with warnings.catch_warnings(), pytest.raises(InvalidTable, match=message) as caught:
        read_values("-" if pipe else path, "place")
    assert str(caught.value).count("standard input" if pipe else "lunch")
    assert "CANARY" not in str(caught.value)
    assert "CANARY" not in repr(caught.value.__context__)


@pytest.mark.parametrize(
    "header",
    [
        "[age],[place]",
        "ORDER,place",
        "PARK,place",
        "BZh,place",
        "ORC,place",
        "FEA1,place",
        "Object,place",
    ],
)
def test_headers_that_resemble_signatures(tmp_path, header):
    (tmp_path / "a.csv").write_text(f"{header}\n1,bar\n")
    assert read_values(tmp_path / "a.csv", header.split(",")[1]) == ["bar"]


@pytest.mark.parametrize("content", ["PAR1,PAR2\n1,2\n", "PAR1,größe\n1,2\n"])
def test_a_column_may_be_called_par1(tmp_path, content):
    (tmp_path / "a.csv").write_text(content, encoding="utf-8")
    assert read_values(tmp_path / "a.csv", "PAR1") == ["1"]


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1\x15\x04"])
def test_a_truncated_parquet_file_is_one(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InvalidTable, match="not a valid Parquet file"):
        read_values(tmp_path / "a", "place")
