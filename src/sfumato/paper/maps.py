"""Maps as matplotlib draws them: shares of people on a grid, and the borders of blocks."""

from typing import TYPE_CHECKING

import numpy as np

from sfumato.domains import GridDomain
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.pages.map_cells import arrange_cells, latitude_stretch
from sfumato.pages.style import BACKGROUND, FAINT, INK, MAP_SCALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

__all__ = ["borders", "draw_borders", "draw_shares"]

_BOTTOM, _TOP = -5.5, -2.0  # the same decades of colour on every map, so that maps can be compared


def draw_shares(axes: "Axes", grid: GridDomain, shares: Floats) -> "AxesImage":
    """The cells, coloured by the logarithm of their shares; a cell below three millionths stays empty."""
    from matplotlib.colors import LinearSegmentedColormap

    cells = arrange_cells(grid, shares)
    smallest = 10.0**_BOTTOM
    logs = np.log10(np.maximum(cells.shares, smallest))
    picture = axes.imshow(
        np.where(cells.shares >= smallest, logs, np.nan),
        origin="lower",
        extent=cells.extent,
        aspect=latitude_stretch(grid),
        cmap=LinearSegmentedColormap.from_list("map", MAP_SCALE),
        vmin=_BOTTOM,
        vmax=_TOP,
        interpolation="none",
    )
    axes.set_facecolor(BACKGROUND)
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color=FAINT, linewidth=0.5)
    return picture


def draw_borders(axes: "Axes", grid: GridDomain, block_of: Symbols, linewidth: float = 0.4) -> None:
    """A line wherever two neighbouring cells are in different blocks."""
    from matplotlib.collections import LineCollection

    cells = arrange_cells(grid, np.zeros(grid.size))
    west, _, south, _ = cells.extent
    segments = borders(block_of.reshape(grid.shape)) * cells.step + np.array([west, south])
    axes.add_collection(LineCollection(list(segments), colors=INK, linewidths=linewidth))


def borders(blocks: Symbols) -> Floats:
    """The edges between cells of different blocks, each as two points (column, row).

    >>> borders(np.array([[0, 1], [0, 0]])).astype(int).tolist()
    [[[1, 0], [1, 1]], [[1, 1], [2, 1]]]
    """
    row, column = np.nonzero(blocks[:, 1:] != blocks[:, :-1])
    upright = np.stack(
        [np.column_stack([column + 1, row]), np.column_stack([column + 1, row + 1])], axis=1
    )
    row, column = np.nonzero(blocks[1:] != blocks[:-1])
    level = np.stack(
        [np.column_stack([column, row + 1]), np.column_stack([column + 1, row + 1])], axis=1
    )
    return np.concatenate([upright, level]).astype(np.float64)
