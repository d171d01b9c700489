"""What the paper's conclusion asks for: blocks that are not uniform, next to its uniform tiles.

Tiles, H3 hexagons and the surroundings of cities cut the same map into about as many blocks; ε is the
same. They differ in more than error: a block shows where a person is, and blocks around cities are
small where people are. So each partition comes with the number of cells among which a typical person
hides.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato.contexts import Blocks, Uniform
from sfumato.domains import GridDomain
from sfumato.domains.partitions import grid_tiles, nearest_places
from sfumato.errors import MissingExtra
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.paper.experiment import ExperimentResult, RunOptions
from sfumato.paper.gowalla import PER_RECORD
from sfumato.paper.population import (
    CREDIT,
    MapPopulation,
    Places,
    american_places,
    map_grid,
    map_population,
)
from sfumato.paper.schemes import MapErrors, measure_contexts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Hiding", "MeasuredPartition", "Partition", "all_partitions", "partitions"]

_EPSILON = 1.0
_DEGREE = 111.2  # kilometres from one parallel to the next
_EARTH_RADIUS = 6371.0  # kilometres
# For each resolution of H3 the kilometres between cities, so that no block is tiny.
_KILOMETRES_APART = {2: 100, 3: 40}
_TITLE = (
    "Decoded well, blocks around cities give smaller errors; "
    "but they hide people among fewer places"
)
_CIRCULAR = (
    "These people live in the very places that blocks are drawn around, which flatters such blocks."
)
_COLUMNS = (
    "partition",
    "blocks",
    "cells in the largest block",
    "cells in a typical person's block",
    "people whose block is one cell",
    "the paper's scheme",
    "the best here",
    "what the block reveals",
)


@dataclass(frozen=True, eq=False)
class Partition:
    """Blocks with a name, and what a report reveals by naming its block."""

    name: str
    kind: str
    block_of: Symbols
    reveals: str


@dataclass(frozen=True)
class Hiding:
    """How many blocks there are, and among how many cells people hide in them.

    ``typical`` is the median over people, ``alone`` the share of people whose block is a single cell.
    """

    blocks: int
    largest: int
    typical: int
    alone: float

    @classmethod
    def of(cls, block_of: Symbols, counts: Symbols) -> "Hiding":
        """Measure how ``counts[x]`` people in cell x hide.

        >>> Hiding.of(np.array([0, 0, 0, 1]), np.array([1, 1, 2, 1]))
        Hiding(blocks=2, largest=3, typical=3, alone=0.2)
        """
        sizes = np.bincount(block_of)
        own = sizes[block_of]
        order = np.argsort(own, kind="stable")
        median = np.searchsorted(np.cumsum(counts[order]), (counts.sum() + 1) // 2)
        return cls(
            blocks=int(np.count_nonzero(sizes)),
            largest=int(sizes.max()),
            typical=int(own[order][median]),
            alone=float(counts[own == 1].sum() / counts.sum()),
        )


@dataclass(frozen=True, eq=False)
class MeasuredPartition:
    """A partition, how people hide in it, and the errors of both schemes."""

    partition: Partition
    hiding: Hiding
    errors: MapErrors


def partitions(
    options: RunOptions,
    *,
    checkins: str | None = None,
    grid: str | None = None,
    workers: int | None = None,
) -> ExperimentResult:
    """Measure both schemes on tiles, H3 hexagons and the surroundings of cities.

    ``checkins`` and ``grid`` are as for ``gowalla``.
    """
    population = map_population(checkins, grid, options.on_progress)
    domain = map_grid()
    options.on_progress(f"{population} on {domain.cells:,} cells")
    compared = all_partitions(domain, american_places())
    contexts = {partition.name: _context(domain, partition.block_of) for partition in compared}
    runs = options.repetitions(full=16, quick=1)
    errors = measure_contexts(
        contexts,
        population.counts,
        runs,
        options.seed,
        on_progress=options.on_progress,
        workers=workers,
    )
    measured = []
    for partition in compared:
        hiding = Hiding.of(partition.block_of, population.counts)
        measured.append(MeasuredPartition(partition, hiding, errors[partition.name]))
    circular = (_CIRCULAR,) if checkins is None and grid is None else ()
    return ExperimentResult(
        name="partitions",
        title=_TITLE,
        summary=_summary(population, runs, measured),
        columns=_COLUMNS,
        rows=tuple(map(_row, measured)),
        data=list(map(_to_json, measured)),
        figure=lambda: _figure(domain, population, measured),
        notes=(
            population.note,
            *circular,
            f"Places: {CREDIT}. A cell belongs to the block of what is nearest to its centre. "
            "ε = 1 inside each block.",
            "Compare errors of partitions only together with what they reveal: a person whose block "
            "is a single cell is not hidden at all, for any ε.",
            PER_RECORD,
        ),
    )


def all_partitions(domain: GridDomain, places: Places) -> list[Partition]:
    """Return no blocks; then, for two resolutions of hexagons, as many tiles, towns and cities."""
    no_blocks = np.zeros(domain.size, dtype=np.int64)
    result = [Partition("no blocks (LDP)", "none", no_blocks, "nothing")]
    for resolution, kilometres in _KILOMETRES_APART.items():
        hexagons = _hexagons(domain, resolution)
        number = int(hexagons.block_of.max()) + 1
        result.append(_tiles(domain, number))
        result.append(hexagons)
        result.append(_towns_apart(domain, places, number, kilometres))
        result.append(_cities(domain, places, number))
    return result


def _tiles(domain: GridDomain, number: int) -> Partition:
    """Cut the map into about ``number`` tiles, as square as possible in cells."""
    height, width = domain.shape
    rows = round(math.sqrt(number * height / width))
    columns = round(number / rows)
    latitudes = domain.centres()[0]
    step = (latitudes[-1] - latitudes[0]) / (height - 1)
    tall = _DEGREE * step * height / rows
    wide = _DEGREE * step * width / columns * math.cos(math.radians(float(latitudes.mean())))
    reveals = f"the tile, some {tall:.0f} km tall and {wide:.0f} km wide"
    block_of = grid_tiles(domain, rows, columns)
    return Partition(f"tiles ({rows},{columns})", "tiles", block_of, reveals)


def _hexagons(domain: GridDomain, resolution: int) -> Partition:
    """Assign each cell of the map to the H3 cell that holds its centre."""
    try:
        import h3
    except ImportError:
        raise MissingExtra("H3 cells need the h3 package: pip install 'sfumato[geo]'") from None
    latitudes, longitudes = domain.centres()
    cells = []
    for latitude, longitude in zip(latitudes.tolist(), longitudes.tolist(), strict=True):
        cells.append(h3.latlng_to_cell(latitude, longitude, resolution))
    _, block_of = np.unique(cells, return_inverse=True)
    # The distance between opposite sides of a hexagon of this area.
    across = math.sqrt(h3.average_hexagon_area(resolution, unit="km^2") * 2 / math.sqrt(3))
    reveals = f"the hexagon, some {across:.0f} km across"
    name = f"H3 hexagons, resolution {resolution}"
    return Partition(name, "hexagons", block_of.astype(np.int64), reveals)


def _cities(domain: GridDomain, places: Places, number: int) -> Partition:
    chosen = places.largest(number)
    least = int(chosen.population.min())
    reveals = f"the nearest of {number:,} cities of {least:,} people and more"
    return Partition(f"around {number:,} cities", "cities", _around(domain, chosen), reveals)


def _towns_apart(domain: GridDomain, places: Places, number: int, kilometres: int) -> Partition:
    chosen = largest_apart(places, number, kilometres)
    towns = chosen.population.size
    reveals = f"the nearest of {towns:,} towns, no two within {kilometres} km"
    name = f"around towns {kilometres} km apart"
    return Partition(name, "towns apart", _around(domain, chosen), reveals)


def largest_apart(places: Places, number: int, kilometres: float) -> Places:
    """Return the largest places, each at this distance from all larger ones that were taken.

    There are fewer than ``number`` where there is no more room.
    """
    points = _unit_vectors(places.latitudes, places.longitudes)
    nearest = math.cos(kilometres / _EARTH_RADIUS)  # the cosine of the angle between two places
    chosen: list[int] = []
    for place in places.by_size().tolist():
        if len(chosen) == number:
            break
        if not (points[chosen] @ points[place] > nearest).any():
            chosen.append(place)
    return places.select(np.array(chosen))


def _unit_vectors(latitudes: Floats, longitudes: Floats) -> Floats:
    """Return the points of the unit sphere."""
    phi = np.radians(latitudes)
    theta = np.radians(longitudes)
    return np.column_stack([np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)])


def _around(domain: GridDomain, places: Places) -> Symbols:
    """Assign each cell to its nearest place. A place that is nearest to no cell has no block."""
    nearest = nearest_places(domain, places.latitudes, places.longitudes)
    _, block_of = np.unique(nearest, return_inverse=True)
    return block_of.astype(np.int64)


def _context(domain: GridDomain, block_of: Symbols) -> Uniform | Blocks:
    if block_of.any():
        return Blocks(block_of, _EPSILON, domain=domain)
    return Uniform(domain, _EPSILON)


def _row(measured: MeasuredPartition) -> tuple[str | int, ...]:
    hiding = measured.hiding
    return (
        measured.partition.name,
        hiding.blocks,
        hiding.largest,
        hiding.typical,
        f"{hiding.alone:.1%}",
        str(measured.errors.paper),
        str(measured.errors.best),
        measured.partition.reveals,
    )


def _to_json(measured: MeasuredPartition) -> dict[str, object]:
    hiding = measured.hiding
    return {
        "partition": measured.partition.name,
        "blocks": hiding.blocks,
        "largest_block": hiding.largest,
        "typical_block": hiding.typical,
        "share_alone": hiding.alone,
        "reveals": measured.partition.reveals,
        "hadamard_projection": measured.errors.paper.in_json(),
        "best": measured.errors.best.in_json(),
    }


def _summary(population: MapPopulation, runs: int, measured: Sequence[MeasuredPartition]) -> str:
    tiles, _, apart, cities = measured[-4:]
    texts = []
    for one in (tiles, apart, cities):
        typical = f"a typical person hides among {one.hiding.typical:,} cells"
        texts.append(f"{one.errors.best.mean:.3f} with {one.partition.name} ({typical})")
    times = "once" if runs == 1 else f"{runs} times"
    return (
        f"{population}, randomised {times}. Total variation error of the best here: "
        f"{', '.join(texts)}."
    )


def _figure(
    domain: GridDomain, population: MapPopulation, measured: Sequence[MeasuredPartition]
) -> "Figure":
    from experiments.partitions_figure import draw_figure

    return draw_figure(_TITLE, domain, population, measured)
