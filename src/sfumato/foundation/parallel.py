"""Parallel work: a map over processes, which yields results in order, and calls in threads.

Most workers are processes, because most of the work holds the GIL. They are spawned, so
they inherit no state from the parent process. Each worker receives the task once, when it
starts. An interrupted worker exits silently, and every worker exits when its parent does.
"""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from sfumato.errors import EngineStopped, InvalidArgument

Result = TypeVar("Result")
_POLL_SECONDS = 0.2  # between calls to on_progress

Progress = Callable[[int], None]
"""A callback that is called with a running total, such as the number of rows so far."""

Task = Callable[[Any, Progress], Result]
"""A function that takes an item, and a callback to call with the progress on that item.

Every worker receives a pickled copy of the task. If the task returns an iterator, the worker
converts it to a list.
"""


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parallel_map(
    task: Task[Result],
    items: Iterable[Any],
    *,
    workers: int = 1,
    on_progress: Progress = lambda done: None,
) -> Iterator[Result]:
    """Call ``task`` for every item and yield the results in order.

    With one worker, the task runs in this process. With more, at most one item per worker waits in
    the queue, so memory does not grow with the number of items.

    ``on_progress`` is called with the total progress on all items.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InvalidArgument(f"workers must be a positive integer; got {workers!r}.")
    items = list(items)
    workers = min(workers, len(items))
    if workers <= 1:
        return _map_serially(task, items, on_progress)
    return _map_in_processes(task, items, workers, on_progress)


def call_in_threads(work: Callable[[int], None], count: int, *, workers: int) -> None:
    """Call ``work`` with 0, 1, …, ``count`` - 1, in ``workers`` threads.

    Ctrl-C ends this function at once. The threads are daemons, unlike those of an executor, so a
    long call does not delay the end of the process; no further call is started.
    """
    if workers <= 1:
        for index in range(count):
            work(index)
        return
    remaining = iter(range(count))
    lock = threading.Lock()
    problems: list[BaseException] = []
    is_stopped = threading.Event()

    def work_through() -> None:
        while not is_stopped.is_set():
            with lock:
                index = next(remaining, None)
            if index is None:
                return
            try:
                work(index)
            except BaseException as problem:  # noqa: BLE001 - raised in the calling thread
                problems.append(problem)
                is_stopped.set()

    threads = [threading.Thread(target=work_through, daemon=True) for _ in range(workers)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        is_stopped.set()
    if problems:
        raise problems[0]


def _map_serially(task: Task[Result], items: list[Any], on_progress: Progress) -> Iterator[Result]:
    total = 0

    def add(increment: int) -> None:
        nonlocal total
        total += increment
        on_progress(total)

    for item in items:
        yield task(item, _pass_increments(add))


def _map_in_processes(
    task: Task[Result], items: list[Any], workers: int, on_progress: Progress
) -> Iterator[Result]:
    context = multiprocessing.get_context("spawn")
    total = context.Value("q", 0)
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(task, total)
    )
    remaining_items = iter(items)
    futures: deque[Future[Any]] = deque()

    def submit(count: int) -> None:
        with _block_interrupts():  # the pool may start a worker whenever it gets an item
            futures.extend(pool.submit(_run_task, item) for item in islice(remaining_items, count))

    try:
        submit(2 * workers)
        while futures:
            future = futures.popleft()
            while not wait([future], _POLL_SECONDS).done:
                on_progress(total.value)
            yield future.result()
            submit(1)
        on_progress(total.value)
    except BrokenProcessPool:
        raise EngineStopped(
            "a worker exited before it finished. The system may have run out of memory, the "
            "worker may have been killed, or the calling script cannot be imported (it needs "
            '`if __name__ == "__main__":`). Nothing was saved. Try again with fewer workers.'
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block, and in workers started there until they are ready.

    Otherwise, a worker that is interrupted while it imports modules would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def _pass_increments(add: Progress) -> Progress:
    """Return a callback that takes a running total and passes each increase to ``add``."""
    last_total = 0

    def pass_increment(total: int) -> None:
        nonlocal last_total
        add(total - last_total)
        last_total = total

    return pass_increment


# --- in a worker ----------------------------------------------------------------------------------

_worker_state: list[Any] = []


def _start_worker(task: Task[Any], total: Any) -> None:  # noqa: ANN401
    # Ctrl-C in a terminal reaches every process. Exit silently, because the parent reports the
    # interrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    _worker_state[:] = [task, total]
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """Exit when the parent does, because an orphaned worker would hold answers in memory."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_task(item: Any) -> Any:  # noqa: ANN401
    task, total = _worker_state

    def add(increment: int) -> None:
        with total.get_lock():
            total.value += increment

    result = task(item, _pass_increments(add))
    return list(result) if isinstance(result, Iterator) else result
