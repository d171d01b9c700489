"""Bad uploads: the right status, the right problem document, and no change in the store.

Bodies carry canaries. No part of a body may come back in an answer, or go into a log.
"""

import gzip
import json
import logging
import socket
import time
from types import SimpleNamespace

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.aggregator import Settings, create_app
from sfumato.batches import (
    ARROW_MEDIA_TYPE,
    JSON_MEDIA_TYPE,
    MAX_BATCH_BYTES,
    MAX_BATCH_REPORTS,
    to_arrow,
    to_json,
)
from support.http_client import (
    batch_of,
    exchange,
    listen,
    parse_response,
    read_all,
    run_aggregator,
    upload_head,
    upload_path,
)

SURVEY = sf.Survey("places", sf.Uniform(["park", "café", "clinic", "bar", "office"], 1))
OUTPUTS = SURVEY.mechanism.outputs
CANARY = "kanarienvogel"
CANARY_NUMBER = 3_141_592_653
GOOD = batch_of(SURVEY, [1, 0, 2], number=2)
BODY = to_json(GOOD)


@pytest.fixture(scope="module")
def aggregator(tmp_path_factory):
    """One for all: nothing here may change it."""
    with run_aggregator(tmp_path_factory.mktemp("store"), SURVEY) as found:
        assert found.upload(batch_of(SURVEY, [0, 1, 2, 2])).status == 201
        yield found


@pytest.fixture
def refused(aggregator, caplog):
    """Send a body; expect this status and problem, no change of state, and no canary anywhere."""
    caplog.set_level(logging.DEBUG)

    def check(body, status, problem, **headers):
        before = aggregator.dump()
        answer = aggregator.post(
            SURVEY.fingerprint, body, {"Content-Type": JSON_MEDIA_TYPE, **headers}
        )
        assert (answer.status, answer.problem) == (status, problem), answer
        assert aggregator.dump() == before
        spoken = answer.body.decode() + str(answer.headers) + caplog.text
        assert CANARY not in spoken
        assert str(CANARY_NUMBER) not in spoken
        return answer

    return check


def _with(**fields):
    """The good batch with some fields replaced; ``None`` leaves a field out."""
    data = json.loads(BODY) | fields
    return json.dumps({name: value for name, value in data.items() if value is not None}).encode()


def _listed(text):
    """The good batch with this text as its list of reports."""
    assert BODY.count(b"[1,0,2]") == 1
    return BODY.replace(b"[1,0,2]", text.encode())


# --- JSON -----------------------------------------------------------------------------------------

