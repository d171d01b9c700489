"""The cells of a map: their shares and their corners."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.domains import GridDomain
from sfumato.errors import InvalidArgument
from sfumato.foundation.arrays import Floats

_MAX_CELLS = 100_000  # in larger maps, cells are merged to keep pages small


@dataclass(frozen=True, eq=False)
class MapCells:
    """The cells to draw: their shares, south-western corners, and size in degrees."""

    shares: Floats
    latitudes: list[str]
    longitudes: list[str]
    step: float

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """The edges of the map in degrees: west, east, south, north."""
        west = float(self.longitudes[0])
        south = float(self.latitudes[0])
        east = west + len(self.longitudes) * self.step
        north = south + len(self.latitudes) * self.step
        return west, east, south, north


def arrange_cells(grid: GridDomain, frequencies: Floats) -> MapCells:
    """Arrange frequencies in rows and columns, merging neighbouring cells if there are too many."""
    if len(frequencies) != grid.size:
        raise InvalidArgument(
            f"frequencies must have {grid.size} entries, one for each symbol of the grid; "
            f"got {len(frequencies)}."
        )
    height, width = grid.shape
    merge_factor = math.ceil(math.sqrt(grid.cell_count / _MAX_CELLS))
    rows = range(0, height, merge_factor)
    columns = range(0, width, merge_factor)
    shares = np.asarray(frequencies, dtype=np.float64)[: grid.cell_count].reshape(grid.shape)
    shares = np.add.reduceat(shares, np.array(rows), axis=0)
    shares = np.add.reduceat(shares, np.array(columns), axis=1)
    latitudes = [grid.corner(row * width).split(",")[0] for row in rows]
    longitudes = [grid.corner(column).split(",")[1] for column in columns]
    return MapCells(shares, latitudes, longitudes, merge_factor * _grid_value(grid, "step"))


def _grid_value(grid: GridDomain, field: str) -> float:
    return float(str(grid.to_record()[field]))
