"""Endpoints for operators: open, close or end a survey, and export or import its counts."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.catalogue import CatalogueEntry
from sfumato.aggregator.http.aggregator import (
    JSON_OBJECT,
    Aggregator,
    CurrentAggregator,
    RequestedSurvey,
)
from sfumato.aggregator.http.limits import get_media_type, read_body
from sfumato.aggregator.http.problems import Problem, problem_responses, unknown_survey
from sfumato.aggregator.http.token import require_token
from sfumato.aggregator.store import Outcome, State
from sfumato.batches import (
    ID_PATTERN,
    JSON_MEDIA_TYPE,
    TallyExport,
    UploadRules,
    parse_id,
    parse_tally,
    tally_to_json,
)
from sfumato.errors import InvalidBatch, WrongSurvey
from sfumato.foundation.canonical import canonical_bytes

__all__ = ["router"]

_PROBLEMS = (
    "not-authorised",
    "too-many-requests",
    "unknown-survey",
    "method-not-allowed",
    "store-unavailable",
    "store-full",
)
_STATE_PROBLEMS = problem_responses(*_PROBLEMS, "survey-state")
_IMPORT_PROBLEMS = problem_responses(
    *_PROBLEMS,
    "invalid-tally",
    "invalid-request",
    "body-too-slow",
    "tally-conflict",
    "survey-closed",
    "body-too-large",
    "unknown-media-type",
)

_MAX_OVERHEAD_BYTES = 2**20
"""The maximum size in bytes of an imported tally, excluding its counts."""

_MAX_IMPORTED_CELLS = 400
_MAX_IMPORT_BYTES = 2**28

ExportId = Annotated[
    str,
    Path(
        description="128 bits chosen by the caller; the same identifier returns the same tally.",
        json_schema_extra={"pattern": ID_PATTERN},
    ),
]

router = APIRouter(tags=["operators"], dependencies=[Depends(require_token)])


class StateBody(BaseModel):
    """The current state of a survey."""

    survey: str
    state: State


class ExportEntry(BaseModel):
    """An exported tally."""

    tally: str
    reports: int


class ExportList(BaseModel):
    """All exported tallies, oldest first. They do not overlap."""

    exports: list[ExportEntry]


class ImportReceipt(BaseModel):
    """Confirms that a tally has been counted, by this or an earlier request."""

    tally: str
    reports: str = Field(
        description="The number of reports, as text, because it may exceed JSON's safe integers."
    )
    survey: str


@router.post("/v1/surveys/{fingerprint}/open", responses=_STATE_PROBLEMS)
async def open_survey(entry: RequestedSurvey, aggregator: CurrentAggregator) -> StateBody:
    """Accept reports again."""
    return await _change_state(aggregator, entry, aggregator.store.set_open)


@router.post("/v1/surveys/{fingerprint}/close", responses=_STATE_PROBLEMS)
async def close_survey(entry: RequestedSurvey, aggregator: CurrentAggregator) -> StateBody:
    """Accept no more reports. You can open the survey again."""
    return await _change_state(aggregator, entry, aggregator.store.set_closed)


@router.post("/v1/surveys/{fingerprint}/end", responses=_STATE_PROBLEMS)
async def end_survey(entry: RequestedSurvey, aggregator: CurrentAggregator) -> StateBody:
    """Delete the identifiers of a closed survey's batches. It can never be opened again."""
    return await _change_state(aggregator, entry, aggregator.store.forget_ids)


async def _change_state(
    aggregator: Aggregator, entry: CatalogueEntry, change: Callable[[str], None]
) -> StateBody:
    try:
        await aggregator.store_threads.run(change, entry.fingerprint)
    except WrongSurvey as error:
        raise Problem("survey-state", str(error)) from None
    status = await aggregator.store_threads.run(aggregator.store.read_status, entry.fingerprint)
    return StateBody(survey=entry.fingerprint, state=status.state)


