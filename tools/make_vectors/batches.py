"""Reports → the body of an upload."""

from collections.abc import Iterator

import numpy as np

from sfumato.batches import Batch, to_json
from sfumato.conformance import Case
from tools.make_vectors.case import accept, load
from tools.make_vectors.catalogue import large_questions

__all__ = ["batches"]


def batches() -> Iterator[Case]:
    """Batches of one report and of several."""
    survey = large_questions()[0].survey()
    yield load(survey)
    for name, reports in (
        ("00" * 16, [0]),
        ("0123456789abcdef" * 2, [65_535]),
        ("ff" * 16, [3, 1, 4, 1, 5]),
    ):
        batch = Batch(bytes.fromhex(name), survey.fingerprint, np.array(reports, dtype=np.uint32))
        request = {"op": "batch", "survey": survey.fingerprint, "batch": name, "reports": reports}
        yield accept(f"{len(reports)} reports", request, {"body": to_json(batch).decode("ascii")})
