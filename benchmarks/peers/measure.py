"""Measure one case in its own process: read it as JSON, print the figures as JSON."""

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from case import EPSILON, OURS, PeerCase
from contestant import Contestant, Floats, NotOffered, PeerEstimates, Symbols
from timing import best_of_three, cost_per_item

MODULES = {
    "pure-ldp": "peer_pure_ldp",
    "multi-freq-ldpy": "peer_multi_freq_ldpy",
    "OpenDP": "peer_opendp",
    OURS: "ours",
}

# People whose reports are in memory at a time for accuracy: some reports have a bit per symbol.
BATCH = 1000
MAX_SECONDS = 30.0  # of CPU time, after which no run for accuracy starts


def main() -> None:
    case = PeerCase(**json.loads(sys.argv[1]))
    use_one_core()
    module = importlib.import_module(MODULES[case.library])
    figures = TASKS[case.task](lambda: module.contestant(case.mechanism, case.size, EPSILON), case)
    print(json.dumps(figures))


def use_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    gc.disable()  # as timeit does


def speed(make: Callable[[], Contestant], case: PeerCase) -> dict[str, Any]:
    """Return seconds per person, in bulk and one by one; per report; and per decoding."""
    contestant = make()
    everyone = contestant.people(np.random.default_rng(0).integers(0, case.size, case.people))
    client = cost_per_item(contestant.privatize, everyone, case.seconds)
    alone = cost_per_item(lambda people: one_by_one(contestant, people), everyone, case.seconds)
    reports = contestant.privatize(everyone[: client.items])
    figures: dict[str, Any] = {
        "people": client.items,
        "client": client.seconds,
        "alone": alone.seconds,
    }
    try:
        server = cost_per_item(contestant.count, reports, case.seconds)
        figures |= {"reports": server.items, "server": server.seconds}
        counts = contestant.count(reports[: server.items])
        contestant.decode(counts)  # warms up
        figures["decode"] = best_of_three(lambda: contestant.decode(counts))
    except NotOffered:
        pass
    return figures


def one_by_one(contestant: Contestant, people: Any) -> None:
    for i in range(len(people)):
        contestant.privatize(people[i : i + 1])


def accuracy(make: Callable[[], Contestant], case: PeerCase) -> dict[str, Any]:
    """Return total variation between shares and estimates: projected, and the library's default."""
    # Imported here, so that speeds of peers do not depend on it.
    from sfumato.foundation.simplex import project

    symbols = zipf_population(case.size, case.people)
    shares = np.bincount(symbols, minlength=case.size) / case.people
    start = time.process_time()
    runs = [estimates(make(), symbols)]
    while len(runs) < case.runs and time.process_time() - start < MAX_SECONDS:
        runs.append(estimates(make(), symbols))
    figures = {"people": case.people, "runs": len(runs), "raw": runs[0].raw.tolist()}
    projected = [total_variation(project(run.raw), shares) for run in runs]
    own = [total_variation(run.own, shares) for run in runs if run.own is not None]
    return figures | mean_and_error("projected", projected) | mean_and_error("own", own)


def estimates(contestant: Contestant, symbols: Symbols) -> PeerEstimates:
    for start in range(0, symbols.size, BATCH):
        contestant.gather(contestant.privatize(contestant.people(symbols[start : start + BATCH])))
    return contestant.estimates()


def mean_and_error(name: str, values: list[float]) -> dict[str, float]:
    """Return the mean, and its standard error if there are several values."""
    figures = {name: float(np.mean(values))} if values else {}
    if len(values) > 1:
        figures[f"{name}_error"] = float(np.std(values, ddof=1) / len(values) ** 0.5)
    return figures


def zipf_population(size: int, people: int) -> Symbols:
    """Return the same people for every case: shares in proportion to 1/(x + 1)."""
    ends = np.cumsum(1 / np.arange(1, size + 1))
    points = np.random.default_rng(1).random(people) * ends[-1]
    return np.searchsorted(ends, points, side="right").astype(np.int64)


def total_variation(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).sum() / 2)


TASKS = {"speed": speed, "accuracy": accuracy}

if __name__ == "__main__":
    main()
