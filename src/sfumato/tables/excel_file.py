"""Excel workbooks (.xlsx): one sheet, with a header in its first row.

A sheet has at most 1,048,576 rows. The requested columns are kept in memory, because the type of a
column depends on all of its cells.
"""

import re
import warnings
import zipfile
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa

from sfumato.errors import InvalidTable, MissingExtra
from sfumato.foundation.arrays import Arrow
from sfumato.foundation.formatting import printable, shorten
from sfumato.foundation.installation import install_hint
from sfumato.tables import table
from sfumato.tables.cell_values import array_from_values, value_text
from sfumato.tables.header import describe_header
from sfumato.tables.number_column import parse_numbers
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

_BLOCK_SIZE = 2**20
_FORMULA_TAG = re.compile(rb"<(?:\w{1,20}:)?f[\s/>]")
_MAX_TAG_LENGTH = 24
_MAX_TITLE_LENGTH = 40
_MAX_LISTED_SHEETS = 10


def open_excel(name: str, file: BinaryIO, stack: ExitStack, sheet_name: str | None = None) -> Table:
    """Open a sheet of a workbook, by default the first one.

    The file must be seekable. The stack closes the workbook.
    """
    sheet = _open_sheet(name, file, stack, sheet_name)
    header = _read_header(name, sheet)
    row_numbers = array("L")

    def read_batches(
        column_types: ColumnTypes, row_groups: Sequence[int] | None
    ) -> Iterator[Arrow]:
        positions = [header.index(column) for column in column_types]
        cells = _read_cells(name, sheet, positions, len(header))
        row_numbers[:] = cells.row_numbers
        if cells.has_gaps and _has_formulas(file):
            formula_sheet = _open_sheet(name, file, stack, sheet_name, data_only=False)
            column_at = dict(zip(positions, column_types, strict=True))
            _require_results(name, sheet, formula_sheet, column_at)
        arrays = []
        for values, (column, type_) in zip(cells.columns, column_types.items(), strict=True):
            arrays.append(_column_array(name, cells.row_numbers, values, column, type_))
        batch = pa.RecordBatch.from_arrays(arrays, list(column_types))
        for first_row in range(0, batch.num_rows, table.BATCH_ROWS):
            yield batch.slice(first_row, table.BATCH_ROWS)

    def describe_columns(columns: list[str], missing_column: str) -> str:
        rows = _first_rows(name, sheet)
        return describe_header(columns, missing_column, rows, "row")

    return Table(
        name,
        header,
        read_batches,
        describe_columns=describe_columns,
        row_number=lambda index: row_numbers[index],
        row_noun="row",
        note=_describe_sheets(sheet),
    )


def _open_sheet(
    name: str, file: BinaryIO, stack: ExitStack, sheet_name: str | None, *, data_only: bool = True
) -> Any:  # noqa: ANN401
    """Open a sheet. With ``data_only``, a formula is its result; else it is a formula."""
    workbook = _open_workbook(name, file, data_only=data_only)
    stack.callback(workbook.close)
    if not workbook.worksheets:
        raise InvalidTable(f"{name} has no sheet with cells.")
    sheet = workbook.worksheets[0]
    if sheet_name is not None:
        sheet = _find_sheet(name, workbook.worksheets, sheet_name)
    sheet.reset_dimensions()  # some programs store wrong ones, which would hide columns
    return sheet


def _find_sheet(name: str, sheets: Sequence[Any], sheet_name: str) -> Any:  # noqa: ANN401
    for sheet in sheets:
        if sheet.title == sheet_name:
            return sheet
    raise InvalidTable(
        f"{name} has no sheet {sheet_name!r}; its sheets are {_list_titles(sheets)}."
    )


def _describe_sheets(sheet: Any) -> str:  # noqa: ANN401
    """Say which sheet was read, if the workbook has others."""
    others = [other for other in sheet.parent.worksheets if other.title != sheet.title]
    if not others:
        return ""
    title = printable(sheet.title)
    return f"This is the sheet {title!r}; to read another, pass --sheet: {_list_titles(others)}."


def _list_titles(sheets: Sequence[Any]) -> str:
    titles = [repr(shorten(printable(sheet.title), _MAX_TITLE_LENGTH)) for sheet in sheets]
    more = len(titles) - _MAX_LISTED_SHEETS
    listed = ", ".join(titles[:_MAX_LISTED_SHEETS])
    return f"{listed} and {more:,} more" if more > 0 else listed


