"""Estimates: computed once per state of the counts, one at a time, so uploads are not starved."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import date, timedelta
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.catalogue import Served
from sfumato.aggregator.store import Store
from sfumato.errors import NotEnoughReports
from sfumato.estimation import Difference, Estimate
from sfumato.promises import Certificate

__all__ = ["Estimates"]

_CACHE_SIZE = 8

_Result = TypeVar("_Result")


class Estimates:
    """Heavy work over surveys and their counts.

    Counts only grow, so an estimate is current while the number of reports is the same.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cache: OrderedDict[tuple[str, str], Estimate] = OrderedDict()
        self._lock = asyncio.Lock()

    async def estimate(self, served: Served, decoder: str) -> Estimate:
        """Estimate from all reports so far; ``NotEnoughReports`` below the survey's minimum."""
        return await self.run(lambda: self._estimate(served, decoder))

    async def difference(self, served: Served, days: int, today: date) -> Difference | None:
        """Compare the last days with those before; ``None`` if either has too few reports."""
        return await self.run(lambda: self._difference(served, days, today))

    async def certificate(self, served: Served) -> Certificate:
        """Certify the survey's promise; for many symbols this takes seconds, once."""
        return await self.run(served.survey.certify)

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """Do heavy work outside the event loop, one task at a time."""
        async with self._lock:
            return await run_in_threadpool(work)

    def _estimate(self, served: Served, decoder: str) -> Estimate:
        survey = served.survey
        tally = self._store.tally(survey.fingerprint, served.outputs)
        key = (survey.fingerprint, decoder)
        estimate = self._cache.get(key)
        if estimate is None or estimate.reports != tally.reports:
            estimate = survey.estimate(tally, decoder=decoder)
            self._cache[key] = estimate
        self._cache.move_to_end(key)
        if len(self._cache) > _CACHE_SIZE:
            self._cache.popitem(last=False)
        return estimate

    def _difference(self, served: Served, days: int, today: date) -> Difference | None:
        try:
            earlier = self._estimate_days(served, days, today - timedelta(days=days))
            later = self._estimate_days(served, days, today)
        except NotEnoughReports:
            return None
        return earlier.difference(later)

    def _estimate_days(self, served: Served, days: int, last: date) -> Estimate:
        """Estimate from the uploads of ``days`` days up to ``last``."""
        survey = served.survey
        first = last - timedelta(days=days - 1)
        tally = self._store.tally_of_days(survey.fingerprint, served.outputs, first, last)
        return survey.estimate(tally, decoder="unbiased")
