"""Measures one case, in a process of its own: takes it as JSON, prints what it found as JSON."""

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from case import EPSILON, OURS, Case
from contestant import Contestant, Estimates, Floats, NotOffered, Symbols
from timing import best_of_three, cost_per_item

MODULES = {
    "pure-ldp": "peer_pure_ldp",
    "multi-freq-ldpy": "peer_multi_freq_ldpy",
    "OpenDP": "peer_opendp",
    OURS: "ours",
}

BATCH = 1000  # people whose reports are held at a time where accuracy is judged; some reports have a bit per symbol
PATIENCE = 30.0  # seconds of CPU time after which accuracy is not judged once more


def main() -> None:
    case = Case(**json.loads(sys.argv[1]))
    stay_on_one_core()
    module = importlib.import_module(MODULES[case.library])
    found = TASKS[case.task](lambda: module.contestant(case.mechanism, case.size, EPSILON), case)
    print(json.dumps(found))


def stay_on_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    gc.disable()  # as timeit does


def speed(make: Callable[[], Contestant], case: Case) -> dict[str, Any]:
    """Seconds per person, in bulk and one by one; per report; and per decoding."""
    contestant = make()
    everybody = contestant.people(np.random.default_rng(0).integers(0, case.size, case.people))
    client = cost_per_item(contestant.privatize, everybody, case.seconds)
    alone = cost_per_item(lambda people: one_by_one(contestant, people), everybody, case.seconds)
    reports = contestant.privatize(everybody[: client.items])
    found: dict[str, Any] = {
        "people": client.items,
        "client": client.seconds,
        "alone": alone.seconds,
    }
    try:
        server = cost_per_item(contestant.count, reports, case.seconds)
        found |= {"reports": server.items, "server": server.seconds}
        counted = contestant.count(reports[: server.items])
        contestant.decode(counted)  # warms up
        found["decode"] = best_of_three(lambda: contestant.decode(counted))
    except NotOffered:
        pass
    return found


def one_by_one(contestant: Contestant, people: Any) -> None:
    for i in range(len(people)):
        contestant.privatize(people[i : i + 1])


def accuracy(make: Callable[[], Contestant], case: Case) -> dict[str, Any]:
    """Total variation between the shares of a crowd and their estimates: projected, and as the library has them."""
    from sfumato.foundation.simplex import (
        project,
    )  # here, so that speeds of peers do not depend on us

    symbols = zipf_crowd(case.size, case.people)
    shares = np.bincount(symbols, minlength=case.size) / case.people
    start, runs = time.process_time(), [estimates(make(), symbols)]
    while len(runs) < case.runs and time.process_time() - start < PATIENCE:
        runs.append(estimates(make(), symbols))
    found = {"people": case.people, "runs": len(runs), "raw": runs[0].raw.tolist()}
    found |= mean_and_error(
        "projected", [total_variation(project(run.raw), shares) for run in runs]
    )
    return found | mean_and_error(
        "own", [total_variation(run.own, shares) for run in runs if run.own is not None]
    )


def estimates(contestant: Contestant, symbols: Symbols) -> Estimates:
    for start in range(0, symbols.size, BATCH):
        contestant.gather(contestant.privatize(contestant.people(symbols[start : start + BATCH])))
    return contestant.estimates()


def mean_and_error(name: str, values: list[float]) -> dict[str, float]:
    """The mean, and its standard error where there are several values."""
    found = {name: float(np.mean(values))} if values else {}
    if len(values) > 1:
        found[f"{name}_error"] = float(np.std(values, ddof=1) / len(values) ** 0.5)
    return found


def zipf_crowd(size: int, people: int) -> Symbols:
    """The same crowd for everybody: symbol x has a share of about 1/(x + 1), over their sum."""
    rising = np.cumsum(1 / np.arange(1, size + 1))
    return np.searchsorted(
        rising, np.random.default_rng(1).random(people) * rising[-1], side="right"
    ).astype(np.int64)


def total_variation(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).sum() / 2)


TASKS = {"speed": speed, "accuracy": accuracy}

if __name__ == "__main__":
    main()
