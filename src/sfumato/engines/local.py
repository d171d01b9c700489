"""The local engine: privatise files of answers on the cores of this machine.

Every worker draws from the operating system's source, so no two runs give the same reports. If you
only want a tally, answers are randomised and counted in one pass: a report exists only until it is
counted, and memory is one tally per worker.
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
    """Privatise the answers in files and return their tally, without keeping any report.

    Several workers are spawned, so your script must be importable (``if __name__ == "__main__":``).
    ``on_progress`` is called with the number of rows read so far.
    """
    survey.certify()
    task = partial(_count_reports, survey, columns)
    slices, workers = slice_files(paths, workers)
    counts = np.zeros(survey.mechanism.outputs, dtype=np.int64)
    for more in parallel_map(task, slices, workers=workers, on_progress=on_progress):
        counts += more
    return Tally(counts, survey.fingerprint)


def privatize_files(
    survey: Survey,
    paths: Sequence[str],
    columns: AnswerColumns,
    *,
    workers: int = 1,
    on_progress: Progress = lambda rows: None,
) -> Iterator[Reports]:
    """Yield one report per answer in files, in order, batch by batch.

    Several workers only help with Parquet: each returns all reports of some row groups at once, and
    a CSV file has no row groups. Memory is the reports of a few such slices.
    """
    survey.certify()
    task = partial(_make_reports, survey, columns)
    slices, workers = slice_files(paths, workers)
    if any(part.rows is None for part in slices):
        workers = 1
    for batches in parallel_map(task, slices, workers=workers, on_progress=on_progress):
        yield from batches


def _count_reports(
    survey: Survey, columns: AnswerColumns, part: FileSlice, on_progress: Progress
) -> NDArray[np.int64]:
    symbols = answer_batches(part, columns, survey.context.domain, on_progress=on_progress)
    return survey.mechanism.privatize_and_tally(symbols).counts


def _make_reports(
    survey: Survey, columns: AnswerColumns, part: FileSlice, on_progress: Progress
) -> Iterator[Reports]:
    for symbols in answer_batches(part, columns, survey.context.domain, on_progress=on_progress):
        yield survey.mechanism.privatize(symbols)
