"""Answers in files: columns of values, read as batches of symbols.

Files are split into slices, one per task. A slice is an entire file, or some row groups of a
Parquet file.
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
from sfumato.survey import SymbolLookup, column_to_symbols
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

_INTEGER_PATTERN = r"^-?[0-9]{1,16}$"
_TARGET_SLICE_ROWS = 2**22  # large enough to justify a process, small enough to balance the load


@dataclass(frozen=True)
class AnswerColumns:
    """The columns that contain the answers: one for values, or two for positions."""

    value: str | None = None
    latitude: str | None = None
    longitude: str | None = None

    def check(self, domain: Domain) -> None:
        """Reject an invalid combination of columns, or one that does not fit the domain."""
        has_value = self.value is not None
        is_consistent = (self.latitude is None) == (self.longitude is None) == has_value
        if not is_consistent:
            raise InvalidArgument("pass either --column, or both --latitude and --longitude.")
        if has_value:
            if isinstance(domain, GridDomain):
                raise InvalidArgument(
                    "a grid survey needs positions: pass --latitude and --longitude."
                )
        elif self.latitude == self.longitude:
            raise InvalidArgument("--latitude and --longitude must be two different columns.")
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
    """An entire file, or some row groups of a Parquet file.

    ``first_row``: the index in the file of the slice's first row. ``row_count``: the slice's number
    of rows, or ``None`` if it is not known before reading them, as in a CSV file.
    """

    path: str
    row_groups: range | None = None
    first_row: int = 0
    row_count: int | None = None


def _is_stream(path: str) -> bool:
    """Whether ``path`` may allow only one pass: standard input, or anything but a regular file."""
    return path == "-" or path.startswith(("/dev/", "/proc/")) or not Path(path).is_file()


def slice_file(path: str) -> list[FileSlice]:
    """Split a Parquet file into slices of about four million rows. Do not split other files."""
    if _is_stream(path):  # also true for a missing file, which raises an error when it is read
        return [FileSlice(path)]
    with open_table(path) as table:
        group_sizes = table.row_group_sizes
    if group_sizes is None:
        return [FileSlice(path)]
    slices = []
    first_group = 0
    first_row = 0
    row_count = 0
    for group, size in enumerate(group_sizes):
        row_count += size
        is_last = group == len(group_sizes) - 1
        if row_count >= _TARGET_SLICE_ROWS or (row_count and is_last):
            slices.append(FileSlice(path, range(first_group, group + 1), first_row, row_count))
            first_group = group + 1
            first_row += row_count
            row_count = 0
    return slices or [FileSlice(path)]


def slice_files(paths: Sequence[str], workers: int) -> tuple[list[FileSlice], int]:
    """Split files into slices. Return the slices, and the number of workers that can share them.

    Return one worker if any file is a stream, because only this process can read it.
    """
    slices: list[FileSlice] = []
    for path in paths:
        slices += slice_file(path)
    return slices, 1 if any(map(_is_stream, paths)) else workers


def first_rows(slices: Sequence[FileSlice], columns: AnswerColumns) -> list[int]:
    """Return the index of each slice's first row among the rows of all slices."""
    first_indices = []
    row_index = 0
    for file_slice in slices:
        first_indices.append(row_index)
        if file_slice is not slices[-1]:
            row_index += _count_rows(file_slice, columns)
    return first_indices


def _count_rows(file_slice: FileSlice, columns: AnswerColumns) -> int:
    if file_slice.row_count is not None:
        return file_slice.row_count
    if _is_stream(file_slice.path):
        raise InvalidArgument(
            "all files except the last must be regular files, because they are read twice."
        )
    column = columns.value or str(columns.latitude)
    with open_table(file_slice.path) as table:
        return sum(batch.num_rows for batch in table.batches({column: None}))


# --- symbols --------------------------------------------------------------------------------------


