"""Results: what an analyst would compute from the same tally, and only with the token."""

import json
from datetime import UTC, datetime
from urllib.parse import quote

import numpy as np
import pytest

import sfumato as sf
from sfumato.aggregator import Token
from sfumato.aggregator.http import token as token_module
from sfumato.aggregator.store import Store
from sfumato.foundation.decoder_table import DECODER_TABLE
from sfumato.simulation import SeededWords
from sfumato.survey import results_as_json
from sfumato.tally import Tally
from support.http_client import batch_of, run_aggregator

PLACES = ["park", "café", "clinic", "bar", "office"]
SURVEY = sf.Survey(
    "places", sf.HighLow(PLACES, ["clinic", "bar"], 1), title="Where?", minimum_reports=100
)
AGES = sf.Survey("ages", sf.Uniform(sf.IntegerDomain(8, start=-2), 1))
GRID = sf.Survey("map", sf.Uniform(sf.GridDomain(south=0, north=4, west=0, east=4, step=1), 2))
NUMBERED = sf.Survey("numbered", sf.Uniform(sf.Domain([1, 2, "3", "another"], other="another"), 1))
PEOPLE = 2000


def _reports(survey, people=PEOPLE):
    symbols = np.arange(people) ** 2 % 7 % survey.context.domain.size
    return survey.mechanism.privatize(symbols, SeededWords(11))


@pytest.fixture(scope="module")
def aggregator(tmp_path_factory):
    """Full of reports; nothing here adds any."""
    with run_aggregator(tmp_path_factory.mktemp("store"), SURVEY, AGES, GRID, NUMBERED) as found:
        for survey in (SURVEY, AGES, GRID, NUMBERED):
            for number, part in enumerate(np.array_split(_reports(survey), 3), 1):
                assert found.upload(batch_of(survey, part, number)).status == 201
        yield found


def _tally(survey):
    counts = np.bincount(_reports(survey), minlength=survey.mechanism.outputs)
    return Tally(counts, survey.fingerprint)


