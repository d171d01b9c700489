"""Uploads: open to the world, because reports are private already.

This address takes all the traffic, so it is a plain route: FastAPI's parsing of parameters and
bodies would cost more than counting does. Its OpenAPI description is written by hand.
"""

from collections.abc import Callable
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel, Field
from starlette.routing import Route

from sfumato.aggregator.http.aggregator import Aggregator
from sfumato.aggregator.http.body import media_type_of, read_body
from sfumato.aggregator.http.limits import admit
from sfumato.aggregator.http.problems import Problem, problem_responses, unknown_survey
from sfumato.aggregator.store import Outcome
from sfumato.batches import (
    ARROW,
    FINGERPRINT_PATTERN,
    ID_PATTERN,
    JSON,
    MAX_BATCH_BYTES,
    MAX_BATCH_REPORTS,
    Batch,
    parse_arrow_batch,
    parse_batch,
)

__all__ = ["UPLOAD_PATH", "UPLOAD_ROUTE", "describe_upload"]

UPLOAD_PATH = "/v1/surveys/{fingerprint}/batches"

_PARSERS: dict[str, Callable[[bytes], Batch]] = {JSON: parse_batch, ARROW: parse_arrow_batch}

_PROBLEMS = (
    "invalid-batch",
    "invalid-request",
    "survey-not-open",
    "unknown-survey",
    "method-not-allowed",  # a fingerprint with a question mark or a slash leads to another address
    "body-too-slow",
    "batch-conflict",
    "survey-closed",
    "body-too-large",
    "unknown-media-type",
    "report-rejected",
    "too-many-requests",
    "store-unavailable",
    "store-full",
)


class UploadReceipt(BaseModel):
    """Confirms that a batch is counted, now or before."""

    batch: str = Field(description="The identifier of the batch.")
    reports: int = Field(description="How many reports it holds.")
    survey: str = Field(description="The survey's fingerprint.")


class BatchBody(BaseModel, extra="forbid"):
    """A batch in JSON."""

    batch: str = Field(
        pattern=ID_PATTERN,
        description="128 bits that the sender chose; the same in every retry.",
    )
    format: int = Field(ge=1, le=1, description="The version of this format.")
    reports: list[int] = Field(min_length=1, max_length=MAX_BATCH_REPORTS)
    survey: str = Field(
        pattern=FINGERPRINT_PATTERN, description="The survey's fingerprint, as in the address."
    )


async def upload(request: Request) -> Response:
    """Count a batch of one or more reports: once, however often it is sent."""
    aggregator: Aggregator = request.app.state.aggregator
    settings = aggregator.settings
    await admit(request)
    fingerprint = request.path_params["fingerprint"]
    served = await aggregator.find_survey(fingerprint)
    parse = _PARSERS.get(media_type_of(request))
    if parse is None:
        raise Problem("unknown-media-type", f"Content-Type must be {JSON} or {ARROW}.")
    now = settings.now()
    if served.opens_later(now):
        raise Problem("survey-not-open", "The survey opens later; its description says when.")
    if served.has_closed(now):
        raise _survey_closed()
    body = await read_body(
        request, aggregator.quota, limit=MAX_BATCH_BYTES, seconds=settings.body_seconds
    )
    batch = parse(body)
    batch.require(fingerprint, served.outputs)
    outcome = await aggregator.writer.count(batch)
    new_reports = batch.reports.size if outcome is Outcome.COUNTED else 0
    aggregator.metrics.count_upload(served.survey.name, outcome.value, new_reports)
    return _response(batch, outcome)


UPLOAD_ROUTE = Route(UPLOAD_PATH, upload, methods=["POST"])


def _response(batch: Batch, outcome: Outcome) -> Response:
    if outcome in (Outcome.COUNTED, Outcome.REPLAYED):
        receipt = (
            f'{{"batch":"{batch.id.hex()}","reports":{batch.reports.size},'
            f'"survey":"{batch.fingerprint}"}}'
        )
        return Response(receipt, 201 if outcome is Outcome.COUNTED else 200, media_type=JSON)
    if outcome is Outcome.CLOSED:
        raise _survey_closed()
    if outcome is Outcome.CONFLICT:
        raise Problem(
            "batch-conflict", "Each batch needs its own identifier. The first batch stays counted."
        )
    raise unknown_survey()


def _survey_closed() -> Problem:
    return Problem("survey-closed", "The survey accepts no more reports. Do not retry.")


def describe_upload() -> dict[str, Any]:
    """Describe the address for OpenAPI."""
    body = BatchBody.model_json_schema()
    body["properties"]["reports"]["items"] |= {"minimum": 0, "maximum": 2**32 - 1}
    content = {JSON: {"schema": body}, ARROW: {"schema": {"type": "string", "format": "binary"}}}
    receipt = {JSON: {"schema": UploadReceipt.model_json_schema()}}
    responses: dict[str, Any] = {
        "201": {"description": "Counted now.", "content": receipt},
        "200": {"description": "Counted before.", "content": receipt},
    }
    for status, description in problem_responses(*_PROBLEMS).items():
        responses[str(status)] = description
    fingerprint = {
        "name": "fingerprint",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "pattern": FINGERPRINT_PATTERN},
    }
    return {
        "tags": ["clients"],
        "summary": "Upload",
        "description": upload.__doc__,
        "operationId": "upload",
        "parameters": [fingerprint],
        "requestBody": {"required": True, "content": content},
        "responses": responses,
    }
