"""Tallies as JSON, for sending to another aggregator or to an analyst.

A tally is ``{"counts":"<base64 of little-endian 64-bit integers>","covers":[…],"format":1,
"survey":"…","tally":"<identifier>"}``, on one line. ``covers`` lists the identifiers of the
tallies that this tally includes, so that none of them is counted twice.
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.batches.batch import ID_BYTES, WIRE_FORMAT, parse_fingerprint, parse_id
from sfumato.errors import InvalidBatch, InvalidTally
from sfumato.foundation.canonical import Json, canonical_bytes
from sfumato.tally import Tally

__all__ = ["TallyExport", "parse_tally", "tally_to_json"]

_FIELDS = {"counts", "covers", "format", "survey", "tally"}


@dataclass(frozen=True)
class TallyExport:
    """A tally, its identifier, and the identifiers of the tallies that it includes."""

    id: bytes
    tally: Tally
    covers: tuple[bytes, ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """A hash to distinguish a repeated tally from a different one with the same identifier."""
        return hashlib.sha256(tally_to_json(self)).digest()[:ID_BYTES]


def tally_to_json(export: TallyExport) -> bytes:
    """Serialize a tally to canonical JSON.

    >>> tally_to_json(TallyExport(bytes(16), Tally(np.array([1, 0]), "ab" * 32)))[:43]
    b'{"counts":"AQAAAAAAAAAAAAAAAAAAAA==","cover'
    """
    counts = export.tally.counts.astype("<i8", copy=False).tobytes()
    covers: list[Json] = [id_.hex() for id_ in sorted(export.covers)]
    return canonical_bytes(
        {
            "counts": base64.b64encode(counts).decode("ascii"),
            "covers": covers,
            "format": WIRE_FORMAT,
            "survey": export.tally.fingerprint,
            "tally": export.id.hex(),
        }
    )


def parse_tally(body: bytes) -> TallyExport:
    """Parse an untrusted tally. Reject anything malformed."""
    try:
        data = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InvalidTally("a tally must be a single UTF-8 JSON object.") from None
    if not isinstance(data, dict) or set(data) != _FIELDS:
        raise InvalidTally(
            "a tally must have exactly these fields: counts, covers, format, survey, tally."
        )
    if type(data["format"]) is not int or data["format"] != WIRE_FORMAT:
        raise InvalidTally(f"format must be {WIRE_FORMAT}; no other version is supported.")
    if not isinstance(data["covers"], list):
        raise InvalidTally("covers must be a list of identifiers.")
    counts = _parse_counts(data["counts"])
    try:
        id_ = parse_id(data["tally"])
        fingerprint = parse_fingerprint(data["survey"])
        covers = tuple(map(parse_id, data["covers"]))
    except InvalidBatch as problem:
        raise InvalidTally(str(problem)) from None
    export = TallyExport(id_, Tally(counts, fingerprint), covers)
    if tally_to_json(export) != body.rstrip(b"\n"):
        raise InvalidTally("the tally is not in canonical form. Export it again.")
    return export


def _parse_counts(text: object) -> NDArray[np.int64]:
    if not isinstance(text, str):
        raise InvalidTally("counts must be a string.")
    try:
        counts = np.frombuffer(base64.b64decode(text, validate=True), dtype="<i8")
    except ValueError:
        raise InvalidTally(
            "counts must be little-endian 64-bit integers, encoded as base64."
        ) from None
    return counts.astype(np.int64)
