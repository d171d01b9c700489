"""Response headers: what browsers may guess, keep, frame, and read from pages of other origins."""

import pytest

import sfumato as sf
from support.http_client import batch_of, run_aggregator, upload_path

SURVEY = sf.Survey("places", sf.Uniform(["park", "café", "clinic"], 1))
ORIGIN = "https://pages.example.org"
SURVEY_PATH = f"/v1/surveys/{SURVEY.fingerprint}"

PUBLIC = [
    ("GET", "/v1/surveys"),
    ("GET", SURVEY_PATH),
    ("POST", upload_path(SURVEY.fingerprint)),
    ("GET", "/static/client/core.js"),
]
OTHERS = [
    ("GET", f"{SURVEY_PATH}/status"),
    ("GET", f"{SURVEY_PATH}/estimate"),
    ("POST", f"{SURVEY_PATH}/end"),
    ("PUT", f"{SURVEY_PATH}/exports/{'ab' * 16}"),
    ("POST", f"{SURVEY_PATH}/imports"),
    ("PUT", f"{SURVEY_PATH}/senders/north"),
    ("GET", f"/dashboard/{SURVEY.fingerprint}/results"),
    ("GET", "/dashboard/ready"),
    ("GET", f"/label/{SURVEY.fingerprint}"),
    ("GET", f"/try/{SURVEY.fingerprint}"),
    ("GET", "/static/dashboard/dashboard.js"),
    ("GET", "/metrics"),
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/v1/openapi.json"),
    ("GET", "/"),
]


@pytest.fixture
def aggregator(tmp_path):
    with run_aggregator(tmp_path, SURVEY) as running:
        running.upload(batch_of(SURVEY, [0, 1, 2]))
        yield running


@pytest.mark.parametrize(("method", "path"), [*PUBLIC, *OTHERS, ("GET", "/nowhere")])
def test_no_response_may_be_sniffed(aggregator, method, path):
    plain = aggregator.http.request(method, path)
    authorised = aggregator.request_with_token(path, method=method)
    assert plain.headers["x-content-type-options"] == "nosniff"
    assert authorised.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(("method", "path"), OTHERS)
def test_responses_behind_the_token_are_not_stored(aggregator, method, path):
    if aggregator.http.request(method, path).status == 401:
        answer = aggregator.request_with_token(path, method=method)
        assert answer.headers["cache-control"] == "no-store"


def _ask_before(aggregator, method, path, *headers):
    asked = {"Origin": ORIGIN, "Access-Control-Request-Method": method}
    if headers:
        asked["Access-Control-Request-Headers"] = ", ".join(headers)
    return aggregator.http.request("OPTIONS", path, headers=asked)


@pytest.mark.parametrize(("method", "path"), PUBLIC)
def test_pages_of_other_origins_may_use_public_addresses(aggregator, method, path):
    answer = aggregator.http.request(method, path, headers={"Origin": ORIGIN})
    assert answer.headers["access-control-allow-origin"] == "*"
    assert _ask_before(aggregator, method, path, "content-type").status == 200


@pytest.mark.parametrize(("method", "path"), OTHERS)
def test_pages_of_other_origins_may_not_use_other_addresses(aggregator, method, path):
    headers = {"Origin": ORIGIN}
    answers = [
        aggregator.request_with_token(path, method=method, headers=headers),
        _ask_before(aggregator, method, path),
        _ask_before(aggregator, method, path, "authorization"),
    ]
    for answer in answers:
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(("method", "path"), PUBLIC)
def test_pages_of_other_origins_may_not_send_a_token(aggregator, method, path):
    answer = _ask_before(aggregator, method, path, "authorization")
    assert "authorization" not in answer.headers["access-control-allow-headers"].lower()
    assert answer.status == 400


@pytest.mark.parametrize("path", ["/", "/label/{}", "/try/{}"])
def test_no_page_may_be_framed(aggregator, path):
    answer = aggregator.http.get(path.format(SURVEY.fingerprint))
    assert answer.status == 200
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
