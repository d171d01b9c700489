"""Threads for blocking work: reading and writing the store, and expensive computations.

A database can hang: its disk is stuck, or its machine is paused. A thread that waits for it cannot
be stopped. So no request and no shutdown waits for these threads: they are abandoned.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from sfumato.aggregator.store import Store
from sfumato.errors import StoreUnavailable

__all__ = ["OneAtATime", "StoreThreads", "run_in_thread"]

_MAX_STORE_THREADS = 10  # the pool of database connections has room for a few more

_Result = TypeVar("_Result")


async def run_in_thread(function: Callable[[], _Result]) -> _Result:
    """Run a function in a thread of its own. If the caller is cancelled, abandon the thread."""
    return await _start_thread(function, lambda: None)


def _start_thread(
    function: Callable[[], _Result], on_end: Callable[[], None]
) -> asyncio.Future[_Result]:
    """Start a thread, and return the future of its result. Call ``on_end`` in the event loop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Result] = loop.create_future()

    def work() -> None:
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - passed to the caller
            resolve = partial(future.set_exception, error)
        else:
            resolve = partial(future.set_result, result)

        def finish() -> None:
            on_end()
            if not future.done():  # the caller may be gone
                resolve()

        with contextlib.suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(finish)

    threading.Thread(target=work, name="sfumato-worker", daemon=True).start()
    return future


class OneAtATime:
    """Runs expensive functions in threads, one after the other."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def run(self, function: Callable[[], _Result]) -> _Result:
        """Wait for earlier functions, then run this one."""
        async with self._lock:
            return await run_in_thread(function)


class StoreThreads:
    """Threads for everything that waits for the store, except the writer's.

    An operation may take as long as it needs. But if it takes longer than ``timeout`` seconds, the
    store is asked for its version. If there is no answer within another ``timeout`` seconds, the
    store hangs: all operations raise ``StoreUnavailable``, and new ones do so at once, until the
    store answers.
    """

    def __init__(self, store: Store, *, timeout: float = 4.0) -> None:
        self._store = store
        self._timeout = timeout
        self._free_threads = asyncio.Semaphore(_MAX_STORE_THREADS)
        self._probe: asyncio.Future[None] | None = None
        self._probe_start = 0.0

    async def run(self, function: Callable[..., _Result], *arguments: object) -> _Result:
        """Run a function that reads or writes the store."""
        if self._probe_is_overdue():
            raise _store_hangs()
        operation = asyncio.ensure_future(self._run_in_turn(partial(function, *arguments)))
        try:
            await asyncio.wait({operation}, timeout=self._timeout)
            while not operation.done():
                await self._probe_store()
                if self._probe_is_overdue() and not operation.done():
                    raise _store_hangs()
                await asyncio.wait({operation}, timeout=self._timeout)
            return operation.result()
        finally:
            operation.cancel()

    async def _run_in_turn(self, function: Callable[[], _Result]) -> _Result:
        await self._free_threads.acquire()
        # An abandoned thread still occupies a connection, so it counts until it ends.
        try:
            future = _start_thread(function, self._free_threads.release)
        except RuntimeError:  # the process may not start another thread
            self._free_threads.release()
            raise
        return await future

    async def _probe_store(self) -> None:
        """Ask the store for its version, once for all callers, and wait for the answer."""
        now = asyncio.get_running_loop().time()
        if self._probe is None or self._probe.done():
            self._probe = _start_thread(self._ask, lambda: None)
            self._probe_start = now
        remaining = self._probe_start + self._timeout - now
        await asyncio.wait({self._probe}, timeout=max(0.0, remaining))

    def _ask(self) -> None:
        # Any answer will do: the operation meets the same error, and reports it.
        with contextlib.suppress(Exception):
            self._store.read_version()

    def _probe_is_overdue(self) -> bool:
        if self._probe is None or self._probe.done():
            return False
        return asyncio.get_running_loop().time() >= self._probe_start + self._timeout


def _store_hangs() -> StoreUnavailable:
    return StoreUnavailable(
        "the store does not respond. Try again later; nothing is counted twice."
    )
