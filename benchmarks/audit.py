"""How often an audit detects a violation, and how often it reports one that is not there.

    python benchmarks/audit.py [AUDITS]

The channels have eight symbols and odds that are too large by a few per cent, for every pair or for
one. They are audited against ε = 1 with several numbers of samples and two levels of confidence.
Then the sample plan is varied, for odds that are 5 % too large and half a million samples. The
standard error of a share over 200 audits is 0.02 near 0.9, and 0.007 near 0.01. It takes a quarter
of an hour.
"""

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from multiprocessing import Pool

import numpy as np

import sfumato as sf
from sfumato.auditing import SamplePlan
from sfumato.foundation.arrays import Floats
from sfumato.simulation import SeededWords

K = 8
PROMISE = sf.Uniform(K, 1)
SAMPLES = (100_000, 300_000, 1_000_000)
CONFIDENCES = (0.99, 0.999)
PLANS: Mapping[str, SamplePlan] = {
    "as it is": SamplePlan(),
    "ordering 5 %": SamplePlan(ordering_share=0.05),
    "choosing 20 %": SamplePlan(choosing_share=0.2),
    "choosing 60 %": SamplePlan(choosing_share=0.6),
    "all of the test everywhere": SamplePlan(uniform_share=0.99),
    "a tenth of it everywhere": SamplePlan(uniform_share=0.1),
    "1 suspect": replace(SamplePlan(), suspect_count=1),
    "8 suspects": replace(SamplePlan(), suspect_count=8),
}


def k_rr(excess: float) -> Floats:
    Q = np.ones((K, K)) + (math.e * excess - 1) * np.eye(K)
    return Q / Q.sum(axis=1, keepdims=True)


def hadamard(excess: float) -> Floats:
    return sf.PlainResponse(sf.Uniform(K, 1 + math.log(excess)), sf.HadamardCode).matrix()


def subsets(excess: float) -> Floats:
    pairs = list(combinations(range(K), 2))
    Q = np.array([[math.e * excess if x in pair else 1.0 for pair in pairs] for x in range(K)])
    return Q / Q.sum(axis=1, keepdims=True)


def one_pair(excess: float) -> Floats:
    """Return randomised response in which symbol 1 sends report 0 too rarely.

    Only the pair 0 against 1 is broken.
    """
    Q = k_rr(1.0)
    excess_mass = Q[1, 0] * (1 - 1 / excess)
    Q[1, 0] -= excess_mass
    Q[1, 1:] *= 1 + excess_mass / Q[1, 1:].sum()
    return Q


CHANNELS: Mapping[str, Callable[[float], Floats]] = {
    "randomised response": k_rr,
    "Hadamard response": hadamard,
    "subset selection": subsets,
    "one pair of 56": one_pair,
}


def violates(task: tuple[str, float, int, float, SamplePlan, int]) -> bool:
    name, excess, samples, confidence, plan, seed = task
    Q = CHANNELS[name](excess)
    rng = np.random.default_rng(seed)

    def randomize(symbol: int, count: int) -> object:
        return np.repeat(np.arange(Q.shape[1]), rng.multinomial(count, Q[symbol] / Q[symbol].sum()))

    result = sf.audit(
        randomize,
        PROMISE,
        samples=samples,
        confidence=confidence,
        sample_plan=plan,
        source=SeededWords(seed),
    )
    return result.violates


def share(pool: "Pool", audits: int, *task: object) -> str:  # type: ignore[valid-type]
    tasks = [(*task, seed) for seed in range(audits)]
    violations = pool.map(violates, tasks, chunksize=5)  # type: ignore[attr-defined]
    return f"{np.mean(violations):>9.3f}"


def main() -> None:
    audits = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with Pool(2) as pool:
        print(f"{'channel':<22} {'excess':>7} {'level':>6}" + "".join(f"{n:>10,}" for n in SAMPLES))
        for name in CHANNELS:
            for excess in (1.0, 1.02, 1.05, 1.1):
                for confidence in CONFIDENCES:
                    cells = [
                        share(pool, audits, name, excess, n, confidence, SamplePlan())
                        for n in SAMPLES
                    ]
                    print(
                        f"{name:<22} {excess:>7} {1 - confidence:>6.3f} {' '.join(cells)}",
                        flush=True,
                    )
        print(f"\n{'plan':<28}" + "".join(f"{name:>22}" for name in CHANNELS))
        for label, plan in PLANS.items():
            cells = [share(pool, audits, name, 1.05, 500_000, 0.99, plan) for name in CHANNELS]
            print(f"{label:<28}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
