"""A batch as an Arrow IPC stream: bulk uploads, read without a copy.

One column ``report`` of unsigned 32-bit integers without gaps; the schema's metadata holds ``sfumato.format``,
``sfumato.survey`` and ``sfumato.batch``. Buffers are not compressed: their true size would be known only after the
memory for it had been taken. (``Content-Encoding: gzip`` is undone with a limit, before anything is parsed.)
"""

import struct

import numpy as np
from numpy.typing import NDArray

from sfumato.batches.batch import LARGEST_BATCH, WIRE_FORMAT, Batch, id_of, survey_of
from sfumato.errors import InvalidBatch
from sfumato.foundation.arrays import Arrow

__all__ = ["ARROW", "arrow_bytes", "batch_of_arrow"]

ARROW = "application/vnd.apache.arrow.stream"
_FORMAT, _SURVEY, _BATCH, _SIMULATED = (
    b"sfumato.format",
    b"sfumato.survey",
    b"sfumato.batch",
    b"sfumato.simulated",
)
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def arrow_bytes(batch: Batch) -> bytes:
    """A batch as its sender writes it."""
    import pyarrow as pa

    metadata = {_FORMAT: str(WIRE_FORMAT), _SURVEY: batch.fingerprint, _BATCH: batch.id.hex()}
    schema = pa.schema([pa.field("report", pa.uint32(), nullable=False)], metadata=metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array(batch.reports)], schema=schema))
    return bytes(sink.getvalue())


def batch_of_arrow(body: bytes) -> Batch:
    """Read a batch from nobody one knows; whatever is not exactly a batch is refused, and no value is echoed."""
    import pyarrow as pa

    try:
        return _read(body)
    except InvalidBatch:
        raise
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        TypeError,
        struct.error,
        OverflowError,
        StopIteration,
    ):
        # Arrow's own messages may quote what they could not read. (It stops where there is not even a schema.)
        raise InvalidBatch(
            "the body must be an Arrow IPC stream with one column of reports."
        ) from None


def _read(body: bytes) -> Batch:
    import pyarrow as pa

    if not body.endswith(_END):
        raise InvalidBatch("the Arrow stream is cut off: it does not end with its end mark.")
    source = pa.BufferReader(body)
    messages = pa.ipc.MessageReader.open_stream(source)
    first = messages.read_next_message()
    if first.type != "schema":
        raise InvalidBatch("the Arrow stream must begin with its schema.")
    _demand_little_endian(first)
    schema = pa.ipc.read_schema(first)
    metadata = _checked_metadata(schema)
    columns, left = [], LARGEST_BATCH
    while source.tell() < len(body):
        try:
            message = messages.read_next_message()
        except StopIteration:
            break
        left -= _rows(message)
        if left < 0:
            raise InvalidBatch(f"a batch holds at most {LARGEST_BATCH:,} reports.")
        columns.append(_column(pa.ipc.read_record_batch(message, schema)))
    if source.tell() != len(body):
        raise InvalidBatch("there are bytes after the end of the Arrow stream.")
    reports = np.concatenate(columns) if len(columns) != 1 else columns[0]
    return Batch(id_of(_text(metadata, _BATCH)), survey_of(_text(metadata, _SURVEY)), reports)


def _checked_metadata(schema: Arrow) -> dict[bytes, bytes]:
    import pyarrow as pa

    metadata: dict[bytes, bytes] = schema.metadata or {}
    if _SIMULATED in metadata:
        raise InvalidBatch(
            "these reports were made under a seed: they are a simulation, and are not counted."
        )
    if schema.names != ["report"] or schema.field(0).type != pa.uint32():
        raise InvalidBatch(
            "the Arrow stream must have one column, report, of unsigned 32-bit integers."
        )
    if _text(metadata, _FORMAT) != str(WIRE_FORMAT):
        raise InvalidBatch(f"{_FORMAT.decode()} in the schema's metadata must be {WIRE_FORMAT}.")
    return metadata


def _text(metadata: dict[bytes, bytes], name: bytes) -> str:
    return metadata.get(name, b"").decode("ascii", "replace")


def _column(record_batch: Arrow) -> NDArray[np.uint32]:
    record_batch.validate(full=True)
    column = record_batch.column(0)
    if column.null_count:
        raise InvalidBatch("a report is missing.")
    numbers: NDArray[np.uint32] = column.to_numpy(zero_copy_only=False)
    return numbers


# --- a look at a message before Arrow takes memory for it -------------------------------------------------------------


def _rows(message: Arrow) -> int:
    """How many rows a record batch says it has; refused if it is no record batch, or compressed.

    Reads two fields of the message's FlatBuffers table (Message.header → RecordBatch.length, .compression).
    """
    if message.type != "record batch":
        raise InvalidBatch("the Arrow stream must hold record batches alone.")
    raw, table = _header(message)
    if _field(raw, table, 3):
        raise InvalidBatch(
            "the Arrow stream must not be compressed; use Content-Encoding: gzip if it must be small."
        )
    length = _field(raw, table, 0)
    rows: int = struct.unpack_from("<q", raw, length)[0] if length else 0
    if rows < 0:
        raise InvalidBatch("the Arrow stream gives a negative number of rows.")
    return rows


def _demand_little_endian(message: Arrow) -> None:
    """Refuse numbers in the other order of bytes (Schema.endianness): read message by message, nobody turns them."""
    raw, table = _header(message)
    endianness = _field(raw, table, 0)
    if endianness and struct.unpack_from("<h", raw, endianness)[0]:
        raise InvalidBatch("the Arrow stream must be little-endian.")


def _header(message: Arrow) -> tuple[bytes, int]:
    """The bytes of a message's FlatBuffers, and where the table of its header stands in them."""
    raw = message.metadata.to_pybytes()
    (root,) = struct.unpack_from("<I", raw, 0)
    header = _field(raw, root, 2)
    (away,) = struct.unpack_from("<I", raw, header)
    return raw, header + away


def _field(raw: bytes, table: int, number: int) -> int:
    """Where a field of a FlatBuffers table stands, or 0 where it is left out."""
    (back,) = struct.unpack_from("<i", raw, table)
    (size,) = struct.unpack_from("<H", raw, table - back)
    slot = 4 + 2 * number
    offset: int = struct.unpack_from("<H", raw, table - back + slot)[0] if slot < size else 0
    return table + offset if offset else 0
