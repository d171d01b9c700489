"""Spread errors between a lower and an upper bound, over a grid of contexts, ε and people.

Two errors are bounded: the risk ``n · E‖p̂ − p‖²`` and the mean total variation (TV). The upper bounds are for the
paper's unbiased estimate from the Hadamard code, for every p. The lower bounds are for the worst p. So everything is
measured at the p that its mechanism finds hardest.
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from experiments.growth import hadamard_response
from sfumato.contexts import Blocks, Context, HighLow, Uniform
from sfumato.designer.bounds import lower_bound_risk
from sfumato.designer.choose import mechanism_for
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import project, total_variation
from sfumato.mechanisms import BlockResponse, GroupResponse, Mechanism
from sfumato.paper.experiment import RunOptions
from sfumato.planning import hardest_for_l2, hardest_for_tv, lower_bound_people, upper_bounds
from sfumato.simulation import SeededWords, Spread, draw_people
from sfumato.tally import Tally

__all__ = ["Line", "contexts", "least_error", "lines"]

_UNEQUAL = (10, 30, 60, 100, 300, 500)
_ALLOWED = 5  # standard errors by which a mean of runs may pass a bound
_SMALL = 400
_FEWEST_RUNS = 5  # below, a standard error is too rough to judge by
_ROUNDING = 1e-9  # exact risks meet some bounds exactly, but for the last digits of a float


@dataclass(frozen=True)
class Line:
    """One context, ε and number of people, and one of the errors, "risk" or "TV": bounds, and what was measured.

    ``best`` is the unbiased estimate from the best code, ``paper`` the paper's from the Hadamard code, ``projected``
    the paper's after projection (TV only: the floor under the risk is for unbiased estimates). ``exact`` are the exact
    risks of the first two. ``printed`` is what the paper's proposition says, ``paper_bound`` the same for the right
    error: for TV the half of it.
    """

    context: str
    error: str
    epsilon: float
    people: int
    runs: int
    lower: float
    best: Spread
    paper: Spread
    projected: Spread | None
    exact: tuple[float, float] | None
    tight: float
    paper_bound: float
    printed: float

    @property
    def holds(self) -> str:
        """One of "yes", "no", and "too few runs" where chance cannot be told from a broken bound."""
        if not self._is_ordered():
            return "no"
        if self._lies_between(0.0):
            return "yes"
        if self.runs < _FEWEST_RUNS:
            return "too few runs"
        return "yes" if self._lies_between(_ALLOWED) else "no"

    def _is_ordered(self) -> bool:
        """What needs no sampling: upper bounds in order, and exact risks between the bounds."""
        low = self.lower * (1 - _ROUNDING)
        high = self.tight * (1 + _ROUNDING)
        return low <= high <= self.paper_bound <= self.printed and all(
            low <= r <= high for r in self.exact or ()
        )

    def _lies_between(self, allowed: float) -> bool:
        """Whether every mean lies between the bounds, up to ``allowed`` standard errors."""
        for spread in (self.best, self.paper, self.projected):
            if spread is None:
                continue
            slack = allowed * (spread.standard_error or 0.0)
            if not self.lower - slack <= spread.mean <= self.tight + slack:
                return False
        return True


def lines(options: RunOptions, runs: int, workers: int) -> list[Line]:
    """The whole grid, risk before TV; a quick run has one ε and one number of people."""
    epsilons, crowds = ((1.0,), (5_000,)) if options.quick else ((0.5, 1.0, 2.0), (5_000, 50_000))
    jobs = [
        (name, context, epsilon)
        for epsilon in epsilons
        for name, context in contexts(epsilon).items()
    ]
    result: list[Line] = []
    with ThreadPoolExecutor(workers) as pool:
        by_job = pool.map(
            lambda job: list(_lines_of(job[0], job[1], job[2], crowds, runs, options.seed)), jobs
        )
        for (name, _, epsilon), few in zip(jobs, by_job, strict=True):
            result += few
            options.on_progress(f"bounds: {name}, ε = {epsilon:g}")
    names = list(contexts(1.0))
    return sorted(
        result,
        key=lambda line: (line.error == "TV", names.index(line.context), line.epsilon, line.people),
    )


def contexts(epsilon: float) -> dict[str, Context]:
    """The contexts of the grid, by name."""
    unequal = np.repeat(np.arange(len(_UNEQUAL)), _UNEQUAL)
    return {
        "uniform, k = 100": Uniform(100, epsilon),
        "uniform, k = 1000": Uniform(1000, epsilon),
        "20 equal blocks, k = 100": Blocks(np.arange(100) // 5, epsilon),
        "10 equal blocks, k = 1000": Blocks(np.arange(1000) // 100, epsilon),
        "blocks of 10 to 500, k = 1000": Blocks(unequal, epsilon),
        "high-low, s = 5, k = 100": HighLow(100, range(5), epsilon),
        "high-low, s = 10, k = 1000": HighLow(1000, range(10), epsilon),
        "high-low, s = 300, k = 1000": HighLow(1000, range(300), epsilon),
    }


def least_error(context: Context, people: int) -> float:
    """Return a mean total variation that no mechanism can go below for every p.

    Any α with ``lower_bound_people(context, α) > people`` is one. The bound falls nearly as 1/α², which says where to
    look; the answer is the first that is found from there downwards, in steps of 2 %.

    >>> error = least_error(Uniform(100, 1), 10_000)
    >>> lower_bound_people(Uniform(100, 1), error) > 10_000 >= lower_bound_people(Uniform(100, 1), 1.05 * error)
    True
    """
    small = 1e-4
    alpha = min(1.0, 1.05 * small * math.sqrt(lower_bound_people(context, small) / people))
    while lower_bound_people(context, alpha) <= people:
        alpha *= 0.98
    return alpha


@dataclass(frozen=True, eq=False)
class _Compared:
    """The two mechanisms of a context, and how often each is run."""

    name: str
    context: Context
    epsilon: float
    paper: BlockResponse | GroupResponse
    best: Mechanism
    runs: int
    seed: int

    def tallies(self, mechanism: Mechanism, p: Floats, n: int) -> Iterator[Tally]:
        """The tally of every run: n people drawn from p, each with a real report."""
        for run in range(self.runs):
            people = draw_people(p, n, f"bounds/{self.name}/{self.epsilon}/{n}", run, self.seed)
            yield mechanism.tally(mechanism.privatize(people, SeededWords(self.seed, run=run)))


def _lines_of(
    name: str, context: Context, epsilon: float, crowds: tuple[int, ...], runs: int, seed: int
) -> Iterator[Line]:
    runs *= max(
        1, _SMALL // context.size
    )  # the error of few symbols varies more from run to run, and costs less
    paper = hadamard_response(context)
    best = mechanism_for(context)
    compared = _Compared(name, context, epsilon, paper, best, runs, seed)
    for n in crowds:
        yield _risk_line(compared, n)
        yield _tv_line(compared, n)


def _risk_line(of: _Compared, n: int) -> Line:
    paper = of.paper
    best = of.best
    upper = upper_bounds(of.context, n)
    p = hardest_for_l2(best)
    p2 = hardest_for_l2(paper)
    return Line(
        of.name,
        "risk",
        of.epsilon,
        n,
        of.runs,
        lower=lower_bound_risk(of.context),
        best=Spread.of(
            [n * _squares(best.scores.unbiased(tally), p) for tally in of.tallies(best, p, n)]
        ),
        paper=Spread.of(
            [
                n * _squares(paper.scores.paper_estimate(tally), p2)
                for tally in of.tallies(paper, p2, n)
            ]
        ),
        projected=None,
        exact=(best.scores.risk(p), float(paper.scores.paper_variances(p2, 1).sum())),
        tight=n * upper.tight_l2,
        paper_bound=n * upper.paper_l2,
        printed=n * upper.paper_l2,
    )


def _tv_line(of: _Compared, n: int) -> Line:
    paper = of.paper
    best = of.best
    upper = upper_bounds(of.context, n)
    p = hardest_for_tv(best)
    p2 = hardest_for_tv(paper)
    simple = [paper.scores.paper_estimate(tally) for tally in of.tallies(paper, p2, n)]
    return Line(
        of.name,
        "TV",
        of.epsilon,
        n,
        of.runs,
        lower=least_error(of.context, n),
        best=Spread.of(
            [total_variation(best.scores.unbiased(tally), p) for tally in of.tallies(best, p, n)]
        ),
        paper=Spread.of([total_variation(estimate, p2) for estimate in simple]),
        projected=Spread.of([total_variation(project(estimate), p2) for estimate in simple]),
        exact=None,
        tight=upper.tight_tv,
        paper_bound=upper.paper_tv,
        printed=2 * upper.paper_tv,
    )


def _squares(found: Floats, p: Floats) -> float:
    return float(((found - p) ** 2).sum())