@router.get("/v1/surveys/{fingerprint}/exports", responses=problem_responses(*_PROBLEMS))
async def list_exports(entry: RequestedSurvey, aggregator: CurrentAggregator) -> ExportList:
    """List the exported tallies."""
    exports = await aggregator.store_threads.run(aggregator.store.list_exports, entry.fingerprint)
    return ExportList(
        exports=[ExportEntry(tally=id_.hex(), reports=reports) for id_, reports in exports]
    )


@router.put(
    "/v1/surveys/{fingerprint}/exports/{tally}",
    responses={
        200: {"content": JSON_OBJECT, "description": "The tally."},
        **problem_responses(*_PROBLEMS, "invalid-request", "not-enough-reports"),
    },
)
async def export(
    tally: ExportId, entry: RequestedSurvey, aggregator: CurrentAggregator
) -> Response:
    """Export the counts since the last export. The same identifier returns the same tally."""
    try:
        id_ = parse_id(tally)
    except InvalidBatch:
        raise Problem(
            "invalid-request", "A tally's identifier must be 32 lowercase hexadecimal digits."
        ) from None
    result = await aggregator.store_threads.run(
        aggregator.store.export, entry.fingerprint, id_, entry.outputs, entry.survey.edition
    )
    if result is None:
        raise Problem("not-enough-reports", "Nothing has been counted since the last export.")
    return Response(await run_in_threadpool(tally_to_json, result), media_type=JSON_MEDIA_TYPE)


@router.post(
    "/v1/surveys/{fingerprint}/imports",
    status_code=201,
    response_model=ImportReceipt,
    openapi_extra={"requestBody": {"required": True, "content": JSON_OBJECT}},
    responses={
        200: {"model": ImportReceipt, "description": "Already counted."},
        **_IMPORT_PROBLEMS,
    },
)
async def import_tally(
    entry: RequestedSurvey, aggregator: CurrentAggregator, request: Request
) -> Response:
    """Add a tally that another aggregator exported. Sending it again changes nothing."""
    if get_media_type(request) != JSON_MEDIA_TYPE:
        raise Problem("unknown-media-type", f"Content-Type must be {JSON_MEDIA_TYPE}.")
    body = await read_body(request, _max_import_size(entry.rules))
    exported = await run_in_threadpool(parse_tally, body)
    cells = exported.cells
    if cells.fingerprint != entry.fingerprint or cells.outputs != entry.outputs:
        raise Problem("invalid-tally", "The tally and the path refer to different surveys.")
    entry.rules.require_export(exported)
    outcome = await aggregator.store_threads.run(aggregator.store.import_tally, exported)
    return _import_response(exported, outcome)


def _max_import_size(rules: UploadRules) -> int:
    """Return the maximum size of a tally in bytes: many cells, or a single cell of any size."""
    cell_size = 11 * rules.outputs  # a count has 8 bytes, encoded as base64
    max_cells = _MAX_IMPORTED_CELLS if rules.every else 1
    return max(cell_size, min(max_cells * cell_size, _MAX_IMPORT_BYTES)) + _MAX_OVERHEAD_BYTES


def _import_response(exported: TallyExport, outcome: Outcome) -> Response:
    if outcome in (Outcome.COUNTED, Outcome.REPLAYED):
        receipt = {
            "tally": exported.id.hex(),
            "reports": str(exported.tally.reports),
            "survey": exported.tally.fingerprint,
        }
        status = 201 if outcome is Outcome.COUNTED else 200
        return Response(canonical_bytes(receipt), status, media_type=JSON_MEDIA_TYPE)
    if outcome is Outcome.CLOSED:
        raise Problem("survey-closed", "The survey is closed. Open it to import a tally.")
    if outcome is Outcome.CONFLICT:
        raise Problem("tally-conflict", "A different tally was counted under this identifier.")
    if outcome is Outcome.UNKNOWN:
        raise unknown_survey()
    raise Problem(
        "tally-conflict",
        "This tally, or one that it covers, was already counted as part of another.",
    )
