"""Measure errors and their bounds over a grid of contexts, ε and numbers of people.

Two errors are bounded: the risk ``n · E‖p̂ − p‖²`` and the mean total variation (TV). The upper
bounds are for the paper's unbiased estimate from the Hadamard code, for every p. The lower bounds
are for the worst p. So each mechanism is measured at the p that is hardest for it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.growth import PaperResponse, hadamard_response, run_tally
from sfumato.contexts import Blocks, Context, HighLow, Uniform
from sfumato.designer import mechanism_for
from sfumato.designer.bounds import lower_bound_risk
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import project, total_variation
from sfumato.mechanisms import Mechanism
from sfumato.paper.experiment import RunOptions
from sfumato.planning import hardest_for_l2, hardest_for_tv, people_lower_bound, upper_bounds
from sfumato.simulation import Spread, run_jobs
from sfumato.tally import Tally

_UNEQUAL_SIZES = (10, 30, 60, 100, 300, 500)
_MAX_EXCESS = 5  # standard errors by which the mean of the runs may exceed a bound
_SMALL_DOMAIN = 400  # smaller domains get more runs
_MIN_RUNS = 5  # with fewer runs, the standard error is too rough for a verdict
_ROUNDING = 1e-9  # exact risks equal some bounds, up to floating-point error


@dataclass(frozen=True)
class PaperLine:
    """Bounds and measured errors for one context, ε and number of people.

    ``error`` is "risk" or "TV". ``best`` is the error of the unbiased estimate from the best code,
    and ``paper`` that of the paper's estimate from the Hadamard code. ``projected`` is the latter
    after projection; it is only for TV, since the lower bound on the risk is for unbiased
    estimates. ``exact_best`` and ``exact_paper`` are exact risks. ``printed`` is the bound that the
    paper's proposition states. ``paper_bound`` is the same with the definition of the error
    corrected, which halves it for TV.
    """

    context: str
    error: str
    epsilon: float
    people: int
    runs: int
    lower: float
    best: Spread
    paper: Spread
    tight: float
    paper_bound: float
    printed: float
    projected: Spread | None = None
    exact_best: float | None = None
    exact_paper: float | None = None

    @property
    def holds(self) -> str:
        """Return "yes", "no", or "too few runs" if a violation may be due to chance."""
        if not self._is_ordered():
            return "no"
        if self._is_within_bounds(0.0):
            return "yes"
        if self.runs < _MIN_RUNS:
            return "too few runs"
        return "yes" if self._is_within_bounds(_MAX_EXCESS) else "no"

    def _is_ordered(self) -> bool:
        """Return whether the bounds are in order and the exact risks are between them."""
        low = self.lower * (1 - _ROUNDING)
        high = self.tight * (1 + _ROUNDING)
        for risk in (self.exact_best, self.exact_paper):
            if risk is not None and not low <= risk <= high:
                return False
        return low <= high <= self.paper_bound <= self.printed

    def _is_within_bounds(self, excess: float) -> bool:
        """Return whether every mean is between the bounds, up to ``excess`` standard errors."""
        for spread in (self.best, self.paper, self.projected):
            if spread is None:
                continue
            slack = excess * (spread.standard_error or 0.0)
            if not self.lower - slack <= spread.mean <= self.tight + slack:
                return False
        return True


def contexts(epsilon: float) -> dict[str, Context]:
    """Return the contexts in the grid, by name."""
    unequal_blocks = np.repeat(np.arange(len(_UNEQUAL_SIZES)), _UNEQUAL_SIZES)
    return {
        "uniform, k = 100": Uniform(100, epsilon),
        "uniform, k = 1000": Uniform(1000, epsilon),
        "20 equal blocks, k = 100": Blocks(np.arange(100) // 5, epsilon),
        "10 equal blocks, k = 1000": Blocks(np.arange(1000) // 100, epsilon),
        "blocks of 10 to 500, k = 1000": Blocks(unequal_blocks, epsilon),
        "high-low, s = 5, k = 100": HighLow(100, range(5), epsilon),
        "high-low, s = 10, k = 1000": HighLow(1000, range(10), epsilon),
        "high-low, s = 300, k = 1000": HighLow(1000, range(300), epsilon),
    }


def lower_bound_error(context: Context, people: int) -> float:
    """Return a lower bound on the mean total variation at the worst p, for every mechanism.

    Any α with ``people_lower_bound(context, α) > people`` is one. That bound falls roughly as 1/α²,
    which gives a starting point. From there, α is reduced in steps of 2%.

    >>> context = Uniform(100, 1)
    >>> error = lower_bound_error(context, 10_000)
    >>> people_lower_bound(context, error) > 10_000 >= people_lower_bound(context, 1.05 * error)
    True
    """
    small_alpha = 1e-4
    ratio = people_lower_bound(context, small_alpha) / people
    alpha = min(1.0, 1.05 * small_alpha * math.sqrt(ratio))
    while people_lower_bound(context, alpha) <= people:
        alpha *= 0.98
    return alpha


@dataclass(frozen=True, eq=False)
class _Job:
    """The measurements for one context and one ε, which are made by one worker."""

    name: str
    context: Context
    epsilon: float
    sizes: Sequence[int]
    runs: int
    seed: int


def measure_lines(options: RunOptions, runs: int, workers: int | None) -> list[PaperLine]:
    """Measure the whole grid. A quick run has one ε and one number of people."""
    epsilons = (1.0,) if options.quick else (0.5, 1.0, 2.0)
    sizes = (5_000,) if options.quick else (5_000, 50_000)
    jobs = []
    for name, example in contexts(1.0).items():
        # In small domains, errors vary more from run to run, but runs take less time.
        context_runs = runs * max(1, _SMALL_DOMAIN // example.size)
        for epsilon in epsilons:
            context = contexts(epsilon)[name]
            jobs.append(_Job(name, context, epsilon, sizes, context_runs, options.seed))
    results = run_jobs(
        _measure,
        jobs,
        workers=workers,
        on_progress=lambda done: options.on_progress(f"bounds: {done} of {len(jobs)} contexts"),
    )
    unsorted = [line for result in results for line in result]
    return sorted(unsorted, key=lambda line: line.error == "TV")


def _measure(job: _Job) -> list[PaperLine]:
    """Return two lines, risk and TV, for each number of people."""
    paper = hadamard_response(job.context)
    best = mechanism_for(job.context)
    result = []
    for n in job.sizes:
        result.append(_risk_line(job, best, paper, n))
        result.append(_tv_line(job, best, paper, n))
    return result


def _risk_line(job: _Job, best: Mechanism, paper: PaperResponse, n: int) -> PaperLine:
    upper = upper_bounds(job.context, n)
    p_best = hardest_for_l2(best)
    p_paper = hardest_for_l2(paper)

    def risk(estimate: Floats, p: Floats) -> float:
        return n * _sum_of_squares(estimate, p)

    return PaperLine(
        job.name,
        "risk",
        job.epsilon,
        n,
        job.runs,
        lower=lower_bound_risk(job.context),
        best=_measure_error(job, n, best, p_best, best.scores.unbiased, risk),
        paper=_measure_error(job, n, paper, p_paper, paper.scores.paper_estimate, risk),
        exact_best=best.scores.risk(p_best),
        exact_paper=float(paper.scores.paper_variances(p_paper, 1).sum()),
        tight=n * upper.tight_l2_squared,
        paper_bound=n * upper.paper_l2_squared,
        printed=n * upper.paper_l2_squared,
    )


def _tv_line(job: _Job, best: Mechanism, paper: PaperResponse, n: int) -> PaperLine:
    upper = upper_bounds(job.context, n)
    p_best = hardest_for_tv(best)
    p_paper = hardest_for_tv(paper)
    estimate = paper.scores.paper_estimate
    return PaperLine(
        job.name,
        "TV",
        job.epsilon,
        n,
        job.runs,
        lower=lower_bound_error(job.context, n),
        best=_measure_error(job, n, best, p_best, best.scores.unbiased),
        paper=_measure_error(job, n, paper, p_paper, estimate),
        projected=_measure_error(job, n, paper, p_paper, lambda tally: project(estimate(tally))),
        tight=upper.tight_tv,
        paper_bound=upper.paper_tv,
        printed=2 * upper.paper_tv,
    )


def _measure_error(
    job: _Job,
    n: int,
    mechanism: Mechanism,
    p: Floats,
    estimate: Callable[[Tally], Floats],
    distance: Callable[[Floats, Floats], float] = total_variation,
) -> Spread:
    """Return the error of an estimate from the real reports of n people drawn from p."""
    name = f"bounds/{job.name}/{job.epsilon}/{n}"
    errors = []
    for run in range(job.runs):
        tally = run_tally(mechanism, p, n, name, run, job.seed)
        errors.append(distance(estimate(tally), p))
    return Spread.from_figures(errors)


def _sum_of_squares(estimate: Floats, p: Floats) -> float:
    return float(((estimate - p) ** 2).sum())
