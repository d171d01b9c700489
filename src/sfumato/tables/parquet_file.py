"""Parquet files."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet

from sfumato.errors import InvalidTable
from sfumato.foundation.arrays import Arrow
from sfumato.tables import table
from sfumato.tables.table import ColumnTypes, Table

__all__ = ["open_parquet"]


def open_parquet(name: str, file: BinaryIO) -> Table:
    """Open a Parquet file. The file must be seekable, because its metadata is at the end."""
    parquet_file = _parquet_file(name, file)
    schema = parquet_file.schema_arrow

    def read_batches(
        column_types: ColumnTypes, row_groups: Sequence[int] | None
    ) -> Iterator[Arrow]:
        reader = parquet_file
        text_columns = []
        for column, type_ in column_types.items():
            if type_ is None and pa.types.is_string(schema.field(column).type):
                text_columns.append(column)
        if text_columns:
            reader = pa.parquet.ParquetFile(file, read_dictionary=text_columns)
        return reader.iter_batches(
            batch_size=table.BATCH_ROWS, columns=list(column_types), row_groups=row_groups
        )

    metadata = parquet_file.metadata
    group_sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    return Table(name, list(schema.names), read_batches, schema.metadata or {}, group_sizes)


def _parquet_file(name: str, file: BinaryIO) -> Arrow:
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        return pa.parquet.ParquetFile(file)
    raise InvalidTable(f"{name} is not a valid Parquet file (truncated or corrupt).")
