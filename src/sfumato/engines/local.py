"""The local engine: files of answers, privatised over the cores of this machine.

Every worker draws from the operating system's source, so no two runs give the same reports. If you
only want a tally, people are randomised and counted in one go: a report exists for as long as it
takes to count it, and memory is one tally per worker.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import Reports, Symbols
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
    """Return the tally of one report per answer in files. The reports themselves are never kept.

    With several workers your script must be importable (``if __name__ == "__main__":``), because
    they are spawned. ``on_progress`` is called with the number of rows read so far.
    """
    survey.certify()
    task = _CountReports(survey, columns)
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
    """Yield one report per answer in files, in their order, batch by batch.

    Several workers only help with Parquet: they hand over the reports of some row groups together,
    and the length of a CSV file is unknown. Memory is the reports of a few such slices.
    """
    survey.certify()
    task = _MakeReports(survey, columns)
    slices, workers = slice_files(paths, workers)
    if any(part.rows is None for part in slices):
        workers = 1
    for batches in parallel_map(task, slices, workers=workers, on_progress=on_progress):
        yield from batches


@dataclass(frozen=True)
class _ReadAnswers:
    survey: Survey
    columns: AnswerColumns

    def symbols(self, part: FileSlice, on_progress: Progress) -> Iterator[Symbols]:
        domain = self.survey.context.domain
        return answer_batches(part, self.columns, domain, on_progress=on_progress)


class _CountReports(_ReadAnswers):
    def __call__(self, part: FileSlice, on_progress: Callable[[int], None]) -> NDArray[np.int64]:
        symbols = self.symbols(part, on_progress)
        return self.survey.mechanism.privatize_and_tally(symbols).counts


class _MakeReports(_ReadAnswers):
    def __call__(self, part: FileSlice, on_progress: Callable[[int], None]) -> Iterator[Reports]:
        for symbols in self.symbols(part, on_progress):
            yield self.survey.mechanism.privatize(symbols)
