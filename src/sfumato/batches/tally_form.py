"""A tally on its way to another aggregator, or to an analyst: counts under an identifier, so that they count once.

``{"counts":"<base64 of little-endian 64-bit integers>","covers":[…],"format":1,"survey":"…","tally":"<identifier>"}``.
``covers`` names the tallies that were added up into this one, so that nobody counts them twice on another way.
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.batches.batch import ID_BYTES, WIRE_FORMAT, id_of, survey_of
from sfumato.errors import InvalidBatch, InvalidTally
from sfumato.foundation.canonical import Json, canonical_bytes
from sfumato.tally import Tally

__all__ = ["SentTally", "sent_tally_of", "tally_bytes"]

_FIELDS = {"counts", "covers", "format", "survey", "tally"}


@dataclass(frozen=True)
class SentTally:
    """A tally with its identifier, and those of the tallies inside it."""

    id: bytes
    tally: Tally
    covers: tuple[bytes, ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """What tells a repeated tally from another one under the same identifier."""
        return hashlib.sha256(tally_bytes(self)).digest()[:ID_BYTES]


def tally_bytes(sent: SentTally) -> bytes:
    """A tally as it is written, in canonical JSON.

    >>> tally_bytes(SentTally(bytes(16), Tally(np.array([1, 0]), "ab" * 32)))[:43]
    b'{"counts":"AQAAAAAAAAAAAAAAAAAAAA==","cover'
    """
    counts = base64.b64encode(sent.tally.counts.astype("<i8", copy=False).tobytes()).decode("ascii")
    covers: list[Json] = [id_.hex() for id_ in sorted(sent.covers)]
    return canonical_bytes(
        {
            "counts": counts,
            "covers": covers,
            "format": WIRE_FORMAT,
            "survey": sent.tally.fingerprint,
            "tally": sent.id.hex(),
        }
    )


def sent_tally_of(body: bytes) -> SentTally:
    """Read a tally that somebody sent; whatever is not exactly that is refused."""
    try:
        data = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InvalidTally("a tally must be one JSON object in UTF-8.") from None
    if not isinstance(data, dict) or set(data) != _FIELDS:
        raise InvalidTally(
            "a tally has the fields counts, covers, format, survey and tally, and no others."
        )
    if type(data["format"]) is not int or data["format"] != WIRE_FORMAT:
        raise InvalidTally(f"format must be {WIRE_FORMAT}; this version reads no other.")
    if not isinstance(data["counts"], str) or not isinstance(data["covers"], list):
        raise InvalidTally("counts must be text, and covers a list of identifiers.")
    try:
        counts = np.frombuffer(base64.b64decode(data["counts"], validate=True), dtype="<i8").astype(
            np.int64
        )
        covers = tuple(id_of(id_) for id_ in data["covers"])
        sent = SentTally(id_of(data["tally"]), Tally(counts, survey_of(data["survey"])), covers)
    except InvalidBatch as problem:
        raise InvalidTally(str(problem)) from None
    except ValueError as problem:
        if isinstance(problem, InvalidTally):
            raise
        raise InvalidTally("counts must be base64 of little-endian 64-bit integers.") from None
    if tally_bytes(sent) != body.rstrip(b"\n"):
        raise InvalidTally("the tally is not written in its canonical form. Export it again.")
    return sent
