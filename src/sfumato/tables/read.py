"""Read tables as streams of Arrow batches, in constant memory.

Sfumato's errors never contain a value, but errors from libraries may: Arrow quotes the data that it
could not parse, and a codec error contains all the bytes. An error raised inside an exception
handler refers to the original error, even with ``from None``. So errors about the data are
raised outside the handlers.
"""

import csv
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sfumato.errors import InvalidTable
from sfumato.foundation.arrays import Arrow

__all__ = ["Table", "open_table"]

# The first bytes of each kind of file.
_PARQUET_MAGIC = b"PAR1"
_GZIP_MAGIC = b"\x1f\x8b"

_BATCH_ROWS = 2**16
_CSV_BLOCK_SIZE = 2**22
_MAX_LISTED_COLUMNS = 8

ColumnTypes = Mapping[str, Arrow]
"""The Arrow type of each column to read; ``None`` means text in CSV, or the type in Parquet."""

_ReadBatches = Callable[[ColumnTypes, Sequence[int] | None], Iterator[Arrow]]
"""A function that yields the given columns of all rows, or of some row groups, in batches."""


@dataclass(frozen=True, eq=False)
class Table:
    """An open table: its name, its column names, its metadata, and the sizes of its row groups.

    A CSV file has no metadata, and its ``row_group_sizes`` is ``None``.
    """

    name: str
    columns: list[str]
    read_batches: _ReadBatches
    metadata: Mapping[bytes, bytes] = field(default_factory=dict)
    row_group_sizes: list[int] | None = None

    def batches(
        self, column_types: ColumnTypes, row_groups: Sequence[int] | None = None
    ) -> Iterator[Arrow]:
        """Yield the given columns of all rows, or of some row groups, batch by batch."""
        for column in column_types:
            if column not in self.columns:
                raise InvalidTable(
                    f"{self.name} has no column {column!r}{self._column_hint(column)}"
                )
            if self.columns.count(column) > 1:
                raise InvalidTable(
                    f"{self.name} has more than one column named {column!r}. Rename the duplicates."
                )
        group_count = len(self.row_group_sizes or ())
        if row_groups is not None and max(row_groups, default=-1) >= group_count:
            raise InvalidTable(
                f"{self.name} changed while it was being read. Nothing was written; "
                "run the command again."
            )
        try:
            yield from self.read_batches(column_types, row_groups)
        except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError, UnicodeDecodeError):
            problem = "its rows differ in length, it is not UTF-8, or a column has the wrong type"
        except OSError:
            problem = "it is truncated or corrupt"
        else:
            return
        raise InvalidTable(f"cannot read {self.name}: {problem}.")

    def _column_hint(self, missing_column: str) -> str:
        """Return a hint about the columns that exist.

        Do not show the first line of a CSV file: it contains values if the header is missing.
        """
        if self.row_group_sizes is not None:
            columns = ", ".join(self.columns[:_MAX_LISTED_COLUMNS])
            ellipsis = ", …" if len(self.columns) > _MAX_LISTED_COLUMNS else ""
            return f"; its columns are {columns}{ellipsis}."
        for column in self.columns:
            if column.strip().casefold() == missing_column.strip().casefold():
                return f"; did you mean {column!r}?"
        return (
            f" among its {len(self.columns)} columns. "
            "The first line must be a header with their names."
        )


@contextmanager
def open_table(path: str) -> Iterator[Table]:
    """Open a CSV file (optionally gzipped) or a Parquet file; ``-`` is standard input.

    The format is detected from the file's content, not from its name.
    """
    name = "standard input" if path == "-" else Path(path).name
    with ExitStack() as stack:
        try:
            raw_file: Arrow = (
                _standard_input() if path == "-" else stack.enter_context(Path(path).open("rb"))
            )
            first_bytes = bytes(raw_file.peek(4)[:4])
        except OSError as error:
            raise InvalidTable(f"cannot open {name}: {error.strerror or error}.") from None
        if not first_bytes:
            raise InvalidTable(f"{name} is empty.")
        if first_bytes.startswith(_PARQUET_MAGIC):
            yield _parquet_table(name, _make_seekable(raw_file, stack))
        else:
            yield _csv_table(name, raw_file, is_gzipped=first_bytes.startswith(_GZIP_MAGIC))


def _standard_input() -> Arrow:
    if sys.stdin is None:
        raise InvalidTable(
            "standard input is closed. Pipe a table into the command, or pass a file."
        )
    return sys.stdin.buffer


# --- Parquet --------------------------------------------------------------------------------------


def _make_seekable(raw_file: BinaryIO, stack: ExitStack) -> BinaryIO:
    """Return the file itself, or a temporary copy if it is a pipe.

    Parquet files must be seekable, because their metadata is at the end.
    """
    if raw_file.seekable():
        return raw_file
    temporary_file = tempfile.TemporaryFile()  # noqa: SIM115 - the stack closes it
    copy: BinaryIO = stack.enter_context(temporary_file)
    shutil.copyfileobj(raw_file, copy)
    copy.seek(0)
    return copy


