"""Open tables of any format: CSV, JSON lines, Parquet, Arrow, Excel, SPSS and Stata."""

import bz2
import gzip
import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from sfumato.errors import InvalidTable
from sfumato.foundation.arrays import Arrow
from sfumato.tables.arrow_file import open_arrow_file, open_arrow_stream
from sfumato.tables.csv_file import open_csv
from sfumato.tables.csv_header import parse_delimiter
from sfumato.tables.excel_file import open_excel
from sfumato.tables.file_kind import PEEK_SIZE, FileKind, detect_kind, require_workbook
from sfumato.tables.json_lines import open_json_lines
from sfumato.tables.parquet_file import open_parquet
from sfumato.tables.statistics_file import open_spss, open_stata
from sfumato.tables.table import Table
from sfumato.tables.temporary_copy import copy_to_path, make_seekable

__all__ = ["Table", "open_table"]

_CODECS = {FileKind.GZIP: "gzip", FileKind.BZIP2: "bz2", FileKind.ZSTD: "zstd"}


@contextmanager
def open_table(
    path: str, *, delimiter: str | None = None, sheet: str | None = None
) -> Iterator[Table]:
    """Open a table; ``-`` is standard input.

    The format is detected from the content, not from the name: CSV or JSON lines, optionally
    compressed with gzip, bz2 or zstd; Parquet; Feather or Arrow IPC; Excel (.xlsx); SPSS; Stata.
    ``delimiter`` separates the cells of a CSV file: a comma by default; ``tab`` is a tab.
    ``sheet`` is the name of a sheet of a workbook: the first one by default. Other formats ignore
    both.
    """
    separator = parse_delimiter(delimiter)
    with ExitStack() as stack:
        yield _TableFile(path, stack).open(separator, sheet)


class _TableFile:
    """An open file whose format is not known yet."""

    def __init__(self, path: str, stack: ExitStack) -> None:
        self._path = path
        self._stack = stack
        self._name = "standard input" if path == "-" else Path(path).name
        try:
            self._file = self._open_file()
            self._first_bytes = self._peek()
        except OSError as error:
            raise InvalidTable(f"cannot open {self._name}: {error.strerror or error}.") from None
        if not self._first_bytes:
            raise InvalidTable(f"{self._name} is empty.")

    def _open_file(self) -> Arrow:
        if self._path != "-":
            return self._stack.enter_context(Path(self._path).open("rb"))
        if sys.stdin is None:
            raise InvalidTable(
                "standard input is closed. Pipe a table into the command, or pass a file."
            )
        return sys.stdin.buffer

    def _peek(self) -> bytes:
        """Return the first bytes without consuming them."""
        first_bytes = bytes(self._file.peek(PEEK_SIZE)[:PEEK_SIZE])
        if len(first_bytes) < PEEK_SIZE and first_bytes:
            # The writer of a pipe may have written only a few bytes so far.
            first_bytes = self._file.read(PEEK_SIZE)
            if self._file.seekable():
                self._file.seek(-len(first_bytes), os.SEEK_CUR)
            else:
                self._file = io.BufferedReader(_PrefixedFile(first_bytes, self._file))
        return first_bytes

    def open(self, delimiter: str, sheet: str | None) -> Table:
        kind = detect_kind(self._name, self._first_bytes)
        if kind is FileKind.ZIP:
            file = make_seekable(self._file, self._stack)
            require_workbook(self._name, file)
            return open_excel(self._name, file, self._stack, sheet)
        if kind in (FileKind.CSV, FileKind.JSON_LINES):
            return self._open_text(kind, self._file, b"", delimiter, None)
        if kind in _CODECS:
            return self._open_compressed_text(_CODECS[kind], delimiter)
        return self._open_binary(kind)

    # --- binary formats ---------------------------------------------------------------------------

    def _open_binary(self, kind: FileKind) -> Table:
        if kind is FileKind.ARROW_STREAM:
            return open_arrow_stream(self._name, self._file)
        if kind is FileKind.SPSS:
            return open_spss(self._name, self._regular_path())
        if kind is FileKind.STATA:
            return open_stata(self._name, self._regular_path())
        file = make_seekable(self._file, self._stack)
        if kind is FileKind.PARQUET:
            return open_parquet(self._name, file)
        return open_arrow_file(self._name, file)

    def _regular_path(self) -> str:
        return self._path if self._is_regular() else copy_to_path(self._file, self._stack)

    def _is_regular(self) -> bool:
        """Whether the path can be opened again."""
        return self._path != "-" and Path(self._path).is_file()

    # --- text formats -----------------------------------------------------------------------------

    def _open_compressed_text(self, codec: str, delimiter: str) -> Table:
        stream = pa.CompressedInputStream(pa.PythonFile(self._file, mode="r"), codec)
        start = self._read_start(stream)
        kind = detect_kind(self._name, start) if start else FileKind.CSV
        if kind not in (FileKind.CSV, FileKind.JSON_LINES):
            raise InvalidTable(
                f"{self._name} contains a {kind.value}, compressed with {codec}. "
                "Decompress it first."
            )
        return self._open_text(kind, stream, start, delimiter, codec)

    def _read_start(self, stream: Arrow) -> bytes:
        try:
            return bytes(stream.read(PEEK_SIZE))
        except OSError:
            raise InvalidTable(f"cannot read {self._name}: it is truncated or corrupt.") from None

    def _open_text(
        self, kind: FileKind, stream: Arrow, start: bytes, delimiter: str, codec: str | None
    ) -> Table:
        if kind is FileKind.JSON_LINES:
            return open_json_lines(self._name, stream, start)
        source = pa.PythonFile(stream, mode="r") if codec is None else stream
        reopen = (lambda: _open_again(self._path, codec)) if self._is_regular() else None
        return open_csv(self._name, source, delimiter=delimiter, start=start, reopen=reopen)


def _open_again(path: str, codec: str | None) -> BinaryIO:
    """Open a regular file again, and decompress it."""
    if codec == "gzip":
        return cast("BinaryIO", gzip.open(path))
    if codec == "bz2":
        return cast("BinaryIO", bz2.open(path))
    if codec == "zstd":
        return cast("BinaryIO", io.BufferedReader(pa.input_stream(path, compression=codec)))
    return Path(path).open("rb")


class _PrefixedFile(io.RawIOBase):
    """A pipe, with the bytes that were already read from it."""

    def __init__(self, prefix: bytes, file: BinaryIO) -> None:
        self._prefix = prefix
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        content = self._prefix[: len(buffer)]
        if content:
            self._prefix = self._prefix[len(content) :]
        else:
            content = self._file.read1(len(buffer))  # type: ignore[attr-defined]
        buffer[: len(content)] = content
        return len(content)
