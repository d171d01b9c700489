"""Batches and tallies on the wire: exactly these forms, and no value in any error."""

import base64
import hashlib
import json
import subprocess
import sys
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.batches import (
    MAX_BATCH_REPORTS,
    Batch,
    TallyExport,
    UploadRules,
    fresh_id,
    parse_arrow_batch,
    parse_batch,
    parse_tally,
    tally_to_json,
    to_arrow,
    to_json,
)
from sfumato.errors import EntropyUnavailable, InvalidBatch, InvalidTally, ReportRejected
from sfumato.foundation.canonical import canonical_bytes
from sfumato.tally import Tally

LAWS = settings(max_examples=150, deadline=None, derandomize=True, database=None)
FUZZ = settings(max_examples=400, deadline=None, derandomize=True, database=None)

ID = bytes(range(16))
SURVEY = "ab" * 32
RULES = UploadRules(1, SURVEY, 2**32)
CANARY = 3_735_928_559  # a report that no message may hold

batches = st.builds(
    lambda id_, survey, reports: Batch(id_, survey.hex(), np.array(reports, dtype=np.uint32)),
    st.binary(min_size=16, max_size=16),
    st.binary(min_size=32, max_size=32),
    st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=50),
)
tallies = st.builds(
    lambda id_, survey, counts, covers: TallyExport.from_tally(
        id_, Tally(np.array(counts), survey.hex()), tuple(covers)
    ),
    st.binary(min_size=16, max_size=16),
    st.binary(min_size=32, max_size=32),
    st.lists(st.integers(0, 2**56), min_size=1, max_size=40),
    st.lists(st.binary(min_size=16, max_size=16), max_size=5),
)


def batch(*reports):
    return Batch(ID, SURVEY, np.array(reports, dtype=np.uint32))


def same(one, other):
    return (one.id, one.fingerprint, one.reports.tolist()) == (
        other.id,
        other.fingerprint,
        other.reports.tolist(),
    )


# --- the batch ------------------------------------------------------------------------------------


@LAWS
@given(batches)
def test_batches_round_trip_in_both_forms(sent):
    rules = UploadRules(1, sent.fingerprint, 2**32)
    for read, write in ((parse_batch, to_json), (parse_arrow_batch, to_arrow)):
        found = read(write(sent), rules)
        assert same(found, sent)
        assert found.digest == sent.digest
        assert found.reports.dtype == np.uint32


@LAWS
@given(batches)
def test_json_is_canonical(sent):
    as_data = {
        "batch": sent.id.hex(),
        "format": 1,
        "reports": sent.reports.tolist(),
        "survey": sent.fingerprint,
    }
    assert to_json(sent) == canonical_bytes(as_data)


def test_the_largest_batch_fits_both_forms():
    reports = np.arange(MAX_BATCH_REPORTS, dtype=np.uint32) + 2**31
    sent = Batch(ID, SURVEY, reports)
    rules = UploadRules(1, sent.fingerprint, 2**32)
    assert same(parse_batch(to_json(sent), rules), sent)
    assert same(parse_arrow_batch(to_arrow(sent), rules), sent)


@pytest.mark.parametrize(
    "reports",
    [
        np.zeros(0, np.uint32),
        np.zeros(MAX_BATCH_REPORTS + 1, np.uint32),
        np.zeros(3, np.int64),
        np.zeros((1, 1), np.uint32),
        np.uint32(3).reshape(()),
    ],
)
def test_malformed_report_arrays_are_rejected(reports):
    with pytest.raises(InvalidBatch, match=r"1 to 65,536 reports|one-dimensional"):
        Batch(ID, SURVEY, reports)


def test_identifiers_have_16_bytes():
    with pytest.raises(InvalidBatch, match="got 15"):
        Batch(ID[:15], SURVEY, np.zeros(1, np.uint32))


def test_digests_depend_only_on_id_reports_and_order():
    by_hand = hashlib.sha256(b"sfumato/1/content" + ID + b"\x01\0\0\0\x02\0\0\0").digest()[:16]
    assert batch(1, 2).digest == by_hand
    others = [batch(2, 1), batch(1), batch(1, 2, 0), Batch(bytes(16), SURVEY, batch(1, 2).reports)]
    assert len({by_hand, *(one.digest for one in others)}) == 5
    assert Batch(ID, "cd" * 32, np.array([1, 2], dtype=">u4").astype(np.uint32)).digest == by_hand


