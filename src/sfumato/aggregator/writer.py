"""One writer for all uploads: batches that wait together are committed together.

Reaching the disk costs milliseconds, whether for one batch or for a hundred. While one group is being committed the
next one gathers, so that many uploads share a commit and none is acknowledged before it is safe.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from sfumato.aggregator.store.store import Outcome, Store
from sfumato.batches import Batch
from sfumato.errors import StoreUnavailable

__all__ = ["Writer"]

_LARGEST_GROUP = 512
_MOST_WAITING = 4096
_MOST_REPORTS = 2**24


@dataclass(frozen=True)
class _Waiting:
    batch: Batch
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Outcome]


class Writer:
    """A thread that owns all writing of counts. Uploads wait for it; it never waits for them."""

    def __init__(
        self, store: Store, *, observe: Callable[[int, float], None] = lambda batches, seconds: None
    ) -> None:
        self._store, self._observe = store, observe
        self._queue: deque[_Waiting] = deque()
        self._reports = 0
        self._ready = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="sfumato-writer", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, then end."""
        with self._ready:
            self._stopping = True
            self._ready.notify()
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether what waits will be written."""
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """Batches that wait for their turn."""
        return len(self._queue)

    async def count(self, batch: Batch) -> Outcome:
        """What became of the batch; by then it is on disk. ``StoreUnavailable`` where that cannot be said."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(batch, loop, loop.create_future())
        with self._ready:
            if (
                self._stopping
                or not self.alive
                or len(self._queue) >= _MOST_WAITING
                or self._reports > _MOST_REPORTS
            ):
                raise StoreUnavailable(
                    "more uploads wait than can be written just now. Try again in a moment."
                )
            self._queue.append(waiting)
            self._reports += batch.reports.size
            self._ready.notify()
        return await waiting.answer

    def _run(self) -> None:
        while group := self._next_group():
            started = perf_counter()
            answers = self._counted([waiting.batch for waiting in group])
            _answer(group, answers)
            with contextlib.suppress(
                Exception
            ):  # a measurement that fails must not stop the writer
                self._observe(len(group), perf_counter() - started)

    def _counted(self, group: Sequence[Batch]) -> Sequence[Outcome | Exception]:
        """What became of each batch. What is wrong with one survey must not be the trouble of the others."""
        try:
            return self._store.commit(group)
        except Exception as problem:  # noqa: BLE001 - whatever it is, uploads must hear of it and the writer go on
            surveys = {batch.fingerprint for batch in group}
            if (
                len(surveys) == 1 or type(problem) is StoreUnavailable
            ):  # a store that is away is away for all of them
                return [problem] * len(group)
        parts = {
            name: iter(self._counted([batch for batch in group if batch.fingerprint == name]))
            for name in surveys
        }
        return [next(parts[batch.fingerprint]) for batch in group]

    def _next_group(self) -> list[_Waiting]:
        """The batches that wait, oldest first; none when there is nothing left to do."""
        with self._ready:
            self._ready.wait_for(lambda: self._queue or self._stopping)
            group = [self._queue.popleft() for _ in range(min(len(self._queue), _LARGEST_GROUP))]
            self._reports -= sum(waiting.batch.reports.size for waiting in group)
            return group


def _answer(group: Sequence[_Waiting], answers: Sequence[Outcome | Exception]) -> None:
    """Wake the uploads of a group: one call into each event loop, however many they are."""
    for loop in {waiting.loop for waiting in group}:
        own = [(w.answer, a) for w, a in zip(group, answers, strict=True) if w.loop is loop]
        with contextlib.suppress(RuntimeError):  # a loop that is closed has nobody waiting
            loop.call_soon_threadsafe(_settle, own)


def _settle(pairs: Sequence[tuple[asyncio.Future[Outcome], Outcome | Exception]]) -> None:
    for future, answer in pairs:
        if future.done():  # whoever waited has gone away; the batch is counted all the same
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
