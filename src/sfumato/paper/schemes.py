"""The two schemes that experiments compare on the same people: the paper's, and the best here.

The paper's scheme is Hadamard's code, the paper's own estimate, and Euclidean projection of the
entire vector onto the simplex. The paper does not say how it projects, but its figures show it. The
best scheme here is ``mechanism_for`` with the default decoder. Neither knows how people are
distributed, and both are measured on actual reports.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.contexts import Blocks, Uniform
from sfumato.designer import mechanism_for
from sfumato.estimation.decoders import Auto
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.simplex import project, total_variation
from sfumato.mechanisms import BlockResponse, HighLowResponse, Mechanism, PlainResponse
from sfumato.simulation import Spread, experiment_words, run_jobs

__all__ = ["MapErrors", "Schemes", "best_estimate", "measure_contexts", "paper_estimate"]

_PORTION = 4  # runs of one job, so that a worker builds its mechanisms once


@dataclass(frozen=True, eq=False)
class Schemes:
    """Both schemes for a context that is uniform or made of blocks."""

    context: Uniform | Blocks

    @cached_property
    def paper(self) -> BlockResponse:
        """The paper's mechanism: a block response around Hadamard's code."""
        blocks = self.context.as_blocks
        return PlainResponse(self.context) if blocks is None else BlockResponse(blocks)

    @cached_property
    def best(self) -> Mechanism:
        """The best mechanism here."""
        return mechanism_for(self.context)

    def estimates(
        self, symbols: Symbols, names: tuple[str, str], run: int, seed: int
    ) -> tuple[Floats, Floats]:
        """Return the estimates of the paper's scheme and of the best one from everyone's reports.

        Each scheme draws words of its own, which depend on its name in ``names``, the run and the
        seed.
        """
        paper_name, best_name = names
        paper = paper_estimate(self.paper, symbols, paper_name, run, seed)
        best = best_estimate(self.best, symbols, best_name, run, seed)
        return paper, best


def paper_estimate(
    mechanism: BlockResponse | HighLowResponse, symbols: Symbols, name: str, run: int, seed: int
) -> Floats:
    """Return the paper's own estimate, projected once, over all symbols.

    The mechanisms here would correct the totals of groups first. Raise an error if the code is not
    balanced, because the paper's estimator would be wrong.
    """
    tally = mechanism.privatize_and_tally(symbols, experiment_words(name, run, seed))
    return project(mechanism.scores.paper_estimate(tally))


def best_estimate(mechanism: Mechanism, symbols: Symbols, name: str, run: int, seed: int) -> Floats:
    """Return the default estimate.

    This is empirical Bayes, moved towards projection as far as the reports support that.
    """
    tally = mechanism.privatize_and_tally(symbols, experiment_words(name, run, seed))
    return Auto().decode(mechanism, tally).frequencies


# --- the same people on a map, randomised again and again -----------------------------------------


@dataclass(frozen=True, eq=False)
class MapErrors:
    """The total variation errors of both schemes over all runs, and the first run's estimates."""

    paper: Spread
    best: Spread
    paper_map: Floats
    best_map: Floats


def measure_contexts(
    contexts: Mapping[str, Uniform | Blocks],
    counts: Symbols,
    runs: int,
    seed: int,
    *,
    words: str | None = None,
    on_progress: Callable[[str], None] = lambda line: None,
    workers: int | None = None,
) -> dict[str, MapErrors]:
    """Randomise the people of ``counts`` ``runs`` times under each context, by both schemes.

    Only the randomiser is repeated: people stay the same. The words of a run depend on their
    name, the seed and the run's number alone, so the result does not depend on ``workers``.
    ``words`` names them for all contexts and both schemes; by default each has its own name.

    A block of one symbol is sent as is, so there is no error here:

    >>> contexts = {"single": Blocks([0, 1], epsilon=1)}
    >>> errors = measure_contexts(contexts, np.array([3, 1]), runs=2, seed=0, workers=1)
    >>> errors["single"].paper, errors["single"].paper_map
    (Spread(mean=0.0, standard_error=0.0), array([0.75, 0.25]))
    """
    jobs = []
    for name, context in contexts.items():
        names = (f"map/{name}/paper", f"map/{name}/best") if words is None else (words, words)
        for first in range(0, runs, _PORTION):
            portion = range(first, min(first + _PORTION, runs))
            jobs.append(_Job(name, context, counts, portion, seed, names))

    def show_progress(done: int) -> None:
        job = jobs[done - 1]
        share = f"{done / len(jobs):.0%} of all"
        on_progress(f"{job.name}: {job.runs.stop} of {runs} runs ({share})")

    results = run_jobs(_measure, jobs, workers=workers, on_progress=show_progress)
    errors_by_name = {}
    for name in contexts:
        own = [result for result in results if result.name == name]
        papers, bests = np.concatenate([result.errors for result in own]).T
        errors_by_name[name] = MapErrors(
            Spread.from_figures(papers), Spread.from_figures(bests), *own[0].first_estimates
        )
    return errors_by_name


@dataclass(frozen=True, eq=False)
class _Job:
    """Some runs under one context."""

    name: str
    context: Uniform | Blocks
    counts: Symbols
    runs: range
    seed: int
    names: tuple[str, str]


@dataclass(frozen=True, eq=False)
class _JobResult:
    """The errors of both schemes, a row for each run; and the estimates of the job's first run."""

    name: str
    errors: Floats
    first_estimates: tuple[Floats, Floats]


def _measure(job: _Job) -> _JobResult:
    schemes = Schemes(job.context)
    symbols = np.repeat(np.arange(job.counts.size), job.counts)
    truth = job.counts / symbols.size
    estimates = []
    errors = []
    for run in job.runs:
        paper, best = schemes.estimates(symbols, job.names, run, job.seed)
        estimates.append((paper, best))
        errors.append((total_variation(paper, truth), total_variation(best, truth)))
    return _JobResult(job.name, np.array(errors), estimates[0])
