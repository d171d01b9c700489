"""Simulation of files over the cores of this machine. NOT PRIVATE, and apart from everything that is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import iadd

from sfumato.engines.work_item import Asked, input_pieces
from sfumato.engines.workers import shared_out
from sfumato.simulation.simulate import (
    SeededCounts,
    Simulation,
    check_simulation,
    seeded_counts,
    simulation_of,
)
from sfumato.survey import Survey
from sfumato.tables import AnswerColumns, FileSlice, first_rows

__all__ = ["simulate_files"]


def simulate_files(
    survey: Survey,
    paths: Sequence[str],
    columns: AnswerColumns,
    *,
    runs: int = 10,
    seed: int = 0,
    decoder: str = "auto",
    workers: int = 1,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Simulation:
    """Privatise the answers of files ``runs`` times and compare each estimate with them.

    A person's words depend on the seed and on the row in the whole input, so the same seed gives the same numbers
    whatever the number of workers, and however the rows are spread over files and row groups.
    """
    check_simulation(runs, decoder)
    columns.check(survey.context.domain)
    pieces, workers = input_pieces(paths, workers)
    placed = list(zip(pieces, first_rows(pieces, columns), strict=True))
    task = _CountRuns(Asked(survey, columns), runs, seed)
    counted = reduce(iadd, shared_out(task, placed, workers=workers, on_progress=on_progress))
    return simulation_of(survey, counted, decoder)


@dataclass(frozen=True)
class _CountRuns:
    asked: Asked
    runs: int
    seed: int

    def __call__(
        self, placed: tuple[FileSlice, int], on_progress: Callable[[int], None]
    ) -> SeededCounts:
        piece, first_row = placed
        batches = self.asked.symbols(piece, on_progress)
        return seeded_counts(
            self.asked.mechanism, batches, runs=self.runs, seed=self.seed, first_row=first_row
        )
