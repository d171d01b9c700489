"""Answers in files: columns of values or positions, read in batches.

Files are split into slices, one per task. A slice is an entire file, or some row groups of a
Parquet file.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.domains import Domain
from sfumato.errors import InvalidArgument, InvalidSymbols, InvalidTable
from sfumato.foundation.arrays import Arrow
from sfumato.survey import AnswerBatch, AnswerColumns, AnswerReader, Caller, RowCounts, RowRules
from sfumato.tables.file_kind import PEEK_SIZE, FileKind, detect_kind
from sfumato.tables.read import open_table
from sfumato.tables.table import Table

__all__ = [
    "FileSlice",
    "RowCounter",
    "answer_batches",
    "answer_reader",
    "column_types",
    "first_rows",
    "open_answers",
    "require_cells",
    "slice_file",
    "slice_files",
]

_TARGET_SLICE_ROWS = 2**22  # large enough to justify a process, small enough to balance the load


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
    group_sizes = _row_group_sizes(path)
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


def _row_group_sizes(path: str) -> list[int]:
    """Return the number of rows of each row group of a Parquet file; other files have none."""
    with Path(path).open("rb") as file:
        first_bytes = file.read(PEEK_SIZE)
    if detect_kind(Path(path).name, first_bytes) is not FileKind.PARQUET:
        return []
    with open_table(path) as table:
        return table.row_group_sizes or []


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
    with open_answers(file_slice.path, columns) as table:
        return sum(batch.num_rows for batch in table.batches({column: None}))


def open_answers(path: str, columns: AnswerColumns) -> AbstractContextManager[Table]:
    """Open a table of answers."""
    return open_table(path, delimiter=columns.delimiter, sheet=columns.sheet)


# --- symbols --------------------------------------------------------------------------------------


def answer_batches(
    source: str | FileSlice,
    columns: AnswerColumns,
    domain: Domain,
    *,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Iterator[AnswerBatch]:
    """Yield the answers in a file (given by its path) or a slice, in batches.

    Rows without an answer and unknown answers are counted in the batches. Check the counts with a
    ``RowCounter`` when you have read everything. ``on_progress`` is called with the number of rows
    read so far.
    """
    columns.check(domain)
    file_slice = source if isinstance(source, FileSlice) else FileSlice(source)
    read = answer_reader(columns, domain)
    row_count = 0
    with open_answers(file_slice.path, columns) as table:
        for batch in table.batches(column_types(columns), file_slice.row_groups):
            if batch.num_rows == 0:
                continue
            try:
                answers = read(batch)
            except InvalidTable as error:
                raise InvalidTable(f"{table.name}: {error}") from None
            counts = _number_rows(answers.counts, row_count, table)
            row_count += batch.num_rows
            on_progress(row_count)
            yield replace(answers, counts=counts)
    if file_slice.row_count is not None and row_count != file_slice.row_count:
        raise InvalidTable(
            f"{table.name} changed while it was being read. Nothing was written; "
            "run the command again."
        )
    if row_count == 0:
        raise InvalidTable(f"{table.name} has no rows.")


def _number_rows(counts: RowCounts, first_row: int, table: Table) -> RowCounts:
    """Return counts whose first rows have the numbers that the table's own program shows.

    ``first_row`` is the index of the batch's first row. Indices are relative to it.
    """

    def renumber(index: int | None) -> int | None:
        if index is None:
            return None
        return table.row_number(first_row + index) - 1 - first_row

    return replace(
        counts,
        first_missing=renumber(counts.first_missing),
        first_unknown=renumber(counts.first_unknown),
        row_noun=table.row_noun,
    )


class RowCounter:
    """Counts what becomes of the rows of one or more files, and refuses them as a whole.

    Errors contain counts and row numbers, never answers. ``caller``: who reads them.
    """

    def __init__(self, domain: Domain, columns: AnswerColumns, caller: Caller = "command") -> None:
        self._rules = RowRules(domain, columns, caller)
        self._counts_by_path: dict[str, RowCounts] = {}

    @property
    def is_skipping(self) -> bool:
        """Whether people without an answer are left out."""
        return self._rules.is_skipping

    @property
    def counts(self) -> RowCounts:
        """The counts of all files."""
        return sum(self._counts_by_path.values(), RowCounts())

    def add(self, path: str, counts: RowCounts) -> None:
        """Add the counts of the next rows of a file."""
        self._counts_by_path[path] = self._counts_by_path.get(path, RowCounts()) + counts

    def check(self) -> None:
        """Raise an error if rows were refused, or if most answers are not in the domain."""
        for path, counts in self._counts_by_path.items():
            name = "standard input" if path == "-" else Path(path).name
            self._rules.check(counts, name)
            self._rules.check_other_share(counts, name)
        self._rules.require_answers(self.counts)

    def describe(self) -> str:
        """Describe what became of all rows, in one sentence."""
        return self._rules.describe(self.counts)

    def warning(self) -> str:
        """Return a warning if many answers are not in the domain, otherwise an empty text."""
        return self._rules.warning(self.counts)

    def to_dict(self) -> dict[str, int]:
        """Return the counts of all files as JSON data."""
        return self._rules.to_dict(self.counts)


def column_types(columns: AnswerColumns) -> dict[str, Arrow]:
    """Return the Arrow type of each column to read; ``None`` means the type in the file."""
    if columns.value is not None:
        return {columns.value: None}
    # Codes such as NA are not numbers.
    type_ = None if columns.missing_codes else pa.float64()
    return {str(columns.latitude): type_, str(columns.longitude): type_}


def answer_reader(columns: AnswerColumns, domain: Domain) -> Callable[[Arrow], AnswerBatch]:
    """Return a function that reads Arrow batches of ``columns``.

    Its errors do not contain values.
    """
    reader = AnswerReader(domain, columns)
    if columns.value is None:
        return partial(_read_positions, reader, pa.array(columns.missing_codes, pa.string()))
    return partial(_read_values, reader)


def _read_values(reader: AnswerReader, batch: Arrow) -> AnswerBatch:
    column = batch.column(0)
    name = batch.schema.names[0]
    require_cells(column.type, name)
    # The suppressed errors quote the data, so raise a new error outside their handler.
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, InvalidSymbols):
        return reader.read_column(column)
    raise InvalidTable(f"column {name!r} must contain UTF-8 text, numbers or dates.")


def _read_positions(reader: AnswerReader, missing_codes: Arrow, batch: Arrow) -> AnswerBatch:
    """Read a column of latitudes and a column of longitudes."""
    coordinates = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        degrees = _parse_degrees(column, missing_codes, name)
        if not (pa.types.is_floating(degrees.type) or pa.types.is_integer(degrees.type)):
            raise InvalidTable(
                f"column {name!r} must contain degrees, but its type is {column.type}."
            )
        numbers = degrees.cast(pa.float64(), safe=False)
        coordinates.append(numbers.to_numpy(zero_copy_only=False))
    latitudes, longitudes = coordinates
    return reader.read_positions(latitudes, longitudes)


def _parse_degrees(column: Arrow, missing_codes: Arrow, name: str) -> Arrow:
    """Return text as numbers, with null for missing codes; other columns are unchanged."""
    if not pa.types.is_string(column.type) or len(missing_codes) == 0:
        return column
    with suppress(pa.ArrowInvalid):  # the error may quote a position
        texts = pc.utf8_trim_whitespace(column)
        is_missing = pc.or_(pc.is_in(texts, missing_codes), pc.equal(texts, ""))
        return pc.if_else(pc.fill_null(is_missing, True), None, texts).cast(pa.float64())
    raise InvalidTable(f"column {name!r} must contain degrees, or codes for a missing answer.")


def require_cells(type_: Arrow, name: str) -> None:
    """Reject a column whose cells cannot be answers."""
    value_type = type_.value_type if pa.types.is_dictionary(type_) else type_
    is_answer = (
        pa.types.is_string(value_type)
        or pa.types.is_large_string(value_type)
        or pa.types.is_string_view(value_type)
        or pa.types.is_primitive(value_type)  # numbers, booleans, dates and times
        or pa.types.is_decimal(value_type)
        or pa.types.is_null(value_type)
    )
    if not is_answer or pa.types.is_interval(value_type):
        raise InvalidTable(
            f"column {name!r} must contain text, numbers or dates, but its type is {type_}. "
            "Convert it first."
        )
