"""Batches as Arrow IPC streams, for bulk uploads. They are parsed without copying.

The stream has one column, ``report``, of unsigned 32-bit integers without nulls. The schema's
metadata contains ``sfumato.format``, ``sfumato.survey`` and ``sfumato.batch``, and in format 2, if
the survey is repeated, ``sfumato.period``. Buffers must not be compressed, because
Arrow would allocate as much memory as they declare. (``Content-Encoding: gzip`` is allowed: the
aggregator decompresses the body, up to a maximum size, before parsing.)
"""

import struct

import numpy as np
from numpy.typing import NDArray

from sfumato.batches.batch import (
    MAX_BATCH_REPORTS,
    Batch,
    parse_fingerprint,
    parse_id,
    require_same_survey,
)
from sfumato.batches.rules import UploadRules
from sfumato.errors import InvalidBatch
from sfumato.foundation.arrays import Arrow

__all__ = [
    "ARROW_MEDIA_TYPE",
    "BATCH_KEY",
    "PERIOD_KEY",
    "SIMULATED_KEY",
    "SURVEY_KEY",
    "parse_arrow_batch",
    "to_arrow",
]

ARROW_MEDIA_TYPE = "application/vnd.apache.arrow.stream"

# Keys in the metadata of Arrow streams and of Parquet files with reports.
_FORMAT_KEY = b"sfumato.format"
SURVEY_KEY = b"sfumato.survey"
BATCH_KEY = b"sfumato.batch"
PERIOD_KEY = b"sfumato.period"
SIMULATED_KEY = b"sfumato.simulated"
_KEY_PREFIX = b"sfumato."
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def to_arrow(batch: Batch) -> bytes:
    """Serialize a batch to an Arrow IPC stream."""
    import pyarrow as pa

    metadata = {
        _FORMAT_KEY: str(batch.edition),
        SURVEY_KEY: batch.fingerprint,
        BATCH_KEY: batch.id.hex(),
    }
    if batch.key.period:
        metadata[PERIOD_KEY] = batch.key.period
    schema = pa.schema([pa.field("report", pa.uint32(), nullable=False)], metadata=metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array(batch.reports)], schema=schema))
    return bytes(sink.getvalue())


def parse_arrow_batch(body: bytes, rules: UploadRules) -> Batch:
    """Parse an untrusted batch. Reject anything malformed, without echoing its values."""
    import pyarrow as pa

    try:
        return _parse(body, rules)
    except InvalidBatch:
        raise
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        TypeError,
        struct.error,
        OverflowError,
        StopIteration,  # no schema
    ):
        # Do not chain the exception: its message may quote the data that Arrow could not parse.
        raise InvalidBatch(
            "the body must be an Arrow IPC stream with one column of reports."
        ) from None


def _parse(body: bytes, rules: UploadRules) -> Batch:
    import pyarrow as pa

    if not body.endswith(_END_OF_STREAM):
        raise InvalidBatch("the Arrow stream is truncated: its end-of-stream marker is missing.")
    source = pa.BufferReader(body)
    messages = pa.ipc.MessageReader.open_stream(source)
    schema_message = messages.read_next_message()
    if schema_message.type != "schema":
        raise InvalidBatch("the Arrow stream must start with its schema.")
    _require_little_endian(schema_message)
    schema = pa.ipc.read_schema(schema_message)
    _require_report_schema(schema, rules)
    if rules.edition >= 2:
        _require_exact_metadata(schema, schema_message, rules)
    columns = []
    row_count = 0
    while source.tell() < len(body):
        try:
            message = messages.read_next_message()
        except StopIteration:
            break
        row_count += _row_count(message)
        if row_count > MAX_BATCH_REPORTS:
            raise InvalidBatch(f"a batch must have at most {MAX_BATCH_REPORTS:,} reports.")
        columns.append(_report_column(pa.ipc.read_record_batch(message, schema)))
    if source.tell() != len(body):
        raise InvalidBatch("the Arrow stream has trailing data.")
    reports = columns[0] if len(columns) == 1 else np.concatenate(columns)
    id_ = parse_id(_metadata_text(schema, BATCH_KEY))
    require_same_survey(parse_fingerprint(_metadata_text(schema, SURVEY_KEY)), rules.fingerprint)
    key = rules.parse_key(_metadata_text(schema, PERIOD_KEY))
    return rules.make_batch(id_, reports, key)


