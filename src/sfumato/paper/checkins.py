"""Check-ins on the paper's map: how many people are in each of its 125 × 350 cells.

They come from one of three sources: the paper's own file, which SNAP publishes; a file of counts;
or, with neither, the population of places, which is not the paper's data and says so.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from sfumato.domains import GridDomain
from sfumato.errors import InvalidArgument, InvalidTable
from sfumato.foundation.arrays import Arrow, Floats, Symbols
from sfumato.paper.places import CREDIT, american_places
from sfumato.tables import open_table

__all__ = ["PAPER_PEOPLE", "MapPopulation", "map_grid", "map_population"]

PAPER_PEOPLE = 3_671_812
"""Check-ins of the paper between 25N and 50N, 130W and 60W."""

_MAX_PEOPLE = 10**8  # their symbols take 800 MB
_COLUMNS = ("user", "time", "latitude", "longitude", "location")
_GZIP = b"\x1f\x8b"
_ROWS_BETWEEN_LINES = 10**6


@dataclass(frozen=True, eq=False)
class MapPopulation:
    """How many people are in each cell of the map.

    ``noun`` is what to call them, and ``note`` what you must know about where they come from.
    """

    counts: Symbols
    noun: str
    note: str

    @property
    def people(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    @property
    def truth(self) -> Floats:
        """Their own distribution, which is what the paper estimates."""
        return self.counts / self.people

    def __str__(self) -> str:
        return f"{self.people:,} {self.noun}"


def map_grid() -> GridDomain:
    """Return the paper's map: 25N to 50N, 130W to 60W, in cells of 0.2 degrees.

    >>> map_grid().shape
    (125, 350)
    """
    return GridDomain(25, 50, -130, -60, 0.2)


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
    """Count the check-ins of a file; those off the map are left out."""
    name = Path(path).name
    cells = map_grid().cells
    everywhere = GridDomain(25, 50, -130, -60, 0.2, other="elsewhere")
    counts = np.zeros(cells + 1, dtype=np.int64)
    rows = 0
    next_line = _ROWS_BETWEEN_LINES
    for latitudes, longitudes in _positions(path, name):
        counts += np.bincount(everywhere.symbols_at(latitudes, longitudes), minlength=cells + 1)
        rows += latitudes.size
        if rows >= next_line:
            next_line = rows + _ROWS_BETWEEN_LINES
            on_progress(f"{name}: {rows:,} check-ins read")
    on_map = int(counts[:cells].sum())
    if on_map == 0:
        raise InvalidTable(
            f"{name} has no check-in between 25N and 50N, 130W and 60W; it has {rows:,} elsewhere."
        )
    note = (
        f"{on_map:,} of the {rows:,} check-ins of {name} lie on the map; "
        f"the paper has {PAPER_PEOPLE:,}."
    )
    return MapPopulation(counts[:cells], "check-ins", note)


def _positions(path: str, name: str) -> Iterator[tuple[Floats, Floats]]:
    """Yield latitudes and longitudes batch by batch. A missing one is NaN, which is off the map."""
    try:
        with Path(path).open("rb") as raw, _open_checkins(_decompress(raw, name)) as table:
            for batch in table:
                latitudes = batch.column("latitude").to_numpy(zero_copy_only=False)
                longitudes = batch.column("longitude").to_numpy(zero_copy_only=False)
                yield latitudes, longitudes
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        # Arrow's messages quote what they could not read: they must be gone before ours is raised.
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
    """Open a table of check-ins. Only the positions are read."""
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
    """Return a stream of the file's bytes, gzip or not, by its content."""
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
