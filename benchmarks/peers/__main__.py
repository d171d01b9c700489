"""Compare other libraries for local differential privacy with this one, under equal conditions.

    python benchmarks/peers           everything: some ten minutes
    python benchmarks/peers --quick   a small domain and few people, to see whether it runs
    python benchmarks/peers --json    the same as JSON, with an estimate of each before projection

The first run creates a virtual environment next to this file, which takes some minutes and a
package index. It needs only Python. Every case runs in its own process, on one core and with one
thread. Speeds are CPU time, the best of three, per person, per report and per decoding; slow cases
get fewer people. Accuracy is the total variation between the shares of a population and their
estimates, the mean of ten runs, fewer for slow cases.

If a case does not install or run, its row says why. Progress goes to stderr.
"""

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import Any, NamedTuple

from case import EPSILON, LARGEST, MECHANISMS, PeerCase
from environment import Environment
from layout import print_accuracy, print_speeds

HERE = Path(__file__).parent


class Run(NamedTuple):
    """The sizes of a run: the first three for speed, the others for accuracy.

    ``seconds``: how long a timed run must take at least.
    """

    sizes: tuple[int, ...]
    people: int
    seconds: float
    accuracy_size: int
    accuracy_people: int
    runs: int


FULL = Run((1000, LARGEST), 1_000_000, 0.25, 1000, 100_000, 10)
QUICK = Run((100,), 100_000, 0.01, 100, 10_000, 2)


def cases(quick: bool) -> list[PeerCase]:
    run = QUICK if quick else FULL
    tasks = [("speed", k, run.people) for k in run.sizes]
    tasks.append(("accuracy", run.accuracy_size, run.accuracy_people))
    result = []
    for task, k, people in tasks:
        for library, mechanisms in MECHANISMS.items():
            for mechanism in mechanisms:
                result.append(PeerCase(task, library, mechanism, k, people, run.seconds, run.runs))
    return result


def measure(case: PeerCase, environment: Environment) -> dict[str, Any]:
    """Return the row of a case: its name, and its figures or an error."""
    figures = environment.run_case(HERE / "measure.py", case)
    outcome = figures.get("error") or ", ".join(
        f"{name} {value:.3g}" for name, value in figures.items() if isinstance(value, float)
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
        **figures,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], prog="python benchmarks/peers"
    )
    parser.add_argument("--quick", action="store_true", help="a small domain and few people")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    environment = Environment(HERE / ".environment")
    environment.prepare()
    rows = [measure(case, environment) for case in cases(options.quick)]
    if options.json:
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
