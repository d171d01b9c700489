"""Seconds and memory of a decoder, each measured in a fresh process with one thread.

The limits are for seconds of CPU time, which depend less than the clock on what else runs.
"""

import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

import sfumato as sf
from decoder_case import DecoderCase
from decoder_cases import incomes
from decoder_maps import PAPER_GRID, simulate_towns
from decoder_rivals import decode

__all__ = ["print_speed"]


class SpeedCase(NamedTuple):
    """``seconds`` and ``gigabytes`` are the limits."""

    name: str
    make_case: Callable[[], DecoderCase]
    runs: int
    seconds: float
    gigabytes: float


class DecodingCost(NamedTuple):
    """What the fastest run took."""

    cpu_seconds: float
    elapsed_seconds: float
    gigabytes: float


def thousand_in_order() -> DecoderCase:
    return DecoderCase("speed", "1,000 in order", sf.Uniform(1_000, 1), incomes(), 100_000)


def paper_grid() -> DecoderCase:
    counts = simulate_towns(1)
    shares = counts / counts.sum()
    return DecoderCase("speed", "43,750 cells", sf.Uniform(PAPER_GRID, 1), shares, 4_000_000)


def million_cells() -> DecoderCase:
    grid = sf.GridDomain(0, 50, 0, 50, "0.05")
    weights = np.random.default_rng(0).pareto(1.2, grid.size)
    shares = weights / weights.sum()
    context = sf.Uniform(grid, 1)
    return DecoderCase("speed", "10^6 cells", context, shares, 4_000_000, code="hadamard")


SPEED_CASES = (
    SpeedCase("1,000 in order", thousand_in_order, 5, seconds=0.5, gigabytes=4),
    SpeedCase("43,750 cells", paper_grid, 3, seconds=1.5, gigabytes=4),
    SpeedCase("10^6 cells", million_cells, 1, seconds=40, gigabytes=4),
)


def print_speed(decoder: str) -> bool:
    """Print seconds and peak memory. Return whether all are within their limits."""
    os.environ["OMP_NUM_THREADS"] = "1"  # the fresh processes inherit it
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    print(f"\n{decoder}: CPU seconds and elapsed seconds of the best run, and peak memory")
    is_met = True
    for case in SPEED_CASES:
        fresh = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=fresh) as executor:
            cost = executor.submit(measure, case, decoder).result()
        is_within = cost.cpu_seconds <= case.seconds and cost.gigabytes <= case.gigabytes
        is_met = is_met and is_within
        print(
            f"{case.name:16} {cost.cpu_seconds:8.2f} s (at most {case.seconds}) "
            f"{cost.elapsed_seconds:8.2f} s {cost.gigabytes:8.2f} GB (at most {case.gigabytes})  "
            f"{'met' if is_within else 'MISSED'}",
            flush=True,
        )
    return is_met


def measure(speed_case: SpeedCase, decoder: str) -> DecodingCost:
    """Return the cost of the fastest run, and the peak memory of this process."""
    case = speed_case.make_case()
    tally = case.tally(0)
    cpu_seconds = []
    elapsed_seconds = []
    for _ in range(speed_case.runs):
        cpu_start = time.process_time()
        start = time.perf_counter()
        decode(decoder, case.mechanism, tally)
        cpu_seconds.append(time.process_time() - cpu_start)
        elapsed_seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in kilobytes on Linux
    return DecodingCost(min(cpu_seconds), min(elapsed_seconds), peak * 1024 / 1e9)
