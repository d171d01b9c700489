"""Uploads: open to the world, for what arrives is private already."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from sfumato.aggregator.aggregator import Aggregator, Fingerprint
from sfumato.aggregator.body import body_of, media_type_of
from sfumato.aggregator.problems import Problem, problem_responses
from sfumato.aggregator.store import Outcome
from sfumato.batches import ARROW, JSON, LARGEST_BATCH, LARGEST_BODY, Batch, batch_of_arrow, batch_of_json

__all__ = ["uploads"]

_READERS: dict[str, Callable[[bytes], Batch]] = {JSON: batch_of_json, ARROW: batch_of_arrow}

_PROBLEMS = (
    "invalid-batch",
    "invalid-request",
    "survey-not-open",
    "unknown-survey",
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
        pattern="^[0-9a-f]{32}$", description="128 bits that the sender made; the same when it sends again."
    )
    format: int = Field(ge=1, le=1, description="The version of this form.")
    reports: list[int] = Field(min_length=1, max_length=LARGEST_BATCH)
    survey: str = Field(pattern="^[0-9a-f]{64}$", description="The survey's fingerprint, as in the address.")


def _body() -> dict[str, Any]:
    schema = BatchBody.model_json_schema()
    schema["properties"]["reports"]["items"] |= {"minimum": 0, "maximum": 2**32 - 1}
    binary = {"type": "string", "format": "binary"}
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema}, ARROW: {"schema": binary}}}}


def uploads(aggregator: Aggregator) -> APIRouter:
    """The address that takes reports."""
    router = APIRouter(tags=["clients"])
    settings = aggregator.settings

    @router.post(
        "/v1/surveys/{fingerprint}/batches",
        status_code=201,
        response_model=Receipt,
        openapi_extra=_body(),
        responses={200: {"model": Receipt, "description": "Counted before."}, **problem_responses(*_PROBLEMS)},
    )
    async def upload(fingerprint: Fingerprint, request: Request) -> Response:
        """Count a batch of one or more reports: once, however often it is sent."""
        aggregator.admit(request)
        served = await aggregator.served(fingerprint)
        reader = _READERS.get(media_type_of(request))
        if reader is None:
            raise Problem("unknown-media-type", f"Content-Type must be {JSON} or {ARROW}.")
        now = settings.now()
        if served.opens_later(now):
            raise Problem("survey-not-open", "The survey opens later; its description says when.")
        if served.has_closed(now):
            raise _closed()
        batch = reader(await body_of(request, most=LARGEST_BODY, seconds=settings.body_seconds))
        batch.require(fingerprint, served.outputs)
        outcome = await aggregator.writer.count(batch)
        counted = batch.reports.size if outcome is Outcome.COUNTED else 0
        aggregator.metrics.uploaded(served.survey.name, outcome.value, counted)
        return _answered(batch, outcome)

    return router


def _answered(batch: Batch, outcome: Outcome) -> Response:
    if outcome in (Outcome.COUNTED, Outcome.REPLAYED):
        id_, reports = batch.id.hex(), batch.reports.size
        receipt = f'{{"batch":"{id_}","reports":{reports},"survey":"{batch.fingerprint}"}}'
        return Response(receipt, 201 if outcome is Outcome.COUNTED else 200, media_type=JSON)
    if outcome is Outcome.CLOSED:
        raise _closed()
    if outcome is Outcome.CONFLICT:
        raise Problem("batch-conflict", "Each batch needs an identifier of its own; the first one stands.")
    raise Problem("unknown-survey", "The address names no survey of this aggregator. Look at /v1/surveys.")


def _closed() -> Problem:
    return Problem("survey-closed", "The survey takes no more reports. Do not send again.")
