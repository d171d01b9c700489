"""Table 1 and the heat map of the paper: check-ins on 125 × 350 cells, hidden within tiles.

The truth is the empirical distribution of the check-ins. People are the same in every run, and
only the randomiser is repeated. Each check-in is protected, not each person: a person with a
hundred check-ins sends a hundred reports.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sfumato.contexts import Blocks, Uniform
from sfumato.domains import GridDomain
from sfumato.domains.partitions import grid_tiles
from sfumato.foundation.arrays import Floats
from sfumato.pages.map_cells import arrange_cells
from sfumato.pages.pictures import BAR, FAINT, INK, WHISKER, draw_cells, hide_sides
from sfumato.paper.experiment import ExperimentResult, RunOptions
from sfumato.paper.population import MapPopulation, map_grid, map_population
from sfumato.paper.schemes import MapErrors, measure_contexts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = ["PAPER_TABLE", "PER_RECORD", "draw_shares", "gowalla"]

PAPER_TABLE: Mapping[str, tuple[tuple[int, int] | None, float]] = {
    "LDP": (None, 0.591),
    "(5,7)": ((5, 7), 0.298),
    "(25,35)": ((25, 35), 0.108),
    "(25,70)": ((25, 70), 0.082),
}
"""Tiles (rows, columns) and the paper's total variation error, by the name of the blocks."""

PER_RECORD = (
    "Privacy is per check-in, as in the paper: nothing is promised for all check-ins of one person "
    "together."
)

_BLOCKS = "Blocks (m1,m2) cut latitudes into m1 and longitudes into m2 equal parts. ε = 1."
_EPSILON = 1.0
_COLUMNS = ("blocks", "the paper", "the paper's scheme here", "the best here")

_TITLE = "The smaller the blocks, the sharper the map; better codes and decoders sharpen it again"
_MAPS = {"LDP": "without blocks (LDP)", "(25,35)": "with 875 blocks, (25,35)"}
_NUMBER_WIDTH = 0.11  # of a number on the axis of errors
# Every map has the same colour scale, from 10^-5.5 to 10^-2, so that you can compare maps.
_BOTTOM = -5.5
_TOP = -2.0


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
    results = measure_contexts(
        contexts,
        population.counts,
        runs,
        options.seed,
        on_progress=options.on_progress,
        workers=workers,
    )
    rows = []
    data = []
    for name, errors in results.items():
        paper_error = PAPER_TABLE[name][1]
        rows.append((name, paper_error, str(errors.paper), str(errors.best)))
        fields = {
            "blocks": name,
            "paper": paper_error,
            "hadamard_projection": errors.paper.in_json(),
            "best": errors.best.in_json(),
        }
        data.append(fields)
    return ExperimentResult(
        name="gowalla",
        title="The smaller the blocks, the sharper the map",
        summary=_summary(population, runs, results),
        columns=_COLUMNS,
        rows=tuple(rows),
        data=data,
        figure=lambda: _figure(population, runs, results),
        notes=(population.note, _BLOCKS, PER_RECORD),
    )


def _context(domain: GridDomain, tiles: tuple[int, int] | None) -> Uniform | Blocks:
    if tiles is None:
        return Uniform(domain, _EPSILON)
    return Blocks(grid_tiles(domain, *tiles), _EPSILON, domain=domain)


def _summary(population: MapPopulation, runs: int, results: Mapping[str, MapErrors]) -> str:
    without = results["LDP"]
    finest = results["(25,70)"]
    times = "once" if runs == 1 else f"{runs} times"
    return (
        f"{population}, randomised {times}. Total variation error of the paper's scheme: "
        f"{without.paper.mean:.3f} without blocks, {finest.paper.mean:.3f} with 1,750; of the best "
        f"here: {without.best.mean:.3f} and {finest.best.mean:.3f}."
    )


# --- the picture ----------------------------------------------------------------------------------


