"""Endpoints for clients: list surveys, read a survey, and upload reports.

They require no token, because reports are already private. Only uploads of many reports require
the token or a bulk sender's key, so that operators can leave out a flood. The upload endpoint gets
nearly all the traffic, so it is a plain Starlette route: FastAPI's parsing of parameters and bodies
would take longer than counting the reports. Its OpenAPI description is written by hand.
"""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field
from starlette.routing import Route

from sfumato.aggregator.http.aggregator import (
    JSON_OBJECT,
    Aggregator,
    CurrentAggregator,
    RequestedSurvey,
)
from sfumato.aggregator.http.limits import admit, charge, get_media_type, read_body
from sfumato.aggregator.http.problems import Problem, problem_responses, unknown_survey
from sfumato.aggregator.http.token import bearer_token, not_authorised
from sfumato.aggregator.store import OPERATOR, Outcome
from sfumato.batches import (
    ARROW_MEDIA_TYPE,
    FINGERPRINT_PATTERN,
    ID_PATTERN,
    JSON_MEDIA_TYPE,
    MAX_BATCH_BYTES,
    MAX_BATCH_REPORTS,
    Batch,
    UploadRules,
    parse_arrow_batch,
    parse_batch,
)
from sfumato.errors import SfumatoError

__all__ = [
    "UPLOAD_FAILURE",
    "UPLOAD_PATH",
    "UPLOAD_ROUTE",
    "UploadReply",
    "count_batch",
    "describe_upload",
    "router",
]

_log = logging.getLogger("sfumato.aggregator")

router = APIRouter(tags=["clients"], dependencies=[Depends(admit)])


# --- surveys --------------------------------------------------------------------------------------


class SurveyEntry(BaseModel):
    """A survey in the list."""

    fingerprint: str
    name: str
    title: str
    open: bool


class SurveyList(BaseModel):
    """All surveys, oldest first."""

    surveys: list[SurveyEntry]


@router.get("/v1/surveys", responses=problem_responses("too-many-requests", "store-unavailable"))
async def list_surveys(aggregator: CurrentAggregator) -> SurveyList:
    """List the surveys on this aggregator."""
    now = aggregator.settings.now()
    states = await aggregator.store_threads.run(aggregator.store.read_states)
    surveys = []
    for fingerprint, state in states.items():
        try:
            entry = await aggregator.find_survey(fingerprint)
        except SfumatoError as error:
            # A survey that this version cannot read must not hide the others.
            _log.error(
                "survey %s is omitted from the list: %s", fingerprint[:12], type(error).__name__
            )
            continue
        listing = SurveyEntry(
            fingerprint=fingerprint,
            name=entry.survey.name,
            title=entry.survey.title,
            open=state == "open" and entry.is_open(now),
        )
        surveys.append(listing)
    return SurveyList(surveys=surveys)


@router.get(
    "/v1/surveys/{fingerprint}",
    responses={
        200: {"content": JSON_OBJECT, "description": "The resolved survey."},
        304: {"description": "Unchanged."},
        **problem_responses("unknown-survey", "too-many-requests", "store-unavailable"),
    },
)
async def read_survey(entry: RequestedSurvey, request: Request) -> Response:
    """Return a resolved survey exactly as stored. Clients verify its fingerprint."""
    headers = {"ETag": entry.etag, "Cache-Control": "max-age=300"}
    if _lists_etag(request.headers.get("if-none-match", ""), entry.etag):
        return Response(status_code=304, headers=headers)
    return Response(entry.resolved, headers=headers, media_type=JSON_MEDIA_TYPE)


def _lists_etag(if_none_match: str, etag: str) -> bool:
    """Whether the header lists this ETag. Proxies that compress replies add a W/ prefix."""
    tags = (tag.strip().removeprefix("W/") for tag in if_none_match.split(","))
    return etag in tags


# --- uploads --------------------------------------------------------------------------------------

UPLOAD_PATH = "/v1/surveys/{fingerprint}/batches"

UPLOAD_FAILURE = "sfumato.upload_failure"
"""The key in an ASGI scope of the error that ``SingleUploads`` met when it counted a batch."""

_PARSERS: dict[str, Callable[[bytes, UploadRules], Batch]] = {
    JSON_MEDIA_TYPE: parse_batch,
    ARROW_MEDIA_TYPE: parse_arrow_batch,
}