def test_batches_are_checked_against_their_survey():
    batch(0, 9).require(10)
    with pytest.raises(ReportRejected, match="index 1 is not") as caught:
        batch(9, CANARY, 3, 11).require(10)
    assert caught.value.index == 1
    assert str(CANARY) not in str(caught.value)
    with pytest.raises(ReportRejected, match="index 0"):
        batch(10).require(10)
    others = UploadRules(1, "cd" * 32, 10)
    for parse, body in ((parse_batch, to_json(batch(0))), (parse_arrow_batch, to_arrow(batch(0)))):
        with pytest.raises(InvalidBatch, match="different surveys"):
            parse(body, others)


def test_repr_does_not_show_reports():
    assert str(CANARY) not in repr(batch(CANARY)) + str(batch(CANARY))


def test_identifiers_are_fresh(monkeypatch):
    assert len({fresh_id() for _ in range(100)}) == 100

    def nothing(_):
        raise OSError

    monkeypatch.setattr("os.urandom", nothing)
    with pytest.raises(EntropyUnavailable, match="no randomness"):
        fresh_id()


# --- JSON -----------------------------------------------------------------------------------------


def as_json(**changes):
    """A batch in JSON with some fields changed; ``None`` takes a field away."""
    fields = {"batch": ID.hex(), "format": 1, "reports": [CANARY], "survey": SURVEY, **changes}
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


def test_the_template_for_malformed_json_is_valid():
    assert same(parse_batch(as_json(), RULES), batch(CANARY))
    spaced = as_json().replace(b",", b" ,\n\t") + b"\r\n "
    assert same(parse_batch(spaced, RULES), batch(CANARY))


WRONG_JSON = {
    "nothing": b"",
    "no object": b"[3735928559]",
    "no field": as_json(survey=None),
    "a field too many": as_json(note="3735928559"),
    "another format": as_json(format=2),
    "a format that is true": as_json(format=True),
    "a format with a fraction": as_json(format=1.0),
    "a format in quotes": as_json(format="1"),
    "a name in upper case": as_json(batch=ID.hex().upper()),
    "a name too short": as_json(batch=ID.hex()[1:]),
    "a name with a line end": as_json(batch=ID.hex() + "\n"),
    "a name that is a number": as_json(batch=3735928559),
    "a fingerprint too long": as_json(survey=SURVEY + "a"),
    "a fingerprint in other digits": as_json(survey="٣" * 64),
    "no reports": as_json(reports=[]),
    "a report without a list": as_json(reports=CANARY),
    "reports as an object": as_json(reports={"0": CANARY}),
    "too many reports": as_json(reports=[1] * (MAX_BATCH_REPORTS + 1)),
    "a fraction": as_json().replace(b"3735928559", b"3735928559.0"),
    "an exponent": as_json().replace(b"3735928559", b"3735928559e0"),
    "not a number": as_json().replace(b"3735928559", b"NaN"),
    "infinity": as_json().replace(b"3735928559", b"-Infinity"),
    "a leading zero": as_json().replace(b"3735928559", b"03735928559"),
    "a plus": as_json().replace(b"3735928559", b"+3735928559"),
    "a number that does not end": as_json().replace(b"3735928559", b"3735928559" * 1000),
    "a field twice": as_json()[:-1] + b',"reports":[1]}',
    "something after it": as_json() + b"3735928559",
    "two of them": as_json() * 2,
    "cut off": as_json()[:-1],
    "a mark of byte order": b"\xef\xbb\xbf" + as_json(),
    "UTF-16": as_json().decode().encode("utf-16"),
    "bytes that are no text": as_json().replace(b"batch", b"bat\xff"),
    "a lone surrogate": as_json(batch="\ud800" * 32),
    "very deep": b'{"reports":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a comment": as_json() + b"// 3735928559",
    "a trailing comma": as_json().replace(b"]", b",]"),
}


@pytest.mark.parametrize("body", WRONG_JSON.values(), ids=WRONG_JSON.keys())
def test_malformed_json_is_rejected_without_echo(body):
    with pytest.raises(InvalidBatch) as caught:
        parse_batch(body, RULES)
    no_canary(caught.value)


