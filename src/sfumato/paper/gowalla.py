"""Reproduce Table 1 and the heat map of Acharya et al. (2020), "the paper".

The map has 125 × 350 cells, divided into rectangular tiles, and a check-in is protected within its
tile. The truth is the empirical distribution of the check-ins. All runs use the same check-ins;
only the randomization differs. Privacy is per check-in, not per person: a person with a hundred
check-ins sends a hundred reports.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sfumato.contexts import Blocks, Uniform
from sfumato.domains import GridDomain
from sfumato.domains.partitions import grid_tiles
from sfumato.estimation.map_cells import arrange_cells
from sfumato.foundation.arrays import Floats
from sfumato.paper.experiment import ExperimentResult, RunOptions
from sfumato.paper.pictures import BAR, FAINT, INK, WHISKER, draw_cells, hide_sides
from sfumato.paper.population import MapPopulation, map_grid, map_population
from sfumato.paper.schemes import MapResult, measure_contexts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = ["PAPER_TABLE", "PER_CHECKIN_NOTE", "draw_shares", "gowalla"]

PAPER_TABLE: Mapping[str, tuple[tuple[int, int] | None, float]] = {
    "LDP": (None, 0.591),
    "(5,7)": ((5, 7), 0.298),
    "(25,35)": ((25, 35), 0.108),
    "(25,70)": ((25, 70), 0.082),
}
"""The rows of the paper's table: the number of tiles (down, across), if any, and the error."""

PER_CHECKIN_NOTE = (
    "Privacy is per check-in, as in the paper: there is no promise that covers all of one person's "
    "check-ins together."
)

_BLOCKS_NOTE = (
    "Blocks (m1,m2) divide the latitudes into m1 and the longitudes into m2 equal parts. ε = 1."
)
_EPSILON = 1.0
_COLUMNS = ("blocks", "the paper", "the paper's scheme here", "the best here")

_TITLE = "The smaller the blocks, the sharper the map; better codes and decoders sharpen it further"
_MAP_TITLES = {"LDP": "without blocks (LDP)", "(25,35)": "with 875 blocks, (25,35)"}
_NUMBER_WIDTH = 0.11  # width of a printed number, in units of the error axis
# All maps share one colour scale, from 10^-5.5 to 10^-2, so that they can be compared.
_MIN_LOG_SHARE = -5.5
_MAX_LOG_SHARE = -2.0


def gowalla(
    options: RunOptions,
    *,
    checkins: str | None = None,
    grid: str | None = None,
    workers: int | None = None,
) -> ExperimentResult:
    """Reproduce the paper's table of errors on check-ins, and draw some of the estimated maps.

    ``checkins``: SNAP's loc-gowalla_totalCheckins.txt.gz. ``grid``: a table of counts with columns
    row, column and count, where row 0 starts at 25N and column 0 at 130W. By default, people are
    simulated from the populations of places.
    """
    population = map_population(checkins, grid, options.on_progress)
    domain = map_grid()
    options.on_progress(f"{population} on {domain.cell_count:,} cells")
    contexts = {}
    for name, (tile_counts, _) in PAPER_TABLE.items():
        contexts[name] = _create_context(domain, tile_counts)
    runs = options.run_count(full=100, quick=3)
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
    for name, result in results.items():
        published_error = PAPER_TABLE[name][1]
        rows.append((name, published_error, str(result.paper_error), str(result.best_error)))
        fields = {
            "blocks": name,
            "paper": published_error,
            "hadamard_projection": result.paper_error.to_dict(),
            "best": result.best_error.to_dict(),
        }
        data.append(fields)
    return ExperimentResult(
        name="gowalla",
        title="The smaller the blocks, the sharper the map",
        summary=_summarize(population, runs, results),
        columns=_COLUMNS,
        rows=tuple(rows),
        data=data,
        draw_figure=lambda: _draw_figure(population, runs, results),
        notes=(population.note, _BLOCKS_NOTE, PER_CHECKIN_NOTE),
    )


def _create_context(domain: GridDomain, tile_counts: tuple[int, int] | None) -> Uniform | Blocks:
    if tile_counts is None:
        return Uniform(domain, _EPSILON)
    return Blocks(grid_tiles(domain, *tile_counts), _EPSILON, domain=domain)


def _summarize(population: MapPopulation, runs: int, results: Mapping[str, MapResult]) -> str:
    without_blocks = results["LDP"]
    with_blocks = results["(25,70)"]
    times = "once" if runs == 1 else f"{runs} times"
    return (
        f"{population}, randomized {times}. Total variation error of the paper's scheme: "
        f"{without_blocks.paper_error.mean:.3f} without blocks, "
        f"{with_blocks.paper_error.mean:.3f} with 1,750 blocks; of Sfumato's best: "
        f"{without_blocks.best_error.mean:.3f} and {with_blocks.best_error.mean:.3f}."
    )


