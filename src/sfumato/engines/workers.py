"""Work shared out: a task for each piece, over processes, with the results in the order of the pieces.

Processes and not threads, because most of the work holds the interpreter's lock. They are started afresh (spawned),
so that none inherits a half-used state of its parent, and they get their task once, at the start. A worker that is
interrupted dies quietly; whatever ends the parent's loop ends the workers.
"""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, TypeVar

from sfumato.errors import EngineStopped, InvalidContext

__all__ = ["Task", "available_cores", "shared_out"]

Result = TypeVar("Result")
_LOOK_EVERY = 0.2  # seconds between two looks at how far the workers are


Task = Callable[[Any, Callable[[int], None]], Result]
"""What is done with a piece, given a function that hears how many rows of it have been read so far.

It is pickled once for every worker. An iterator that it returns arrives as a list.
"""


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shared_out(
    task: Task[Result],
    pieces: Iterable[Any],
    *,
    workers: int = 1,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Iterator[Result]:
    """The results of a task for every piece, in order; ``on_progress`` hears how many rows have been read in all.

    One worker is this process itself. With more, at most one piece for each waits beside those in work, so that
    memory does not grow with the number of pieces.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InvalidContext(f"workers must be a whole number of at least 1; found {workers!r}.")
    pieces = list(pieces)
    if min(workers, len(pieces)) <= 1:
        return _here(task, pieces, on_progress)
    return _elsewhere(task, pieces, min(workers, len(pieces)), on_progress)


def _here(
    task: Task[Result], pieces: list[Any], on_progress: Callable[[int], None]
) -> Iterator[Result]:
    total = _Total(on_progress)
    for piece in pieces:
        yield task(piece, total.piece())


def _elsewhere(
    task: Task[Result], pieces: list[Any], workers: int, on_progress: Callable[[int], None]
) -> Iterator[Result]:
    spawning = multiprocessing.get_context("spawn")
    rows = spawning.Value("q", 0)
    pool = ProcessPoolExecutor(
        workers, mp_context=spawning, initializer=_enter, initargs=(task, rows)
    )
    waiting, left = deque[Future[Any]](), iter(pieces)
    try:
        waiting.extend(pool.submit(_work, piece) for piece in islice(left, 2 * workers))
        while waiting:
            first = waiting.popleft()
            while not wait([first], _LOOK_EVERY).done:
                on_progress(rows.value)
            yield first.result()
            waiting.extend(pool.submit(_work, piece) for piece in islice(left, 1))
        on_progress(rows.value)
    except BrokenProcessPool:
        raise EngineStopped(
            "a worker ended before its work was done: the system may have run out of memory, somebody ended it, or the "
            'script that called it cannot be imported (it needs `if __name__ == "__main__":`). Nothing was kept. Try '
            "again with fewer workers."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


class _Total:
    """Rows of all pieces together, from rows of the piece in work."""

    def __init__(self, on_progress: Callable[[int], None]) -> None:
        self._on_progress, self._before, self._now = on_progress, 0, 0

    def piece(self) -> Callable[[int], None]:
        self._before, self._now = self._before + self._now, 0
        return self._hear

    def _hear(self, rows: int) -> None:
        self._now = rows
        self._on_progress(self._before + rows)


# --- in a worker --------------------------------------------------------------------------------------

_entered: list[Any] = []


def _enter(task: Task[Any], rows: Any) -> None:  # noqa: ANN401
    # Ctrl-C reaches every process of a terminal. The parent says what there is to say.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _entered[:] = [task, rows]
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that is killed cannot end its workers; they must not wait for ever with people's answers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(piece: Any) -> Any:  # noqa: ANN401
    task, rows = _entered
    before = 0

    def on_progress(done: int) -> None:
        nonlocal before
        with rows.get_lock():
            rows.value += done - before
        before = done

    result = task(piece, on_progress)
    return list(result) if isinstance(result, Iterator) else result