_UPLOAD_PROBLEMS = (
    "invalid-batch",
    "invalid-request",
    "not-authorised",
    "too-many-reports",
    "survey-not-open",
    "unknown-survey",
    "method-not-allowed",  # a question mark or slash in a fingerprint leads to another endpoint
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
    """Confirms that a batch has been counted, by this or an earlier request."""

    batch: str = Field(description="The identifier of the batch.")
    reports: int = Field(description="The number of reports in it.")
    survey: str = Field(description="The survey's fingerprint.")


_SURVEY_PATTERN = "^([0-9a-f]{64}|[0-9a-f]{32})$"


class BatchBody(BaseModel, extra="forbid"):
    """A batch in JSON."""

    batch: str = Field(
        pattern=ID_PATTERN,
        description="128 bits chosen by the sender; the same in every retry.",
    )
    format: int = Field(ge=1, le=2, description="The edition of the survey.")
    reports: list[int] = Field(min_length=1, max_length=MAX_BATCH_REPORTS)
    survey: str = Field(
        pattern=_SURVEY_PATTERN,
        description="The survey's fingerprint, as in the path. In format 2, its first 32 digits.",
    )


async def upload(request: Request) -> Response:
    """Count a batch of one or more reports. Sending it again changes nothing."""
    if UPLOAD_FAILURE in request.scope:
        raise request.scope[UPLOAD_FAILURE]
    aggregator: Aggregator = request.app.state.aggregator
    await admit(request)
    fingerprint = request.path_params["fingerprint"]
    entry = await aggregator.find_survey(fingerprint)
    parse = _PARSERS.get(get_media_type(request))
    if parse is None:
        raise Problem(
            "unknown-media-type", f"Content-Type must be {JSON_MEDIA_TYPE} or {ARROW_MEDIA_TYPE}."
        )
    now = aggregator.settings.now()
    if entry.opens_later(now):
        raise Problem("survey-not-open", "See the survey's description for its opening time.")
    if entry.has_closed(now):
        raise _survey_closed()
    sender = await _find_sender(request, aggregator, fingerprint)
    batch = parse(await read_body(request, MAX_BATCH_BYTES), entry.rules)
    batch.require(entry.outputs)
    if sender:
        batch = batch.from_sender(sender)
    else:
        limit = entry.rules.anonymous_reports or aggregator.settings.reports_per_upload
        _require_anonymous_size(request, limit, batch)
    receipt = await count_batch(aggregator, entry.rules.assign_cell(batch, now))
    return Response(receipt.body, receipt.status, media_type=JSON_MEDIA_TYPE)


class UploadReply(NamedTuple):
    """The status and the body of the response to a batch that has been counted."""

    status: int
    body: bytes


async def count_batch(aggregator: Aggregator, batch: Batch) -> UploadReply:
    """Count a batch, and return its receipt. Raise a problem if it is not counted."""
    outcome = await aggregator.writer.count(batch)
    if outcome is Outcome.CLOSED:
        raise _survey_closed()
    if outcome is Outcome.CONFLICT:
        raise Problem(
            "batch-conflict",
            "Each batch needs its own identifier. The first batch remains counted.",
        )
    if outcome not in (Outcome.COUNTED, Outcome.REPLAYED):
        raise unknown_survey()
    body = (
        f'{{"batch":"{batch.id.hex()}","reports":{batch.reports.size},'
        f'"survey":"{batch.fingerprint}"}}'
    )
    return UploadReply(201 if outcome is Outcome.COUNTED else 200, body.encode("ascii"))


async def _find_sender(request: Request, aggregator: Aggregator, fingerprint: str) -> str:
    """Return the bulk sender whose key the request has, or "" if the request is anonymous."""
    if "authorization" not in request.headers:
        return ""
    key = bearer_token(request)
    if await aggregator.matches_token(key):
        return OPERATOR
    name = await aggregator.store_threads.run(aggregator.store.find_sender, fingerprint, key)
    if name is None:
        raise not_authorised("Send a bulk sender's key or the analyst token, or no Authorization.")
    return name


def _require_anonymous_size(request: Request, limit: int, batch: Batch) -> None:
    """Reject an anonymous upload with too many reports, and charge the client for each report."""
    size = batch.reports.size
    if size > limit:
        raise Problem(
            "too-many-reports",
            f"An upload without a key may have at most {limit:,} report{'s' * (limit != 1)}; this "
            f"one has {size:,}. Ask the operator for a sender's key.",
        )
    if size > 1:
        charge(request, size - 1)  # the request itself has paid for one report


UPLOAD_ROUTE = Route(UPLOAD_PATH, upload, methods=["POST"])


def _survey_closed() -> Problem:
    return Problem("survey-closed", "The survey accepts no more reports. Do not retry.")


def describe_upload() -> dict[str, Any]:
    """Return the OpenAPI description of the upload endpoint."""
    body_schema = BatchBody.model_json_schema()
    body_schema["properties"]["reports"]["items"] |= {"minimum": 0, "maximum": 2**32 - 1}
    arrow_schema = {"type": "string", "format": "binary"}
    content = {JSON_MEDIA_TYPE: {"schema": body_schema}, ARROW_MEDIA_TYPE: {"schema": arrow_schema}}
    receipt_content = {JSON_MEDIA_TYPE: {"schema": UploadReceipt.model_json_schema()}}
    responses = {
        201: {"description": "Counted now.", "content": receipt_content},
        200: {"description": "Already counted.", "content": receipt_content},
        **problem_responses(*_UPLOAD_PROBLEMS),
    }
    fingerprint_parameter = {
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
        "parameters": [fingerprint_parameter],
        "requestBody": {"required": True, "content": content},
        "responses": responses,
    }
