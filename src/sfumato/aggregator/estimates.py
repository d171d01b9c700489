"""Estimates for whoever asks: worked out once per state of the counts, one at a time, so that uploads do not starve."""

import asyncio
from collections import OrderedDict

from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.catalogue import Served
from sfumato.aggregator.store import Store
from sfumato.estimation import Estimate

__all__ = ["Estimates"]

_REMEMBERED = 8


class Estimates:
    """Counts only grow, so that their number tells whether an estimate is still that of all reports."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: OrderedDict[tuple[str, int, str], Estimate] = OrderedDict()
        self._one_at_a_time = asyncio.Lock()

    async def of(self, served: Served, decoder: str) -> Estimate:
        """The estimate of all reports so far; ``NotEnoughReports`` below the survey's minimum."""
        fingerprint = served.survey.fingerprint
        async with self._one_at_a_time:
            tally = await run_in_threadpool(self._store.tally, fingerprint, served.outputs)
            key = (fingerprint, tally.reports, decoder)
            if key not in self._held:
                self._held[key] = await run_in_threadpool(served.survey.estimate, tally, decoder=decoder)
                if len(self._held) > _REMEMBERED:
                    self._held.popitem(last=False)
            return self._held[key]
