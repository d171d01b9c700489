"""A flood: what an anonymous sender can add, and how an operator leaves it out of the results."""

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import numpy as np
import pytest

import sfumato as sf
from sfumato.batches import ARROW_MEDIA_TYPE, to_arrow
from support.http_client import batch_of, run_aggregator

PLACES = ["park", "café", "clinic", "bar"]
SURVEY = sf.Survey("flooded", sf.Uniform(PLACES, 1), minimum_reports=100)
HONEST_DAY = datetime(2026, 11, 14, 12, tzinfo=UTC)
FLOODED_DAY = datetime(2026, 11, 15, 12, tzinfo=UTC)
CLEAN_DAY = datetime(2026, 11, 16, 12, tzinfo=UTC)
PATH = f"/v1/surveys/{SURVEY.fingerprint}"


def honest_reports(count, seed):
    shares = SURVEY.mechanism.forward(np.array([0.5, 0.3, 0.15, 0.05]))
    probabilities = shares / shares.sum()
    return np.random.default_rng(seed).choice(probabilities.size, size=count, p=probabilities)


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def upload(aggregator, reports, number, key=None, **options):
    """Upload a batch in Arrow; with a key, as a bulk sender."""
    headers = {"Content-Type": ARROW_MEDIA_TYPE} | ({} if key is None else bearer(key))
    body = to_arrow(batch_of(SURVEY, reports, number))
    return aggregator.post(SURVEY.fingerprint, body, headers, **options)


def change(aggregator, method, path):
    return aggregator.request_with_token(f"{PATH}/{path}", method=method)


@pytest.fixture
def aggregator(tmp_path):
    with run_aggregator(tmp_path, SURVEY, reports_per_upload=1) as running:
        yield running


def test_anonymous_uploads_have_one_report(aggregator):
    assert upload(aggregator, [0], 1).status == 201
    answer = upload(aggregator, [0, 1], 2)
    assert (answer.status, answer.problem) == (403, "too-many-reports")
    assert "at most 1 report;" in answer.json["detail"]
    assert "has 2" in answer.json["detail"]
    assert aggregator.store.read_status(SURVEY.fingerprint).reports == 1


def test_a_survey_says_how_many_reports_an_upload_contains(tmp_path):
    survey = sf.Survey("households", sf.Uniform(PLACES, 1), reports_per_upload=3, edition=2)
    with run_aggregator(tmp_path, survey, reports_per_upload=1) as running:
        path = survey.fingerprint
        headers = {"Content-Type": ARROW_MEDIA_TYPE}
        three = to_arrow(batch_of(survey, [0, 1, 2], 1))
        four = to_arrow(batch_of(survey, [0, 1, 2, 3], 2))
        assert running.post(path, three, headers).status == 201
        assert running.post(path, four, headers).problem == "too-many-reports"


def test_bulk_uploads_need_a_key_that_can_be_revoked(aggregator):
    key = change(aggregator, "PUT", "senders/north").json["key"]
    assert upload(aggregator, [0, 1], 1, key).status == 201
    assert upload(aggregator, [2, 3], 2, aggregator.token).status == 201
    for wrong in ("", "wrong", key[:-1]):
        answer = upload(aggregator, [0, 1], 3, wrong)
        assert (answer.status, answer.problem) == (401, "not-authorised")
    new_key = change(aggregator, "PUT", "senders/north").json["key"]
    assert upload(aggregator, [0, 1], 3, key).status == 401
    assert upload(aggregator, [0, 1], 3, new_key).status == 201
    assert change(aggregator, "DELETE", "senders/north").json == {
        "senders": [{"name": "north", "revoked": True}]
    }
    assert upload(aggregator, [0, 1], 4, new_key).status == 401
    assert change(aggregator, "DELETE", "senders/south").status == 404
    senders = {day["sender"] for day in change(aggregator, "GET", "days").json["days"]}
    assert senders == {"north", "operator"}