@pytest.mark.parametrize(
    "report", [-1, 2**32, 2**63, 10**40, True, None, "3735928559", [CANARY], {"a": CANARY}]
)
def test_malformed_reports_are_named_by_index(report):
    with pytest.raises(ReportRejected, match="index 2 is not") as caught:
        parse_batch(as_json(reports=[0, CANARY, report]), RULES)
    assert caught.value.index == 2
    no_canary(caught.value)


def no_canary(error):
    """Neither the error nor what it came from holds the report."""
    while error is not None:
        assert str(CANARY) not in repr(error) + str(error)
        assert CANARY not in vars(error).values()
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


# --- Arrow ----------------------------------------------------------------------------------------

METADATA = {"sfumato.format": "1", "sfumato.survey": SURVEY, "sfumato.batch": ID.hex()}


def as_arrow(columns=None, *, metadata=METADATA, options=None, cuts=()):
    """Return an Arrow stream of these columns, split into record batches at ``cuts``."""
    columns = {"report": pa.array([CANARY, 1, 2], pa.uint32())} if columns is None else columns
    table = pa.table(columns).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        for first, last in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
            writer.write_table(table.slice(first, last - first))
    return bytes(sink.getvalue())


@pytest.mark.parametrize("cuts", [(), (1,), (1, 2), (0, 1), (3,)])
def test_reports_may_come_in_several_record_batches(cuts):
    assert same(parse_arrow_batch(as_arrow(cuts=cuts), RULES), batch(CANARY, 1, 2))


def without(name):
    return {key: value for key, value in METADATA.items() if key != name}


END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
WRONG_ARROW = {
    "nothing": b"",
    "an end mark alone": END,
    "two end marks": END * 2,
    "JSON": to_json(batch(CANARY)),
    "cut off": as_arrow()[:-1],
    "without its end mark": as_arrow()[:-8],
    "something after it": as_arrow() + b"\0",
    "two streams": as_arrow() * 2,
    "another end mark": as_arrow() + END,
    "a file, not a stream": b"ARROW1\0\0" + as_arrow(),
    "no metadata": as_arrow(metadata=None),
    "no format": as_arrow(metadata=without("sfumato.format")),
    "another format": as_arrow(metadata={**METADATA, "sfumato.format": "01"}),
    "no survey": as_arrow(metadata=without("sfumato.survey")),
    "no name": as_arrow(metadata=without("sfumato.batch")),
    "a name in upper case": as_arrow(metadata={**METADATA, "sfumato.batch": ID.hex().upper()}),
    "a name that is no text": as_arrow(metadata={**METADATA, "sfumato.batch": b"\xff" * 32}),
    "a simulation": as_arrow(metadata={**METADATA, "sfumato.simulated": ""}),
    "no columns": as_arrow({}),
    "another column": as_arrow({"reports": pa.array([CANARY], pa.uint32())}),
    "a second column": as_arrow(
        {"report": pa.array([1], pa.uint32()), "who": pa.array([CANARY], pa.uint32())}
    ),
    "signed numbers": as_arrow({"report": pa.array([1], pa.int32())}),
    "wide numbers": as_arrow({"report": pa.array([CANARY], pa.uint64())}),
    "text": as_arrow({"report": pa.array([str(CANARY)])}),
    "a dictionary": as_arrow({"report": pa.array([CANARY], pa.uint32()).dictionary_encode()}),
    "a list": as_arrow({"report": pa.array([[CANARY]], pa.list_(pa.uint32()))}),
    "a missing report": as_arrow({"report": pa.array([CANARY, None], pa.uint32())}),
    "no reports": as_arrow({"report": pa.array([], pa.uint32())}),
    "too many reports": as_arrow({"report": pa.array(np.zeros(MAX_BATCH_REPORTS + 1, np.uint32))}),
    "too many in pieces": as_arrow(
        {"report": pa.array(np.zeros(MAX_BATCH_REPORTS + 1, np.uint32))}, cuts=[MAX_BATCH_REPORTS]
    ),
    "compressed": as_arrow(options=pa.ipc.IpcWriteOptions(compression="lz4")),
    "a compressed bomb": as_arrow(
        {"report": pa.array(np.zeros(MAX_BATCH_REPORTS, np.uint32))},
        options=pa.ipc.IpcWriteOptions(compression="zstd"),
    ),
}


