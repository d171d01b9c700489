"""The two schemes that experiments compare on the same people: the paper's and Sfumato's best.

"The paper" is Acharya et al. (2020). Its scheme is the Hadamard code, the paper's estimator, and
Euclidean projection of the entire vector onto the simplex. The paper does not specify the
projection, but its figures match the Euclidean one. Sfumato's best scheme is ``mechanism_for`` with
the default decoder. Neither scheme knows the true distribution, and both are measured on actual
reports.
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

_RUNS_PER_JOB = 4  # a job builds its mechanisms once for all its runs


@dataclass(frozen=True, eq=False)
class Schemes:
    """Both schemes for a uniform or block context."""

    context: Uniform | Blocks

    @cached_property
    def paper(self) -> BlockResponse:
        """The paper's mechanism: a block response that uses the Hadamard code."""
        blocks = self.context.as_blocks
        return PlainResponse(self.context) if blocks is None else BlockResponse(blocks)

    @cached_property
    def best(self) -> Mechanism:
        """Sfumato's best mechanism for the context."""
        return mechanism_for(self.context)

    def estimate(
        self, symbols: Symbols, word_names: tuple[str, str], run: int, seed: int
    ) -> tuple[Floats, Floats]:
        """Privatize the symbols with each scheme, and return the paper's and Sfumato's estimates.

        Each scheme draws its own random words, determined by its name in ``word_names``, the run
        and the seed.
        """
        paper_name, best_name = word_names
        paper = paper_estimate(self.paper, symbols, paper_name, run, seed)
        best = best_estimate(self.best, symbols, best_name, run, seed)
        return paper, best


def paper_estimate(
    mechanism: BlockResponse | HighLowResponse,
    symbols: Symbols,
    word_name: str,
    run: int,
    seed: int,
) -> Floats:
    """Return the paper's estimate, projected once over all symbols.

    Unlike Sfumato's scores, the paper's estimator does not correct the group totals first. Raise an
    error if the code is not balanced, because the estimator would then be wrong.
    """
    tally = mechanism.privatize_and_tally(symbols, experiment_words(word_name, run, seed))
    return project(mechanism.scores.paper_estimate(tally))


def best_estimate(
    mechanism: Mechanism, symbols: Symbols, word_name: str, run: int, seed: int
) -> Floats:
    """Return the estimate of the default decoder.

    This is an empirical Bayes estimate, combined with projection where the reports support it.
    """
    tally = mechanism.privatize_and_tally(symbols, experiment_words(word_name, run, seed))
    return Auto().decode(mechanism, tally).frequencies


# --- the same people on a map, randomised repeatedly ----------------------------------------------


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
    word_name: str | None = None,
    on_progress: Callable[[str], None] = lambda line: None,
    workers: int | None = None,
) -> dict[str, MapErrors]:
    """Measure both schemes under each context, ``runs`` times on the same people.

    ``counts`` is the number of people with each symbol. The random words of a run depend only on
    their name, the seed and the run number, so the result does not depend on ``workers``.
    ``word_name`` names the words for all contexts and both schemes; by default, each scheme has its
    own name in each context.

    In this example every block has a single symbol, which is reported as is, so the error is zero:

    >>> contexts = {"single": Blocks([0, 1], epsilon=1)}
    >>> errors = measure_contexts(contexts, np.array([3, 1]), runs=2, seed=0, workers=1)
    >>> errors["single"].paper, errors["single"].paper_map
    (Spread(mean=0.0, standard_error=0.0), array([0.75, 0.25]))
    """
    jobs = []
    for name, context in contexts.items():
        if word_name is None:
            word_names = (f"map/{name}/paper", f"map/{name}/best")
        else:
            word_names = (word_name, word_name)
        for first_run in range(0, runs, _RUNS_PER_JOB):
            job_runs = range(first_run, min(first_run + _RUNS_PER_JOB, runs))
            jobs.append(_Job(name, context, counts, job_runs, seed, word_names))

    def show_progress(done_count: int) -> None:
        job = jobs[done_count - 1]
        percentage = f"{done_count / len(jobs):.0%} of all"
        on_progress(f"{job.context_name}: {job.runs.stop} of {runs} runs ({percentage})")

    results = run_jobs(_run_job, jobs, workers=workers, on_progress=show_progress)
    errors_by_context = {}
    for name in contexts:
        matching = [result for result in results if result.context_name == name]
        paper_errors, best_errors = np.concatenate([result.errors for result in matching]).T
        errors_by_context[name] = MapErrors(
            Spread.from_figures(paper_errors),
            Spread.from_figures(best_errors),
            *matching[0].first_estimates,
        )
    return errors_by_context


@dataclass(frozen=True, eq=False)
class _Job:
    """A batch of runs under one context."""

    context_name: str
    context: Uniform | Blocks
    counts: Symbols
    runs: range
    seed: int
    word_names: tuple[str, str]


@dataclass(frozen=True, eq=False)
class _JobResult:
    """The errors of both schemes (one row per run), and the estimates from the job's first run."""

    context_name: str
    errors: Floats
    first_estimates: tuple[Floats, Floats]


def _run_job(job: _Job) -> _JobResult:
    schemes = Schemes(job.context)
    symbols = np.repeat(np.arange(job.counts.size), job.counts)
    true_shares = job.counts / symbols.size
    estimates = []
    errors = []
    for run in job.runs:
        paper, best = schemes.estimate(symbols, job.word_names, run, job.seed)
        estimates.append((paper, best))
        errors.append((total_variation(paper, true_shares), total_variation(best, true_shares)))
    return _JobResult(job.context_name, np.array(errors), estimates[0])
