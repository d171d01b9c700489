"""The surveys that an aggregator serves and their estimates, kept in memory.

Estimates are computed once per state of the counts, and one at a time, so that uploads do not
starve.
"""

import asyncio
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.store import Store
from sfumato.batches import is_fingerprint
from sfumato.errors import NotEnoughReports
from sfumato.estimation import Difference, Estimate
from sfumato.survey import Survey

__all__ = ["Catalogue", "CatalogueEntry", "Estimates"]

_MAX_ESTIMATES = 8

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class CatalogueEntry:
    """A survey, with the bytes that clients get."""

    survey: Survey
    resolved: bytes

    @cached_property
    def etag(self) -> str:
        """A hash of the bytes. A corrected title changes it, but keeps the fingerprint."""
        return f'"{hashlib.sha256(self.resolved).hexdigest()[:32]}"'

    @property
    def fingerprint(self) -> str:
        """The survey's fingerprint."""
        return self.survey.fingerprint

    @property
    def outputs(self) -> int:
        """The number of possible reports."""
        return self.survey.mechanism.outputs

    def opens_later(self, now: datetime) -> bool:
        """Whether the survey's description says that it opens after ``now``."""
        return self._opens is not None and now < self._opens

    def has_closed(self, now: datetime) -> bool:
        """Whether the survey's description says that it closed before ``now``."""
        return self._closes is not None and now >= self._closes

    def is_open(self, now: datetime) -> bool:
        """Whether the survey's description says that it is open."""
        return not self.opens_later(now) and not self.has_closed(now)

    # Parsed once, because every upload needs them.

    @cached_property
    def _opens(self) -> datetime | None:
        return self._time("opens")

    @cached_property
    def _closes(self) -> datetime | None:
        return self._time("closes")

    def _time(self, name: str) -> datetime | None:
        text = str(self.survey.description.about[name])
        if not text:
            return None
        time = datetime.fromisoformat(text)
        return time if time.tzinfo else time.replace(tzinfo=UTC)


class Catalogue:
    """Surveys by fingerprint.

    A survey that another aggregator adds to the store is loaded at the first request for it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries: dict[str, CatalogueEntry] = {}
        self._loading = threading.Lock()

    def get(self, fingerprint: str) -> CatalogueEntry | None:
        """Return a survey that is in memory, without waiting."""
        return self._entries.get(fingerprint)

    def find(self, fingerprint: str) -> CatalogueEntry | None:
        """Return a survey, from the store if necessary."""
        if not is_fingerprint(fingerprint):  # the database rejects some texts
            return None
        with self._loading:
            if fingerprint not in self._entries:
                resolved = self._store.read_resolved(fingerprint)
                if resolved is None:
                    return None
                survey = Survey.from_resolved(resolved)
                self._entries[fingerprint] = CatalogueEntry(survey, resolved)
            return self._entries[fingerprint]


class Estimates:
    """Heavy work over surveys and their counts.

    Counts only grow, so an estimate is current as long as the number of reports is the same.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cache: OrderedDict[tuple[str, str], Estimate] = OrderedDict()
        self._lock = asyncio.Lock()

    async def estimate(self, entry: CatalogueEntry, decoder: str) -> Estimate:
        """Estimate from all reports so far; ``NotEnoughReports`` below the survey's minimum."""
        return await self.run(lambda: self._estimate(entry, decoder))

    async def difference(self, entry: CatalogueEntry, days: int, today: date) -> Difference | None:
        """Compare the last days with those before; ``None`` if either has too few reports."""
        return await self.run(lambda: self._difference(entry, days, today))

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """Do heavy work outside the event loop, one task at a time."""
        async with self._lock:
            return await run_in_threadpool(work)

    def _estimate(self, entry: CatalogueEntry, decoder: str) -> Estimate:
        survey = entry.survey
        tally = self._store.tally(survey.fingerprint, entry.outputs)
        key = (survey.fingerprint, decoder)
        estimate = self._cache.get(key)
        if estimate is None or estimate.reports != tally.reports:
            estimate = survey.estimate(tally, decoder=decoder)
            self._cache[key] = estimate
        self._cache.move_to_end(key)
        if len(self._cache) > _MAX_ESTIMATES:
            self._cache.popitem(last=False)
        return estimate

    def _difference(self, entry: CatalogueEntry, days: int, today: date) -> Difference | None:
        try:
            earlier = self._estimate_days(entry, days, today - timedelta(days=days))
            later = self._estimate_days(entry, days, today)
        except NotEnoughReports:
            return None
        return earlier.difference(later)

    def _estimate_days(self, entry: CatalogueEntry, days: int, last: date) -> Estimate:
        """Estimate from the uploads of ``days`` days up to ``last``."""
        survey = entry.survey
        first = last - timedelta(days=days - 1)
        tally = self._store.tally_of_days(survey.fingerprint, entry.outputs, first, last)
        return survey.estimate(tally, decoder="unbiased")
