"""Metrics for Prometheus: uploads by outcome, and the duration of commits. No client, no value."""

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

__all__ = ["METRICS", "Metrics"]

disable_created_metrics()  # type: ignore[no-untyped-call]  # creation times are clutter

METRICS = "text/plain; version=0.0.4; charset=utf-8"

_GROUP_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """One registry per aggregator."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self._batches = Counter(
            "sfumato_batches", "Batches, by outcome.", ["survey", "outcome"], registry=registry
        )
        self._reports = Counter(
            "sfumato_reports", "Reports counted.", ["survey"], registry=registry
        )
        self._problems = Counter(
            "sfumato_problems", "Requests refused, by problem.", ["problem"], registry=registry
        )
        self._commits = Histogram(
            "sfumato_commit_seconds", "Seconds per commit.", registry=registry
        )
        self._groups = Histogram(
            "sfumato_commit_batches",
            "Batches per commit.",
            buckets=_GROUP_SIZES,
            registry=registry,
        )
        queue = Gauge(
            "sfumato_waiting_batches", "Batches waiting to be written.", registry=registry
        )
        queue.set_function(waiting)

    def count_upload(self, survey: str, outcome: str, reports: int) -> None:
        """Count an answered batch; ``reports`` of its reports are new."""
        self._batches.labels(survey, outcome).inc()
        if reports:
            self._reports.labels(survey).inc(reports)

    def count_problem(self, name: str) -> None:
        """Count a request that ended in a problem."""
        self._problems.labels(name).inc()

    def observe_commit(self, batches: int, seconds: float) -> None:
        """Record a commit, whether it succeeded or not."""
        self._groups.observe(batches)
        self._commits.observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self._registry)