# --- the figure -----------------------------------------------------------------------------------


def _draw_figure(
    population: MapPopulation, runs: int, results: Mapping[str, MapResult]
) -> "Figure":
    """Draw the truth and the errors on the left, and both schemes' maps on the right."""
    from matplotlib.figure import Figure

    domain = map_grid()
    figure = Figure(figsize=(13.6, 6.3))
    panels = figure.subplots(2, 3)
    figure.subplots_adjust(
        left=0.045, right=0.988, top=0.875, bottom=0.125, wspace=0.06, hspace=0.17
    )
    figure.suptitle(_TITLE, x=0.02, y=0.97, ha="left", fontsize=15, color=INK)
    image = draw_shares(panels[0, 0], domain, population.true_shares)
    _set_title(panels[0, 0], f"the truth: {population}")
    for row, (name, map_title) in enumerate(_MAP_TITLES.items()):
        result = results[name]
        paper_error = f"error {result.paper_error.mean:.3f}"
        best_error = f"error {result.best_error.mean:.3f}"
        _, paper_axes, best_axes = panels[row]
        draw_shares(paper_axes, domain, result.paper_map)
        _set_title(paper_axes, f"the paper's scheme, {map_title}: {paper_error}")
        draw_shares(best_axes, domain, result.best_map)
        _set_title(best_axes, f"Sfumato's best, {map_title}: {best_error}")
    _draw_errors(panels[1, 0], results, runs)
    _draw_colour_bar(figure, image)
    return figure


def draw_shares(axes: "Axes", grid: GridDomain, shares: Floats) -> "AxesImage":
    """Colour cells by the logarithm of their share, leaving cells below 10^-5.5 blank."""
    cells = arrange_cells(grid, shares)
    min_share = 10.0**_MIN_LOG_SHARE
    logs = np.log10(np.maximum(cells.shares, min_share))
    visible_logs = np.where(cells.shares >= min_share, logs, np.nan)
    image = draw_cells(axes, cells, visible_logs, (_MIN_LOG_SHARE, _MAX_LOG_SHARE))
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color=FAINT, linewidth=0.5)
    return image


def _draw_colour_bar(figure: "Figure", image: "AxesImage") -> None:
    axes = figure.add_axes((0.52, 0.062, 0.3, 0.018))
    bar = figure.colorbar(image, cax=axes, orientation="horizontal")
    bar.set_ticks([-5, -4, -3, -2], labels=["0.001%", "0.01%", "0.1%", "1%"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=9)
    title = "share of people in a cell"
    figure.text(0.51, 0.071, title, ha="right", va="center", fontsize=9.5, color=FAINT)


def _set_title(axes: "Axes", title: str) -> None:
    axes.set_title(title, loc="left", fontsize=9.5, color=INK)


def _draw_errors(axes: "Axes", results: Mapping[str, MapResult], runs: int) -> None:
    """Draw a row for each context: the published error as a line, the measured errors as bars.

    The upper bar is for the paper's scheme and the lower bar is for Sfumato's best.
    """
    for row, (name, result) in enumerate(results.items()):
        published_error = PAPER_TABLE[name][1]
        paper_error = result.paper_error.mean
        best_error = result.best_error.mean
        line_x = [published_error, published_error]
        axes.plot(line_x, [row - 0.42, row], color=INK, linewidth=1.6)
        fits_left_of_line = published_error - paper_error > _NUMBER_WIDTH
        number_x = paper_error if fits_left_of_line else max(paper_error, published_error)
        _draw_bar(axes, row - 0.2, paper_error, WHISKER, number_x)
        _draw_bar(axes, row + 0.2, best_error, BAR, best_error)
    axes.text(0.01, -0.2, "the paper's scheme", va="center", fontsize=9, color="white")
    axes.text(0.01, 0.2, "Sfumato's best", va="center", fontsize=9, color="white")
    remark_x = max(PAPER_TABLE["(5,7)"][1], results["(5,7)"].paper_error.mean) + 0.12
    axes.text(
        remark_x, 0.8, "line: published, for the paper's data", va="center", fontsize=9, color=FAINT
    )
    axes.set_yticks(range(len(results)), list(results))
    axes.set_ylim(len(results) - 0.5, -0.55)
    axes.set_xlim(0, 0.95)
    axes.set_xticks([])
    axes.tick_params(length=0, labelsize=9)
    hide_sides(axes, "top", "right", "bottom")
    axes.spines["left"].set(color=FAINT, linewidth=0.8)
    runs_text = f"mean of {runs} runs" if runs > 1 else "one run"
    _set_title(axes, f"total variation error, {runs_text}")


def _draw_bar(axes: "Axes", y: float, length: float, colour: str, number_x: float) -> None:
    axes.barh(y, length, height=0.36, color=colour)
    axes.text(number_x + 0.012, y, f"{length:.3f}", va="center", fontsize=9, color=INK)
