"""Find the first malformed line of a CSV file, after Arrow failed to read it.

The descriptions contain line numbers and counts, and never the content of a cell.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO

from sfumato.foundation.arrays import Arrow
from sfumato.tables.cell_values import parse_texts, type_noun
from sfumato.tables.csv_header import NOT_UTF8
from sfumato.tables.csv_rows import CsvRow, cell_content, csv_rows
from sfumato.tables.table import ColumnTypes

__all__ = [
    "OPEN_QUOTE",
    "STRAY_QUOTE",
    "describe_arrow_error",
    "find_problem",
    "find_quote_problem",
]

OPEN_QUOTE = (
    "a quotation mark is never closed, which hides the rows after it. Close it, or double it if it "
    "belongs to the text."
)
STRAY_QUOTE = (
    "text after a closing quotation mark, so rows may be lost. Put the whole cell in quotation "
    "marks, and double each one that belongs to the text."
)

# The beginning of Arrow's message; after that, it quotes the row.
_WRONG_LENGTH = re.compile(
    r"CSV parse error: (?:Row #\d+: )?Expected (\d+) columns, got (\d+)(?!\d)"
)
_NOT_UTF8_COLUMN = re.compile(r"In CSV column #\d+: CSV conversion error to \w+: invalid UTF8 data")
_WRONG_TYPE_COLUMN = re.compile(r"In CSV column #\d+: CSV conversion error to ")
_PLAIN_INTEGER = re.compile(rb"[0-9]{1,9}")  # a number of every type


def find_problem(
    stream: BinaryIO,
    columns: Sequence[str],
    column_types: ColumnTypes,
    delimiter: str,
    max_bytes: int,
) -> str | None:
    """Return the first problem in a file and its line, or ``None`` if every line is in order.

    The text continues the name of the file: ", line 17: …".
    """
    rows = csv_rows(stream, delimiter, max_bytes)
    next(rows, None)
    positions = [(columns.index(column), type_) for column, type_ in column_types.items()]
    for row in rows:
        quote_problem = _find_quote_problem(row)
        if quote_problem is not None:
            return quote_problem
        if row.is_blank and len(columns) > 1:
            continue
        if len(row.cells) != len(columns):
            return f", line {row.first_line}: {_wrong_length(len(columns), row)}"
        for position, type_ in positions:
            problem = _find_cell_problem(row.cells[position], columns[position], type_)
            if problem is not None:
                return f", line {row.first_line}{problem}."
    return None


def find_quote_problem(stream: BinaryIO, delimiter: str, max_bytes: int) -> str | None:
    """Return the first problem with quotation marks and its line, or ``None``."""
    for row in csv_rows(stream, delimiter, max_bytes):
        problem = _find_quote_problem(row)
        if problem is not None:
            return problem
    return None


def _find_quote_problem(row: CsvRow) -> str | None:
    if row.open_quote_line is not None:
        return f", line {row.open_quote_line}: {OPEN_QUOTE}"
    if row.stray_quote_line is None:
        return None
    if row.first_line == row.last_line:
        return f", line {row.first_line}: {STRAY_QUOTE}"
    return f", lines {row.first_line} to {row.last_line}: {STRAY_QUOTE}"


def _wrong_length(column_count: int, row: CsvRow) -> str:
    text = f"expected {_cells(column_count)} as in the header, got {len(row.cells)}."
    if row.last_line > row.first_line:
        text += (
            f" Quoted text joins lines {row.first_line} to {row.last_line}; "
            "check their quotation marks."
        )
    return text


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def _find_cell_problem(cell: bytes, column: str, type_: Arrow) -> str | None:
    """Return what is wrong with a cell, as the rest of a sentence, or ``None``."""
    content = cell_content(cell)
    if _PLAIN_INTEGER.fullmatch(content):
        return None
    text = None
    with suppress(UnicodeDecodeError):
        text = content.decode("utf-8")
    if text is None:
        return f" {NOT_UTF8}"
    if type_ is not None and parse_texts([text], type_) is None:
        return f": column {column!r} must contain {type_noun(type_)}"
    return None


def describe_arrow_error(message: str) -> str:
    """Return what Arrow's error says about the problem, without the data that it quotes."""
    match = _WRONG_LENGTH.match(message)
    if match is not None:
        return f"expected {_cells(int(match[1]))} as in the header, got {match[2]}"
    if _NOT_UTF8_COLUMN.match(message):
        return f"a line {NOT_UTF8}"
    if _WRONG_TYPE_COLUMN.match(message):
        return "a column has the wrong type: it must contain numbers"
    return "its rows differ in length, it is not UTF-8, or a column has the wrong type"
