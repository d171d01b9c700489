"""The picture of the partitions: their borders, what they cost, and among how many cells people hide."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.domains import GridDomain
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.pages.map_cells import arrange_cells
from sfumato.pages.pictures import BAR, FAINT, INK, MAP_SCALE, PALE, PROMISE_SCALE, WHISKER
from sfumato.paper.gowalla import draw_shares
from sfumato.paper.population import MapPopulation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from experiments.partitions import MeasuredPartition

__all__ = ["borders", "draw_figure"]

_COLOURS = {
    "none": FAINT,
    "tiles": INK,
    "hexagons": BAR,
    "towns apart": PROMISE_SCALE[1],
    "cities": WHISKER,
}
_MAPS = 4  # one of each kind, at the coarser level


def draw_figure(
    title: str,
    domain: GridDomain,
    population: MapPopulation,
    measured: Sequence["MeasuredPartition"],
) -> "Figure":
    """Draw four maps with borders above; errors, and errors against hiding, below."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(13.6, 6.6))
    canvas.suptitle(title, x=0.02, y=0.97, ha="left", fontsize=15, color=INK)
    above = canvas.add_gridspec(
        1, _MAPS, left=0.02, right=0.985, top=0.885, bottom=0.645, wspace=0.04
    )
    for place, one in enumerate(measured[1 : 1 + _MAPS]):
        axes = canvas.add_subplot(above[place])
        draw_shares(axes, domain, population.truth)
        _draw_borders(axes, domain, one.partition.block_of)
        colour = _COLOURS[one.partition.kind]
        axes.set_title(one.partition.name, loc="left", fontsize=9.5, color=colour)
    below = canvas.add_gridspec(1, 2, left=0.197, right=0.985, top=0.585, bottom=0.1, wspace=0.16)
    _draw_errors(canvas.add_subplot(below[0]), measured)
    _draw_hiding(canvas.add_subplot(below[1]), measured)
    canvas.text(0.02, 0.02, f"{population}. ε = 1 inside each block.", fontsize=9, color=FAINT)
    return canvas


def _draw_borders(axes: "Axes", grid: GridDomain, block_of: Symbols) -> None:
    """Draw a line wherever two neighbouring cells are in different blocks."""
    from matplotlib.collections import LineCollection

    cells = arrange_cells(grid, np.zeros(grid.size))
    west, _, south, _ = cells.extent
    segments = borders(block_of.reshape(grid.shape)) * cells.step + np.array([west, south])
    axes.add_collection(LineCollection(list(segments), colors=INK, linewidths=0.4))


def borders(blocks: Symbols) -> Floats:
    """Return the edges between cells of different blocks, each as two points (column, row).

    >>> borders(np.array([[0, 1], [0, 0]])).astype(int).tolist()
    [[[1, 0], [1, 1]], [[1, 1], [2, 1]]]
    """
    row, column = np.nonzero(blocks[:, 1:] != blocks[:, :-1])
    top = np.column_stack([column + 1, row])
    upright = np.stack([top, top + np.array([0, 1])], axis=1)
    row, column = np.nonzero(blocks[1:] != blocks[:-1])
    left = np.column_stack([column, row + 1])
    level = np.stack([left, left + np.array([1, 0])], axis=1)
    return np.concatenate([upright, level]).astype(np.float64)


def _draw_errors(axes: "Axes", measured: Sequence["MeasuredPartition"]) -> None:
    """Draw the paper's scheme as a pale bar, and the best here as a full one in front of it."""
    names = []
    for row, one in enumerate(measured):
        paper = one.errors.paper.mean
        best = one.errors.best.mean
        axes.barh(row, paper, height=0.66, color=PALE)
        axes.barh(row, best, height=0.66, color=_COLOURS[one.partition.kind])
        figures = f"{best:.3f}   ({paper:.3f})"
        axes.text(paper + 0.008, row, figures, va="center", fontsize=8.5, color=INK)
        blocks = one.hiding.blocks
        number = "1 block" if blocks == 1 else f"{blocks:,} blocks"
        names.append(f"{one.partition.name}: {number}")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.6)
    axes.set_xlim(0, max(one.errors.paper.mean for one in measured) * 1.3)
    axes.set_xticks([])
    title = "total variation error: the best here   (pale bar: the paper's scheme)"
    _style(axes, title, hidden=("top", "right", "bottom"))


def _draw_hiding(axes: "Axes", measured: Sequence["MeasuredPartition"]) -> None:
    """Draw error against the size of a typical person's block, both on logarithmic axes."""
    finer = {}
    for one in measured:
        x = one.hiding.typical
        paper = one.errors.paper.mean
        best = one.errors.best.mean
        colour = _COLOURS[one.partition.kind]
        axes.plot([x, x], [best, paper], color=PALE, linewidth=2, zorder=1)
        axes.plot([x], [paper], "o", markersize=6, markerfacecolor="white", color=colour)
        axes.plot([x], [best], "o", markersize=7, color=colour)
        finer[one.partition.kind] = (x, best)
    for kind, point in finer.items():
        _name_point(axes, point, kind)
    typical = [one.hiding.typical for one in measured]
    least = min(one.errors.best.mean for one in measured)
    axes.set(xscale="log", yscale="log")
    axes.set_xlim(min(typical) / 1.8, 1.8 * max(typical))
    axes.set_ylim(least / 1.5, None)
    words = "cells in a typical person's block: the further right, the better hidden"
    axes.set_xlabel(words, fontsize=9.5, color=INK)
    low, high = axes.get_ylim()
    ticks = [tick for tick in (0.02, 0.05, 0.1, 0.2, 0.5) if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    axes.set_xticks([1, 10, 100, 1000, 10000], ["1", "10", "100", "1,000", "10,000"])
    axes.minorticks_off()
    axes.grid(color=MAP_SCALE[0], linewidth=0.7)
    axes.set_axisbelow(True)
    title = "error against hiding   (filled: the best here; open: the paper's scheme)"
    _style(axes, title, hidden=("top", "right"))


def _name_point(axes: "Axes", point: tuple[float, float], kind: str) -> None:
    # Hexagons and tiles nearly coincide, so that their names must not.
    to_the_right = kind == "hexagons"
    axes.annotate(
        "no blocks" if kind == "none" else kind,
        point,
        (8, 2) if to_the_right else (0, -13),
        textcoords="offset points",
        ha="left" if to_the_right else "center",
        va="center",
        fontsize=9,
        color=_COLOURS[kind],
    )


def _style(axes: "Axes", title: str, hidden: tuple[str, ...]) -> None:
    axes.set_title(title, loc="left", fontsize=9.5, color=INK)
    axes.tick_params(length=0, labelsize=9)
    for side, spine in axes.spines.items():
        spine.set(color=FAINT, linewidth=0.8, visible=side not in hidden)
