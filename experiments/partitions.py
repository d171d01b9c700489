"""Compare the paper's uniform tiles with non-uniform blocks, as its conclusion suggests.

Tiles, H3 hexagons and regions around cities divide the same map into about the same number of
blocks, with the same ε. They differ in more than error: a block reveals where a person is, and
blocks around cities are small where people live. So each partition is shown with the number of
cells among which a typical person is hidden.
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
from sfumato.estimation.map_cells import arrange_cells
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.paper.experiment import ExperimentResult, RunOptions
from sfumato.paper.gowalla import PER_CHECKIN_NOTE, draw_shares
from sfumato.paper.pictures import INK, MAP_SCALE, PROMISE_SCALE
from sfumato.paper.population import (
    GEONAMES_CREDIT,
    MapPopulation,
    Places,
    american_places,
    map_grid,
    map_population,
)
from sfumato.paper.schemes import MapResult, measure_contexts

_EPSILON = 1.0
_KM_PER_DEGREE = 111.2  # of latitude
# The minimum distance between towns for each H3 resolution, so that no block is tiny.
_MIN_DISTANCE_KM = {2: 100, 3: 40}
_MAP_COUNT = 4  # one of each kind, at the coarser resolution
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
    """A named partition into blocks, and what the block of a report reveals."""

    name: str
    block_of: Symbols
    reveals: str


@dataclass(frozen=True)
class Hiding:
    """The number of blocks, and their sizes in cells: the more cells, the better people hide.

    ``typical_block`` is the median block size over people. ``share_alone`` is the share of people
    whose block is a single cell.
    """

    blocks: int
    largest_block: int
    typical_block: int
    share_alone: float

    @classmethod
    def measure(cls, block_of: Symbols, counts: Symbols) -> "Hiding":
        """Measure the blocks, with ``counts[x]`` people in cell x.

        >>> Hiding.measure(np.array([0, 0, 0, 1]), np.array([1, 1, 2, 1]))
        Hiding(blocks=2, largest_block=3, typical_block=3, share_alone=0.2)
        """
        block_sizes = np.bincount(block_of)
        size_by_cell = block_sizes[block_of]
        order = np.argsort(size_by_cell, kind="stable")
        median = np.searchsorted(np.cumsum(counts[order]), (counts.sum() + 1) // 2)
        return cls(
            blocks=int(np.count_nonzero(block_sizes)),
            largest_block=int(block_sizes.max()),
            typical_block=int(size_by_cell[order][median]),
            share_alone=float(counts[size_by_cell == 1].sum() / counts.sum()),
        )


Measured = tuple[Partition, Hiding, MapResult]
"""A partition, how well people are hidden in it, and the errors of both schemes."""


def partitions(
    options: RunOptions,
    *,
    checkins: str | None = None,
    grid: str | None = None,
    workers: int | None = None,
) -> ExperimentResult:
    """Measure both schemes on tiles, H3 hexagons and regions around cities.

    ``checkins`` and ``grid`` are as for ``gowalla``.
    """
    population = map_population(checkins, grid, options.on_progress)
    domain = map_grid()
    options.on_progress(f"{population} on {domain.cell_count:,} cells")
    all_partitions = make_partitions(domain, american_places())
    runs = options.run_count(full=16, quick=1)
    errors = measure_contexts(
        {partition.name: _context(domain, partition.block_of) for partition in all_partitions},
        population.counts,
        runs,
        options.seed,
        on_progress=options.on_progress,
        workers=workers,
    )
    measured = []
    for partition in all_partitions:
        hiding = Hiding.measure(partition.block_of, population.counts)
        measured.append((partition, hiding, errors[partition.name]))
    notes = [
        population.note,
        f"Places: {GEONAMES_CREDIT}. A cell belongs to the block of the place nearest to its "
        "centre. ε = 1 inside each block.",
        "When you compare the errors of partitions, also compare what they reveal: a person whose "
        "block is a single cell is not hidden at all, for any ε.",
        PER_CHECKIN_NOTE,
    ]
    if checkins is None and grid is None:
        notes.append(
            "These people live in the same places that blocks are drawn around, which favours "
            "such blocks."
        )
    return ExperimentResult(
        name="partitions",
        title="With a good decoder, blocks around cities give smaller errors, "
        "but hide people among fewer places",
        summary=_summary(population, runs, measured),
        columns=_COLUMNS,
        rows=tuple(_row(*result) for result in measured),
        data=[_to_json(*result) for result in measured],
        draw_figure=lambda: _figure(domain, population, measured),
        notes=tuple(notes),
    )


def make_partitions(domain: GridDomain, places: Places) -> list[Partition]:
    """Return one partition without blocks, and four kinds of blocks at each of two resolutions.

    At each resolution, there are about as many tiles, towns and cities as H3 hexagons.
    """
    no_blocks = np.zeros(domain.size, dtype=np.int64)
    result = [Partition("no blocks (LDP)", no_blocks, "nothing")]
    for resolution, min_distance in _MIN_DISTANCE_KM.items():
        hexagons = _hexagons(domain, resolution)
        count = int(hexagons.block_of.max()) + 1
        result.append(_tiles(domain, count))
        result.append(hexagons)
        result.append(_towns_with_spacing(domain, places, count, min_distance))
        result.append(_cities(domain, places, count))
    return result


def _tiles(domain: GridDomain, count: int) -> Partition:
    """Divide the map into about ``count`` tiles, as square as possible in cells."""
    height, width = domain.shape
    rows = round(math.sqrt(count * height / width))
    columns = round(count / rows)
    latitudes = domain.centres()[0]
    step = (latitudes[-1] - latitudes[0]) / (height - 1)
    km_per_longitude = _KM_PER_DEGREE * math.cos(math.radians(float(latitudes.mean())))
    tile_height = _KM_PER_DEGREE * step * height / rows
    tile_width = km_per_longitude * step * width / columns
    reveals = f"the tile, about {tile_height:.0f} km tall and {tile_width:.0f} km wide"
    block_of = grid_tiles(domain, rows, columns)
    return Partition(f"tiles ({rows},{columns})", block_of, reveals)


def _hexagons(domain: GridDomain, resolution: int) -> Partition:
    """Assign each cell of the map to the H3 cell that contains its centre."""
    try:
        import h3
    except ImportError:
        raise MissingExtra("H3 cells require h3: pip install 'sfumato[geo]'") from None
    cells = []
    for latitude, longitude in np.transpose(domain.centres()).tolist():
        cells.append(h3.latlng_to_cell(latitude, longitude, resolution))
    # The distance between opposite sides of a hexagon with this area.
    diameter = math.sqrt(h3.average_hexagon_area(resolution, unit="km^2") * 2 / math.sqrt(3))
    reveals = f"the hexagon, about {diameter:.0f} km across"
    return Partition(f"H3 hexagons, resolution {resolution}", _index_blocks(cells), reveals)


def _cities(domain: GridDomain, places: Places, count: int) -> Partition:
    cities = places.largest(count)
    min_population = int(cities.populations.min())
    reveals = f"the nearest of {count:,} cities with at least {min_population:,} people"
    return Partition(f"around {count:,} cities", _nearest_blocks(domain, cities), reveals)


def _towns_with_spacing(
    domain: GridDomain, places: Places, count: int, min_distance: int
) -> Partition:
    towns = places.largest_apart(count, min_distance)
    reveals = f"the nearest of {towns.populations.size:,} towns, no two within {min_distance} km"
    name = f"around towns {min_distance} km apart"
    return Partition(name, _nearest_blocks(domain, towns), reveals)


def _nearest_blocks(domain: GridDomain, places: Places) -> Symbols:
    """Assign each cell to its nearest place. A place without a nearest cell has no block."""
    return _index_blocks(nearest_places(domain, places.latitudes, places.longitudes))


def _index_blocks(blocks: Sequence[str] | Symbols) -> Symbols:
    """Replace block names by consecutive indices, in sorted order."""
    _, block_of = np.unique(blocks, return_inverse=True)
    return block_of.astype(np.int64)


def _context(domain: GridDomain, block_of: Symbols) -> Uniform | Blocks:
    if block_of.any():
        return Blocks(block_of, _EPSILON, domain=domain)
    return Uniform(domain, _EPSILON)


def _row(partition: Partition, hiding: Hiding, errors: MapResult) -> tuple[str | int, ...]:
    return (
        partition.name,
        hiding.blocks,
        hiding.largest_block,
        hiding.typical_block,
        f"{hiding.share_alone:.1%}",
        str(errors.paper_error),
        str(errors.best_error),
        partition.reveals,
    )


def _to_json(partition: Partition, hiding: Hiding, errors: MapResult) -> dict[str, object]:
    return {
        "partition": partition.name,
        **asdict(hiding),
        "reveals": partition.reveals,
        "hadamard_projection": errors.paper_error.to_dict(),
        "best": errors.best_error.to_dict(),
    }


def _summary(population: MapPopulation, runs: int, measured: Sequence[Measured]) -> str:
    tiles, _, towns, cities = measured[-4:]
    texts = []
    for partition, hiding, errors in (tiles, towns, cities):
        typical = f"a typical person is hidden among {hiding.typical_block:,} cells"
        texts.append(f"{errors.best_error.mean:.3f} with {partition.name} ({typical})")
    times = "once" if runs == 1 else f"{runs} times"
    return (
        f"{population}, randomised {times}. Total variation error of the best scheme here: "
        f"{', '.join(texts)}."
    )


# --- figure ---------------------------------------------------------------------------------------


def _figure(domain: GridDomain, population: MapPopulation, measured: Sequence[Measured]) -> Figure:
    """Draw four maps with block borders (top), and the errors of all partitions (bottom)."""
    canvas = Figure(figsize=(13.6, 7.6), layout="constrained")
    above, below = canvas.subfigures(2, 1, squeeze=False, height_ratios=(1, 2)).flat
    maps = measured[1 : 1 + _MAP_COUNT]
    for axes, (partition, _, _) in zip(above.subplots(1, _MAP_COUNT), maps, strict=True):
        draw_shares(axes, domain, population.true_shares)
        _draw_borders(axes, domain, partition.block_of)
        axes.set_title(partition.name, loc="left", fontsize=9.5, color=INK)
    rows = []
    for partition, hiding, errors in measured:
        label = f"{partition.name}: {hiding.typical_block:,} cells in a typical person's block"
        rows.append((label, (errors.paper_error, errors.best_error)))
    draw_dots(below.subplots(), f"Total variation error. {population}", rows, _COLOURS)
    return canvas


def _draw_borders(axes: Axes, grid: GridDomain, block_of: Symbols) -> None:
    """Draw a line between neighbouring cells that are in different blocks."""
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
    vertical = np.stack([top, top + np.array([0, 1])], axis=1)
    row, column = np.nonzero(blocks[1:] != blocks[:-1])
    left = np.column_stack([column, row + 1])
    horizontal = np.stack([left, left + np.array([1, 0])], axis=1)
    return np.concatenate([vertical, horizontal]).astype(np.float64)
