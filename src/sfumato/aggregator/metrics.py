"""What Prometheus reads: counts of uploads and what became of them, and how long commits take. No client, no value."""

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

disable_created_metrics()  # type: ignore[no-untyped-call]  # when a counter was made is of no use, and clutters

METRICS = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """One registry per aggregator."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        self._registry = mine = CollectorRegistry()
        outcome = ["survey", "outcome"]
        self._batches = Counter(
            "sfumato_batches", "Batches, by what became of them.", outcome, registry=mine
        )
        self._reports = Counter("sfumato_reports", "Reports counted.", ["survey"], registry=mine)
        self._problems = Counter(
            "sfumato_problems", "Requests refused, by problem.", ["problem"], registry=mine
        )
        self._commits = Histogram("sfumato_commit_seconds", "Seconds per commit.", registry=mine)
        sizes = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
        self._groups = Histogram(
            "sfumato_commit_batches", "Batches per commit.", buckets=sizes, registry=mine
        )
        Gauge(
            "sfumato_waiting_batches", "Batches that wait to be written.", registry=mine
        ).set_function(waiting)

    def uploaded(self, survey: str, outcome: str, reports: int) -> None:
        """A batch was answered; ``reports`` of its reports are new."""
        self._batches.labels(survey, outcome).inc()
        if reports:
            self._reports.labels(survey).inc(reports)

    def refused(self, problem: str) -> None:
        """A request ended in a problem."""
        self._problems.labels(problem).inc()

    def committed(self, batches: int, seconds: float) -> None:
        """A group was written, or was to be."""
        self._groups.observe(batches)
        self._commits.observe(seconds)

    def text(self) -> bytes:
        """All of them."""
        return generate_latest(self._registry)