NOT_BATCHES = {
    "nothing": b"",
    "half": BODY[:-1],
    "half of the reports": BODY[: BODY.index(b"0,2")],
    "something after it": BODY + CANARY.encode(),
    "two of them": BODY + BODY,
    "no object": b"[1, 2]",
    "text": json.dumps(CANARY).encode(),
    "null": b"null",
    "deep lists": b"[" * 500_000,
    "deep lists that end": b"[" * 500_000 + b"]" * 500_000,
    "deep objects": b'{"a":' * 170_000,
    "deep reports": _listed("[" * 100_000 + "1" + "]" * 100_000),
    "an unknown field": _with(comment=CANARY),
    "an unknown field without a name": _with(**{"": CANARY}),
    "no format": _with(format=None),
    "no survey": _with(survey=None),
    "a field twice": BODY.replace(b'"format":1', b'"format":1,"format":1'),
    "reports twice": BODY.replace(b'"reports"', b'"reports":[0],"reports"'),
    "another version": _with(format=2),
    "version 0": _with(format=0),
    "a version in text": _with(format="1"),
    "a version that is true": _with(format=True),
    "a version with a point": BODY.replace(b'"format":1', b'"format":1.0'),
    "another survey": _with(survey="ab" * 32),
    "a survey in capitals": _with(survey=SURVEY.fingerprint.upper()),
    "a survey cut short": _with(survey=SURVEY.fingerprint[:63]),
    "a survey with a line end": _with(survey=SURVEY.fingerprint + "\n"),
    "no identifier": _with(batch=""),
    "an identifier in capitals": _with(batch="AB" * 16),
    "an identifier too long": _with(batch="ab" * 17),
    "an identifier in other digits": _with(batch="٣" * 32),
    "an identifier that is a number": _with(batch=CANARY_NUMBER),
    "an identifier in a list": _with(batch=["ab" * 16]),
    "an empty list": _listed("[]"),
    "no list": _listed(str(CANARY_NUMBER)),
    "a list in text": _listed(f'"{CANARY}"'),
    "an object for a list": _listed('{"0":1}'),
    "a fraction": _listed("[1,0.5]"),
    "a whole number with a point": _listed("[1.0]"),
    "an exponent": _listed("[1e0]"),
    "NaN": _listed("[NaN]"),
    "infinity": _listed("[Infinity]"),
    "minus infinity": _listed("[-Infinity]"),
    "a huge exponent": _listed("[1e999999999]"),
    "a leading zero": _listed("[01]"),
    "a plus": _listed("[+1]"),
    "hexadecimal": _listed("[0x1]"),
    "a number of 5,000 digits": _listed(f"[{'7' * 5_000}]"),
    "a number of a million digits": _listed(f"[{'7' * 1_000_000}]"),
    "too many reports": _listed(f"[{','.join('0' * (MAX_BATCH_REPORTS + 1))}]"),
    "a comma at the end": _listed("[1,]"),
    "single quotes": BODY.replace(b'"', b"'"),
    "a comment": BODY + b"// " + CANARY.encode(),
    "a byte-order mark": b"\xef\xbb\xbf" + BODY,
    "UTF-16": BODY.decode().encode("utf-16"),
    "UTF-16 without a mark": BODY.decode().encode("utf-16-le"),
    "UTF-32": BODY.decode().encode("utf-32"),
    "Latin-1": _with(survey="é").decode().replace("\\u00e9", "é").encode("latin-1"),
    "half a surrogate": BODY.replace(b'"survey"', b'"\\ud800"'),
    "NUL": BODY + b"\0",
    "NUL inside": BODY.replace(b'"format":1', b'"format":1\0'),
    "a form": f"reports={CANARY_NUMBER}&survey={SURVEY.fingerprint}".encode(),
    "gzip that is not declared": gzip.compress(BODY),
    "Arrow that is not declared": to_arrow(GOOD),
}


@pytest.mark.parametrize("name", NOT_BATCHES)
def test_malformed_batches_are_refused(refused, name):
    refused(NOT_BATCHES[name], 400, "invalid-batch")


REJECTED = {
    "a negative number": ("[0,1,-1]", 2),
    "the number of outputs": (f"[0,{OUTPUTS}]", 1),
    "a large number": (f"[{CANARY_NUMBER},0]", 0),
    "2^32": (f"[0,0,{2**32}]", 2),
    "2^63": (f"[0,{2**63}]", 1),
    "above 2^64": (f"[0,{2**64 + 1}]", 1),
    "a number of 4,000 digits": (f"[0,{'7' * 4_000}]", 1),
    "a boolean": ("[1,true]", 1),
    "null": ("[1,null]", 1),
    "digits in text": (f'[1,"{CANARY}"]', 1),
    "a list in the list": ("[[1],1]", 0),
    "the first of several": (f"[0,{OUTPUTS},{CANARY_NUMBER}]", 1),
}


@pytest.mark.parametrize("name", REJECTED)
def test_one_bad_report_rejects_its_batch_by_index(refused, name):
    text, index = REJECTED[name]
    assert refused(_listed(text), 422, "report-rejected").json["index"] == index


def test_the_unmodified_body_counts(tmp_path):
    """All of the above differ from it in one thing."""
    with run_aggregator(tmp_path, SURVEY) as aggregator:
        assert (
            aggregator.post(SURVEY.fingerprint, BODY, {"Content-Type": JSON_MEDIA_TYPE}).status
            == 201
        )
        last = _listed(f"[1,0,{OUTPUTS - 1}]").replace(GOOD.id.hex().encode(), b"ab" * 16)
        assert (
            aggregator.post(SURVEY.fingerprint, last, {"Content-Type": JSON_MEDIA_TYPE}).status
            == 201
        )


# --- Arrow ----------------------------------------------------------------------------------------

