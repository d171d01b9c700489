"""The outbox: all reports of one bulk upload, on disk before the first of them leaves.

Randomising an answer a second time would cost its person a second ε, and sending reports under new identifiers would
count them twice. So both are done once: an outbox is a report file (Parquet) that also holds a random nonce and the
aggregator's URL, a row group for each batch. Batch number i is named

    SHA-256("sfumato/1/send" ‖ nonce ‖ i as 8 bytes, little-endian)[:16]

and whoever sends the outbox again sends the same bytes under the same names. When all is delivered, a small record
takes the place of the reports, so that the same answers are not sent again by mistake.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from sfumato.batches import Batch, fresh_id
from sfumato.client.device_folder import sync_folder
from sfumato.errors import InvalidTable
from sfumato.foundation.canonical import Json, canonical_bytes
from sfumato.foundation.files import atomic_file, write_atomically

__all__ = ["Outbox", "write_outbox"]

_SURVEY, _NONCE, _URL = b"sfumato.survey", b"sfumato.nonce", b"sfumato.url"
_PARQUET = b"PAR1"
_SECOND = ": the answers are then randomised a second time, which costs each person a second ε"


class Outbox:
    """Reports that wait for one aggregator; other surveys, other aggregators and what was sent are refused."""

    def __init__(self, path: str, fingerprint: str, url: str) -> None:
        self._path, self._fingerprint, self._url = path, fingerprint, url
        _refuse_if_sent(path)
        try:
            self._file = pa.parquet.ParquetFile(path, page_checksum_verification=True)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
            raise _damaged(path) from None
        metadata: dict[bytes, bytes] = self._file.schema_arrow.metadata or {}
        if self._file.schema_arrow.names != ["report"] or len(metadata.get(_NONCE, b"")) != 32:
            raise InvalidTable(
                f"{path} is a Parquet file, but no outbox of sfumato send. Name another with --outbox."
            )
        self._nonce = _nonce_in(metadata[_NONCE], path)
        self._demand("survey", metadata.get(_SURVEY, b"").decode("utf-8", "replace"), fingerprint)
        self._demand(
            "aggregator", metadata.get(_URL, b"").decode("utf-8", "replace"), url, cost=_SECOND
        )

    @property
    def reports(self) -> int:
        """How many reports there are."""
        return int(self._file.metadata.num_rows)

    @property
    def size(self) -> int:
        """How many batches they make."""
        return int(self._file.num_row_groups)

    def batches(self) -> Iterator[Batch]:
        """The batches, read one after another."""
        for number in range(self.size):
            try:
                column = self._file.read_row_group(number, columns=["report"]).column(0)
            except (pa.ArrowInvalid, OSError):
                raise _damaged(self._path) from None
            reports = column.to_numpy().astype(np.uint32, copy=False)
            yield Batch(_batch_id(self._nonce, number), self._fingerprint, reports)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def finish(self) -> None:
        """Put the record that all was sent in the place of the reports."""
        sent: dict[str, Json] = {
            "sent": self._fingerprint,
            "to": self._url,
            "reports": self.reports,
            "batches": self.size,
        }
        self.close()
        write_atomically(self._path, canonical_bytes(sent) + b"\n")
        sync_folder(Path(self._path).resolve().parent)

    def _demand(self, what: str, found: str, wanted: str, *, cost: str = "") -> None:
        if found != wanted:
            raise InvalidTable(
                f"{self._path} holds reports for another {what} ({found[:60]}), and some of them may have been "
                f"counted there. Send them there, or name another file with --outbox{cost}."
            )


def write_outbox(
    path: str, fingerprint: str, url: str, reports: Iterable[NDArray[np.uint32]], *, batch_size: int
) -> None:
    """Lay down an outbox, whole or not at all. One that is there already is never replaced."""
    metadata = {_SURVEY: fingerprint, _NONCE: fresh_id().hex(), _URL: url}
    schema = pa.schema([pa.field("report", pa.uint32(), nullable=False)], metadata=metadata)
    claimed = False
    try:
        with atomic_file(path) as file:
            options: dict[str, Any] = {
                "compression": "zstd",
                "use_dictionary": False,
                "write_page_checksum": True,
            }
            with pa.parquet.ParquetWriter(file, schema, **options) as writer:
                for batch in _cut(reports, batch_size):
                    writer.write_table(pa.table([pa.array(batch)], schema=schema))
            _claim(path)
            claimed = True
    except BaseException:
        if claimed:
            Path(path).unlink(missing_ok=True)
        raise
    sync_folder(Path(path).resolve().parent)


def _claim(path: str) -> None:
    """Take the name, or learn that somebody has it: two runs at once must not both send what they randomised."""
    try:
        Path(path).open("x").close()
    except FileExistsError:
        raise InvalidTable(
            f"another run wrote {path} meanwhile. Run the command again to go on from there."
        ) from None


def _cut(reports: Iterable[NDArray[np.uint32]], size: int) -> Iterator[NDArray[np.uint32]]:
    """The same reports in batches of one size; the last one may be smaller."""
    held: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
    for more in reports:
        held = np.concatenate([held, more])
        whole = held.size - held.size % size
        yield from (held[start : start + size] for start in range(0, whole, size))
        held = held[whole:]
    if held.size:
        yield held


def _batch_id(nonce: bytes, number: int) -> bytes:
    return hashlib.sha256(b"sfumato/1/send" + nonce + number.to_bytes(8, "little")).digest()[:16]


def _nonce_in(digits: bytes, path: str) -> bytes:
    with suppress(ValueError):  # no digits, or not even ASCII
        nonce = bytes.fromhex(digits.decode("ascii"))
        if len(nonce) == 16:  # spaces would have been skipped
            return nonce
    raise _damaged(path)


def _refuse_if_sent(path: str) -> None:
    """Refuse what is no outbox, and above all the record of one that was sent."""
    with Path(path).open("rb") as file:
        content = file.read(2**16)
    if not content:
        raise InvalidTable(
            f"{path} is empty: a run was cut off before anything was sent. Remove it, and run again."
        )
    if content.startswith(_PARQUET):
        return
    try:
        sent = json.loads(content)
        reports, to = sent["reports"], sent["to"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise InvalidTable(
            f"{path} is no outbox of sfumato send. Name another file with --outbox."
        ) from None
    raise InvalidTable(
        f"these answers were sent: {path} records that {to} has counted {reports:,} reports. Nothing was sent now. "
        "Sending them again would count everybody twice and cost each person a second ε; if that is meant, remove "
        "the file."
    )


def _damaged(path: str) -> InvalidTable:
    return InvalidTable(
        f"{path} is cut off or damaged. Some of its reports may have been counted: making new ones would count their "
        "people twice. Put the file back as it was."
    )
