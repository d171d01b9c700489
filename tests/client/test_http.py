"""The HTTP client: the same bytes until they are counted, and no word of what came back."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

import sfumato as sf
from sfumato.batches import Batch, fresh_id, to_arrow, to_json
from sfumato.client import AggregatorClient
from sfumato.client.http import BatchConflict
from sfumato.errors import (
    InvalidBatch,
    InvalidSetting,
    InvalidSurvey,
    NotDelivered,
    ReportRejected,
    WrongSurvey,
)
from support.fake_aggregator import DROP_REQUEST, DROP_RESPONSE, PROBLEM, FakeAggregator

CANARY = "kanarienvogel-4711"


@pytest.fixture
def batch(survey):
    return Batch(fresh_id(), survey.fingerprint, np.array([3, 1, 3], dtype=np.uint32))


def problem(status, name="anything", **more):
    body = {"type": PROBLEM + name, "title": CANARY, "status": status, "detail": CANARY, **more}
    return status, {"Content-Type": "application/problem+json"}, json.dumps(body).encode()


@pytest.mark.parametrize("arrow", [False, True])
def test_a_batch_is_counted_and_acknowledged(aggregator, http_client, batch, arrow):
    receipt = http_client.deliver(batch, arrow=arrow)
    assert (receipt.survey, receipt.batch, receipt.reports) == (
        batch.fingerprint,
        batch.id.hex(),
        3,
    )
    assert aggregator.counts == {3: 2, 1: 1}
    assert aggregator.bodies == [to_arrow(batch) if arrow else to_json(batch)]
    assert http_client.deliver(batch, arrow=arrow) == receipt
    assert aggregator.reports == 3


FAULTS = {
    "lost on the way": [DROP_REQUEST],
    "the answer is lost": [DROP_RESPONSE],
    "lost again and again": [DROP_RESPONSE, DROP_REQUEST, DROP_RESPONSE, DROP_RESPONSE],
    "busy": [(429, {"Retry-After": "2"}, b"")],
    "down": [problem(503), problem(502), problem(504), problem(507), problem(408), problem(500)],
    "a log-in page": [(200, {"Content-Type": "text/html"}, b"<html>Welcome to the hotel</html>")],
    "a receipt for another batch": [(201, {}, b'{"batch":"00","reports":3,"survey":"00"}')],
    "no JSON": [(201, {}, b"[" * 100_000)],
}


@pytest.mark.parametrize("name", FAULTS)
def test_retries_send_the_same_bytes_and_count_once(aggregator, http_client, batch, pauses, name):
    aggregator.faults = list(FAULTS[name])
    assert http_client.deliver(batch).reports == 3
    assert len(aggregator.bodies) == len(FAULTS[name]) + 1
    assert set(aggregator.bodies) == {to_json(batch)}
    assert aggregator.counts == {3: 2, 1: 1}
    assert len(pauses) == len(FAULTS[name])


def test_pauses_grow_and_are_randomised(aggregator, batch, pauses):
    aggregator.default_fault = problem(503)
    patient = AggregatorClient(
        aggregator.url,
        patience=1000,
        pause=lambda seconds: pauses.append(seconds) or len(pauses) == 10,
    )
    with pytest.raises(NotDelivered):
        patient.deliver(batch)
    ceilings = [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30]
    assert all(top / 2 <= pause <= top for pause, top in zip(pauses, ceilings, strict=True))
    assert len({pause / top for pause, top in zip(pauses, ceilings, strict=True)}) == 10


def test_pauses_are_longest_without_randomness(aggregator, http_client, batch, pauses, monkeypatch):
    aggregator.faults = [problem(503), DROP_REQUEST, problem(503)]
    monkeypatch.setattr("os.urandom", lambda size: bytes(size))
    assert http_client.deliver(batch).reports == 3
    assert pauses == [0.5, 1, 2]


def test_retry_after_sets_the_pause(aggregator, http_client, batch, pauses):
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    aggregator.faults = [(429, {"Retry-After": "7"}, b""), (503, {"Retry-After": later}, b"")]
    aggregator.faults += [(503, {"Retry-After": "whenever"}, b"")]
    http_client.deliver(batch)
    assert pauses[0] == 7
    assert 25 < pauses[1] <= 30
    assert pauses[2] <= 2


def test_waiting_never_exceeds_the_patience(aggregator, http_client, batch, pauses):
    aggregator.default_fault = (503, {"Retry-After": "3600"}, b"")
    with pytest.raises(NotDelivered, match="status 503"):
        http_client.deliver(batch)
    assert (len(aggregator.bodies), pauses) == (1, [])


def test_zero_patience_means_one_attempt(aggregator, batch):
    aggregator.default_fault = DROP_REQUEST
    with pytest.raises(NotDelivered, match="cannot be reached"):
        AggregatorClient(aggregator.url, patience=0).deliver(batch)
    assert len(aggregator.bodies) == 1


def test_unreachable_aggregator_is_not_delivered(batch, survey):
    with FakeAggregator(survey) as gone:
        url = gone.url
    with pytest.raises(NotDelivered, match="cannot be reached"):
        AggregatorClient(url, patience=0).deliver(batch)


FINAL = [
    (problem(400), InvalidBatch),
    (problem(403, "survey-not-open"), NotDelivered),
    (problem(404, "unknown-survey"), WrongSurvey),
    (problem(409, "batch-conflict"), BatchConflict),
    (problem(409), NotDelivered),
    (problem(410, "survey-closed"), WrongSurvey),
    (problem(413), InvalidBatch),
    (problem(415), InvalidBatch),
    (problem(422, "report-rejected", index=2), ReportRejected),
    (problem(422, "report-rejected", index=CANARY), ReportRejected),
    (problem(501), NotDelivered),
    (problem(401), NotDelivered),
    ((302, {"Location": "/elsewhere"}, b""), NotDelivered),
    ((404, {}, CANARY.encode()), WrongSurvey),
]


@pytest.mark.parametrize(("answer", "error"), FINAL)
def test_final_statuses_are_not_retried_or_echoed(
    aggregator, http_client, batch, pauses, answer, error
):
    aggregator.faults = [answer]
    with pytest.raises(sf.errors.SfumatoError) as raised:
        http_client.deliver(batch)
    assert type(raised.value) is error
    assert (len(aggregator.bodies), pauses) == (1, [])
    assert CANARY not in repr(raised.value)
    assert raised.value.__cause__ is None


def test_rejected_reports_are_named_by_index(aggregator, http_client, batch):
    aggregator.faults = [problem(422, "report-rejected", index=2)]
    with pytest.raises(ReportRejected) as raised:
        http_client.deliver(batch)
    assert raised.value.index == 2


def test_endless_replies_are_cut_off(aggregator, batch):
    aggregator.default_fault = (201, {}, b" " * 2**21)
    with pytest.raises(NotDelivered, match="cannot be reached"):
        AggregatorClient(aggregator.url, patience=0).deliver(batch)


def test_connections_are_reused(aggregator, http_client, survey):
    for _ in range(5):
        http_client.deliver(Batch(fresh_id(), survey.fingerprint, np.array([1], dtype=np.uint32)))
    assert aggregator.reports == 5
    assert aggregator.connections == 1


def test_fetched_surveys_must_match_the_pin(aggregator, http_client, survey):
    assert http_client.fetch_survey(survey.fingerprint) == survey
    other = sf.Survey("others", sf.Uniform(3, 1))
    aggregator.surveys[survey.fingerprint] = other
    with pytest.raises(WrongSurvey, match="not the pinned one"):
        http_client.fetch_survey(survey.fingerprint)
    with pytest.raises(WrongSurvey, match="does not have"):
        http_client.fetch_survey(other.fingerprint)
    aggregator.faults = [(200, {}, b'{"promise":{')]
    with pytest.raises(InvalidSurvey):
        http_client.fetch_survey(survey.fingerprint)
    for strange in ("", "AB" * 32, f"../{survey.fingerprint}", survey.fingerprint + "\n"):
        with pytest.raises(WrongSurvey, match="64 lowercase hexadecimal digits"):
            http_client.fetch_survey(strange)


def test_surveys_are_listed(aggregator, http_client, survey):
    (listed,) = http_client.list_surveys()
    assert (listed.fingerprint, listed.name, listed.open) == (survey.fingerprint, "places", True)
    aggregator.faults = [(200, {}, b'{"surveys":[{}]}')]
    with pytest.raises(InvalidSetting, match="did not return a list"):
        http_client.list_surveys()


def test_fetching_is_retried_too(aggregator, http_client, survey, pauses):
    aggregator.faults = [DROP_REQUEST, problem(503)]
    assert http_client.fetch_survey(survey.fingerprint) == survey
    assert len(pauses) == 2


@pytest.mark.parametrize(
    "url",
    ["", "surveys.example.org", "ftp://example.org", "file:///etc/passwd", "https://", "https://a:b@example.org",
     "https://example.org?x=1", "https://example.org/#a", "http://[::1", "https://example.org:99999999"],
)  # fmt: skip
def test_other_urls_are_refused(url):
    with pytest.raises(InvalidSetting, match="URL"):
        AggregatorClient(url)


def test_a_base_path_is_kept(aggregator, batch, survey):
    AggregatorClient(f"{aggregator.url}/under/").deliver(batch)
    assert aggregator.paths == [f"/under/v1/surveys/{survey.fingerprint}/batches"]
