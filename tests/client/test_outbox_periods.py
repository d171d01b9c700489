"""The outbox of a repeated survey keeps the period in which it was written."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato.batches import UploadRules, parse_batch, to_json
from sfumato.client.outbox import Outbox, write_outbox
from sfumato.errors import DamagedState

SURVEY = "ab" * 32
URL = "http://127.0.0.1:1"
WEEKLY = UploadRules(2, SURVEY, 10, "week")
ONCE = UploadRules(2, SURVEY, 10)
NOW = datetime(2026, 11, 18, tzinfo=UTC)
REPORTS = np.array([1, 2, 3], dtype=np.uint32)


def write(path, rules):
    write_outbox(str(path), rules, URL, [REPORTS], batch_size=2, now=NOW)


def read(path, rules):
    outbox = Outbox(str(path), rules, URL)
    try:
        return list(outbox.batches())
    finally:
        outbox.close()


@pytest.mark.parametrize(("rules", "period"), [(WEEKLY, "2026-W47"), (ONCE, "")])
def test_every_batch_has_the_period(tmp_path, rules, period):
    write(tmp_path / "outbox", rules)
    batches = read(tmp_path / "outbox", rules)
    assert [batch.key.period for batch in batches] == [period] * 2
    for batch in batches:
        assert parse_batch(to_json(batch), rules).digest == batch.digest
    assert [batch.digest for batch in read(tmp_path / "outbox", rules)] == [
        batch.digest for batch in batches
    ]


@pytest.mark.parametrize("period", [None, b"", b"2026-11", b'2026-W4"', b"\xff"])
def test_a_damaged_period_is_reported_before_anything_is_sent(tmp_path, period):
    path = tmp_path / "outbox"
    write(path, WEEKLY)
    table = pa.parquet.read_table(path)
    metadata = dict(table.schema.metadata)
    assert metadata.pop(b"sfumato.period") == b"2026-W47"
    if period is not None:
        metadata[b"sfumato.period"] = period
    pa.parquet.write_table(table.replace_schema_metadata(metadata), path)
    with pytest.raises(DamagedState, match="truncated or damaged"):
        Outbox(str(path), WEEKLY, URL)
