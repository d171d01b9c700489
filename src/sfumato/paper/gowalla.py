"""Table 1 and the heat map of the paper: check-ins on a map of 125 × 350 cells, hidden within larger and smaller tiles.

The truth is the empirical distribution of the check-ins; people are the same in every run, and only the randomiser is
repeated. What is protected is one check-in, not one person: somebody with a hundred check-ins sends a hundred reports.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfumato.contexts import Blocks, Uniform
from sfumato.domains import GridDomain
from sfumato.domains.partitions import grid_tiles
from sfumato.paper.checkins import Crowd, crowd_of, map_grid
from sfumato.paper.experiment import ExperimentResult, RunOptions
from sfumato.paper.repeats import Repeated, repeated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PAPERS_TABLE", "PER_RECORD", "gowalla"]

PAPERS_TABLE: Mapping[str, tuple[tuple[int, int] | None, float]] = {
    "LDP": (None, 0.591),
    "(5,7)": ((5, 7), 0.298),
    "(25,35)": ((25, 35), 0.108),
    "(25,70)": ((25, 70), 0.082),
}
"""For each name of blocks the tiles (rows, columns), and the paper's error in total variation."""

PER_RECORD = "Privacy is per check-in, as in the paper: nothing is promised for all check-ins of one person together."

_EPSILON = 1.0
_COLUMNS = ("blocks", "the paper", "the paper's scheme here", "the best here")


def gowalla(
    options: RunOptions,
    *,
    checkins: str | None = None,
    grid: str | None = None,
    workers: int | None = None,
) -> ExperimentResult:
    """The paper's table of errors on check-ins, and the map that each scheme sees.

    ``checkins`` is SNAP's loc-gowalla_totalCheckins.txt.gz; ``grid`` a table of counts with columns row, column and
    count, row 0 from 25N and column 0 from 130W. With neither, people are made up from the population of places.
    """
    crowd, domain = crowd_of(checkins, grid, options.on_progress), map_grid()
    options.on_progress(f"{crowd} on {domain.cells:,} cells")
    contexts = {name: _context(domain, tiles) for name, (tiles, _) in PAPERS_TABLE.items()}
    runs = options.repetitions(full=100, quick=3)
    found = repeated(
        contexts, crowd.counts, runs, options.seed, on_progress=options.on_progress, workers=workers
    )
    return ExperimentResult(
        name="gowalla",
        title="The smaller the blocks, the sharper the map",
        summary=_summary(crowd, runs, found),
        columns=_COLUMNS,
        rows=tuple(
            (name, PAPERS_TABLE[name][1], str(each.paper), str(each.best))
            for name, each in found.items()
        ),
        data=[
            {
                "blocks": name,
                "paper": PAPERS_TABLE[name][1],
                "hadamard_projection": each.paper.in_json(),
                "best": each.best.in_json(),
            }
            for name, each in found.items()
        ],
        figure=lambda: _figure(domain, crowd, runs, found),
        notes=(
            crowd.note,
            "Blocks (m1,m2) cut latitudes into m1 and longitudes into m2 equal parts. ε = 1.",
            PER_RECORD,
        ),
    )


def _context(domain: GridDomain, tiles: tuple[int, int] | None) -> Uniform | Blocks:
    return (
        Uniform(domain, _EPSILON)
        if tiles is None
        else Blocks(grid_tiles(domain, *tiles), _EPSILON, domain=domain)
    )


def _summary(crowd: Crowd, runs: int, found: Mapping[str, Repeated]) -> str:
    first, last = found["LDP"], found["(25,70)"]
    again = "once" if runs == 1 else f"{runs} times"
    return (
        f"{crowd}, randomised {again}. Total variation error of the paper's scheme: {first.paper.mean:.3f} "
        f"without blocks, {last.paper.mean:.3f} with 1,750; of the best here: {first.best.mean:.3f} and "
        f"{last.best.mean:.3f}."
    )


def _figure(domain: GridDomain, crowd: Crowd, runs: int, found: Mapping[str, Repeated]) -> "Figure":
    from sfumato.paper.gowalla_figure import drawn_maps

    return drawn_maps(
        domain, crowd, runs, found, {name: error for name, (_, error) in PAPERS_TABLE.items()}
    )
