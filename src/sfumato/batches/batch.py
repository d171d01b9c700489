"""A batch: reports for one cell of one survey, under an identifier chosen by the sender.

The identifier has 128 bits. A sender that receives no reply sends the same reports again with the
same identifier, and the aggregator counts them once.
"""

import hashlib
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from sfumato.cells import NO_KEY, CellKey
from sfumato.errors import InvalidBatch, ReportRejected
from sfumato.randomness import fresh_key
from sfumato.survey.description import MAX_BATCH_REPORTS

__all__ = [
    "FINGERPRINT_PATTERN",
    "ID_BYTES",
    "ID_PATTERN",
    "MAX_BATCH_BYTES",
    "MAX_BATCH_REPORTS",
    "Batch",
    "fresh_id",
    "is_fingerprint",
    "parse_fingerprint",
    "parse_id",
    "require_same_survey",
]

ID_BYTES = 16

MAX_BATCH_BYTES = 2**20
"""The maximum size of a batch on the wire, before and after decompression."""

ID_PATTERN = "^[0-9a-f]{32}$"
FINGERPRINT_PATTERN = "^[0-9a-f]{64}$"

_match_id = re.compile(ID_PATTERN).fullmatch
_match_fingerprint = re.compile(FINGERPRINT_PATTERN).fullmatch


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Reports for one cell of a survey, under an identifier.

    ``edition`` is the survey's edition, which decides the format on the wire. ``sender`` is the
    bulk sender that the aggregator recognised, or "" for an anonymous upload. It is never sent.

    >>> Batch(bytes(16), "ab" * 32, np.array([3, 1], dtype=np.uint32))
    Batch(2 reports, id=00000000…, survey=abababababab…)
    """

    id: bytes
    fingerprint: str
    reports: NDArray[np.uint32]
    key: CellKey = NO_KEY
    edition: int = 1
    sender: str = ""

    def __post_init__(self) -> None:
        if len(self.id) != ID_BYTES:
            raise InvalidBatch(
                f"a batch identifier must have {ID_BYTES} bytes; got {len(self.id)}."
            )
        if self.reports.dtype != np.uint32 or self.reports.ndim != 1:
            raise InvalidBatch(
                "a batch's reports must be a one-dimensional array of unsigned 32-bit integers."
            )
        if not 1 <= self.reports.size <= MAX_BATCH_REPORTS:
            raise InvalidBatch(
                f"a batch must have 1 to {MAX_BATCH_REPORTS:,} reports; got {self.reports.size:,}."
            )

        if self.edition == 1 and self.key != NO_KEY:
            raise InvalidBatch("a batch of edition 1 must not have a period.")

    @cached_property
    def digest(self) -> bytes:
        """A hash to distinguish a repeated batch from a different one with the same identifier.

        It covers the identifier, so batches with the same reports but different identifiers have
        different digests.
        """
        content = self.reports.astype("<u4", copy=False).tobytes()
        if self.edition == 1:
            return hashlib.sha256(b"sfumato/1/content" + self.id + content).digest()[:ID_BYTES]
        key = self.key.text.encode("utf-8")
        parts = (b"sfumato/2/content", self.id, len(key).to_bytes(4, "little"), key, content)
        return hashlib.sha256(b"".join(parts)).digest()[:ID_BYTES]

    def from_sender(self, name: str) -> "Batch":
        """Return the batch as sent by a bulk sender. Its digest stays the same."""
        named = replace(self, sender=name)
        named.__dict__["digest"] = self.digest
        return named

    def move_to(self, key: CellKey) -> "Batch":
        """Return the batch with its reports in another cell.

        Its digest stays the same: it identifies what was sent, whichever cell counts it.
        """
        moved = replace(self, key=key)
        moved.__dict__["digest"] = self.digest
        return moved

    def require(self, outputs: int) -> None:
        """Reject a batch with a report outside ``0..outputs - 1``."""
        # Check only the largest report first, because nearly all batches are valid.
        if int(self.reports.max()) >= outputs:
            index = int(np.argmax(self.reports >= outputs))
            raise ReportRejected(
                f"reports must be in 0..{outputs - 1}; the report at index {index} is not.",
                index=index,
            )

    def __repr__(self) -> str:
        id_ = self.id.hex()[:8]
        return f"Batch({self.reports.size} reports, id={id_}…, survey={self.fingerprint[:12]}…)"


def fresh_id() -> bytes:
    """Generate a random identifier."""
    return fresh_key()[:ID_BYTES]


def parse_id(text: object) -> bytes:
    """Parse an identifier of 32 lowercase hexadecimal digits."""
    if not isinstance(text, str) or not _match_id(text):
        raise InvalidBatch(
            "batch must be the upload's identifier: 32 lowercase hexadecimal digits."
        )
    return bytes.fromhex(text)


def is_fingerprint(text: object) -> TypeGuard[str]:
    """Return whether ``text`` has the form of a fingerprint: 64 lowercase hexadecimal digits.

    >>> is_fingerprint("ab" * 32), is_fingerprint("AB" * 32), is_fingerprint("ab" * 33)
    (True, False, False)
    """
    return isinstance(text, str) and _match_fingerprint(text) is not None


def require_same_survey(text: str, fingerprint: str) -> None:
    """Reject a batch that names a different survey from the one it was sent to."""
    if text != fingerprint:
        raise InvalidBatch("the batch and the path refer to different surveys.")


def parse_fingerprint(text: object) -> str:
    """Return ``text`` if it has the form of a fingerprint; otherwise raise ``InvalidBatch``."""
    if not is_fingerprint(text):
        raise InvalidBatch(
            "survey must be the survey's fingerprint: 64 lowercase hexadecimal digits."
        )
    return text
