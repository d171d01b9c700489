"""The cells of a map: what is drawn of a grid, in which range of colours and how far stretched."""

import math
from typing import cast

import numpy as np

from sfumato.domains import GridDomain
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats

__all__ = ["cells_to_draw", "decades_of", "logarithms", "stretch_of"]

_MOST_CELLS = 100_000  # larger maps are drawn with cells added up, so that a page stays below 6 MB
_SPAN = 4.0  # decades of colour


def cells_to_draw(
    grid: GridDomain, frequencies: Floats
) -> tuple[Floats, list[str], list[str], float]:
    """Shares as rows × columns, the corners' latitudes and longitudes as text, and the size of a drawn cell."""
    height, width = grid.shape
    if len(frequencies) != grid.size:
        raise InvalidContext(f"frequencies must have an entry per symbol of the grid, {grid.size}.")
    shares = np.asarray(frequencies, dtype=np.float64)[: grid.cells].reshape(grid.shape)
    n = math.ceil(math.sqrt(grid.cells / _MOST_CELLS))
    shares = np.add.reduceat(
        np.add.reduceat(shares, np.arange(0, height, n)), np.arange(0, width, n), axis=1
    )
    rows = [grid.corner(row * width).split(",")[0] for row in range(0, height, n)]
    columns = [grid.corner(column).split(",")[1] for column in range(0, width, n)]
    return shares, rows, columns, n * _edge(grid, "step")


def logarithms(shares: Floats) -> tuple[Floats, float, float]:
    """log10 of what is above nought, and the range of colours: four decades below the largest share at most."""
    with np.errstate(divide="ignore"):
        z = np.where(shares > 0, np.log10(np.maximum(shares, 0)), np.nan)
    if not (shares > 0).any():
        return z, -1.0, 0.0
    top = float(np.nanmax(z))
    return z, max(float(np.nanmin(z)), top - _SPAN) if np.nanmin(z) < top else top - 1, top


def decades_of(bottom: float, top: float) -> list[float]:
    """The powers of ten that a scale is marked with; its ends where there are fewer than two."""
    whole = list(range(math.ceil(bottom), math.floor(top) + 1))
    return [float(decade) for decade in whole] if len(whole) > 1 else [bottom, top]


def stretch_of(grid: GridDomain) -> float:
    """How much longer a degree of latitude is than one of longitude in the middle of the grid; at most 3."""
    middle = (_edge(grid, "south") + _edge(grid, "north")) / 2
    return 1 / max(math.cos(math.radians(middle)), 1 / 3)


def _edge(grid: GridDomain, name: str) -> float:
    return float(cast("dict[str, str]", grid.record())[name])
