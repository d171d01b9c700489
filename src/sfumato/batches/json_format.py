"""Batches as JSON, the format that browsers send.

In format 1, a batch is ``{"batch":"<32 hexadecimal digits>","format":1,"reports":[3,1],"survey":
"<fingerprint>"}``. In format 2, ``survey`` has only the first 32 digits of the fingerprint: the
path of the request already has all of them, and devices send one report at a time. If a survey is
repeated, format 2 adds ``period``. A batch has exactly these fields.
"""

import json
import re
from collections.abc import Sequence

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
from sfumato.errors import InvalidBatch, ReportRejected

__all__ = ["JSON_MEDIA_TYPE", "SingleReportReader", "parse_batch", "to_json"]

JSON_MEDIA_TYPE = "application/json"
_FIELDS = {"batch", "format", "reports", "survey"}
_SHORT_FINGERPRINT = 32  # digits


def to_json(batch: Batch) -> bytes:
    """Serialize a batch to canonical JSON."""
    reports = ",".join(map(str, batch.reports.tolist()))
    period = f'"period":"{batch.key.period}",' if batch.key.period else ""
    survey = _survey_text(batch.fingerprint, batch.edition)
    text = (
        f'{{"batch":"{batch.id.hex()}","format":{batch.edition},{period}'
        f'"reports":[{reports}],"survey":"{survey}"}}'
    )
    return text.encode("ascii")


def _survey_text(fingerprint: str, edition: int) -> str:
    """Return how a batch names its survey."""
    return fingerprint if edition == 1 else fingerprint[:_SHORT_FINGERPRINT]


def parse_batch(body: bytes, rules: UploadRules) -> Batch:
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
    expected = _FIELDS | {"period"} if rules.every else _FIELDS
    if not isinstance(data, dict) or set(data) != expected:
        raise InvalidBatch(
            f"a batch must have exactly these fields: {', '.join(sorted(expected))}."
        )
    if type(data["format"]) is not int or data["format"] != rules.edition:
        raise InvalidBatch(f"format must be {rules.edition} for this survey.")
    key = rules.parse_key(data.get("period"))
    id_ = parse_id(data["batch"])
    _require_survey(data["survey"], rules)
    reports = _parse_reports(data["reports"])
    return rules.make_batch(id_, reports, key)


class SingleReportReader:
    """Reads batches of one valid report exactly as ``to_json`` writes them, and nothing else.

    Devices send one report at a time, and this takes a fifth of the time of ``parse_batch``.
    """

    def __init__(self, rules: UploadRules) -> None:
        self._rules = rules
        survey = _survey_text(rules.fingerprint, rules.edition)
        period = '"period":"([0-9W-]{4,10})",' if rules.every else "()"
        pattern = (
            rf'\{{"batch":"([0-9a-f]{{32}})","format":{rules.edition},{period}'
            rf'"reports":\[(0|[1-9][0-9]{{0,9}})\],"survey":"{survey}"\}}'
        )
        self._match = re.compile(pattern.encode("ascii")).fullmatch

    def read(self, body: bytes) -> Batch | None:
        """Return the batch, or ``None`` if ``parse_batch`` has to say what the body is."""
        match = self._match(body)
        if match is None:
            return None
        id_, period, report = match.groups()
        if int(report) >= self._rules.outputs:
            return None
        try:
            key = self._rules.parse_key(period.decode("ascii") if self._rules.every else None)
        except InvalidBatch:
            return None
        reports = np.array([int(report)], dtype=np.uint32)
        return self._rules.make_batch(bytes.fromhex(id_.decode("ascii")), reports, key)


def _require_survey(text: object, rules: UploadRules) -> None:
    if rules.edition == 1:
        require_same_survey(parse_fingerprint(text), rules.fingerprint)
        return
    if not isinstance(text, str) or len(text) != _SHORT_FINGERPRINT:
        raise InvalidBatch("survey must be the first 32 digits of the survey's fingerprint.")
    require_same_survey(text, _survey_text(rules.fingerprint, rules.edition))


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
