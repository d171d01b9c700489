"""A grid of latitudes and longitudes that maps positions to cells, in units of 1e-7 degree."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Real
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domains.domain import Domain, Label, require_label, unknown_value_error
from sfumato.errors import InvalidContext, InvalidSymbols, UnknownValue
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.foundation.canonical import decimal_text, require_fields

__all__ = ["GridDomain", "coordinates"]

_UNITS = 10**7  # the finest step: a centimetre on the ground
_MAX_CELLS = 2**31


class GridDomain(Domain):
    """Cells of ``step`` degrees between four edges, row by row from the south-western corner.

    A coordinate is rounded to 1e-7 degree, ``c = ⌊degrees·10⁷ + ½⌋``, and its cell is
    ``⌊(c − origin)/step⌋`` in integers. Northern and eastern edges belong to the next cell. A
    cell's label is its south-western corner. A position outside the grid becomes ``other`` if there
    is such a label, and is an error otherwise.

    >>> grid = GridDomain(25, 50, -130, -60, 0.2)
    >>> grid.shape, grid.symbols_at([25.0, 49.99], [-130.0, -60.01])
    ((125, 350), array([    0, 43749]))
    >>> grid.labels[351]
    '25.2,-129.8'
    """

    kind = "grid"

    def __init__(
        self,
        south: object,
        north: object,
        west: object,
        east: object,
        step: object,
        *,
        other: Label | None = None,
    ) -> None:
        self._south = _units(south, "south")
        self._north = _units(north, "north")
        self._west = _units(west, "west")
        self._east = _units(east, "east")
        self._step = _units(step, "step")
        if self._step <= 0:
            raise InvalidContext("step must be a positive number of degrees. Pass e.g. 0.2.")
        self._rows = _cells(self._south, self._north, self._step, "south", "north", 90 * _UNITS)
        self._columns = _cells(self._west, self._east, self._step, "west", "east", 180 * _UNITS)
        if self._rows * self._columns >= _MAX_CELLS:
            raise InvalidContext(
                f"a grid must have fewer than 2^31 cells; got {self._rows} × {self._columns}. "
                "Use a larger step."
            )
        self._other = None if other is None else require_label(other, "other")
        if self._other is not None and self._cell_of(self._other) is not None:
            raise InvalidContext(f"other must not be the label of a cell; got {self._other!r}.")

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows (latitudes) and columns (longitudes)."""
        return self._rows, self._columns

    @property
    def cell_count(self) -> int:
        """The number of cells, without ``other``."""
        return self._rows * self._columns

    @property
    def size(self) -> int:
        """The number of symbols, k: the cells, and ``other`` if there is one."""
        return self.cell_count + (self._other is not None)

    @property
    def labels(self) -> Sequence[Label]:
        """The labels of all symbols, computed on demand."""
        return _GridLabels(self)

    def symbols_at(self, latitudes: ArrayLike, longitudes: ArrayLike) -> Symbols:
        """Return the cells of positions in degrees.

        Raise ``UnknownValue``, with row numbers only, for positions outside the grid.
        """
        rows, inside_rows = _index(latitudes, self._south, self._step, self._rows)
        columns, inside_columns = _index(longitudes, self._west, self._step, self._columns)
        if rows.shape != columns.shape or rows.ndim != 1:
            raise InvalidSymbols("latitudes and longitudes must be two sequences of equal length.")
        inside = inside_rows & inside_columns
        if self._other is None and not inside.all():
            raise unknown_value_error(np.flatnonzero(~inside), inside.size)
        return np.where(inside, rows * self._columns + columns, self.cell_count)

    def symbols(self, values: Iterable[object]) -> Symbols:
        """Return the cells of pairs (latitude, longitude)."""
        if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 2:
            return self.symbols_at(values[:, 0], values[:, 1])
        pairs = list(values)
        if any(
            not isinstance(pair, Sized) or isinstance(pair, str | bytes) or len(pair) != 2
            for pair in pairs
        ):
            raise InvalidSymbols("positions must be pairs (latitude, longitude), one per person.")
        latitudes = [pair[0] for pair in pairs]  # type: ignore[index]
        longitudes = [pair[1] for pair in pairs]  # type: ignore[index]
        return self.symbols_at(latitudes, longitudes)

    def find(self, value: object) -> int:
        """Return the cell of one pair (latitude, longitude), or ``other`` or −1 outside."""
        try:
            return int(self.symbols([value])[0])
        except (UnknownValue, InvalidSymbols):
            return -1 if self._other is None else self.cell_count

    def centres(self) -> tuple[Floats, Floats]:
        """Return latitudes and longitudes of the cells' centres in degrees, without ``other``."""
        latitudes = (self._south + self._step * (np.arange(self._rows) + 0.5)) / _UNITS
        longitudes = (self._west + self._step * (np.arange(self._columns) + 0.5)) / _UNITS
        return np.repeat(latitudes, self._columns), np.tile(longitudes, self._rows)

    def to_record(self) -> dict[str, Any]:
        """Return the domain as plain data, for fingerprints and files."""
        named = {
            "south": self._south,
            "north": self._north,
            "west": self._west,
            "east": self._east,
            "step": self._step,
        }
        edges = {name: decimal_text(Fraction(units, _UNITS)) for name, units in named.items()}
        return {"kind": self.kind, **edges, "other": self._other}

    @classmethod
    def from_record(cls, record: object) -> "GridDomain":
        """Read the record of a grid."""
        edges = ("south", "north", "west", "east", "step")
        fields = require_fields(record, "domain", ("kind", *edges, "other"))
        return GridDomain(*(fields[edge] for edge in edges), other=fields["other"])

    def corner(self, cell: int) -> str:
        """Return the label of a cell: its south-western corner."""
        row, column = divmod(cell, self._columns)
        latitude = Fraction(self._south + row * self._step, _UNITS)
        longitude = Fraction(self._west + column * self._step, _UNITS)
        return f"{decimal_text(latitude)},{decimal_text(longitude)}"

    def _label_symbol(self, label: Label, name: str) -> int:
        cell = self.cell_count if label == self._other else self._cell_of(label)
        if cell is None:
            raise InvalidContext(
                f"{name} names {label!r}, which is not the south-western corner of a cell."
            )
        return cell

    def _cell_of(self, label: Label) -> int | None:
        """Return the cell with this label, or ``None``."""
        try:
            latitude, longitude = (Decimal(part) for part in str(label).split(","))
            row = (int(latitude * _UNITS) - self._south) // self._step
            column = (int(longitude * _UNITS) - self._west) // self._step
        except (ValueError, ArithmeticError):
            return None
        cell = row * self._columns + column
        inside = 0 <= row < self._rows and 0 <= column < self._columns
        return cell if inside and self.corner(cell) == label else None

    def __repr__(self) -> str:
        step = decimal_text(Fraction(self._step, _UNITS))
        return f"GridDomain({self._rows} × {self._columns} cells of {step}°)"


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