def _require_report_schema(schema: Arrow, rules: UploadRules) -> None:
    import pyarrow as pa

    if schema.metadata and SIMULATED_KEY in schema.metadata:
        raise InvalidBatch("reports from a seeded simulation must not be counted.")
    if schema.names != ["report"] or schema.field(0).type != pa.uint32():
        raise InvalidBatch(
            "the Arrow stream must have one column, report, of unsigned 32-bit integers."
        )
    if _metadata_text(schema, _FORMAT_KEY) != str(rules.edition):
        raise InvalidBatch(
            f"{_FORMAT_KEY.decode()} in the schema's metadata must be {rules.edition} for this "
            "survey."
        )


def _require_exact_metadata(schema: Arrow, message: Arrow, rules: UploadRules) -> None:
    """Reject a field twice, or one that this survey does not have: it could name another cell.

    Format 1 ignores such fields. Metadata of other programs is always ignored.
    """
    if _metadata_count(message) != len(schema.metadata):
        raise InvalidBatch("duplicate field in the schema's metadata.")
    expected = {_FORMAT_KEY, SURVEY_KEY, BATCH_KEY}
    if rules.every:
        expected.add(PERIOD_KEY)
    if {name for name in schema.metadata if name.startswith(_KEY_PREFIX)} != expected:
        names = b", ".join(sorted(expected)).decode()
        raise InvalidBatch(f"the schema's metadata must have exactly these fields: {names}.")


def _metadata_text(schema: Arrow, name: bytes) -> str:
    metadata: dict[bytes, bytes] = schema.metadata or {}
    return metadata.get(name, b"").decode("ascii", "replace")


def _report_column(record_batch: Arrow) -> NDArray[np.uint32]:
    record_batch.validate(full=True)
    column = record_batch.column(0)
    if column.null_count:
        raise InvalidBatch("the column of reports must not contain nulls.")
    # Arrow's own conversion would import pandas, if there is one, while other uploads wait.
    _, values = column.buffers()
    if values is None:  # there are no rows
        return np.zeros(0, dtype=np.uint32)
    return np.frombuffer(values, "<u4", count=len(column), offset=4 * column.offset)


# --- inspect a message before Arrow allocates memory for it ---------------------------------------
#
# These functions read individual fields of the message's FlatBuffers tables.


def _row_count(message: Arrow) -> int:
    """Return RecordBatch.length. Reject other kinds of messages, and compressed buffers."""
    if message.type != "record batch":
        raise InvalidBatch("the Arrow stream must contain only record batches after its schema.")
    raw, table = _read_header(message)
    if _field_position(raw, table, 3):
        raise InvalidBatch(
            "the Arrow stream's buffers must not be compressed. Use Content-Encoding: gzip instead."
        )
    length_position = _field_position(raw, table, 0)
    if not length_position:
        return 0
    row_count: int = struct.unpack_from("<q", raw, length_position)[0]
    if row_count < 0:
        raise InvalidBatch("the Arrow stream declares a negative number of rows.")
    return row_count


def _require_little_endian(message: Arrow) -> None:
    """Check Schema.endianness: Arrow does not swap bytes when it reads individual messages."""
    raw, table = _read_header(message)
    endianness_position = _field_position(raw, table, 0)
    if endianness_position and struct.unpack_from("<h", raw, endianness_position)[0]:
        raise InvalidBatch("the Arrow stream must be little-endian.")


def _metadata_count(message: Arrow) -> int:
    """Return the length of Schema.custom_metadata. Arrow shows only the first of two equal keys."""
    raw, table = _read_header(message)
    position = _field_position(raw, table, 2)
    (offset,) = struct.unpack_from("<I", raw, position)
    length: int = struct.unpack_from("<I", raw, position + offset)[0]
    return length


def _read_header(message: Arrow) -> tuple[bytes, int]:
    """Return a message's FlatBuffers bytes, and the position of its header (Message.header)."""
    raw = message.metadata.to_pybytes()
    (root,) = struct.unpack_from("<I", raw, 0)
    header = _field_position(raw, root, 2)
    (offset,) = struct.unpack_from("<I", raw, header)
    return raw, header + offset


def _field_position(raw: bytes, table: int, field_index: int) -> int:
    """Return the position of a field in a FlatBuffers table, or 0 if it is absent."""
    (vtable_offset,) = struct.unpack_from("<i", raw, table)
    vtable = table - vtable_offset
    (vtable_size,) = struct.unpack_from("<H", raw, vtable)
    slot = 4 + 2 * field_index
    if slot >= vtable_size:
        return 0
    offset: int = struct.unpack_from("<H", raw, vtable + slot)[0]
    return table + offset if offset else 0
