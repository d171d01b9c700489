"""Randomize data you already have, many times, and compare the estimates with the truth."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.errors import InvalidArgument, NotEnoughReports
from sfumato.estimation.decoders import get_decoder
from sfumato.foundation.arrays import Booleans, Floats, Symbols, Words
from sfumato.foundation.notebook import FieldsView
from sfumato.foundation.parallel import Progress, parallel_map
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import Mechanism
from sfumato.randomness import WORDS_PER_POSITION, WordSource
from sfumato.simulation.runs import Spread
from sfumato.simulation.seeded import SeededWords
from sfumato.survey import AnswerBatch, RowCounts, Survey
from sfumato.tables import (
    AnswerColumns,
    FileSlice,
    RowCounter,
    answer_batches,
    first_rows,
    slice_files,
)
from sfumato.tally import Tally

__all__ = ["Simulation", "simulate", "simulate_files"]


@dataclass(frozen=True, eq=False)
class Simulation(FieldsView):
    """The results of repeated runs on the same data.

    ``truth``: the distribution p of the data.
    ``errors``: the total variation error ``½ Σ|p̂ − p|`` of each run.
    ``estimates``: the estimate p̂ of each run, one row per run.
    """

    survey_fingerprint: str
    decoder: str
    people: int
    truth: Floats
    errors: Floats
    estimates: Floats

    @property
    def error(self) -> Spread:
        """The mean error over the runs, and its standard error."""
        return Spread.from_figures(self.errors)

    def to_dict(self) -> dict[str, object]:
        """Return the results as ``sfumato simulate --json`` prints them."""
        return {
            "survey": self.survey_fingerprint,
            "runs": int(self.errors.size),
            "people": self.people,
            "decoder": self.decoder,
            "total_variation": self.error.to_dict(),
        }


def simulate(
    survey: Survey,
    batches: Iterable[Symbols],
    *,
    runs: int = 10,
    seed: int = 0,
    decoder: str = "auto",
) -> Simulation:
    """Randomize batches of symbols ``runs`` times and compare each estimate with the data.

    Only one batch and ``runs`` tallies are in memory at a time. The same seed gives the same
    results, however the input is divided into batches, and also for ``simulate_files`` with the
    same answers.
    """
    _check_options(runs, decoder)
    rows = (AnswerBatch(symbols, RowCounts(symbols.size)) for symbols in batches)
    counts = _count_reports(survey.mechanism, rows, runs, seed)
    return _evaluate(survey, counts.true_counts, counts.report_counts, decoder)


def simulate_files(
    survey: Survey,
    paths: Sequence[str],
    columns: AnswerColumns,
    *,
    runs: int = 10,
    seed: int = 0,
    decoder: str = "auto",
    workers: int = 1,
    counter: RowCounter | None = None,
    on_progress: Progress = lambda row_count: None,
) -> Simulation:
    """Randomize the answers in files ``runs`` times and compare each estimate with the answers.

    A person's random words depend only on the seed, the run and the row number in the complete
    input. So the same seed gives the same results for any number of workers, however the rows are
    divided into files and row groups.

    ``counter`` counts what becomes of the rows; pass one to look at it afterwards.
    ``on_progress``: called with the number of rows read so far.
    """
    _check_options(runs, decoder)
    columns.check(survey.context.domain)
    counter = counter or RowCounter(survey.context.domain, columns, "python")
    slices, workers = slice_files(paths, workers)
    items = list(zip(slices, first_rows(slices, columns), strict=True))
    task = _SliceCounter(survey, columns, runs, seed)
    results = parallel_map(task, items, workers=workers, on_progress=on_progress)
    true_counts = np.zeros(survey.mechanism.inputs, dtype=np.int64)
    report_counts = np.zeros((runs, survey.mechanism.outputs), dtype=np.int64)
    for file_slice, result in zip(slices, results, strict=True):
        true_counts += result.true_counts
        report_counts += result.report_counts
        counter.add(file_slice.path, result.row_counts)
    counter.check()
    return _evaluate(survey, true_counts, report_counts, decoder)


@dataclass(frozen=True)
class _SliceCounter:
    """A task that counts the answers in one slice of the input, and their reports in each run.

    It is called with the slice and the index of the slice's first row in the complete input.
    """

    survey: Survey
    columns: AnswerColumns
    runs: int
    seed: int

    def __call__(self, item: tuple[FileSlice, int], on_progress: Progress) -> "_SliceCounts":
        file_slice, first_row = item
        domain = self.survey.context.domain
        batches = answer_batches(file_slice, self.columns, domain, on_progress=on_progress)
        return _count_reports(self.survey.mechanism, batches, self.runs, self.seed, first_row)


def _check_options(runs: int, decoder: str) -> None:
    """Raise ``InvalidArgument`` if an option is invalid, before any data is read."""
    if runs < 1:
        raise InvalidArgument(f"runs must be at least 1; got {runs}.")
    get_decoder(decoder)


class _SliceCounts(NamedTuple):
    """The number of people with each symbol, the counts of reports in each run, and of rows."""

    true_counts: Symbols
    report_counts: Symbols
    row_counts: RowCounts


def _count_reports(
    mechanism: Mechanism, batches: Iterable[AnswerBatch], runs: int, seed: int, first_row: int = 0
) -> _SliceCounts:
    """Count the people with each symbol, and their reports in each run."""
    true_counts = np.zeros(mechanism.inputs, dtype=np.int64)
    report_counts = np.zeros((runs, mechanism.outputs), dtype=np.int64)
    row_counts = RowCounts()
    word_sources = [SeededWords(seed, run=run, position=first_row) for run in range(runs)]
    for batch in batches:
        row_counts += batch.counts
        symbols = batch.symbols
        is_selected = batch.symbol_of_row >= 0
        true_counts += np.bincount(symbols, minlength=mechanism.inputs)
        for row, source in zip(report_counts, word_sources, strict=True):
            words: WordSource = source
            if symbols.size < is_selected.size:
                words = _SelectedWords(source, is_selected)
            row += mechanism.privatize_and_tally(symbols, words).counts
    return _SliceCounts(true_counts, report_counts, row_counts)


class _SelectedWords:
    """The words of some rows of a batch, so that a row's words do not depend on skipped rows."""

    def __init__(self, source: SeededWords, is_selected: Booleans) -> None:
        self._words = source.take(is_selected.size)[is_selected]
        self._start = 0

    def take(self, count: int, words: int = WORDS_PER_POSITION) -> Words:
        """Return the words of the next selected rows."""
        first = self._start
        self._start += count
        return self._words[first : self._start, :words]


def _evaluate(
    survey: Survey, true_counts: Symbols, report_counts: Symbols, decoder: str
) -> Simulation:
    """Estimate the distribution from the reports of each run, and measure the errors."""
    people = int(true_counts.sum())
    if people == 0:
        raise NotEnoughReports("the input contains no answers.")
    p = true_counts / people
    estimates = []
    errors = []
    for row in report_counts:
        tally = Tally(row, survey.fingerprint)
        frequencies = survey.estimate(tally, decoder=get_decoder(decoder)).frequencies
        estimates.append(frequencies)
        errors.append(total_variation(frequencies, p))
    return Simulation(survey.fingerprint, decoder, people, p, np.array(errors), np.array(estimates))
