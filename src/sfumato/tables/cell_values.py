"""Arrow columns from lists of Python values, for formats that store a type with each cell."""

import datetime
from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa

from sfumato.foundation.arrays import Arrow
from sfumato.foundation.missing_values import is_missing_value
from sfumato.foundation.whole_numbers import is_whole

__all__ = [
    "array_from_values",
    "first_mismatch",
    "number_text",
    "parse_texts",
    "type_noun",
    "value_text",
]


def array_from_values(values: Sequence[object]) -> Arrow:
    """Return the values as an Arrow array. ``None``, NaN and empty text are missing.

    Numbers become integers if all of them are whole, and dates become timestamps if any of them has
    a time of day. Values of several kinds become text.
    """
    cells = [None if is_missing_value(value) else value for value in values]
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float}:
        return _number_array(cells) if kinds else pa.nulls(len(cells), pa.string())
    if kinds <= {datetime.date, datetime.datetime}:
        return _date_array(cells)
    if len(kinds) == 1 and kinds <= {bool, datetime.time, datetime.timedelta}:
        return pa.array(cells)
    texts = [None if cell is None else value_text(cell) for cell in cells]
    return pa.array(texts, pa.string())


def _number_array(cells: Sequence[object]) -> Arrow:
    for cell in cells:
        if isinstance(cell, float) and not is_whole(cell):
            return pa.array(cells, pa.float64(), from_pandas=True)
        if isinstance(cell, int) and not -(2**63) <= cell < 2**63:
            return pa.array([None if number is None else str(number) for number in cells])
    integers = [None if cell is None else int(cell) for cell in cells]  # type: ignore[call-overload]
    return pa.array(integers, pa.int64())


def _date_array(cells: Sequence[object]) -> Arrow:
    for cell in cells:
        if isinstance(cell, datetime.datetime) and cell.time() != datetime.time():
            return pa.array([_at_midnight(cell) for cell in cells], pa.timestamp("us"))
    return pa.array(cells, pa.date32())


def _at_midnight(cell: object) -> object:
    if isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
        return datetime.datetime.combine(cell, datetime.time())
    return cell


# --- text -----------------------------------------------------------------------------------------


def value_text(value: object) -> str:
    """Return a value as text, as a spreadsheet shows it: 3, 2.5, TRUE, 2026-01-31."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, datetime.datetime):
        has_time = value.time() != datetime.time()
        return value.isoformat(sep=" ") if has_time else value.date().isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def number_text(number: float) -> str:
    """Return a number as text. A whole number has no decimal point."""
    if isinstance(number, float) and is_whole(number):
        number = int(number)
    return str(number)


# --- types ----------------------------------------------------------------------------------------


def parse_texts(texts: Sequence[str | None], type_: Arrow) -> Arrow | None:
    """Return texts as an Arrow array of numbers, or ``None`` if one of them is not a number.

    ``None`` and empty text are missing.
    """
    cells = []
    for text in texts:
        cells.append((text and text.strip()) or None)
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array(cells, pa.string()).cast(type_)
    return None


def first_mismatch(texts: Sequence[str | None], type_: Arrow) -> int:
    """Return the position of the first text that is not a number of this type."""
    for position, text in enumerate(texts):
        if parse_texts([text], type_) is None:
            return position
    return 0


def type_noun(type_: Arrow) -> str:
    """Return a plural noun for values of an Arrow type, for error messages."""
    if pa.types.is_unsigned_integer(type_):
        return "non-negative integers"
    if pa.types.is_integer(type_):
        return "integers"
    return "numbers" if pa.types.is_floating(type_) else f"values of type {type_}"