def _figure(population: MapPopulation, runs: int, results: Mapping[str, MapErrors]) -> "Figure":
    """Draw the truth and the errors on the left, and the maps of both schemes on the right."""
    from matplotlib.figure import Figure

    domain = map_grid()
    figure = Figure(figsize=(13.6, 6.3))
    panels = figure.subplots(2, 3)
    figure.subplots_adjust(
        left=0.045, right=0.988, top=0.875, bottom=0.125, wspace=0.06, hspace=0.17
    )
    figure.suptitle(_TITLE, x=0.02, y=0.97, ha="left", fontsize=15, color=INK)
    picture = draw_shares(panels[0, 0], domain, population.truth)
    _set_title(panels[0, 0], f"the truth: {population}")
    for row, (name, blocks) in enumerate(_MAPS.items()):
        errors = results[name]
        _, paper_axes, best_axes = panels[row]
        draw_shares(paper_axes, domain, errors.paper_map)
        _set_title(paper_axes, f"the paper's scheme, {blocks}: error {errors.paper.mean:.3f}")
        draw_shares(best_axes, domain, errors.best_map)
        _set_title(best_axes, f"the best here, {blocks}: error {errors.best.mean:.3f}")
    _draw_errors(panels[1, 0], results, runs)
    _draw_scale(figure, picture)
    return figure


def draw_shares(axes: "Axes", grid: GridDomain, shares: Floats) -> "AxesImage":
    """Colour cells by the logarithm of their shares. Cells below three millionths stay empty."""
    cells = arrange_cells(grid, shares)
    smallest = 10.0**_BOTTOM
    logs = np.log10(np.maximum(cells.shares, smallest))
    visible = np.where(cells.shares >= smallest, logs, np.nan)
    picture = draw_cells(axes, grid, cells, visible, (_BOTTOM, _TOP))
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color=FAINT, linewidth=0.5)
    return picture


def _draw_scale(figure: "Figure", picture: "AxesImage") -> None:
    axes = figure.add_axes((0.52, 0.062, 0.3, 0.018))
    bar = figure.colorbar(picture, cax=axes, orientation="horizontal")
    bar.set_ticks([-5, -4, -3, -2], labels=["0.001 %", "0.01 %", "0.1 %", "1 %"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=9)
    title = "share of people in a cell"
    figure.text(0.51, 0.071, title, ha="right", va="center", fontsize=9.5, color=FAINT)


def _set_title(axes: "Axes", title: str) -> None:
    axes.set_title(title, loc="left", fontsize=9.5, color=INK)


def _draw_errors(axes: "Axes", results: Mapping[str, MapErrors], runs: int) -> None:
    """Draw a row per kind of blocks: the error in the paper as a line, both schemes as bars."""
    for row, (name, errors) in enumerate(results.items()):
        line = PAPER_TABLE[name][1]
        paper = errors.paper.mean
        axes.plot([line, line], [row - 0.42, row], color=INK, linewidth=1.6)
        fits_before_line = line - paper > _NUMBER_WIDTH
        number_at = paper if fits_before_line else max(paper, line)
        _draw_bar(axes, row - 0.2, paper, WHISKER, number_at)
        _draw_bar(axes, row + 0.2, errors.best.mean, BAR, errors.best.mean)
    axes.text(0.01, -0.2, "the paper's scheme", va="center", fontsize=9, color="white")
    axes.text(0.01, 0.2, "the best here", va="center", fontsize=9, color="white")
    remark_at = max(PAPER_TABLE["(5,7)"][1], results["(5,7)"].paper.mean) + 0.12
    axes.text(
        remark_at, 0.8, "line: in the paper, on its data", va="center", fontsize=9, color=FAINT
    )
    axes.set_yticks(range(len(results)), list(results))
    axes.set_ylim(len(results) - 0.5, -0.55)
    axes.set_xlim(0, 0.95)
    axes.set_xticks([])
    axes.tick_params(length=0, labelsize=9)
    hide_sides(axes, "top", "right", "bottom")
    axes.spines["left"].set(color=FAINT, linewidth=0.8)
    repetitions = f"mean of {runs} runs" if runs > 1 else "one run"
    _set_title(axes, f"total variation error, {repetitions}")


def _draw_bar(axes: "Axes", row: float, length: float, colour: str, number_at: float) -> None:
    axes.barh(row, length, height=0.36, color=colour)
    axes.text(number_at + 0.012, row, f"{length:.3f}", va="center", fontsize=9, color=INK)