def _parquet_table(name: str, raw_file: BinaryIO) -> Table:
    parquet_file = _open_parquet(name, raw_file)
    schema = parquet_file.schema_arrow

    def read_batches(
        column_types: ColumnTypes, row_groups: Sequence[int] | None
    ) -> Iterator[Arrow]:
        reader = parquet_file
        text_columns = []
        for column, type_ in column_types.items():
            if type_ is None and pa.types.is_string(schema.field(column).type):
                text_columns.append(column)
        if text_columns:
            reader = pa.parquet.ParquetFile(raw_file, read_dictionary=text_columns)
        return reader.iter_batches(
            batch_size=_BATCH_ROWS, columns=list(column_types), row_groups=row_groups
        )

    metadata = parquet_file.metadata
    group_sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    return Table(name, list(schema.names), read_batches, schema.metadata or {}, group_sizes)


def _open_parquet(name: str, raw_file: BinaryIO) -> Arrow:
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        return pa.parquet.ParquetFile(raw_file)
    raise InvalidTable(f"{name} is not a valid Parquet file (truncated or corrupt).")


# --- CSV ------------------------------------------------------------------------------------------


def _csv_table(name: str, raw_file: BinaryIO, *, is_gzipped: bool) -> Table:
    stream = pa.PythonFile(raw_file, mode="r")
    if is_gzipped:
        stream = pa.CompressedInputStream(stream, "gzip")
    body = _CsvBody(stream, name)
    column_names = body.read_header()

    def read_batches(
        column_types: ColumnTypes, row_groups: Sequence[int] | None
    ) -> Iterator[Arrow]:
        if body.is_at_end():
            return  # Arrow would fail on a table without rows
        # Read text by default, because Arrow would guess types from the first rows.
        types = {
            column: pa.string() if type_ is None else type_
            for column, type_ in column_types.items()
        }
        # Treat only an empty field as missing: "NA" may be a label.
        convert_options = pa.csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[""],
            strings_can_be_null=True,
        )
        read_options = pa.csv.ReadOptions(block_size=_CSV_BLOCK_SIZE, column_names=column_names)
        # In a file with one column, an empty line is a missing answer: do not skip it.
        parse_options = pa.csv.ParseOptions(
            newlines_in_values=True, ignore_empty_lines=len(column_names) > 1
        )
        with pa.csv.open_csv(
            body,
            read_options=read_options,
            parse_options=parse_options,
            convert_options=convert_options,
        ) as reader:
            yield from reader
        if body.quote_count % 2:
            raise InvalidTable(
                f"{name}: a quotation mark is never closed, which hides the rows after it."
            )

    return Table(name, column_names, read_batches)


class _CsvBody:
    """The rows of a CSV file as a byte stream. Call ``read_header`` before reading them."""

    closed = False  # Arrow reads this attribute

    def __init__(self, stream: Arrow, name: str) -> None:
        self._stream = stream
        self._name = name
        self._buffer = b""
        self.quote_count = 0

    def read_header(self) -> list[str]:
        """Read the first line, and return the column names in it."""
        while b"\n" not in self._buffer and len(self._buffer) < _CSV_BLOCK_SIZE:
            chunk = self._read_chunk()
            if not chunk:
                break
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        columns = _parse_header(line, self._name)
        if not columns or len(set(columns)) != len(columns):
            raise InvalidTable(f"{self._name} must start with a header of distinct column names.")
        return columns

    def _read_chunk(self) -> bytes:
        try:
            return bytes(self._stream.read(2**16))
        except OSError:
            raise InvalidTable(f"cannot read {self._name}: it is truncated or corrupt.") from None

    def is_at_end(self) -> bool:
        """Whether no data is left."""
        self._buffer = self._buffer or self._read_chunk()
        return not self._buffer

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes after the header."""
        if not self._buffer:
            content = bytes(self._stream.read(size))
        elif size < 0:
            content = self._buffer
            self._buffer = b""
        else:
            content = self._buffer[:size]
            self._buffer = self._buffer[size:]
        self.quote_count += content.count(b'"')
        return content

    def close(self) -> None:
        """Do nothing: the stream belongs to the caller."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return False."""
        return False

    def seekable(self) -> bool:
        """Return False."""
        return False


def _parse_header(line: bytes, name: str) -> list[str]:
    """Return the column names in the first line of a CSV file.

    If the header is missing, the line contains values. The codec's and the parser's errors would
    quote them, so raise new errors outside their handlers.
    """
    text = None
    with suppress(UnicodeDecodeError):
        text = line.decode("utf-8-sig").rstrip("\r")
    if text is None:
        raise InvalidTable(f"{name} must be UTF-8 text, or Parquet.")
    with suppress(csv.Error):
        return next(csv.reader([text], strict=True), [])
    raise InvalidTable(
        f"{name} must start with a header: one line of column names, separated by commas and "
        "ending with \\n."
    )
