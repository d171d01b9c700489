"""CSV files that a survey file refers to: labels, places and matrices.

The files may be compressed with gzip, and may start with a byte-order mark.

A matrix file has its labels in the first row, and optionally in the first column too::

    ,       park, clinic, bar
    park,   0,    1,      inf
    clinic, 0.5,  0,      0.5
    bar,    0.5,  0.5,    0

The numbers in a matrix are kept as text, so 0.1 is exactly one tenth. An empty cell on the diagonal
means 0. Error messages give the line and the column, both counted from 1 as in editors and
spreadsheets.
"""

import csv
import gzip
import io
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.contexts import MAX_MATRIX_SIZE
from sfumato.domains import Domain
from sfumato.errors import InvalidContext, InvalidSurvey
from sfumato.foundation.formatting import printable
from sfumato.randomness import Epsilon, exact_number

_MAX_FILE_BYTES = 2**28
_MAX_QUOTED_LENGTH = 40  # error messages quote at most this many characters of a cell
_SEPARATOR_HINT = "Separate cells with commas, and use a decimal point in numbers."


def get_column(table: Mapping[str, Sequence[str]], column: str, field: str) -> Sequence[str]:
    """Return a column of the labels file. ``field`` is the survey field that refers to it."""
    if not table:
        raise InvalidSurvey(
            f"{field} refers to column {column!r} of domain.file, but the domain has no file."
        )
    if column not in table:
        raise InvalidSurvey(
            f"{field}: domain.file has no column {column!r}; its columns are {', '.join(table)}."
        )
    return table[column]


def read_columns(path: Path, field: str) -> dict[str, list[str]]:
    """Read the columns of a CSV file with a header. Error messages start with ``field``."""
    location = f"{field}: {path.name}"
    with _read_text(path, field) as lines:
        reader = csv.DictReader(lines, strict=True)
        rows = []
        last_lines = []  # where each row ends: a quoted cell may contain line breaks
        try:
            for row in reader:
                rows.append(row)
                last_lines.append(reader.line_num)
        except csv.Error as problem:
            raise InvalidSurvey(f"{location} is not valid CSV: {problem}.") from None
        header = reader.fieldnames or []
    if not rows:
        raise InvalidSurvey(f"{location} must have a header and at least one row.")
    if len(set(header)) != len(header):
        raise InvalidSurvey(f"{location} has two columns with the same name. Rename one.")
    for line_number, row in zip(last_lines, rows, strict=True):
        if None in row or None in row.values():
            raise InvalidSurvey(
                f"{location}, line {line_number}: expected {len(header)} columns, as in the header."
            )
    return {column: [row[column] for row in rows] for column in header}


def _read_text(path: Path, field: str) -> io.StringIO:
    location = f"{field}: {printable(path.name)}"
    try:
        raw = _read_bytes(path)
    except OSError as problem:
        reason = problem.strerror or "the file is corrupt"
        raise InvalidSurvey(f"{location} cannot be read: {reason}.") from None
    except (EOFError, ValueError, zlib.error):
        raise InvalidSurvey(f"{location} cannot be read: the file is corrupt.") from None
    if len(raw) > _MAX_FILE_BYTES:
        raise InvalidSurvey(f"{location} is larger than 256 MiB. Use a smaller file.")
    try:
        return io.StringIO(raw.decode("utf-8-sig"), newline="")
    except UnicodeDecodeError:
        raise InvalidSurvey(f"{location} must be UTF-8 text.") from None


def _read_bytes(path: Path) -> bytes:
    """Read a file, up to one byte more than the maximum size.

    A gzip file may expand to a thousand times its size.
    """
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return file.read(_MAX_FILE_BYTES + 1)


# --- matrices -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Line:
    """The number of a line, and its cells without surrounding whitespace."""

    number: int
    cells: list[str]


def read_matrix(path: Path, field: str) -> tuple[list[str], list[list[str]]]:
    """Return the labels in the first row, and the matrix below them.

    Error messages start with ``field``.
    """
    return _parse_labelled_matrix(_read_lines(path, field), f"{field}: {path.name}")


def read_domain_matrix(domain: Domain, path: Path, field: str) -> list[list[str]]:
    """Read a matrix with one row and one column for each label of ``domain``.

    The first row may list the domain's labels, in order. Otherwise, the file contains only numbers.
    """
    lines = _read_lines(path, field)
    location = f"{field}: {path.name}"
    if not _has_labels(lines, domain.size):
        return _parse_square_matrix(lines, location)
    labels, rows = _parse_labelled_matrix(lines, location)
    if len(labels) != domain.size:
        raise InvalidSurvey(
            f"{location} must list the {domain.size} labels of the domain; it lists {len(labels)}."
        )
    for label, expected_label in zip(labels, domain.labels, strict=True):
        if label != str(expected_label):
            raise InvalidSurvey(
                f"{location} must list the labels of the domain in order: expected "
                f"{_quote_cell(str(expected_label))}, got {_quote_cell(label)}."
            )
    return rows


def _has_labels(lines: Sequence[_Line], size: int) -> bool:
    """Return whether the first line contains labels.

    Labels may be numbers, so the number of lines decides. If it fits neither layout, the first line
    contains labels unless all its cells are numbers.
    """
    if len(lines) in (size, size + 1):
        return len(lines) == size + 1
    return not _all_numbers(lines[0])


