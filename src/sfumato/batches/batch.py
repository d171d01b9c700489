"""A batch: reports of one survey under an identifier that its sender made, so that it can be sent twice and count once.

The identifier has 128 bits. Whoever sends a batch again, because an answer got lost, sends the same identifier with the
same reports; the aggregator knows it again and counts nothing twice.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidBatch, ReportRejected
from sfumato.randomness import fresh_key

__all__ = [
    "ID_BYTES",
    "LARGEST_BATCH",
    "LARGEST_BODY",
    "WIRE_FORMAT",
    "Batch",
    "fresh_id",
    "id_of",
    "is_fingerprint",
    "survey_of",
]

WIRE_FORMAT = 1
ID_BYTES = 16

LARGEST_BATCH = 65_536
"""Reports in a batch, at most."""

LARGEST_BODY = 2**20
"""Bytes of a batch on the wire, at most, before and after decompression."""

_HEX_ID, _HEX_SURVEY = re.compile(r"[0-9a-f]{32}\Z"), re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Reports of one survey, with the identifier of their upload.

    >>> Batch(bytes(16), "ab" * 32, np.array([3, 1], dtype=np.uint32))
    Batch(2 reports, id=00000000…, survey=abababababab…)
    """

    id: bytes
    fingerprint: str
    reports: NDArray[np.uint32]

    def __post_init__(self) -> None:
        if len(self.id) != ID_BYTES:
            raise InvalidBatch(f"a batch is named by {ID_BYTES} bytes; found {len(self.id)}.")
        if (
            not 1 <= self.reports.size <= LARGEST_BATCH
            or self.reports.dtype != np.uint32
            or self.reports.ndim != 1
        ):
            raise InvalidBatch(
                f"a batch holds a row of 1 to {LARGEST_BATCH:,} reports, unsigned, of 32 bits."
            )

    @cached_property
    def digest(self) -> bytes:
        """What tells a repeated batch from another one under the same identifier.

        The identifier goes in, so that equal reports do not have equal digests.
        """
        content = self.reports.astype("<u4", copy=False).tobytes()
        return hashlib.sha256(b"sfumato/1/content" + self.id + content).digest()[:ID_BYTES]

    def require(self, fingerprint: str, outputs: int) -> None:
        """Refuse a batch of another survey, or with a report that the survey's mechanism cannot have sent."""
        if self.fingerprint != fingerprint:
            raise InvalidBatch(
                "the batch names another survey than the address that it was sent to."
            )
        # The largest report first: most batches are right, and one look is enough for them.
        if int(self.reports.max()) >= outputs:
            index = int(np.argmax(self.reports >= outputs))
            raise ReportRejected(
                f"reports must lie in 0..{outputs - 1}; the one at index {index} does not.",
                index=index,
            )

    def __repr__(self) -> str:
        return f"Batch({self.reports.size} reports, id={self.id.hex()[:8]}…, survey={self.fingerprint[:12]}…)"


def fresh_id() -> bytes:
    """An identifier that nobody else has."""
    return fresh_key()[:ID_BYTES]


def id_of(text: object) -> bytes:
    """The identifier that 32 hexadecimal digits stand for."""
    if not isinstance(text, str) or not _HEX_ID.match(text):
        raise InvalidBatch(
            "batch must be 32 hexadecimal digits in lower case: the identifier of the upload."
        )
    return bytes.fromhex(text)


def is_fingerprint(text: object) -> bool:
    """Whether this can be the fingerprint of a survey: 64 hexadecimal digits in lower case.

    >>> is_fingerprint("ab" * 32), is_fingerprint("AB" * 32), is_fingerprint("ab" * 33)
    (True, False, False)
    """
    return isinstance(text, str) and _HEX_SURVEY.match(text) is not None


def survey_of(text: object) -> str:
    """A survey's fingerprint, if the text is one."""
    if not isinstance(text, str) or not is_fingerprint(text):
        raise InvalidBatch(
            "survey must be 64 hexadecimal digits in lower case: the survey's fingerprint."
        )
    return text
