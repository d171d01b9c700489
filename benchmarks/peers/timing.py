"""CPU time, the best of three."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

MIN_ITEMS = 16


class Cost(NamedTuple):
    """Seconds per item, and the number of items in the timed run."""

    seconds: float
    items: int


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def best_of_three(work: Callable[[], object]) -> float:
    return min(cpu_seconds(work) for _ in range(3))


def cost_per_item(work: Callable[[Any], object], items: Any, min_seconds: float) -> Cost:
    """Double the number of items until a run takes ``min_seconds``, then time it."""
    part = items[:MIN_ITEMS]
    work(part)  # some libraries compile now
    while cpu_seconds(partial(work, part)) < min_seconds and len(part) < len(items):
        part = items[: 2 * len(part)]
    return Cost(best_of_three(partial(work, part)) / len(part), len(part))
