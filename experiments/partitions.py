"""What the paper's conclusion asks for: blocks that are not uniform, next to its uniform tiles.

Tiles, H3 hexagons and the surroundings of cities cut the same map into about as many blocks; ε is
the same. They differ in more than error: a block shows where a person is, and blocks around cities
are small where people are. So each partition comes with the number of cells among which a typical
person hides.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from experiments.figures import draw_dots
from sfumato.contexts import Blocks, Uniform
from sfumato.domains import GridDomain
from sfumato.domains.partitions import grid_tiles, nearest_places
from sfumato.errors import MissingExtra
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.pages.map_cells import arrange_cells
from sfumato.pages.pictures import INK, MAP_SCALE, PROMISE_SCALE
from sfumato.paper.experiment import ExperimentResult, RunOptions
from sfumato.paper.gowalla import PER_RECORD, draw_shares
from sfumato.paper.population import (
    GEONAMES_CREDIT,
    MapPopulation,
    Places,
    american_places,
    map_grid,
    map_population,
)
from sfumato.paper.schemes import MapErrors, measure_contexts

_EPSILON = 1.0
_DEGREE = 111.2  # kilometres from one parallel to the next
_EARTH_RADIUS = 6371.0  # kilometres
# For each resolution of H3 the kilometres between cities, so that no block is tiny.
_KILOMETRES_APART = {2: 100, 3: 40}
_MAPS = 4  # one of each kind, at the coarser level
_COLOURS = {"the paper's scheme": PROMISE_SCALE[0], "the best here": MAP_SCALE[2]}
_COLUMNS = (
    "partition",
    "blocks",
    "cells in the largest block",
    "cells in a typical person's block",
    "people whose block is one cell",
    *_COLOURS,
    "what the block reveals",
)


@dataclass(frozen=True, eq=False)
class Partition:
    """Blocks with a name, and what a report reveals by naming its block."""

    name: str
    block_of: Symbols
    reveals: str


@dataclass(frozen=True)
class Hiding:
    """How many blocks there are, and among how many cells people hide in them.

    ``typical_block``: the median over people. ``share_alone``: the share of people whose block is a
    single cell.
    """

    blocks: int
    largest_block: int
    typical_block: int
    share_alone: float

    @classmethod
    def of(cls, block_of: Symbols, counts: Symbols) -> "Hiding":
        """Measure how ``counts[x]`` people in cell x hide.

        >>> Hiding.of(np.array([0, 0, 0, 1]), np.array([1, 1, 2, 1]))
        Hiding(blocks=2, largest_block=3, typical_block=3, share_alone=0.2)
        """
        sizes = np.bincount(block_of)
        own = sizes[block_of]
        order = np.argsort(own, kind="stable")
        median = np.searchsorted(np.cumsum(counts[order]), (counts.sum() + 1) // 2)
        return cls(
            blocks=int(np.count_nonzero(sizes)),
            largest_block=int(sizes.max()),
            typical_block=int(own[order][median]),
            share_alone=float(counts[own == 1].sum() / counts.sum()),
        )


Measured = tuple[Partition, Hiding, MapErrors]
"""A partition, how people hide in it, and the errors of both schemes."""


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
    options.on_progress(f"{population} on {domain.cell_count:,} cells")
    compared = all_partitions(domain, american_places())
    runs = options.run_count(full=16, quick=1)
    errors = measure_contexts(
        {partition.name: _context(domain, partition.block_of) for partition in compared},
        population.counts,
        runs,
        options.seed,
        on_progress=options.on_progress,
        workers=workers,
    )
    measured = []
    for partition in compared:
        hiding = Hiding.of(partition.block_of, population.counts)
        measured.append((partition, hiding, errors[partition.name]))
    notes = [
        population.note,
        f"Places: {GEONAMES_CREDIT}. A cell belongs to the block of what is nearest to its centre. "
        "ε = 1 inside each block.",
        "Compare errors of partitions only together with what they reveal: a person whose block "
        "is a single cell is not hidden at all, for any ε.",
        PER_RECORD,
    ]
    if checkins is None and grid is None:
        notes.append(
            "These people live in the very places that blocks are drawn around, which flatters "
            "such blocks."
        )
    return ExperimentResult(
        name="partitions",
        title="Decoded well, blocks around cities give smaller errors; "
        "but they hide people among fewer places",
        summary=_summary(population, runs, measured),
        columns=_COLUMNS,
        rows=tuple(_row(*each) for each in measured),
        data=[_to_json(*each) for each in measured],
        draw_figure=lambda: _figure(domain, population, measured),
        notes=tuple(notes),
    )


def all_partitions(domain: GridDomain, places: Places) -> list[Partition]:
    """Return no blocks; then, for two resolutions of hexagons, as many tiles, towns and cities."""
    no_blocks = np.zeros(domain.size, dtype=np.int64)
    result = [Partition("no blocks (LDP)", no_blocks, "nothing")]
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
    return Partition(f"tiles ({rows},{columns})", block_of, reveals)


def _hexagons(domain: GridDomain, resolution: int) -> Partition:
    """Assign each cell of the map to the H3 cell that holds its centre."""
    try:
        import h3
    except ImportError:
        raise MissingExtra("H3 cells need the h3 package: pip install 'sfumato[geo]'") from None
    cells = []
    for latitude, longitude in np.transpose(domain.centres()).tolist():
        cells.append(h3.latlng_to_cell(latitude, longitude, resolution))
    # The distance between opposite sides of a hexagon of this area.
    across = math.sqrt(h3.average_hexagon_area(resolution, unit="km^2") * 2 / math.sqrt(3))
    reveals = f"the hexagon, some {across:.0f} km across"
    return Partition(f"H3 hexagons, resolution {resolution}", _number(cells), reveals)


def _cities(domain: GridDomain, places: Places, number: int) -> Partition:
    cities = places.largest(number)
    least = int(cities.population.min())
    reveals = f"the nearest of {number:,} cities of {least:,} people and more"
    return Partition(f"around {number:,} cities", _around(domain, cities), reveals)


def _towns_apart(domain: GridDomain, places: Places, number: int, kilometres: int) -> Partition:
    towns = largest_apart(places, number, kilometres)
    reveals = f"the nearest of {towns.population.size:,} towns, no two within {kilometres} km"
    name = f"around towns {kilometres} km apart"
    return Partition(name, _around(domain, towns), reveals)


def largest_apart(places: Places, number: int, kilometres: float) -> Places:
    """Return the largest places, each at this distance from all larger ones that were taken.

    There are fewer than ``number`` where there is no more room.
    """
    phi = np.radians(places.latitudes)
    theta = np.radians(places.longitudes)
    # Points on the unit sphere: their products are cosines of the angles between places.
    points = np.column_stack(
        [np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)]
    )
    nearest = math.cos(kilometres / _EARTH_RADIUS)
    chosen: list[int] = []
    for place in places.rank_by_population().tolist():
        if len(chosen) == number:
            break
        if not (points[chosen] @ points[place] > nearest).any():
            chosen.append(place)
    return places.select(np.array(chosen))


def _around(domain: GridDomain, places: Places) -> Symbols:
    """Assign each cell to its nearest place. A place that is nearest to no cell has no block."""
    return _number(nearest_places(domain, places.latitudes, places.longitudes))


def _number(blocks: Sequence[str] | Symbols) -> Symbols:
    """Number the blocks from 0 on, in their sorted order."""
    _, block_of = np.unique(blocks, return_inverse=True)
    return block_of.astype(np.int64)


def _context(domain: GridDomain, block_of: Symbols) -> Uniform | Blocks:
    if block_of.any():
        return Blocks(block_of, _EPSILON, domain=domain)
    return Uniform(domain, _EPSILON)


def _row(partition: Partition, hiding: Hiding, errors: MapErrors) -> tuple[str | int, ...]:
    return (
        partition.name,
        hiding.blocks,
        hiding.largest_block,
        hiding.typical_block,
        f"{hiding.share_alone:.1%}",
        str(errors.paper),
        str(errors.best),
        partition.reveals,
    )


def _to_json(partition: Partition, hiding: Hiding, errors: MapErrors) -> dict[str, object]:
    return {
        "partition": partition.name,
        **asdict(hiding),
        "reveals": partition.reveals,
        "hadamard_projection": errors.paper.in_json(),
        "best": errors.best.in_json(),
    }


def _summary(population: MapPopulation, runs: int, measured: Sequence[Measured]) -> str:
    tiles, _, apart, cities = measured[-4:]
    texts = []
    for partition, hiding, errors in (tiles, apart, cities):
        typical = f"a typical person hides among {hiding.typical_block:,} cells"
        texts.append(f"{errors.best.mean:.3f} with {partition.name} ({typical})")
    times = "once" if runs == 1 else f"{runs} times"
    return (
        f"{population}, randomised {times}. Total variation error of the best here: "
        f"{', '.join(texts)}."
    )


# --- the picture ----------------------------------------------------------------------------------


def _figure(domain: GridDomain, population: MapPopulation, measured: Sequence[Measured]) -> Figure:
    """Draw four maps with borders above; below, errors next to what people hide among."""
    canvas = Figure(figsize=(13.6, 7.6), layout="constrained")
    above, below = canvas.subfigures(2, 1, squeeze=False, height_ratios=(1, 2)).flat
    maps = measured[1 : 1 + _MAPS]
    for axes, (partition, _, _) in zip(above.subplots(1, _MAPS), maps, strict=True):
        draw_shares(axes, domain, population.truth)
        _draw_borders(axes, domain, partition.block_of)
        axes.set_title(partition.name, loc="left", fontsize=9.5, color=INK)
    rows = []
    for partition, hiding, errors in measured:
        label = f"{partition.name}: typically one of {hiding.typical_block:,} cells"
        rows.append((label, (errors.paper, errors.best)))
    draw_dots(below.subplots(), f"Total variation error. {population}", rows, _COLOURS)
    return canvas


def _draw_borders(axes: Axes, grid: GridDomain, block_of: Symbols) -> None:
    """Draw a line wherever two neighbouring cells are in different blocks."""
    cells = arrange_cells(grid, np.zeros(grid.size))
    west, _, south, _ = cells.extent
    segments = borders(block_of.reshape(grid.shape)) * cells.step + np.array([west, south])
    axes.add_collection(LineCollection(list(segments), colors=INK, linewidths=0.4))


def borders(blocks: Symbols) -> Floats:
    """Return the edges between cells of different blocks, each as two points (column, row).

    >>> borders(np.array([[0, 1], [0, 0]])).astype(int).tolist()
    [[[1, 0], [1, 1]], [[1, 1], [2, 1]]]
    """
    row, column = np.nonzero(blocks[:, 1:] != blocks[:, :-1])
    top = np.column_stack([column + 1, row])
    upright = np.stack([top, top + np.array([0, 1])], axis=1)
    row, column = np.nonzero(blocks[1:] != blocks[:-1])
    left = np.column_stack([column, row + 1])
    level = np.stack([left, left + np.array([1, 0])], axis=1)
    return np.concatenate([upright, level]).astype(np.float64)
