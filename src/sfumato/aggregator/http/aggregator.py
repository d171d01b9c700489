"""The state shared by all of an aggregator's routes."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Path, Request

from sfumato.aggregator.catalogue import Catalogue, CatalogueEntry, Estimates
from sfumato.aggregator.http.buckets import Buckets, LocalBuckets
from sfumato.aggregator.http.client_limits import ClientLimits
from sfumato.aggregator.http.connections import ConnectionLimits, Connections
from sfumato.aggregator.http.limits import MemoryQuota
from sfumato.aggregator.http.monitoring import Metrics, Readiness
from sfumato.aggregator.http.problems import unknown_survey
from sfumato.aggregator.http.token import Token
from sfumato.aggregator.store import Store
from sfumato.aggregator.threads import OneAtATime, StoreThreads
from sfumato.aggregator.writer import MAX_WAITING_BATCHES, MAX_WAITING_REPORTS, Writer
from sfumato.batches import FINGERPRINT_PATTERN, JSON_MEDIA_TYPE
from sfumato.errors import StoreUnavailable

__all__ = ["JSON_OBJECT", "Aggregator", "CurrentAggregator", "RequestedSurvey", "Settings"]

JSON_OBJECT: dict[str, Any] = {JSON_MEDIA_TYPE: {"schema": {"type": "object"}}}
"""The OpenAPI description of a body that can be any JSON object."""

_MAX_TOTAL_BODY_BYTES = 2**28  # over all concurrent requests


@dataclass(frozen=True)
class Settings:
    """The settings that an operator can change.

    ``requests_per_minute``: the maximum for each client; 0 means no limit. Each report of an
    anonymous upload counts as a request. ``reports_per_upload``: how many reports an upload may
    have without a sender's key or the token, unless the survey says otherwise. ``body_timeout``:
    the number of seconds within which a request's body must arrive. ``store_timeout``: the number
    of seconds after which the store is suspected to hang; a request waits at most twice as long for
    it. ``connections``: the limits on connections of all workers. ``workers``: the number of
    processes that share the limits. ``new_buckets``: returns what the requests of clients are
    counted in, which several workers must share. ``now``: returns the current time.
    """

    requests_per_minute: int = 6000
    reports_per_upload: int = 1
    body_timeout: float = 30.0
    store_timeout: float = 4.0
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    workers: int = 1
    new_buckets: Callable[[], Buckets] = LocalBuckets
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class Aggregator:
    """The components of an aggregator. The reports it receives are already private."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self.metrics = Metrics(
            lambda: self.writer.waiting_count,
            lambda: self.connections.open_count,
            self._survey_name,
        )
        workers = settings.workers
        self.connections = Connections(
            settings.connections.divide(workers), on_problem=self.metrics.count_problem
        )
        timeout = settings.store_timeout
        self.store_threads = StoreThreads(store, timeout=timeout)
        self.writer = Writer(
            store,
            observe=self.metrics.observe_commit,
            timeout=2 * timeout,
            max_batches=MAX_WAITING_BATCHES // workers,
            max_reports=MAX_WAITING_REPORTS // workers,
        )
        self.readiness = Readiness(store, self.writer, timeout=timeout)
        self.catalogue = Catalogue(store)
        self.estimates = Estimates(store, self.store_threads)
        self.public_work = OneAtATime()  # for anyone, so analysts do not have to wait for it
        self.quota = MemoryQuota(_MAX_TOTAL_BODY_BYTES // workers)
        per_minute = settings.requests_per_minute
        self.limits = ClientLimits(per_minute, settings.new_buckets())
        self.monitor_limits = ClientLimits(per_minute, settings.new_buckets())
        self.token = Token(store)
        self._token_lock = asyncio.Lock()
        self.label_pages: dict[str, str] = {}  # keyed by the survey's ETag

    async def find_survey(self, fingerprint: str) -> CatalogueEntry:
        """Return the survey with this fingerprint, or raise an ``unknown-survey`` problem."""
        entry = self.catalogue.get(fingerprint)
        if entry is None:
            entry = await self.store_threads.run(self.catalogue.find, fingerprint)
        if entry is None:
            raise unknown_survey()
        return entry

    def _survey_name(self, fingerprint: str) -> str:
        entry = self.catalogue.get(fingerprint)
        return "" if entry is None else entry.survey.name

    async def matches_token(self, secret: str) -> bool:
        """Whether ``secret`` is the analyst token, which another aggregator may have replaced."""
        async with self._token_lock:
            if self.token.is_outdated:
                with contextlib.suppress(StoreUnavailable):  # keep the last known token
                    await self.store_threads.run(self.token.refresh)
        return self.token.equals(secret)


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


async def _find_survey(fingerprint: _Fingerprint, aggregator: CurrentAggregator) -> CatalogueEntry:
    return await aggregator.find_survey(fingerprint)


RequestedSurvey = Annotated[CatalogueEntry, Depends(_find_survey)]
"""The survey whose fingerprint is in the path."""
