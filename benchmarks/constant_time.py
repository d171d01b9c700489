"""Whether the time to privatise a value reveals it.

    python benchmarks/constant_time.py [--runs 20000] [--people 64]

Two values are privatised in random order, and Welch's t compares the two sets of times. The slowest
times are cut off at several percentiles, the same for both values, because interruptions by other
programs would hide a difference (the method of Reparaz, Balasch and Verbauwhede, "Dude, is my code
constant time?", 2017). The largest |t| over all cuts is printed. A |t| below 4.5 shows nothing; one
above it that grows with the runs shows a leak. Equal values give the baseline, and a planted leak
(one more look-up for one of the values) shows that the test detects leaks.

The order comes from a generator with a fixed seed: no real answers are involved.
"""

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np

import sfumato as sf
from sfumato.foundation.arrays import Floats, Words
from sfumato.randomness import words_from

PERCENTILES = (50, 70, 80, 90, 95, 99, 100)
LEAK = 4.5  # a larger |t| shows a leak
KEY = bytes(32)
PEOPLE = 64  # per run: long enough to measure, short enough to fit between interruptions
# One person's report is computed from Python integers, and takes other times: `--people 1`.


def cases() -> Iterator[tuple[str, sf.Mechanism, tuple[int, int]]]:
    """Yield mechanisms, each with two values that take different paths through its kernel."""
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


def measure_times(
    prepare: Callable[[int, int], None], work: Callable[[], object], runs: int
) -> tuple[Floats, Floats]:
    """Return the times for the first and the second value in nanoseconds, in random order.

    What differs is prepared before the clock starts, in arrays that both values share.
    """
    order = np.random.default_rng(0).integers(0, 2, runs)
    times: Floats = np.empty(runs)
    for run, which in enumerate(order.tolist()):
        prepare(which, run)
        start = time.perf_counter_ns()
        work()
        times[run] = time.perf_counter_ns() - start
    warm = runs // 20  # the first runs fill caches
    return times[warm:][order[warm:] == 0], times[warm:][order[warm:] == 1]


def welch(a: Floats, b: Floats) -> float:
    """Return ``(mean a − mean b)/√(var a/n_a + var b/n_b)``."""
    spread = a.var(ddof=1) / a.size + b.var(ddof=1) / b.size
    return float((a.mean() - b.mean()) / np.sqrt(spread)) if spread > 0 else 0.0


def largest_t(a: Floats, b: Floats) -> float:
    """Return the t that is furthest from 0 over all cuts."""
    cuts = np.percentile(np.concatenate([a, b]), PERCENTILES)
    statistics = []
    for cut in cuts:
        below_a = a[a <= cut]
        below_b = b[b <= cut]
        if min(below_a.size, below_b.size) > 1:
            statistics.append(welch(below_a, below_b))
    return max(statistics, key=abs)


def main() -> None:
    """Measure every mechanism and the planted leak."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--people", type=int, default=PEOPLE, help="people per run")
    options = parser.parse_args()
    sizes = (options.runs, options.people)
    print(f"{options.runs:,} runs each, in turn; people with one value per run: {options.people}")
    print(f"{'mechanism':<34}{'median':>10}{'difference':>12}{'t':>9}")
    for name, mechanism, values in cases():
        show(name, *measure(mechanism, values, *sizes))
    name, mechanism, (value, other) = next(cases())
    show(f"{name}, equal values", *measure(mechanism, (value, value), *sizes))
    show(f"{name}, a planted look-up", *measure(mechanism, (value, other), *sizes, leak=True))


def measure(
    mechanism: sf.Mechanism,
    values: tuple[int, int],
    runs: int,
    people_count: int,
    *,
    leak: bool = False,
) -> tuple[Floats, Floats]:
    """Return the times of a mechanism's kernel for two values. Each run has other words."""
    people = np.empty(people_count, dtype=np.int64)
    words: Words = np.empty((people_count, mechanism.words), dtype=np.uint64)
    table = np.arange(mechanism.inputs)

    def prepare(which: int, run: int) -> None:
        people.fill(values[which])
        full_words = words_from(KEY, run * people_count, people_count)[:, : mechanism.words]
        words[:] = full_words >> np.uint64(64 - mechanism.word_bits)

    def work() -> None:
        mechanism.reports_from(people, words)
        if leak and people[0] == values[1]:
            table[people]

    return measure_times(prepare, work, runs)


def show(name: str, a: Floats, b: Floats) -> None:
    t = largest_t(a, b)
    verdict = "  the value leaks" if abs(t) > LEAK else ""
    median = np.median(a)
    difference = median - np.median(b)
    print(f"{name:<34}{median / 1e3:>7.2f} µs{difference:>9.0f} ns{t:>9.1f}{verdict}")


if __name__ == "__main__":
    main()
