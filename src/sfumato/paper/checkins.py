"""Check-ins on the paper's map: how many people stand on each of its 125 × 350 cells.

There are three ways to a crowd: the paper's own file, which SNAP publishes; a file of counts; and, with neither, the
population of places, which is not the paper's data and says so.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from sfumato.domains import GridDomain
from sfumato.errors import InvalidContext, InvalidTable
from sfumato.foundation.arrays import Arrow, Floats, Symbols
from sfumato.paper.population import CREDIT, american_places
from sfumato.tables import open_table

__all__ = ["PAPERS_PEOPLE", "Crowd", "crowd_of", "map_grid"]

PAPERS_PEOPLE = 3_671_812
"""Check-ins of the paper between 25N and 50N, 130W and 60W."""

_MOST_PEOPLE = 10**8  # their symbols take 800 MB
_COLUMNS = ("user", "time", "latitude", "longitude", "location")
_GZIP = b"\x1f\x8b"
_ROWS_BETWEEN_LINES = 10**6


@dataclass(frozen=True, eq=False)
class Crowd:
    """How many people stand on each cell; what they are called, and what must be known of where they come from."""

    counts: Symbols
    called: str
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
        return f"{self.people:,} {self.called}"


def map_grid() -> GridDomain:
    """The paper's map: 25N to 50N, 130W to 60W, in cells of 0.2 degrees.

    >>> map_grid().shape
    (125, 350)
    """
    return GridDomain(25, 50, -130, -60, 0.2)


def crowd_of(
    checkins: str | None = None,
    grid: str | None = None,
    on_progress: Callable[[str], None] = lambda line: None,
) -> Crowd:
    """The crowd of SNAP's file of check-ins, or of a file of counts; with neither, that of GeoNames' places."""
    if checkins is not None and grid is not None:
        raise InvalidContext(
            "there must be one crowd: pass a file of check-ins or a grid of counts, not both."
        )
    if checkins is not None:
        return _checked_in(checkins, on_progress)
    return _living() if grid is None else _counted(grid)


# --- SNAP's file: a line per check-in --------------------------------------------------------------------


def _checked_in(path: str, on_progress: Callable[[str], None]) -> Crowd:
    """Tab-separated user, time, latitude, longitude, location, without a header; those off the map are left out."""
    name, cells = Path(path).name, map_grid().cells
    everywhere = GridDomain(25, 50, -130, -60, 0.2, other="elsewhere")
    counts, rows, told = np.zeros(cells + 1, dtype=np.int64), 0, 0
    for latitudes, longitudes in _positions(path, name):
        counts += np.bincount(everywhere.symbols_at(latitudes, longitudes), minlength=cells + 1)
        rows += latitudes.size
        if rows - told >= _ROWS_BETWEEN_LINES:
            told = rows
            on_progress(f"{name}: {rows:,} check-ins read")
    kept = int(counts[:cells].sum())
    if kept == 0:
        raise InvalidTable(
            f"{name} has no check-in between 25N and 50N, 130W and 60W; it has {rows:,} elsewhere."
        )
    note = f"{kept:,} of the {rows:,} check-ins of {name} lie on the map; the paper has {PAPERS_PEOPLE:,}."
    return Crowd(counts[:cells], "check-ins", note)


def _positions(path: str, name: str) -> Iterator[tuple[Floats, Floats]]:
    """The latitudes and longitudes of a file of check-ins, batch by batch; a missing one is NaN, and lies nowhere."""
    read = pa.csv.ReadOptions(column_names=list(_COLUMNS), block_size=2**22)
    parse = pa.csv.ParseOptions(delimiter="\t", quote_char=False)
    convert = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(_COLUMNS[2:4], pa.float64()), include_columns=list(_COLUMNS[2:4])
    )
    try:
        with (
            Path(path).open("rb") as raw,
            pa.csv.open_csv(
                _unpacked(raw, name),
                read_options=read,
                parse_options=parse,
                convert_options=convert,
            ) as t,
        ):
            for batch in t:
                latitudes, longitudes = (
                    column.to_numpy(zero_copy_only=False) for column in batch.columns
                )
                yield latitudes, longitudes
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        # Arrow's own messages quote what they could not read: they must be gone before ours is raised.
        refusal = InvalidTable(
            f"{name} must have five columns, separated by tabs and without a header: user, time, latitude, longitude "
            "and location, as SNAP's loc-gowalla_totalCheckins.txt.gz has. For a table of counts, pass it as a grid."
        )
    except OSError as problem:
        refusal = InvalidTable(
            f"{name} cannot be read: {problem.strerror or 'it is cut off or damaged'}."
        )
    else:
        return
    raise refusal


def _unpacked(raw: Arrow, name: str) -> Arrow:
    """The bytes of a file, gzip or not, by its content."""
    head = bytes(raw.peek(2)[:2])
    if not head:
        raise InvalidTable(f"{name} is empty.")
    file = pa.PythonFile(raw, mode="r")
    return pa.CompressedInputStream(file, "gzip") if head == _GZIP else file


# --- a file of counts: a line per cell -------------------------------------------------------------------


def _counted(path: str) -> Crowd:
    """CSV, gzip or not, or Parquet, with columns row, column and count; row 0 starts at 25N, column 0 at 130W."""
    name, grid = Path(path).name, map_grid()
    counts = np.zeros(grid.cells, dtype=np.int64)
    with open_table(path) as table:
        for batch in table.batches(dict.fromkeys(("row", "column", "count"), pa.int64())):
            rows, columns, people = (
                _whole(batch.column(each), name, each) for each in ("row", "column", "count")
            )
            _demand(rows, grid.shape[0] - 1, name, "row")
            _demand(columns, grid.shape[1] - 1, name, "column")
            _demand(people, _MOST_PEOPLE, name, "count")
            np.add.at(counts, rows * grid.shape[1] + columns, people)
    total = int(counts.sum())
    if not 0 < total <= _MOST_PEOPLE:
        raise InvalidTable(
            f"{name} must count between 1 and {_MOST_PEOPLE:,} people; found {total:,}."
        )
    note = f"{total:,} people as {name} counts them; the paper has {PAPERS_PEOPLE:,} check-ins. Whether these are the "
    note += "paper's data, only whoever made the file can say."
    return Crowd(counts, "people", note)


def _whole(column: Arrow, name: str, title: str) -> Symbols:
    if column.null_count or not pa.types.is_integer(column.type):
        raise InvalidTable(
            f"{name}: every {title} must be a whole number; some are missing, or no such numbers."
        )
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def _demand(values: Symbols, most: int, name: str, title: str) -> None:
    outside = int(np.count_nonzero((values < 0) | (values > most)))
    if outside:
        raise InvalidTable(
            f"{name}: {title} must lie between 0 and {most:,}; {outside:,} of its numbers do not."
        )


# --- no file: the population of places -------------------------------------------------------------------


def _living() -> Crowd:
    grid = map_grid()
    homes = american_places().homes(grid, PAPERS_PEOPLE)
    note = f"NOT the paper's data: {PAPERS_PEOPLE:,} made-up people, in proportion to the population of places "
    note += f"({CREDIT}). For the paper's own, pass SNAP's loc-gowalla_totalCheckins.txt.gz."
    return Crowd(np.bincount(homes, minlength=grid.cells), "made-up people, not the paper's", note)
