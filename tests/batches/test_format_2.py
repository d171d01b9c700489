"""Batches and tallies of format 2: one form each, with exactly the fields of the survey."""

import base64
import hashlib
import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.batches import (
    Batch,
    TallyExport,
    UploadRules,
    parse_arrow_batch,
    parse_batch,
    parse_tally,
    tally_to_json,
    to_arrow,
    to_json,
)
from sfumato.cells import NO_KEY, CellKey, TallyCells
from sfumato.errors import InvalidBatch, InvalidTally
from sfumato.foundation.canonical import canonical_bytes
from sfumato.foundation.periods import PERIODS, period_name
from sfumato.tally import Tally
from support.error_text import full_error_text

LAWS = settings(max_examples=100, deadline=None, derandomize=True, database=None)
ID = bytes(range(16))
SURVEY = "ab" * 16 + "cd" * 16
WEEK = "2026-W46"
CANARY = "kanarienvogel"
REPORTS = np.array([3, 1], dtype=np.uint32)
RULES = {
    "format 1": UploadRules(1, SURVEY, 2**32),
    "once": UploadRules(2, SURVEY, 2**32),
    "weekly": UploadRules(2, SURVEY, 2**32, "week"),
}
ONCE = Batch(ID, SURVEY, REPORTS, edition=2)
WEEKLY = Batch(ID, SURVEY, REPORTS, CellKey(WEEK), 2)
FORMAT_1 = Batch(ID, SURVEY, REPORTS)
BATCHES = {"format 1": FORMAT_1, "once": ONCE, "weekly": WEEKLY}


def fields_of(batch):
    return batch.id, batch.fingerprint, batch.reports.tolist(), batch.key, batch.edition


def rules_for(survey, every=""):
    return UploadRules(2, survey, 2**32, every)


# --- round trips ----------------------------------------------------------------------------------

moments = st.datetimes(datetime(1900, 1, 1), datetime(9000, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)
batches = st.builds(
    lambda id_, survey, reports, every, moment: (
        Batch(
            id_,
            survey.hex(),
            np.array(reports, dtype=np.uint32),
            CellKey(period_name(every, moment) if every else ""),
            2,
        ),
        every,
    ),
    st.binary(min_size=16, max_size=16),
    st.binary(min_size=32, max_size=32),
    st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=30),
    st.sampled_from(["", *PERIODS]),
    moments,
)


@LAWS
@given(batches)
def test_batches_round_trip_in_both_forms(sent_for):
    sent, every = sent_for
    rules = rules_for(sent.fingerprint, every)
    for parse, write in ((parse_batch, to_json), (parse_arrow_batch, to_arrow)):
        body = write(sent)
        found = parse(body, rules)
        assert fields_of(found) == fields_of(sent)
        assert found.digest == sent.digest
        assert write(found) == body


@LAWS
@given(batches)
def test_json_is_canonical_and_has_half_of_the_fingerprint(sent_for):
    sent, every = sent_for
    data = {
        "batch": sent.id.hex(),
        "format": 2,
        "reports": sent.reports.tolist(),
        "survey": sent.fingerprint[:32],
    }
    if every:
        data["period"] = sent.key.period
    assert to_json(sent) == canonical_bytes(data)


def test_arrow_has_the_whole_fingerprint():
    with pa.ipc.open_stream(to_arrow(WEEKLY)) as reader:
        assert reader.schema.metadata == {
            b"sfumato.format": b"2",
            b"sfumato.survey": SURVEY.encode(),
            b"sfumato.batch": ID.hex().encode(),
            b"sfumato.period": WEEK.encode(),
        }


def test_rules_come_from_the_survey():
    context = sf.Uniform(["park", "café", "clinic"], 1)
    weekly = {"every": "week", "distinct": 1}
    for edition, repeat, every in ((1, "once", ""), (1, weekly, ""), (2, "once", "")):
        survey = sf.Survey("lunch", context, repeat=repeat, edition=edition)
        expected = UploadRules(edition, survey.fingerprint, survey.mechanism.outputs, every)
        assert UploadRules.from_survey(survey) == expected
    survey = sf.Survey("lunch", context, repeat=weekly, edition=2)
    assert UploadRules.from_survey(survey).every == "week"


