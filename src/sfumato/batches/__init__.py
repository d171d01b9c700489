"""Wire formats for batches of reports (JSON or Arrow) and for tallies (JSON)."""

from sfumato.batches.arrow_format import ARROW_MEDIA_TYPE, parse_arrow_batch, to_arrow
from sfumato.batches.batch import (
    FINGERPRINT_PATTERN,
    ID_PATTERN,
    MAX_BATCH_BYTES,
    MAX_BATCH_REPORTS,
    Batch,
    fresh_id,
    is_fingerprint,
    parse_id,
)
from sfumato.batches.json_format import (
    JSON_MEDIA_TYPE,
    SingleReportReader,
    parse_batch,
    to_json,
)
from sfumato.batches.rules import UploadRules
from sfumato.batches.tally_format import TallyExport, parse_tally, tally_to_json

__all__ = [
    "ARROW_MEDIA_TYPE",
    "FINGERPRINT_PATTERN",
    "ID_PATTERN",
    "JSON_MEDIA_TYPE",
    "MAX_BATCH_BYTES",
    "MAX_BATCH_REPORTS",
    "Batch",
    "SingleReportReader",
    "TallyExport",
    "UploadRules",
    "fresh_id",
    "is_fingerprint",
    "parse_arrow_batch",
    "parse_batch",
    "parse_id",
    "parse_tally",
    "tally_to_json",
    "to_arrow",
    "to_json",
]
