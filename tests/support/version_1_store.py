"""Make a store of version 1 of the tables, and read all of a store's results.

The store and its results in ``tests/aggregator/store/data`` were written by the package at commit
6d20f96, the last one before version 2:

    PYTHONPATH=OLD/src:tests python -m support.version_1_store tests/aggregator/store/data
"""

import base64
import gzip
import json
import sys
import tempfile
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np

import sfumato as sf
from sfumato.aggregator.store import Store, backend_for
from sfumato.batches import parse_tally, tally_to_json
from sfumato.foundation.canonical import canonical_bytes
from support.unrandomized import batch_id, batch_of, unrandomized_survey

LUNCH = sf.Survey("lunch", sf.Uniform(["park", "café", "clinic"], 1))
PLACES = unrandomized_survey("places", 10_000)  # three pages of counts
SURVEYS = (LUNCH, PLACES)
BATCHES = (
    batch_of(LUNCH, 1, 0, 1, 1),
    batch_of(PLACES, 1, 5, 9_999),
    batch_of(LUNCH, 2, 2),
    batch_of(LUNCH, 3, 1, 2),
    batch_of(PLACES, 2, 5, 4_096),
    batch_of(LUNCH, 4, 0),
)
DAYS = tuple(date(2026, 11, day) for day in range(12, 18))
EXPORT_IDS = (batch_id(101), batch_id(102))
IMPORTED = {
    "counts": base64.b64encode(np.array([7, 0, 3], "<i8").tobytes()).decode(),
    "covers": [batch_id(40).hex(), batch_id(41).hex()],
    "format": 1,
    "survey": LUNCH.fingerprint,
    "tally": batch_id(50).hex(),
}


def fill_store(url):
    """Count reports on several days, export twice, import a tally, and close a survey."""
    time = datetime(2026, 11, 13, 9, 15, tzinfo=UTC)
    store = Store(backend_for(url), now=lambda: time)
    for survey in SURVEYS:
        store.register(survey)
    store.set_setting("note", "kept")
    store.commit(BATCHES[:2])
    time = datetime(2026, 11, 14, 23, 59, tzinfo=UTC)
    store.commit(BATCHES[2:3])
    store.export(LUNCH.fingerprint, EXPORT_IDS[0], LUNCH.mechanism.outputs)
    time = datetime(2026, 11, 16, 0, 0, tzinfo=UTC)
    store.commit(BATCHES[3:5])
    store.import_tally(parse_tally(canonical_bytes(IMPORTED)))
    store.export(LUNCH.fingerprint, EXPORT_IDS[1], LUNCH.mechanism.outputs)
    store.commit(BATCHES[5:])
    store.set_closed(PLACES.fingerprint)
    store.close()


def read_results(store):
    """Return everything that a store can tell, as JSON data."""
    results = {"note": store.get_setting("note"), "states": dict(store.read_states())}
    for survey in SURVEYS:
        results[survey.name] = _read_survey(store, survey)
    return results


def _read_survey(store, survey):
    fingerprint = survey.fingerprint
    outputs = survey.mechanism.outputs
    status = store.read_status(fingerprint)
    between = {}
    for first in DAYS:
        for last in DAYS:
            tally = store.tally_between(fingerprint, outputs, first, last)
            between[f"{first} to {last}"] = _nonzero(tally)
    exports = []
    for id_, reports in store.list_exports(fingerprint):
        body = tally_to_json(store.export(fingerprint, id_, outputs))
        exports.append({"id": id_.hex(), "reports": reports, "tally": body.decode()})
    return {
        "resolved": store.read_resolved(fingerprint).decode(),
        "counts": _nonzero(store.tally(fingerprint, outputs)),
        "between": between,
        "status": [status.state, status.reports, [list(pair) for pair in status.by_hour]],
        "exports": exports,
    }


def _nonzero(tally):
    return {str(report): int(tally.counts[report]) for report in tally.counts.nonzero()[0]}


def main(folder):
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "reports.db"
        url = f"sqlite:///{file}"
        fill_store(url)
        store = Store.open(url)
        results = read_results(store)
        store.close()
        (folder / "version_1.db.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    text = json.dumps(results, indent=1, ensure_ascii=False)
    (folder / "version_1.json").write_text(text + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
