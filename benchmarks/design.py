"""What the designer reaches, and what others have on the same matrix.

    python benchmarks/design.py                 # up to 16 symbols, a minute
    python benchmarks/design.py --all           # up to 64 symbols, six minutes
    python benchmarks/design.py --exam          # the exam over every design as well

Every line is the exact risk of the realised integers at uniform p, the bound with its word, the gap, the seconds of the
whole call on one core, the reports, and the risk of the exponential mechanism and of classical LDP at the least ε over
the design's, each with its best linear unbiased estimate. Rounding is what the integers cost over the mixture that they
were rounded from.
"""

import argparse
import time

import numpy as np

import sfumato as sf
from sfumato.designer.component import Round
from sfumato.designer.exponential import exponential_response
from sfumato.foundation.arrays import Floats

# What the column generation that this began with reached, in 12, 122 and 292 seconds: planar matrices, uniform p.
FIRST_PROTOTYPE = {"planar 16": 242.02, "planar 32": 516.97, "planar 64": 1517.1}


def planar(size: int, seed: int) -> Floats:
    """Distances between random points of the unit square, with median 2."""
    points = np.random.default_rng(seed).random((size, 2))
    distances = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    return distances / np.median(distances[distances > 0]) * 2


def asymmetric(size: int, seed: int) -> Floats:
    """Independent entries between 0.3 and 3, which closure then shortens."""
    E = np.random.default_rng(seed).uniform(0.3, 3, (size, size))
    np.fill_diagonal(E, 0)
    return E


def line(size: int, step: float) -> Floats:
    """Symbols in a row."""
    return step * np.abs(np.subtract.outer(np.arange(size), np.arange(size)))


def cases(large: bool) -> dict[str, tuple[Floats, float]]:
    """Matrices by name, each with its time limit."""
    found = {
        f"planar {k}, seed {seed}": (planar(k, seed), 60.0)
        for k in (6, 8, 10)
        for seed in (1, 2, 3)
    }
    found |= {
        f"asymmetric {k}, seed {seed}": (asymmetric(k, seed), 60.0)
        for k in (6, 8, 10)
        for seed in (5, 6, 7)
    }
    found |= {
        f"line {k}, step {step}": (line(k, step), 60.0)
        for k in (6, 8, 10)
        for step in (0.2, 0.5, 1.0)
    }
    found |= {"planar 16": (planar(16, 1), 45.0)}
    if large:
        found |= {"planar 12": (planar(12, 1), 60.0), "planar 32": (planar(32, 1), 45.0)}
        found |= {"planar 64": (planar(64, 1), 240.0)}
    return found


def show(name: str, E: Floats, time_limit: float, exam: bool) -> None:
    """One line."""
    context, last = sf.PrivacyMatrix(E), list[Round]()
    start = time.perf_counter()
    made = sf.design(context, time_limit=time_limit, on_progress=last.append)
    seconds = time.perf_counter() - start
    others = [
        exponential_response(context),
        sf.mechanism_for(sf.Uniform(len(E), context.smallest_epsilon)),
    ]
    ratios = [other.scores.risk(made.prior) / made.risk for other in others]
    over = (
        f"  {made.risk / FIRST_PROTOTYPE[name]:.4f} of the first prototype"
        if name in FIRST_PROTOTYPE
        else ""
    )
    print(
        f"{name:22s} {made.risk:10.4f} {made.bound_is} {made.lower_bound:10.4f}  gap {made.gap:7.1e} {seconds:6.1f} s "
        f"{made.rounds:4d} rounds {made.mechanism.outputs:5d} reports  exponential {ratios[0]:5.1f}x  classical "
        f"{ratios[1]:5.1f}x{over}",
        flush=True,
    )
    if exam:
        sf.check_mechanism(made.mechanism)
        print(f"{'':22s} passed the exam", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="12, 32 and 64 symbols too")
    parser.add_argument("--exam", action="store_true", help="put every design through the exam")
    asked = parser.parse_args()
    for name, (E, time_limit) in cases(asked.all).items():
        show(name, E, time_limit, asked.exam)


if __name__ == "__main__":
    main()
