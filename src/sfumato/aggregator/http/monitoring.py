"""Monitoring: liveness, readiness and metrics, which reveal nothing about clients or values."""

import asyncio
import os
from collections.abc import Callable, Sequence
from time import monotonic

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from sfumato.aggregator.http.limits import admit_monitor
from sfumato.aggregator.http.problems import problem_responses
from sfumato.aggregator.http.token import require_token
from sfumato.aggregator.store import Outcome, Store
from sfumato.aggregator.threads import run_in_thread
from sfumato.aggregator.writer import Writer
from sfumato.batches import Batch
from sfumato.errors import StoreUnavailable

__all__ = ["METRICS_FOLDER", "Metrics", "Readiness", "forget_worker", "router"]

disable_created_metrics()  # type: ignore[no-untyped-call]  # creation times are not useful here

_PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_CHECK_INTERVAL = 1.0  # seconds
_GAUGE_INTERVAL = 1.0  # seconds

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable with the folder where workers keep their metrics, before they start."""

_LIMIT = [Depends(admit_monitor)]

router = APIRouter(tags=["operators"])


class Metrics:
    """Prometheus metrics: uploads by outcome, problems, and the size and duration of commits.

    ``count_waiting`` returns the number of batches in the writer's queue, ``count_connections``
    the number of open connections, and ``survey_name`` the name of the survey with a fingerprint.
    Surveys may share a name, but not a fingerprint.
    """

    def __init__(
        self,
        count_waiting: Callable[[], int],
        count_connections: Callable[[], int],
        survey_name: Callable[[str], str],
    ) -> None:
        self._survey_name = survey_name
        registry = CollectorRegistry()
        self._registry = registry
        self._batches = Counter(
            "sfumato_batches",
            "Batches, by outcome.",
            ["survey", "fingerprint", "outcome"],
            registry=registry,
        )
        self._reports = Counter(
            "sfumato_reports", "Reports counted.", ["survey", "fingerprint"], registry=registry
        )
        self._problems = Counter(
            "sfumato_problems", "Requests refused, by problem.", ["problem"], registry=registry
        )
        self._commit_seconds = Histogram(
            "sfumato_commit_seconds", "Seconds per commit.", registry=registry
        )
        self._commit_sizes = Histogram(
            "sfumato_commit_batches",
            "Batches per commit.",
            buckets=[2**power for power in range(10)],
            registry=registry,
        )
        self._gauges: dict[Gauge, Callable[[], int]] = {}
        self._add_gauge("waiting_batches", "Batches waiting to be written.", count_waiting)
        self._add_gauge("open_connections", "Open connections of clients.", count_connections)

    def count_problem(self, name: str) -> None:
        """Count a request that ended in a problem."""
        self._problems.labels(name).inc()

    def observe_commit(
        self, batches: Sequence[Batch], outcomes: Sequence[Outcome | Exception], seconds: float
    ) -> None:
        """Record a commit, whether it succeeded or not, and the outcome of each of its batches."""
        self._commit_sizes.observe(len(batches))
        self._commit_seconds.observe(seconds)
        batch_counts: dict[tuple[str, Outcome], int] = {}
        report_counts: dict[str, int] = {}
        for batch, outcome in zip(batches, outcomes, strict=True):
            if isinstance(outcome, Exception):
                continue
            key = batch.fingerprint, outcome
            batch_counts[key] = batch_counts.get(key, 0) + 1
            if outcome is Outcome.COUNTED:
                report_count = report_counts.get(batch.fingerprint, 0)
                report_counts[batch.fingerprint] = report_count + batch.reports.size
        for (fingerprint, outcome), count in batch_counts.items():
            name = self._survey_name(fingerprint)
            self._batches.labels(name, fingerprint, outcome.value).inc(count)
        for fingerprint, count in report_counts.items():
            self._reports.labels(self._survey_name(fingerprint), fingerprint).inc(count)

    def _add_gauge(self, name: str, help_text: str, read: Callable[[], int]) -> None:
        gauge = Gauge(
            f"sfumato_{name}", help_text, registry=self._registry, multiprocess_mode="livesum"
        )
        self._gauges[gauge] = read

    @property
    def are_shared(self) -> bool:
        """Whether this process is one of several workers, which add up their metrics."""
        return METRICS_FOLDER in os.environ

    async def update_gauges(self) -> None:
        """Update the gauges once a second, because another worker may be asked for the metrics."""
        while True:
            self._read_gauges()
            await asyncio.sleep(_GAUGE_INTERVAL)

    def _read_gauges(self) -> None:
        for gauge, read in self._gauges.items():
            gauge.set(read())

    def render(self) -> bytes:
        """Return all metrics in Prometheus's text format, added up over all workers."""
        self._read_gauges()
        if not self.are_shared:
            return generate_latest(self._registry)
        all_workers = CollectorRegistry()
        MultiProcessCollector(all_workers)  # type: ignore[no-untyped-call]
        return generate_latest(all_workers)


