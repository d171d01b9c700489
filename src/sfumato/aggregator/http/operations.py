"""What operators do to a survey: open and close it, hand its counts out, bring counts in."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.aggregator import Aggregator, Fingerprint
from sfumato.aggregator.http.body import body_of, media_type_of
from sfumato.aggregator.http.problems import Problem, problem_responses
from sfumato.aggregator.store.store import Outcome, State
from sfumato.batches import JSON, TallyExport, parse_id, parse_tally, tally_to_json
from sfumato.errors import InvalidBatch, WrongSurvey
from sfumato.foundation.canonical import canonical_bytes

__all__ = ["operations"]

_PROBLEMS = (
    "not-authorised",
    "unknown-survey",
    "method-not-allowed",
    "store-unavailable",
    "store-full",
)
_ROOM = 2**20

ExportId = Annotated[
    str,
    Path(
        description="128 bits that the caller made; the same name gives the same tally again.",
        json_schema_extra={"pattern": "^[0-9a-f]{32}$"},
    ),
]


class StateBody(BaseModel):
    """The state that a survey is in now."""

    survey: str
    state: State


class ExportEntry(BaseModel):
    """A tally that went out."""

    tally: str
    reports: int


class ExportList(BaseModel):
    """All tallies that went out, oldest first. They do not overlap."""

    exports: list[ExportEntry]


class BroughtBody(BaseModel):
    """What the aggregator says when a tally is counted, now or before."""

    tally: str
    reports: str = Field(
        description="How many reports it holds, in digits: there may be more than JSON numbers hold."
    )
    survey: str


def operations(aggregator: Aggregator) -> APIRouter:
    """Addresses for operators, behind the token."""
    router = APIRouter(tags=["operators"], dependencies=[Depends(aggregator.demand_token)])
    _add_states(router, aggregator)
    _add_exports(router, aggregator)
    _add_imports(router, aggregator)
    return router


def _add_states(router: APIRouter, aggregator: Aggregator) -> None:
    store = aggregator.store
    described = problem_responses(*_PROBLEMS, "survey-state")

    async def changed(fingerprint: str, change: Callable[[str], None]) -> StateBody:
        await aggregator.served(fingerprint)
        try:
            await run_in_threadpool(change, fingerprint)
        except WrongSurvey as problem:
            raise Problem("survey-state", str(problem)) from None
        return StateBody(
            survey=fingerprint, state=(await run_in_threadpool(store.status, fingerprint)).state
        )

    @router.post("/v1/surveys/{fingerprint}/open", responses=described)
    async def open_survey(fingerprint: Fingerprint) -> StateBody:
        """Take reports again."""
        return await changed(fingerprint, store.set_open)

    @router.post("/v1/surveys/{fingerprint}/close", responses=described)
    async def close_survey(fingerprint: Fingerprint) -> StateBody:
        """Take no more reports. The survey can be opened again."""
        return await changed(fingerprint, store.set_closed)

    @router.post("/v1/surveys/{fingerprint}/end", responses=described)
    async def end_survey(fingerprint: Fingerprint) -> StateBody:
        """Forget the identifiers of a closed survey's batches. It stays closed for ever."""
        return await changed(fingerprint, store.forget_ids)


def _add_exports(router: APIRouter, aggregator: Aggregator) -> None:
    store = aggregator.store

    @router.get("/v1/surveys/{fingerprint}/exports", responses=problem_responses(*_PROBLEMS))
    async def list_exports(fingerprint: Fingerprint) -> ExportList:
        """Which tallies went out."""
        await aggregator.served(fingerprint)
        entries = await run_in_threadpool(store.exports, fingerprint)
        return ExportList(
            exports=[ExportEntry(tally=id_.hex(), reports=reports) for id_, reports in entries]
        )

    @router.put(
        "/v1/surveys/{fingerprint}/exports/{tally}",
        responses={
            200: {"content": {JSON: {"schema": {"type": "object"}}}, "description": "The tally."},
            **problem_responses(*_PROBLEMS, "invalid-request", "not-enough-reports"),
        },
    )
    async def export(fingerprint: Fingerprint, tally: ExportId) -> Response:
        """Hand out what was counted since the last export, under a name; the same name gives the same again."""
        served = await aggregator.served(fingerprint)
        try:
            id_ = parse_id(tally)
        except InvalidBatch:
            raise Problem(
                "invalid-request", "A tally is named by 32 hexadecimal digits in lower case."
            ) from None
        sent = await run_in_threadpool(store.export, fingerprint, id_, served.outputs)
        if sent is None:
            raise Problem("not-enough-reports", "Nothing was counted since the last export.")
        return Response(await run_in_threadpool(tally_to_json, sent), media_type=JSON)


def _add_imports(router: APIRouter, aggregator: Aggregator) -> None:
    @router.post(
        "/v1/surveys/{fingerprint}/imports",
        status_code=201,
        response_model=BroughtBody,
        openapi_extra={
            "requestBody": {"required": True, "content": {JSON: {"schema": {"type": "object"}}}}
        },
        responses={
            200: {"model": BroughtBody, "description": "Counted before."},
            **problem_responses(
                *_PROBLEMS,
                "invalid-tally",
                "invalid-request",
                "body-too-slow",
                "tally-conflict",
                "survey-closed",
                "body-too-large",
                "unknown-media-type",
            ),
        },
    )
    async def bring(fingerprint: Fingerprint, request: Request) -> Response:
        """Add a tally that another aggregator handed out: once, however often it is brought."""
        served = await aggregator.served(fingerprint)
        if media_type_of(request) != JSON:
            raise Problem("unknown-media-type", f"Content-Type must be {JSON}.")
        most = 11 * served.outputs + _ROOM  # eight bytes a count, in base64
        body = await body_of(
            request, aggregator.room, most=most, seconds=aggregator.settings.body_seconds
        )
        sent = await run_in_threadpool(parse_tally, body)
        if sent.tally.fingerprint != fingerprint or sent.tally.outputs != served.outputs:
            raise Problem(
                "invalid-tally", "The tally belongs to another survey than the address names."
            )
        return _brought(sent, await run_in_threadpool(aggregator.store.bring, sent))


def _brought(sent: TallyExport, outcome: Outcome) -> Response:
    if outcome in (Outcome.COUNTED, Outcome.REPLAYED):
        receipt = {
            "tally": sent.id.hex(),
            "reports": str(sent.tally.reports),
            "survey": sent.tally.fingerprint,
        }
        return Response(
            canonical_bytes(receipt), 201 if outcome is Outcome.COUNTED else 200, media_type=JSON
        )
    if outcome is Outcome.CLOSED:
        raise Problem("survey-closed", "The survey is closed. Open it to bring a tally in.")
    if outcome is Outcome.CONFLICT:
        raise Problem("tally-conflict", "Another tally was counted under this identifier.")
    if outcome is Outcome.UNKNOWN:
        raise Problem(
            "unknown-survey", "The address names no survey of this aggregator. Look at /v1/surveys."
        )
    raise Problem(
        "tally-conflict",
        "This tally, or one that it covers, is in the counts on another way already.",
    )
