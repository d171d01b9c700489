"""A single writer for all uploads: batches that wait together are committed together.

A commit takes milliseconds, whether it writes one batch or a hundred. While one group is being
committed, the next one accumulates. So uploads share commits, and no upload is acknowledged before
it is on disk.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic, perf_counter, sleep

from sfumato.aggregator.store import Outcome, Store
from sfumato.batches import Batch
from sfumato.errors import StoreUnavailable

__all__ = ["MAX_WAITING_BATCHES", "MAX_WAITING_REPORTS", "Writer"]

MAX_WAITING_BATCHES = 2**12
MAX_WAITING_REPORTS = 2**24
"""How much may wait in the queues of all workers together."""

_MAX_GROUP_SIZE = 512
_MAX_IDLE_SECONDS = 10.0
_GATHERING_SECONDS = 0.002
"""How long to wait after a commit of several batches. Their senders, or others, send the next ones
meanwhile. Without this pause, half of them would wait for the next commit, and the other half for
the one after it, so that there would be twice as many commits."""
_FAILURE_MEMORY = 10.0
"""Seconds for which a failed commit makes the aggregator not ready, unless a later one succeeds."""


_Observer = Callable[[Sequence[Batch], Sequence[Outcome | Exception], float], None]


@dataclass(eq=False, slots=True)
class _PendingUpload:
    batch: Batch
    arrival: float
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Outcome]


class Writer:
    """A thread that writes all counts.

    ``observe`` is called after each commit, with its batches, their outcomes, and the number of
    seconds that it took.
    ``timeout``: the number of seconds that an upload waits for its commit. ``max_batches``,
    ``max_reports``: how many of each may wait.
    """

    def __init__(
        self,
        store: Store,
        *,
        observe: _Observer = lambda batches, outcomes, seconds: None,
        timeout: float = 8.0,
        max_batches: int = MAX_WAITING_BATCHES,
        max_reports: int = MAX_WAITING_REPORTS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store = store
        self._observe = observe
        self._timeout = timeout
        self._max_batches = max_batches
        self._max_reports = max_reports
        self._clock = clock
        self._queue: deque[_PendingUpload] = deque()
        self._waiting_report_count = 0
        self._group_arrival: float | None = None  # of the oldest batch that is being committed
        self._failure: StoreUnavailable | None = None  # of the latest commit
        self._failure_time = 0.0
        self._condition = threading.Condition()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="sfumato-writer", daemon=True)

    def start(self) -> None:
        """Start the writer thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write all batches in the queue, then end the thread. Abandon it if the store hangs."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify()
        self._thread.join(self._timeout)

    @property
    def is_alive(self) -> bool:
        """Whether the writer thread is running. If not, the queue will not be written."""
        return self._thread.is_alive()

    @property
    def waiting_count(self) -> int:
        """The number of batches in the queue."""
        return len(self._queue)

    def require_progress(self) -> None:
        """Raise ``StoreUnavailable`` if batches wait for too long, or were not written lately."""
        longest_wait = self._longest_wait()
        if longest_wait > self._timeout / 2:
            raise StoreUnavailable(f"a batch has waited for {longest_wait:.0f} seconds.")
        failure = self._failure
        if failure is not None and self._clock() - self._failure_time < _FAILURE_MEMORY:
            raise failure

    def _longest_wait(self) -> float:
        """Return the number of seconds that the oldest batch has waited."""
        with self._condition:
            return self._oldest_wait(self._clock())

    def _oldest_wait(self, now: float) -> float:
        """Return the seconds that the oldest batch has waited. The caller holds the lock."""
        arrival = self._group_arrival
        if arrival is None and self._queue:
            arrival = self._queue[0].arrival
        return 0.0 if arrival is None else now - arrival

    async def count(self, batch: Batch) -> Outcome:
        """Count a batch, and return its outcome once it is on disk.

        Raise ``StoreUnavailable`` if the outcome is unknown. If the batch was counted after all,
        sending it again is a replay.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        upload = _PendingUpload(batch, self._clock(), loop, future)
        with self._condition:
            if self._oldest_wait(upload.arrival) > self._timeout:
                raise _no_commit_in_time()
            if self._is_overloaded():
                raise StoreUnavailable("too many uploads are waiting. Try again in a moment.")
            self._queue.append(upload)
            self._waiting_report_count += batch.reports.size
            self._condition.notify()
        # Every upload needs a timer, and this one costs less than `asyncio.timeout`.
        timer = loop.call_later(self._timeout, _give_up, future)
        try:
            return await future
        finally:
            timer.cancel()

    def _is_overloaded(self) -> bool:
        return (
            self._is_stopping
            or not self.is_alive
            or len(self._queue) >= self._max_batches
            or self._waiting_report_count > self._max_reports
        )

    def _run(self) -> None:
        while (group := self._take_group()) is not None:
            self._maintain_store()
            if not group:
                continue
            start = perf_counter()
            batches = [upload.batch for upload in group]
            outcomes = self._commit(batches)
            self._note_failure(outcomes)
            # Observe first, so that a client that has its receipt finds its upload in the metrics.
            with contextlib.suppress(Exception):  # a failing observer must not stop the writer
                self._observe(batches, outcomes, perf_counter() - start)
            _deliver_outcomes(group, outcomes)
            if len(group) > 1:
                sleep(_GATHERING_SECONDS)

    def _maintain_store(self) -> None:
        """Do what is due from time to time. If it fails, the writer goes on."""
        with contextlib.suppress(Exception):
            self._store.checkpoint_if_due()
        with contextlib.suppress(Exception):
            self._store.fold_if_due()

    def _note_failure(self, outcomes: Sequence[Outcome | Exception]) -> None:
        self._failure = None
        for outcome in outcomes:
            if isinstance(outcome, StoreUnavailable):
                self._failure = outcome
                self._failure_time = self._clock()
        with self._condition:
            self._group_arrival = None

    def _commit(self, group: Sequence[Batch]) -> Sequence[Outcome | Exception]:
        """Commit a group. An error in one survey must not affect batches for other surveys."""
        try:
            return self._store.commit(group)
        except Exception as error:  # noqa: BLE001 - passed to the uploads; the writer continues
            fingerprints = {batch.fingerprint for batch in group}
            # If the store is unavailable, it is unavailable for all surveys.
            if len(fingerprints) == 1 or type(error) is StoreUnavailable:
                return [error] * len(group)
        outcomes: list[Outcome | Exception | None] = [None] * len(group)
        for fingerprint in fingerprints:
            indices = [i for i, batch in enumerate(group) if batch.fingerprint == fingerprint]
            survey_outcomes = self._commit([group[i] for i in indices])
            for i, outcome in zip(indices, survey_outcomes, strict=True):
                outcomes[i] = outcome
        return [outcome for outcome in outcomes if outcome is not None]

    def _take_group(self) -> list[_PendingUpload] | None:
        """Remove and return the oldest uploads in the queue. Return ``None`` to stop.

        The group is empty if there were no uploads for a while, or if all of them gave up.
        """
        with self._condition:
            is_ready = self._condition.wait_for(
                lambda: self._queue or self._is_stopping, timeout=_MAX_IDLE_SECONDS
            )
            if is_ready and not self._queue:
                return None
            size = min(len(self._queue), _MAX_GROUP_SIZE)
            group = [self._queue.popleft() for _ in range(size)]
            self._waiting_report_count -= sum(upload.batch.reports.size for upload in group)
            # Uploads that gave up will be sent again.
            current = [upload for upload in group if not upload.future.done()]
            if current:
                self._group_arrival = current[0].arrival
            return current


def _give_up(future: asyncio.Future[Outcome]) -> None:
    if not future.done():
        future.set_exception(_no_commit_in_time())


def _no_commit_in_time() -> StoreUnavailable:
    return StoreUnavailable(
        "the store did not confirm the batch in time. Send the same batch again; it counts once."
    )


def _deliver_outcomes(
    group: Sequence[_PendingUpload], outcomes: Sequence[Outcome | Exception]
) -> None:
    """Deliver the outcomes to the uploads that await them, with one call per event loop."""
    pairs = list(zip(group, outcomes, strict=True))
    for loop in {upload.loop for upload in group}:
        loop_pairs = [(upload.future, outcome) for upload, outcome in pairs if upload.loop is loop]
        with contextlib.suppress(RuntimeError):  # the loop is closed, so no upload is waiting
            loop.call_soon_threadsafe(_resolve_futures, loop_pairs)


def _resolve_futures(pairs: Sequence[tuple[asyncio.Future[Outcome], Outcome | Exception]]) -> None:
    for future, outcome in pairs:
        if future.done():  # the upload gave up, but its batch was counted
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
