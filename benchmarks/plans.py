"""How often plans keep their word: `python benchmarks/plans.py [--tallies 4000] [--only NAME]`.

A plan for a given distribution states an error that the decoded estimate stays within, with
probability 95 %. There are 72 cases: six contexts, people spread evenly or by Zipf's law, three
numbers of people, and two measures. In each, tallies are drawn from Multinomial(n, Qᵀp) and decoded
by the decoder that surveys use, and their errors are compared with the plan.

The plan passes if at least 94 % of the tallies stay within the stated error in every case, and
94.5 to 96.5 % on average over the cases. By chance alone, the share of 4,000 tallies varies by
0.35 % (one standard deviation), so with far fewer tallies the verdict means little.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

import sfumato as sf
from sfumato.estimation.decoders import get_decoder
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import total_variation
from sfumato.planning.decoded_forecast import DecodedForecast
from sfumato.simulation.runs import run_jobs
from sfumato.tally import Tally

CONFIDENCE = 0.95
MIN_KEPT = 0.94
MEAN_KEPT = (0.945, 0.965)
MEASURES = ("tv", "l2")
SHAPES = ("even", "Zipf")
PEOPLE_COUNTS = (1_000, 10_000, 100_000)
LINE = [[abs(a - b) for b in range(12)] for a in range(12)]
CONTEXTS = {
    "five": sf.Uniform(5, 1),
    "two hundred": sf.Uniform(200, 2),
    "high-low": sf.HighLow(300, range(100), 1),
    "blocks": sf.Blocks([x // 10 for x in range(100)], 1),
    "two levels": sf.Blocks([x // 10 for x in range(60)], 1, across=2),
    "line": sf.Metric(LINE, "0.5"),
}


@dataclass(frozen=True)
class Crowd:
    """People who answer a survey: the context's name, the distribution's, and how many they are."""

    context: str
    shape: str
    people: int

    def mechanism(self) -> sf.Mechanism:
        """Return the mechanism that a plan for the context is for."""
        row = sf.plan(CONTEXTS[self.context], people=1, measure="symbol").row
        if row.mechanism is None:
            raise SystemExit(row.reason)
        return row.mechanism

    def distribution(self) -> Floats:
        """Return the share of each symbol."""
        ranks = np.arange(1, CONTEXTS[self.context].size + 1)
        shares = 1 / ranks if self.shape == "Zipf" else np.ones(ranks.size)
        return shares / shares.sum()


@dataclass(frozen=True)
class PlanCase:
    """A plan, and what became of it.

    ``kept``: the fraction of tallies that stay within the stated error.
    ``mean_ratio``: the predicted mean error, divided by that of the tallies.
    """

    crowd: Crowd
    measure: str
    error: float
    kept: float
    mean_ratio: float

    def __str__(self) -> str:
        crowd = self.crowd
        return (
            f"{crowd.context:12} {crowd.shape:5} {crowd.people:8,} {self.measure:3}"
            f" {self.error:9.5f} {100 * self.kept:7.2f} {self.mean_ratio:7.3f}"
        )


HEADER = f"{'context':12} {'shape':5} {'people':>8}     {'error':>9} {'kept %':>7} {'mean':>7}"


def crowds() -> list[Crowd]:
    """Return all crowds; each stands for one case per measure."""
    return [Crowd(*crowd) for crowd in product(CONTEXTS, SHAPES, PEOPLE_COUNTS)]


def examine(job: tuple[Crowd, str, int, Sequence[str]]) -> list[PlanCase]:
    """Predict the error for a crowd by each measure, and compare it with that of tallies."""
    crowd, decoder, tally_count, measures = job
    mechanism = crowd.mechanism()
    p = crowd.distribution()
    errors = tally_errors(mechanism, p, crowd.people, decoder, tally_count)
    cases = []
    for measure in measures:
        forecast = DecodedForecast(mechanism, measure, CONFIDENCE, p, decoder).at(crowd.people)
        kept = float(np.mean(errors[measure] <= forecast.error))
        mean_error = mean_of(errors[measure], measure)
        cases.append(
            PlanCase(crowd, measure, forecast.error, kept, forecast.mean_error / mean_error)
        )
    return cases


def tally_errors(
    mechanism: sf.Mechanism, p: Floats, people: int, decoder: str, tally_count: int
) -> dict[str, Floats]:
    """Return the errors of decoded tallies by each measure."""
    q = np.maximum(mechanism.forward(p), 0)
    generator = np.random.default_rng(20)
    errors: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    for _ in range(tally_count):
        counts = generator.multinomial(people, q / q.sum())
        tally = Tally(counts, mechanism.fingerprint)
        frequencies = get_decoder(decoder).decode(mechanism, tally).frequencies
        errors["tv"].append(total_variation(frequencies, p))
        errors["l2"].append(float(np.linalg.norm(frequencies - p)))
    return {measure: np.array(values) for measure, values in errors.items()}


def mean_of(errors: Floats, measure: str) -> float:
    """Return the mean error as a plan defines it: for l2, the root of the mean square."""
    return float(np.sqrt(np.mean(errors**2)) if measure == "l2" else errors.mean())


def faults(cases: Sequence[PlanCase]) -> list[str]:
    """Return why the plans fail, if they do."""
    reasons = [f"kept too rarely: {case}" for case in cases if case.kept < MIN_KEPT]
    mean_kept = float(np.mean([case.kept for case in cases]))
    low, high = MEAN_KEPT
    if not low <= mean_kept <= high:
        reasons.append(f"kept in {100 * mean_kept:.2f} % on average")
    return reasons


def main() -> None:
    """Examine the cases, and print a line for each, the mean and a verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tallies", type=int, default=4000)
    parser.add_argument("--decoder", default="auto")
    parser.add_argument("--only", choices=tuple(CONTEXTS), help="one context")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    selected = [crowd for crowd in crowds() if options.only in (None, crowd.context)]
    jobs = [(crowd, options.decoder, options.tallies, MEASURES) for crowd in selected]
    start = time.perf_counter()

    def show(finished_count: int) -> None:
        minutes = (time.perf_counter() - start) / 60
        print(f"{finished_count} of {len(jobs)} crowds, {minutes:.1f} min", file=sys.stderr)

    results = run_jobs(examine, jobs, workers=options.workers, on_progress=show)
    cases = [case for result in results for case in result]
    print(HEADER)
    for case in cases:
        print(case)
    print(f"kept on average: {100 * np.mean([case.kept for case in cases]):.2f} %")
    fault_list = faults(cases)
    for fault in fault_list:
        print(fault)
    print("FAILED" if fault_list else "passed")
    sys.exit(1 if fault_list else 0)


if __name__ == "__main__":
    main()
