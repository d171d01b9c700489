"""Partitions: from a domain to blocks. Each returns the block of every symbol, ready for ``Blocks``.

A symbol for ``other`` forms a block of its own: it says that somebody is elsewhere, and hides nobody.
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

_MILLIMETRE = 1.6e-10  # of the radius of the earth


def grid_tiles(grid: GridDomain, rows: int, columns: int) -> Symbols:
    """Cut a grid into ``rows × columns`` tiles as equal as possible (the paper's m₁ and m₂).

    >>> grid_tiles(GridDomain(0, 2, 0, 4, 1), rows=1, columns=2)
    array([0, 0, 1, 1, 0, 0, 1, 1])
    """
    across = _parts(grid.shape[0], rows, "rows"), _parts(grid.shape[1], columns, "columns")
    tiles = (across[0][:, None] * columns + across[1][None, :]).ravel()
    return _with_other(tiles, grid.size)


def h3_parents(domain: H3Domain, resolution: int) -> Symbols:
    """The parent of a coarser resolution as the block of each cell."""
    _, blocks = np.unique(domain.parents(resolution), return_inverse=True)
    return _with_other(blocks.astype(np.int64), domain.size)


def nearest_places(
    domain: GridDomain | H3Domain, latitudes: ArrayLike, longitudes: ArrayLike
) -> Symbols:
    """Blocks around places: each cell belongs to the place that is nearest to its centre, on the globe.

    Of places at the same distance the first one counts. Cities make blocks that follow where people live, which
    the paper's conclusion asks for.

    >>> nearest_places(GridDomain(0, 1, 0, 4, 1), [0.5, 0.5], [0.0, 4.0])
    array([0, 0, 1, 1])
    """
    from scipy.spatial import cKDTree

    try:
        latitude, longitude = coordinates(latitudes), coordinates(longitudes)
    except InvalidSymbols:
        raise InvalidContext(
            "places must be pairs of latitude and longitude, in degrees."
        ) from None
    if latitude.shape != longitude.shape or latitude.ndim != 1 or latitude.size == 0:
        raise InvalidContext(
            "places must be pairs of latitude and longitude: two rows of equal length."
        )
    if not ((np.abs(latitude) <= 90) & (np.abs(longitude) <= 360)).all():  # false for NaN
        raise InvalidContext(
            "places must be pairs of latitude and longitude within ±90 and ±360 degrees."
        )
    places, cells = _on_the_globe(latitude, longitude), _on_the_globe(*domain.centres())
    tree = cKDTree(places)
    found: Any = tree.query(cells, k=[1, 2])
    distances, nearest = found[0], found[1][:, 0].astype(np.int64)
    # Rounding must not decide between places at the same distance: the first of those within a millimetre counts.
    for cell in np.flatnonzero(distances[:, 1] - distances[:, 0] < _MILLIMETRE).tolist():
        nearest[cell] = min(tree.query_ball_point(cells[cell], distances[cell, 0] + _MILLIMETRE))
    return _with_other(nearest, domain.size)


def _parts(length: int, parts: int, name: str) -> Symbols:
    if isinstance(parts, bool) or not isinstance(parts, int) or not 1 <= parts <= length:
        raise InvalidContext(f"{name} must be a whole number from 1 to {length}; found {parts!r}.")
    return np.arange(length) * parts // length


def _on_the_globe(latitudes: Floats, longitudes: Floats) -> Floats:
    """Points of the unit sphere: nearer in space is nearer on the ground."""
    phi, theta = latitudes * (math.pi / 180), longitudes * (math.pi / 180)
    return np.column_stack([np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)])


def _with_other(blocks: Symbols, size: int) -> Symbols:
    extra = np.full(size - blocks.size, blocks.max() + 1, dtype=np.int64)
    return np.concatenate([blocks.astype(np.int64), extra])