def _read_lines(path: Path, field: str) -> list[_Line]:
    location = f"{field}: {path.name}"
    lines: list[_Line] = []
    with _read_text(path, field) as text:
        reader = csv.reader(text, strict=True, skipinitialspace=True)
        try:
            for cells in reader:
                if cells:
                    normalized = [unicodedata.normalize("NFC", cell.strip()) for cell in cells]
                    lines.append(_Line(reader.line_num, normalized))
        except csv.Error as problem:
            raise InvalidSurvey(f"{location} is not valid CSV: {problem}.") from None
    if not lines:
        raise InvalidSurvey(
            f"{location} is empty. It must have a row of labels, and a square matrix below."
        )
    header = lines[0].cells
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise InvalidSurvey(f"{location} has no commas. {_SEPARATOR_HINT}")
    if len(lines) > MAX_MATRIX_SIZE + 1:
        raise InvalidSurvey(
            f"{location} has {len(lines):,} lines; a matrix may have up to {MAX_MATRIX_SIZE} "
            "symbols."
        )
    return lines


def _parse_labelled_matrix(
    lines: Sequence[_Line], location: str
) -> tuple[list[str], list[list[str]]]:
    """Return the labels, and the numbers below them.

    If there are as many columns as lines, the first column contains labels too.
    """
    header, *body = lines
    has_label_column = len(lines) == len(header.cells)
    labels = header.cells[1:] if has_label_column else header.cells
    if len(labels) != len(body):
        raise InvalidSurvey(
            f"{location} must have a row of labels and a square matrix below; got {len(labels)} "
            f"labels and {len(body)} rows."
        )
    _check_labels(labels, f"{location}, line {header.number}")
    if not has_label_column:
        return labels, _parse_square_matrix(body, location)
    if _all_numbers(header):
        # A symmetric matrix without labels looks like a smaller matrix with labels.
        raise InvalidSurvey(
            f"{location}, line {header.number}: expected labels, got only numbers. Add a row of "
            "labels. If the numbers are the labels, leave the first cell empty."
        )
    _check_label_column(body, labels, location)
    lines_without_labels = [_Line(line.number, line.cells[1:]) for line in body]
    return labels, _parse_square_matrix(lines_without_labels, location, columns_before=1)


def _check_labels(labels: Sequence[str], location: str) -> None:
    seen: set[str] = set()
    for position, label in enumerate(labels, 1):
        if not label:
            raise InvalidSurvey(f"{location}: label {position} is empty.")
        if label in seen:
            raise InvalidSurvey(
                f"{location}: labels must be distinct; {_quote_cell(label)} occurs twice."
            )
        seen.add(label)


def _check_label_column(body: Sequence[_Line], labels: Sequence[str], location: str) -> None:
    for line, label in zip(body, labels, strict=True):
        if line.cells[0] != label:
            raise InvalidSurvey(
                f"{location}, line {line.number}: expected the label {_quote_cell(label)}, got "
                f"{_quote_cell(line.cells[0])}. The first column must repeat the labels of the "
                "first row, in order."
            )


def _parse_square_matrix(
    lines: Sequence[_Line], location: str, columns_before: int = 0
) -> list[list[str]]:
    """Return the rows of a square matrix, as text.

    ``columns_before`` is the number of columns to its left in the file.
    """
    size = len(lines)
    rows: list[list[str]] = []
    for line in lines:
        if len(line.cells) != size:
            raise InvalidSurvey(
                f"{location} must be a square matrix: with {size} rows of numbers, line "
                f"{line.number} should have {columns_before + size} columns; got "
                f"{columns_before + len(line.cells)}."
            )
    for x, line in enumerate(lines):
        row = list(line.cells)
        row[x] = row[x] or "0"
        for x2, cell in enumerate(row):
            number = _parse_number(cell)
            if number is None or (x == x2 and number != 0):
                cell_location = f"{location}, line {line.number}, column {columns_before + x2 + 1}"
                raise _invalid_number(cell, cell_location, on_diagonal=x == x2)
        rows.append(row)
    return rows


def _invalid_number(cell: str, location: str, *, on_diagonal: bool) -> InvalidSurvey:
    expected = "0 on the diagonal" if on_diagonal else "a non-negative number or inf"
    hint = f" {_SEPARATOR_HINT}" if any(separator in cell for separator in ";,\t") else ""
    return InvalidSurvey(f"{location}: expected {expected}, got {_quote_cell(cell)}.{hint}")


def _all_numbers(line: _Line) -> bool:
    return all(_parse_number(cell) is not None for cell in line.cells)


def _parse_number(cell: str) -> Epsilon | None:
    """Parse a non-negative number; return ``None`` if the cell does not contain one."""
    try:
        return exact_number(cell, "a cell")
    except InvalidContext:
        return None


def _quote_cell(cell: str) -> str:
    if not cell:
        return "an empty cell"
    return repr(cell if len(cell) <= _MAX_QUOTED_LENGTH else f"{cell[:_MAX_QUOTED_LENGTH]}…")