def _units(value: object, name: str) -> int:
    """Return degrees as an exact integer, in units of 1e-7 degree."""
    try:
        degrees = Decimal(str(value)) if not isinstance(value, bool) else Decimal("nan")
    except InvalidOperation:
        degrees = Decimal("nan")
    if not degrees.is_finite() or abs(degrees) > 360:
        raise InvalidContext(f"{name} must be a number of degrees. Pass e.g. 25.0.")
    units = degrees * _UNITS
    if units != units.to_integral_value():
        raise InvalidContext(f"{name} must have at most 7 decimals.")
    return int(units)


def _cells(low: int, high: int, step: int, low_name: str, high_name: str, limit: int) -> int:
    if not -limit <= low < high <= limit:
        raise InvalidContext(
            f"{low_name} must lie below {high_name}, both within ±{limit // _UNITS} degrees."
        )
    if (high - low) % step:
        raise InvalidContext(
            f"step must divide the distance from {low_name} to {high_name}. Move an edge or change "
            "step."
        )
    return (high - low) // step


def _index(degrees: ArrayLike, origin: int, step: int, count: int) -> tuple[Symbols, Booleans]:
    """Return the row or column of each coordinate, and whether it lies in the grid.

    NaN and infinities lie outside.
    """
    values = coordinates(degrees)
    usable = np.isfinite(values) & (np.abs(values) <= 360)
    units = np.floor(np.where(usable, values, 0.0) * _UNITS + 0.5).astype(np.int64)
    index = (units - origin) // step
    return index, usable & (index >= 0) & (index < count)


def coordinates(degrees: ArrayLike) -> Floats:
    """Return degrees as floats, with NaN for a missing value. Errors quote no value."""
    if isinstance(degrees, np.ndarray) and degrees.dtype.kind in "iuf":
        return degrees.astype(np.float64)
    problem = InvalidSymbols(
        "latitudes and longitudes must be two sequences of numbers, in degrees."
    )
    if isinstance(degrees, str | bytes) or not isinstance(degrees, Iterable):
        raise problem
    entries: Iterable[Any] = degrees
    values: list[float] = []
    with suppress(OverflowError):  # an integer too large for a float
        for value in entries:
            if value is None:
                values.append(np.nan)
            elif isinstance(value, bool) or not isinstance(value, Real):
                raise problem
            else:
                values.append(float(value))
        return np.array(values, dtype=np.float64)
    raise problem
