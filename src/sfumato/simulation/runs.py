"""Populations, and repeated seeded runs over them. NOT PRIVATE: this reads unprotected answers."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from sfumato.domains import Domain
from sfumato.errors import InvalidArgument, InvalidTable
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.notebook import FieldsView, facts_html
from sfumato.foundation.parallel import Progress, available_cores, call_in_threads, parallel_map
from sfumato.mechanisms import Mechanism
from sfumato.simulation.seeded import SeededWords
from sfumato.survey import SKIP, RowRules
from sfumato.tables import AnswerColumns, ColumnSummary, RowCounter, answer_batches
from sfumato.tables.proposed_domain import propose_domain
from sfumato.tally import Tally

__all__ = [
    "Draws",
    "Population",
    "Spread",
    "column_population",
    "run_jobs",
    "survey_population",
    "tally_population",
]

Job = TypeVar("Job")
Result = TypeVar("Result")

_POSITIONS_PER_PARTICIPANT = 2**96  # more than any number of people
_CHUNK_SIZE = 2**20  # people to process at a time


@dataclass(frozen=True, eq=False, repr=False)
class Population(FieldsView):
    """The number of people with each symbol, and the number of rows without an answer.

    ``description`` says what became of all rows.
    """

    domain: Domain
    counts: Symbols
    rows_without_answer: int = 0
    description: str = ""


def survey_population(
    path: str,
    columns: AnswerColumns,
    domain: Domain,
    *,
    counter: RowCounter | None = None,
    on_progress: Progress = lambda row_count: None,
) -> Population:
    """Count the answers to a survey. ``counter`` counts what becomes of the rows."""
    counter = counter or RowCounter(domain, columns, "python")
    counts = np.zeros(domain.size, dtype=np.int64)
    for batch in answer_batches(path, columns, domain, on_progress=on_progress):
        counts += np.bincount(batch.symbols, minlength=domain.size)
        counter.add(path, batch.counts)
    counter.check()
    skipped_count = counter.counts.rows - int(counts.sum())
    return Population(domain, counts, skipped_count, counter.describe())


def column_population(summary: ColumnSummary, columns: AnswerColumns) -> Population:
    """Count the answers in a column. The domain consists of the distinct ones, in order.

    Rows without an answer are left out, unless ``columns`` has a label for them.
    """
    if columns.missing is None:
        columns = replace(columns, missing=SKIP)
    proposal = propose_domain(summary, columns)
    if proposal.domain.size < 2:
        raise InvalidTable(
            f"column {summary.name!r} must contain at least two different answers; got "
            f"{proposal.domain.size}. Choose another column."
        )
    rules = RowRules(proposal.domain, proposal.columns)
    rules.check(proposal.row_counts)
    counts = np.array(proposal.counts, dtype=np.int64)
    skipped_count = rules.count_skipped(proposal.row_counts)
    description = rules.describe(proposal.row_counts)
    return Population(proposal.domain, counts, skipped_count, description)


class Spread(NamedTuple):
    """The mean of a figure over runs, and its standard error (``None`` for a single run)."""

    mean: float
    standard_error: float | None

    @classmethod
    def from_figures(cls, figures: Sequence[float] | Floats) -> "Spread":
        """Summarize one figure, given its value in each run.

        >>> print(Spread.from_figures([1.0, 2.0, 3.0]))
        2.0000 ± 0.5774
        """
        values = np.asarray(figures, dtype=np.float64)
        mean = float(values.mean())
        if values.size == 1:
            return cls(mean, None)
        standard_error = float(values.std(ddof=1) / math.sqrt(values.size))
        return cls(mean, standard_error)

    def to_dict(self) -> dict[str, float | None]:
        """Return the mean and the standard error as a dictionary."""
        return self._asdict()

    def __str__(self) -> str:
        if self.standard_error is None:
            return f"{self.mean:.4f}"
        return f"{self.mean:.4f} ± {self.standard_error:.4f}"

    def _repr_html_(self) -> str:
        """Return the mean and its standard error as HTML, for notebooks."""
        return facts_html("Spread", {"mean ± standard error": str(self)})


@dataclass(frozen=True)
class Draws(FieldsView):
    """The number of runs, their seed, and the number of workers, which run in parallel.

    The random words of a run depend only on the seed, the index of the run and the participant. So
    results do not depend on ``workers``, and adding runs does not change earlier runs.
    """

    runs: int = 10
    seed: int = 0
    workers: int = 1

    def __post_init__(self) -> None:
        for count in (self.runs, self.workers):
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise InvalidArgument("runs and workers must be positive integers.")
        SeededWords(self.seed)  # rejects an invalid seed

    def measure(
        self, measure_run: Callable[[SeededWords], Sequence[float]], participant: int = 0
    ) -> Floats:
        """Call ``measure_run`` once for each run, with the random words of that run.

        Return an array with a row for each figure and a column for each run.
        ``participant``: the index of a mechanism; different participants get different words.
        """
        position = participant * _POSITIONS_PER_PARTICIPANT
        workers = min(self.workers, self.runs)
        first_figures = measure_run(SeededWords(self.seed, run=0, position=position))
        figures = np.empty((len(first_figures), self.runs))  # fails early if memory is insufficient
        figures[:, 0] = first_figures

        def measure_later_run(index: int) -> None:
            run = index + 1
            words = SeededWords(self.seed, run=run, position=position)
            figures[:, run] = measure_run(words)

        call_in_threads(measure_later_run, self.runs - 1, workers=workers)
        return figures


def tally_population(mechanism: Mechanism, counts: Symbols, words: SeededWords) -> Tally:
    """Tally one report from each person, where ``counts[x]`` people have symbol x.

    The reports are drawn by the same code as on a person's device.
    """
    return mechanism.privatize_and_tally(_symbols_in_chunks(counts), words)


def _symbols_in_chunks(counts: Symbols) -> Iterator[Symbols]:
    ends = np.cumsum(counts)
    people = int(ends[-1])
    for start in range(0, people, _CHUNK_SIZE):
        person_indices = np.arange(start, min(start + _CHUNK_SIZE, people))
        yield np.searchsorted(ends, person_indices, side="right")


def run_jobs(
    work: Callable[[Job], Result],
    jobs: Sequence[Job],
    *,
    workers: int | None = None,
    on_progress: Progress = lambda finished_count: None,
) -> list[Result]:
    """Return ``work(job)`` for each job, using parallel processes.

    ``work``: a module-level function whose result depends only on its job, not on ``workers``.
    ``workers``: the number of processes; by default one for each core.
    ``on_progress``: called with the number of finished jobs.

    >>> run_jobs(abs, [3, -4], workers=1)
    [3, 4]
    """
    worker_count = available_cores() if workers is None else workers
    results: list[Result] = []
    for result in parallel_map(partial(_run_single_threaded, work), jobs, workers=worker_count):
        results.append(result)
        on_progress(len(results))
    return results


def _run_single_threaded(work: Callable[[Job], Result], job: Job, on_progress: Progress) -> Result:
    """Run a job with single-threaded numerical libraries: the workers already use every core."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return work(job)
