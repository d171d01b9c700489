"""The same pictures as PNG files, drawn by matplotlib. Needs the ``charts`` extra."""

import os
from typing import TYPE_CHECKING

import numpy as np

from sfumato.domains import GridDomain
from sfumato.errors import MissingExtra
from sfumato.estimation import Estimate
from sfumato.foundation.arrays import Floats
from sfumato.foundation.files import atomic_file
from sfumato.pages.map_cells import cells_to_draw, decades_of, logarithms, stretch_of
from sfumato.pages.style import (
    BAR,
    FAINT,
    FREE,
    LONGEST_LABEL,
    MAPPED,
    MOST_BARS,
    WHISKER,
    most_frequent,
    short_label,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["save_png"]


def save_png(
    estimate: Estimate, path: str | os.PathLike[str], grid: GridDomain | None = None
) -> None:
    """Write the bars, or with a grid the map, as a PNG; whole or not at all."""
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise MissingExtra("a PNG needs matplotlib: pip install 'sfumato[charts]'") from None
    height = 0.26 * min(len(estimate.labels), MOST_BARS)
    if grid is not None:
        height = min(max(7.5 * stretch_of(grid) * grid.shape[0] / grid.shape[1], 1.5), 12)
    canvas = Canvas(figsize=(8.0, 1.5 + height), layout="constrained")
    axes = canvas.add_subplot()
    if grid is None:
        _draw_bars(axes, estimate)
    else:
        _draw_map(axes, grid, estimate.frequencies)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_title(f"{estimate.reports:,} reports", loc="left", fontsize=10, color=FAINT)
    with atomic_file(path) as file:
        canvas.savefig(file, format="png", dpi=160)


def _draw_bars(axes: "Axes", estimate: Estimate) -> None:
    shown = most_frequent(estimate, MOST_BARS)
    low, high = (100 * bound[shown] for bound in estimate.interval(0.95))
    middle = np.clip(100 * estimate.unbiased[shown], low, high)
    rows = np.arange(shown.size)
    axes.barh(
        rows, 100 * estimate.frequencies[shown], height=0.65, color=BAR, label="decoded picture"
    )
    named = "unbiased estimate, 95 % interval"
    reach = np.vstack([middle - low, high - middle])
    axes.errorbar(
        middle, rows, xerr=reach, fmt="D", ms=3, lw=1.2, capsize=2.5, color=WHISKER, label=named
    )
    # A dollar sign in a label is a dollar sign, not mathematics.
    names = [short_label(estimate.labels[int(x)], LONGEST_LABEL).replace("$", r"\$") for x in shown]
    axes.set_yticks(rows, names)
    axes.set_ylim(shown.size - 0.4, -0.6)
    axes.set_xlim(0, None)
    axes.set_xlabel("share of people, %")
    axes.legend(loc="lower right", frameon=False, fontsize=9)


def _draw_map(axes: "Axes", grid: GridDomain, frequencies: Floats) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shares, rows, columns, step = cells_to_draw(grid, frequencies)
    z, bottom, top = logarithms(shares)
    west, south = float(columns[0]), float(rows[0])
    edges = (west, west + len(columns) * step, south, south + len(rows) * step)
    colours = LinearSegmentedColormap.from_list("map", MAPPED)
    picture = axes.imshow(
        z,
        origin="lower",
        extent=edges,
        aspect=stretch_of(grid),
        cmap=colours,
        vmin=bottom,
        vmax=top,
        interpolation="none",
    )
    axes.set_facecolor(FREE)
    decades = decades_of(bottom, top)
    bar = axes.figure.colorbar(
        picture, ax=axes, orientation="horizontal", shrink=0.5, aspect=40, ticks=decades
    )
    bar.ax.set_xticklabels([f"{100 * 10.0**decade:.2g} %" for decade in decades])
    bar.set_label("share of people, logarithmic")
    bar.outline.set_visible(False)