METADATA = {"sfumato.format": "1", "sfumato.survey": SURVEY.fingerprint, "sfumato.batch": "ab" * 16}
REPORT = pa.field("report", pa.uint32(), nullable=False)
END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def _stream(*columns, fields=(REPORT,), options=None, **metadata):
    """Return a stream with a record batch per list of columns; ``None`` drops a field."""
    named = {name: value for name, value in (METADATA | metadata).items() if value is not None}
    schema = pa.schema(list(fields), metadata=named)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for arrays in columns:
            writer.write_batch(pa.record_batch(list(arrays), schema=schema))
    return bytes(sink.getvalue())


def _reports(*numbers, kind=None):
    return [pa.array(numbers, kind or pa.uint32())]


def _one(kind, *numbers):
    return _stream([pa.array(numbers, kind)], fields=[pa.field("report", kind)])


GOOD_STREAM = _stream(_reports(1, 0, 2))


def _claiming(rows):
    """Return a stream whose record batch declares this many rows, in its header and column."""
    held = MAX_BATCH_REPORTS - 3
    stream = _stream(_reports(*[0] * held))
    mark = held.to_bytes(8, "little")
    assert stream.count(mark) == 2
    return stream.replace(mark, rows.to_bytes(8, "little", signed=True))


def _dictionary():
    kind = pa.dictionary(pa.int32(), pa.uint32())
    return _stream(
        [pa.array([1, 0, 2], pa.uint32()).dictionary_encode()], fields=[pa.field("report", kind)]
    )


NOT_STREAMS = {
    "nothing": b"",
    "an end mark alone": END,
    "JSON": BODY,
    "cut off in the schema": GOOD_STREAM[:100],
    "cut off before the end mark": GOOD_STREAM[:-8],
    "cut off, with an end mark": GOOD_STREAM[:-80] + END,
    "something after it": GOOD_STREAM + CANARY.encode(),
    "two streams": GOOD_STREAM + GOOD_STREAM,
    "two schemas": GOOD_STREAM[:-8] + GOOD_STREAM,
    "no schema": pa.record_batch(_reports(1, 0), names=["report"]).serialize().to_pybytes() + END,
    "no record batch": _stream(),
    "a record batch without rows": _stream(_reports()),
    "compressed buffers (zstd)": _stream(
        _reports(*[1] * 99), options=pa.ipc.IpcWriteOptions(compression="zstd")
    ),
    "compressed buffers (lz4)": _stream(
        _reports(*[1] * 99), options=pa.ipc.IpcWriteOptions(compression="lz4")
    ),
    "a dictionary column": _dictionary(),
    "a missing report": _stream(
        [pa.array([1, None], pa.uint32())], fields=[pa.field("report", pa.uint32())]
    ),
    "another name": _stream(_reports(1), fields=[pa.field("value", pa.uint32())]),
    "another column": _stream(
        [*_reports(1), pa.array([CANARY])], fields=[REPORT, pa.field("comment", pa.string())]
    ),
    "no column": _stream([], fields=[]),
    "signed numbers": _one(pa.int32(), 1, 2),
    "wider numbers": _one(pa.uint64(), 1, 2),
    "floats": _one(pa.float64(), 1.0, 2.0),
    "booleans": _one(pa.bool_(), True),
    "text": _one(pa.string(), CANARY),
    "lists": _one(pa.list_(pa.uint32()), [1]),
    "too many reports": _stream(_reports(*[0] * (MAX_BATCH_REPORTS + 1))),
    "too many reports in two parts": _stream(_reports(*[0] * MAX_BATCH_REPORTS), _reports(0)),
    "a negative number of rows": _claiming(-1),
    "more rows than bytes": _claiming(MAX_BATCH_REPORTS),
    "a huge number of rows": _claiming(2**40),
    "the largest number of rows": _claiming(2**63 - 1),
    "a simulation": _stream(_reports(1), **{"sfumato.simulated": "true"}),
    "no version": _stream(_reports(1), **{"sfumato.format": None}),
    "another version": _stream(_reports(1), **{"sfumato.format": "2"}),
    "another survey": _stream(_reports(1), **{"sfumato.survey": "ab" * 32}),
    "no identifier": _stream(_reports(1), **{"sfumato.batch": None}),
    "an invalid identifier": _stream(_reports(1), **{"sfumato.batch": CANARY}),
    "an identifier that is no text": _stream(_reports(1), **{"sfumato.batch": b"\xff\xfe"}),
}


