"""Quotation marks: no row of a CSV file is lost in silence.

Python's csv module, in its strict mode, says which rows there are, or that a file is malformed.
"""

import csv
import io
import sys
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.errors import InvalidTable
from sfumato.tables import csv_file
from sfumato.tables.csv_quotes import QuoteScanner
from support.tables import read_values

PEOPLE = 100


def _people(**cells):
    """Return a table of 100 people in which some cells are replaced."""
    lines = ["id,note,place"]
    for person in range(PEOPLE):
        note = cells.get(f"note_{person}", "none")
        place = cells.get(f"place_{person}", "park")
        lines.append(f"{person},{note},{place}")
    return "\n".join(lines) + "\n"


STRAY = "text after a closing quotation mark, so rows may be lost."
LOSSES = {
    "in another column": (_people(note_41='"tall', note_81='"short'), "lines 43 to 83"),
    "in the answers": (_people(place_41='"park', place_81='"bar'), "lines 43 to 83"),
    "in two rows": (_people(note_41='"tall', note_42='"short'), "lines 43 to 44"),
    "in one cell": (_people(note_41='"a"b'), "line 43"),
    "after a space": (_people(note_41='"a" '), "line 43"),
    "after other quoted cells": (
        _people(note_3='"a, ""b"""', note_5='5" pipe', note_41='"tall', note_81='"short'),
        "lines 43 to 83",
    ),
}


@pytest.mark.parametrize("line_break", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", LOSSES)
def test_stray_quotation_marks_are_refused(tmp_path, monkeypatch, name, line_break):
    text, lines = LOSSES[name]
    content = text.replace("\n", line_break).encode()
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InvalidTable) as caught:
        read_values(tmp_path / "a.csv", "place")
    assert str(caught.value).startswith(f"a.csv, {lines}: {STRAY}")
    with pytest.raises(InvalidTable) as caught:
        _read_pipe(monkeypatch, content, "place")
    assert str(caught.value).startswith(f"standard input: {STRAY}")


def test_the_check_is_what_finds_the_losses(tmp_path, monkeypatch):
    monkeypatch.setattr(QuoteScanner, "add", lambda scanner, block: None)
    path = tmp_path / "a.csv"
    path.write_text(LOSSES["in another column"][0])
    assert len(read_values(path, "place")) == PEOPLE - 40


KEPT = {
    "line breaks": _people(note_41='"a\nb"', note_81='"\n\nc,d\n"'),
    "doubled marks": _people(note_41='"a ""b"" c"', note_81='""""', note_99='""'),
    "marks inside cells": _people(note_41='5" pipe', note_81='6"" pipe', note_82='x"'),
    "an odd number of marks inside cells": _people(note_41='5" pipe', note_81='"a, b"'),
    "without a last line break": _people(place_99='"a\nb"').rstrip("\n"),
}


@pytest.mark.parametrize("line_break", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("block_size", [300, 4096])
@pytest.mark.parametrize("name", KEPT)
def test_other_quotation_marks_are_read(tmp_path, monkeypatch, name, line_break, block_size):
    monkeypatch.setattr(csv_file, "_BLOCK_SIZE", block_size)
    content = KEPT[name].replace("\n", line_break).encode()
    expected = _expected_columns(content.decode(), 3)
    (tmp_path / "a.csv").write_bytes(content)
    assert read_values(tmp_path / "a.csv", "id", "note", "place") == expected
    assert _read_pipe(monkeypatch, content, "id", "note", "place") == expected
    assert len(expected[0]) == PEOPLE


def _read_pipe(monkeypatch, content, *columns):
    pipe = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
    monkeypatch.setattr(sys, "stdin", pipe)
    return read_values("-", *columns)


def _expected_columns(text, width):
    """Return the columns according to the csv module, or ``None`` if the file is malformed."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))[1:]
    except csv.Error:
        return None
    if width == 1:
        while rows and not rows[-1]:
            rows.pop()
        rows = [row or [""] for row in rows]
    else:
        rows = [row for row in rows if row]
    if any(len(row) != width for row in rows):
        return None
    return [[row[position] or None for row in rows] for position in range(width)]


PIECES = st.sampled_from(["a", ",", '"', '""', "\n", "\r\n", "b c", 'a,"', '",a\n'])
BODIES = st.lists(PIECES, max_size=30).map("".join)


@given(body=BODIES, width=st.sampled_from([1, 2]), block_size=st.sampled_from([7, 64, 2**22]))
@example('a,"b\na,b\na,"b\n', 2, 2**22)
@example('"a\nb\n"c\n', 1, 2**22)
@example('a\n""\n\n', 1, 2**22)
@example('""",a\n\r\n"', 1, 7)
@example('aaaaa,b\r\n\r\n"\r\n\r\n",b\r\n', 2, 7)
def test_no_row_is_lost(tmp_path_factory, body, width, block_size):
    header = ["x", "y"][:width]
    text = f"{','.join(header)}\n{body}"
    path = tmp_path_factory.getbasetemp() / "quotes.csv"
    path.write_bytes(text.encode())
    expected = _expected_columns(text, width)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_file, "_BLOCK_SIZE", block_size)
        try:
            columns = read_values(path, *header)
        except InvalidTable:
            # A row may be longer than a small block. A large block holds everything.
            assert expected is None or block_size < len(text)
            return
    assert (columns if width > 1 else [columns]) == expected


@given(body=BODIES, cuts=st.lists(st.integers(0, 60), max_size=6))
def test_blocks_do_not_matter(body, cuts):
    content = body.encode()
    whole = QuoteScanner(",")
    whole.add(content)
    whole.finish()
    scanner = QuoteScanner(",")
    edges = [0, *sorted(cuts), len(content)]
    for start, end in pairwise(edges):
        scanner.add(content[start:end])
    scanner.finish()
    assert scanner.has_stray_quote == whole.has_stray_quote
    if not whole.has_stray_quote:
        assert scanner.has_open_quote == whole.has_open_quote


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "\r\n\r\n", "\n" * 20])
def test_blank_lines_at_the_end_of_one_column_are_nobody(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(csv_file, "_BLOCK_SIZE", 8)
    path = tmp_path / "a.csv"
    path.write_bytes(f"place\n\npark\n\nbar{ending}".encode())
    assert read_values(path, "place") == [None, "park", None, "bar"]
    path.write_bytes(f'place\npark\n""{ending}'.encode())
    assert read_values(path, "place") == ["park", None]
