"""The local engine: privatize files of answers on the cores of this machine.

Every worker draws randomness from the operating system, so no two runs give the same reports.
``tally_files`` randomizes answers and counts the reports in one pass. Each report exists only until
it is counted, and each worker needs memory for one tally.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.answer_tally import tally_answers
from sfumato.foundation.arrays import Reports
from sfumato.foundation.parallel import Progress, parallel_map
from sfumato.randomness import shuffle
from sfumato.survey import RowCounts, Survey
from sfumato.tables import AnswerColumns, FileSlice, RowCounter, answer_batches, slice_files
from sfumato.tally import Tally

__all__ = ["privatize_files", "tally_files"]

_BATCH_SIZE = 2**20


def tally_files(
    survey: Survey,
    paths: Sequence[str],
    columns: AnswerColumns,
    *,
    counter: RowCounter | None = None,
    workers: int = 1,
    on_progress: Progress = lambda rows: None,
) -> Tally:
    """Privatize the answers in files and return the tally of the reports, which are not stored.

    Workers are spawned processes, so your script must be importable without side effects (use
    ``if __name__ == "__main__":``).
    ``counter`` counts what becomes of the rows; pass one to look at it afterwards.
    ``on_progress`` is called with the number of rows read so far.
    """
    survey.certify()
    counter = counter or RowCounter(survey.context.domain, columns, "python")
    task = partial(_count_reports, survey, columns)
    slices, workers = slice_files(paths, workers)
    counts = np.zeros(survey.mechanism.outputs, dtype=np.int64)
    results = parallel_map(task, slices, workers=workers, on_progress=on_progress)
    for file_slice, (slice_counts, row_counts) in zip(slices, results, strict=True):
        counts += slice_counts
        counter.add(file_slice.path, row_counts)
    counter.check()
    return Tally(counts, survey.fingerprint)


def privatize_files(
    survey: Survey,
    paths: Sequence[str],
    columns: AnswerColumns,
    *,
    counter: RowCounter | None = None,
    workers: int = 1,
    on_progress: Progress = lambda rows: None,
) -> Iterator[Reports]:
    """Yield one report for each answer in the files, in order, batch by batch.

    Discard the reports if this raises an error: rows are refused when all have been read, so that
    the error gives the counts of whole files. If people without an answer are skipped, the reports
    are held in memory and shuffled, because their order could show who was skipped.

    Several workers are used only if all files are Parquet files, because only these are split into
    slices. Each worker returns all the reports for a slice at once, and a few such results are in
    memory at any time.
    ``counter`` counts what becomes of the rows; pass one to look at it afterwards.
    """
    survey.certify()
    counter = counter or RowCounter(survey.context.domain, columns, "python")
    task = partial(_make_reports, survey, columns)
    slices, workers = slice_files(paths, workers)
    if any(file_slice.row_count is None for file_slice in slices):
        workers = 1
    results = parallel_map(task, slices, workers=workers, on_progress=on_progress)
    reports = _count_rows(slices, results, counter)
    if counter.is_skipping:
        yield from _shuffle_all(reports)
    else:
        yield from reports
    counter.check()


_Batch = tuple[Reports, RowCounts]
"""The reports for some rows, and the counts of these rows."""


def _count_rows(
    slices: Sequence[FileSlice], results: Iterable[Iterable[_Batch]], counter: RowCounter
) -> Iterator[Reports]:
    for file_slice, batches in zip(slices, results, strict=True):
        for reports, row_counts in batches:
            counter.add(file_slice.path, row_counts)
            yield reports


def _shuffle_all(batches: Iterator[Reports]) -> Iterator[Reports]:
    """Yield the reports of all batches in random order."""
    reports = np.concatenate([np.empty(0, dtype=np.uint32), *batches])
    reports = shuffle(reports)
    for start in range(0, reports.size, _BATCH_SIZE):
        yield reports[start : start + _BATCH_SIZE]


def _count_reports(
    survey: Survey, columns: AnswerColumns, file_slice: FileSlice, on_progress: Progress
) -> tuple[NDArray[np.int64], RowCounts]:
    domain = survey.context.domain
    batches = answer_batches(file_slice, columns, domain, on_progress=on_progress)
    return tally_answers(survey.mechanism, batches)


def _make_reports(
    survey: Survey, columns: AnswerColumns, file_slice: FileSlice, on_progress: Progress
) -> Iterator[_Batch]:
    domain = survey.context.domain
    no_reports = np.empty(0, dtype=np.uint32)
    for batch in answer_batches(file_slice, columns, domain, on_progress=on_progress):
        symbols = batch.symbols
        reports = survey.mechanism.privatize(symbols) if symbols.size else no_reports
        yield reports, batch.counts
