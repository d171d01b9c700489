"""Endpoints for analysts. They require the analyst token.

Estimates also require the survey's minimum number of reports.
"""

import contextlib
import json
import re
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.http.aggregator import JSON_OBJECT, CurrentAggregator, RequestedSurvey
from sfumato.aggregator.http.floods import LeftOutBody
from sfumato.aggregator.http.problems import problem_responses
from sfumato.aggregator.http.token import require_token
from sfumato.aggregator.store import LeftOut, State
from sfumato.batches import JSON_MEDIA_TYPE
from sfumato.domains import Domain, Label
from sfumato.errors import InvalidArgument, InvalidContext
from sfumato.foundation.decoder_table import DECODER_TABLE
from sfumato.survey import results_as_json

__all__ = ["DecoderName", "router"]

_RESPONSES = problem_responses(
    "invalid-request",
    "not-authorised",
    "too-many-requests",
    "unknown-survey",
    "not-enough-reports",
    "invalid-question",
    "store-unavailable",
)
_ESTIMATE = {"content": JSON_OBJECT, "description": "The estimate."}

if TYPE_CHECKING:
    DecoderName = str
else:
    DecoderName = Literal[*DECODER_TABLE]
Level = Annotated[
    float, Query(gt=0, lt=1, description="The probability that an interval covers the true value.")
]

router = APIRouter(tags=["analysts"], dependencies=[Depends(require_token)])


class HourEntry(BaseModel):
    """The number of reports in an hour (UTC)."""

    hour: str
    reports: int


class StatusBody(BaseModel):
    """The state of a survey and its number of reports."""

    survey: str
    name: str
    title: str
    state: State
    reports: int
    minimum_reports: int
    hours: list[HourEntry]
    left_out: LeftOutBody


class ResultLeftOut(LeftOutBody):
    """What a result leaves out, and the number of reports in it."""

    reports: int


class TotalBody(BaseModel):
    """The combined share of several labels."""

    survey: str
    reports: int
    labels: list[str | int]
    estimate: float
    low: float
    high: float
    level: float
    left_out: ResultLeftOut


class TopBody(BaseModel):
    """The labels that are certainly, and those that are possibly, among the most frequent."""

    survey: str
    reports: int
    size: int
    certainly: list[str | int]
    possibly: list[str | int]
    level: float
    left_out: ResultLeftOut


@router.get("/v1/surveys/{fingerprint}/status", responses=_RESPONSES)
async def read_status(entry: RequestedSurvey, aggregator: CurrentAggregator) -> StatusBody:
    """Return the state of a survey, and how many reports arrived in each hour."""
    status = await aggregator.store_threads.run(aggregator.store.read_status, entry.fingerprint)
    omissions = await aggregator.store_threads.run(
        aggregator.store.read_omissions, entry.fingerprint
    )
    return StatusBody(
        survey=entry.fingerprint,
        name=entry.survey.name,
        title=entry.survey.title,
        state=status.state,
        reports=status.reports,
        minimum_reports=entry.survey.minimum_reports,
        hours=[HourEntry(hour=hour, reports=reports) for hour, reports in status.by_hour],
        left_out=LeftOutBody.from_omissions(omissions),
    )


@router.get("/v1/surveys/{fingerprint}/estimate", responses={200: _ESTIMATE, **_RESPONSES})
async def read_estimate(
    entry: RequestedSurvey,
    aggregator: CurrentAggregator,
    decoder: DecoderName = "auto",
    level: Level = 0.95,
) -> Response:
    """Return each symbol's decoded and unbiased frequencies, with an interval."""
    current = await aggregator.estimates.estimate(entry, decoder)

    def to_json() -> str:
        results = results_as_json(entry.survey, current.estimate, level)
        return json.dumps({**results, "left_out": _describe(current.left_out).model_dump()})

    # Outside the event loop: for a million symbols, the text is about a hundred megabytes.
    return Response(await run_in_threadpool(to_json), media_type=JSON_MEDIA_TYPE)


@router.get("/v1/surveys/{fingerprint}/total", responses=_RESPONSES)
async def read_total(
    entry: RequestedSurvey,
    aggregator: CurrentAggregator,
    label: Annotated[
        list[str], Query(min_length=1, max_length=1000, description="A label; repeatable.")
    ],
    level: Level = 0.95,
) -> TotalBody:
    """Return the combined share of some labels, with an interval that uses their covariances."""
    labels = [_parse_label(entry.survey.context.domain, text) for text in label]
    current = await aggregator.estimates.estimate(entry, "unbiased")
    estimate = current.estimate
    total = await run_in_threadpool(estimate.total, labels, level)
    return TotalBody(
        survey=entry.fingerprint,
        reports=estimate.reports,
        labels=labels,
        estimate=total.estimate,
        low=total.low,
        high=total.high,
        level=level,
        left_out=_describe(current.left_out),
    )


@router.get("/v1/surveys/{fingerprint}/top", responses=_RESPONSES)
async def read_top(
    entry: RequestedSurvey,
    aggregator: CurrentAggregator,
    size: Annotated[int, Query(ge=1, le=10_000)] = 10,
    level: Level = 0.95,
) -> TopBody:
    """Return the labels that are certainly, or possibly, among the most frequent."""
    current = await aggregator.estimates.estimate(entry, "unbiased")
    estimate = current.estimate
    top = await run_in_threadpool(estimate.top, size, level)
    return TopBody(
        survey=entry.fingerprint,
        reports=estimate.reports,
        size=size,
        certainly=list(top.certainly),
        possibly=list(top.possibly),
        level=level,
        left_out=_describe(current.left_out),
    )


def _describe(left_out: LeftOut) -> ResultLeftOut:
    return ResultLeftOut(
        days=list(left_out.days), senders=list(left_out.senders), reports=left_out.reports
    )


def _parse_label(domain: Domain, text: str) -> Label:
    """Return the label that a query parameter refers to: text or an integer."""
    candidates: list[Label] = [text]
    if re.fullmatch(r"-?[0-9]{1,18}", text):
        candidates.append(int(text))
    for label in candidates:
        with contextlib.suppress(InvalidContext):
            domain.label_symbols([label], "label")
            return label
    raise InvalidArgument("label must be in the survey's domain. The survey lists its labels.")
