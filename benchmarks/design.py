"""The risk of designed mechanisms, and of others for the same matrix.

    python benchmarks/design.py                 # up to 16 symbols, a minute
    python benchmarks/design.py --all           # up to 64 symbols, six minutes
    python benchmarks/design.py --exam          # the exam over every design as well

Each line shows the exact risk of the integers at uniform p, the bound and its kind, the gap, the
seconds of the call on one core, the number of reports, and the risks of the exponential mechanism
and of classical LDP at the least ε relative to the design's. Both use their best linear unbiased
estimate.
"""

import argparse
import time
from itertools import product

import numpy as np

import sfumato as sf
from sfumato.designer.exponential import exponential_response
from sfumato.foundation.arrays import Floats

# Risks of the first column generation, after 12, 122 and 292 seconds: planar matrices, uniform p.
FIRST_PROTOTYPE = {"planar 16": 242.02, "planar 32": 516.97, "planar 64": 1517.1}


def planar(size: int, seed: int) -> Floats:
    """Return distances between random points of the unit square, with median 2."""
    points = np.random.default_rng(seed).random((size, 2))
    distances = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    return distances / np.median(distances[distances > 0]) * 2


def asymmetric(size: int, seed: int) -> Floats:
    """Return independent entries between 0.3 and 3, which closure then shortens."""
    E = np.random.default_rng(seed).uniform(0.3, 3, (size, size))
    np.fill_diagonal(E, 0)
    return E


def line(size: int, step: float) -> Floats:
    """Return distances between symbols in a row."""
    return step * np.abs(np.subtract.outer(np.arange(size), np.arange(size)))


def cases(large: bool) -> dict[str, tuple[Floats, float]]:
    """Return matrices by name, each with its time limit."""
    matrices: dict[str, tuple[Floats, float]] = {}
    for k, seed in product((6, 8, 10), (1, 2, 3)):
        matrices[f"planar {k}, seed {seed}"] = (planar(k, seed), 60.0)
    for k, seed in product((6, 8, 10), (5, 6, 7)):
        matrices[f"asymmetric {k}, seed {seed}"] = (asymmetric(k, seed), 60.0)
    for k, step in product((6, 8, 10), (0.2, 0.5, 1.0)):
        matrices[f"line {k}, step {step}"] = (line(k, step), 60.0)
    matrices["planar 16"] = (planar(16, 1), 45.0)
    if large:
        matrices["planar 12"] = (planar(12, 1), 60.0)
        matrices["planar 32"] = (planar(32, 1), 45.0)
        matrices["planar 64"] = (planar(64, 1), 240.0)
    return matrices


def show(name: str, E: Floats, time_limit: float, exam: bool) -> None:
    """Print the line of one matrix."""
    context = sf.PrivacyMatrix(E)
    start = time.perf_counter()
    design = sf.design(context, time_limit=time_limit)
    seconds = time.perf_counter() - start
    others = [
        exponential_response(context),
        sf.mechanism_for(sf.Uniform(len(E), context.smallest_epsilon)),
    ]
    ratios = [other.scores.risk(design.prior) / design.risk for other in others]
    progress = ""
    if name in FIRST_PROTOTYPE:
        progress = f"  {design.risk / FIRST_PROTOTYPE[name]:.4f} of the first prototype"
    print(
        f"{name:22s} {design.risk:10.4f} {design.bound_status} {design.lower_bound:10.4f}  "
        f"gap {design.gap:7.1e} {seconds:6.1f} s {design.round_count:4d} rounds "
        f"{design.mechanism.outputs:5d} reports  exponential {ratios[0]:5.1f}x  "
        f"classical {ratios[1]:5.1f}x{progress}",
        flush=True,
    )
    if exam:
        sf.check_mechanism(design.mechanism)
        print(f"{'':22s} passed the exam", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="12, 32 and 64 symbols too")
    parser.add_argument("--exam", action="store_true", help="put every design through the exam")
    options = parser.parse_args()
    for name, (E, time_limit) in cases(options.all).items():
        show(name, E, time_limit, options.exam)


if __name__ == "__main__":
    main()
