"""Excel workbooks (.xlsx): the first sheet, with a header in its first row.

A sheet has at most 1,048,576 rows. The requested columns are kept in memory, because the type of a
column depends on all of its cells.
"""

import warnings
import zipfile
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa

from sfumato.errors import InvalidTable, MissingExtra
from sfumato.foundation.arrays import Arrow
from sfumato.tables import table
from sfumato.tables.cell_values import (
    array_from_values,
    first_mismatch,
    parse_texts,
    type_noun,
    value_text,
)
from sfumato.tables.header import describe_header
from sfumato.tables.table import ColumnTypes, Table

__all__ = ["open_excel"]

# What openpyxl raises for a malformed workbook; SyntaxError is that of its XML parser.
_MALFORMED = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    NotImplementedError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def open_excel(name: str, file: BinaryIO, stack: ExitStack) -> Table:
    """Open a workbook. The file must be seekable. The stack closes the workbook."""
    workbook = _open_workbook(name, file)
    stack.callback(workbook.close)
    if not workbook.worksheets:
        raise InvalidTable(f"{name} has no sheet with cells.")
    sheet = workbook.worksheets[0]
    sheet.reset_dimensions()  # some programs store wrong ones, which would hide columns
    header = _read_header(name, sheet)

    def read_batches(
        column_types: ColumnTypes, row_groups: Sequence[int] | None
    ) -> Iterator[Arrow]:
        positions = [header.index(column) for column in column_types]
        cells = _read_cells(name, sheet, positions, len(header))
        arrays = []
        for values, (column, type_) in zip(cells.columns, column_types.items(), strict=True):
            arrays.append(_column_array(name, cells.row_numbers, values, column, type_))
        batch = pa.RecordBatch.from_arrays(arrays, list(column_types))
        for first_row in range(0, batch.num_rows, table.BATCH_ROWS):
            yield batch.slice(first_row, table.BATCH_ROWS)

    def describe_columns(columns: list[str], missing_column: str) -> str:
        rows = _first_rows(name, sheet)
        return describe_header(columns, missing_column, rows, "row")

    return Table(name, header, read_batches, describe_columns=describe_columns)


def _open_workbook(name: str, file: BinaryIO) -> Any:  # noqa: ANN401 - openpyxl is untyped
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra("Excel files require openpyxl: pip install 'sfumato[tables]'") from None
    with suppress(*_MALFORMED), _without_warnings():
        return openpyxl.load_workbook(file, read_only=True, data_only=True)
    raise _workbook_error(name)


def _workbook_error(name: str) -> InvalidTable:
    return InvalidTable(f"{name} is not a valid Excel workbook (truncated or corrupt).")


def _without_warnings() -> Any:  # noqa: ANN401 - the type is private
    """Hide openpyxl's warnings about styles and validations, which do not change the cells."""
    return warnings.catch_warnings(action="ignore")


def _sheet_rows(name: str, sheet: Any) -> Iterator[tuple[object, ...]]:  # noqa: ANN401
    try:
        with _without_warnings():
            yield from sheet.iter_rows(values_only=True)
    except _MALFORMED:
        pass
    else:
        return
    raise _workbook_error(name)


def _read_header(name: str, sheet: Any) -> list[str]:  # noqa: ANN401
    cells = list(next(_sheet_rows(name, sheet), ()))
    while cells and cells[-1] is None:
        cells.pop()
    if not cells:
        raise InvalidTable(
            f"{name} must have a header of column names in the first row of its first sheet."
        )
    return ["" if cell is None else value_text(cell) for cell in cells]


def _first_rows(name: str, sheet: Any) -> list[list[str]]:  # noqa: ANN401
    """Return the first rows after the header, as text."""
    rows = []
    for row in islice(_sheet_rows(name, sheet), 1, table.BATCH_ROWS):
        rows.append(["" if cell is None else value_text(cell) for cell in row])
    return rows


@dataclass(frozen=True)
class _Cells:
    """The values of some columns, and the number of each row in the sheet."""

    columns: list[list[object]]
    row_numbers: "array[int]"


def _read_cells(name: str, sheet: Any, positions: Sequence[int], width: int) -> _Cells:  # noqa: ANN401
    """Read columns. Skip empty rows; in a sheet with one column, skip them only at the end."""
    columns: list[list[object]] = [[] for _ in positions]
    row_numbers = array("L")
    last_row = 0
    rows = _sheet_rows(name, sheet)
    next(rows, None)
    for row_number, row in enumerate(rows, 2):
        is_empty = all(cell is None or cell == "" for cell in row[:width])
        if is_empty and width > 1:
            continue
        row_numbers.append(row_number)
        for values, position in zip(columns, positions, strict=True):
            values.append(row[position] if position < len(row) else None)
        if not is_empty:
            last_row = len(row_numbers)
    return _Cells([values[:last_row] for values in columns], row_numbers[:last_row])


def _column_array(
    name: str, row_numbers: Sequence[int], values: list[object], column: str, type_: Arrow
) -> Arrow:
    if type_ is None:
        return array_from_values(values)
    texts = [None if value is None else value_text(value) for value in values]
    numbers = parse_texts(texts, type_)
    if numbers is None:
        row_number = row_numbers[first_mismatch(texts, type_)]
        raise InvalidTable(
            f"{name}, row {row_number}: column {column!r} must contain {type_noun(type_)}."
        )
    return numbers
