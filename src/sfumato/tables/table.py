"""An open table: its columns, and a function that reads some of them in batches.

Sfumato's errors never contain a value, but errors from libraries may: Arrow quotes the data that it
could not parse, and a codec error contains all the bytes. An error raised inside an exception
handler refers to the original error, even with ``from None``. So in this package, errors about the
data are raised outside the handlers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from sfumato.errors import InvalidTable
from sfumato.foundation.arrays import Arrow
from sfumato.tables.column_names import describe_columns

__all__ = ["BATCH_ROWS", "ColumnTypes", "Table"]

BATCH_ROWS = 2**16

ColumnTypes = Mapping[str, Arrow]
"""The Arrow type of each column to read.

``None`` means text in CSV and JSON lines, and the column's own type in other formats.
"""

ReadBatches = Callable[[ColumnTypes, Sequence[int] | None], Iterator[Arrow]]
"""A function that yields the given columns of all rows, or of some row groups, in batches."""


def _count_from_one(index: int) -> int:
    return index + 1


def _no_order(column: str) -> list[str]:
    return []


@dataclass(frozen=True, eq=False)
class Table:
    """An open table: its name, its column names, its metadata, and the sizes of its row groups.

    Only Parquet files have row groups; in other formats, ``row_group_sizes`` is ``None``.
    ``describe_columns`` says which columns there are, for an error about a missing one.
    ``row_number`` returns the number of a row in errors, given its index, and ``row_noun`` says
    what it counts: in a sheet, rows are counted from the header, and empty rows are counted too.
    ``label_order`` returns the texts of a column in the order of their codes, if they have codes.
    ``note`` says which part of the file was read, if there are others.
    """

    name: str
    columns: list[str]
    read_batches: ReadBatches
    metadata: Mapping[bytes, bytes] = field(default_factory=dict)
    row_group_sizes: list[int] | None = None
    describe_columns: Callable[[list[str], str], str] = describe_columns
    row_number: Callable[[int], int] = _count_from_one
    row_noun: str = "data row"
    note: str = ""
    label_order: Callable[[str], list[str]] = _no_order

    def batches(
        self, column_types: ColumnTypes, row_groups: Sequence[int] | None = None
    ) -> Iterator[Arrow]:
        """Yield the given columns of all rows, or of some row groups, batch by batch."""
        for column in column_types:
            self._require_column(column)
        group_count = len(self.row_group_sizes or ())
        if row_groups is not None and max(row_groups, default=-1) >= group_count:
            raise InvalidTable(
                f"{self.name} changed while it was being read. Nothing was written; "
                "run the command again."
            )
        try:
            yield from self.read_batches(column_types, row_groups)
        except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError, UnicodeError):
            problem = "it is not UTF-8, or a column has the wrong type"
        except OSError:
            problem = "it is truncated or corrupt"
        else:
            return
        raise InvalidTable(f"cannot read {self.name}: {problem}.")

    def _require_column(self, column: str) -> None:
        count = self.columns.count(column)
        if count == 0:
            hint = self.describe_columns(self.columns, column)
            note = f" {self.note}" if self.note else ""
            raise InvalidTable(f"{self.name} has no column {column!r}{hint}{note}")
        if count > 1:
            raise InvalidTable(
                f"{self.name} has more than one column named {column!r}. Rename the duplicates."
            )
