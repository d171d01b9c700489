"""CPU time, the best of three."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

FEWEST = 16


class Cost(NamedTuple):
    """Seconds per item, and for how many items they were taken."""

    seconds: float
    items: int


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def best_of_three(work: Callable[[], object]) -> float:
    return min(cpu_seconds(work) for _ in range(3))


def cost_per_item(work: Callable[[Any], object], items: Any, long_enough: float) -> Cost:
    """Twice as many items again and again, until a run is long enough or takes all; those runs are the warm-up."""
    chosen = items[:FEWEST]
    work(chosen)  # some libraries compile now
    while cpu_seconds(lambda: work(chosen)) < long_enough and len(chosen) < len(items):  # noqa: B023 - called at once
        chosen = items[: 2 * len(chosen)]
    return Cost(best_of_three(lambda: work(chosen)) / len(chosen), len(chosen))
