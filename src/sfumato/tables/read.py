"""Reading tables as a stream of Arrow batches, in constant memory.

No error ever holds a value. The errors of others do: Arrow quotes what it could not read, and a codec keeps all the
bytes. An error that is raised while one of them is handled keeps it, even ``from None``; so ours are raised afterwards.
"""

import csv
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sfumato.errors import InvalidTable
from sfumato.foundation.arrays import Arrow

__all__ = ["Table", "opened_table"]

_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"
_BATCH_ROWS = 2**16
_CSV_BLOCK = 2**22


class Table:
    """An opened table: its column names, its metadata, the sizes of its row groups if it has any, and its rows."""

    def __init__(
        self,
        name: str,
        columns: list[str],
        batches: Arrow,
        metadata: Mapping[bytes, bytes] | None,
        row_groups: list[int] | None = None,
    ) -> None:
        self.name, self.columns, self._batches = name, columns, batches
        self.metadata: Mapping[bytes, bytes] = metadata or {}
        self.row_groups = row_groups
        self._is_csv = metadata is None

    def batches(
        self, wanted: Mapping[str, pa.DataType], row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The wanted columns, in batches; of a table with row groups all of them, or those named."""
        missing = [column for column in wanted if column not in self.columns]
        if missing:
            raise InvalidTable(f"{self.name} has no column {missing[0]!r}{self._hint(missing[0])}")
        if row_groups is not None and max(row_groups, default=-1) >= len(self.row_groups or ()):
            raise InvalidTable(
                f"{self.name} changed while it was read. Nothing was kept; start again."
            )
        if any(self.columns.count(column) > 1 for column in wanted):
            raise InvalidTable(
                f"{self.name} has several columns of the name asked for. Rename all but one."
            )
        try:
            yield from (
                self._batches(wanted) if row_groups is None else self._batches(wanted, row_groups)
            )
        except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError, UnicodeDecodeError):
            refusal = InvalidTable(
                f"{self.name} cannot be read: its rows differ in length, its text is not UTF-8, or a column does not "
                "hold what was asked for."
            )
        except OSError:
            refusal = InvalidTable(
                f"{self.name} cannot be read to its end: it is cut off or damaged."
            )
        else:
            return
        raise refusal

    def _hint(self, missing: str) -> str:
        """Which columns there are. A CSV file's first line is not shown: without a header it holds people's values."""
        if not self._is_csv:
            return f"; found {_listed(self.columns)}."
        alike = [
            column
            for column in self.columns
            if column.strip().casefold() == missing.strip().casefold()
        ]
        if alike:
            return f"; there is {alike[0]!r}."
        return f" among its {len(self.columns)} columns. Its first line must be a header that names them."


@contextmanager
def opened_table(path: str) -> Iterator[Table]:
    """A CSV file, gzip or not, or a Parquet file, by its content; ``-`` is standard input."""
    name = "standard input" if path == "-" else Path(path).name
    with ExitStack() as stack:
        try:
            raw: BinaryIO = _standard_input() if path == "-" else stack.enter_context(_open(path))
            head = _head(raw)
        except OSError as problem:
            raise InvalidTable(f"{name} cannot be opened: {problem.strerror or problem}.") from None
        if not head:
            raise InvalidTable(f"{name} is empty.")
        if head.startswith(_PARQUET):
            yield _parquet(name, _seekable(raw, stack))
        else:
            yield _csv(name, raw, gzipped=head.startswith(_GZIP))


def _open(path: str) -> BinaryIO:
    return Path(path).open("rb")


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise InvalidTable(
            "standard input is closed. Pipe a table into the command, or name a file."
        )
    return sys.stdin.buffer


def _head(raw: Arrow) -> bytes:
    """The first bytes, left in place."""
    return bytes(raw.peek(4)[:4])


def _seekable(raw: BinaryIO, stack: ExitStack) -> BinaryIO:
    """Parquet keeps its directory at the end: a pipe is laid down in a temporary file first."""
    if raw.seekable():
        return raw
    spooled: BinaryIO = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    shutil.copyfileobj(raw, spooled)
    spooled.seek(0, os.SEEK_SET)
    return spooled


def _parquet(name: str, raw: BinaryIO) -> Table:
    file = _parquet_file(name, raw)
    schema = file.schema_arrow

    def batches(
        wanted: Mapping[str, pa.DataType], groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        dictionaries = [
            column
            for column, kind in wanted.items()
            if kind is None and pa.types.is_string(schema.field(column).type)
        ]
        source = pa.parquet.ParquetFile(raw, read_dictionary=dictionaries) if dictionaries else file
        yield from source.iter_batches(
            batch_size=_BATCH_ROWS, columns=list(wanted), row_groups=groups
        )

    sizes = [
        file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)
    ]
    return Table(name, list(schema.names), batches, schema.metadata or {}, sizes)


def _parquet_file(name: str, raw: BinaryIO) -> Arrow:
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        return pa.parquet.ParquetFile(raw)
    raise InvalidTable(f"{name} starts like Parquet but cannot be read: it is cut off or damaged.")


def _csv(name: str, raw: BinaryIO, *, gzipped: bool) -> Table:
    stream = (
        pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "gzip")
        if gzipped
        else pa.PythonFile(raw, mode="r")
    )
    lines = _Lines(stream)
    header = lines.header(name)

    def batches(wanted: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        if lines.at_end(name):
            return  # Arrow takes a table without rows for a broken one
        # Text unless a number is needed: Arrow must not guess types from the first rows. Nothing but an empty field
        # is missing: a label may well be called "NA".
        types = {column: pa.string() if kind is None else kind for column, kind in wanted.items()}
        convert = pa.csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[""],
            strings_can_be_null=True,
        )
        read = pa.csv.ReadOptions(block_size=_CSV_BLOCK, column_names=header)
        # In a file of one column an empty line is a person without an answer, not a line to be skipped.
        parse = pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(header) > 1)
        with pa.csv.open_csv(
            lines, read_options=read, parse_options=parse, convert_options=convert
        ) as reader:
            yield from reader
        if lines.quotes % 2:
            raise InvalidTable(
                f"{name}: a quotation mark is opened and never closed, and hides the rows after it."
            )

    return Table(name, header, batches, None)


class _Lines:
    """A byte stream whose first line has been taken off: the header is read before the columns are asked for."""

    closed = False

    def __init__(self, stream: Arrow) -> None:
        self._stream, self._rest = stream, b""
        self.quotes = 0

    def header(self, name: str) -> list[str]:
        while b"\n" not in self._rest and len(self._rest) < _CSV_BLOCK:
            more = self._more(name)
            if not more:
                break
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        columns = _names_in(_text_of(line, name), name)
        if not columns or len(set(columns)) != len(columns):
            raise InvalidTable(f"{name} must start with a header of distinct column names.")
        return columns

    def _more(self, name: str) -> bytes:
        try:
            return bytes(self._stream.read(2**16))
        except OSError:
            raise InvalidTable(f"{name} cannot be read: it is cut off or damaged.") from None

    def at_end(self, name: str) -> bool:
        """Whether nothing follows the header."""
        self._rest = self._rest or self._more(name)
        return not self._rest

    def read(self, size: int = -1) -> bytes:
        """The bytes after the header."""
        if self._rest:
            taken, self._rest = (
                (self._rest, b"") if size < 0 else (self._rest[:size], self._rest[size:])
            )
        else:
            taken = bytes(self._stream.read(size))
        self.quotes += taken.count(b'"')
        return taken

    def close(self) -> None:
        """Nothing to close: the stream belongs to the caller."""

    def readable(self) -> bool:
        """Always."""
        return True

    def writable(self) -> bool:
        """Never."""
        return False

    def seekable(self) -> bool:
        """Never."""
        return False


def _text_of(line: bytes, name: str) -> str:
    """A first line as text. Without a header it holds a person's value, and the codec's error would hold the line."""
    with suppress(UnicodeDecodeError):
        return line.decode("utf-8-sig").rstrip("\r")
    raise InvalidTable(f"{name} must be text in UTF-8, or Parquet.")


def _names_in(line: str, name: str) -> list[str]:
    with suppress(csv.Error):
        return next(csv.reader([line], strict=True), [])
    raise InvalidTable(
        f"{name} must start with a header: one line of column names, separated by commas, lines ended by \\n."
    )


def _listed(columns: list[str]) -> str:
    shown = ", ".join(columns[:8])
    return shown + (", …" if len(columns) > 8 else "")
