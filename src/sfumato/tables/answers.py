"""Answers in files: columns of values, read as batches of symbols.

Workers read files in slices: a slice is a file, or some row groups of a Parquet file.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute

from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.domains.domain import unknown_value_error
from sfumato.errors import InvalidArgument, InvalidSymbols, InvalidTable, UnknownValue
from sfumato.foundation.arrays import Arrow, Symbols
from sfumato.survey import Lookup, column_to_symbols
from sfumato.tables.read import open_table

__all__ = [
    "AnswerColumns",
    "FileSlice",
    "answer_batches",
    "answer_reader",
    "first_rows",
    "label_texts",
    "slice_file",
    "slice_files",
]

_INTEGER = r"^-?[0-9]{1,16}$"
_SLICE_ROWS = 2**22  # large enough for a process of its own, small enough to spread the load


@dataclass(frozen=True)
class AnswerColumns:
    """The columns with the answers: one for values, or two for positions."""

    value: str | None = None
    latitude: str | None = None
    longitude: str | None = None

    def check(self, domain: Domain) -> None:
        """Reject columns that do not fit the domain."""
        has_value = self.value is not None
        is_complete = (self.latitude is None) == (self.longitude is None) == has_value
        if not is_complete:
            raise InvalidArgument("pass either --column, or both --latitude and --longitude.")
        if has_value:
            if isinstance(domain, GridDomain):
                raise InvalidArgument(
                    "a grid survey needs positions: pass --latitude and --longitude."
                )
        elif self.latitude == self.longitude:
            raise InvalidArgument("--latitude and --longitude must name two different columns.")
        elif not isinstance(domain, GridDomain | H3Domain):
            raise InvalidArgument(
                "--latitude and --longitude are for surveys with a grid or H3 domain; "
                "pass --column."
            )

    @property
    def types(self) -> dict[str, Arrow]:
        """The Arrow type of each column to read; ``None`` means the type in the file."""
        if self.value is not None:
            return {self.value: None}
        return {str(self.latitude): pa.float64(), str(self.longitude): pa.float64()}


# --- slices ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileSlice:
    """A file, or some row groups of a Parquet file.

    ``first_row``: its first row in the file. ``rows``: its number of rows; ``None`` for a CSV file,
    which must be read to know.
    """

    path: str
    row_groups: range | None = None
    first_row: int = 0
    rows: int | None = None


def _is_stream(path: str) -> bool:
    """Return whether ``path`` can be opened only once: standard input, a pipe or a descriptor."""
    return path == "-" or path.startswith(("/dev/", "/proc/")) or not Path(path).is_file()


def slice_file(path: str) -> list[FileSlice]:
    """Split a Parquet file into slices of about four million rows. Do not split other files."""
    if _is_stream(path):  # true for a missing file too; reading it will fail
        return [FileSlice(path)]
    with open_table(path) as table:
        group_sizes = table.row_groups
    if group_sizes is None:
        return [FileSlice(path)]
    slices = []
    first_group = 0
    first_row = 0
    rows = 0
    for group, size in enumerate(group_sizes):
        rows += size
        is_last = group == len(group_sizes) - 1
        if rows >= _SLICE_ROWS or (rows and is_last):
            slices.append(FileSlice(path, range(first_group, group + 1), first_row, rows))
            first_group = group + 1
            first_row += rows
            rows = 0
    return slices or [FileSlice(path)]


def slice_files(paths: Sequence[str], workers: int) -> tuple[list[FileSlice], int]:
    """Split files into slices. Return them, and the number of workers that can share them.

    Only this process can read a stream.
    """
    slices: list[FileSlice] = []
    for path in paths:
        slices += slice_file(path)
    return slices, 1 if any(map(_is_stream, paths)) else workers


def first_rows(slices: Sequence[FileSlice], columns: AnswerColumns) -> list[int]:
    """Return the index of each slice's first row, counted over all slices."""
    firsts = []
    total = 0
    for part in slices:
        firsts.append(total)
        if part is not slices[-1]:
            total += _count_rows(part, columns) if part.rows is None else part.rows
    return firsts


def _count_rows(part: FileSlice, columns: AnswerColumns) -> int:
    if _is_stream(part.path):
        raise InvalidArgument("standard input must come last when you pass several files.")
    column = columns.value or str(columns.latitude)
    with open_table(part.path) as table:
        return sum(batch.num_rows for batch in table.batches({column: None}))


# --- symbols --------------------------------------------------------------------------------------


