"""Whether the aggregator can count just now: asked often, and found out rarely."""

import asyncio
from collections.abc import Callable
from time import monotonic

from starlette.concurrency import run_in_threadpool

from sfumato.aggregator.store.store import Store
from sfumato.aggregator.writer import Writer
from sfumato.errors import StoreUnavailable

__all__ = ["Readiness"]

_SECONDS = 1.0


class Readiness:
    """One look at the store in a second, however many ask: looking takes the lock that counting needs."""

    def __init__(
        self, store: Store, writer: Writer, *, clock: Callable[[], float] = monotonic
    ) -> None:
        self._store, self._writer, self._clock = store, writer, clock
        self._looked = float("-inf")
        self._error: StoreUnavailable | None = None
        self._one_at_a_time = asyncio.Lock()

    async def demand(self) -> None:
        """Refuse (``StoreUnavailable``) unless batches can be counted."""
        if not self._writer.alive:
            raise StoreUnavailable("the writer has ended; restart the aggregator.")
        async with self._one_at_a_time:
            if self._clock() - self._looked > _SECONDS:
                self._error = await run_in_threadpool(self._ping)
                self._looked = self._clock()
        if self._error is not None:
            raise self._error

    def _ping(self) -> StoreUnavailable | None:
        try:
            self._store.ping()
        except StoreUnavailable as problem:
            return problem
        return None
