"""Tallies as JSON, for sending to another aggregator or to an analyst.

In format 1, a tally is ``{"counts":"<base64 of little-endian 64-bit integers>","covers":[…],
"format":1,"survey":"…","tally":"<identifier>"}``, on one line. In format 2, ``cells`` replaces
``counts``: a list of ``{"counts":"…","key":{"period":"2026-W46"}}``, sorted by key. ``covers``
lists the identifiers of the tallies that this one includes, so none of them is counted twice.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.batches.batch import ID_BYTES, parse_fingerprint, parse_id
from sfumato.cells import CellKey, TallyCells
from sfumato.errors import InvalidBatch, InvalidTally, WrongSurvey
from sfumato.foundation.canonical import Json, canonical_bytes
from sfumato.tally import Tally

__all__ = ["TallyExport", "parse_tally", "tally_to_json"]

_SHARED_FIELDS = {"covers", "format", "survey", "tally"}
_CONTENT_FIELD = {1: "counts", 2: "cells"}


@dataclass(frozen=True)
class TallyExport:
    """The cells of a tally, its identifier, and the identifiers of the tallies inside it."""

    id: bytes
    cells: TallyCells
    covers: tuple[bytes, ...] = ()
    edition: int = 1

    @classmethod
    def from_tally(cls, id_: bytes, tally: Tally, covers: tuple[bytes, ...] = ()) -> Self:
        """Return an export in format 1, which has a single cell without a key."""
        return cls(id_, TallyCells.single(tally), covers)

    @cached_property
    def tally(self) -> Tally:
        """The sum of all cells."""
        return self.cells.total()

    @cached_property
    def digest(self) -> bytes:
        """A hash to distinguish a repeated tally from a different one with the same identifier."""
        return hashlib.sha256(tally_to_json(self)).digest()[:ID_BYTES]


def tally_to_json(export: TallyExport) -> bytes:
    """Serialize a tally to canonical JSON.

    >>> tally = Tally(np.array([1, 0]), "ab" * 32)
    >>> tally_to_json(TallyExport.from_tally(bytes(16), tally))[:43]
    b'{"counts":"AQAAAAAAAAAAAAAAAAAAAA==","cover'
    """
    covers: list[Json] = [id_.hex() for id_ in sorted(export.covers)]
    content: Json
    if export.edition == 1:
        content = _encode_counts(export.tally)
    else:
        content = []
        for key, tally in export.cells.cells.items():
            content.append({"counts": _encode_counts(tally), "key": key.to_record()})
    return canonical_bytes(
        {
            _CONTENT_FIELD[export.edition]: content,
            "covers": covers,
            "format": export.edition,
            "survey": export.cells.fingerprint,
            "tally": export.id.hex(),
        }
    )


def parse_tally(body: bytes) -> TallyExport:
    """Parse an untrusted tally in either format. Reject anything malformed."""
    try:
        data = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InvalidTally("a tally must be a single UTF-8 JSON object.") from None
    edition = data.get("format") if isinstance(data, dict) else None
    if type(edition) is not int or edition not in _CONTENT_FIELD:
        raise InvalidTally("a tally must be an object whose format is 1 or 2.")
    fields = _SHARED_FIELDS | {_CONTENT_FIELD[edition]}
    if set(data) != fields:
        raise InvalidTally(f"a tally must have exactly these fields: {', '.join(sorted(fields))}.")
    if not isinstance(data["covers"], list):
        raise InvalidTally("covers must be a list of identifiers.")
    try:
        id_ = parse_id(data["tally"])
        fingerprint = parse_fingerprint(data["survey"])
        covers = tuple(map(parse_id, data["covers"]))
    except InvalidBatch as error:
        raise InvalidTally(str(error)) from None
    export = TallyExport(id_, _parse_cells(data, fingerprint), covers, edition)
    if tally_to_json(export) != body.removesuffix(b"\n"):
        raise InvalidTally("the tally is not in canonical form. Export it again.")
    return export


def _parse_cells(data: Mapping[str, Any], fingerprint: str) -> TallyCells:
    if data["format"] == 1:
        return TallyCells.single(Tally(_decode_counts(data["counts"]), fingerprint))
    if not isinstance(data["cells"], list):
        raise InvalidTally("cells must be a list.")
    cells: dict[CellKey, Tally] = {}
    for cell in data["cells"]:
        if not isinstance(cell, dict) or set(cell) != {"counts", "key"}:
            raise InvalidTally("a cell must have exactly these fields: counts, key.")
        cells[CellKey.from_record(cell["key"])] = Tally(_decode_counts(cell["counts"]), fingerprint)
    try:
        tallies = TallyCells(cells)
    except WrongSurvey:
        raise InvalidTally("all cells must have equally many counts.") from None
    tallies.total()  # reject cells that together have too many reports
    return tallies


def _encode_counts(tally: Tally) -> str:
    return base64.b64encode(tally.counts.astype("<i8", copy=False).tobytes()).decode("ascii")


def _decode_counts(text: object) -> NDArray[np.int64]:
    if not isinstance(text, str):
        raise InvalidTally("counts must be a string.")
    try:
        counts = np.frombuffer(base64.b64decode(text, validate=True), dtype="<i8")
    except ValueError:
        raise InvalidTally(
            "counts must be little-endian 64-bit integers, encoded as base64."
        ) from None
    return counts.astype(np.int64)
