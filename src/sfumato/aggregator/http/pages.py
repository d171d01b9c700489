"""Pages for people: the dashboard, the try page, the privacy label, and the files they load."""

from datetime import UTC
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.http.aggregator import CurrentAggregator, RequestedSurvey
from sfumato.aggregator.http.limits import admit, admit_monitor
from sfumato.aggregator.http.problems import Problem
from sfumato.aggregator.http.results import DecoderName
from sfumato.aggregator.http.token import require_token
from sfumato.pages import (
    COMPARISON_PERIODS,
    DASHBOARD_POLICY,
    STATIC_POLICY,
    TRY_POLICY,
    DayRow,
    certificate_view,
    dashboard_page,
    days_view,
    label_page,
    promise_view,
    results_view,
    static_files,
    try_page,
)

__all__ = ["router"]

_RATE_LIMIT = [Depends(admit)]
_LABEL_POLICY = f"{STATIC_POLICY}; frame-ancestors 'none'"  # only a header can forbid framing

router = APIRouter(include_in_schema=False)  # these pages are not part of the API


@router.get("/", dependencies=_RATE_LIMIT)
async def dashboard() -> Response:
    """Return the dashboard."""
    return _html_response(dashboard_page(), DASHBOARD_POLICY)


@router.get("/try/{fingerprint}", dependencies=_RATE_LIMIT)
async def try_survey(entry: RequestedSurvey) -> Response:
    """Return the page where people can try a survey."""
    return _html_response(try_page(entry.survey), TRY_POLICY)


@router.get("/label/{fingerprint}", dependencies=_RATE_LIMIT)
async def label(entry: RequestedSurvey, aggregator: CurrentAggregator) -> Response:
    """Return a survey's privacy label. The first time, certifying the survey may take seconds."""
    pages = aggregator.label_pages

    def render() -> None:
        if entry.etag not in pages:  # another request may have rendered it in the meantime
            pages[entry.etag] = label_page(entry.survey)

    if entry.etag not in pages:
        await aggregator.public_work.run(render)
    return _html_response(pages[entry.etag], _LABEL_POLICY)


@router.get("/static/{path:path}", dependencies=_RATE_LIMIT)
async def static_file(path: str) -> Response:
    """Return a file that a page loads."""
    files = await run_in_threadpool(static_files)
    if path not in files:
        raise Problem("not-found", "There is no such file.")
    content, media_type = files[path]
    headers = {"Cache-Control": "max-age=600"}
    return Response(content, headers=headers, media_type=media_type)


def _html_response(html: str, policy: str) -> Response:
    headers = {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
    return Response(html, headers=headers, media_type="text/html")


# --- data for the dashboard -----------------------------------------------------------------------


@router.get("/dashboard/ready", dependencies=[Depends(admit_monitor)])
async def ready(aggregator: CurrentAggregator) -> dict[str, str]:
    """Confirm that the store can be written to."""
    await aggregator.readiness.require()
    return {"status": "ready"}


@router.get("/dashboard/{fingerprint}/promise", dependencies=_RATE_LIMIT)
async def promise(entry: RequestedSurvey) -> dict[str, Any]:
    """Return a survey's promise in words."""
    return await run_in_threadpool(promise_view, entry.survey)


@router.get("/dashboard/{fingerprint}/certificate", dependencies=_RATE_LIMIT)
async def certificate(entry: RequestedSurvey, aggregator: CurrentAggregator) -> dict[str, Any]:
    """Return the certificate for a survey's promise. Computing it may take seconds."""
    proof = await aggregator.public_work.run(entry.survey.certify)
    return certificate_view(entry.survey, proof)


@router.get("/dashboard/{fingerprint}/results", dependencies=[Depends(require_token)])
async def results(
    entry: RequestedSurvey,
    aggregator: CurrentAggregator,
    decoder: DecoderName = "auto",
    days: Annotated[int, Query(ge=1, le=366)] = 7,
) -> dict[str, Any]:
    """Return the estimate, the uploads by hour, and what changed in the last ``days`` days."""
    if days not in COMPARISON_PERIODS:
        periods = ", ".join(map(str, COMPARISON_PERIODS))
        raise Problem("invalid-request", f"days must be one of {periods}.")
    current = await aggregator.estimates.estimate(entry, decoder)
    today = aggregator.settings.now().astimezone(UTC).date()
    changes = await aggregator.estimates.compare_periods(entry, days, today)
    status = await aggregator.store_threads.run(aggregator.store.read_status, entry.fingerprint)
    return await run_in_threadpool(
        results_view, entry.survey, current.estimate, status.by_hour, changes, days
    )


@router.get("/dashboard/{fingerprint}/days", dependencies=[Depends(require_token)])
async def days_and_senders(entry: RequestedSurvey, aggregator: CurrentAggregator) -> dict[str, Any]:
    """Return what arrived on each day from each sender, and what results leave out."""
    summaries = await aggregator.estimates.summarize_days(entry)
    rows = [
        DayRow(row.day, row.sender, row.reports, row.is_left_out, row.p_value, row.largest_shift)
        for row in summaries
    ]
    left_out = await aggregator.store_threads.run(
        aggregator.store.read_omissions, entry.fingerprint
    )
    return days_view(rows, left_out.days, left_out.senders)