def _ask(aggregator, survey, what, **query):
    listed = [
        (name, one)
        for name, value in query.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    asked = "&".join(f"{name}={quote(str(value))}" for name, value in listed)
    return aggregator.request_with_token(f"/v1/surveys/{survey.fingerprint}/{what}?{asked}")


# --- estimates ------------------------------------------------------------------------------------

NOTHING_LEFT_OUT = {"days": [], "senders": [], "reports": 0}


def _results(survey, estimate, level=0.95):
    return {**results_as_json(survey, estimate, level), "left_out": NOTHING_LEFT_OUT}


@pytest.mark.parametrize("decoder", DECODER_TABLE)
@pytest.mark.parametrize("survey", [SURVEY, AGES, NUMBERED], ids=lambda survey: survey.name)
def test_estimates_equal_those_of_the_survey(aggregator, survey, decoder):
    answer = _ask(aggregator, survey, "estimate", decoder=decoder)
    expected = _results(survey, survey.estimate(_tally(survey), decoder=decoder))
    assert answer.status == 200
    assert answer.json == json.loads(json.dumps(expected))
    assert answer.json["reports"] == PEOPLE
    assert [row["label"] for row in answer.json["symbols"]] == list(survey.context.domain.labels)


@pytest.mark.parametrize("decoder", DECODER_TABLE)
def test_decoders_are_available_for_grids(aggregator, decoder):
    expected = _results(GRID, GRID.estimate(_tally(GRID), decoder=decoder))
    assert _ask(aggregator, GRID, "estimate", decoder=decoder).json == json.loads(
        json.dumps(expected)
    )


def test_the_default_is_auto_at_95_percent(aggregator):
    assert (
        _ask(aggregator, SURVEY, "estimate").body
        == _ask(aggregator, SURVEY, "estimate", decoder="auto", level=0.95).body
    )


@pytest.mark.parametrize("level", [0.5, 0.99, 1e-9, 1 - 1e-12, 5e-324])
def test_the_level_sets_the_intervals(aggregator, level):
    expected = _results(SURVEY, SURVEY.estimate(_tally(SURVEY)), level)
    assert _ask(aggregator, SURVEY, "estimate", level=level).json == json.loads(
        json.dumps(expected)
    )


@pytest.mark.parametrize("labels", [["clinic"], ["clinic", "bar"], PLACES])
def test_totals_equal_those_of_the_estimate(aggregator, labels):
    total = SURVEY.estimate(_tally(SURVEY), decoder="unbiased").total(labels, 0.9)
    assert _ask(aggregator, SURVEY, "total", label=labels, level=0.9).json == {
        "survey": SURVEY.fingerprint,
        "reports": PEOPLE,
        "labels": labels,
        "estimate": total.estimate,
        "low": total.low,
        "high": total.high,
        "level": 0.9,
        "left_out": NOTHING_LEFT_OUT,
    }


@pytest.mark.parametrize(
    ("survey", "text", "label"),
    [
        (AGES, "-2", -2),
        (AGES, "5", 5),
        (NUMBERED, "1", 1),
        (NUMBERED, "3", "3"),
        (NUMBERED, "another", "another"),
        (SURVEY, "café", "café"),
    ],
)
def test_a_label_in_an_address_is_text_or_digits(aggregator, survey, text, label):
    answer = _ask(aggregator, survey, "total", label=text)
    assert answer.json["labels"] == [label]
    assert type(answer.json["labels"][0]) is type(label)
    expected = survey.estimate(_tally(survey), decoder="unbiased").total([label])
    assert answer.json["estimate"] == expected.estimate


@pytest.mark.parametrize("survey", [SURVEY, AGES, NUMBERED, GRID], ids=lambda survey: survey.name)
@pytest.mark.parametrize(
    "text", ["nowhere", "", "²", "--1", "-", "٣", "1.0", "9" * 30, "99", "\0", "true"]
)
def test_unknown_labels_are_refused(aggregator, survey, text):
    answer = _ask(aggregator, survey, "total", label=text)
    assert (answer.status, answer.problem) == (422, "invalid-question")


@pytest.mark.parametrize("size", [1, 2, 5, 10_000])
def test_the_top_equals_that_of_the_estimate(aggregator, size):
    top = SURVEY.estimate(_tally(SURVEY), decoder="unbiased").top(size, 0.95)
    assert _ask(aggregator, SURVEY, "top", size=size).json == {
        "survey": SURVEY.fingerprint,
        "reports": PEOPLE,
        "size": size,
        "certainly": list(top.certainly),
        "possibly": list(top.possibly),
        "level": 0.95,
        "left_out": NOTHING_LEFT_OUT,
    }


@pytest.mark.parametrize(
    ("what", "query", "named"),
    [
        ("estimate", {"decoder": "best"}, "decoder"),
        ("estimate", {"level": 0}, "level"),
        ("estimate", {"level": 1}, "level"),
        ("estimate", {"level": "nan"}, "level"),
        ("estimate", {"level": "inf"}, "level"),
        ("estimate", {"level": "kanarienvogel"}, "level"),
        ("total", {}, "label"),
        ("total", {"label": "clinic", "level": 2}, "level"),
        ("total", {"label": ["clinic"] * 1001}, "label"),
        ("top", {"size": 0}, "size"),
        ("top", {"size": 10_001}, "size"),
        ("top", {"size": 1.5}, "size"),
    ],
)
def test_invalid_parameters_are_named_but_not_echoed(aggregator, what, query, named):
    answer = _ask(aggregator, SURVEY, what, **query)
    assert (answer.status, answer.problem) == (400, "invalid-request")
    assert named in answer.json["detail"]
    assert "kanarienvogel" not in answer.body.decode()


def test_new_reports_change_the_estimate(tmp_path):
    with run_aggregator(tmp_path, AGES) as aggregator:
        aggregator.upload(batch_of(AGES, [0, 1, 2], 1))
        first = _ask(aggregator, AGES, "estimate", decoder="unbiased").json
        aggregator.upload(batch_of(AGES, [3, 3, 3], 2))
        second = _ask(aggregator, AGES, "estimate", decoder="unbiased").json
        assert (first["reports"], second["reports"]) == (3, 6)
        assert first["symbols"] != second["symbols"]


@pytest.mark.parametrize(
    ("what", "query"), [("estimate", {}), ("total", {"label": "bar"}), ("top", {})]
)
def test_there_are_no_results_below_the_minimum(tmp_path, what, query):
    with run_aggregator(tmp_path, SURVEY) as aggregator:
        aggregator.upload(batch_of(SURVEY, [0] * 99, 1))
        answer = _ask(aggregator, SURVEY, what, **query)
        assert (answer.status, answer.problem) == (409, "not-enough-reports")
        aggregator.upload(batch_of(SURVEY, [1], 2))
        assert _ask(aggregator, SURVEY, what, **query).status == 200


@pytest.mark.parametrize(
    ("what", "query"), [("estimate", {}), ("total", {"label": 0}), ("top", {})]
)
def test_there_are_no_results_without_reports(tmp_path, what, query):
    with run_aggregator(tmp_path, AGES) as aggregator:
        answer = _ask(aggregator, AGES, what, **query)
        assert (answer.status, answer.problem) == (409, "not-enough-reports")


# --- status ---------------------------------------------------------------------------------------


def test_the_status_has_reports_per_hour(tmp_path):
    with run_aggregator(tmp_path, SURVEY, AGES) as aggregator:
        for hour, number in ((9, 1), (9, 2), (11, 3)):
            aggregator.store._now = lambda hour=hour: datetime(2026, 11, 15, hour, 59, tzinfo=UTC)
            aggregator.upload(batch_of(SURVEY, [0] * number, number))
        aggregator.upload(batch_of(AGES, [0], 1))
        assert _ask(aggregator, SURVEY, "status").json == {
            "survey": SURVEY.fingerprint,
            "name": "places",
            "title": "Where?",
            "state": "open",
            "reports": 6,
            "minimum_reports": 100,
            "hours": [
                {"hour": "2026-11-15T09", "reports": 3},
                {"hour": "2026-11-15T11", "reports": 3},
            ],
            "left_out": {"days": [], "senders": []},
        }


# --- the token ------------------------------------------------------------------------------------


def _operations(aggregator):
    """Every operation of the OpenAPI document, with an address filled in."""
    document = aggregator.http.get("/v1/openapi.json").json
    filled = {
        "fingerprint": SURVEY.fingerprint,
        "tally": "ab" * 16,
        "day": "2026-11-15",
        "sender": "north",
    }
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            yield method.upper(), path.format(**filled), described


PUBLIC = {
    ("GET", "/v1/surveys"),
    ("GET", f"/v1/surveys/{SURVEY.fingerprint}"),
    ("POST", f"/v1/surveys/{SURVEY.fingerprint}/batches"),
    ("GET", "/health"),
    ("GET", "/ready"),
}


PAGES = {
    "/",
    "/try/{fingerprint}",
    "/label/{fingerprint}",
    "/static/{path:path}",
    "/dashboard/ready",
    "/dashboard/{fingerprint}/promise",
    "/dashboard/{fingerprint}/certificate",
}
"""What people may look at: a survey's promise, and no count."""


def test_undocumented_routes_are_public_or_need_the_token(aggregator):
    """So that the next test, which walks through the document, forgets nothing."""
    paths = aggregator.http.get("/v1/openapi.json").json["paths"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    found = {
        (method, route.path)
        for route in _routes(aggregator.http.app.routes)
        for method in route.methods or ()
    }
    assert described <= found
    for method, path in {one for one in found - described if one[1] != "/v1/openapi.json"}:
        assert not path.startswith("/v1/")
        if method != "GET" or path not in PAGES:
            answer = aggregator.http.request(
                method, path.format(fingerprint=SURVEY.fingerprint, path="x")
            )
            assert (answer.status, answer.problem) == (401, "not-authorised"), path


def _routes(routes):
    for route in routes:
        inner = getattr(route, "routes", None) or getattr(
            getattr(route, "original_router", None), "routes", None
        )
        if inner:
            yield from _routes(inner)
        else:
            yield route


def _attempts(token):
    return {
        "nothing": {},
        "no word": {"Authorization": token},
        "another word": {"Authorization": f"Basic {token}"},
        "an empty token": {"Authorization": "Bearer "},
        "a wrong token": {
            "Authorization": f"Bearer {token[:-1]}{'A' if token[-1] != 'A' else 'B'}"
        },
        "half a token": {"Authorization": f"Bearer {token[:-1]}"},
        "a longer token": {"Authorization": f"Bearer {token}A"},
        "a token in other letters": {"Authorization": f"Bearer {token.swapcase()}"},
        "no letters": {"Authorization": "Bearer \xff\xfe"},
        "a cookie": {"Cookie": f"token={token}"},
    }


def test_every_operation_but_the_public_ones_needs_the_token(aggregator):
    seen = set()
    before = aggregator.dump()
    for method, path, described in _operations(aggregator):
        if (method, path) in PUBLIC:
            assert "security" not in described
            seen.add((method, path))
            continue
        assert described["security"], path
        assert "401" in described["responses"]
        for name, headers in _attempts(aggregator.token).items():
            answer = aggregator.http.request(method, path, headers=headers)
            assert (answer.status, answer.problem) == (401, "not-authorised"), (path, name)
            assert answer.headers["www-authenticate"] == "Bearer"
            assert aggregator.token not in answer.body.decode()
        assert aggregator.http.request(method, f"{path}?token={aggregator.token}").status == 401
    assert seen == PUBLIC
    assert aggregator.dump() == before


def test_known_and_unknown_surveys_look_alike_without_the_token(aggregator):
    assert aggregator.http.get(f"/v1/surveys/{'ab' * 32}/status").status == 401
    assert aggregator.request_with_token(f"/v1/surveys/{'ab' * 32}/status").status == 404


def test_an_aggregator_without_a_token_accepts_none(tmp_path):
    with run_aggregator(tmp_path, SURVEY) as aggregator:
        aggregator.store.set_setting("token_sha256", "")
        assert not Token(aggregator.store).exists
        for token in ("", aggregator.token, "None"):
            assert not Token(aggregator.store).matches(token)


def test_only_a_hash_of_the_token_is_stored(aggregator):
    held = "\n".join(aggregator.dump()).encode() + aggregator.file.read_bytes()
    assert aggregator.token.encode() not in held


def test_replaced_tokens_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(token_module, "_REFRESH_INTERVAL", -1.0)  # look at every request
    with run_aggregator(tmp_path, SURVEY) as aggregator:
        elsewhere = Store.open(f"sqlite:///{aggregator.file}")
        path = f"/v1/surveys/{SURVEY.fingerprint}/status"
        assert aggregator.request_with_token(path).status == 200
        new = Token(elsewhere).create()
        elsewhere.close()
        assert aggregator.request_with_token(path).status == 401
        assert aggregator.http.get(path, Authorization=f"Bearer {new}").status == 200


def test_tokens_are_refreshed_every_five_seconds(
    tmp_path,
):
    with run_aggregator(tmp_path, SURVEY) as aggregator:
        now = [0.0]
        here = Token(aggregator.store, clock=lambda: now[0])
        old = aggregator.token
        new = Token(aggregator.store).create()
        now[0] = 4.9
        assert here.matches(old)
        assert not here.matches(new)
        now[0] = 5.1
        assert here.matches(new)
        assert not here.matches(old)