def test_a_key_belongs_to_one_survey(aggregator):
    other = sf.Survey("other", SURVEY.context)
    aggregator.store.register(other)
    key = change(aggregator, "PUT", "senders/north").json["key"]
    headers = {"Content-Type": ARROW_MEDIA_TYPE} | bearer(key)
    body = to_arrow(batch_of(other, [0], 1))
    assert aggregator.post(other.fingerprint, body, headers).status == 401
    assert aggregator.store.read_status(other.fingerprint).reports == 0


@pytest.mark.parametrize("name", ["operator", "anonymous", "North", "a b", "-x", "é"])
def test_bad_sender_names_are_refused(aggregator, name):
    assert change(aggregator, "PUT", f"senders/{quote(name)}").status == 422


def test_keys_are_not_stored(aggregator):
    key = change(aggregator, "PUT", "senders/north").json["key"]
    assert not any(key in line for line in aggregator.dump())


def test_reports_per_minute_are_limited(tmp_path):
    settings = {"requests_per_minute": 60, "reports_per_upload": 20}
    with run_aggregator(tmp_path, SURVEY, **settings) as aggregator:
        statuses = [upload(aggregator, [1] * 20, number).status for number in range(1, 6)]
        assert statuses == [201, 201, 201, 429, 429]
        key = aggregator.store.add_sender(SURVEY.fingerprint, "north")
        other = {"client": "198.51.100.7"}
        answers = [upload(aggregator, [1] * 300, 10 + n, key, **other).status for n in range(5)]
        assert answers == [201] * 5  # a bulk sender pays for requests, not for reports


def test_an_upload_may_have_more_reports_than_requests_are_allowed(tmp_path):
    """It is counted, and paid for afterwards."""
    settings = {"requests_per_minute": 60, "reports_per_upload": 100}
    with run_aggregator(tmp_path, SURVEY, **settings) as aggregator:
        now = [0.0]
        aggregator.http.app.state.aggregator.limits._clock = lambda: now[0]
        assert upload(aggregator, [1] * 100, 1).status == 201
        refused = upload(aggregator, [1] * 100, 2)
        assert refused.status == 429
        assert 40 < int(refused.headers["retry-after"]) <= 42
        now[0] = 40.0
        assert upload(aggregator, [1] * 100, 2).status == 429
        now[0] = 42.0
        assert upload(aggregator, [1] * 100, 2).status == 201
        assert upload(aggregator, [1], 3).status == 429
        assert upload(aggregator, [1], 3, client="198.51.100.7").status == 201


def test_addresses_of_one_ipv6_network_share_their_limit(tmp_path):
    with run_aggregator(tmp_path, SURVEY, requests_per_minute=60) as aggregator:
        statuses = [
            upload(aggregator, [1], number, client=f"2001:db8:0:7::{number:x}").status
            for number in range(1, 100)
        ]
        assert statuses.count(201) <= 61
        assert upload(aggregator, [1], 200, client="2001:db8:0:8::1").status == 201