# --- what does not fit the survey -----------------------------------------------------------------


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("rules", RULES)
def test_a_batch_fits_only_its_own_kind_of_survey(batch, rules):
    for parse, write in ((parse_batch, to_json), (parse_arrow_batch, to_arrow)):
        body = write(BATCHES[batch])
        if batch == rules:
            assert fields_of(parse(body, RULES[rules])) == fields_of(BATCHES[batch])
        else:
            with pytest.raises(InvalidBatch, match=r"exactly these fields|must be [12] for this"):
                parse(body, RULES[rules])


def as_json(base=WEEKLY, **changes):
    """A batch in JSON with some fields changed; ``None`` takes a field away."""
    fields = json.loads(to_json(base)) | changes
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


WRONG_PERIODS = {
    "empty": "",
    "a month": "2026-11",
    "a day": "2026-11-15",
    "no such week": "2026-W54",
    "a space": "2026-W46 ",
    "lower case": "2026-w46",
    "other digits": "2026-W٤٦",
    "a quotation mark": '2026-W4"',
    "more fields": 'x","reports":[1',
    "a canary": CANARY,
    "a lone surrogate": "\ud800",
    "a null character": "\0",
}


@pytest.mark.parametrize("period", WRONG_PERIODS.values(), ids=WRONG_PERIODS)
def test_malformed_periods_are_rejected_without_echo(period):
    bodies = {parse_batch: as_json(period=period)}
    if "\ud800" not in period:
        bodies[parse_arrow_batch] = as_arrow({"sfumato.period": period})
    for parse, body in bodies.items():
        with pytest.raises(InvalidBatch, match="period must be the name of the week") as caught:
            parse(body, RULES["weekly"])
        assert CANARY not in full_error_text(caught.value)


@pytest.mark.parametrize("period", [None, True, 2026, [WEEK], {"period": WEEK}])
def test_periods_are_text(period):
    body = json.dumps(json.loads(to_json(WEEKLY)) | {"period": period}).encode()
    with pytest.raises(InvalidBatch, match="period must be the name of the week"):
        parse_batch(body, RULES["weekly"])


WRONG_JSON = {
    "no period": as_json(period=None),
    "a period too many": as_json(period=None)[:-1] + f',"period":"{WEEK}"'.encode() * 2 + b"}",
    "a reserved field": as_json(group="north"),
    "a key": as_json(period=None, key={"period": WEEK}),
    "a format in quotes": as_json(format="2"),
    "a format with a fraction": as_json(format=2.0),
    "a format that is true": as_json(format=True),
    "format 3": as_json(format=3),
    "the whole fingerprint": as_json(survey=SURVEY),
    "the other half of the fingerprint": as_json(survey=SURVEY[32:]),
    "31 digits": as_json(survey=SURVEY[:31]),
    "33 digits": as_json(survey=SURVEY[:33]),
    "capitals": as_json(survey=SURVEY[:32].upper()),
    "a survey that is a list": as_json(survey=[SURVEY[:32]]),
    "another survey": as_json(survey="12" * 16),
}


@pytest.mark.parametrize("body", WRONG_JSON.values(), ids=WRONG_JSON)
def test_malformed_json_is_rejected(body):
    assert fields_of(parse_batch(as_json(), RULES["weekly"])) == fields_of(WEEKLY)
    with pytest.raises(InvalidBatch):
        parse_batch(body, RULES["weekly"])


def as_arrow(changes=(), base=WEEKLY, more=()):
    """A batch in Arrow with some metadata changed; ``None`` takes a field away."""
    with pa.ipc.open_stream(to_arrow(base)) as reader:
        table = reader.read_all()
    metadata = {name.decode(): value for name, value in table.schema.metadata.items()}
    metadata |= changes
    kept = [(name, value) for name, value in metadata.items() if value is not None]
    table = table.replace_schema_metadata(pa.KeyValueMetadata([*kept, *more]))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


WRONG_ARROW = {
    "no period": as_arrow({"sfumato.period": None}),
    "a reserved field": as_arrow({"sfumato.group": "north"}),
    "an empty reserved field": as_arrow({"sfumato.cohort": ""}),
    "another format": as_arrow({"sfumato.format": "1"}),
    "format 3": as_arrow({"sfumato.format": "3"}),
    "half of the fingerprint": as_arrow({"sfumato.survey": SURVEY[:32]}),
    "another survey": as_arrow({"sfumato.survey": SURVEY[32:] * 2}),
    "a simulation": as_arrow({"sfumato.simulated": ""}),
    "another period too": as_arrow(more=[("sfumato.period", "2026-W45")]),
    "the same period twice": as_arrow(more=[("sfumato.period", WEEK)]),
}


