"""How fast people are privatised, counted and decoded: `python benchmarks/privatize.py`.

Times are the best of three and mean little alone on a shared machine; the last column is the ratio to the
floor in the same run: the words that every report needs, and one histogram of the reports.
"""

import time
from collections.abc import Callable

import numpy as np

import sfumato as sf
from sfumato.randomness.words import SystemWords

PEOPLE = 10**6
SYMBOLS = 43_750


def best_of_three(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def draw_words() -> None:
    """The words of all people, chunk by chunk, none of them kept."""
    for _ in range(-(-PEOPLE // 2**16)):
        SystemWords().take(2**16)


def main() -> None:
    people = np.random.default_rng(0).integers(0, SYMBOLS, PEOPLE)
    blocks = sf.Blocks(np.arange(SYMBOLS) // 25, 1.0)
    cases: dict[str, sf.Mechanism] = {
        "blocks of 25, Hadamard": sf.BlockResponse(blocks),
        "high-low, 1000 sensitive, Hadamard": sf.HighLowResponse(sf.HighLow(SYMBOLS, range(1000), 1.0)),
        "plain, Hadamard": sf.PlainResponse(sf.Uniform(SYMBOLS, 1.0)),
        "plain, randomized response": sf.PlainResponse(sf.Uniform(SYMBOLS, 1.0), sf.RandomizedCode),
    }
    best_of_three(draw_words)
    print(f"{PEOPLE:,} people, {SYMBOLS:,} symbols, ε = 1")
    print(f"{'mechanism':<36}{'privatise':>11}{'count':>9}{'decode':>9}{'over floor':>12}")
    for name, mechanism in cases.items():
        reports = mechanism.privatize(people)  # also warms up
        tally = mechanism.tally(reports)
        words = best_of_three(draw_words)
        histogram = best_of_three(lambda reports=reports: np.bincount(reports))  # type: ignore[misc]
        privatise = best_of_three(lambda mechanism=mechanism: mechanism.privatize(people))  # type: ignore[misc]
        count = best_of_three(lambda mechanism=mechanism, reports=reports: mechanism.tally(reports))  # type: ignore[misc]
        decode = best_of_three(lambda mechanism=mechanism, tally=tally: mechanism.unbiased(tally))  # type: ignore[misc]
        ratio = (privatise + count) / (words + histogram)
        print(f"{name:<36}{privatise * 1e3:>8.1f} ms{count * 1e3:>6.1f} ms{decode * 1e3:>6.1f} ms{ratio:>11.1f}x")


if __name__ == "__main__":
    main()
