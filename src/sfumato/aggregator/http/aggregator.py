"""What the routes of an aggregator share."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Path, Request
from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.catalogue import Catalogue, Served
from sfumato.aggregator.estimates import Estimates
from sfumato.aggregator.http.body import MemoryQuota
from sfumato.aggregator.http.health import Readiness
from sfumato.aggregator.http.limits import ClientLimits
from sfumato.aggregator.http.problems import unknown_survey
from sfumato.aggregator.http.token import Token
from sfumato.aggregator.metrics import Metrics
from sfumato.aggregator.store import Store
from sfumato.aggregator.writer import Writer
from sfumato.batches import FINGERPRINT_PATTERN

__all__ = ["Aggregator", "CurrentAggregator", "ServedSurvey", "Settings"]

_MAX_BODY_BYTES = 2**28  # of all requests together


@dataclass(frozen=True)
class Settings:
    """What an operator may choose.

    ``requests_per_minute``: limit for each client; 0 means no limit. ``body_seconds``: time for a
    request's body to arrive. ``now``: the clock.
    """

    requests_per_minute: int = 6000
    body_seconds: float = 30.0
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class Aggregator:
    """Receives and counts. Trusted with nothing but reports that are private already."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self.metrics = Metrics(lambda: self.writer.waiting)
        self.writer = Writer(store, observe=self.metrics.observe_commit)
        self.readiness = Readiness(store, self.writer)
        self.catalogue = Catalogue(store)
        self.estimates = Estimates(store)
        self.quota = MemoryQuota(_MAX_BODY_BYTES)
        self.limits = ClientLimits(settings.requests_per_minute)
        self.token = Token(store)
        self.labels: dict[str, str] = {}  # pages by the ETag of their survey

    async def find_survey(self, fingerprint: str) -> Served:
        """Return the survey that a request names."""
        served = self.catalogue.get(fingerprint)
        if served is None:
            served = await run_in_threadpool(self.catalogue.find, fingerprint)
        if served is None:
            raise unknown_survey()
        return served


async def _current_aggregator(request: Request) -> Aggregator:
    aggregator: Aggregator = request.app.state.aggregator
    return aggregator


CurrentAggregator = Annotated[Aggregator, Depends(_current_aggregator)]

_Fingerprint = Annotated[
    str,
    Path(
        description="The survey's fingerprint.", json_schema_extra={"pattern": FINGERPRINT_PATTERN}
    ),
]


async def _find_survey(fingerprint: _Fingerprint, aggregator: CurrentAggregator) -> Served:
    return await aggregator.find_survey(fingerprint)


ServedSurvey = Annotated[Served, Depends(_find_survey)]
"""The survey that the path names by its fingerprint."""