@pytest.mark.parametrize("body", WRONG_ARROW.values(), ids=WRONG_ARROW)
def test_malformed_arrow_is_rejected(body):
    with pytest.raises(InvalidBatch):
        parse_arrow_batch(body, RULES["weekly"])


@pytest.mark.parametrize("period", ["", WEEK])
def test_a_survey_answered_once_has_no_periods(period):
    with pytest.raises(InvalidBatch, match="exactly these fields"):
        parse_arrow_batch(as_arrow({"sfumato.period": period}, base=ONCE), RULES["once"])
    with pytest.raises(InvalidBatch, match="exactly these fields"):
        parse_batch(as_json(ONCE, period=period), RULES["once"])


def test_metadata_of_other_programs_is_ignored():
    body = as_arrow({"pandas": "{}"})
    assert fields_of(parse_arrow_batch(body, RULES["weekly"])) == fields_of(WEEKLY)


def test_format_1_ignores_other_metadata_as_before():
    body = as_arrow({"sfumato.period": WEEK, "sfumato.group": "x"}, base=FORMAT_1)
    assert fields_of(parse_arrow_batch(body, RULES["format 1"])) == fields_of(FORMAT_1)


# --- digests --------------------------------------------------------------------------------------


def test_digests_differ_by_period_and_format():
    content = b"\x03\0\0\0\x01\0\0\0"
    key = b'{"period":"2026-W46"}'
    by_hand = {
        "format 1": hashlib.sha256(b"sfumato/1/content" + ID + content).digest()[:16],
        "once": hashlib.sha256(b"sfumato/2/content" + ID + bytes(4) + content).digest()[:16],
        "weekly": hashlib.sha256(
            b"sfumato/2/content" + ID + bytes([len(key), 0, 0, 0]) + key + content
        ).digest()[:16],
    }
    assert {name: batch.digest for name, batch in BATCHES.items()} == by_hand
    others = [Batch(ID, SURVEY, REPORTS, CellKey(f"2026-W{week}"), 2) for week in range(10, 53)]
    digests = {other.digest for other in others} | set(by_hand.values())
    assert len(digests) == len(others) + 2  # one of them is that of week 46


# --- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", ["", *PERIODS])
@pytest.mark.parametrize("report", [0, 9, 2**32 - 1])
def test_a_single_report_is_at_most_5_percent_larger_than_in_format_1(every, report):
    reports = np.array([report], dtype=np.uint32)
    key = CellKey(period_name(every, datetime(2026, 11, 15, tzinfo=UTC)) if every else "")
    old = to_json(Batch(ID, SURVEY, reports))
    new = to_json(Batch(ID, SURVEY, reports, key, 2))
    assert len(new) <= 1.05 * len(old)


@pytest.mark.parametrize("period", ["", WEEK, "2026-11-15"])
def test_bulk_uploads_are_at_most_5_percent_larger_than_in_format_1(period):
    reports = np.arange(10_000, dtype=np.uint32)
    for write in (to_arrow, to_json):
        old = write(Batch(ID, SURVEY, reports))
        new = write(Batch(ID, SURVEY, reports, CellKey(period), 2))
        assert len(new) <= 1.05 * len(old)


# --- tallies --------------------------------------------------------------------------------------

counts = st.lists(st.integers(0, 2**50), min_size=3, max_size=3)
exports = st.builds(
    lambda id_, found, covers: TallyExport(
        id_,
        TallyCells({CellKey(name): Tally(np.array(c), SURVEY) for name, c in found.items()}),
        tuple(covers),
        2,
    ),
    st.binary(min_size=16, max_size=16),
    st.dictionaries(
        st.just("") | moments.map(lambda moment: period_name("week", moment)), counts, min_size=1
    ),
    st.lists(st.binary(min_size=16, max_size=16), max_size=3),
)


@LAWS
@given(exports)
def test_tallies_round_trip(sent):
    body = tally_to_json(sent)
    for found in (parse_tally(body), parse_tally(body + b"\n")):
        assert found.cells == sent.cells
        assert (found.id, found.edition) == (sent.id, 2)
        assert found.covers == tuple(sorted(sent.covers))
        assert found.digest == sent.digest
        assert tally_to_json(found) == body
    RULES["weekly"].require_export(sent)


def packed(*numbers):
    return base64.b64encode(np.array(numbers, "<i8").tobytes()).decode()


