"""The report page's pictures as PNG files, drawn by matplotlib. Needs the ``charts`` extra."""

import os
from typing import TYPE_CHECKING

import numpy as np

from sfumato.domains import GridDomain
from sfumato.estimation import Estimate
from sfumato.foundation.arrays import Floats
from sfumato.foundation.files import write_atomically
from sfumato.pages.map_cells import arrange_cells, decade_ticks, latitude_stretch, log_shares
from sfumato.pages.pictures import (
    colour_map,
    figure_png,
    hide_sides,
    plain_label,
    require_matplotlib,
)
from sfumato.pages.style import BACKGROUND, BAR, FAINT, MAP_SCALE, WHISKER
from sfumato.pages.top_answers import MAX_BARS, TopAnswers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["save_png"]

_WIDTH = 8.0  # inches
_BAR_HEIGHT = 0.26


def save_png(
    estimate: Estimate, path: str | os.PathLike[str], grid: GridDomain | None = None
) -> None:
    """Write the bars, or the map if there is a grid, as a PNG file. The write is atomic."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, 1.5 + _height(estimate, grid)), layout="constrained")
    axes = figure.add_subplot()
    if grid is None:
        _draw_bars(axes, estimate)
    else:
        _draw_map(axes, grid, estimate.frequencies)
    hide_sides(axes, "top", "right")
    axes.set_title(f"{estimate.reports:,} reports", loc="left", fontsize=10, color=FAINT)
    write_atomically(path, figure_png(figure))


def _height(estimate: Estimate, grid: GridDomain | None) -> float:
    if grid is None:
        return _BAR_HEIGHT * min(len(estimate.labels), MAX_BARS)
    rows, columns = grid.shape
    height = 7.5 * latitude_stretch(grid) * rows / columns
    return min(max(height, 1.5), 12)


def _draw_bars(axes: "Axes", estimate: Estimate) -> None:
    answers = TopAnswers.of(estimate, MAX_BARS)
    rows = np.arange(len(answers.labels))
    middle = answers.middle
    axes.barh(rows, 100 * answers.decoded, height=0.65, color=BAR, label="decoded picture")
    axes.errorbar(
        100 * middle,
        rows,
        xerr=100 * np.vstack([middle - answers.low, answers.high - middle]),
        fmt="D",
        ms=3,
        lw=1.2,
        capsize=2.5,
        color=WHISKER,
        label="unbiased estimate, 95 % interval",
    )
    axes.set_yticks(rows, [plain_label(label) for label in answers.labels])
    axes.set_ylim(rows.size - 0.4, -0.6)
    axes.set_xlim(0, None)
    axes.set_xlabel("share of people, %")
    axes.legend(loc="lower right", frameon=False, fontsize=9)


def _draw_map(axes: "Axes", grid: GridDomain, frequencies: Floats) -> None:
    cells = arrange_cells(grid, frequencies)
    logs, bottom, top = log_shares(cells.shares)
    picture = axes.imshow(
        logs,
        origin="lower",
        extent=cells.extent,
        aspect=latitude_stretch(grid),
        cmap=colour_map(MAP_SCALE),
        vmin=bottom,
        vmax=top,
        interpolation="none",
    )
    axes.set_facecolor(BACKGROUND)
    ticks = decade_ticks(bottom, top)
    bar = axes.figure.colorbar(
        picture, ax=axes, orientation="horizontal", shrink=0.5, aspect=40, ticks=ticks
    )
    bar.ax.set_xticklabels([f"{100 * 10.0**tick:.2g} %" for tick in ticks])
    bar.set_label("share of people, logarithmic")
    bar.outline.set_visible(False)
