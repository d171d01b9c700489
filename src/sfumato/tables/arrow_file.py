"""Arrow files: Feather (version 2), which is the Arrow IPC file format, and Arrow IPC streams."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO

import pyarrow as pa
import pyarrow.ipc

from sfumato.errors import InvalidTable
from sfumato.foundation.arrays import Arrow
from sfumato.tables import table
from sfumato.tables.table import ColumnTypes, Table

__all__ = ["open_arrow_file", "open_arrow_stream"]


def open_arrow_file(name: str, file: BinaryIO) -> Table:
    """Open a Feather or Arrow IPC file. The file must be seekable."""
    schema = _open_reader(name, file, pa.ipc.open_file).schema

    def read_batches(
        column_types: ColumnTypes, row_groups: Sequence[int] | None
    ) -> Iterator[Arrow]:
        file.seek(0)
        positions = [schema.get_field_index(column) for column in column_types]
        reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=positions))
        for index in range(reader.num_record_batches):
            yield from _split_batch(reader.get_batch(index), column_types)

    return Table(name, list(schema.names), read_batches, schema.metadata or {})


def open_arrow_stream(name: str, file: BinaryIO) -> Table:
    """Open an Arrow IPC stream. It can be read only once."""
    reader = _open_reader(name, file, pa.ipc.open_stream)
    schema = reader.schema

    def read_batches(
        column_types: ColumnTypes, row_groups: Sequence[int] | None
    ) -> Iterator[Arrow]:
        for batch in reader:
            yield from _split_batch(batch, column_types)

    return Table(name, list(schema.names), read_batches, schema.metadata or {})


def _open_reader(name: str, file: BinaryIO, open_ipc: Callable[[BinaryIO], Arrow]) -> Arrow:
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        return open_ipc(file)
    raise InvalidTable(f"{name} is not a valid Feather or Arrow file (truncated or corrupt).")


def _split_batch(batch: Arrow, column_types: ColumnTypes) -> Iterator[Arrow]:
    """Yield the columns of a batch, in order, in batches of the usual size."""
    columns = batch.select(list(column_types))
    for first_row in range(0, columns.num_rows, table.BATCH_ROWS):
        yield columns.slice(first_row, table.BATCH_ROWS)
