"""The local engine: files of answers, privatised piece by piece over the cores of this machine.

Every worker draws from the operating system's source, so no two runs give the same reports. Where only a tally is
wanted, people are randomised and counted in one go: a report exists for as long as it takes to count it, and memory
is one tally for each worker.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.work_item import Asked, input_pieces
from sfumato.engines.workers import shared_out
from sfumato.foundation.arrays import Reports
from sfumato.survey import Survey
from sfumato.tables import AnswerColumns, FileSlice
from sfumato.tally import Tally

__all__ = ["reports_of_files", "tally_files"]


def tally_files(
    survey: Survey,
    paths: Sequence[str],
    columns: AnswerColumns,
    *,
    workers: int = 1,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Tally:
    """The tally of one report for each answer in files; the reports themselves are never kept.

    With several workers a script must be importable (``if __name__ == "__main__":``), since they are started afresh.
    """
    survey.certify()
    task = _CountReports(Asked(survey, columns))
    pieces, workers = input_pieces(paths, workers)
    counts = np.zeros(survey.mechanism.outputs, dtype=np.int64)
    for counted in shared_out(task, pieces, workers=workers, on_progress=on_progress):
        counts += counted
    return Tally(counts, survey.fingerprint)


def reports_of_files(
    survey: Survey,
    paths: Sequence[str],
    columns: AnswerColumns,
    *,
    workers: int = 1,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Iterator[Reports]:
    """One report for each answer in files, in their order, batch by batch.

    Several workers are of use for Parquet alone: they hand over the reports of a piece together, and nobody knows how
    long a CSV file is. A piece has at least one row group; while others wait, memory is some pieces' reports.
    """
    survey.certify()
    pieces, workers = input_pieces(paths, workers)
    task = _MakeReports(Asked(survey, columns))
    workers = workers if all(piece.rows is not None for piece in pieces) else 1
    for batches in shared_out(task, pieces, workers=workers, on_progress=on_progress):
        yield from batches


@dataclass(frozen=True)
class _CountReports:
    asked: Asked

    def __call__(self, piece: FileSlice, on_progress: Callable[[int], None]) -> NDArray[np.int64]:
        tally = self.asked.mechanism.privatize_and_tally(self.asked.symbols(piece, on_progress))
        return tally.counts


@dataclass(frozen=True)
class _MakeReports:
    asked: Asked

    def __call__(self, piece: FileSlice, on_progress: Callable[[int], None]) -> Iterator[Reports]:
        return (
            self.asked.mechanism.privatize(symbols)
            for symbols in self.asked.symbols(piece, on_progress)
        )
