"""Work that is shared out to processes; what comes back does not depend on how many there are."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import TypeVar

from sfumato.errors import InvalidContext

__all__ = ["shared_out"]

Job = TypeVar("Job")
Found = TypeVar("Found")


def shared_out(
    work: Callable[[Job], Found],
    jobs: Sequence[Job],
    *,
    workers: int | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> list[Found]:
    """``work(job)`` for each job, in their order; ``on_progress`` hears how many are done.

    As many processes as there are cores unless said otherwise; one worker is this process itself. Decoding is many
    small steps that hold the interpreter's lock, so threads would wait for each other. ``work`` must be a function of
    a module, and depend on nothing but its job.

    >>> shared_out(abs, [3, -4], workers=1)
    [3, 4]
    """
    if workers is not None and workers < 1:
        raise InvalidContext(f"workers must be at least 1; found {workers}.")
    count = min(workers or os.cpu_count() or 1, len(jobs))
    found: list[Found] = []
    if count <= 1:
        for job in jobs:
            found.append(_alone(work, job))
            on_progress(len(found))
        return found
    # New interpreters, not copies of this one: a copy would inherit locks that other threads hold at that moment.
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        for result in pool.map(partial(_alone, work), jobs):
            found.append(result)
            on_progress(len(found))
    return found


def _alone(work: Callable[[Job], Found], job: Job) -> Found:
    """One job on one core: libraries that start threads of their own would only get into each other's way."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return work(job)
