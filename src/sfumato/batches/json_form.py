"""A batch in JSON: what browsers send.

``{"batch":"<32 hexadecimal digits>","format":1,"reports":[3,1],"survey":"<fingerprint>"}``, exactly these fields.
"""

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.batches.batch import LARGEST_BATCH, WIRE_FORMAT, Batch, id_of, survey_of
from sfumato.errors import InvalidBatch, ReportRejected

__all__ = ["JSON", "batch_of_json", "json_bytes"]

JSON = "application/json"
_FIELDS = {"batch", "format", "reports", "survey"}


def json_bytes(batch: Batch) -> bytes:
    """A batch as its sender writes it."""
    listed = ",".join(map(str, batch.reports.tolist()))
    text = f'{{"batch":"{batch.id.hex()}","format":{WIRE_FORMAT},"reports":[{listed}],"survey":"{batch.fingerprint}"}}'
    return text.encode("ascii")


def batch_of_json(body: bytes) -> Batch:
    """Read a batch from nobody one knows; whatever is not exactly a batch is refused, and no value is echoed."""
    try:
        # Decoded first: the parser itself would guess at other encodings.
        data = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_float=_refused,
            parse_constant=_refused,
        )
    except InvalidBatch:
        raise
    except (ValueError, RecursionError):
        raise InvalidBatch(
            "the body must be one JSON object in UTF-8, and nothing after it."
        ) from None
    if not isinstance(data, dict) or set(data) != _FIELDS:
        raise InvalidBatch(
            "a batch has the fields batch, format, reports and survey, and no others."
        )
    if type(data["format"]) is not int or data["format"] != WIRE_FORMAT:
        raise InvalidBatch(f"format must be {WIRE_FORMAT}; this version reads no other.")
    return Batch(id_of(data["batch"]), survey_of(data["survey"]), _numbers(data["reports"]))


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise InvalidBatch("a field is given twice, so it is not clear what is meant.")
    return made


def _refused(_: str) -> object:
    raise InvalidBatch("reports must be whole numbers; found a fraction, an exponent or no number.")


def _numbers(listed: object) -> NDArray[np.uint32]:
    if not isinstance(listed, list) or not 1 <= len(listed) <= LARGEST_BATCH:
        raise InvalidBatch(f"reports must be a list of 1 to {LARGEST_BATCH:,} whole numbers.")
    if set(map(type, listed)) != {int}:  # booleans too are refused: true is not 1
        raise _rejected(next(i for i, report in enumerate(listed) if type(report) is not int))
    if min(listed) < 0 or max(listed) >= 2**32:
        raise _rejected(next(i for i, report in enumerate(listed) if not 0 <= report < 2**32))
    return np.array(listed, dtype=np.uint32)


def _rejected(index: int) -> ReportRejected:
    return ReportRejected(
        f"reports must be whole numbers from 0 on; the one at index {index} is not.", index=index
    )