def answer_batches(
    source: str | FileSlice,
    columns: AnswerColumns,
    domain: Domain,
    *,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Iterator[Symbols]:
    """Yield the symbols for the answers in a file (given by its path) or a slice, in batches.

    Errors contain the row number of an unknown value, never the value. ``on_progress`` is called
    with the number of rows read so far.
    """
    columns.check(domain)
    file_slice = source if isinstance(source, FileSlice) else FileSlice(source)
    read = answer_reader(columns, domain)
    row_count = 0
    with open_table(file_slice.path) as table:
        for batch in table.batches(columns.types, file_slice.row_groups):
            if batch.num_rows == 0:
                continue
            try:
                symbols = read(batch)
            except InvalidTable as error:
                raise InvalidTable(f"{table.name}: {error}") from None
            except UnknownValue as error:
                first_row = file_slice.first_row + row_count
                raise _add_row_numbers(error, table.name, first_row, batch.num_rows) from None
            row_count += batch.num_rows
            on_progress(row_count)
            yield symbols
    if file_slice.row_count is not None and row_count != file_slice.row_count:
        raise InvalidTable(
            f"{table.name} changed while it was being read. Nothing was written; "
            "run the command again."
        )
    if row_count == 0:
        raise InvalidTable(f"{table.name} has no rows.")


def _add_row_numbers(
    error: UnknownValue, name: str, first_row: int, row_count: int
) -> UnknownValue:
    """Return an error with row numbers in the file, where the first row of data is row 1."""
    first_unknown = first_row + error.first
    last_row = first_row + row_count
    return UnknownValue(
        f"{name}: {error.count} of {row_count} values are missing or not in the domain "
        f"(rows {first_row + 1} to {last_row}, the first in row {first_unknown + 1}). "
        "Correct them, add their labels, or give the domain an `other` label.",
        first=first_unknown,
        count=error.count,
    )


def answer_reader(columns: AnswerColumns, domain: Domain) -> Callable[[Arrow], Symbols]:
    """Return a function that converts Arrow batches of ``columns`` to symbols.

    The function's errors contain row indices, never values.
    """
    return partial(_read_positions, domain) if columns.value is None else _ValueReader(domain)


class _ValueReader:
    """Reads symbols from a column of text or integers.

    A file may store integer labels as text, or text labels as integers. If all labels in the domain
    have the same type, a column of the other type is converted to it. Columns that contain neither
    text nor integers are rejected, even if the domain has an ``other`` label.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._lookup = SymbolLookup(domain)
        self._label_types: set[type]
        if isinstance(domain, IntegerDomain):
            self._label_types = {int}
        else:
            self._label_types = {type(label) for label in domain.labels if label != domain.other}

    def __call__(self, batch: Arrow) -> Symbols:
        column = batch.column(0)
        name = batch.schema.names[0]
        _require_labels(column, name)
        # The suppressed errors quote the data, so raise a new error outside their handler.
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, InvalidSymbols):
            return self._find_symbols(column)
        raise InvalidTable(f"column {name!r} must contain UTF-8 text or integers.")

    def _find_symbols(self, column: Arrow) -> Symbols:
        if _is_text(column.type):
            if self._label_types == {int}:
                column = _parse_integers(column.cast(pa.string()))
            elif not pa.types.is_dictionary(column.type):
                column = column.cast(pa.string())
        elif self._label_types == {str}:
            column = column.cast(pa.string())
        if isinstance(self._domain, IntegerDomain) and not pa.types.is_dictionary(column.type):
            return self._find_integer_symbols(column)
        return column_to_symbols(column, self._lookup)

    def _find_integer_symbols(self, column: Arrow) -> Symbols:
        if column.null_count:
            is_missing = column.is_null().to_numpy(zero_copy_only=False)
            raise unknown_value_error(np.flatnonzero(is_missing), len(column))
        return self._domain.symbols(column.to_numpy(zero_copy_only=False))


def _read_positions(domain: Domain, batch: Arrow) -> Symbols:
    """Return the symbols for a column of latitudes and a column of longitudes."""
    coordinates = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise InvalidTable(
                f"column {name!r} must contain degrees, but its type is {column.type}."
            )
        numbers = column.cast(pa.float64(), safe=False)
        coordinates.append(numbers.to_numpy(zero_copy_only=False))
    symbols: Symbols = domain.symbols_at(*coordinates)  # type: ignore[attr-defined]
    return symbols


# --- labels ---------------------------------------------------------------------------------------


def label_texts(column: Arrow, name: str) -> list[str | None]:
    """Return the labels in a column as text, normalized to NFC like a domain's labels.

    Missing values and empty text are ``None``. ``name`` is the column's name, for error messages.
    """
    _require_labels(column, name)
    with suppress(UnicodeDecodeError):  # the error quotes a value: raise a new one below
        encoded = column.cast(pa.string()).dictionary_encode()
        texts: list[str | None] = []
        for value in encoded.dictionary.to_pylist():
            texts.append(unicodedata.normalize("NFC", value) if value else None)
        texts.append(None)
        indices = encoded.indices.fill_null(len(texts) - 1)
        return [texts[index] for index in indices.to_pylist()]
    raise InvalidTable(f"column {name!r} must contain UTF-8 text.")


def _require_labels(column: Arrow, name: str) -> None:
    """Reject a column that contains neither text nor integers."""
    if not (_is_text(column.type) or pa.types.is_integer(_value_type(column.type))):
        raise InvalidTable(
            f"column {name!r} must contain text or integers, but its type is {column.type}. "
            "Convert it first."
        )


def _is_text(type_: Arrow) -> bool:
    type_ = _value_type(type_)
    is_string = pa.types.is_string(type_) or pa.types.is_large_string(type_)
    return bool(is_string or pa.types.is_string_view(type_))


def _value_type(type_: Arrow) -> Arrow:
    """Return the type of a column's values, even if the column is dictionary-encoded."""
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _parse_integers(texts: Arrow) -> Arrow:
    """Parse decimal integers of at most 16 digits. Anything else becomes null."""
    matches = pa.compute.match_substring_regex(texts, _INTEGER_PATTERN)
    is_integer = pa.compute.fill_null(matches, False)
    return pa.compute.if_else(is_integer, texts, None).cast(pa.int64())
