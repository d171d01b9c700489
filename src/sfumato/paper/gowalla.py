"""Table 1 and the heat map of the paper: check-ins on 125 × 350 cells, hidden within tiles.

The truth is the empirical distribution of the check-ins. People are the same in every run, and
only the randomiser is repeated. What is protected is one check-in, not one person: a person with a
hundred check-ins sends a hundred reports.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfumato.contexts import Blocks, Uniform
from sfumato.domains import GridDomain
from sfumato.domains.partitions import grid_tiles
from sfumato.paper.checkins import MapPopulation, map_grid, map_population
from sfumato.paper.experiment import ExperimentResult, RunOptions
from sfumato.paper.schemes import MapErrors, measure_contexts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PAPER_TABLE", "PER_RECORD", "gowalla"]

PAPER_TABLE: Mapping[str, tuple[tuple[int, int] | None, float]] = {
    "LDP": (None, 0.591),
    "(5,7)": ((5, 7), 0.298),
    "(25,35)": ((25, 35), 0.108),
    "(25,70)": ((25, 70), 0.082),
}
"""For each name of blocks the tiles (rows, columns), and the paper's error in total variation."""

PER_RECORD = (
    "Privacy is per check-in, as in the paper: nothing is promised for all check-ins of one person "
    "together."
)

_BLOCKS = "Blocks (m1,m2) cut latitudes into m1 and longitudes into m2 equal parts. ε = 1."
_EPSILON = 1.0
_COLUMNS = ("blocks", "the paper", "the paper's scheme here", "the best here")


def gowalla(
    options: RunOptions,
    *,
    checkins: str | None = None,
    grid: str | None = None,
    workers: int | None = None,
) -> ExperimentResult:
    """Measure the paper's table of errors on check-ins, and draw the map that each scheme sees.

    ``checkins``: SNAP's loc-gowalla_totalCheckins.txt.gz. ``grid``: a table of counts with columns
    row, column and count, where row 0 starts at 25N and column 0 at 130W. With neither, people are
    made up from the population of places.
    """
    population = map_population(checkins, grid, options.on_progress)
    domain = map_grid()
    options.on_progress(f"{population} on {domain.cells:,} cells")
    contexts = {}
    for name, (tiles, _) in PAPER_TABLE.items():
        contexts[name] = _context(domain, tiles)
    runs = options.repetitions(full=100, quick=3)
    measured = measure_contexts(
        contexts,
        population.counts,
        runs,
        options.seed,
        on_progress=options.on_progress,
        workers=workers,
    )
    rows = []
    data = []
    for name, errors in measured.items():
        printed = PAPER_TABLE[name][1]
        rows.append((name, printed, str(errors.paper), str(errors.best)))
        fields = {
            "blocks": name,
            "paper": printed,
            "hadamard_projection": errors.paper.in_json(),
            "best": errors.best.in_json(),
        }
        data.append(fields)
    return ExperimentResult(
        name="gowalla",
        title="The smaller the blocks, the sharper the map",
        summary=_summary(population, runs, measured),
        columns=_COLUMNS,
        rows=tuple(rows),
        data=data,
        figure=lambda: _figure(domain, population, runs, measured),
        notes=(population.note, _BLOCKS, PER_RECORD),
    )


def _context(domain: GridDomain, tiles: tuple[int, int] | None) -> Uniform | Blocks:
    if tiles is None:
        return Uniform(domain, _EPSILON)
    return Blocks(grid_tiles(domain, *tiles), _EPSILON, domain=domain)


def _summary(population: MapPopulation, runs: int, measured: Mapping[str, MapErrors]) -> str:
    without = measured["LDP"]
    finest = measured["(25,70)"]
    times = "once" if runs == 1 else f"{runs} times"
    return (
        f"{population}, randomised {times}. Total variation error of the paper's scheme: "
        f"{without.paper.mean:.3f} without blocks, {finest.paper.mean:.3f} with 1,750; of the best "
        f"here: {without.best.mean:.3f} and {finest.best.mean:.3f}."
    )


def _figure(
    domain: GridDomain, population: MapPopulation, runs: int, measured: Mapping[str, MapErrors]
) -> "Figure":
    from sfumato.paper.gowalla_figure import draw_figure

    printed = {name: error for name, (_, error) in PAPER_TABLE.items()}
    return draw_figure(domain, population, runs, measured, printed)
