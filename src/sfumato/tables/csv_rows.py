"""The rows of a CSV file, with their line numbers.

Arrow reads the tables. This reader is slow, and says where a file is malformed. Both split rows in
the same way: a quotation mark opens a quoted part only at the start of a cell.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from sfumato.tables.csv_quotes import QUOTED_REST

__all__ = ["CsvRow", "cell_content", "csv_rows"]

_QUOTED_CELL = re.compile(rb'"((?:[^"]++|"")*+)"?(.*)', re.DOTALL)


@dataclass
class CsvRow:
    """The cells of a row as they are in the file, and the lines where it starts and ends.

    ``open_quote_line`` is the line of a quotation mark that is not closed. Then, the row is
    incomplete. ``stray_quote_line`` is the line of a quotation mark that closes quoted text in the
    middle of a cell.
    """

    first_line: int
    last_line: int
    cells: list[bytes] = field(default_factory=list, repr=False)
    open_quote_line: int | None = None
    stray_quote_line: int | None = None

    @property
    def is_blank(self) -> bool:
        """Whether the row is an empty line."""
        return self.cells == [b""]


def csv_rows(stream: BinaryIO, delimiter: str, max_bytes: int) -> Iterator[CsvRow]:
    """Yield the rows of a CSV file, from the header on. Lines are counted from 1.

    Stop after a row that is longer than ``max_bytes``. Its open quotation mark counts as unclosed.
    """
    separator = delimiter.encode("ascii")
    scanner = _RowScanner(separator)
    line_number = 0
    while line := stream.readline(max_bytes):
        line_number += 1
        if not scanner.is_open and b'"' not in line:
            yield CsvRow(line_number, line_number, line.rstrip(b"\r\n").split(separator))
            continue
        row = scanner.add_line(line, line_number)
        if row is not None:
            yield row
        elif scanner.byte_count > max_bytes:
            break
    if scanner.is_open:
        yield scanner.row


def cell_content(cell: bytes) -> bytes:
    """Return the content of a cell, without its quotation marks."""
    match = _QUOTED_CELL.fullmatch(cell)
    if match is None:
        return cell
    return match[1].replace(b'""', b'"') + match[2]


class _RowScanner:
    """Collects lines until they form a row."""

    def __init__(self, separator: bytes) -> None:
        self._separator = separator
        self._start(CsvRow(0, 0))

    def _start(self, row: CsvRow) -> None:
        self.row = row
        self._cell = b""
        self.is_open = False
        self.byte_count = 0

    def add_line(self, line: bytes, line_number: int) -> CsvRow | None:
        """Add a line. Return the row if it is complete, or ``None`` if a quoted part continues."""
        if not self.is_open:
            self._start(CsvRow(line_number, line_number))
        self.row.last_line = line_number
        self.byte_count += len(line)
        position: int | None = 0
        while position is not None:
            position = self._add_part(line, position)
        if self.is_open:
            return None
        return self.row

    def _add_part(self, line: bytes, start: int) -> int | None:
        """Read up to the end of a cell. Return where the next one starts, if there is one."""
        position = start
        if not self.is_open and line.startswith(b'"', start):
            self.is_open = True
            self.row.open_quote_line = self.row.last_line
            position += 1
        if self.is_open:
            match = QUOTED_REST.match(line, position)
            if match is None:
                self._cell += line[start:]
                return None
            self.is_open = False
            self.row.open_quote_line = None
            position = match.end()
            if self._is_inside_cell(line, position):
                self.row.stray_quote_line = self.row.last_line
        end = line.find(self._separator, position)
        content = line[start:end] if end >= 0 else line[start:].rstrip(b"\r\n")
        self.row.cells.append(self._cell + content)
        self._cell = b""
        return end + 1 if end >= 0 else None

    def _is_inside_cell(self, line: bytes, position: int) -> bool:
        """Whether a cell continues at this position."""
        next_byte = line[position : position + 1]
        return next_byte not in (b"", b"\r", b"\n", self._separator)
