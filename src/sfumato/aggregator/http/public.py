"""What clients may read: which surveys there are, and each of them whole."""

import logging

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.aggregator import Aggregator, Fingerprint
from sfumato.aggregator.http.problems import problem_responses
from sfumato.batches import JSON
from sfumato.errors import SfumatoError

__all__ = ["public"]

_log = logging.getLogger("sfumato.aggregator")


class SurveyEntry(BaseModel):
    """A survey in the list."""

    fingerprint: str
    name: str
    title: str
    open: bool


class SurveyList(BaseModel):
    """All surveys, in the order in which they came."""

    surveys: list[SurveyEntry]


def public(aggregator: Aggregator) -> APIRouter:
    """Surveys for clients."""
    router = APIRouter(tags=["clients"])

    @router.get(
        "/v1/surveys", responses=problem_responses("too-many-requests", "store-unavailable")
    )
    async def list_surveys(request: Request) -> SurveyList:
        """Which surveys there are."""
        aggregator.admit(request)
        now, entries = aggregator.settings.now(), []
        for fingerprint, state in (await run_in_threadpool(aggregator.store.states)).items():
            try:
                served = await aggregator.served(fingerprint)
            except (
                SfumatoError
            ) as problem:  # one that this version cannot read must not hide the others
                _log.error(
                    "survey %s is left out of the list: %s",
                    fingerprint[:12],
                    type(problem).__name__,
                )
                continue
            taking = state == "open" and not served.opens_later(now) and not served.has_closed(now)
            survey = served.survey
            entries.append(
                SurveyEntry(
                    fingerprint=fingerprint, name=survey.name, title=survey.title, open=taking
                )
            )
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
    async def read_survey(fingerprint: Fingerprint, request: Request) -> Response:
        """A resolved survey, byte for byte: clients check its fingerprint against the one they were written for."""
        aggregator.admit(request)
        served = await aggregator.served(fingerprint)
        headers = {"ETag": served.etag, "Cache-Control": "max-age=300"}
        if _names(request.headers.get("if-none-match", ""), served.etag):
            return Response(status_code=304, headers=headers)
        return Response(served.resolved, headers=headers, media_type=JSON)

    return router


def _names(held: str, etag: str) -> bool:
    """Whether a client holds this version already; proxies that compress mark what they pass on as weak."""
    return etag in (one.strip().removeprefix("W/") for one in held.split(","))
