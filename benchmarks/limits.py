"""How near the machine's limit privatising, counting and decoding are.

    python benchmarks/limits.py                        privatise, count, decode
    python benchmarks/limits.py --people 1000000000    this many people on two cores, without the
                                                       time to generate them

The floor, measured in the same run, is the work that no implementation can avoid: random bytes for
the reports, from the same cipher, and one histogram of the reports. Figures are CPU time, the best
of seven. Compare the ratios.
"""

import argparse
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

import sfumato as sf
from sfumato.codes.singer import SingerDesign, singer_set
from sfumato.randomness import fresh_key

SYMBOLS = 43_750
PEOPLE = 10**6
BLOCK = 2**22  # people generated at a time
CHUNK = 2**16  # words drawn at a time
AIMS = {"plain, Hadamard": 3.0, "plain, cyclic": 5.0}


def best(work: Callable[[], object], times: int = 7) -> float:
    """Return CPU seconds, the best of some runs."""
    seconds = []
    for _ in range(times):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def random_bytes() -> None:
    """Draw one word per person, into memory that is already allocated."""
    zeros = bytes(8 * CHUNK)
    room = bytearray(8 * CHUNK)
    for _ in range(-(-PEOPLE // CHUNK)):
        Cipher(AES(fresh_key()), CTR(bytes(16))).encryptor().update_into(zeros, room)


def mechanisms() -> dict[str, sf.Mechanism]:
    uniform = sf.Uniform(SYMBOLS, 1.0)
    blocks = sf.Blocks(np.arange(SYMBOLS) // 25, 1.0)
    high_low = sf.HighLow(SYMBOLS, range(1000), 1.0)
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
        histogram = best(partial(np.bincount, wide))
        privatise = best(partial(mechanism.privatize, people))
        both = best(partial(mechanism.privatize_and_tally, people))
        count = best(partial(mechanism.tally, reports))
        floor = best(random_bytes) + histogram
        figures = [f"{seconds / PEOPLE * 1e9:12.2f}" for seconds in (privatise, both, floor)]
        aim = f" (aim {AIMS[name]:g})" if name in AIMS else ""
        print(
            f"{name:<28}{''.join(figures)}{both / floor:>11.2f}x{count / PEOPLE * 1e9:12.2f}"
            f"{histogram / PEOPLE * 1e9:12.2f}{count / histogram:>11.2f}x{aim}"
        )


def decode() -> None:
    print("\ndecode, wall time: the unbiased estimate, and its standard errors")
    cases: dict[str, sf.Mechanism] = {}
    for power in (16, 20, 24):
        cases[f"Hadamard, K = 2^{power}"] = _hadamard(power)
    for design in (SingerDesign(2, 20), SingerDesign(2, 24)):
        cases[f"cyclic, K = {design.points:,}"] = _cyclic(design)
    for name, mechanism in cases.items():
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
    base = sf.codes.CyclicDesign.from_base_blocks(design.points, singer_set(design))
    return sf.PlainResponse(sf.Uniform(design.points, 1.0), base)


def _wall(work: Callable[[sf.Tally], object], tally: sf.Tally) -> float:
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        work(tally)
        seconds.append(time.perf_counter() - start)
    return min(seconds) * 1e3


def share_of_people(code: str, people: int, seed: int) -> tuple[np.ndarray, float, float]:
    """Return the counts of a worker's people, the seconds for them, and those to generate them."""
    mechanism = mechanisms()[code]
    generator = np.random.default_rng(seed)
    counts = np.zeros(mechanism.outputs, dtype=np.int64)
    generating = 0.0
    mechanism.privatize_and_tally(generator.integers(0, SYMBOLS, 1000))  # builds tables
    start = time.perf_counter()
    for first in range(0, people, BLOCK):
        before = time.perf_counter()
        symbols = generator.integers(0, SYMBOLS, min(BLOCK, people - first))
        generating += time.perf_counter() - before
        counts += mechanism.privatize_and_tally(symbols).counts
    return counts, time.perf_counter() - start - generating, generating


def many(people: int, workers: int = 2) -> None:
    print(f"{people:,} people, {SYMBOLS:,} symbols, {workers} processes")
    print("wall time, without generating the people")
    for code in AIMS:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            shares = list(
                pool.map(
                    share_of_people, [code] * workers, [people // workers] * workers, range(workers)
                )
            )
        mechanism = mechanisms()[code]
        counts = np.sum([counts for counts, _, _ in shares], axis=0)
        tally = sf.Tally(counts, mechanism.fingerprint)
        start = time.perf_counter()
        mechanism.scores.unbiased(tally)
        decoding = time.perf_counter() - start
        slowest = max(seconds for _, seconds, _ in shares)
        generating = max(seconds for _, _, seconds in shares)
        print(
            f"{code:<20}{tally.reports:>15,} reports  privatise and count {slowest:6.2f} s  "
            f"decode {decoding:5.3f} s  together {slowest + decoding:6.2f} s  "
            f"(generating people: {generating:.2f} s)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--people", type=int, help="measure this many people instead, on two cores")
    options = parser.parse_args()
    if options.people:
        many(options.people)
        return
    privatise_and_count()
    decode()


if __name__ == "__main__":
    main()
