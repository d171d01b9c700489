"""The usual upload of a device: answered exactly as the general endpoint would, and sooner."""

import asyncio
import json
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.aggregator.store import Outcome, Store
from sfumato.batches import JSON_MEDIA_TYPE, SingleReportReader, to_json
from sfumato.errors import StoreFull, StoreUnavailable
from support.http_client import batch_of, run_aggregator, upload_path

PLACES = ["park", "café", "clinic", "bar", "office"]
ONCE = sf.Survey("places", sf.Uniform(PLACES, 1))
WEEKLY = sf.Survey(
    "weekly", sf.Uniform(PLACES, 1), edition=2, repeat={"every": "week", "distinct": 5}
)
CLOSED = sf.Survey("closed", sf.Uniform(PLACES, 1), closes="2026-01-01")
LATER = sf.Survey("later", sf.Uniform(PLACES, 1), opens="2100-01-01")
SURVEYS = [ONCE, WEEKLY, CLOSED, LATER]
NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
JSON = {"Content-Type": JSON_MEDIA_TYPE}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two equal aggregators: one is asked in the usual way, one at its general endpoint."""
    with ExitStack() as stack:
        aggregators = []
        for name in ("usual", "general"):
            folder = tmp_path_factory.mktemp(name)
            running = run_aggregator(folder, *SURVEYS, now=lambda: NOW, reports_per_upload=2)
            aggregator = stack.enter_context(running)
            for survey in SURVEYS:
                aggregator.http.get(f"/v1/surveys/{survey.fingerprint}")
            aggregators.append(aggregator)
        yield aggregators


def compare(pair, survey, body, headers=JSON, path=None):
    """Ask both aggregators, and require the same response and the same counts."""
    path = path or upload_path(survey.fingerprint)
    usual, general = pair
    response = usual.http.request("POST", path, body=body, headers=headers)
    expected = general.http.request("POST", path, body=body, headers=headers, is_general=True)
    expected.headers.pop("vary", None)  # Starlette sets it even where a cache may not store
    response.headers.pop("vary", None)
    assert response == expected
    for known in SURVEYS:
        assert tally_of(usual, known) == tally_of(general, known)
    return response


def tally_of(aggregator, survey):
    return aggregator.store.tally(survey.fingerprint, survey.mechanism.outputs)


HEADERS = {
    "usual": JSON,
    "from a page": JSON | {"Origin": "https://example.org"},
    "from a page with a cookie": JSON | {"Origin": "https://example.org", "Cookie": "a=b"},
    "with a cookie": JSON | {"Cookie": "a=b"},
    "with a wrong key": JSON | {"Authorization": "Bearer nonsense"},
    "with an empty key": JSON | {"Authorization": ""},
    "identity": JSON | {"Content-Encoding": "identity"},
    "gzip, falsely": JSON | {"Content-Encoding": "gzip"},
    "an unknown encoding": JSON | {"Content-Encoding": "br"},
    "a charset": {"Content-Type": "application/json; charset=utf-8"},
    "capitals": {"Content-Type": "Application/JSON"},
    "text": {"Content-Type": "text/plain"},
    "no type": {},
    "a forged address": JSON | {"X-Forwarded-For": "198.51.100.7"},
}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("survey", SURVEYS, ids=lambda survey: survey.name)
def test_headers_are_read_in_the_same_way(pair, survey, name):
    number = 1000 + list(HEADERS).index(name)
    for _ in range(2):  # new, then repeated
        compare(pair, survey, body_of(survey, number), HEADERS[name])


def body_of(survey, number, report=1):
    period = "2026-W46" if survey is WEEKLY else ""
    return to_json(batch_of(survey, [report], number=number, period=period))


def replaced(survey, /, **fields):
    """Return a canonical body with other values, which may be wrong."""
    data = json.loads(body_of(survey, 3)) | fields
    return json.dumps(data, separators=(",", ":"), sort_keys=True).encode()


BODIES = {
    "the largest report": lambda survey: replaced(survey, reports=[4]),
    "a report that is too large": lambda survey: replaced(survey, reports=[5]),
    "a report of ten digits": lambda survey: replaced(survey, reports=[4_294_967_295]),
    "a report beyond 32 bits": lambda survey: replaced(survey, reports=[9_999_999_999]),
    "a report of eleven digits": lambda survey: replaced(survey, reports=[10_000_000_000]),
    "a leading zero": lambda survey: replaced(survey, reports=[7]).replace(b"[7]", b"[01]"),
    "other digits": lambda survey: replaced(survey, reports=[7]).replace(b"[7]", "[٣]".encode()),
    "a negative report": lambda survey: replaced(survey, reports=[-1]),
    "two reports": lambda survey: replaced(survey, reports=[0, 1]),
    "three reports": lambda survey: replaced(survey, reports=[0, 1, 2]),
    "no report": lambda survey: replaced(survey, reports=[]),
    "another format": lambda survey: replaced(survey, format=3),
    "a period that is long past": lambda survey: replaced(survey, period="2020-W01"),
    "a period in the future": lambda survey: replaced(survey, period="2099-W01"),
    "a week that does not exist": lambda survey: replaced(survey, period="2026-W54"),
    "a day": lambda survey: replaced(survey, period="2026-11-18"),
    "another survey": lambda survey: replaced(survey, survey="ab" * 32),
    "capitals": lambda survey: replaced(survey, batch="AB" * 16),
    "a line end": lambda survey: body_of(survey, 4) + b"\n",
    "spaces": lambda survey: body_of(survey, 5).replace(b":", b": "),
    "nothing": lambda survey: b"",
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("survey", SURVEYS, ids=lambda survey: survey.name)
def test_bodies_are_read_in_the_same_way(pair, survey, name):
    compare(pair, survey, BODIES[name](survey))


@given(data=st.data())
def test_changed_bytes_are_read_in_the_same_way(pair, data):
    survey = data.draw(st.sampled_from(SURVEYS))
    body = bytearray(body_of(survey, data.draw(st.integers(0, 3)), data.draw(st.integers(0, 6))))
    for _ in range(data.draw(st.integers(0, 2))):
        position = data.draw(st.integers(0, len(body) - 1))
        body[position] = data.draw(st.sampled_from(b'019a"[],:{} W-'))
    compare(pair, survey, bytes(body))


@pytest.mark.parametrize(
    "path",
    [
        "/v1/surveys/{}/batches?x=1",
        "/v1/surveys/{}/batches/",
        "/v1/surveys//{}/batches",
        "/v1/surveys/{}x/batches",
        "/v1/surveys/{}",
        "/v2/surveys/{}/batches",
    ],
)
def test_paths_are_read_in_the_same_way(pair, path):
    compare(pair, ONCE, body_of(ONCE, 2000), path=path.format(ONCE.fingerprint))


# --- only the usual upload, and all of it ---------------------------------------------------------


@pytest.fixture
def aggregator(tmp_path):
    with run_aggregator(tmp_path, ONCE, requests_per_minute=3) as running:
        path = f"/v1/surveys/{ONCE.fingerprint}"
        running.http.request("GET", path, client="198.51.100.1")
        yield running


def send(aggregator, number, **options):
    return aggregator.post(ONCE.fingerprint, body_of(ONCE, number), JSON, **options)


def test_the_general_endpoint_does_not_see_it(aggregator, monkeypatch):
    monkeypatch.setattr("sfumato.aggregator.http.clients.get_media_type", lambda _: 1 / 0)
    assert send(aggregator, 1).status == 201
    assert send(aggregator, 1).status == 200
    assert send(aggregator, 2, is_general=True).status == 500
    assert tally_of(aggregator, ONCE).reports == 1


def test_a_body_in_pieces_goes_to_the_general_endpoint(aggregator, monkeypatch):
    body = body_of(ONCE, 1)
    assert send(aggregator, 1).status == 201
    monkeypatch.setattr("sfumato.aggregator.http.clients.get_media_type", lambda _: 1 / 0)
    in_pieces = [body[:20], body[20:]]
    assert aggregator.post(ONCE.fingerprint, in_pieces, JSON).status == 500


def test_it_counts_towards_the_limit_of_requests(aggregator):
    statuses = [send(aggregator, number).status for number in range(5)]
    assert statuses == [201, 201, 201, 429, 429]
    assert send(aggregator, 9, client="198.51.100.2").status == 201
    assert tally_of(aggregator, ONCE).reports == 4


@pytest.mark.parametrize(
    ("failure", "status", "problem"),
    [
        (StoreUnavailable("the store is locked."), 503, "store-unavailable"),
        (StoreFull("no space."), 507, "store-full"),
        (ValueError("a fault of ours"), 500, "internal-error"),
    ],
)
def test_failures_of_the_store_are_answered_once(aggregator, monkeypatch, failure, status, problem):
    attempts = []

    def fail(_, group):
        attempts.append(len(group))
        raise failure

    monkeypatch.setattr(Store, "commit", fail)
    headers = JSON | {"Origin": "https://example.org"}
    response = aggregator.post(ONCE.fingerprint, body_of(ONCE, 1), headers)
    assert (response.status, response.problem) == (status, problem)
    assert response.headers["access-control-allow-origin"] == "*"
    assert attempts == [1]


def test_a_fault_in_reading_is_answered_without_its_text(aggregator, monkeypatch, caplog):
    def fail(_, body):
        raise ValueError(body.decode())

    monkeypatch.setattr(SingleReportReader, "read", fail)
    response = send(aggregator, 1)
    assert (response.status, response.problem) == (500, "internal-error")
    body = body_of(ONCE, 1).decode()
    assert body not in response.body.decode()
    assert body not in caplog.text
    assert "ValueError" in caplog.text


@pytest.mark.parametrize(
    ("outcome", "status"), [(Outcome.CLOSED, 410), (Outcome.CONFLICT, 409), (Outcome.UNKNOWN, 404)]
)
def test_other_outcomes_are_answered_once(aggregator, monkeypatch, outcome, status):
    groups = []

    def commit(_, group):
        groups.append(len(group))
        return [outcome] * len(group)

    monkeypatch.setattr(Store, "commit", commit)
    statuses = [send(aggregator, number).status for number in range(4)]
    assert statuses == [status, status, status, 429]
    assert groups == [1, 1, 1]


def test_a_stop_answers_waiting_uploads(aggregator, monkeypatch):
    async def wait_forever(_, batch):
        raise asyncio.CancelledError

    monkeypatch.setattr("sfumato.aggregator.writer.Writer.count", wait_forever)
    response = send(aggregator, 1)
    assert (response.status, response.problem) == (503, "stopping")
