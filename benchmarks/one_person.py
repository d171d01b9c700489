"""What a report costs when people come one at a time, and whether batches pay for it.

    python benchmarks/one_person.py                            this version
    python benchmarks/one_person.py --before /tmp/before/src   another version, in turns with it

Each version runs in a process of its own. In every round, both processes measure each case, one
right after the other. The figures are medians over the rounds, of CPU time per person.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

import sfumato as sf

CALLS = 20_000  # one person each
PEOPLE = 10**6  # in a batch
THIS_VERSION = Path(__file__).parent.parent / "src"


def mechanisms() -> dict[str, sf.Mechanism]:
    blocks_of_25 = np.arange(1000) // 25
    three_odds = np.where(np.eye(3) > 0, np.e, 1)
    return {
        "plain, 4 symbols": sf.PlainResponse(sf.Uniform(4, 1.0), sf.RandomizedCode),
        "plain, 43,750, Hadamard": sf.PlainResponse(sf.Uniform(43_750, 1.0)),
        "plain, 43,750, best code": sf.PlainResponse(sf.Uniform(43_750, 1.0), sf.BestCode()),
        "blocks of 25": sf.BlockResponse(sf.Blocks(blocks_of_25, 1.0), sf.BestCode()),
        "blocks of two sizes": sf.BlockResponse(sf.Blocks([0] * 300 + [1] * 700, 1.0)),
        "blocks, across = 2": sf.GroupResponse(sf.Blocks(blocks_of_25, 1.0, across=2.0)),
        "high-low": sf.HighLowResponse(sf.HighLow(1000, range(100), 1.0)),
        "tiers": sf.GroupResponse(sf.Tiers([0] * 10 + [1] * 20 + [2] * 70, [1, 2, "inf"])),
        "binary": sf.BinaryResponse(sf.Uniform(2, 1.0)),
        "table of 3": sf.TableResponse.from_floats(sf.Uniform(3, 1.0), three_odds / (np.e + 2)),
    }


def surveys() -> dict[str, sf.Survey]:
    few = ["park", "clinic", "bar", "home"]
    many = [f"place {i}" for i in range(1000)]
    return {
        "survey, 4 labels": sf.Survey("few", sf.Uniform(few, 1.0)),
        "survey, 1,000 labels": sf.Survey("many", sf.Uniform(many, 1.0)),
        "survey, high-low": sf.Survey("high-low", sf.HighLow(few, ["clinic"], 1.0)),
    }


def cases() -> dict[str, Callable[[], float]]:
    """Return, for each case, a function that measures the seconds per person."""
    single: dict[str, Callable[[], float]] = {}
    batches: dict[str, Callable[[], float]] = {}
    for name, mechanism in mechanisms().items():
        people = np.random.default_rng(0).integers(0, mechanism.inputs, PEOPLE)
        single[name] = _one_at_a_time(mechanism.privatize, [int(people[0])])
        batches[f"{name}: batch"] = _one_batch(mechanism.privatize, people)
    for name, survey in surveys().items():
        single[name] = _one_at_a_time(survey.privatize, [survey.context.domain.labels[1]])
    return single | batches


def _one_at_a_time(privatize: Callable[..., object], answers: list[object]) -> Callable[[], float]:
    def measure() -> float:
        start = time.process_time()
        for _ in range(CALLS):
            privatize(answers)
        return (time.process_time() - start) / CALLS

    return measure


def _one_batch(privatize: Callable[..., object], people: object) -> Callable[[], float]:
    def measure() -> float:
        start = time.process_time()
        privatize(people)
        return (time.process_time() - start) / PEOPLE

    return measure


def answer_requests() -> None:
    """Measure the case that each line of standard input names."""
    measurements = cases()
    for line in sys.stdin:
        print(measurements[line.strip()](), flush=True)


class Version:
    """A process that measures the version of the package in a folder."""

    def __init__(self, source: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--answer"],
            env={**os.environ, "PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, case: str) -> float:
        print(case, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())  # type: ignore[union-attr]

    def close(self) -> None:
        self._process.communicate()


def compare(versions: dict[str, Version], rounds: int) -> None:
    names = list(cases())
    seconds: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds + 1):  # the first round warms up
        for case in names:
            for title, version in versions.items():
                seconds.setdefault((case, title), []).append(version.seconds(case))
    print(f"{'':<34}" + "".join(f"{title:>12}" for title in versions))
    for case in names:
        medians = [median(seconds[case, title][1:]) for title in versions]
        texts = [_text(figure) for figure in medians]
        ratio = f"{medians[0] / medians[-1]:9.2f}x" if len(medians) > 1 else ""
        print(f"{case:<34}" + "".join(f"{text:>12}" for text in texts) + ratio)


def _text(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} µs" if seconds > 1e-6 else f"{seconds * 1e9:.2f} ns"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", type=Path, help="the src folder of another version")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        answer_requests()
        return
    sources = {"before": options.before} if options.before else {}
    versions = {title: Version(source) for title, source in sources.items()}
    versions["now"] = Version(THIS_VERSION)
    compare(versions, options.rounds)
    for version in versions.values():
        version.close()


if __name__ == "__main__":
    main()
