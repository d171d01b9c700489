"""What clients may read: the list of surveys, and each survey in full."""

import logging

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.http.aggregator import CurrentAggregator, ServedSurvey
from sfumato.aggregator.http.limits import admit
from sfumato.aggregator.http.problems import problem_responses
from sfumato.batches import JSON
from sfumato.errors import SfumatoError

__all__ = ["router"]

_log = logging.getLogger("sfumato.aggregator")

router = APIRouter(tags=["clients"], dependencies=[Depends(admit)])


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
    """List the surveys of this aggregator."""
    now = aggregator.settings.now()
    states = await run_in_threadpool(aggregator.store.states)
    entries = []
    for fingerprint, state in states.items():
        try:
            served = await aggregator.find_survey(fingerprint)
        except SfumatoError as problem:
            # A survey that this version cannot read must not hide the others.
            _log.error(
                "survey %s is left out of the list: %s", fingerprint[:12], type(problem).__name__
            )
            continue
        entry = SurveyEntry(
            fingerprint=fingerprint,
            name=served.survey.name,
            title=served.survey.title,
            open=state == "open" and served.is_open(now),
        )
        entries.append(entry)
    return SurveyList(surveys=entries)


@router.get(
    "/v1/surveys/{fingerprint}",
    responses={
        200: {
            "content": {JSON: {"schema": {"type": "object"}}},
            "description": "The resolved survey.",
        },
        304: {"description": "Unchanged."},
        **problem_responses("unknown-survey", "too-many-requests", "store-unavailable"),
    },
)
async def read_survey(served: ServedSurvey, request: Request) -> Response:
    """Return a resolved survey, byte for byte. Clients check its fingerprint."""
    headers = {"ETag": served.etag, "Cache-Control": "max-age=300"}
    if _lists_etag(request.headers.get("if-none-match", ""), served.etag):
        return Response(status_code=304, headers=headers)
    return Response(served.resolved, headers=headers, media_type=JSON)


def _lists_etag(if_none_match: str, etag: str) -> bool:
    """Whether the client has this version; proxies that compress mark tags as weak (W/)."""
    tags = (tag.strip().removeprefix("W/") for tag in if_none_match.split(","))
    return etag in tags
