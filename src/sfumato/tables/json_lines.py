"""JSON lines: one object per line, read as text or as numbers in constant memory.

Values are read as text, as in a CSV file, because a key may contain numbers in one line and text in
another. A number too large for an exact float keeps its digits.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain

import pyarrow as pa

from sfumato.errors import InvalidTable
from sfumato.foundation.arrays import Arrow
from sfumato.foundation.whole_numbers import WHOLE_FLOAT_LIMIT
from sfumato.tables.cell_values import number_text
from sfumato.tables.column_names import describe_columns
from sfumato.tables.csv_header import NOT_UTF8
from sfumato.tables.number_column import parse_numbers
from sfumato.tables.table import ColumnTypes, Table

__all__ = ["open_json_lines"]

_BLOCK_SIZE = 2**22
_MAX_LINE_SIZE = 2**26

_DUPLICATE_KEY = object()

_Records = list[tuple[int, dict[str, object]]]
"""Objects, each with the number of its line."""


def open_json_lines(name: str, stream: Arrow, start: bytes = b"") -> Table:
    """Open JSON lines. ``start`` contains the bytes that were already read from the stream.

    The columns are the keys in the first block of about four megabytes.
    """
    blocks = _record_blocks(name, stream, start)
    first_block = next(blocks, [])
    line_counts: Counter[str] = Counter()
    for _, record in first_block:
        line_counts.update(record.keys())

    def read_batches(
        column_types: ColumnTypes, row_groups: Sequence[int] | None
    ) -> Iterator[Arrow]:
        for records in chain([first_block], blocks):
            arrays = [_read_column(name, records, *column) for column in column_types.items()]
            yield pa.RecordBatch.from_arrays(arrays, list(column_types))

    def describe_common_columns(columns: list[str], missing_column: str) -> str:
        # A key that occurs in few lines may be a person's name or answer.
        common = [column for column in columns if 2 * line_counts[column] >= len(first_block)]
        return describe_columns(common, missing_column)

    return Table(name, list(line_counts), read_batches, describe_columns=describe_common_columns)


def _record_blocks(name: str, stream: Arrow, start: bytes) -> Iterator[_Records]:
    """Yield the objects in each block of lines. Skip empty lines."""
    line_number = 0
    for lines in _line_blocks(name, stream, start):
        records: _Records = []
        for line in lines:
            line_number += 1
            if line.strip():
                records.append((line_number, _parse_line(name, line, line_number)))
        if records:
            yield records


def _line_blocks(name: str, stream: Arrow, start: bytes) -> Iterator[list[bytes]]:
    rest = start
    while chunk := _read_block(name, stream):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _MAX_LINE_SIZE:
            raise InvalidTable(f"{name} has a line of more than 64 MiB. Write one object per line.")
        yield lines
    if rest:
        yield rest.split(b"\n")


def _read_block(name: str, stream: Arrow) -> bytes:
    try:
        return bytes(stream.read(_BLOCK_SIZE))
    except OSError:
        raise InvalidTable(f"cannot read {name}: it is truncated or corrupt.") from None


def _parse_line(name: str, line: bytes, line_number: int) -> dict[str, object]:
    text = None
    with suppress(UnicodeDecodeError):
        text = line.decode("utf-8-sig" if line_number == 1 else "utf-8")
    if text is None:
        raise InvalidTable(f"{name}, line {line_number} {NOT_UTF8}.")
    record = None
    with suppress(ValueError, RecursionError):
        record = json.loads(
            text, object_pairs_hook=_object_from_pairs, parse_float=_parse_decimal_number
        )
    if record is _DUPLICATE_KEY:
        raise InvalidTable(f"{name}, line {line_number} contains a key twice. Remove one of them.")
    if not isinstance(record, dict):
        raise InvalidTable(
            f"{name}, line {line_number}: expected a JSON object. "
            "Write one object per line, without line breaks inside it."
        )
    return record


def _parse_decimal_number(text: str) -> float | str:
    """Return a number. From 2^53 on, a float could have other digits, so return text."""
    number = float(text)
    if abs(number) < WHOLE_FLOAT_LIMIT:
        return number
    whole, _, decimals = text.partition(".")
    has_no_decimals = set(decimals) == {"0"}
    return whole if has_no_decimals else text


def _object_from_pairs(pairs: list[tuple[str, object]]) -> object:
    """Return an object, or ``_DUPLICATE_KEY`` if it has a key twice: neither value may win."""
    record = dict(pairs)
    return record if len(record) == len(pairs) else _DUPLICATE_KEY


def _read_column(name: str, records: _Records, column: str, type_: Arrow) -> Arrow:
    texts = []
    for line_number, record in records:
        value = record.get(column)
        if isinstance(value, dict | list) or value is _DUPLICATE_KEY:
            raise InvalidTable(
                f"{name}, line {line_number}: column {column!r} must contain text or numbers, "
                "but this value is nested. Write its parts as separate keys."
            )
        texts.append(_value_text(value))
    if type_ is None:
        return pa.array(texts, pa.string())
    return parse_numbers(name, column, type_, texts, lambda index: f"line {records[index][0]}")


def _value_text(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return None if value != value else number_text(value)
    return None
