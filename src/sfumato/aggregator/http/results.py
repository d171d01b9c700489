"""Results: for whoever holds the token, from the survey's minimum number of reports on."""

import contextlib
import json
import re
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.aggregator import Aggregator, Fingerprint
from sfumato.aggregator.http.problems import problem_responses
from sfumato.aggregator.store.store import State
from sfumato.batches import JSON
from sfumato.domains import Domain, Label
from sfumato.errors import InvalidContext
from sfumato.survey.results import results_of

__all__ = ["DecoderName", "results"]

_PROBLEMS = (
    "invalid-request",
    "not-authorised",
    "unknown-survey",
    "not-enough-reports",
    "invalid-question",
    "store-unavailable",
)
_DIGITS = re.compile(r"-?[0-9]{1,18}\Z")

DecoderName = Literal[
    "auto", "projection", "likelihood", "empirical-bayes", "spatial-bayes", "unbiased"
]
Level = Annotated[
    float, Query(gt=0, lt=1, description="The probability that an interval covers the truth.")
]


class HourEntry(BaseModel):
    """How many reports came in an hour (UTC)."""

    hour: str
    reports: int


class StatusBody(BaseModel):
    """How a survey stands."""

    survey: str
    name: str
    title: str
    state: State
    reports: int
    minimum_reports: int
    hours: list[HourEntry]


class TotalBody(BaseModel):
    """The share of several labels together."""

    survey: str
    reports: int
    labels: list[str | int]
    estimate: float
    low: float
    high: float
    level: float


class TopBody(BaseModel):
    """Which labels are certainly, and which possibly, among the most frequent."""

    survey: str
    reports: int
    size: int
    certainly: list[str | int]
    possibly: list[str | int]
    level: float


def results(aggregator: Aggregator) -> APIRouter:
    """What analysts ask for."""
    router = APIRouter(tags=["analysts"], dependencies=[Depends(aggregator.demand_token)])
    described = problem_responses(*_PROBLEMS)

    @router.get("/v1/surveys/{fingerprint}/status", responses=described)
    async def read_status(fingerprint: Fingerprint) -> StatusBody:
        """How a survey stands, and how many reports came in which hour."""
        survey = (await aggregator.served(fingerprint)).survey
        status = await run_in_threadpool(aggregator.store.status, fingerprint)
        return StatusBody(
            survey=fingerprint,
            name=survey.name,
            title=survey.title,
            state=status.state,
            reports=status.reports,
            minimum_reports=survey.minimum_reports,
            hours=[HourEntry(hour=hour, reports=reports) for hour, reports in status.by_hour],
        )

    object_ = {"content": {JSON: {"schema": {"type": "object"}}}, "description": "The estimate."}

    @router.get("/v1/surveys/{fingerprint}/estimate", responses={200: object_, **described})
    async def read_estimate(
        fingerprint: Fingerprint, decoder: DecoderName = "auto", level: Level = 0.95
    ) -> Response:
        """The distribution: for each symbol its decoded frequency, the unbiased one, and an interval."""
        served = await aggregator.served(fingerprint)
        found = await aggregator.estimates.of(served, decoder)
        # Written outside the event loop: a million symbols are a hundred megabytes of text.
        body = await run_in_threadpool(lambda: json.dumps(results_of(served.survey, found, level)))
        return Response(body, media_type=JSON)

    @router.get("/v1/surveys/{fingerprint}/total", responses=described)
    async def read_total(
        fingerprint: Fingerprint,
        label: Annotated[
            list[str], Query(min_length=1, max_length=1000, description="A label; give several.")
        ],
        level: Level = 0.95,
    ) -> TotalBody:
        """The share of some labels together, with an interval that knows their covariances."""
        served = await aggregator.served(fingerprint)
        labels = [_label(served.survey.context.domain, text) for text in label]
        found = await aggregator.estimates.of(served, "unbiased")
        total = await run_in_threadpool(found.total, labels, level)
        ends = {"estimate": total.estimate, "low": total.low, "high": total.high, "level": level}
        return TotalBody(survey=fingerprint, reports=found.reports, labels=labels, **ends)

    @router.get("/v1/surveys/{fingerprint}/top", responses=described)
    async def read_top(
        fingerprint: Fingerprint,
        size: Annotated[int, Query(ge=1, le=10_000)] = 10,
        level: Level = 0.95,
    ) -> TopBody:
        """Which labels are certainly, and which possibly, among the most frequent."""
        served = await aggregator.served(fingerprint)
        found = await aggregator.estimates.of(served, "unbiased")
        top = await run_in_threadpool(found.top, size, level)
        sets = {"certainly": list(top.certainly), "possibly": list(top.possibly)}
        return TopBody(survey=fingerprint, reports=found.reports, size=size, level=level, **sets)

    return router


def _label(domain: Domain, text: str) -> Label:
    """A label as an address writes it: text, or a number in digits."""
    readings: list[Label] = [text, int(text)] if _DIGITS.match(text) else [text]
    for label in readings:
        with contextlib.suppress(InvalidContext):
            domain.label_symbols([label], "label")
            return label
    raise InvalidContext(
        "label must be a label of the survey's domain; look at the survey for them."
    )
