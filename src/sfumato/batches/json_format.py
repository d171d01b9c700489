"""Batches as JSON, the format that browsers send.

A batch has exactly these fields: ``{"batch":"<32 hexadecimal digits>","format":1,"reports":[3,1],
"survey":"<fingerprint>"}``.
"""

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.batches.batch import (
    MAX_BATCH_REPORTS,
    WIRE_FORMAT,
    Batch,
    parse_fingerprint,
    parse_id,
)
from sfumato.errors import InvalidBatch, ReportRejected

__all__ = ["JSON_MEDIA_TYPE", "parse_batch", "to_json"]

JSON_MEDIA_TYPE = "application/json"
_FIELDS = {"batch", "format", "reports", "survey"}


def to_json(batch: Batch) -> bytes:
    """Serialize a batch to canonical JSON."""
    reports = ",".join(map(str, batch.reports.tolist()))
    text = (
        f'{{"batch":"{batch.id.hex()}","format":{WIRE_FORMAT},'
        f'"reports":[{reports}],"survey":"{batch.fingerprint}"}}'
    )
    return text.encode("ascii")


def parse_batch(body: bytes) -> Batch:
    """Parse an untrusted batch. Reject anything malformed, without echoing its values."""
    try:
        # Decode first: json.loads would guess the encoding of bytes.
        data = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_require_unique_fields,
            parse_float=_reject_non_integer,
            parse_constant=_reject_non_integer,
        )
    except InvalidBatch:
        raise
    except (ValueError, RecursionError):
        raise InvalidBatch(
            "the body must be a single UTF-8 JSON object with no trailing data."
        ) from None
    if not isinstance(data, dict) or set(data) != _FIELDS:
        raise InvalidBatch(
            "a batch must have exactly these fields: batch, format, reports, survey."
        )
    if type(data["format"]) is not int or data["format"] != WIRE_FORMAT:
        raise InvalidBatch(f"format must be {WIRE_FORMAT}; no other version is supported.")
    id_ = parse_id(data["batch"])
    fingerprint = parse_fingerprint(data["survey"])
    return Batch(id_, fingerprint, _parse_reports(data["reports"]))


def _require_unique_fields(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidBatch("duplicate field.")
    return fields


def _reject_non_integer(_: str) -> object:
    raise InvalidBatch("reports must be integers; got a fraction, an exponent, NaN or infinity.")


def _parse_reports(reports: object) -> NDArray[np.uint32]:
    if not isinstance(reports, list) or not 1 <= len(reports) <= MAX_BATCH_REPORTS:
        raise InvalidBatch(f"reports must be a list of 1 to {MAX_BATCH_REPORTS:,} integers.")
    # Check all reports at once. Look for the first invalid report only if the check fails.
    if set(map(type, reports)) == {int} and min(reports) >= 0 and max(reports) < 2**32:
        return np.array(reports, dtype=np.uint32)
    index = next(i for i, report in enumerate(reports) if not _is_report(report))
    raise ReportRejected(
        f"reports must be non-negative 32-bit integers; the report at index {index} is not.",
        index=index,
    )


def _is_report(report: object) -> bool:
    # Do not use isinstance, which would accept a bool.
    return type(report) is int and 0 <= report < 2**32