@pytest.mark.parametrize("body", WRONG_ARROW.values(), ids=WRONG_ARROW.keys())
def test_malformed_arrow_is_rejected_without_echo(body):
    with pytest.raises(InvalidBatch) as caught:
        parse_arrow_batch(body, RULES)
    no_canary(caught.value)


def test_big_endian_streams_are_rejected():
    told = []
    for place in range(
        200
    ):  # the one place in the schema where a reader of whole streams turns the reports
        body = bytearray(as_arrow({"report": pa.array([1], pa.uint32())}))
        body[place] ^= 1
        try:
            turned = pa.ipc.open_stream(bytes(body)).read_all().column("report").to_pylist() == [
                2**24
            ]
        except (pa.ArrowException, OSError, KeyError):
            continue
        if turned:
            told.append(place)
            with pytest.raises(InvalidBatch, match="little-endian"):
                parse_arrow_batch(bytes(body), RULES)
    assert told


@pytest.mark.parametrize("rows", [2**62, MAX_BATCH_REPORTS + 1, 4, -1, -(2**63)])
def test_false_row_counts_are_rejected(rows):
    body = as_arrow({"report": pa.array([1, 2, 3], pa.uint32())})
    told = body.replace(
        (3).to_bytes(8, "little", signed=True), rows.to_bytes(8, "little", signed=True)
    )
    assert told != body
    with pytest.raises(InvalidBatch):
        parse_arrow_batch(told, RULES)


# --- tallies --------------------------------------------------------------------------------------


@LAWS
@given(tallies)
def test_tallies_round_trip(sent):
    found = parse_tally(tally_to_json(sent))
    assert (found.id, found.tally, found.covers) == (
        sent.id,
        sent.tally,
        tuple(sorted(sent.covers)),
    )
    assert found.digest == sent.digest
    assert same_tally(parse_tally(tally_to_json(sent) + b"\n"), sent)


def same_tally(one, other):
    return tally_to_json(one) == tally_to_json(other)


def as_tally(**changes):
    counts = np.array([1, CANARY], "<i8").tobytes()
    fields = {
        "counts": base64.b64encode(counts).decode(),
        "covers": [],
        "format": 1,
        "survey": SURVEY,
        "tally": ID.hex(),
    }
    return json.dumps({**fields, **changes}, sort_keys=True, separators=(",", ":")).encode()


def packed(*numbers):
    return base64.b64encode(np.array(numbers, "<i8").tobytes()).decode()


WRONG_TALLIES = {
    "nothing": b"",
    "no object": b"[]",
    "a field too many": as_tally(note=1),
    "another format": as_tally(format=2),
    "a format that is true": as_tally(format=True),
    "counts as a list": as_tally(counts=[1, 2]),
    "no counts": as_tally(counts=""),
    "counts cut off": as_tally(counts=base64.b64encode(b"\1" * 12).decode()),
    "counts that are not base64": as_tally(counts="AQAAAAAAAA*="),
    "counts in no ASCII": as_tally(counts="é"),
    "counts with spaces": as_tally(counts=packed(1)[:4] + " " + packed(1)[4:]),
    "a negative count": as_tally(counts=packed(5, -1)),
    "too large": as_tally(counts=packed(2**62, 1)),
    "a sum that wraps around": as_tally(counts=packed(*[2**62] * 4)),
    "covers as text": as_tally(covers=ID.hex()),
    "covers that are numbers": as_tally(covers=[1]),
    "covers out of order": as_tally(covers=["bb" * 16, "aa" * 16]),
    "a name in upper case": as_tally(tally=ID.hex().upper()),
    "a survey too short": as_tally(survey=SURVEY[1:]),
    "spaces": as_tally().replace(b",", b", "),
    "a field twice": as_tally()[:-1] + b',"tally":"' + ID.hex().encode() + b'"}',
    "something after it": as_tally() + b" ",
    "a mark of byte order": b"\xef\xbb\xbf" + as_tally(),
    "very deep": b"[" * 100_000,
    "an endless number": as_tally().replace(b'"format":1', b'"format":' + b"1" * 5_000),
}


