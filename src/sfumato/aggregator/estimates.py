"""Estimates for whoever asks: worked out once per state of the counts, one at a time, so that uploads do not starve."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import date, timedelta
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.catalogue import Served
from sfumato.aggregator.store.store import Store
from sfumato.errors import NotEnoughReports
from sfumato.estimation import Estimate
from sfumato.estimation.uncertainty.differences import Difference
from sfumato.promises import Certificate

__all__ = ["Estimates"]

_REMEMBERED = 8

_Found = TypeVar("_Found")


class Estimates:
    """Heavy work over surveys and their counts. Counts only grow, so their number tells whether an estimate is new."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: OrderedDict[tuple[str, str], Estimate] = OrderedDict()
        self._one_at_a_time = asyncio.Lock()

    async def of(self, served: Served, decoder: str) -> Estimate:
        """The estimate of all reports so far; ``NotEnoughReports`` below the survey's minimum."""
        return await self.worked_out(lambda: self._estimate(served, decoder))

    async def compared(self, served: Served, days: int, today: date) -> Difference | None:
        """The last days against those before; ``None`` where there are too few reports in either."""
        return await self.worked_out(lambda: self._difference(served, days, today))

    async def certificate(self, served: Served) -> Certificate:
        """That the promise is kept; for many symbols it takes seconds, once."""
        return await self.worked_out(served.survey.certify)

    async def worked_out(self, work: Callable[[], _Found]) -> _Found:
        """Do something heavy outside the event loop, after whatever else is heavy."""
        async with self._one_at_a_time:
            return await run_in_threadpool(work)

    def _estimate(self, served: Served, decoder: str) -> Estimate:
        survey = served.survey
        tally = self._store.tally(survey.fingerprint, served.outputs)
        key = (survey.fingerprint, decoder)
        held = self._held.get(key)
        if held is None or held.reports != tally.reports:
            held = self._held[key] = survey.estimate(tally, decoder=decoder)
        self._held.move_to_end(key)
        if len(self._held) > _REMEMBERED:
            self._held.popitem(last=False)
        return held

    def _difference(self, served: Served, days: int, today: date) -> Difference | None:
        survey, first, middle = (
            served.survey,
            *(today - timedelta(days=times * days - 1) for times in (2, 1)),
        )
        spans = ((first, middle - timedelta(days=1)), (middle, today))
        tallies = [
            self._store.tally_of_days(survey.fingerprint, served.outputs, *span) for span in spans
        ]
        try:
            before, after = (survey.estimate(tally, decoder="unbiased") for tally in tallies)
        except NotEnoughReports:
            return None
        return before.difference(after)
