"""How near the machine's limit people are privatised, counted and decoded: `python benchmarks/limits.py`.

The floor, in the same run, is what nobody can do without: the random bytes that the reports need, from the same
cipher, and one histogram of the reports. Figures are CPU time, the best of seven; ratios are what counts.

    python benchmarks/limits.py                        privatise, count, decode
    python benchmarks/limits.py --people 1000000000    so many people on two cores, the time to make them taken out
"""

import argparse
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

import sfumato as sf
from sfumato.codes.singer import SingerDesign, singer_set
from sfumato.randomness import fresh_key

SYMBOLS, PEOPLE, BLOCK = 43_750, 10**6, 2**22
DRAWN = 2**16
AIMS = {"plain, Hadamard": 3.0, "plain, cyclic": 5.0}


def best(work: Callable[[], object], times: int = 7) -> float:
    """CPU seconds, the best of some runs."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def random_bytes() -> None:
    """One word for everybody, into memory that is there already."""
    zeros, room = bytes(8 * DRAWN), bytearray(8 * DRAWN)
    for _ in range(-(-PEOPLE // DRAWN)):
        Cipher(AES(fresh_key()), CTR(bytes(16))).encryptor().update_into(zeros, room)


def mechanisms() -> dict[str, sf.Mechanism]:
    uniform = sf.Uniform(SYMBOLS, 1.0)
    blocks, high_low = (
        sf.Blocks(np.arange(SYMBOLS) // 25, 1.0),
        sf.HighLow(SYMBOLS, range(1000), 1.0),
    )
    return {
        "plain, Hadamard": sf.PlainResponse(uniform),
        "plain, cyclic": sf.PlainResponse(uniform, sf.BestCode()),
        "plain, randomized response": sf.PlainResponse(uniform, sf.RandomizedCode),
        "blocks of 25, Hadamard": sf.BlockResponse(blocks),
        "blocks of 25, best code": sf.BlockResponse(blocks, sf.BestCode()),
        "high-low, 1,000 sensitive": sf.HighLowResponse(high_low, sf.BestCode()),
        "blocks of 25, across = 2": sf.GroupResponse(
            sf.Blocks(np.arange(SYMBOLS) // 25, 1.0, across=2.0)
        ),
    }


def privatise_and_count() -> None:
    people = np.random.default_rng(0).integers(0, SYMBOLS, PEOPLE)
    print(f"{PEOPLE:,} people, {SYMBOLS:,} symbols, ε = 1; ns per person")
    heads = ("privatise", "both", "floor", "over floor", "count", "histogram", "over it")
    print(f"{'':<28}" + "".join(f"{head:>12}" for head in heads))
    for name, mechanism in mechanisms().items():
        reports = mechanism.privatize(people)  # also warms up
        wide = reports.astype(np.int64)
        drawn, histogram = best(random_bytes), best(lambda wide=wide: np.bincount(wide))  # type: ignore[misc]
        privatise = best(lambda mechanism=mechanism: mechanism.privatize(people))  # type: ignore[misc]
        both = best(lambda mechanism=mechanism: mechanism.privatize_and_tally(people))  # type: ignore[misc]
        count = best(lambda mechanism=mechanism, reports=reports: mechanism.tally(reports))  # type: ignore[misc]
        floor = drawn + histogram
        figures = [f"{seconds / PEOPLE * 1e9:12.2f}" for seconds in (privatise, both, floor)]
        aim = f" (aim {AIMS[name]:g})" if name in AIMS else ""
        print(
            f"{name:<28}{''.join(figures)}{both / floor:>11.2f}x{count / PEOPLE * 1e9:12.2f}"
            f"{histogram / PEOPLE * 1e9:12.2f}{count / histogram:>11.2f}x{aim}"
        )


def decode() -> None:
    print("\ndecode, wall time: the unbiased estimate, and its standard errors")
    for name, mechanism in (
        *((f"Hadamard, K = 2^{power}", _hadamard(power)) for power in (16, 20, 24)),
        *(
            (f"cyclic, K = {design.points:,}", _cyclic(design))
            for design in (SingerDesign(2, 20), SingerDesign(2, 24))
        ),
    ):
        tally = sf.Tally(
            np.random.default_rng(0).integers(0, 100, mechanism.outputs), mechanism.fingerprint
        )
        scores = mechanism.scores
        scores.unbiased(tally)  # warm the caches
        estimate = _wall(scores.unbiased, tally)
        errors = _wall(scores.standard_errors, tally)
        print(f"{name:<28}{estimate:>9.1f} ms{errors:>9.1f} ms")


def _hadamard(power: int) -> sf.Mechanism:
    return sf.PlainResponse(sf.Uniform(2**power - 1, 1.0))


def _cyclic(design: SingerDesign) -> sf.Mechanism:
    base = sf.codes.CyclicDesign.of_arrays(design.points, singer_set(design))
    return sf.PlainResponse(sf.Uniform(design.points, 1.0), base)


def _wall(work: Callable[[sf.Tally], object], tally: sf.Tally) -> float:
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        work(tally)
        taken.append(time.perf_counter() - start)
    return min(taken) * 1e3


def share_of_people(code: str, people: int, seed: int) -> tuple[np.ndarray, float, float]:
    """Counts of a worker's people, and seconds without and with the time that making them took."""
    mechanism = mechanisms()[code]
    generator = np.random.default_rng(seed)
    counts, made = np.zeros(mechanism.outputs, dtype=np.int64), 0.0
    mechanism.privatize_and_tally(generator.integers(0, SYMBOLS, 1000))  # tables are made once
    start = time.perf_counter()
    for first in range(0, people, BLOCK):
        before = time.perf_counter()
        symbols = generator.integers(0, SYMBOLS, min(BLOCK, people - first))
        made += time.perf_counter() - before
        counts += mechanism.privatize_and_tally(symbols).counts
    return counts, time.perf_counter() - start - made, made


def many(people: int, workers: int = 2) -> None:
    print(
        f"{people:,} people, {SYMBOLS:,} symbols, {workers} processes; wall time, making the people taken out"
    )
    for code in AIMS:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            shares = list(
                pool.map(
                    share_of_people, [code] * workers, [people // workers] * workers, range(workers)
                )
            )
        mechanism = mechanisms()[code]
        tally = sf.Tally(sum(counts for counts, _, _ in shares), mechanism.fingerprint)  # type: ignore[arg-type]
        start = time.perf_counter()
        mechanism.scores.unbiased(tally)
        decoded = time.perf_counter() - start
        slowest, made = max(seconds for _, seconds, _ in shares), max(made for _, _, made in shares)
        print(
            f"{code:<20}{tally.reports:>15,} reports  privatise and count {slowest:6.2f} s  decode {decoded:5.3f} s"
            f"  together {slowest + decoded:6.2f} s  (making them: {made:.2f} s)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--people", type=int, help="measure so many people instead, on two cores")
    asked = parser.parse_args()
    if asked.people:
        many(asked.people)
        return
    privatise_and_count()
    decode()


if __name__ == "__main__":
    main()
