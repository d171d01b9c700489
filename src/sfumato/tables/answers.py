"""Answers in files: columns of values, as batches of symbols."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from sfumato.arrays import Symbols
from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.domains.domain import unknown_value
from sfumato.errors import InvalidTable, UnknownValue
from sfumato.survey.answers import symbols_of_column
from sfumato.tables.read import opened_table

__all__ = ["AnswerColumns", "answer_batches"]


@dataclass(frozen=True)
class AnswerColumns:
    """Which columns hold the answers: one of values, or two of positions."""

    value: str | None = None
    latitude: str | None = None
    longitude: str | None = None

    def check(self, domain: Domain) -> None:
        """Refuse columns that do not fit the domain."""
        positions = self.latitude is not None and self.longitude is not None
        if (self.latitude is None) != (self.longitude is None) or positions == (self.value is not None):
            raise InvalidTable("name either --column, or both --latitude and --longitude.")
        if positions and not isinstance(domain, GridDomain | H3Domain):
            raise InvalidTable("--latitude and --longitude are for surveys with a grid or H3 domain; use --column.")
        if not positions and isinstance(domain, GridDomain):
            raise InvalidTable("a grid survey needs positions; use --latitude and --longitude.")


def answer_batches(
    path: str, columns: AnswerColumns, domain: Domain, *, rows_done: Callable[[int], None] = lambda rows: None
) -> Iterator[Symbols]:
    """The symbols of a file's answers, batch by batch; unknown values are refused by their row, not their value."""
    columns.check(domain)
    done = 0
    with opened_table(path) as table:
        if columns.value is not None:
            batches, read = table.batches({columns.value: None}), _values
        else:
            names = str(columns.latitude), str(columns.longitude)
            batches, read = table.batches(dict.fromkeys(names, pa.float64())), _positions
        for batch in batches:
            if batch.num_rows == 0:
                continue
            try:
                symbols = read(domain, batch)
            except UnknownValue as unknown:
                raise UnknownValue(f"{table.name}, rows {done + 1} to {done + batch.num_rows}: {unknown}") from None
            done += batch.num_rows
            rows_done(done)
            yield symbols
    if done == 0:
        raise InvalidTable(f"{'standard input' if path == '-' else path} has a header but no rows.")


def _values(domain: Domain, batch: Any) -> Symbols:  # noqa: ANN401
    column = batch.column(0)
    if isinstance(domain, IntegerDomain) and (pa.types.is_string(column.type) or pa.types.is_dictionary(column.type)):
        return _whole_numbers(domain, column)
    if pa.types.is_large_string(column.type):
        column = column.cast(pa.string())
    return symbols_of_column(domain, column)


def _whole_numbers(domain: IntegerDomain, column: Any) -> Symbols:  # noqa: ANN401
    """Integers written as text: digits and a sign, nothing else."""
    text = column.cast(pa.string())
    whole = pa.compute.fill_null(pa.compute.match_substring_regex(text, r"^-?[0-9]{1,16}$"), False)
    good = whole.to_numpy(zero_copy_only=False)
    if not good.all():
        raise unknown_value(np.flatnonzero(~good), good.size)
    return domain.symbols(text.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _positions(domain: Domain, batch: Any) -> Symbols:  # noqa: ANN401
    if not isinstance(domain, GridDomain | H3Domain):
        raise InvalidTable("positions need a grid or H3 domain.")
    numbers = [column.cast(pa.float64()).to_numpy(zero_copy_only=False) for column in batch.columns]
    return domain.symbols_at(*numbers)