def test_a_flood_can_be_seen_and_left_out(aggregator):
    """Three days; on the second, a sender with a stolen key adds as many forged reports again."""
    key = change(aggregator, "PUT", "senders/north").json["key"]
    for number, day in enumerate((HONEST_DAY, FLOODED_DAY, CLEAN_DAY), start=1):
        aggregator.store._now = lambda day=day: day
        assert upload(aggregator, honest_reports(5000, number), number, key).status == 201
    stolen_key = change(aggregator, "PUT", "senders/south").json["key"]
    aggregator.store._now = lambda: FLOODED_DAY
    honest = change(aggregator, "GET", "estimate").json
    assert honest["left_out"] == {"days": [], "senders": [], "reports": 0}
    assert upload(aggregator, [2] * 15_000, 9, stolen_key).status == 201
    flooded = change(aggregator, "GET", "estimate").json
    assert flooded["symbols"][2]["unbiased"] > honest["symbols"][2]["high"] + 0.2

    days = change(aggregator, "GET", "days").json["days"]
    fits = {(day["day"], day["sender"]): day["fit"] for day in days}
    assert list(fits) == [
        ("2026-11-16", "north"),
        ("2026-11-15", "north"),
        ("2026-11-15", "south"),
        ("2026-11-14", "north"),
    ]
    assert fits["2026-11-15", "south"] < 1e-6
    assert min(fit for (_, sender), fit in fits.items() if sender == "north") > 1e-6

    assert change(aggregator, "PUT", "omissions/senders/south").json == {
        "days": [],
        "senders": ["south"],
    }
    mended = change(aggregator, "GET", "estimate").json
    assert mended["left_out"] == {"days": [], "senders": ["south"], "reports": 15_000}
    assert mended["symbols"] == honest["symbols"]

    assert change(aggregator, "DELETE", "omissions/senders/south").json["senders"] == []
    assert change(aggregator, "GET", "estimate").json["symbols"] == flooded["symbols"]

    change(aggregator, "PUT", "omissions/days/2026-11-15")
    without_day = change(aggregator, "GET", "estimate").json
    assert without_day["left_out"] == {"days": ["2026-11-15"], "senders": [], "reports": 20_000}
    assert without_day["reports"] == 10_000
    for before, after in zip(honest["symbols"], without_day["symbols"], strict=True):
        assert before["low"] - 0.05 < after["unbiased"] < before["high"] + 0.05
    status = change(aggregator, "GET", "status").json
    assert status["left_out"] == {"days": ["2026-11-15"], "senders": []}
    assert status["reports"] == 30_000
    assert change(aggregator, "PUT", "omissions/senders/west").status == 404
    assert change(aggregator, "PUT", "omissions/days/2026-13-45").status == 400


def test_an_export_leaves_out_what_results_leave_out(aggregator):
    store = aggregator.store
    key = store.add_sender(SURVEY.fingerprint, "north")
    upload(aggregator, [0, 1, 2], 1, key)
    upload(aggregator, [3], 2)
    store.leave_out_sender(SURVEY.fingerprint, "north")
    outputs = SURVEY.mechanism.outputs
    first = store.export(SURVEY.fingerprint, bytes(15) + b"a", outputs)
    assert first.tally.counts.tolist() == [0, 0, 0, 1]
    assert store.export(SURVEY.fingerprint, bytes(15) + b"b", outputs) is None
    store.include_sender(SURVEY.fingerprint, "north")
    assert store.export(SURVEY.fingerprint, bytes(15) + b"a", outputs).tally == first.tally
    second = store.export(SURVEY.fingerprint, bytes(15) + b"b", outputs)
    assert second.tally.counts.tolist() == [1, 1, 1, 0]


def test_the_dashboard_shows_days_and_what_is_left_out(aggregator):
    upload(aggregator, [1], 1)
    view = aggregator.request_with_token(f"/dashboard/{SURVEY.fingerprint}/days").json
    assert 'data-method="PUT" data-omission="days/' in view["parts"]["days"]
    assert "leave out" in view["parts"]["days"]
    day = change(aggregator, "GET", "days").json["days"][0]["day"]
    change(aggregator, "PUT", f"omissions/days/{day}")
    section = aggregator.request_with_token(f"/dashboard/{SURVEY.fingerprint}/days").json["parts"]
    assert f"leave out: {day}" in section["notices"]
    assert 'data-method="DELETE"' in section["days"]
    assert aggregator.http.get(f"/dashboard/{SURVEY.fingerprint}/days").status == 401


def test_days_that_are_left_out_are_always_listed(aggregator):
    """Otherwise nobody could find them again."""
    for number in range(1, 6):
        day = HONEST_DAY - timedelta(days=number)
        aggregator.store._now = lambda day=day: day
        upload(aggregator, [1], number)
    oldest = HONEST_DAY.date() - timedelta(days=5)
    aggregator.store.leave_out_day(SURVEY.fingerprint, oldest)
    outputs = SURVEY.mechanism.outputs
    days = [counts.day for counts in aggregator.store.count_days(SURVEY.fingerprint, outputs, 2)]
    assert days == ["2026-11-13", "2026-11-12", oldest.isoformat()]
