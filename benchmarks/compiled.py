"""What compiled kernels would gain: `pip install numba; python benchmarks/compiled.py`.

Sfumato has none. These are the two most promising ones, to measure decision 036 again: Hadamard
response fused with its histogram, and the Walsh–Hadamard transform. CPU time, best of seven.
"""

import time
from functools import partial

import numba
import numpy as np

import limits
import sfumato as sf
from sfumato.codes.hadamard import walsh_hadamard
from sfumato.randomness import SystemWords

CHUNK = 2**16


@numba.njit(nogil=True)
def count_hadamard(symbols, words, threshold, mask, counts):  # type: ignore[no-untyped-def]
    for i in range(symbols.size):
        row = np.uint64(symbols[i] + 1)
        word = words[i]
        y = word & mask
        odd = row & word & mask
        for shift in (32, 16, 8, 4, 2, 1):
            odd ^= odd >> np.uint64(shift)
        flip = (odd & np.uint64(1)) ^ np.uint64(word >= threshold)
        counts[y ^ ((row & (~row + np.uint64(1))) * flip)] += 1


@numba.njit
def transform(values, size):  # type: ignore[no-untyped-def]
    half = 1
    while half < size:
        for start in range(0, size, 2 * half):
            for i in range(start, start + half):
                a = values[i]
                b = values[i + half]
                values[i] = a + b
                values[i + half] = a - b
        half *= 2


@numba.njit
def transform_in_cache(values):  # type: ignore[no-untyped-def]
    """Split into halves until one fits the cache."""
    if values.size <= 4096:
        transform(values, values.size)
        return
    half = values.size // 2
    for i in range(half):
        a = values[i]
        b = values[i + half]
        values[i] = a + b
        values[i + half] = a - b
    transform_in_cache(values[:half])
    transform_in_cache(values[half:])


def count(people: np.ndarray, code: sf.HadamardCode, counts: np.ndarray) -> None:
    threshold = np.uint64(code._threshold << code._log_outputs)
    mask = np.uint64(code.outputs - 1)
    for start in range(0, people.size, CHUNK):
        part = people[start : start + CHUNK]
        count_hadamard(part, SystemWords().take(part.size, 1)[:, 0], threshold, mask, counts)


def main() -> None:
    mechanism = sf.PlainResponse(sf.Uniform(limits.SYMBOLS, 1.0))
    people = np.random.default_rng(0).integers(0, limits.SYMBOLS, limits.PEOPLE)
    code = mechanism._codes[0]
    counts = np.zeros(mechanism.outputs, dtype=np.int64)
    start = time.perf_counter()
    count(people, code, counts)  # type: ignore[arg-type]
    transform_in_cache(np.ones(2**13))
    print(f"compiling: {time.perf_counter() - start:.1f} s")
    ours = limits.best(lambda: mechanism.privatize_and_tally(people))
    compiled = limits.best(lambda: count(people, code, counts))  # type: ignore[arg-type]
    times = f"{ours * 1e3:.2f} ns, compiled {compiled * 1e3:.2f} ns"
    print(f"privatise and count: {times}: {ours / compiled:.1f} times")
    for power in (12, 16, 20, 24):
        values = np.random.default_rng(0).random(2**power)
        expected = walsh_hadamard(values)
        room = values.copy()
        transform_in_cache(room)
        np.testing.assert_allclose(room, expected, rtol=1e-9, atol=1e-6)
        ours = limits.best(partial(walsh_hadamard, values))
        compiled = limits.best(partial(transform_in_cache, room))
        times = f"{ours * 1e3:8.3f} ms, compiled {compiled * 1e3:8.3f} ms"
        print(f"transform of 2^{power}: {times}: {ours / compiled:.1f} times")


if __name__ == "__main__":
    main()
