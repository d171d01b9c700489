"""The header of a CSV file, and the character that separates its cells."""

import csv
import io
from contextlib import suppress

from sfumato.errors import InvalidTable
from sfumato.foundation.delimiter import parse_delimiter

__all__ = [
    "NOT_UTF8",
    "decode_header",
    "parse_delimiter",
    "parse_header",
    "suggest_delimiter",
]

NOT_UTF8 = "is not valid UTF-8 (it looks like Latin-1 or Windows-1252; save the file as UTF-8)"

_DELIMITERS = (",", ";", "\t", "|")


# --- delimiter ------------------------------------------------------------------------------------


def suggest_delimiter(header: str, delimiter: str, column: str) -> str | None:
    """Return another delimiter that splits the header into more columns, or yields ``column``."""
    best = None
    most_cells = len(_split(header, delimiter))
    for candidate in _DELIMITERS:
        if candidate == delimiter:
            continue
        cells = _split(header, candidate)
        if len(cells) > 1 and column in cells:
            return candidate
        if len(cells) > most_cells:
            best = candidate
            most_cells = len(cells)
    return best


def _split(line: str, delimiter: str) -> list[str]:
    with suppress(csv.Error):
        return next(csv.reader([line], delimiter=delimiter), [])
    return []


# --- column names ---------------------------------------------------------------------------------


def decode_header(line: bytes, name: str) -> str:
    """Return the first line of a file as text, without a byte-order mark."""
    with suppress(UnicodeDecodeError):
        return line.decode("utf-8-sig").rstrip("\r\n")
    raise InvalidTable(f"{name}, line 1 {NOT_UTF8}.")


def parse_header(header: str, delimiter: str, name: str) -> list[str]:
    """Return the column names in the first line of a CSV file."""
    columns = None
    with suppress(csv.Error):
        reader = csv.reader(io.StringIO(header, newline="\n"), delimiter=delimiter, strict=True)
        columns = next(reader, [])
    if columns is None:
        raise InvalidTable(
            f"{name} must start with a header: one line of column names, separated by "
            f"{_delimiter_name(delimiter)} and ending with \\n."
        )
    if not any(map(str.strip, columns)):
        raise InvalidTable(f"{name} must start with a header of column names.")
    return columns


def _delimiter_name(delimiter: str) -> str:
    """Return the delimiter's name in a sentence."""
    if delimiter == ",":
        return "commas"
    return "tabs" if delimiter == "\t" else repr(delimiter)