@pytest.mark.parametrize("name", NOT_STREAMS)
def test_malformed_streams_are_refused(refused, name):
    refused(NOT_STREAMS[name], 400, "invalid-batch", **{"Content-Type": ARROW_MEDIA_TYPE})


@pytest.mark.parametrize(
    ("numbers", "index"), [((0, OUTPUTS), 1), ((CANARY_NUMBER, 0), 0), ((0, 0, 2**32 - 1), 2)]
)
def test_one_bad_report_in_a_stream_rejects_all(refused, numbers, index):
    answer = refused(
        _stream(_reports(*numbers)), 422, "report-rejected", **{"Content-Type": ARROW_MEDIA_TYPE}
    )
    assert answer.json["index"] == index


def test_the_unmodified_stream_counts(tmp_path):
    with run_aggregator(tmp_path, SURVEY) as aggregator:
        for number, stream in enumerate(
            [GOOD_STREAM, _stream(_reports(1), _reports(0, 2)), _claiming(MAX_BATCH_REPORTS - 3)]
        ):
            stream = stream.replace(b"ab" * 16, f"{number:032x}".encode())
            assert (
                aggregator.post(
                    SURVEY.fingerprint, stream, {"Content-Type": ARROW_MEDIA_TYPE}
                ).status
                == 201
            )


# --- kinds, encodings, addresses ------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/problem+json",
        "application/jsonp",
        "*/*",
    ],
)
def test_unknown_media_types_are_not_read(refused, kind):
    refused(BODY, 415, "unknown-media-type", **{"Content-Type": kind})


@pytest.mark.parametrize(
    "encoding", ["br", "deflate", "zstd", "gzip, gzip", "gzip;q=1", "", CANARY]
)
def test_unknown_encodings_are_refused(refused, encoding):
    refused(BODY, 415, "unknown-media-type", **{"Content-Encoding": encoding})