def _open_workbook(name: str, file: BinaryIO, *, data_only: bool) -> Any:  # noqa: ANN401
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra(f"Excel files require openpyxl: {install_hint('tables')}") from None
    with suppress(*_MALFORMED), _without_warnings():
        return openpyxl.load_workbook(file, read_only=True, data_only=data_only)
    raise _workbook_error(name)


def _workbook_error(name: str) -> InvalidTable:
    return InvalidTable(f"{name} is not a valid Excel workbook (truncated or corrupt).")


def _without_warnings() -> Any:  # noqa: ANN401 - the type is private
    """Hide openpyxl's warnings about styles and validations, which do not change the cells."""
    return warnings.catch_warnings(action="ignore")


def _sheet_rows(name: str, sheet: Any, *, values_only: bool = True) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    try:
        with _without_warnings():
            yield from sheet.iter_rows(values_only=values_only)
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
            f"{name} must have a header of column names in the first row of its sheet "
            f"{printable(sheet.title)!r}. {_describe_sheets(sheet)}".rstrip()
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
    """The values of some columns, and the number of each row in the sheet.

    ``has_gaps``: a cell in these columns is empty, perhaps in a row that is skipped.
    """

    columns: list[list[object]] = field(repr=False)
    row_numbers: "array[int]" = field(repr=False)
    has_gaps: bool


def _read_cells(name: str, sheet: Any, positions: Sequence[int], width: int) -> _Cells:  # noqa: ANN401
    """Read columns. Skip empty rows; in a sheet with one column, skip them only at the end."""
    columns: list[list[object]] = [[] for _ in positions]
    row_numbers = array("L")
    last_row = 0
    has_gaps = False
    rows = _sheet_rows(name, sheet)
    next(rows, None)
    for row_number, row in enumerate(rows, 2):
        cells = [row[position] if position < len(row) else None for position in positions]
        has_gaps = has_gaps or None in cells
        is_empty = all(cell is None or cell == "" for cell in row[:width])
        if is_empty and width > 1:
            continue
        row_numbers.append(row_number)
        for values, cell in zip(columns, cells, strict=True):
            values.append(cell)
        if not is_empty:
            last_row = len(row_numbers)
    return _Cells([values[:last_row] for values in columns], row_numbers[:last_row], has_gaps)


# --- formulas -------------------------------------------------------------------------------------


def _has_formulas(file: BinaryIO) -> bool:
    """Whether any sheet contains a formula. This is much faster than reading the cells."""
    with zipfile.ZipFile(file) as archive:
        for member in archive.namelist():
            if member.startswith("xl/worksheets/") and _contains_formula(archive, member):
                return True
    return False


def _contains_formula(archive: zipfile.ZipFile, member: str) -> bool:
    with archive.open(member) as content:
        end = b""
        while block := content.read(_BLOCK_SIZE):
            if _FORMULA_TAG.search(end + block):
                return True
            end = block[-_MAX_TAG_LENGTH:]
    return False


def _require_results(
    name: str,
    sheet: Any,  # noqa: ANN401
    formula_sheet: Any,  # noqa: ANN401
    column_at: Mapping[int, str],
) -> None:
    """Raise an error if a formula in these columns has no result.

    A library that writes a workbook does not compute formulas. Their cells look empty, as if people
    had not answered. A result that is an empty text is one: it has the type "str".
    """
    rows = _sheet_rows(name, sheet, values_only=False)
    formula_rows = _sheet_rows(name, formula_sheet, values_only=False)
    for row_number, (row, formula_row) in enumerate(zip(rows, formula_rows, strict=False), 1):
        for position, column in column_at.items():
            if position >= min(len(row), len(formula_row)):
                continue
            cell = row[position]
            has_result = cell.value is not None or cell.data_type == "str"
            if formula_row[position].data_type == "f" and not has_result:
                raise InvalidTable(
                    f"{name}, row {row_number}: column {column!r} contains a formula that was "
                    "never computed. Open the workbook in a spreadsheet program, and save it."
                )


# --- columns --------------------------------------------------------------------------------------


def _column_array(
    name: str, row_numbers: Sequence[int], values: list[object], column: str, type_: Arrow
) -> Arrow:
    if type_ is None:
        return array_from_values(values)
    return parse_numbers(
        name,
        column,
        type_,
        [None if value is None else value_text(value) for value in values],
        lambda index: f"row {row_numbers[index]}",
    )