def answer_batches(
    path: str | FileSlice,
    columns: AnswerColumns,
    domain: Domain,
    *,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Iterator[Symbols]:
    """Yield the symbols of the answers in a file, or in a slice of one, batch by batch.

    Errors name the row of an unknown value, never the value. ``on_progress`` is called with the
    number of rows read so far.
    """
    columns.check(domain)
    part = path if isinstance(path, FileSlice) else FileSlice(path)
    read = answer_reader(columns, domain)
    rows = 0
    with open_table(part.path) as table:
        for batch in table.batches(columns.types, part.row_groups):
            if batch.num_rows == 0:
                continue
            try:
                symbols = read(batch)
            except InvalidTable as problem:
                raise InvalidTable(f"{table.name}: {problem}") from None
            except UnknownValue as unknown:
                before = part.first_row + rows
                raise _with_rows(unknown, table.name, before, batch.num_rows) from None
            rows += batch.num_rows
            on_progress(rows)
            yield symbols
    if part.rows is not None and rows != part.rows:
        raise InvalidTable(
            f"{table.name} changed while it was being read. Nothing was written; "
            "run the command again."
        )
    if rows == 0:
        raise InvalidTable(f"{table.name} has a header but no rows.")


def _with_rows(unknown: UnknownValue, name: str, before: int, rows: int) -> UnknownValue:
    """Return the same error with rows of the file, counted from 1 after the header."""
    first = before + unknown.first
    return UnknownValue(
        f"{name}: {unknown.count} of {rows} values are missing or not in the domain "
        f"(rows {before + 1} to {before + rows}, the first in row {first + 1}). "
        "Correct them, add their labels, or give the domain an `other` label.",
        first=first,
        count=unknown.count,
    )


def answer_reader(columns: AnswerColumns, domain: Domain) -> Callable[[Arrow], Symbols]:
    """Return a function from Arrow batches of ``columns`` to symbols.

    Its errors contain positions, never values.
    """
    return partial(_read_positions, domain) if columns.value is None else _ValueReader(domain)


class _ValueReader:
    """Reads symbols from a column of text or integers.

    Files may contain integers as text, and text as integers. If all labels of the domain have one
    type, convert a column of the other type. Reject columns of any other type, even if the domain
    has an ``other`` label.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._lookup = Lookup(domain)
        self._label_types: set[type]
        if isinstance(domain, IntegerDomain):
            self._label_types = {int}
        else:
            self._label_types = {type(label) for label in domain.labels if label != domain.other}

    def __call__(self, batch: Arrow) -> Symbols:
        column = batch.column(0)
        name = batch.schema.names[0]
        _require_labels(column, name)
        # These errors quote what they could not read: raise ours after their handler.
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, InvalidSymbols):
            return self._symbols(column)
        raise InvalidTable(f"column {name!r} must contain UTF-8 text or integers.")

    def _symbols(self, column: Arrow) -> Symbols:
        if _is_text(column.type):
            if self._label_types == {int}:
                column = _parse_integers(column.cast(pa.string()))
            elif not pa.types.is_dictionary(column.type):
                column = column.cast(pa.string())
        elif self._label_types == {str}:
            column = column.cast(pa.string())
        if isinstance(self._domain, IntegerDomain) and not pa.types.is_dictionary(column.type):
            return self._integers(column)
        return column_to_symbols(column, self._lookup)

    def _integers(self, column: Arrow) -> Symbols:
        if column.null_count:
            missing = column.is_null().to_numpy(zero_copy_only=False)
            raise unknown_value_error(np.flatnonzero(missing), len(column))
        return self._domain.symbols(column.to_numpy(zero_copy_only=False))


def _read_positions(domain: Domain, batch: Arrow) -> Symbols:
    """Return the symbols of a column of latitudes and one of longitudes."""
    degrees = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise InvalidTable(
                f"column {name!r} must contain degrees, but its type is {column.type}."
            )
        numbers = column.cast(pa.float64(), safe=False)
        degrees.append(numbers.to_numpy(zero_copy_only=False))
    symbols: Symbols = domain.symbols_at(*degrees)  # type: ignore[attr-defined]
    return symbols


# --- labels ---------------------------------------------------------------------------------------


def label_texts(column: Arrow, name: str) -> list[str | None]:
    """Return a column of labels as text in Unicode's NFC form, as domains keep them.

    Missing values and empty text are ``None``. ``name`` is the column's name, for messages.
    """
    _require_labels(column, name)
    with suppress(UnicodeDecodeError):  # it contains a value: raise ours after its handler
        coded = column.cast(pa.string()).dictionary_encode()
        texts: list[str | None] = []
        for value in coded.dictionary.to_pylist():
            texts.append(unicodedata.normalize("NFC", value) if value else None)
        texts.append(None)
        codes = coded.indices.fill_null(len(texts) - 1)
        return [texts[code] for code in codes.to_pylist()]
    raise InvalidTable(f"column {name!r} must contain UTF-8 text.")


def _require_labels(column: Arrow, name: str) -> None:
    """Reject a column that contains neither text nor integers."""
    if not (_is_text(column.type) or pa.types.is_integer(_value_type(column.type))):
        raise InvalidTable(
            f"column {name!r} must contain text or integers, but its type is {column.type}. "
            "Convert it first."
        )


def _is_text(kind: Arrow) -> bool:
    kind = _value_type(kind)
    is_string = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(is_string or pa.types.is_string_view(kind))


def _value_type(kind: Arrow) -> Arrow:
    """Return the type of a column's values, dictionary-encoded or not."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _parse_integers(text: Arrow) -> Arrow:
    """Parse integers written as digits and a sign; anything else becomes null."""
    is_integer = pa.compute.fill_null(pa.compute.match_substring_regex(text, _INTEGER), False)
    return pa.compute.if_else(is_integer, text, None).cast(pa.int64())
