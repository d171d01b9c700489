"""The local engine: privatize files of answers on the cores of this machine.

Every worker draws randomness from the operating system, so no two runs give the same reports.
``tally_files`` randomizes answers and counts the reports in one pass. Each report exists only until
it is counted, and each worker needs memory for one tally.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import Reports
from sfumato.foundation.parallel import Progress, parallel_map
from sfumato.survey import Survey
from sfumato.tables import AnswerColumns, FileSlice, answer_batches, slice_files
from sfumato.tally import Tally

__all__ = ["privatize_files", "tally_files"]


def tally_files(
    survey: Survey,
    paths: Sequence[str],
    columns: AnswerColumns,
    *,
    workers: int = 1,
    on_progress: Progress = lambda rows: None,
) -> Tally:
    """Privatize the answers in files and return the tally of the reports, which are not stored.

    Workers are spawned processes, so your script must be importable without side effects (use
    ``if __name__ == "__main__":``).
    ``on_progress`` is called with the number of rows read so far.
    """
    survey.certify()
    task = partial(_count_reports, survey, columns)
    slices, workers = slice_files(paths, workers)
    counts = np.zeros(survey.mechanism.outputs, dtype=np.int64)
    for slice_counts in parallel_map(task, slices, workers=workers, on_progress=on_progress):
        counts += slice_counts
    return Tally(counts, survey.fingerprint)


def privatize_files(
    survey: Survey,
    paths: Sequence[str],
    columns: AnswerColumns,
    *,
    workers: int = 1,
    on_progress: Progress = lambda rows: None,
) -> Iterator[Reports]:
    """Yield one report for each answer in the files, in order, batch by batch.

    Several workers are used only if all files are Parquet files, because only these are split into
    slices. Each worker returns all the reports for a slice at once, and a few such results are in
    memory at any time.
    """
    survey.certify()
    task = partial(_make_reports, survey, columns)
    slices, workers = slice_files(paths, workers)
    if any(file_slice.row_count is None for file_slice in slices):
        workers = 1
    for batches in parallel_map(task, slices, workers=workers, on_progress=on_progress):
        yield from batches


def _count_reports(
    survey: Survey, columns: AnswerColumns, file_slice: FileSlice, on_progress: Progress
) -> NDArray[np.int64]:
    symbols = answer_batches(file_slice, columns, survey.context.domain, on_progress=on_progress)
    return survey.mechanism.privatize_and_tally(symbols).counts


def _make_reports(
    survey: Survey, columns: AnswerColumns, file_slice: FileSlice, on_progress: Progress
) -> Iterator[Reports]:
    for symbols in answer_batches(
        file_slice, columns, survey.context.domain, on_progress=on_progress
    ):
        yield survey.mechanism.privatize(symbols)
