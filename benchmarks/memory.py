"""What a symbol costs in memory: `python benchmarks/memory.py`.

Bytes per symbol of a client's mechanism and of its tally, and the peak while the unbiased estimate
and its standard errors are computed. Each is measured in its own process with tracemalloc.
"""

import multiprocessing
import tracemalloc

import numpy as np

import sfumato as sf

SIZES = (43_750, 10**6)
KINDS = (
    "plain, Hadamard",
    "plain, best code",
    "blocks of 25, Hadamard",
    "high-low, 1,000 sensitive",
)


def make_mechanism(kind: str, size: int) -> sf.Mechanism:
    if kind.startswith("plain"):
        return sf.PlainResponse(
            sf.Uniform(size, 1.0), sf.HadamardCode if "Hadamard" in kind else sf.BestCode()
        )
    if kind.startswith("blocks"):
        return sf.BlockResponse(sf.Blocks(np.arange(size) // 25, 1.0))
    return sf.HighLowResponse(sf.HighLow(size, range(1000), 1.0))


def measure(kind: str, size: int) -> tuple[float, float, float, float]:
    tracemalloc.start()
    mechanism = make_mechanism(kind, size)
    tally = mechanism.privatize_and_tally(np.arange(size))
    client, _ = tracemalloc.get_traced_memory()
    peaks = []
    for work in (mechanism.scores.unbiased, mechanism.scores.standard_errors):
        tracemalloc.reset_peak()
        work(tally)
        peaks.append(tracemalloc.get_traced_memory()[1] / size)
    return (client - tally.counts.nbytes) / size, tally.counts.nbytes / size, peaks[0], peaks[1]


def main() -> None:
    print(f"bytes per symbol{'':<22}{'client':>10}{'tally':>10}{'estimate':>10}{'errors':>10}")
    for size in SIZES:
        for kind in KINDS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                figures = pool.apply(measure, (kind, size))
            print(f"{kind:<27}{size:>11,}" + "".join(f"{figure:>10.0f}" for figure in figures))


if __name__ == "__main__":
    main()
