"""Uploads: counted once however they come, in the survey's time, from pages of any origin."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import sfumato as sf
from sfumato.aggregator.store import Store
from sfumato.batches import ARROW_MEDIA_TYPE, JSON_MEDIA_TYPE, MAX_BATCH_REPORTS, to_json
from support.http_client import batch_of, run_aggregator, upload_path

SURVEY = sf.Survey("places", sf.Uniform(["park", "café", "clinic", "bar", "office"], 1))
OTHER = sf.Survey("other places", sf.Uniform(["park", "café", "clinic", "bar", "office"], 1))
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture
def aggregator(tmp_path):
    with run_aggregator(tmp_path, SURVEY) as found:
        yield found


def _counts(aggregator, survey=SURVEY):
    return aggregator.store.tally(survey.fingerprint, survey.mechanism.outputs).counts.tolist()


def _histogram(*reports):
    return np.bincount(reports, minlength=SURVEY.mechanism.outputs).tolist()


@pytest.mark.parametrize("form", [JSON_MEDIA_TYPE, ARROW_MEDIA_TYPE])
@pytest.mark.parametrize("packed", [False, True])
def test_a_batch_counts_once(aggregator, form, packed):
    batch = batch_of(SURVEY, [1, 0, 1])
    first = aggregator.upload(batch, form=form, packed=packed)
    again = aggregator.upload(batch, form=form, packed=packed)
    assert (first.status, again.status) == (201, 200)
    assert first.body == again.body
    assert first.json == {"batch": batch.id.hex(), "reports": 3, "survey": SURVEY.fingerprint}
    assert first.headers["content-type"] == again.headers["content-type"] == JSON_MEDIA_TYPE
    assert _counts(aggregator) == _histogram(1, 0, 1)


def test_json_and_arrow_of_one_batch_are_replays(aggregator):
    batch = batch_of(SURVEY, [1, 0, 1])
    answers = [
        aggregator.upload(batch, form=form, packed=packed)
        for form in (ARROW_MEDIA_TYPE, JSON_MEDIA_TYPE)
        for packed in (False, True)
    ]
    assert [answer.status for answer in answers] == [201, 200, 200, 200]
    assert len({answer.body for answer in answers}) == 1
    assert _counts(aggregator) == _histogram(1, 0, 1)


@pytest.mark.parametrize("reports", [[1, 0], [0, 1, 1], [1, 0, 2], [1, 0, 1, 1]])
def test_conflicting_content_is_refused_and_the_first_stays(aggregator, reports):
    aggregator.upload(batch_of(SURVEY, [1, 0, 1]))
    before = aggregator.dump()
    answer = aggregator.upload(batch_of(SURVEY, reports))
    assert (answer.status, answer.problem) == (409, "batch-conflict")
    assert aggregator.dump() == before


def test_an_identifier_belongs_to_its_survey(tmp_path):
    with run_aggregator(tmp_path, SURVEY, OTHER) as aggregator:
        for survey, report in ((SURVEY, 1), (OTHER, 2)):
            assert aggregator.upload(batch_of(survey, [report])).status == 201
        assert _counts(aggregator) == _histogram(1)
        assert _counts(aggregator, OTHER) == _histogram(2)


def test_the_largest_batch_is_accepted(aggregator):
    batch = batch_of(SURVEY, np.zeros(MAX_BATCH_REPORTS))
    assert aggregator.upload(batch).json["reports"] == MAX_BATCH_REPORTS
    assert _counts(aggregator) == _histogram(*[0] * MAX_BATCH_REPORTS)


def test_spaces_and_the_order_of_fields_do_not_matter(aggregator):
    batch = batch_of(SURVEY, [1, 0, 1])
    turned = dict(reversed(json.loads(to_json(batch)).items()))
    body = json.dumps(turned, indent=2).encode() + b"\n"
    assert aggregator.upload(batch).status == 201
    kind = "Application/JSON; charset=utf-8"
    assert aggregator.post(SURVEY.fingerprint, body, {"Content-Type": kind}).status == 200


def test_a_body_may_come_in_pieces(aggregator):
    body = to_json(batch_of(SURVEY, [1, 0, 1]))
    pieces = [body[i : i + 1] for i in range(len(body))]
    assert (
        aggregator.post(SURVEY.fingerprint, pieces, {"Content-Type": JSON_MEDIA_TYPE}).status == 201
    )


def test_fifty_uploads_of_one_batch_at_once_count_once(aggregator):
    body = to_json(batch_of(SURVEY, [1, 0, 1]))
    request = (
        ("POST", upload_path(SURVEY.fingerprint)),
        {"body": body, "headers": {"Content-Type": JSON_MEDIA_TYPE}},
    )
    answers = aggregator.http.request_all(*[request] * 50)
    assert sorted(answer.status for answer in answers) == [200] * 49 + [201]
    assert len({answer.body for answer in answers}) == 1
    assert _counts(aggregator) == _histogram(1, 0, 1)


def test_fifty_different_batches_at_once_all_count(aggregator):
    def request(number):
        body = to_json(batch_of(SURVEY, [number % 5], number))
        return ("POST", upload_path(SURVEY.fingerprint)), {
            "body": body,
            "headers": {"Content-Type": JSON_MEDIA_TYPE},
        }

    answers = aggregator.http.request_all(*map(request, range(50)))
    assert {answer.status for answer in answers} == {201}
    assert _counts(aggregator) == _histogram(*[number % 5 for number in range(50)])


# --- when -----------------------------------------------------------------------------------------

TIMED = sf.Survey(
    "timed",
    sf.Uniform(["no", "yes"], 1),
    opens=NOON.isoformat(),
    closes=(NOON + timedelta(days=1)).isoformat(),
)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("when", "status", "problem"),
    [
        (NOON - SECOND, 403, "survey-not-open"),
        (NOON, 201, None),
        (NOON + timedelta(days=1) - SECOND, 201, None),
        (NOON + timedelta(days=1), 410, "survey-closed"),
    ],
)
def test_surveys_accept_reports_between_opening_and_closing(tmp_path, when, status, problem):
    with run_aggregator(tmp_path, TIMED, now=lambda: when) as aggregator:
        before = aggregator.dump()
        answer = aggregator.upload(batch_of(TIMED, [1]))
        (listed,) = aggregator.http.get("/v1/surveys").json["surveys"]
        assert answer.status == status
        assert listed["open"] is (status == 201)
        if problem:
            assert answer.problem == problem
            assert aggregator.dump() == before


def test_times_without_a_zone_are_utc(tmp_path):
    survey = sf.Survey("timed", sf.Uniform(["no", "yes"], 1), closes="2026-11-15T12:00:00")
    for number, (when, status) in enumerate([(NOON - SECOND, 201), (NOON, 410)]):
        (tmp_path / str(number)).mkdir()
        with run_aggregator(
            tmp_path / str(number), survey, now=lambda when=when: when
        ) as aggregator:
            assert aggregator.upload(batch_of(survey, [1])).status == status


def test_closed_surveys_accept_nothing_until_opened(aggregator):
    batch = batch_of(SURVEY, [1])
    aggregator.upload(batch)
    aggregator.store.set_closed(SURVEY.fingerprint)
    before = aggregator.dump()
    for sent in (batch, batch_of(SURVEY, [1], 2)):
        answer = aggregator.upload(sent)
        assert (answer.status, answer.problem) == (410, "survey-closed")
    assert aggregator.dump() == before
    aggregator.store.set_open(SURVEY.fingerprint)
    assert aggregator.upload(batch).status == 200


# --- surveys --------------------------------------------------------------------------------------


def test_unreadable_surveys_do_not_hide_others(aggregator):
    aggregator.store.register(OTHER)
    with aggregator.store._write() as connection:
        spoilt = "UPDATE surveys SET resolved = x'7b7d' WHERE fingerprint = ?"
        connection.exec_driver_sql(spoilt, (OTHER.fingerprint,))
    assert [entry["name"] for entry in aggregator.http.get("/v1/surveys").json["surveys"]] == [
        "places"
    ]
    assert aggregator.upload(batch_of(SURVEY, [1])).status == 201


def test_surveys_are_listed_in_the_order_in_which_they_came(tmp_path):
    with run_aggregator(tmp_path, SURVEY, OTHER) as aggregator:
        aggregator.store.set_closed(OTHER.fingerprint)
        assert aggregator.http.get("/v1/surveys").json == {
            "surveys": [
                {
                    "fingerprint": s.fingerprint,
                    "name": s.name,
                    "title": s.title,
                    "open": s is SURVEY,
                }
                for s in (SURVEY, OTHER)
            ]
        }


def test_a_survey_is_served_byte_for_byte(aggregator):
    answer = aggregator.http.get(f"/v1/surveys/{SURVEY.fingerprint}")
    assert (answer.status, answer.headers["content-type"]) == (200, JSON_MEDIA_TYPE)
    assert answer.body == SURVEY.resolved()


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', '"other",W/{} , "third"'])
def test_a_matching_etag_gets_304(aggregator, form):
    path = f"/v1/surveys/{SURVEY.fingerprint}"
    etag = aggregator.http.get(path).headers["etag"]
    assert etag.startswith('"')
    again = aggregator.http.get(path, If_None_Match=form.format(etag))
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)


@pytest.mark.parametrize("held", ['"other"', "", '"', "W/"])
def test_another_etag_gets_the_survey(aggregator, held):
    answer = aggregator.http.get(f"/v1/surveys/{SURVEY.fingerprint}", If_None_Match=held)
    assert (answer.status, answer.body) == (200, SURVEY.resolved())


def test_a_corrected_title_changes_the_etag(tmp_path):
    tags = set()
    for title in ("Wher?", "Where?"):
        survey = sf.Survey("places", SURVEY.context, title=title)
        assert survey.fingerprint == SURVEY.fingerprint
        with run_aggregator(tmp_path, survey) as aggregator:
            answer = aggregator.http.get(f"/v1/surveys/{SURVEY.fingerprint}")
            tags.add(answer.headers["etag"])
            assert answer.json["about"]["title"] == title
    assert len(tags) == 2


def test_surveys_registered_by_another_aggregator_are_served(aggregator):
    assert aggregator.upload(batch_of(OTHER, [1])).problem == "unknown-survey"
    elsewhere = Store.open(f"sqlite:///{aggregator.file}")
    elsewhere.register(OTHER)
    elsewhere.close()
    assert aggregator.upload(batch_of(OTHER, [1])).status == 201
    assert aggregator.http.get(f"/v1/surveys/{OTHER.fingerprint}").body == OTHER.resolved()
    assert len(aggregator.http.get("/v1/surveys").json["surveys"]) == 2


# --- browsers -------------------------------------------------------------------------------------

ORIGIN = "https://survey.example"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/surveys"),
        ("GET", f"/v1/surveys/{SURVEY.fingerprint}"),
        ("POST", upload_path(SURVEY.fingerprint)),
    ],
)
def test_preflight_requests_are_allowed_from_any_origin(aggregator, method, path):
    asked = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "content-type, content-encoding",
    }
    answer = aggregator.http.request("OPTIONS", path, headers=asked)
    allowed = {
        name: set(answer.headers[f"access-control-allow-{name}"].split(", "))
        for name in ("methods", "headers")
    }
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] in ("*", ORIGIN)
    assert method in allowed["methods"]
    assert {"content-type", "content-encoding"} <= {header.lower() for header in allowed["headers"]}
    assert "access-control-allow-credentials" not in answer.headers


def test_responses_expose_etag_and_retry_after(tmp_path, monkeypatch):
    def broken(*_):
        raise ValueError

    with run_aggregator(tmp_path, SURVEY, requests_per_minute=2) as aggregator:
        body = to_json(batch_of(SURVEY, [1])) + b" "  # unusual: the general endpoint reads it
        headers = {"Content-Type": JSON_MEDIA_TYPE, "Origin": ORIGIN}
        send = lambda: aggregator.post(SURVEY.fingerprint, body, headers)  # noqa: E731
        answers = [send(), send(), send()]
        monkeypatch.setattr("sfumato.aggregator.http.clients.get_media_type", broken)
        monkeypatch.setattr(
            "sfumato.aggregator.http.client_limits.ClientLimits.seconds_to_wait", lambda *_: 0.0
        )
        answers.append(send())
    assert [answer.status for answer in answers] == [201, 200, 429, 500]
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "retry-after" in answer.headers["access-control-expose-headers"].lower()
        assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("HEAD", "/v1/surveys", {"GET"}),
        ("OPTIONS", "/v1/surveys", {"GET"}),
        ("DELETE", f"/v1/surveys/{SURVEY.fingerprint}", {"GET"}),
        ("HEAD", upload_path(SURVEY.fingerprint), {"POST"}),
        ("GET", upload_path(SURVEY.fingerprint), {"POST"}),
        ("PUT", upload_path(SURVEY.fingerprint), {"POST"}),
    ],
)
def test_other_methods_get_the_allow_header(aggregator, method, path, allowed):
    answer = aggregator.http.request(method, path)
    assert (answer.status, answer.problem) == (405, "method-not-allowed")
    assert set(answer.headers["allow"].split(", ")) == allowed


@pytest.mark.parametrize("path", ["/v1", "/v1/surveys/", "/docs", "/openapi.json", "/v2/surveys"])
def test_unknown_addresses_are_404_without_redirects(aggregator, path):
    answer = aggregator.http.get(path)
    assert (answer.status, answer.problem) == (404, "not-found")
    assert "location" not in answer.headers