@pytest.mark.parametrize("body", WRONG_TALLIES.values(), ids=WRONG_TALLIES.keys())
def test_malformed_tallies_are_rejected(body):
    assert parse_tally(as_tally()).tally.counts.tolist() == [1, CANARY]
    with pytest.raises(InvalidTally):
        parse_tally(body)


# --- mutated bytes --------------------------------------------------------------------------------

MUTATIONS = st.lists(
    st.tuples(
        st.sampled_from(["set", "flip", "delete", "insert", "repeat", "zero"]),
        st.floats(0, 1, exclude_max=True),
        st.integers(1, 16),
        st.binary(min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=4,
)


def mutated(body, mutations):
    """The body with a few bytes changed, taken out, put in, or repeated."""
    for how, where, size, with_ in mutations:
        i = int(where * len(body))
        if how == "set":
            body = body[:i] + with_ + body[i + len(with_) :]
        elif how == "flip" and body:
            body = body[:i] + bytes([body[i] ^ (1 << size % 8)]) + body[i + 1 :]
        elif how == "delete":
            body = body[:i] + body[i + size :]
        elif how == "insert":
            body = body[:i] + with_ + body[i:]
        elif how == "repeat":
            body = body[: i + size] + body[i:]
        elif how == "zero":
            body = body[:i] + bytes(size) + body[i + size :]
    return body


@FUZZ
@given(batches, MUTATIONS)
def test_mutated_json_parses_or_is_rejected(sent, mutations):
    body = mutated(to_json(sent), mutations)
    try:
        found = parse_batch(body, UploadRules(1, sent.fingerprint, 2**32))
    except (InvalidBatch, ReportRejected):
        return
    # What is read says the same as what any other reader of JSON finds there.
    assert {**json.loads(body)} == json.loads(to_json(found))


@FUZZ
@given(batches, MUTATIONS)
def test_mutated_arrow_parses_or_is_rejected(sent, mutations):
    body = mutated(to_arrow(sent), mutations)
    try:
        found = parse_arrow_batch(body, UploadRules(1, sent.fingerprint, 2**32))
    except (InvalidBatch, ReportRejected):
        return
    with pa.ipc.open_stream(body) as reader:
        assert found.reports.tolist() == reader.read_all().column("report").to_pylist()


@FUZZ
@given(tallies, MUTATIONS)
def test_mutated_tallies_differ_or_are_rejected(sent, mutations):
    body = mutated(tally_to_json(sent), mutations)
    try:
        found = parse_tally(body)
    except InvalidTally:
        return
    assert tally_to_json(found) == body.rstrip(b"\n")


@FUZZ
@given(st.binary(max_size=200))
def test_noise_is_rejected(body):
    for read, error in (
        (partial(parse_batch, rules=RULES), InvalidBatch),
        (partial(parse_arrow_batch, rules=RULES), InvalidBatch),
        (parse_tally, InvalidTally),
    ):
        with pytest.raises(error):
            read(body)
    with pytest.raises(InvalidBatch):
        parse_arrow_batch(body + END, RULES)


@LAWS
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=4),
    )
)
def test_any_json_value_in_any_field_parses_or_is_rejected(value):
    for field in ("batch", "format", "reports", "survey"):
        body = json.dumps(json.loads(as_json()) | {field: value}).encode()
        try:
            found = parse_batch(body, RULES)
        except (InvalidBatch, ReportRejected):
            continue
        assert found.reports.tolist() == json.loads(body)["reports"]


def test_reading_arrow_does_not_import_pandas():
    """It would take a second, during which an aggregator answers nobody."""
    pytest.importorskip("pandas")
    program = """
import sys
from sfumato.batches import UploadRules, parse_arrow_batch

batch = parse_arrow_batch(bytes.fromhex(sys.argv[1]), UploadRules(1, "ab" * 32, 10))
assert batch.reports.tolist() == [3, 1]
assert "pandas" not in sys.modules
"""
    batch = Batch(bytes(16), "ab" * 32, np.array([3, 1], dtype=np.uint32))
    subprocess.run([sys.executable, "-c", program, to_arrow(batch).hex()], check=True)
