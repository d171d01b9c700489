"""Write a table of results to a CSV, Parquet or Excel file. Files appear complete or not at all."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from sfumato.errors import InvalidSetting, MissingExtra
from sfumato.foundation.files import write_atomically
from sfumato.foundation.formatting import printable
from sfumato.foundation.installation import install_hint

__all__ = ["formula_note", "require_table_path", "table_bytes", "table_csv", "write_table"]

Cell = str | int | float | None
Rows = Sequence[Sequence[Cell]]

_MAX_EXCEL_ROWS = 2**20
_FORMULA_STARTS = ("=", "+", "-", "@")
_NUMBERS = re.compile(r"[+-][0-9.]+(,-?[0-9.]+)?")  # such as -99, or a position: not a formula


def require_table_path(path: str) -> None:
    """Reject a path whose extension is not that of a table, or whose writer is not installed."""
    suffix = Path(path).suffix
    if suffix not in _WRITERS:
        raise InvalidSetting(
            "the output file must end in .csv, .parquet or .xlsx, or be - for CSV on standard "
            f"output; got {path}. For a page or a plot, use --html or --png."
        )
    if suffix == ".xlsx":
        _require_openpyxl()


def write_table(path: str, columns: Sequence[str], rows: Rows) -> None:
    """Write a table. The extension of ``path`` selects the format: .csv, .parquet or .xlsx."""
    write_atomically(path, table_bytes(path, columns, rows))


def table_bytes(path: str, columns: Sequence[str], rows: Rows) -> bytes:
    """Return the content of a table file. The extension of ``path`` selects the format."""
    require_table_path(path)
    encode = _WRITERS[Path(path).suffix]
    return encode(columns, rows)


def table_csv(columns: Sequence[str], rows: Rows) -> str:
    """Return a table as CSV."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return buffer.getvalue()


def formula_note(labels: Iterable[str | int]) -> str:
    """Warn if a spreadsheet may compute labels in a CSV file; otherwise, return an empty text.

    A CSV file holds labels as they are, so that programs can read them back. It cannot say that a
    cell is text.

    >>> formula_note(["yes", -99, "-99", "-33.9,-70.6"])
    ''
    """
    if not any(map(_resembles_formula, labels)):
        return ""
    return (
        "Some labels begin with =, +, - or @. A spreadsheet that opens the CSV file may compute "
        "them: import the labels as text, or write the table with sfumato estimate -o FILE.xlsx, "
        "where every label is text."
    )


def _resembles_formula(label: str | int) -> bool:
    if not isinstance(label, str):
        return False
    text = label.strip()
    return text.startswith(_FORMULA_STARTS) and not _NUMBERS.fullmatch(text)


def _csv_bytes(columns: Sequence[str], rows: Rows) -> bytes:
    return table_csv(columns, rows).encode("utf-8")


def _parquet_bytes(columns: Sequence[str], rows: Rows) -> bytes:
    arrays = []
    for index in range(len(columns)):
        cells = [row[index] for row in rows]
        if any(isinstance(cell, str) for cell in cells):  # integers and an `other` label
            cells = [None if cell is None else str(cell) for cell in cells]
        arrays.append(pa.array(cells))
    buffer = io.BytesIO()
    pa.parquet.write_table(pa.table(arrays, names=list(columns)), buffer)
    return buffer.getvalue()


def _excel_bytes(columns: Sequence[str], rows: Rows) -> bytes:
    _require_openpyxl()
    import openpyxl

    if len(rows) >= _MAX_EXCEL_ROWS:
        raise InvalidSetting(
            f"an Excel sheet has at most {_MAX_EXCEL_ROWS:,} rows; this table has "
            f"{len(rows) + 1:,}. Choose .csv or .parquet."
        )
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Sfumato")
    for row in (columns, *rows):
        cells = []
        for value in row:
            # XML has no control characters.
            text_or_number = printable(value) if isinstance(value, str) else value
            cell = openpyxl.cell.WriteOnlyCell(sheet, text_or_number)
            if isinstance(value, str):
                cell.data_type = "s"  # a label such as "=1+1" is text, never a formula
            cells.append(cell)
        sheet.append(cells)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _require_openpyxl() -> None:
    try:
        import openpyxl as _openpyxl  # noqa: F401
    except ImportError:
        raise MissingExtra(f"Excel files require openpyxl: {install_hint('tables')}") from None


_WRITERS: dict[str, Callable[[Sequence[str], Rows], bytes]] = {
    ".csv": _csv_bytes,
    ".parquet": _parquet_bytes,
    ".xlsx": _excel_bytes,
}
