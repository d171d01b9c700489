"""Domains of H3 cells: hexagons of similar size, whose parent cells can serve as blocks.

Requires the ``geo`` extra.
"""

import math
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domains.domain import Domain, Label, unknown_value_error
from sfumato.domains.grid import coordinates
from sfumato.domains.layout import Scattered
from sfumato.errors import InvalidContext, InvalidSymbols, MissingExtra
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Json, require_fields
from sfumato.foundation.installation import install_hint

__all__ = ["H3Domain"]

_MAX_CELLS = 2_000_000


class H3Domain(Domain):
    """A domain of H3 cells with the same resolution.

    ``symbols`` accepts cell indices as text; ``symbols_at`` accepts positions.

    >>> manhattan = H3Domain.box(7, south=40.70, north=40.82, west=-74.02, east=-73.92)
    >>> manhattan.size, manhattan.labels[0]
    (24, '872a10088ffffff')
    """

    kind = "h3"
    resolution: int
    """The resolution of the cells, from 0 (about 4 million km²) to 15 (about a square metre)."""

    def __init__(self, cells: Iterable[str], *, other: Label | None = None) -> None:
        super().__init__(cells, other=other)
        h3 = _import_h3()
        if self.other is not None and self.other != self.labels[-1]:
            raise InvalidContext("other must not be one of the cells. Choose a different label.")
        self._cells: list[str] = []
        for label in self.labels if self.other is None else self.labels[:-1]:
            if not isinstance(label, str) or not h3.is_valid_cell(label):
                raise InvalidContext(f"cells must be H3 indices as text; {label!r} is not one.")
            self._cells.append(label)
        resolutions = {h3.get_resolution(cell) for cell in self._cells}
        if len(resolutions) != 1:
            raise InvalidContext(
                f"cells must all have the same resolution; got {sorted(resolutions)}."
            )
        self.resolution = resolutions.pop()

    @classmethod
    def box(
        cls,
        resolution: int,
        *,
        south: float,
        north: float,
        west: float,
        east: float,
        other: Label | None = None,
    ) -> "H3Domain":
        """Return the domain of all cells whose centre is inside a box of coordinates in degrees."""
        h3 = _import_h3()
        if not 0 <= resolution <= 15:
            raise InvalidContext(f"resolution must be between 0 and 15; got {resolution}.")
        if not (-90 <= south < north <= 90 and -180 <= west < east <= 180):
            raise InvalidContext(
                "south must be below north, both within ±90 degrees, and west below east, both "
                "within ±180 degrees."
            )
        # The area of the box as a share of the globe's surface.
        height = math.sin(math.radians(north)) - math.sin(math.radians(south))
        area_share = height / 2 * (east - west) / 360
        if area_share * h3.get_num_cells(resolution) > _MAX_CELLS:
            raise InvalidContext(
                f"the box contains more than about {_MAX_CELLS} cells. Choose a coarser resolution "
                "or a smaller box."
            )
        cells: set[str] = set()
        # The h3 library mistakes a polygon larger than half the globe for its complement, so split
        # a wide box into strips.
        strip_count = math.ceil((east - west) / 60)
        edges = [west + (east - west) * i / strip_count for i in range(strip_count + 1)]
        for left, right in pairwise(edges):
            corners = [(south, left), (south, right), (north, right), (north, left)]
            cells.update(h3.polygon_to_cells(h3.LatLngPoly(corners), resolution))
        if not cells:
            raise InvalidContext(
                "the box does not contain the centre of any cell. Choose a finer resolution or a "
                "larger box."
            )
        return cls(sorted(cells), other=other)

    @property
    def cell_count(self) -> int:
        """The number of cells, without ``other``."""
        return len(self._cells)

    @property
    def layout(self) -> Scattered:
        """The centres of the cells on the globe."""
        return Scattered(self._points)

    @cached_property
    def _points(self) -> Floats:
        latitudes, longitudes = np.radians(self.centres())
        x = np.cos(latitudes) * np.cos(longitudes)
        y = np.cos(latitudes) * np.sin(longitudes)
        return np.column_stack([x, y, np.sin(latitudes)])

    @property
    def cells(self) -> Symbols:
        """The symbols of the cells, without ``other``."""
        return np.arange(self.cell_count)

    def symbols_at(self, latitudes: ArrayLike, longitudes: ArrayLike) -> Symbols:
        """Return the symbols of the cells that contain the positions, given in degrees.

        Raise ``UnknownValue`` for positions in no cell, unless there is an ``other`` label.
        """
        cells = self.cells_at(latitudes, longitudes)
        is_outside = cells < 0
        if self._other is None and is_outside.any():
            raise unknown_value_error(np.flatnonzero(is_outside), cells.size)
        return np.where(is_outside, self.other_symbol, cells)

    def cells_at(self, latitudes: ArrayLike, longitudes: ArrayLike) -> Symbols:
        """Return the cells that contain the positions, or −1 for positions in no cell."""
        h3 = _import_h3()
        latitude = coordinates(latitudes)
        longitude = coordinates(longitudes)
        if latitude.shape != longitude.shape or latitude.ndim != 1:
            raise InvalidSymbols("latitudes and longitudes must be two sequences of equal length.")
        is_valid = (np.abs(latitude) <= 90) & (np.abs(longitude) <= 180)  # false for NaN
        symbols = np.full(latitude.size, -1, dtype=np.int64)
        for i in np.flatnonzero(is_valid).tolist():
            cell = h3.latlng_to_cell(latitude[i], longitude[i], self.resolution)
            symbols[i] = self.find_label(cell)
        return symbols

    def centres(self) -> tuple[Floats, Floats]:
        """Return the latitudes and longitudes of all cell centres in degrees, without ``other``."""
        h3 = _import_h3()
        positions = np.array([h3.cell_to_latlng(cell) for cell in self._cells])
        return positions[:, 0], positions[:, 1]

    def parents(self, resolution: int) -> list[str]:
        """Return the parent of each cell at a coarser resolution; ``other`` has no parent."""
        if not 0 <= resolution < self.resolution:
            raise InvalidContext(
                f"the resolution of parents must be in 0..{self.resolution - 1}; got {resolution}."
            )
        h3 = _import_h3()
        return [h3.cell_to_parent(cell, resolution) for cell in self._cells]

    def to_record(self) -> Json:
        """Return the domain as JSON-compatible data.

        The record lists all cells, because future versions of the h3 library may fill a box
        differently.
        """
        return {"kind": self.kind, "cells": list(self._cells), "other": self._other}

    @classmethod
    def from_record(cls, record: object) -> "H3Domain":
        """Return the H3 domain stored in a record."""
        fields = require_fields(record, "domain", ("kind", "cells", "other"))
        return H3Domain(fields["cells"], other=fields["other"])

    def __repr__(self) -> str:
        return f"H3Domain({self.cell_count} cells of resolution {self.resolution})"


def _import_h3() -> ModuleType:
    try:
        import h3
    except ImportError:
        raise MissingExtra(f"H3 cells require the h3 package: {install_hint('geo')}") from None
    return h3
