"""Other libraries for local differential privacy beside this one, under the same conditions: `python benchmarks/peers`.

It makes an environment of its own beside this file the first time (some minutes, and a package index), and needs
nothing but Python itself. Every case runs in a process of its own, on one core and with one thread. Speeds are CPU
time, the best of three, per person, per report and per decoding; a slow case is given fewer people. Then comes the
total variation between the shares of one crowd and their estimates, the mean of ten runs, fewer of the slow.

    python benchmarks/peers           everything: some ten minutes
    python benchmarks/peers --quick   a small domain and a small crowd, to see whether it runs
    python benchmarks/peers --json    the same as JSON, with an estimate of each before projection

A case that does not install or run says why in its row. Progress is on stderr.
"""

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import Any, NamedTuple

from case import EPSILON, LARGEST, MECHANISMS, Case
from environment import Environment
from layout import print_accuracy, print_speeds

HERE = Path(__file__).parent


class Run(NamedTuple):
    """Domains, largest crowd and what is long enough, for speeds; then domain, crowd and repetitions, for accuracy."""

    sizes: tuple[int, ...]
    people: int
    seconds: float
    size_judged: int
    people_judged: int
    runs: int


FULL = Run((1000, LARGEST), 1_000_000, 0.25, 1000, 100_000, 10)
QUICK = Run((100,), 100_000, 0.01, 100, 10_000, 2)


def cases(quick: bool) -> list[Case]:
    run = QUICK if quick else FULL
    asked = [("speed", k, run.people) for k in run.sizes] + [
        ("accuracy", run.size_judged, run.people_judged)
    ]
    return [
        Case(task, library, mechanism, k, people, run.seconds, run.runs)
        for task, k, people in asked
        for library, mechanisms in MECHANISMS.items()
        for mechanism in mechanisms
    ]


def measured(case: Case, environment: Environment) -> dict[str, Any]:
    """The row of a case: what was asked, and what was found or why nothing was."""
    found = environment.answer_of(HERE / "measure.py", case)
    outcome = found.get("error") or ", ".join(
        f"{name} {value:.3g}" for name, value in found.items() if isinstance(value, float)
    )
    print(
        f"{case.task}, k = {case.size:,}: {case.library} {case.mechanism}: {outcome}",
        file=sys.stderr,
        flush=True,
    )
    return {
        "task": case.task,
        "library": case.library,
        "mechanism": case.mechanism,
        "size": case.size,
        **found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], prog="python benchmarks/peers"
    )
    parser.add_argument("--quick", action="store_true", help="a small domain and a small crowd")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    asked = parser.parse_args()
    environment = Environment(HERE / ".environment")
    environment.prepare()
    rows = [measured(case, environment) for case in cases(asked.quick)]
    if asked.json:
        about = {
            "epsilon": EPSILON,
            "python": platform.python_version(),
            "versions": environment.versions(),
        }
        print(json.dumps({**about, "rows": rows}, indent=1))
    else:
        print_speeds([row for row in rows if row["task"] == "speed"])
        print_accuracy([row for row in rows if row["task"] == "accuracy"])


if __name__ == "__main__":
    main()
