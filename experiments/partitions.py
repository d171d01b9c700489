"""What the paper's conclusion asks for: blocks that are not uniform, beside the uniform tiles of its table.

Tiles, H3 hexagons and the surroundings of cities cut the same map into about as many blocks; ε is the same. Error is
not all that differs: a block shows where somebody is, and blocks around cities are small where people are. So each
partition is told with the number of cells among which a typical person hides.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato.contexts import Blocks, Uniform
from sfumato.domains import GridDomain
from sfumato.domains.partitions import grid_tiles, nearest_places
from sfumato.errors import MissingExtra
from sfumato.foundation.arrays import Symbols
from sfumato.paper.checkins import Crowd, crowd_of, map_grid
from sfumato.paper.experiment import ExperimentResult, RunOptions
from sfumato.paper.gowalla import PER_RECORD
from sfumato.paper.population import CREDIT, Places, american_places
from sfumato.paper.repeats import Repeated, repeated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Hiding", "Partition", "all_partitions", "partitions"]

_EPSILON = 1.0
_DEGREE = 111.2  # kilometres from one parallel to the next
_KILOMETRES_APART = {
    2: 100,
    3: 40,
}  # for each resolution of H3: between cities, so that no block is tiny
_TITLE = "Decoded well, blocks around cities give smaller errors; but they hide people among fewer places"
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
    """Blocks with a name, and what a report shows by naming its block, in words."""

    name: str
    kind: str
    block_of: Symbols
    reveals: str


@dataclass(frozen=True)
class Hiding:
    """How many blocks there are, and among how many cells people hide in them."""

    blocks: int
    largest: int
    typical: int
    alone: float

    @classmethod
    def of(cls, block_of: Symbols, counts: Symbols) -> "Hiding":
        """``typical`` is the median over people, ``alone`` the share of people whose block is a single cell.

        >>> Hiding.of(np.array([0, 0, 0, 1]), np.array([1, 1, 2, 1]))
        Hiding(blocks=2, largest=3, typical=3, alone=0.2)
        """
        sizes = np.bincount(block_of)
        own = sizes[block_of]
        ordered = np.argsort(own, kind="stable")
        median = np.searchsorted(np.cumsum(counts[ordered]), (counts.sum() + 1) // 2)
        alone = float(counts[own == 1].sum() / counts.sum())
        return cls(int(np.count_nonzero(sizes)), int(sizes.max()), int(own[ordered][median]), alone)


def partitions(
    options: RunOptions,
    *,
    checkins: str | None = None,
    grid: str | None = None,
    workers: int | None = None,
) -> ExperimentResult:
    """Both schemes on uniform tiles, H3 hexagons and the surroundings of cities; data as for ``gowalla``."""
    crowd, domain = crowd_of(checkins, grid, options.on_progress), map_grid()
    options.on_progress(f"{crowd} on {domain.cells:,} cells")
    compared = {each.name: each for each in all_partitions(domain, american_places())}
    hiding = {name: Hiding.of(each.block_of, crowd.counts) for name, each in compared.items()}
    contexts = {name: _context(domain, each.block_of) for name, each in compared.items()}
    runs = options.repetitions(full=16, quick=1)
    found = repeated(
        contexts, crowd.counts, runs, options.seed, on_progress=options.on_progress, workers=workers
    )
    return ExperimentResult(
        name="partitions",
        title=_TITLE,
        summary=_summary(crowd, runs, hiding, found),
        columns=_COLUMNS,
        rows=tuple(
            (
                name,
                hiding[name].blocks,
                hiding[name].largest,
                hiding[name].typical,
                f"{hiding[name].alone:.1%}",
                str(each.paper),
                str(each.best),
                compared[name].reveals,
            )
            for name, each in found.items()
        ),
        data=[
            {
                "partition": name,
                "blocks": hiding[name].blocks,
                "largest_block": hiding[name].largest,
                "typical_block": hiding[name].typical,
                "share_alone": hiding[name].alone,
                "reveals": compared[name].reveals,
                "hadamard_projection": each.paper.in_json(),
                "best": each.best.in_json(),
            }
            for name, each in found.items()
        ],
        figure=lambda: _figure(domain, crowd, compared, hiding, found),
        notes=(
            crowd.note,
            *((_CIRCULAR,) if checkins is None and grid is None else ()),
            f"Places: {CREDIT}. A cell belongs to the block of what is nearest to its centre. ε = 1 inside each block.",
            "Errors of partitions are fair to compare only beside what they reveal: somebody whose block is a single "
            "cell is not hidden at all, whatever ε is.",
            PER_RECORD,
        ),
    )


def all_partitions(domain: GridDomain, places: Places) -> list[Partition]:
    """No blocks; then, for hexagons of two resolutions, about as many tiles and cities as there are hexagons."""
    found = [Partition("no blocks (LDP)", "none", np.zeros(domain.size, dtype=np.int64), "nothing")]
    for resolution, kilometres in _KILOMETRES_APART.items():
        hexagons = _hexagons(domain, resolution)
        number = int(hexagons.block_of.max()) + 1
        found += [_tiles(domain, number), hexagons, _apart(domain, places, number, kilometres)]
        found += [_cities(domain, places, number)]
    return found


def _tiles(domain: GridDomain, number: int) -> Partition:
    """About so many tiles, as square as they can be in cells."""
    height, width = domain.shape
    rows = round(math.sqrt(number * height / width))
    columns = round(number / rows)
    latitudes = domain.centres()[0]
    step = (latitudes[-1] - latitudes[0]) / (height - 1)
    tall = _DEGREE * step * height / rows
    wide = _DEGREE * step * width / columns * math.cos(math.radians(float(latitudes.mean())))
    reveals = f"the tile, some {tall:.0f} km tall and {wide:.0f} km wide"
    return Partition(
        f"tiles ({rows},{columns})", "tiles", grid_tiles(domain, rows, columns), reveals
    )


def _hexagons(domain: GridDomain, resolution: int) -> Partition:
    """The H3 cell that holds the centre of each cell of the map."""
    try:
        import h3
    except ImportError:
        raise MissingExtra("H3 cells need the h3 package: pip install 'sfumato[geo]'") from None
    centres = zip(*(axis.tolist() for axis in domain.centres()), strict=True)
    _, block_of = np.unique(
        [h3.latlng_to_cell(*centre, resolution) for centre in centres], return_inverse=True
    )
    across = math.sqrt(
        h3.average_hexagon_area(resolution, unit="km^2") * 2 / math.sqrt(3)
    )  # from side to side
    reveals = f"the hexagon, some {across:.0f} km across"
    return Partition(
        f"H3 hexagons, resolution {resolution}", "hexagons", block_of.astype(np.int64), reveals
    )


def _cities(domain: GridDomain, places: Places, number: int) -> Partition:
    chosen = places.largest(number)
    reveals = (
        f"the nearest of {number:,} cities of {int(chosen.population.min()):,} people and more"
    )
    return Partition(f"around {number:,} cities", "cities", _around(domain, chosen), reveals)


def _apart(domain: GridDomain, places: Places, number: int, kilometres: int) -> Partition:
    chosen = places.largest_apart(number, kilometres)
    reveals = f"the nearest of {chosen.population.size:,} towns, no two within {kilometres} km"
    return Partition(
        f"around towns {kilometres} km apart", "towns apart", _around(domain, chosen), reveals
    )


def _around(domain: GridDomain, places: Places) -> Symbols:
    """A place that is nearest to no cell has no block."""
    _, block_of = np.unique(
        nearest_places(domain, places.latitudes, places.longitudes), return_inverse=True
    )
    return block_of.astype(np.int64)


def _context(domain: GridDomain, block_of: Symbols) -> Uniform | Blocks:
    return (
        Blocks(block_of, _EPSILON, domain=domain) if block_of.any() else Uniform(domain, _EPSILON)
    )


def _summary(
    crowd: Crowd, runs: int, hiding: Mapping[str, Hiding], found: Mapping[str, Repeated]
) -> str:
    tiles, _, apart, cities = list(found)[-4:]
    told = ", ".join(
        f"{found[name].best.mean:.3f} with {name} (a typical person hides among {hiding[name].typical:,} cells)"
        for name in (tiles, apart, cities)
    )
    again = "once" if runs == 1 else f"{runs} times"
    return f"{crowd}, randomised {again}. Total variation error of the best here: {told}."


def _figure(
    domain: GridDomain,
    crowd: Crowd,
    compared: Mapping[str, Partition],
    hiding: Mapping[str, Hiding],
    found: Mapping[str, Repeated],
) -> "Figure":
    from experiments.partitions_figure import drawn_partitions

    return drawn_partitions(_TITLE, domain, crowd, compared, hiding, found)
