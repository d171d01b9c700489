"""Pages for people: the dashboard, the try page, the privacy label, and the files that they load."""

from datetime import UTC
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.aggregator import Aggregator
from sfumato.aggregator.http.problems import Problem
from sfumato.aggregator.http.results import DecoderName
from sfumato.pages import (
    COMPARISON_PERIODS,
    DASHBOARD_POLICY,
    STATIC_POLICY,
    TRY_POLICY,
    certificate_view,
    dashboard_page,
    label_page,
    promise_view,
    results_view,
    static_files,
    try_page,
)

__all__ = ["pages"]


def pages(aggregator: Aggregator) -> APIRouter:
    """Pages and the files that they load; for people, so that no machine needs a description of them."""
    router = APIRouter(include_in_schema=False)
    _add_pages(router, aggregator)
    _add_views(router, aggregator)
    return router


def _add_pages(router: APIRouter, aggregator: Aggregator) -> None:
    @router.get("/")
    async def dashboard(request: Request) -> Response:
        aggregator.admit(request)
        return _page(dashboard_page(), DASHBOARD_POLICY)

    @router.get("/try/{fingerprint}")
    async def try_it(fingerprint: str, request: Request) -> Response:
        aggregator.admit(request)
        return _page(try_page((await aggregator.served(fingerprint)).survey), TRY_POLICY)

    labels: dict[str, str] = {}

    @router.get("/label/{fingerprint}")
    async def label(fingerprint: str, request: Request) -> Response:
        aggregator.admit(request)
        served = await aggregator.served(fingerprint)
        if (
            served.etag not in labels
        ):  # it certifies the promise, which takes seconds for many symbols
            labels[served.etag] = await aggregator.estimates.worked_out(
                lambda: label_page(served.survey)
            )
        return _page(labels[served.etag], STATIC_POLICY)

    @router.get("/static/{path:path}")
    async def file(path: str, request: Request) -> Response:
        aggregator.admit(request)
        found = (await run_in_threadpool(static_files)).get(path)
        if found is None:
            raise Problem("not-found", "There is no such file.")
        headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "max-age=600"}
        return Response(found[0], headers=headers, media_type=found[1])


def _page(html: str, policy: str) -> Response:
    headers = {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    return Response(html, headers=headers, media_type="text/html")


def _add_views(router: APIRouter, aggregator: Aggregator) -> None:
    @router.get("/dashboard/ready")
    async def ready(request: Request) -> dict[str, str]:
        aggregator.admit(request)
        await aggregator.readiness.demand()
        return {"status": "ready"}

    @router.get("/dashboard/{fingerprint}/promise")
    async def promise(fingerprint: str, request: Request) -> dict[str, Any]:
        aggregator.admit(request)
        return await run_in_threadpool(promise_view, (await aggregator.served(fingerprint)).survey)

    @router.get("/dashboard/{fingerprint}/certificate")
    async def certificate(fingerprint: str, request: Request) -> dict[str, Any]:
        aggregator.admit(request)
        served = await aggregator.served(fingerprint)
        return certificate_view(served.survey, await aggregator.estimates.certificate(served))

    @router.get("/dashboard/{fingerprint}/results", dependencies=[Depends(aggregator.demand_token)])
    async def results(
        fingerprint: str,
        decoder: DecoderName = "auto",
        days: Annotated[int, Query(ge=1, le=366)] = 7,
    ) -> dict[str, Any]:
        if days not in COMPARISON_PERIODS:
            raise Problem(
                "invalid-request", f"days must be one of {', '.join(map(str, COMPARISON_PERIODS))}."
            )
        served = await aggregator.served(fingerprint)
        found = await aggregator.estimates.of(served, decoder)
        today = aggregator.settings.now().astimezone(UTC).date()
        changes = await aggregator.estimates.compared(served, days, today)
        status = await run_in_threadpool(aggregator.store.status, fingerprint)
        return await run_in_threadpool(
            results_view, served.survey, found, status.by_hour, changes, days
        )
