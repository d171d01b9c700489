"""Partition a domain into blocks: each function returns the block of every symbol, for ``Blocks``.

The label ``other`` only means that a person is elsewhere, so its symbol gets its own block. "The
paper" is Acharya et al. (2020).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domains.grid import GridDomain, coordinates
from sfumato.domains.h3_cells import H3Domain
from sfumato.errors import InvalidContext, InvalidSymbols
from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["grid_tiles", "h3_parents", "nearest_places"]

_MILLIMETRE = 1.6e-10  # relative to the radius of the earth


def grid_tiles(grid: GridDomain, rows: int, columns: int) -> Symbols:
    """Return the block of every symbol, with ``rows × columns`` tiles of nearly equal size.

    These are the m₁ × m₂ blocks of the paper.

    >>> grid_tiles(GridDomain(0, 2, 0, 4, 1), rows=1, columns=2)
    array([0, 0, 1, 1, 0, 0, 1, 1])
    """
    tile_rows = _split_evenly(grid.shape[0], rows, "rows")
    tile_columns = _split_evenly(grid.shape[1], columns, "columns")
    tiles = tile_rows[:, None] * columns + tile_columns[None, :]
    return _with_other(tiles.ravel(), grid.size)


def h3_parents(domain: H3Domain, resolution: int) -> Symbols:
    """Return the block of every symbol; cells with the same parent are in the same block.

    ``resolution`` is the parents' resolution, which must be coarser than that of the cells.
    """
    _, blocks = np.unique(domain.parents(resolution), return_inverse=True)
    return _with_other(blocks, domain.size)


def nearest_places(
    domain: GridDomain | H3Domain, latitudes: ArrayLike, longitudes: ArrayLike
) -> Symbols:
    """Return the block of every symbol; each cell belongs to the place nearest to its centre.

    Distances are measured on the globe, and ties go to the first place. If the places are cities,
    the blocks reflect where people live, as the paper's conclusion suggests.

    >>> nearest_places(GridDomain(0, 1, 0, 4, 1), [0.5, 0.5], [0.0, 4.0])
    array([0, 0, 1, 1])
    """
    from scipy.spatial import cKDTree

    try:
        latitude = coordinates(latitudes)
        longitude = coordinates(longitudes)
    except InvalidSymbols:
        raise InvalidContext(
            "latitudes and longitudes must be sequences of numbers, in degrees."
        ) from None
    if latitude.shape != longitude.shape or latitude.ndim != 1 or latitude.size == 0:
        raise InvalidContext(
            "latitudes and longitudes must be two non-empty sequences of equal length."
        )
    if not ((np.abs(latitude) <= 90) & (np.abs(longitude) <= 360)).all():  # false for NaN
        raise InvalidContext(
            "latitudes must be within ±90 degrees, and longitudes within ±360 degrees."
        )
    centres = _unit_vectors(*domain.centres())
    tree = cKDTree(_unit_vectors(latitude, longitude))
    result: Any = tree.query(centres, k=[1, 2])
    distances, places = result
    nearest = places[:, 0].astype(np.int64)
    # Rounding must not decide between places at the same distance. So if distances differ by less
    # than a millimetre, choose the place that comes first.
    is_tie = distances[:, 1] - distances[:, 0] < _MILLIMETRE
    for cell in np.flatnonzero(is_tie).tolist():
        nearest[cell] = min(tree.query_ball_point(centres[cell], distances[cell, 0] + _MILLIMETRE))
    return _with_other(nearest, domain.size)


def _split_evenly(length: int, part_count: int, name: str) -> Symbols:
    """Divide ``length`` cells into parts of nearly equal size; return the part of each cell."""
    is_integer = isinstance(part_count, int) and not isinstance(part_count, bool)
    if not is_integer or not 1 <= part_count <= length:
        raise InvalidContext(f"{name} must be an integer from 1 to {length}; got {part_count!r}.")
    return np.arange(length) * part_count // length


def _unit_vectors(latitudes: Floats, longitudes: Floats) -> Floats:
    """Return points on the unit sphere. Their straight-line distances grow with ground distance."""
    phi = latitudes * (math.pi / 180)
    theta = longitudes * (math.pi / 180)
    x = np.cos(phi) * np.cos(theta)
    y = np.cos(phi) * np.sin(theta)
    return np.column_stack([x, y, np.sin(phi)])


def _with_other(blocks: Symbols, size: int) -> Symbols:
    """Return the blocks, with an extra block for ``other`` if the domain has such a symbol."""
    other_block = np.full(size - blocks.size, blocks.max() + 1, dtype=np.int64)
    return np.concatenate([blocks.astype(np.int64), other_block])
