"""The outbox: all reports in one bulk upload, written to disk before the first one is sent.

Randomising an answer a second time would cost the person a second ε, and sending reports under new
identifiers would count them twice. So answers are randomised only once, and batches keep their
identifiers. An outbox is a report file (Parquet) that also contains a random nonce and the
aggregator's URL, with one row group per batch. Batch i has the identifier

    SHA-256("sfumato/1/send" ‖ nonce ‖ i as 8 bytes, little-endian)[:16]

so sending the outbox again sends the same bytes under the same identifiers. Once everything is
delivered, a small record replaces the reports, so the same answers are not sent again by mistake.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from sfumato.batches import Batch, UploadRules, fresh_id, parse_id
from sfumato.batches.arrow_format import PERIOD_KEY, SURVEY_KEY
from sfumato.client.device import sync_folder
from sfumato.errors import DamagedState, InvalidBatch, InvalidSetting, SfumatoError
from sfumato.foundation.canonical import Json, canonical_bytes
from sfumato.foundation.files import atomic_file, write_atomically
from sfumato.foundation.periods import period_name

__all__ = ["Outbox", "write_outbox"]

# Keys in the file's metadata.
_NONCE = b"sfumato.nonce"
_URL = b"sfumato.url"

_PARQUET_MAGIC = b"PAR1"  # the first bytes of a Parquet file


class Outbox:
    """The reports in one bulk upload to one aggregator.

    The constructor rejects an outbox for a different survey or aggregator, or one already sent.
    """

    def __init__(self, path: str, rules: UploadRules, url: str) -> None:
        self._path = path
        self._rules = rules
        self._url = url
        _require_unsent(path)
        try:
            self._file = pa.parquet.ParquetFile(path, page_checksum_verification=True)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
            raise _damage_error(path) from None
        metadata: dict[bytes, bytes] = self._file.schema_arrow.metadata or {}
        if self._file.schema_arrow.names != ["report"] or len(metadata.get(_NONCE, b"")) != 32:
            raise InvalidSetting(
                f"{path} is a Parquet file, but not an outbox created by sfumato send. "
                "Choose another file with --outbox."
            )
        try:
            self._nonce = parse_id(metadata[_NONCE].decode("ascii", "replace"))
        except InvalidBatch:
            raise _damage_error(path) from None
        outbox_survey = metadata.get(SURVEY_KEY, b"").decode("utf-8", "replace")
        if outbox_survey != rules.fingerprint:
            raise _destination_error(path, f"survey ({outbox_survey[:60]})", "")
        outbox_url = metadata.get(_URL, b"").decode("utf-8", "replace")
        if outbox_url != url:
            warning = " That randomises the answers again and costs each person a second ε."
            raise _destination_error(path, f"aggregator ({outbox_url[:60]})", warning)
        try:
            self._key = rules.parse_key(metadata.get(PERIOD_KEY, b"").decode("utf-8", "replace"))
        except InvalidBatch:
            raise _damage_error(path) from None

    @property
    def report_count(self) -> int:
        """The number of reports."""
        return int(self._file.metadata.num_rows)

    @property
    def batch_count(self) -> int:
        """The number of batches."""
        return int(self._file.num_row_groups)

    def batches(self) -> Iterator[Batch]:
        """Read the batches one by one."""
        rules = self._rules
        for index in range(self.batch_count):
            try:
                column = self._file.read_row_group(index, columns=["report"]).column(0)
            except (pa.ArrowInvalid, OSError):
                raise _damage_error(self._path) from None
            reports = column.to_numpy().astype(np.uint32, copy=False)
            id_ = _batch_id(self._nonce, index)
            yield rules.make_batch(id_, reports, self._key)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def finish(self) -> None:
        """Replace the reports with a small record of the completed upload."""
        record: dict[str, Json] = {
            "sent": self._rules.fingerprint,
            "to": self._url,
            "reports": self.report_count,
            "batches": self.batch_count,
        }
        self.close()
        write_atomically(self._path, canonical_bytes(record) + b"\n")
        sync_folder(Path(self._path).resolve().parent)


def write_outbox(
    path: str,
    rules: UploadRules,
    url: str,
    reports: Iterable[NDArray[np.uint32]],
    *,
    batch_size: int,
    now: datetime | None = None,
) -> None:
    """Write an outbox atomically, without replacing an existing one.

    The reports of a repeated survey belong to the period that contains ``now``.
    """
    metadata = {SURVEY_KEY: rules.fingerprint, _NONCE: fresh_id().hex(), _URL: url}
    if rules.every:
        metadata[PERIOD_KEY] = period_name(rules.every, now or datetime.now(UTC))
    schema = pa.schema([pa.field("report", pa.uint32(), nullable=False)], metadata=metadata)
    has_claimed_path = False
    try:
        with atomic_file(path) as file:
            with pa.parquet.ParquetWriter(
                file, schema, compression="zstd", use_dictionary=False, write_page_checksum=True
            ) as writer:
                for batch in _regroup(reports, batch_size):
                    writer.write_table(pa.table([pa.array(batch)], schema=schema))
            _claim_path(path)
            has_claimed_path = True
    except BaseException:
        if has_claimed_path:
            Path(path).unlink(missing_ok=True)
        raise
    sync_folder(Path(path).resolve().parent)


def _claim_path(path: str) -> None:
    """Create the file, or fail if it exists: two concurrent runs must not both send reports."""
    try:
        Path(path).open("x").close()
    except FileExistsError:
        raise InvalidSetting(
            f"another run wrote {path} in the meantime. Run the command again to continue it."
        ) from None


def _regroup(reports: Iterable[NDArray[np.uint32]], size: int) -> Iterator[NDArray[np.uint32]]:
    """Regroup reports into batches of ``size``; the last one may be smaller."""
    pending: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
    for chunk in reports:
        pending = np.concatenate([pending, chunk])
        end = pending.size - pending.size % size
        for start in range(0, end, size):
            yield pending[start : start + size]
        pending = pending[end:]
    if pending.size:
        yield pending


def _batch_id(nonce: bytes, index: int) -> bytes:
    return hashlib.sha256(b"sfumato/1/send" + nonce + index.to_bytes(8, "little")).digest()[:16]


def _require_unsent(path: str) -> None:
    """Reject a file that is not an outbox, or that records that its reports were already sent."""
    with Path(path).open("rb") as file:
        content = file.read(2**16)
    if not content:
        raise DamagedState(
            f"{path} is empty because a run was interrupted before anything was sent. "
            "Delete the file and run the command again."
        )
    if content.startswith(_PARQUET_MAGIC):
        return
    try:
        record = json.loads(content)
        reports = record["reports"]
        aggregator = record["to"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise InvalidSetting(
            f"{path} is not an outbox created by sfumato send. Choose another file with --outbox."
        ) from None
    raise InvalidSetting(
        f"these answers were already sent: {path} records that {aggregator} has counted "
        f"{reports:,} reports. Nothing was sent this time. Sending them again would count every "
        "person twice and cost each a second ε. If you really want that, delete the file."
    )


def _destination_error(path: str, destination: str, warning: str) -> SfumatoError:
    return InvalidSetting(
        f"{path} contains reports for another {destination}, which may have counted some of them. "
        f"Send them there, or choose another file with --outbox.{warning}"
    )


def _damage_error(path: str) -> DamagedState:
    return DamagedState(
        f"{path} is truncated or damaged. Some of its reports may have been counted, and new ones "
        "would count the same people twice. Restore the file."
    )
