"""Files that a survey file names: labels, places, matrices.

They are CSV, optionally compressed with gzip, with or without a byte-order mark.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from sfumato.errors import InvalidSurvey
from sfumato.foundation.printable import printable

__all__ = ["column_of", "open_text", "read_columns"]

_MAX_FILE_BYTES = 2**28


def column_of(table: Mapping[str, Sequence[str]], column: str, name: str) -> Sequence[str]:
    """Return one column of the labels file; ``name`` is the field that refers to it."""
    if column not in table:
        columns = f"found {sorted(table)}" if table else "the domain is not read from a file"
        raise InvalidSurvey(f"{name}: there is no column {column!r} in domain.file; {columns}.")
    return table[column]


def read_columns(path: Path, name: str) -> dict[str, list[str]]:
    """Read the columns of a CSV file with a header; ``name`` is the field that names the file."""
    with open_text(path, name) as lines:
        reader = csv.DictReader(lines, strict=True)
        try:
            rows = list(reader)
        except csv.Error as problem:
            raise InvalidSurvey(f"{name}: {path.name} is not CSV: {problem}.") from None
        header = reader.fieldnames or []
    ragged = next((i for i, row in enumerate(rows) if None in row or None in row.values()), None)
    if not rows or len(set(header)) != len(header) or ragged is not None:
        where = f"; line {ragged + 2} has another number of columns" if ragged is not None else ""
        raise InvalidSurvey(
            f"{name}: {path.name} must have a header of distinct names and at least one row{where}."
        )
    return {column: [row[column] for row in rows] for column in header}


def open_text(path: Path, name: str) -> io.StringIO:
    """Read a text file that a survey names; ``name`` is the field that names the file."""
    shown = printable(path.name)
    try:
        raw = _read_bytes(path)
    except OSError as problem:
        reason = problem.strerror or "it is damaged"
        raise InvalidSurvey(f"{name}: {shown} cannot be read: {reason}.") from None
    except (EOFError, ValueError, zlib.error):
        raise InvalidSurvey(f"{name}: {shown} cannot be read: it is damaged.") from None
    if len(raw) > _MAX_FILE_BYTES:
        raise InvalidSurvey(f"{name}: {shown} is larger than 256 MiB. Use a smaller file.")
    try:
        return io.StringIO(raw.decode("utf-8-sig"), newline="")
    except UnicodeDecodeError:
        raise InvalidSurvey(f"{name}: {shown} must be text in UTF-8.") from None


def _read_bytes(path: Path) -> bytes:
    """Read just past the limit: a gzip file may expand to a thousand times its size."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return file.read(_MAX_FILE_BYTES + 1)
