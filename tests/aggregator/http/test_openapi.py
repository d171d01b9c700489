"""The OpenAPI document holds: every reply has a documented status, media type and shape."""

from collections import Counter

import numpy as np
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import sfumato as sf
from sfumato.batches import TallyExport, tally_to_json
from sfumato.tally import Tally
from support.http_client import batch_of, run_aggregator

PLACES = ["park", "café", "clinic", "bar", "office"]
SURVEY = sf.Survey("places", sf.HighLow(PLACES, ["clinic", "bar"], 1))
SPARSE = sf.Survey("ages", sf.Uniform(sf.IntegerDomain(5), 1), minimum_reports=10)
TALLY = tally_to_json(
    TallyExport.from_tally(
        bytes(16), Tally(np.ones(SURVEY.mechanism.outputs, dtype=np.int64), SURVEY.fingerprint)
    )
)
CHECKS = [
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
BUSY = (503, 507)

REACHED = {
    "GET /v1/surveys": {200},
    "GET /v1/surveys/{fingerprint}": {200},
    "POST /v1/surveys/{fingerprint}/batches": {201, 400},
    "GET /v1/surveys/{fingerprint}/status": {200, 401},
    "GET /v1/surveys/{fingerprint}/estimate": {200, 401},
    "GET /v1/surveys/{fingerprint}/total": {200, 401},
    "GET /v1/surveys/{fingerprint}/top": {200, 401},
    "POST /v1/surveys/{fingerprint}/open": {200, 401},
    "POST /v1/surveys/{fingerprint}/close": {200, 401},
    "POST /v1/surveys/{fingerprint}/end": {409, 401},
    "GET /v1/surveys/{fingerprint}/exports": {200, 401},
    "PUT /v1/surveys/{fingerprint}/exports/{tally}": {200, 401},
    "POST /v1/surveys/{fingerprint}/imports": {201, 401},
    "GET /v1/surveys/{fingerprint}/days": {200, 401},
    "PUT /v1/surveys/{fingerprint}/omissions/days/{day}": {200, 401},
    "DELETE /v1/surveys/{fingerprint}/omissions/days/{day}": {200, 401},
    "PUT /v1/surveys/{fingerprint}/omissions/senders/{sender}": {404, 401},
    "DELETE /v1/surveys/{fingerprint}/omissions/senders/{sender}": {404, 401},
    "GET /v1/surveys/{fingerprint}/senders": {200, 401},
    "PUT /v1/surveys/{fingerprint}/senders/{sender}": {200, 401},
    "DELETE /v1/surveys/{fingerprint}/senders/{sender}": {404, 401},
    "GET /health": {200},
    "GET /ready": {200},
    "GET /metrics": {200, 401},
}
"""Operations, and statuses that must occur: cases stopped by the first check prove nothing."""


@pytest.fixture
def aggregator(tmp_path):
    with run_aggregator(tmp_path, SURVEY, SPARSE) as found:
        found.upload(batch_of(SURVEY, [0, 1, 2, 3, 4, 1], 2**100))
        yield found


def _operations(aggregator):
    schema = schemathesis.openapi.from_dict(aggregator.http.get("/v1/openapi.json").json)
    return {
        operation.label: operation
        for operation in (found.ok() for found in schema.get_all_operations())
    }


def _sensible(case, name):
    """Let a case ask for what is here, which chance alone would never do."""
    if "fingerprint" in case.path_parameters:
        case.path_parameters["fingerprint"] = name
    if "sender" in case.path_parameters:
        case.path_parameters["sender"] = "north"
    if isinstance(case.body, dict) and "survey" in case.body:
        case.body["survey"] = name
    if case.operation.label.endswith("/total"):
        case.query["label"] = PLACES[:2]
    if case.operation.label.endswith("/imports"):
        case.body = TALLY
        case.media_type = "application/json"


def _called(aggregator, case, token):
    """Send a case to the application in this process."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    sent = case.as_transport_kwargs(base_url="http://aggregator", headers=headers)
    sent.pop("cookies", None)
    if isinstance(case.body, bytes) and case.media_type == "application/json":
        sent.pop("json", None)
        sent["data"] = case.body
    prepared = requests.Request(**sent).prepare()
    body = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body or b""
    path, _, query = prepared.path_url.partition("?")
    named = {
        **prepared.headers,
        "Content-Type": prepared.headers.get("Content-Type", "application/json"),
    }
    answer = aggregator.http.request(
        prepared.method, f"{requests.compat.unquote(path)}?{query}", body=body, headers=named
    )
    headers = {name: [value] for name, value in answer.headers.items()}
    return Response(answer.status, headers, answer.body, prepared, elapsed=0.0, verify=True)


def _examined(aggregator, operation, examples):
    """Send many cases to an operation; how often each status came."""
    modes = st.sampled_from([GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    cases = modes.flatmap(lambda mode: operation.as_strategy(generation_mode=mode))
    names = st.sampled_from([SURVEY.fingerprint] * 3 + [SPARSE.fingerprint, None])
    tokens = st.sampled_from([aggregator.token] * 4 + [None])
    statuses = Counter()

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, name=names, token=tokens)
    def check(case, name, token):
        if name is not None:
            _sensible(case, name)
        response = _called(aggregator, case, token)
        statuses[response.status_code] += 1
        assert response.status_code < 500 or response.status_code in BUSY, response.content
        case.validate_response(
            response, checks=CHECKS if name else [*CHECKS, negative_data_rejection]
        )

    check()
    return statuses


@pytest.mark.parametrize("label", REACHED)
def test_responses_match_openapi(aggregator, label):
    assert REACHED[label] <= set(_examined(aggregator, _operations(aggregator)[label], 60))


@pytest.mark.slow
@pytest.mark.parametrize("label", REACHED)
def test_repeated_responses_match_openapi(aggregator, label):
    assert REACHED[label] <= set(_examined(aggregator, _operations(aggregator)[label], 500))


def test_every_operation_is_examined(aggregator):
    assert set(_operations(aggregator)) == set(REACHED)
