"""Compare the default mechanisms for high-low contexts with the Hadamard code, in ordinary crowds.

    python benchmarks/high_low.py [--tallies 5]

The first s of k symbols are sensitive. The even crowd is spread evenly over all k. In the Zipf
crowd, a tenth of the people have a sensitive symbol, and both parts follow Zipf(1). Errors are
total variations, the mean of several tallies of 100,000 people, which follow from the seed. "paper"
is the Hadamard code with the paper's estimate, projected; the others use the decoder `auto`.

The last columns are exact. "worst" is the worst-case risk over that of edition 1. "β" is the share
of people with a harmless symbol who report it in clear; "β at most" bounds it for any mechanism
with a worst-case risk of 1.1 times that of edition 1 (docs/bounds.md). Progress goes to stderr.
"""

import argparse
import sys
import time

import numpy as np

import sfumato as sf
from sfumato.designer.bounds import clear_share_limit
from sfumato.foundation.simplex import project

EPSILONS = ("0.5", "1", "2")
SIZES = ((100, 10), (100, 50), (1000, 10), (1000, 100))
PEOPLE = 100_000
MARGIN = 0.1


def zipf(size: int) -> np.ndarray:
    weights = 1 / np.arange(1, size + 1)
    return weights / weights.sum()


def crowds(k: int, s: int) -> dict[str, np.ndarray]:
    return {
        "even": np.full(k, 1 / k),
        "Zipf": np.concatenate([0.1 * zipf(s), 0.9 * zipf(k - s)]),
    }


def draw_tallies(mechanism: sf.Mechanism, p: np.ndarray, count: int) -> list[sf.Tally]:
    reports = np.maximum(mechanism.forward(p), 0.0)
    reports /= reports.sum()
    tallies = []
    for seed in range(count):
        counts = np.random.default_rng(seed).multinomial(PEOPLE, reports)
        tallies.append(sf.Tally(counts, mechanism.fingerprint))
    return tallies


def mean_decoder_error(mechanism: sf.Mechanism, p: np.ndarray, count: int) -> float:
    errors = []
    for tally in draw_tallies(mechanism, p, count):
        frequencies = sf.estimate(mechanism, tally).frequencies
        errors.append(0.5 * float(np.abs(frequencies - p).sum()))
    return float(np.mean(errors))


def paper_error(mechanism: sf.HighLowResponse, p: np.ndarray, count: int) -> float:
    errors = []
    for tally in draw_tallies(mechanism, p, count):
        frequencies = project(mechanism.scores.paper_estimate(tally))
        errors.append(0.5 * float(np.abs(frequencies - p).sum()))
    return float(np.mean(errors))


def clear_share(mechanism: sf.Mechanism) -> float:
    """Return the probability that somebody with the last symbol, a free one, reports it."""
    return float(mechanism.ideal_row(mechanism.inputs - 1)[-1])


def print_cell(k: int, s: int, epsilon: str, tallies: int) -> None:
    context = sf.HighLow(k, range(s), epsilon)
    first = sf.mechanism_for(context)
    second = sf.mechanism_for(context, worst_case_margin=MARGIN)
    hadamard = sf.HighLowResponse(context)
    least = first.scores.worst_risk()
    limit = clear_share_limit(s, float(epsilon), (1 + MARGIN) * least)
    worst = second.scores.worst_risk() / least
    hadamard_worst = hadamard.scores.worst_risk() / least
    shares = f"{clear_share(first):6.3f}{clear_share(second):6.3f}{clear_share(hadamard):6.3f}"
    for name, p in crowds(k, s).items():
        errors = [
            mean_decoder_error(mechanism, p, tallies) for mechanism in (first, second, hadamard)
        ]
        over_best = errors[1] / min(errors[0], errors[2])
        print(
            f"{k:>5}{s:>5}{epsilon:>5}  {name}"
            + "".join(f"{error:9.4f}" for error in errors)
            + f"{paper_error(hadamard, p, tallies):9.4f}{over_best:9.2f}"
            + f"{worst:9.3f}{hadamard_worst:7.2f}"
            + f"{shares:>20}{limit:10.3f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="see the top of this file")
    parser.add_argument("--tallies", type=int, default=5)
    arguments = parser.parse_args()
    print(
        "    k    s    ε  crowd edition 1 edition 2 Hadamard   paper  over the   worst:            "
        "β: editions 1, 2,  β at"
    )
    print(" " * 57 + "better  edition 2  Hadamard   and Hadamard  most")
    start = time.monotonic()
    for k, s in SIZES:
        for epsilon in EPSILONS:
            print_cell(k, s, epsilon, arguments.tallies)
            print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
