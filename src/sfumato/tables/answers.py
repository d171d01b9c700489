"""Answers in files: columns of values, as batches of symbols."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.domains.domain import unknown_value
from sfumato.errors import InvalidSymbols, InvalidTable, UnknownValue
from sfumato.foundation.arrays import Arrow, Symbols
from sfumato.survey.answers import Lookup, symbols_of_column
from sfumato.tables.read import opened_table
from sfumato.tables.slices import Piece

__all__ = ["AnswerColumns", "answer_batches", "answer_reader", "is_text"]

_WHOLE = r"^-?[0-9]{1,16}$"


@dataclass(frozen=True)
class AnswerColumns:
    """Which columns hold the answers: one of values, or two of positions."""

    value: str | None = None
    latitude: str | None = None
    longitude: str | None = None

    def check(self, domain: Domain) -> None:
        """Refuse columns that do not fit the domain."""
        positions = self.latitude is not None and self.longitude is not None
        if (self.latitude is None) != (self.longitude is None) or positions == (
            self.value is not None
        ):
            raise InvalidTable("name either --column, or both --latitude and --longitude.")
        if positions and self.latitude == self.longitude:
            raise InvalidTable("--latitude and --longitude must name two different columns.")
        if positions and not isinstance(domain, GridDomain | H3Domain):
            raise InvalidTable(
                "--latitude and --longitude are for surveys with a grid or H3 domain; use --column."
            )
        if not positions and isinstance(domain, GridDomain):
            raise InvalidTable("a grid survey needs positions; use --latitude and --longitude.")


def answer_batches(
    path: str | Piece,
    columns: AnswerColumns,
    domain: Domain,
    *,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Iterator[Symbols]:
    """The symbols of the answers in a file, or in a piece of one, batch by batch.

    Unknown values are refused by their row, not their value. ``on_progress`` hears how many rows have been read.
    """
    columns.check(domain)
    piece = path if isinstance(path, Piece) else Piece(path)
    done, first, read = 0, piece.first_row, answer_reader(columns, domain)
    with opened_table(piece.path) as table:
        if columns.value is not None:
            wanted = {columns.value: None}
        else:
            wanted = dict.fromkeys((str(columns.latitude), str(columns.longitude)), pa.float64())
        for batch in table.batches(wanted, piece.row_groups):
            if batch.num_rows == 0:
                continue
            try:
                symbols = read(batch)
            except InvalidTable as problem:
                raise InvalidTable(f"{table.name}: {problem}") from None
            except UnknownValue as unknown:
                raise _in_file(unknown, table.name, first + done, batch.num_rows) from None
            done += batch.num_rows
            on_progress(done)
            yield symbols
    if piece.rows is not None and done != piece.rows:
        raise InvalidTable(
            f"{table.name} changed while it was read. Nothing was kept; start again."
        )
    if done == 0:
        raise InvalidTable(f"{table.name} has a header but no rows.")


def _in_file(unknown: UnknownValue, name: str, done: int, rows: int) -> UnknownValue:
    """The same error with the row of the file, counted from 1 after the header."""
    where = f"rows {done + 1} to {done + rows}, the first in row {done + unknown.first + 1}"
    return UnknownValue(
        f"{name}: {unknown.count} of {rows} values are not in the domain, or missing ({where}). Correct them, add "
        "their labels, or give the domain an `other` label.",
        first=done + unknown.first,
        count=unknown.count,
    )


def answer_reader(columns: AnswerColumns, domain: Domain) -> Callable[[Any], Symbols]:
    """What turns Arrow batches of the columns asked for into symbols; errors hold positions, never values."""
    return _PositionReader(domain) if columns.value is None else _ValueReader(domain)


class _ValueReader:
    """Symbols from a column of text or whole numbers. Other kinds are refused, even where ``other`` would take them.

    Files write numbers as text, and text as numbers: where a domain's labels are all of one kind, a column of the
    other kind is read as that.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain, self._lookup = domain, Lookup(domain)
        if isinstance(domain, IntegerDomain):
            self._kinds: set[type] = {int}
        else:
            self._kinds = {type(label) for label in domain.labels if label != domain.other}

    def __call__(self, batch: Arrow) -> Symbols:
        column = batch.column(0)
        if not (is_text(column.type) or _is_whole(column.type)):
            name, kind = batch.schema.names[0], column.type
            raise InvalidTable(
                f"column {name!r} must hold text or whole numbers; its type is {kind}. Convert it."
            )
        with suppress(
            pa.ArrowInvalid, pa.ArrowNotImplementedError, InvalidSymbols
        ):  # and with them what they could not read
            return self._symbols(column)
        raise InvalidTable(
            f"column {batch.schema.names[0]!r} must hold text in UTF-8, or whole numbers."
        )

    def _symbols(self, column: Arrow) -> Symbols:
        if is_text(column.type):
            if self._kinds == {int}:
                column = _whole_numbers(column.cast(pa.string()))
            elif not pa.types.is_dictionary(column.type):
                column = column.cast(pa.string())
        elif self._kinds == {str}:
            column = column.cast(pa.string())
        if isinstance(self._domain, IntegerDomain) and not pa.types.is_dictionary(column.type):
            return self._integers(column)
        return symbols_of_column(column, self._lookup)

    def _integers(self, column: Arrow) -> Symbols:
        if column.null_count:
            raise unknown_value(
                np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)), len(column)
            )
        return self._domain.symbols(column.to_numpy(zero_copy_only=False))


class _PositionReader:
    """Symbols from two columns of degrees."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    def __call__(self, batch: Arrow) -> Symbols:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
                raise InvalidTable(
                    f"column {name!r} must hold numbers of degrees; its type is {column.type}."
                )
        numbers = [
            column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            for column in batch.columns
        ]
        symbols: Symbols = self._domain.symbols_at(*numbers)  # type: ignore[attr-defined]
        return symbols


def is_text(kind: Arrow) -> bool:
    """Whether a column of this Arrow type holds text, dictionary-encoded or not."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_whole(kind: Arrow) -> bool:
    return bool(pa.types.is_integer(kind.value_type if pa.types.is_dictionary(kind) else kind))


def _whole_numbers(text: Arrow) -> Arrow:
    """Integers written as text: digits and a sign, nothing else; what is none is missing."""
    whole = pa.compute.fill_null(pa.compute.match_substring_regex(text, _WHOLE), False)
    return pa.compute.if_else(whole, text, None).cast(pa.int64())
