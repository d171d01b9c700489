"""Uploads: open to the world, for what arrives is private already.

This one address takes all the traffic, so it is a plain route: the framework's reading of parameters and bodies would
cost more than counting does. What it takes and answers is described by hand for OpenAPI.
"""

from collections.abc import Callable
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel, Field
from starlette.routing import Route

from sfumato.aggregator.aggregator import Aggregator
from sfumato.aggregator.http.body import body_of, media_type_of
from sfumato.aggregator.http.problems import Problem, problem_responses
from sfumato.aggregator.store.store import Outcome
from sfumato.batches import (
    ARROW,
    JSON,
    MAX_BATCH_BYTES,
    MAX_BATCH_REPORTS,
    Batch,
    parse_arrow_batch,
    parse_batch,
)

__all__ = ["UPLOADS", "described_uploads", "uploads"]

UPLOADS = "/v1/surveys/{fingerprint}/batches"

_READERS: dict[str, Callable[[bytes], Batch]] = {JSON: parse_batch, ARROW: parse_arrow_batch}

_PROBLEMS = (
    "invalid-batch",
    "invalid-request",
    "survey-not-open",
    "unknown-survey",
    "method-not-allowed",  # where a name with a question mark or a slash leads to another address
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


class Receipt(BaseModel):
    """What the aggregator says when a batch is counted, now or before."""

    batch: str = Field(description="The identifier of the batch.")
    reports: int = Field(description="How many reports it holds.")
    survey: str = Field(description="The survey's fingerprint.")


class BatchBody(BaseModel, extra="forbid"):
    """A batch in JSON."""

    batch: str = Field(
        pattern="^[0-9a-f]{32}$",
        description="128 bits that the sender made; the same when it sends again.",
    )
    format: int = Field(ge=1, le=1, description="The version of this form.")
    reports: list[int] = Field(min_length=1, max_length=MAX_BATCH_REPORTS)
    survey: str = Field(
        pattern="^[0-9a-f]{64}$", description="The survey's fingerprint, as in the address."
    )


def uploads(aggregator: Aggregator) -> Route:
    """The address that takes reports."""
    settings = aggregator.settings

    async def upload(request: Request) -> Response:
        aggregator.admit(request)
        fingerprint = request.path_params["fingerprint"]
        served = await aggregator.served(fingerprint)
        reader = _READERS.get(media_type_of(request))
        if reader is None:
            raise Problem("unknown-media-type", f"Content-Type must be {JSON} or {ARROW}.")
        now = settings.now()
        if served.opens_later(now):
            raise Problem("survey-not-open", "The survey opens later; its description says when.")
        if served.has_closed(now):
            raise _closed()
        batch = reader(
            await body_of(
                request, aggregator.room, most=MAX_BATCH_BYTES, seconds=settings.body_seconds
            )
        )
        batch.require(fingerprint, served.outputs)
        outcome = await aggregator.writer.count(batch)
        counted = batch.reports.size if outcome is Outcome.COUNTED else 0
        aggregator.metrics.uploaded(served.survey.name, outcome.value, counted)
        return _answered(batch, outcome)

    return Route(UPLOADS, upload, methods=["POST"])


def _answered(batch: Batch, outcome: Outcome) -> Response:
    if outcome in (Outcome.COUNTED, Outcome.REPLAYED):
        id_, reports = batch.id.hex(), batch.reports.size
        receipt = f'{{"batch":"{id_}","reports":{reports},"survey":"{batch.fingerprint}"}}'
        return Response(receipt, 201 if outcome is Outcome.COUNTED else 200, media_type=JSON)
    if outcome is Outcome.CLOSED:
        raise _closed()
    if outcome is Outcome.CONFLICT:
        raise Problem(
            "batch-conflict", "Each batch needs an identifier of its own; the first one stands."
        )
    raise Problem(
        "unknown-survey", "The address names no survey of this aggregator. Look at /v1/surveys."
    )


def _closed() -> Problem:
    return Problem("survey-closed", "The survey takes no more reports. Do not send again.")


def described_uploads() -> dict[str, Any]:
    """The address in OpenAPI's words."""
    body = BatchBody.model_json_schema()
    body["properties"]["reports"]["items"] |= {"minimum": 0, "maximum": 2**32 - 1}
    content = {JSON: {"schema": body}, ARROW: {"schema": {"type": "string", "format": "binary"}}}
    receipt = {"content": {JSON: {"schema": Receipt.model_json_schema()}}}
    counted = {
        "201": {"description": "Counted now.", **receipt},
        "200": {"description": "Counted before.", **receipt},
    }
    problems = {
        str(status): described for status, described in problem_responses(*_PROBLEMS).items()
    }
    where = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    return {
        "tags": ["clients"],
        "summary": "Upload",
        "description": "Count a batch of one or more reports: once, however often it is sent.",
        "operationId": "upload",
        "parameters": [{"name": "fingerprint", "in": "path", "required": True, "schema": where}],
        "requestBody": {"required": True, "content": content},
        "responses": {**counted, **problems},
    }
