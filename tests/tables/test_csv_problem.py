"""A malformed CSV file: the error names the problem and its line, and no content."""

import bz2
import gzip
import io
import sys

import pyarrow as pa
import pytest

from sfumato.errors import InvalidTable
from sfumato.tables import csv_file
from sfumato.tables.csv_rows import cell_content, csv_rows
from support.tables import read_values

UTF8_HINT = "(it looks like Latin-1 or Windows-1252; save the file as UTF-8)"
LONG = b"1,park\n" * 300_000

FILES = {
    "short": (b"age,place\n1,CANARY\n2\n", ", line 3: expected 2 cells as in the header, got 1."),
    "long": (b"age,place\n1,a,CANARY\n", ", line 2: expected 2 cells as in the header, got 3."),
    "one column": (b"place\nbar\na,CANARY\n", ", line 3: expected 1 cell as in the header, got 2."),
    "after quoted line breaks": (
        b'age,place\n1,"two\nlines"\n2,"three\n\r\nlines"\n3\n',
        ", line 7: expected 2 cells as in the header, got 1.",
    ),
    "after blank lines": (
        b"age,place\r\n\r\n1,bar\r\n\r\n3\r\n",
        ", line 5: expected 2 cells as in the header, got 1.",
    ),
    "after a header of two lines": (
        b'age,place,"a\nb"\n1,bar,2\n3\n',
        ", line 4: expected 3 cells as in the header, got 1.",
    ),
    "blocks later": (
        b"age,place\n" + LONG + b"CANARY\n",
        ", line 300002: expected 2 cells as in the header, got 1.",
    ),
    "latin-1": (b"age,place\n1,bar\n2,caf\xe9\n", f", line 3 is not valid UTF-8 {UTF8_HINT}."),
    "latin-1 blocks later": (
        b"age,place\n" + LONG + b"2,caf\xe9\n",
        f", line 300002 is not valid UTF-8 {UTF8_HINT}.",
    ),
    "latin-1 header": (b"pla\xe7e,age\n1,bar\n", f", line 1 is not valid UTF-8 {UTF8_HINT}."),
    "open quotation mark": (
        b'age,place\n1,"a\nb"\n2,"CANARY\n3,bar\n',
        ", line 4: a quotation mark is never closed, which hides the rows after it. "
        "Close it, or double it if it belongs to the text.",
    ),
    "open quotation mark with a doubled one": (
        b'age,place\n1,"a ""b"" CANARY\n3,bar\n',
        ", line 2: a quotation mark is never closed, which hides the rows after it. "
        "Close it, or double it if it belongs to the text.",
    ),
    "joined lines": (
        b'age,place\n1,"CANARY\n2,bar\n3,",park\n',
        ", line 2: expected 2 cells as in the header, got 3. "
        "Quoted text joins lines 2 to 4; check their quotation marks.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "compress", [bytes, gzip.compress, bz2.compress, "zstd"], ids=["plain", "gzip", "bz2", "zstd"]
)
def test_problem_and_line(tmp_path, name, compress):
    content, problem = FILES[name]
    if compress == "zstd":
        content = pa.compress(content, codec="zstd", asbytes=True)
    else:
        content = compress(content)
    (tmp_path / "lunch.csv").write_bytes(content)
    with pytest.raises(InvalidTable) as caught:
        read_values(tmp_path / "lunch.csv", "place")
    assert str(caught.value) == f"lunch.csv{problem}"
    assert caught.value.__context__ is None


PIPES = {
    "short": "standard input: expected 2 cells as in the header, got 1",
    "latin-1": f"standard input: a line is not valid UTF-8 {UTF8_HINT}",
    "open quotation mark": "standard input: a quotation mark is never closed",
}


@pytest.mark.parametrize("name", PIPES)
def test_problem_in_a_pipe(monkeypatch, name):
    pipe = io.TextIOWrapper(io.BufferedReader(io.BytesIO(FILES[name][0])))
    monkeypatch.setattr(sys, "stdin", pipe)
    with pytest.raises(InvalidTable) as caught:
        read_values("-", "place")
    assert PIPES[name] in str(caught.value)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("cell", "type_", "noun"),
    [
        ("CANARY", pa.float64(), "numbers"),
        ("caf\xe9", pa.float64(), "numbers"),
        ("1.5", pa.int64(), "integers"),
        ("-1", pa.uint32(), "non-negative integers"),
        ('"1,5"', pa.float64(), "numbers"),
    ],
)
def test_text_in_a_column_of_numbers(tmp_path, cell, type_, noun):
    rows = 'x,"1\n2"\n' + "3,4\n" * 10
    text = f"lat,lon\n{rows.replace('x', '1')}1,{cell}\n"
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidTable) as caught:
        read_values(tmp_path / "a.csv", types={"lat": None, "lon": type_})
    message = "a.csv, line 2: column 'lon' must contain"
    assert str(caught.value) == f"{message} {noun}."
    clean = text.replace('1,"1\n2"\n', "1, 2 \n1,\n")
    (tmp_path / "a.csv").write_text(clean, encoding="utf-8")
    with pytest.raises(InvalidTable, match=f"a.csv, line 14: column 'lon' must contain {noun}"):
        read_values(tmp_path / "a.csv", types={"lat": None, "lon": type_})


def test_quotation_marks_inside_a_cell_are_text(tmp_path):
    (tmp_path / "a.csv").write_text('size,place\n5" pipe,bar\n6,park\n')
    assert read_values(tmp_path / "a.csv", "size", "place") == [['5" pipe', "6"], ["bar", "park"]]


def test_a_row_longer_than_a_block_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "_BLOCK_SIZE", 1000)
    (tmp_path / "a.csv").write_text('a,place\n1,bar\n2,"' + "x\n" * 2000 + '"\n')
    with pytest.raises(InvalidTable, match=r"a\.csv, line 3: a quotation mark is never closed"):
        read_values(tmp_path / "a.csv", "place")


def test_rows_and_their_lines():
    content = b'a,b\r\n"x\ny","z ""q"""\n\n1"2,"3"4\n5,"6'
    rows = list(csv_rows(io.BytesIO(content), ",", 1000))
    assert [(row.first_line, row.last_line) for row in rows] == [
        (1, 1), (2, 3), (4, 4), (5, 5), (6, 6)
    ]  # fmt: skip
    assert [list(map(cell_content, row.cells)) for row in rows] == [
        [b"a", b"b"], [b"x\ny", b'z "q"'], [b""], [b'1"2', b"34"], [b"5"]
    ]  # fmt: skip
    assert [row.open_quote_line for row in rows] == [None, None, None, None, 6]
