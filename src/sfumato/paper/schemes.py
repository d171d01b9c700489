"""The two schemes that experiments compare on the same people: the paper's and Sfumato's best.

"The paper" is Acharya et al. (2020). Its scheme consists of the Hadamard code, the paper's
estimator, and Euclidean projection of the entire vector onto the simplex. The paper does not
specify the projection, but its figures match the Euclidean one. Sfumato's best scheme is
``mechanism_for`` with the default decoder. Neither scheme uses the true distribution, and both are
measured on simulated reports.
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

__all__ = ["MapResult", "Schemes", "best_estimate", "measure_contexts", "paper_estimate"]

_RUNS_PER_JOB = 4  # a job builds its mechanisms once for all its runs


@dataclass(frozen=True, eq=False)
class Schemes:
    """Both schemes for a uniform or block context."""

    context: Uniform | Blocks

    @cached_property
    def paper_mechanism(self) -> BlockResponse:
        """The paper's mechanism: a block response that uses the Hadamard code."""
        blocks = self.context.as_blocks
        return PlainResponse(self.context) if blocks is None else BlockResponse(blocks)

    @cached_property
    def best_mechanism(self) -> Mechanism:
        """Sfumato's best mechanism for the context."""
        return mechanism_for(self.context)

    def estimate(
        self, symbols: Symbols, stream_names: tuple[str, str], run: int, seed: int
    ) -> tuple[Floats, Floats]:
        """Privatize the symbols with each scheme, and return the paper's and Sfumato's estimates.

        Each scheme has its own stream of random words, which depends only on the stream's name, the
        run and the seed. ``stream_names`` are the names for the paper's scheme and for Sfumato's.
        """
        paper_stream, best_stream = stream_names
        paper = paper_estimate(self.paper_mechanism, symbols, paper_stream, run, seed)
        best = best_estimate(self.best_mechanism, symbols, best_stream, run, seed)
        return paper, best


def paper_estimate(
    mechanism: BlockResponse | HighLowResponse,
    symbols: Symbols,
    stream_name: str,
    run: int,
    seed: int,
) -> Floats:
    """Return the paper's estimate for simulated reports, projected onto the simplex.

    Unlike Sfumato's scores, the paper's estimator does not correct the group totals first. Raise an
    error if the code is not balanced, because the estimator would then be wrong.
    """
    tally = mechanism.privatize_and_tally(symbols, experiment_words(stream_name, run, seed))
    return project(mechanism.scores.paper_estimate(tally))


def best_estimate(
    mechanism: Mechanism, symbols: Symbols, stream_name: str, run: int, seed: int
) -> Floats:
    """Return Sfumato's estimate for simulated reports, from the default decoder.

    For maps, it is an average of models by the evidence of the reports.
    """
    tally = mechanism.privatize_and_tally(symbols, experiment_words(stream_name, run, seed))
    return Auto().decode(mechanism, tally).frequencies


# --- the same people on a map, randomized repeatedly ----------------------------------------------


@dataclass(frozen=True, eq=False)
class MapResult:
    """The total variation errors of both schemes over all runs, and the first run's estimates."""

    paper_error: Spread
    best_error: Spread
    paper_map: Floats
    best_map: Floats


def measure_contexts(
    contexts: Mapping[str, Uniform | Blocks],
    counts: Symbols,
    runs: int,
    seed: int,
    *,
    stream_name: str | None = None,
    on_progress: Callable[[str], None] = lambda line: None,
    workers: int | None = None,
) -> dict[str, MapResult]:
    """Measure both schemes under each context, ``runs`` times on the same people.

    ``counts``: the number of people with each symbol. ``stream_name``: the name of the stream of
    random words for all contexts and both schemes. By default, each scheme has its own stream in
    each context. The random words of a run depend only on the stream's name, the seed and the run
    number, so the result does not depend on ``workers``.

    In this example every block has a single symbol, which is reported as is, so the error is zero:

    >>> contexts = {"single": Blocks([0, 1], epsilon=1)}
    >>> result = measure_contexts(contexts, np.array([3, 1]), runs=2, seed=0, workers=1)["single"]
    >>> result.paper_error, result.paper_map
    (Spread(mean=0.0, standard_error=0.0), array([0.75, 0.25]))
    """
    jobs = []
    for name, context in contexts.items():
        if stream_name is None:
            stream_names = (f"map/{name}/paper", f"map/{name}/best")
        else:
            stream_names = (stream_name, stream_name)
        for first_run in range(0, runs, _RUNS_PER_JOB):
            job_runs = range(first_run, min(first_run + _RUNS_PER_JOB, runs))
            jobs.append(_Job(name, context, counts, job_runs, seed, stream_names))

    def show_progress(finished_count: int) -> None:
        job = jobs[finished_count - 1]
        percentage = f"{finished_count / len(jobs):.0%}"
        on_progress(f"{job.context_name}: {job.runs.stop} of {runs} runs ({percentage} overall)")

    job_results = run_jobs(_run_job, jobs, workers=workers, on_progress=show_progress)
    results_by_context = {}
    for name in contexts:
        matching_results = [result for result in job_results if result.context_name == name]
        errors = np.concatenate([result.errors for result in matching_results])
        paper_errors, best_errors = errors.T
        results_by_context[name] = MapResult(
            Spread.from_figures(paper_errors),
            Spread.from_figures(best_errors),
            *matching_results[0].first_estimates,
        )
    return results_by_context


@dataclass(frozen=True, eq=False)
class _Job:
    """A batch of runs under one context."""

    context_name: str
    context: Uniform | Blocks
    counts: Symbols
    runs: range
    seed: int
    stream_names: tuple[str, str]


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
        paper, best = schemes.estimate(symbols, job.stream_names, run, job.seed)
        estimates.append((paper, best))
        errors.append((total_variation(paper, true_shares), total_variation(best, true_shares)))
    return _JobResult(job.context_name, np.array(errors), estimates[0])