def cell(period=None, *numbers):
    key = {} if period is None else {"period": period}
    return {"counts": packed(*(numbers or (1, 2, 3))), "key": key}


def as_tally(**changes):
    cells = [cell("2026-W45"), cell(WEEK, 0, 0, 4)]
    fields = {"cells": cells, "covers": [], "format": 2, "survey": SURVEY, "tally": ID.hex()}
    return json.dumps({**fields, **changes}, sort_keys=True, separators=(",", ":")).encode()


WRONG_TALLIES = {
    "format 1": as_tally(format=1),
    "format 3": as_tally(format=3),
    "a format that is true": as_tally(format=True),
    "counts next to cells": as_tally(counts=packed(1, 2, 3)),
    "no cells": as_tally(cells=[]),
    "cells as an object": as_tally(cells=cell(WEEK)),
    "a cell that is a list": as_tally(cells=[[packed(1), {}]]),
    "a cell without a key": as_tally(cells=[{"counts": packed(1)}]),
    "a cell with a field too many": as_tally(cells=[{**cell(WEEK), "sender": ""}]),
    "a key with a reserved part": as_tally(cells=[{**cell(), "key": {"group": "north"}}]),
    "a key that is text": as_tally(cells=[{**cell(), "key": WEEK}]),
    "a key that is null": as_tally(cells=[{**cell(), "key": None}]),
    "an empty period": as_tally(cells=[cell("")]),
    "a period that is a number": as_tally(cells=[cell(2026)]),
    "a period that is a lone surrogate": as_tally(cells=[cell("\ud800")]),
    "a period in other digits": as_tally(cells=[cell("٢٠٢٦")]),
    "keys out of order": as_tally(cells=[cell(WEEK), cell("2026-W45")]),
    "a key twice": as_tally(cells=[cell(WEEK), cell(WEEK)]),
    "no key last": as_tally(cells=[cell(WEEK), cell()]),
    "fewer counts in a cell": as_tally(cells=[cell("2026-W45"), cell(WEEK, 1, 2)]),
    "no counts": as_tally(cells=[{"counts": "", "key": {}}]),
    "a negative count": as_tally(cells=[cell(WEEK, 1, -1)]),
    "too large together": as_tally(cells=[cell("2026-W45", 2**62), cell(WEEK, 1)]),
    "too large together, wrapping": as_tally(cells=[cell(f"2026-W1{i}", 2**62) for i in range(4)]),
    "two line ends": as_tally() + b"\n\n",
    "a line end of Windows": as_tally() + b"\r\n",
    "spaces": as_tally().replace(b",", b", "),
    "a key twice in a cell": as_tally().replace(b'"key":', b'"key":{},"key":'),
}


@pytest.mark.parametrize("body", WRONG_TALLIES.values(), ids=WRONG_TALLIES)
def test_malformed_tallies_are_rejected(body):
    assert parse_tally(as_tally()).tally.counts.tolist() == [1, 2, 7]
    with pytest.raises(InvalidTally):
        parse_tally(body)


def export_of(*periods, edition=2):
    tally = Tally(np.array([1, 2]), SURVEY)
    return TallyExport(ID, TallyCells({CellKey(name): tally for name in periods}), (), edition)


def test_tallies_must_have_the_format_and_the_periods_of_the_survey():
    RULES["format 1"].require_export(export_of("", edition=1))
    RULES["once"].require_export(export_of(""))
    RULES["weekly"].require_export(export_of("", WEEK))  # reports from tables have no period
    for rules, export in (
        ("format 1", export_of("")),
        ("once", export_of("", edition=1)),
        ("weekly", export_of("", edition=1)),
    ):
        with pytest.raises(InvalidTally, match=r"format must be [12] for this survey"):
            RULES[rules].require_export(export)
    for rules, period in (
        ("once", WEEK),
        ("weekly", "2026-11"),
        ("weekly", "2026-W54"),
        ("weekly", CANARY),
    ):
        with pytest.raises(InvalidTally, match="not one of this survey's periods") as caught:
            RULES[rules].require_export(export_of("", period))
        assert CANARY not in str(caught.value)


def test_an_export_of_format_1_has_no_cells_on_the_wire():
    export = TallyExport.from_tally(ID, Tally(np.array([1, 2]), SURVEY))
    assert dict(export.cells.cells) == {NO_KEY: export.tally}
    assert set(json.loads(tally_to_json(export))) == {
        "counts", "covers", "format", "survey", "tally",
    }  # fmt: skip
