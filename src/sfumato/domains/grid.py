"""A domain of grid cells; positions are rounded to 1e-7 degree before a cell is chosen."""

import copy
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Real
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domains.domain import Domain, Label, require_column, require_label, unknown_value_error
from sfumato.domains.layout import Plane
from sfumato.errors import InvalidContext, InvalidSymbols, UnknownValue
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import decimal_text, require_fields
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.inputs import NumberLike
from sfumato.foundation.numpy_values import require_unmasked

__all__ = ["GridDomain", "coordinates"]

_UNITS_PER_DEGREE = 10**7  # one unit of latitude is about a centimetre on the ground
_POLE = 90 * _UNITS_PER_DEGREE
_ANTIMERIDIAN = 180 * _UNITS_PER_DEGREE
_NOWHERE = 1000 * _UNITS_PER_DEGREE
_CELL_LIMIT = 2**31
_FIRST_EDITION_WITH_JOINT_EDGES = 2


class GridDomain(Domain):
    """Cells of ``step`` degrees inside a box, row by row from the box's south-western corner.

    A coordinate is rounded to 1e-7 degree, ``c = ⌊degrees·10⁷ + ½⌋``, and its cell is
    ``⌊(c − origin)/step⌋`` in integer arithmetic. A cell's northern and eastern edges belong to its
    neighbours. At the end of the globe, there are none: latitude 90 belongs to the last row of a
    grid that reaches it. Longitudes 180 and −180 are the same: they belong to the first column of a
    grid that starts there, otherwise to the last column of one that ends there. A cell's label is
    its south-western corner. A position outside the grid is mapped to ``other`` if there is such a
    label, and is an error otherwise.

    Surveys of edition 1 keep an older rule: latitude 90 and longitude 180 are outside every grid.

    >>> grid = GridDomain(25, 50, -130, -60, 0.2)
    >>> grid.shape, grid.symbols_at([25.0, 49.99], [-130.0, -60.01])
    ((125, 350), array([    0, 43749]))
    >>> grid.labels[351]
    '25.2,-129.8'
    >>> GridDomain(-90, 90, -180, 180, 90).symbols([(90, 0), (0, 180), (0, -180)])
    array([6, 4, 4])
    """

    kind = "grid"

    @shows_call("sf.GridDomain(south=47, north=48, west=8, east=10, step=0.5)")
    def __init__(
        self,
        south: NumberLike,
        north: NumberLike,
        west: NumberLike,
        east: NumberLike,
        step: NumberLike,
        *,
        other: Label | None = None,
    ) -> None:
        self._south = _to_units(south, "south")
        self._north = _to_units(north, "north")
        self._west = _to_units(west, "west")
        self._east = _to_units(east, "east")
        self._step = _to_units(step, "step")
        if self._step <= 0:
            raise InvalidContext("step must be a positive number of degrees. Pass e.g. 0.2.")
        self._row_count = _count_steps(self._south, self._north, self._step, "south", "north", 90)
        self._column_count = _count_steps(self._west, self._east, self._step, "west", "east", 180)
        if self.cell_count >= _CELL_LIMIT:
            raise InvalidContext(
                f"a grid must have fewer than 2^31 cells; got {self._row_count} × "
                f"{self._column_count}. Use a larger step."
            )
        self._joins_edges = True  # whether positions at the end of the globe are in a cell
        self._other = None if other is None else require_label(other, "other")
        if self._other is not None and self._cell_of(self._other) is not None:
            raise InvalidContext(f"other must not be the label of a cell; got {self._other!r}.")

    def for_edition(self, edition: int) -> Self:
        """Return the grid as surveys of an edition read positions; its record stays the same.

        Clients of edition 1 have latitude 90 and longitude 180 outside every grid.
        """
        joins_edges = edition >= _FIRST_EDITION_WITH_JOINT_EDGES
        if joins_edges == self._joins_edges:
            return self
        grid = copy.copy(self)
        grid._joins_edges = joins_edges
        return grid

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows (latitudes) and columns (longitudes)."""
        return self._row_count, self._column_count

    @property
    def cell_count(self) -> int:
        """The number of cells, without ``other``."""
        return self._row_count * self._column_count

    @property
    def layout(self) -> Plane:
        """A plane."""
        return Plane(*self.shape)

    @property
    def cells(self) -> Symbols:
        """The symbols of the cells, without ``other``."""
        return np.arange(self.cell_count)

    @property
    def size(self) -> int:
        """The number of symbols, k: the cells, plus ``other`` if there is one."""
        return self.cell_count + (self._other is not None)

    @property
    def labels(self) -> Sequence[Label]:
        """The labels of all symbols, computed on demand."""
        return _GridLabels(self)

    def symbols_at(self, latitudes: ArrayLike, longitudes: ArrayLike) -> Symbols:
        """Return the symbols of the cells that contain the positions, given in degrees.

        Raise ``UnknownValue`` for positions outside the grid, unless there is an ``other`` label.
        The error does not contain coordinates.
        """
        cells = self.cells_at(latitudes, longitudes)
        is_outside = cells < 0
        if self._other is None and is_outside.any():
            raise unknown_value_error(np.flatnonzero(is_outside), cells.size)
        return np.where(is_outside, self.cell_count, cells)

    def cells_at(self, latitudes: ArrayLike, longitudes: ArrayLike) -> Symbols:
        """Return the cells that contain the positions, or −1 for positions outside the grid."""
        latitude_units = _round_to_units(latitudes)
        longitude_units = _round_to_units(longitudes)
        if latitude_units.shape != longitude_units.shape or latitude_units.ndim != 1:
            raise InvalidSymbols("latitudes and longitudes must be two sequences of equal length.")
        if self._joins_edges:
            self._join_edges(latitude_units, longitude_units)
        rows = (latitude_units - self._south) // self._step
        columns = (longitude_units - self._west) // self._step
        is_row_inside = (rows >= 0) & (rows < self._row_count)
        is_column_inside = (columns >= 0) & (columns < self._column_count)
        is_inside = is_row_inside & is_column_inside
        return np.where(is_inside, rows * self._column_count + columns, -1)

    def _join_edges(self, latitude_units: Symbols, longitude_units: Symbols) -> None:
        """Move positions at the end of the globe into a cell of the grid, in place."""
        if self._north == _POLE:
            latitude_units[latitude_units == _POLE] -= 1
        is_antimeridian = np.abs(longitude_units) == _ANTIMERIDIAN
        if self._west == -_ANTIMERIDIAN:
            longitude_units[is_antimeridian] = -_ANTIMERIDIAN
        elif self._east == _ANTIMERIDIAN:
            longitude_units[is_antimeridian] = _ANTIMERIDIAN - 1

    def symbols(self, values: Iterable[object]) -> Symbols:
        """Return the symbols of the cells that contain positions: pairs (latitude, longitude)."""
        return self.symbols_at(*split_positions(values))

    def find(self, value: object) -> int:
        """Return the symbol of the cell that contains a position: a pair (latitude, longitude).

        If no cell does, return the symbol for ``other``, or −1 if there is no ``other``.
        """
        try:
            return int(self.symbols([value])[0])
        except (UnknownValue, InvalidSymbols):
            return -1 if self._other is None else self.cell_count

    def find_label(self, value: object) -> int:
        """Return the symbol for a value that is the label of a symbol, or −1 for any other."""
        if self._other is not None and value == self._other:
            return self.cell_count
        cell = self._cell_of(value) if isinstance(value, str) else None
        return -1 if cell is None else cell

    @property
    def other_symbol(self) -> int:
        """The symbol for ``other``, or −1 without ``other``."""
        return -1 if self._other is None else self.cell_count

    def centres(self) -> tuple[Floats, Floats]:
        """Return the latitudes and longitudes of all cell centres in degrees, without ``other``."""
        rows = np.arange(self._row_count) + 0.5
        columns = np.arange(self._column_count) + 0.5
        latitudes = (self._south + self._step * rows) / _UNITS_PER_DEGREE
        longitudes = (self._west + self._step * columns) / _UNITS_PER_DEGREE
        return np.repeat(latitudes, self._column_count), np.tile(longitudes, self._row_count)

    def to_record(self) -> dict[str, Any]:
        """Return the domain as JSON-compatible data, for fingerprints and files."""
        units_by_field = {
            "south": self._south,
            "north": self._north,
            "west": self._west,
            "east": self._east,
            "step": self._step,
        }
        degrees = {field: _degrees_text(units) for field, units in units_by_field.items()}
        return {"kind": self.kind, **degrees, "other": self._other}

    @classmethod
    def from_record(cls, record: object) -> "GridDomain":
        """Return the grid stored in a record."""
        names = ("south", "north", "west", "east", "step")
        fields = require_fields(record, "domain", ("kind", *names, "other"))
        return GridDomain(*(fields[name] for name in names), other=fields["other"])

    def corner(self, cell: int) -> str:
        """Return the label of a cell: its south-western corner."""
        row, column = divmod(cell, self._column_count)
        latitude = _degrees_text(self._south + row * self._step)
        longitude = _degrees_text(self._west + column * self._step)
        return f"{latitude},{longitude}"

    def centre(self, cell: int) -> tuple[float, float]:
        """Return the latitude and the longitude of the centre of a cell."""
        row, column = divmod(cell, self._column_count)
        latitude = self._south + (row + 0.5) * self._step
        longitude = self._west + (column + 0.5) * self._step
        return latitude / _UNITS_PER_DEGREE, longitude / _UNITS_PER_DEGREE

    def _find_label(self, label: Label) -> int | None:
        return self.cell_count if label == self._other else self._cell_of(label)

    def _label_noun(self) -> str:
        return "the south-western corner of a cell"

    def _suggestion(self, label: object) -> str:
        """Return an example: corners that look similar as text may be far apart on the map."""
        return f" Corners look like {self.corner(0)!r}."

    def _cell_of(self, label: Label) -> int | None:
        """Return the cell with this label, or ``None`` if no cell has it."""
        try:
            latitude, longitude = (Decimal(part) for part in str(label).split(","))
            row = (int(latitude * _UNITS_PER_DEGREE) - self._south) // self._step
            column = (int(longitude * _UNITS_PER_DEGREE) - self._west) // self._step
        except (ValueError, ArithmeticError):
            return None
        cell = row * self._column_count + column
        is_inside = 0 <= row < self._row_count and 0 <= column < self._column_count
        return cell if is_inside and self.corner(cell) == label else None

    def __repr__(self) -> str:
        step = _degrees_text(self._step)
        return f"GridDomain({self._row_count} × {self._column_count} cells of {step}°)"


class _GridLabels(Sequence[Label]):
    """The labels of a grid, computed on demand."""

    def __init__(self, grid: GridDomain) -> None:
        self._grid = grid

    def __len__(self) -> int:
        return self._grid.size

    @overload
    def __getitem__(self, index: int) -> Label: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Label]: ...
    def __getitem__(self, index: int | slice) -> Label | Sequence[Label]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        symbol = range(len(self))[index]
        other = self._grid.other
        if symbol == self._grid.cell_count and other is not None:
            return other
        return self._grid.corner(symbol)

    def __iter__(self) -> Iterator[Label]:
        return (self[i] for i in range(len(self)))


def _to_units(value: object, name: str) -> int:
    """Convert degrees to an exact integer in units of 1e-7 degree."""
    try:
        degrees = Decimal(str(value)) if not isinstance(value, bool) else Decimal("nan")
    except InvalidOperation:
        degrees = Decimal("nan")
    if not degrees.is_finite() or abs(degrees) > 360:
        raise InvalidContext(f"{name} must be a number of degrees within ±360. Pass e.g. 25.0.")
    units = degrees * _UNITS_PER_DEGREE
    if units != units.to_integral_value():
        raise InvalidContext(f"{name} must have at most 7 decimal places.")
    return int(units)


def _degrees_text(units: int) -> str:
    return decimal_text(Fraction(units, _UNITS_PER_DEGREE))


def _count_steps(
    low: int, high: int, step: int, low_name: str, high_name: str, max_degrees: int
) -> int:
    """Return the number of steps from ``low`` to ``high``, all in units of 1e-7 degree."""
    max_units = max_degrees * _UNITS_PER_DEGREE
    if not -max_units <= low < high <= max_units:
        raise InvalidContext(
            f"{low_name} must be below {high_name}, both within ±{max_degrees} degrees."
        )
    if (high - low) % step:
        raise InvalidContext(
            f"step must divide the distance from {low_name} to {high_name} evenly. Move an edge, "
            "or change step."
        )
    return (high - low) // step


def _round_to_units(degrees: ArrayLike) -> Symbols:
    """Return coordinates in units of 1e-7 degree; NaN and infinities are far outside every grid."""
    values = coordinates(degrees)
    is_valid = np.isfinite(values) & (np.abs(values) <= 360)
    units = np.floor(np.where(is_valid, values, 0.0) * _UNITS_PER_DEGREE + 0.5).astype(np.int64)
    units[~is_valid] = _NOWHERE
    return units


def split_positions(values: Iterable[object]) -> tuple[ArrayLike, ArrayLike]:
    """Return the latitudes and the longitudes of positions: pairs (latitude, longitude)."""
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 2:
        return values[:, 0], values[:, 1]
    require_column(values)
    latitudes: list[Any] = []
    longitudes: list[Any] = []
    for pair in values:
        if not isinstance(pair, Sized) or isinstance(pair, str | bytes) or len(pair) != 2:
            raise InvalidSymbols("positions must be pairs (latitude, longitude), one per person.")
        latitudes.append(pair[0])  # type: ignore[index]
        longitudes.append(pair[1])  # type: ignore[index]
    return latitudes, longitudes


def coordinates(degrees: ArrayLike) -> Floats:
    """Return degrees as floats, with NaN for missing values. Error messages contain no values."""
    require_unmasked(degrees, "latitudes and longitudes", InvalidSymbols)
    if isinstance(degrees, np.ndarray) and degrees.dtype.kind in "iuf":
        return degrees.astype(np.float64)
    error = InvalidSymbols("latitudes and longitudes must be two sequences of numbers, in degrees.")
    if isinstance(degrees, str | bytes) or not isinstance(degrees, Iterable):
        raise error
    entries: Iterable[Any] = degrees
    values: list[float] = []
    with suppress(OverflowError):  # an integer too large for a float
        for value in entries:
            if value is None:
                values.append(np.nan)
            elif isinstance(value, bool) or not isinstance(value, Real):
                raise error
            else:
                values.append(float(value))
        return np.array(values, dtype=np.float64)
    raise error
