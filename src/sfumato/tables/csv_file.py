"""CSV files: text in UTF-8 with a header, read by Arrow in constant memory."""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv

from sfumato.errors import InvalidTable
from sfumato.foundation.arrays import Arrow
from sfumato.tables.csv_header import (
    decode_header,
    parse_header,
    suggest_delimiter,
)
from sfumato.tables.csv_problem import (
    OPEN_QUOTE,
    STRAY_QUOTE,
    describe_arrow_error,
    find_problem,
    find_quote_problem,
)
from sfumato.tables.csv_quotes import QuoteScanner
from sfumato.tables.csv_rows import cell_content, csv_rows
from sfumato.tables.header import describe_header
from sfumato.tables.lent_stream import LentStream, Loan
from sfumato.tables.table import ColumnTypes, Table

__all__ = ["open_csv"]

_BLOCK_SIZE = 2**22
_BLANKS = [" " * width for width in range(16)]  # Arrow does not trim spaces before it compares

Reopen = Callable[[], BinaryIO]
"""A function that opens the file again from its start, decompressed."""


def open_csv(
    name: str, stream: Arrow, *, delimiter: str, start: bytes = b"", reopen: Reopen | None = None
) -> Table:
    """Open a CSV file. ``start`` contains the bytes that were already read from the stream.

    ``reopen`` allows a second pass, which finds the line of a problem. Pass ``None`` for a pipe.
    """
    body = _CsvBody(stream, name, delimiter, start)
    return _CsvFile(name, body, delimiter, reopen).table()


class _CsvFile:
    """A CSV file whose header has been read."""

    def __init__(self, name: str, body: "_CsvBody", delimiter: str, reopen: Reopen | None) -> None:
        self._name = name
        self._body = body
        self._delimiter = delimiter
        self._reopen = reopen
        self._header = decode_header(body.read_header(), name)
        self._columns = parse_header(self._header, delimiter, name)
        self._has_one_column = len(self._columns) == 1
        if self._has_one_column:
            body.drop_last_blank_lines()

    def table(self) -> Table:
        return Table(
            self._name,
            self._columns,
            self._read_batches,
            describe_columns=self._describe_columns,
        )

    def _read_batches(
        self, column_types: ColumnTypes, row_groups: Sequence[int] | None
    ) -> Iterator[Arrow]:
        if self._body.is_at_end():
            return  # Arrow would fail on a table without rows
        loan = Loan(self._body)
        try:
            yield from self._arrow_batches(loan, column_types)
        except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError) as error:
            problem = describe_arrow_error(str(error))
        else:
            self._check_quotes()
            return
        finally:
            loan.wait_for_release()
        raise InvalidTable(self._locate_problem(column_types) or self._describe(problem))

    def _arrow_batches(self, loan: Loan, column_types: ColumnTypes) -> Iterator[Arrow]:
        """Yield batches. Only this generator refers to the reader, and so to the stream."""
        with self._open_reader(loan.lend(), column_types) as reader:
            yield from reader

    def _open_reader(self, stream: LentStream, column_types: ColumnTypes) -> Arrow:
        # Read text by default, because Arrow would guess types from the first rows.
        types = {
            column: pa.string() if type_ is None else type_
            for column, type_ in column_types.items()
        }
        # Treat only an empty field as missing: "NA" may be a label. A number may also be blank.
        is_numeric = all(pa.types.is_floating(type_) for type_ in types.values())
        convert_options = pa.csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=_BLANKS if is_numeric else [""],
            strings_can_be_null=True,
        )
        read_options = pa.csv.ReadOptions(block_size=_BLOCK_SIZE, column_names=self._columns)
        # In a file with one column, an empty line is a missing answer, except at the end.
        parse_options = pa.csv.ParseOptions(
            delimiter=self._delimiter,
            newlines_in_values=True,
            ignore_empty_lines=not self._has_one_column,
        )
        return pa.csv.open_csv(
            stream,
            read_options=read_options,
            parse_options=parse_options,
            convert_options=convert_options,
        )

    # --- problems ---------------------------------------------------------------------------------

    def _describe(self, problem: str) -> str:
        return f"cannot read {self._name}: {problem}."

    def _check_quotes(self) -> None:
        """Raise an error if quotation marks may hide rows."""
        scanner = self._body.quotes
        scanner.finish()
        if not (scanner.has_stray_quote or scanner.has_open_quote):
            return
        problem = None
        if self._reopen is not None:
            with self._reopen() as stream:
                problem = find_quote_problem(stream, self._delimiter, _BLOCK_SIZE)
        if problem is None:
            problem = f": {STRAY_QUOTE if scanner.has_stray_quote else OPEN_QUOTE}"
        raise InvalidTable(f"{self._name}{problem}")

    def _locate_problem(self, column_types: ColumnTypes) -> str | None:
        """Read the file again, and return its first problem. Return ``None`` for a pipe."""
        if self._reopen is None:
            return None
        with suppress(OSError, EOFError), self._reopen() as stream:
            problem = find_problem(
                stream, self._columns, column_types, self._delimiter, _BLOCK_SIZE
            )
            return None if problem is None else f"{self._name}{problem}"
        return None

    def _describe_columns(self, columns: list[str], missing_column: str) -> str:
        separator = suggest_delimiter(self._header, self._delimiter, missing_column)
        if separator is None:
            return describe_header(columns, missing_column, self._first_rows())
        return f". {_delimiter_hint(self._name, separator)}"

    def _first_rows(self) -> list[list[str]]:
        """Return the rows in the first block."""
        block = self._body.peek_block()
        if len(block) == _BLOCK_SIZE:
            block = block[: block.rfind(b"\n") + 1]
        rows = []
        for row in csv_rows(io.BytesIO(block), self._delimiter, _BLOCK_SIZE):
            contents = map(cell_content, row.cells)
            rows.append([content.decode("utf-8", "replace") for content in contents])
        return rows


