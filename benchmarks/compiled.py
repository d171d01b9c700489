"""What compiled kernels would bring: `pip install numba; python benchmarks/compiled.py`.

Sfumato has none. Here are the two that would be most worth it, so that the decision (docs/decisions/036.md) can be
measured again: Hadamard response fused with its histogram, and the Walsh–Hadamard transform. CPU time, best of seven.
"""

import time

import numba
import numpy as np

import limits
import sfumato as sf
from sfumato.codes.hadamard import walsh_hadamard
from sfumato.randomness import SystemWords

DRAWN = 2**16


@numba.njit(nogil=True)
def count_hadamard(symbols, words, threshold, mask, counts):  # type: ignore[no-untyped-def]
    for i in range(symbols.size):
        row, word = np.uint64(symbols[i] + 1), words[i]
        y, odd = word & mask, row & word & mask
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
                a, b = values[i], values[i + half]
                values[i], values[i + half] = a + b, a - b
        half *= 2


@numba.njit
def transform_in_cache(values):  # type: ignore[no-untyped-def]
    """Halves first, down to what fits the cache."""
    if values.size <= 4096:
        transform(values, values.size)
        return
    half = values.size // 2
    for i in range(half):
        a, b = values[i], values[i + half]
        values[i], values[i + half] = a + b, a - b
    transform_in_cache(values[:half])
    transform_in_cache(values[half:])


def count(people: np.ndarray, code: sf.HadamardCode, counts: np.ndarray) -> None:
    threshold, mask = np.uint64(code._threshold << code._log_outputs), np.uint64(code.outputs - 1)
    for start in range(0, people.size, DRAWN):
        part = people[start : start + DRAWN]
        count_hadamard(part, SystemWords().take(part.size, 1)[:, 0], threshold, mask, counts)


def main() -> None:
    mechanism = sf.PlainResponse(sf.Uniform(limits.SYMBOLS, 1.0))
    people = np.random.default_rng(0).integers(0, limits.SYMBOLS, limits.PEOPLE)
    code, counts = mechanism._codes[0], np.zeros(mechanism.outputs, dtype=np.int64)
    start = time.perf_counter()
    count(people, code, counts)  # type: ignore[arg-type]
    transform_in_cache(np.ones(2**13))
    print(f"compiling: {time.perf_counter() - start:.1f} s")
    ours, theirs = (
        limits.best(lambda: mechanism.privatize_and_tally(people)),
        limits.best(
            lambda: count(people, code, counts)  # type: ignore[arg-type]
        ),
    )
    print(
        f"privatise and count: {ours * 1e3:.2f} ns, compiled {theirs * 1e3:.2f} ns: {ours / theirs:.1f} times"
    )
    for power in (12, 16, 20, 24):
        values = np.random.default_rng(0).random(2**power)
        expected, room = walsh_hadamard(values), values.copy()
        transform_in_cache(room)
        np.testing.assert_allclose(room, expected, rtol=1e-9, atol=1e-6)
        ours, theirs = (
            limits.best(lambda values=values: walsh_hadamard(values)),  # type: ignore[misc]
            limits.best(lambda room=room: transform_in_cache(room)),  # type: ignore[misc]
        )
        print(
            f"transform of 2^{power}: {ours * 1e3:8.3f} ms, compiled {theirs * 1e3:8.3f} ms: {ours / theirs:.1f} times"
        )


if __name__ == "__main__":
    main()