PACKED = gzip.compress(BODY)
NOT_PACKED = {
    "nothing": b"",
    "a plain body": BODY,
    "cut off": PACKED[:-1],
    "cut off in the middle": PACKED[: len(PACKED) // 2],
    "something after it": PACKED + CANARY.encode(),
    "two of them": PACKED + PACKED,
    "a wrong check sum": PACKED[:-5] + bytes([PACKED[-5] ^ 1]) + PACKED[-4:],
    "a wrong header": b"\x1f\x8c" + PACKED[2:],
}


@pytest.mark.parametrize("name", NOT_PACKED)
def test_invalid_gzip_is_refused(refused, name):
    refused(NOT_PACKED[name], 400, "invalid-request", **{"Content-Encoding": "gzip"})


@pytest.mark.parametrize("size", [MAX_BATCH_BYTES + 1, 2**27])
def test_gzip_bombs_are_refused(refused, size):
    bomb = gzip.compress(bytes(size), 9)
    assert len(bomb) < MAX_BATCH_BYTES
    answer = refused(bomb, 413, "body-too-large", **{"Content-Encoding": "gzip"})
    assert answer.headers["connection"] == "close"


def test_nested_gzip_is_decompressed_once(refused):
    refused(
        gzip.compress(gzip.compress(BODY)), 400, "invalid-batch", **{"Content-Encoding": "gzip"}
    )


@pytest.mark.parametrize("pad", [0, 1])
def test_the_size_limit_is_exact(refused, aggregator, pad):
    body = BODY + b" " * (MAX_BATCH_BYTES - len(BODY) - 1) + CANARY.encode()[: pad + 1]
    assert len(body) == MAX_BATCH_BYTES + pad
    for packed in (False, True):
        sent = gzip.compress(body) if packed else body
        headers = {"Content-Encoding": "gzip"} if packed else {}
        refused(sent, *((413, "body-too-large") if pad else (400, "invalid-batch")), **headers)


ADDRESSES = [
    "ab" * 32,
    SURVEY.fingerprint.upper(),
    SURVEY.fingerprint[:-1],
    "0",
    "…",
    "%00",
    "a\0b",
    CANARY,
    " ",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_uploads_to_unknown_surveys_are_404(aggregator, address):
    before = aggregator.dump()
    answer = aggregator.post(address, _with(survey="ab" * 32), {"Content-Type": JSON_MEDIA_TYPE})
    assert (answer.status, answer.problem) == (404, "unknown-survey")
    assert aggregator.dump() == before
    assert CANARY not in answer.body.decode()


def test_invalid_fingerprints_do_not_query_the_database(aggregator, monkeypatch):
    asked = []
    monkeypatch.setattr(aggregator.store, "read_resolved", lambda name: asked.append(name))
    for address in ADDRESSES:
        aggregator.post(address, BODY, {"Content-Type": JSON_MEDIA_TYPE})
    assert asked == ["ab" * 32]


def test_invalid_content_lengths_are_ignored(refused):
    for length in ("²", "-5", "1e9", "", "0x10", " "):
        refused(b"{}", 400, "invalid-batch", **{"Content-Length": length})


def test_unexpected_errors_are_answered_without_their_text(aggregator, caplog, monkeypatch):
    def broken(_):
        raise ValueError(CANARY)

    caplog.set_level(logging.DEBUG)
    before = aggregator.dump()
    monkeypatch.setattr("sfumato.aggregator.http.clients.get_media_type", broken)
    answer = aggregator.post(SURVEY.fingerprint, BODY, {"Content-Type": JSON_MEDIA_TYPE})
    assert (answer.status, answer.problem) == (500, "internal-error")
    assert CANARY not in answer.body.decode() + caplog.text
    assert "ValueError" in caplog.text
    assert aggregator.dump() == before


# --- over sockets ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def line(aggregator):
    """The same store behind a real server that waits for bodies for 0.3 seconds."""
    app = create_app(
        aggregator.store,
        Settings(requests_per_minute=0, reports_per_upload=65_536, body_timeout=0.3),
    )
    with listen(app) as address:
        yield SimpleNamespace(address=address, dump=aggregator.dump)


@pytest.fixture
def unchanged(line, caplog):
    """Nothing has changed in the end, the server goes on, and no canary was logged."""
    caplog.set_level(logging.DEBUG)
    before = line.dump()
    yield
    raw = exchange(line.address, b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert parse_response(raw).json == {"status": "alive"}
    assert line.dump() == before
    assert CANARY not in caplog.text
    assert str(CANARY_NUMBER) not in caplog.text
    assert "Traceback" not in caplog.text


MARKED = _listed(f"[{CANARY_NUMBER}]")


def test_a_stalled_body_times_out(line, unchanged):
    answer = parse_response(
        exchange(
            line.address, upload_head(SURVEY.fingerprint, Content_Length=len(MARKED)), MARKED[:-1]
        )
    )
    assert (answer.status, answer.problem) == (408, "body-too-slow")
    assert str(CANARY_NUMBER) not in answer.body.decode()


def test_a_slow_body_times_out(line, unchanged):
    with socket.create_connection(line.address, timeout=10) as slow:
        slow.sendall(upload_head(SURVEY.fingerprint, Content_Length=len(BODY)))
        for byte in BODY[:-1]:
            try:
                slow.sendall(bytes([byte]))
            except (BrokenPipeError, ConnectionResetError):
                break
            time.sleep(0.02)  # all of it would take more than three seconds
        else:
            pytest.fail("the server went on reading")


@pytest.mark.parametrize("sent", [0, 1, len(MARKED) - 1])
def test_a_truncated_body_counts_nothing(line, unchanged, sent):
    with socket.create_connection(line.address, timeout=10) as cut:
        cut.sendall(upload_head(SURVEY.fingerprint, Content_Length=len(MARKED)) + MARKED[:sent])
        cut.shutdown(socket.SHUT_WR)
        read_all(cut)


def test_a_content_length_that_is_too_small_is_refused(line, unchanged):
    raw = exchange(
        line.address, upload_head(SURVEY.fingerprint, Content_Length=len(MARKED) - 3), MARKED
    )
    assert (
        raw.count(b"HTTP/1.1 ") == raw.count(b"HTTP/1.1 400") > 0
    )  # half a batch, and then no request
    assert str(CANARY_NUMBER).encode() not in raw


@pytest.mark.parametrize("length", [MAX_BATCH_BYTES + 1, 10**8, 10**30])
def test_a_declared_length_is_enough_to_refuse(line, unchanged, length):
    raw = exchange(line.address, upload_head(SURVEY.fingerprint, Content_Length=length))
    if length < 2**63:
        assert parse_response(raw).problem == "body-too-large"
    else:
        assert raw.startswith(b"HTTP/1.1 400")


def _chunked(*chunks):
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)


CHUNKED = {"Transfer_Encoding": "chunked"}


def test_chunked_bodies_are_accepted(line, unchanged):
    sent = _chunked(MARKED[:20], MARKED[20:]) + b"0\r\n\r\n"
    raw = exchange(
        line.address, upload_head(SURVEY.fingerprint, Connection="close", **CHUNKED), sent
    )
    assert parse_response(raw).problem == "report-rejected"


def test_endless_chunked_bodies_time_out(line, unchanged):
    raw = exchange(line.address, upload_head(SURVEY.fingerprint, **CHUNKED), _chunked(MARKED))
    assert parse_response(raw).problem == "body-too-slow"


def test_large_chunked_bodies_are_refused(line, unchanged):
    sent = _chunked(*[bytes(65536)] * 17)
    raw = exchange(line.address, upload_head(SURVEY.fingerprint, **CHUNKED), sent)
    if raw:  # hanging up on somebody who is still talking can cost them the answer
        assert parse_response(raw).problem == "body-too-large"


def test_content_length_with_chunked_encoding_is_refused(line, unchanged):
    sent = _chunked(BODY) + b"0\r\n\r\n"
    raw = exchange(
        line.address, upload_head(SURVEY.fingerprint, Content_Length=len(sent), **CHUNKED), sent
    )
    assert raw.startswith(b"HTTP/1.1 400")


def test_invalid_chunk_sizes_are_refused(line, unchanged):
    raw = exchange(line.address, upload_head(SURVEY.fingerprint, **CHUNKED), b"xyz\r\n" + BODY)
    assert raw.startswith(b"HTTP/1.1 400")


def test_unexpected_errors_leave_no_traceback_in_the_log(line, unchanged, monkeypatch):
    def broken(_):
        raise ValueError(CANARY)

    monkeypatch.setattr("sfumato.aggregator.http.clients.get_media_type", broken)
    head = upload_head(SURVEY.fingerprint, Content_Length=len(MARKED), Connection="close")
    answer = parse_response(exchange(line.address, head, MARKED))
    assert (answer.status, answer.problem) == (500, "internal-error")


def test_a_refused_body_is_not_parsed_as_the_next_request(line, unchanged):
    """The body of an upload that is refused unread holds what looks like an upload of its own."""
    inner = upload_head(SURVEY.fingerprint, Content_Length=len(BODY)) + BODY
    head = upload_head(
        SURVEY.fingerprint, Content_Length=len(inner), Content_Type="text/plain", Connection="close"
    )
    raw = exchange(line.address, head, inner)
    assert parse_response(raw).problem == "unknown-media-type"
    assert raw.count(b"HTTP/1.1 ") == 1


def test_a_valid_upload_on_the_same_connection_counts(tmp_path):
    with run_aggregator(tmp_path, SURVEY) as aggregator:
        app = create_app(
            aggregator.store,
            Settings(requests_per_minute=0, reports_per_upload=65_536, body_timeout=0.3),
        )
        with listen(app) as address:
            for number, head, body in (
                (3, {"Content_Length": len(BODY)}, lambda sent: sent),
                (4, CHUNKED, lambda sent: _chunked(sent[:20], sent[20:]) + b"0\r\n\r\n"),
            ):
                sent = to_json(batch_of(SURVEY, [1, 0, 2], number))
                raw = exchange(
                    address, upload_head(SURVEY.fingerprint, Connection="close", **head), body(sent)
                )
                assert parse_response(raw).status == 201
        assert aggregator.store.read_status(SURVEY.fingerprint).reports == 6


def test_the_address_of_uploads_is_the_documented_one():
    assert upload_path("f") == "/v1/surveys/f/batches"