def _delimiter_hint(name: str, delimiter: str) -> str:
    if delimiter == "\t":
        return f"{name} seems to be separated by tabs. Pass --delimiter tab."
    return f"{name} seems to be separated by {delimiter!r}. Pass --delimiter {delimiter!r}."


class _CsvBody:
    """The rows of a CSV file as a byte stream. Call ``read_header`` before reading them."""

    def __init__(self, stream: Arrow, name: str, delimiter: str, start: bytes) -> None:
        self._stream = stream
        self._name = name
        self._delimiter = delimiter
        self._buffer = start
        self.quotes = QuoteScanner(delimiter)

    def read_header(self) -> bytes:
        """Read the first line. It may contain line breaks inside quotation marks."""
        end = self._header_end()
        while end < 0 and len(self._buffer) < _BLOCK_SIZE:
            chunk = self._read_chunk()
            if not chunk:
                break
            self._buffer += chunk
            end = self._header_end()
        size = end if end >= 0 else len(self._buffer)
        header = self._buffer[:size]
        self._buffer = self._buffer[size:]
        return header

    def drop_last_blank_lines(self) -> None:
        """Leave out the line breaks at the end of the file. Call this before reading rows."""
        self._stream = _TrimmedStream(self._buffer, self._stream)
        self._buffer = b""

    def _header_end(self) -> int:
        """Return the position after the first line break outside quotation marks, or -1."""
        end = self._buffer.find(b"\n") + 1
        if end == 0 or b'"' not in self._buffer[:end]:
            return end or -1
        header = next(csv_rows(io.BytesIO(self._buffer), self._delimiter, _BLOCK_SIZE))
        for _ in range(1, header.last_line):
            end = self._buffer.find(b"\n", end) + 1
        is_complete = header.open_quote_line is None and self._buffer[:end].endswith(b"\n")
        return end if is_complete else -1

    def _read_chunk(self) -> bytes:
        try:
            return bytes(self._stream.read(2**16))
        except OSError:
            raise InvalidTable(f"cannot read {self._name}: it is truncated or corrupt.") from None

    def is_at_end(self) -> bool:
        """Whether no data is left."""
        self._buffer = self._buffer or self._read_chunk()
        return not self._buffer

    def peek_block(self) -> bytes:
        """Return the first block after the header, without consuming it."""
        while len(self._buffer) < _BLOCK_SIZE:
            chunk = self._read_chunk()
            if not chunk:
                break
            self._buffer += chunk
        return self._buffer[:_BLOCK_SIZE]

    def read(self, size: int = -1) -> bytes:
        """Return the next ``size`` bytes after the header, or fewer at the end.

        Arrow refuses a row that is in three blocks, so a block must not be short. Nor may it
        separate a carriage return from its line feed: Arrow would leave out the line feed, even in
        quoted text.
        """
        content = self._next_bytes(size)
        if content == b"\r":
            content += self._next_bytes(1)
        if len(content) > 1 and content.endswith(b"\r"):
            content = content[:-1]
            self._buffer = b"\r" + self._buffer
        self.quotes.add(content)
        return content

    def _next_bytes(self, size: int) -> bytes:
        content = self._buffer if size < 0 else self._buffer[:size]
        self._buffer = self._buffer[len(content) :]
        while size < 0 or len(content) < size:
            block = bytes(self._stream.read(2**16 if size < 0 else size - len(content)))
            if not block:
                break
            content += block
        return content


class _TrimmedStream:
    """A byte stream without the line breaks at its end. ``start`` are its first bytes."""

    def __init__(self, start: bytes, stream: Arrow) -> None:
        self._stream = stream
        self._content = b""
        self._line_breaks = b""
        self._add(start)

    def _add(self, content: bytes) -> None:
        text = content.rstrip(b"\r\n")
        if not text:
            self._line_breaks += content
            return
        self._content += self._line_breaks + text
        self._line_breaks = content[len(text) :]

    def read(self, size: int) -> bytes:
        """Return the next bytes, and nothing at the end."""
        while not self._content:
            content = bytes(self._stream.read(size))
            if not content:
                break
            self._add(content)
        content = self._content[:size]
        self._content = self._content[size:]
        return content
