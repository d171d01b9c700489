"""For those who watch over the process: is it alive, can it write, what has it done."""

from fastapi import APIRouter, Depends, Response

from sfumato.aggregator.aggregator import Aggregator
from sfumato.aggregator.http.problems import problem_responses
from sfumato.aggregator.metrics import METRICS

__all__ = ["health"]


def health(aggregator: Aggregator) -> APIRouter:
    """Liveness, readiness, metrics."""
    router = APIRouter(tags=["operators"])

    @router.get("/health")
    async def live() -> dict[str, str]:
        """The process answers."""
        return {"status": "alive"}

    @router.get("/ready", responses=problem_responses("store-unavailable", "store-full"))
    async def ready() -> dict[str, str]:
        """The store could be written to just now."""
        await aggregator.readiness.demand()
        return {"status": "ready"}

    @router.get(
        "/metrics",
        dependencies=[Depends(aggregator.demand_token)],
        response_class=Response,
        responses={
            200: {
                "content": {"text/plain": {"schema": {"type": "string"}}},
                "description": "For Prometheus.",
            },
            **problem_responses("not-authorised"),
        },
    )
    async def metrics() -> Response:
        """Counters and histograms, as Prometheus reads them."""
        return Response(aggregator.metrics.text(), media_type=METRICS)

    return router