def forget_worker(pid: int, folder: str) -> None:
    """Forget the gauges of a worker that has ended. What it counted stays in the sums."""
    mark_process_dead(pid, folder)  # type: ignore[no-untyped-call]


class Readiness:
    """Checks the store at most once a second: each check holds the lock that counting needs.

    ``timeout``: the number of seconds within which the store must answer.
    """

    def __init__(
        self,
        store: Store,
        writer: Writer,
        *,
        timeout: float = 4.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store = store
        self._writer = writer
        self._timeout = timeout
        self._clock = clock
        self._check: asyncio.Task[StoreUnavailable | None] | None = None
        self._check_start = 0.0
        self._checked_at = 0.0

    async def require(self) -> None:
        """Raise ``StoreUnavailable`` unless batches can be counted."""
        if not self._writer.is_alive:
            raise StoreUnavailable("the writer thread has stopped. Restart the aggregator.")
        self._writer.require_progress()
        if self._check is None or self._is_outdated(self._check):
            self._check = asyncio.ensure_future(self._ping())
            self._check_start = self._clock()
        if not self._check.done():
            remaining = self._check_start + self._timeout - self._clock()
            await asyncio.wait({self._check}, timeout=max(0.0, remaining))
        if not self._check.done():
            raise StoreUnavailable("the store does not respond.")
        error = self._check.result()
        if error is not None:
            raise error

    def _is_outdated(self, check: asyncio.Task[StoreUnavailable | None]) -> bool:
        return check.done() and self._clock() - self._checked_at > _CHECK_INTERVAL

    async def _ping(self) -> StoreUnavailable | None:
        try:
            await run_in_thread(self._store.ping)
        except StoreUnavailable as error:
            return error
        finally:
            self._checked_at = self._clock()
        return None


@router.get("/health", dependencies=_LIMIT, responses=problem_responses("too-many-requests"))
async def live() -> dict[str, str]:
    """Confirm that the process is alive."""
    return {"status": "alive"}


@router.get(
    "/ready",
    dependencies=_LIMIT,
    responses=problem_responses("store-unavailable", "store-full", "too-many-requests"),
)
async def ready(request: Request) -> dict[str, str]:
    """Confirm that the store can be written to."""
    await request.app.state.aggregator.readiness.require()
    return {"status": "ready"}


@router.get(
    "/metrics",
    dependencies=[Depends(require_token)],
    response_class=Response,
    responses={
        200: {
            "content": {"text/plain": {"schema": {"type": "string"}}},
            "description": "Metrics for Prometheus.",
        },
        **problem_responses("not-authorised", "too-many-requests"),
    },
)
async def metrics(request: Request) -> Response:
    """Return counters and histograms in Prometheus's text format."""
    return Response(request.app.state.aggregator.metrics.render(), media_type=_PROMETHEUS_TEXT)
