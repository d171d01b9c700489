"""How far codes are from the least possible risk, and what they cost.

    python benchmarks/codes.py [--all]

The risk is n · E‖p̂ − p‖² at uniform p, over the bound of Ye and Barg (2018). "best" and
"corrected" are computed from the integers of the mechanisms; the others by published formulas, each
with its usual unbiased estimate. --all adds the worst ratio of the best code over every domain of 2
to 200 symbols, which takes some minutes. Times are the best of three, relative to the Hadamard code
in the same run. Progress goes to stderr.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import sfumato as sf
from sfumato.codes.best import BestCode, best_candidate
from sfumato.codes.search import search_blocks
from sfumato.designer.bounds import ye_barg_bound
from sfumato.domains.partitions import grid_tiles

SIZES = (2, 3, 5, 10, 25, 50, 100, 200, 300, 400, 1000, 5000, 43_750)
EPSILONS = ("0.25", "0.5", "1", "2", "3", "4")
PEOPLE = 10**6
SEED_BITS = 32  # of a hash function, in local hashing

RiskAndBits = tuple[float, float]
"""A risk, and the bits of a report."""


def show_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- risks ----------------------------------------------------------------------------------------


def binomial_risk(k: int, own: float, other: float) -> float:
    """Return ``k μ(1 − μ)/(own − other)²``.

    A report counts for its own symbol with one probability, and for each other one with the second.
    """
    mu = other + (own - other) / k
    return k * mu * (1 - mu) / (own - other) ** 2


def measure_response(k: int, epsilon: str, family: sf.codes.CodeFamily) -> RiskAndBits:
    mechanism = sf.PlainResponse(sf.Uniform(k, epsilon), family)
    return mechanism.scores.risk(np.full(k, 1 / k)), mechanism.bits


def best(k: int, epsilon: str) -> RiskAndBits:
    return measure_response(k, epsilon, BestCode())


def hadamard_corrected(k: int, epsilon: str) -> RiskAndBits:
    return measure_response(k, epsilon, sf.HadamardCode)


def hadamard_paper(k: int, epsilon: str) -> RiskAndBits:
    """Acharya et al. (2019, 2020): ``n Var = c² − p_x²`` per symbol, ``c = (e + 1)/(e − 1)``."""
    e = math.exp(float(epsilon))
    return k * ((e + 1) / (e - 1)) ** 2 - 1 / k, math.ceil(math.log2(k + 1))


def subset_selection(k: int, epsilon: str) -> RiskAndBits:
    """Ye and Barg (2018), Wang et al. (2016): a random set of w symbols. It attains the bound."""
    e = math.exp(float(epsilon))
    risks = {}
    for w in {1, min(max(math.floor(k / (e + 1)), 1), k - 1), min(math.ceil(k / (e + 1)), k - 1)}:
        own = w * e / (w * e + k - w)
        other = (w - own) / (k - 1)
        risks[binomial_risk(k, own, other)] = w
    least = min(risks)
    w = risks[least]
    log_subsets = math.lgamma(k + 1) - math.lgamma(w + 1) - math.lgamma(k - w + 1)
    return least, math.ceil(log_subsets / math.log(2))


def unary_encoding(k: int, epsilon: str) -> RiskAndBits:
    """Wang et al. (2017), OUE: a bit per symbol."""
    return binomial_risk(k, 0.5, 1 / (math.exp(float(epsilon)) + 1)), k


def local_hashing(k: int, epsilon: str) -> RiskAndBits:
    """Wang et al. (2017), OLH: a hash function with g values near e + 1, and a randomised value."""
    e = math.exp(float(epsilon))
    risks = {
        binomial_risk(k, e / (e + g - 1), 1 / g): g
        for g in {max(math.floor(e + 1), 2), math.ceil(e + 1)}
    }
    return min(risks), SEED_BITS + math.ceil(math.log2(risks[min(risks)]))


def k_rr(k: int, epsilon: str) -> RiskAndBits:
    """Kairouz, Bonawitz, Ramage (2016), k-RR."""
    e = math.exp(float(epsilon))
    return binomial_risk(k, e / (e + k - 1), 1 / (e + k - 1)), math.ceil(math.log2(k))


CODES: dict[str, Callable[[int, str], RiskAndBits]] = {
    "best": best,
    "Hadamard": hadamard_paper,
    "corrected": hadamard_corrected,
    "subsets": subset_selection,
    "OUE": unary_encoding,
    "OLH": local_hashing,
    "k-RR": k_rr,
}


def print_ratios() -> None:
    print("Risk at uniform p over the least possible, and bits of a report (in brackets):\n")
    for epsilon in EPSILONS:
        print(f"ε = {epsilon}\n{'k':>7}" + "".join(f"{name:>16}" for name in CODES))
        for k in SIZES:
            show_progress(f"ε = {epsilon}, k = {k}")
            bound = ye_barg_bound(k, float(epsilon))
            cells = []
            for measure in CODES.values():
                risk, bits = measure(k, epsilon)
                ratio = f"{risk / bound:.3f}" if risk < 1000 * bound else f"{risk / bound:.2g}"
                cells.append(f"{ratio:>9}{f'({bits:.0f})':>7}")
            print(f"{k:>7}" + "".join(cells))
        print()


def print_worst() -> None:
    print("The best code's worst ratio over k = 2 … 200, with the k where it is:")
    for epsilon in EPSILONS:
        ratios = {}
        for k in range(2, 201):
            ratios[best(k, epsilon)[0] / ye_barg_bound(k, float(epsilon))] = k
            if k % 25 == 0:
                show_progress(f"ε = {epsilon}, all k up to {k}")
        print(f"  ε = {epsilon:<5} {max(ratios):.4f}  k = {ratios[max(ratios)]}")
    print()


# --- times ----------------------------------------------------------------------------------------


def best_of_three(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    times = []
    for _ in range(3):
        before()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def clear_caches() -> None:
    """Clear the caches of searches and choices."""
    best_candidate.cache_clear()
    search_blocks.cache_clear()


def print_times() -> None:
    grid = sf.GridDomain(25, 50, -130, -60, 0.2)
    context = sf.Blocks(grid_tiles(grid, 25, 70), 1.0, domain=grid)
    people = np.random.default_rng(0).integers(0, context.size, PEOPLE)
    times: dict[str, list[float]] = {}
    for code in ("hadamard", "best"):
        show_progress(f"times: {code}")
        mechanism = sf.mechanism_for(context, code=code)
        reports = mechanism.privatize(people)
        tally = mechanism.tally(reports)
        times[code] = [
            best_of_three(partial(sf.mechanism_for, context, code=code), clear_caches),
            best_of_three(partial(sf.certify, mechanism)),
            best_of_three(partial(mechanism.privatize, people)),
            best_of_three(partial(mechanism.scores.unbiased, tally)),
        ]
    blocks = f"{context.sizes.size:,} blocks of {context.sizes[0]}"
    print(f"{context.size:,} cells in {blocks}, ε = 1, {PEOPLE:,} people:")
    names = ("build", "certify", "privatise", "decode")
    for name, hadamard, seconds in zip(names, times["hadamard"], times["best"], strict=True):
        ratio = f"{seconds / hadamard:>5.2f}x Hadamard ({hadamard * 1e3:.1f} ms)"
        print(f"  {name:<10}{seconds * 1e3:>8.1f} ms   {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every domain of 2 to 200 symbols too")
    options = parser.parse_args()
    print_ratios()
    if options.all:
        print_worst()
    print_times()


if __name__ == "__main__":
    main()
