"""For monitoring: is the process alive, can it write, and what has it done."""

import asyncio
from collections.abc import Callable
from time import monotonic

from fastapi import APIRouter, Depends, Request, Response
from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.http.problems import problem_responses
from sfumato.aggregator.http.token import require_token
from sfumato.aggregator.metrics import METRICS
from sfumato.aggregator.store import Store
from sfumato.aggregator.writer import Writer
from sfumato.errors import StoreUnavailable

__all__ = ["Readiness", "router"]

_SECONDS = 1.0

router = APIRouter(tags=["operators"])


class Readiness:
    """Checks the store at most once a second: a check takes the lock that counting needs."""

    def __init__(
        self, store: Store, writer: Writer, *, clock: Callable[[], float] = monotonic
    ) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock
        self._checked_at = float("-inf")
        self._error: StoreUnavailable | None = None
        self._lock = asyncio.Lock()

    async def require(self) -> None:
        """Raise ``StoreUnavailable`` unless batches can be counted."""
        if not self._writer.alive:
            raise StoreUnavailable("the writer thread has ended. Restart the aggregator.")
        async with self._lock:
            if self._clock() - self._checked_at > _SECONDS:
                self._error = await run_in_threadpool(self._ping)
                self._checked_at = self._clock()
        if self._error is not None:
            raise self._error

    def _ping(self) -> StoreUnavailable | None:
        try:
            self._store.ping()
        except StoreUnavailable as problem:
            return problem
        return None


@router.get("/health")
async def live() -> dict[str, str]:
    """The process answers."""
    return {"status": "alive"}


@router.get("/ready", responses=problem_responses("store-unavailable", "store-full"))
async def ready(request: Request) -> dict[str, str]:
    """The store can be written to."""
    await request.app.state.aggregator.readiness.require()
    return {"status": "ready"}


@router.get(
    "/metrics",
    dependencies=[Depends(require_token)],
    response_class=Response,
    responses={
        200: {
            "content": {"text/plain": {"schema": {"type": "string"}}},
            "description": "For Prometheus.",
        },
        **problem_responses("not-authorised"),
    },
)
async def metrics(request: Request) -> Response:
    """Counters and histograms in Prometheus's text format."""
    return Response(request.app.state.aggregator.metrics.text(), media_type=METRICS)
