"""Whether the time of privatising tells the value: `python benchmarks/constant_time.py [--runs 20000]`.

Two values are privatised in turn, in an order that is drawn, and Welch's t compares the two sets of times. The slowest
are cut off at several percentiles, the same for both values: interruptions by other programs would hide a difference
that is there (the method of Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?", 2017). The largest |t|
over all cuts is printed. Below 4.5 nothing is shown; above, and growing with the runs, the value leaks into the time.
Equal values show what the measurement makes of nothing, and a planted leak (one look-up more for one of the values)
shows that it has teeth.

The order of values is drawn by a generator with a fixed seed: this is a measurement, nobody's answer.
"""

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np

import sfumato as sf
from sfumato.foundation.arrays import Floats, Words
from sfumato.randomness import words_from

PERCENTILES = (50, 70, 80, 90, 95, 99, 100)
SHOWN = 4.5
KEY = bytes(32)
CROWD = 64  # people with the same value per run: long enough to measure, short enough to fit between interruptions


def cases() -> Iterator[tuple[str, sf.Mechanism, tuple[int, int]]]:
    """Mechanisms, each with two values that go different ways through its kernel."""
    yield "plain, Hadamard", sf.PlainResponse(sf.Uniform(1000, 1)), (0, 999)
    yield (
        "plain, randomised response",
        sf.PlainResponse(sf.Uniform(1000, 1), sf.RandomizedCode),
        (0, 999),
    )
    yield "plain, best code", sf.mechanism_for(sf.Uniform(100, 1)), (0, 99)
    yield (
        "high-low: sensitive and not",
        sf.HighLowResponse(sf.HighLow(1000, range(100), 1)),
        (0, 999),
    )
    yield "blocks: small and large", sf.BlockResponse(sf.Blocks([0] * 3 + [1] * 997, 1)), (0, 999)
    yield (
        "tiers: first and last",
        sf.GroupResponse(sf.Tiers([0] * 10 + [1] * 20 + [2] * 70, [1, 2, "inf"])),
        (0, 99),
    )
    yield "binary", sf.BinaryResponse(sf.PrivacyMatrix([[0, 1], [2, 0]])), (0, 1)


def times_of(
    prepare: Callable[[int, int], None], work: Callable[[], object], runs: int
) -> tuple[Floats, Floats]:
    """The times for the first value and for the second, in nanoseconds, taken in an order that is drawn.

    What differs is prepared before the clock starts, in arrays that both values share.
    """
    order = np.random.default_rng(0).integers(0, 2, runs)
    taken: Floats = np.empty(runs)
    for run, which in enumerate(order.tolist()):
        prepare(which, run)
        start = time.perf_counter_ns()
        work()
        taken[run] = time.perf_counter_ns() - start
    warm = runs // 20  # the first runs fill caches
    return taken[warm:][order[warm:] == 0], taken[warm:][order[warm:] == 1]


def welch(a: Floats, b: Floats) -> float:
    """``(mean a − mean b)/√(var a/n_a + var b/n_b)``."""
    spread = a.var(ddof=1) / a.size + b.var(ddof=1) / b.size
    return float((a.mean() - b.mean()) / np.sqrt(spread)) if spread > 0 else 0.0


def largest_t(a: Floats, b: Floats) -> float:
    """The t that is furthest from 0 over all cuts."""
    cuts = np.percentile(np.concatenate([a, b]), PERCENTILES)
    found = [
        welch(a[a <= cut], b[b <= cut])
        for cut in cuts
        if min((a <= cut).sum(), (b <= cut).sum()) > 1
    ]
    return max(found, key=abs)


def main() -> None:
    """Measure every mechanism and the planted leak."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20_000)
    runs = parser.parse_args().runs
    print(f"{runs:,} runs each, in turn; {CROWD} people with one value per run")
    print(f"{'mechanism':<34}{'median':>10}{'difference':>12}{'t':>9}")
    for name, mechanism, values in cases():
        tell(name, *measured(mechanism, values, runs))
    name, mechanism, (value, other) = next(cases())
    tell(f"{name}, equal values", *measured(mechanism, (value, value), runs))
    tell(f"{name}, a planted look-up", *measured(mechanism, (value, other), runs, leak=True))


def measured(
    mechanism: sf.Mechanism, values: tuple[int, int], runs: int, *, leak: bool = False
) -> tuple[Floats, Floats]:
    """The times of a mechanism's kernel for two values, each run with other words."""
    people = np.empty(CROWD, dtype=np.int64)
    words: Words = np.empty((CROWD, mechanism.words), dtype=np.uint64)
    table = np.arange(mechanism.inputs)

    def prepare(which: int, run: int) -> None:
        people.fill(values[which])
        words[:] = words_from(KEY, run * CROWD, CROWD)[:, : mechanism.words] >> np.uint64(
            64 - mechanism.word_bits
        )

    def work() -> None:
        mechanism.reports_from(people, words)
        if leak and people[0] == values[1]:
            table[people]

    return times_of(prepare, work, runs)


def tell(name: str, a: Floats, b: Floats) -> None:
    t = largest_t(a, b)
    verdict = "  the value shows" if abs(t) > SHOWN else ""
    print(
        f"{name:<34}{np.median(a) / 1e3:>7.2f} µs{np.median(a) - np.median(b):>9.0f} ns{t:>9.1f}{verdict}"
    )


if __name__ == "__main__":
    main()
