"""The demo's page: the same people under several promises, as maps side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.charts import Panel, SmallMultiples
from sfumato.charts.maps import MapChart
from sfumato.pages.markup import chart_html, fill, fill_each, offline_document, render

__all__ = ["PromiseMap", "demo_page"]


@dataclass(frozen=True, eq=False)
class PromiseMap:
    """The map that one promise gives.

    ``error``: the share of people counted in a wrong cell, or ``None`` for the true map.
    ``cells``: the number of cells among which the promise hides a typical person.
    """

    heading: str
    explanation: str
    chart: MapChart
    error: float | None
    bits: int | None = None
    cells: int | None = None


def demo_page(title: str, people: int, maps: Sequence[PromiseMap], credit: str) -> str:
    """Return the page as self-contained HTML without scripts."""
    panels = []
    for promise_map in maps:
        text = "the truth, which nobody sees"
        if promise_map.error is not None:
            text = f"{promise_map.error:.0%} of people in the wrong cell"
        panels.append(Panel(promise_map.heading, promise_map.chart, text))
    measured = [promise_map for promise_map in maps if promise_map.error is not None]
    row = (
        '<tr><th scope="row">$heading</th><td class="text">$explanation</td>'
        '<td class="number" data-name="cells">$cells</td>'
        '<td class="number" data-name="error">$error</td>'
        '<td class="number" data-name="bits">$bits</td></tr>'
    )
    rows = fill_each(
        row,
        heading=[item.heading for item in measured],
        explanation=[item.explanation for item in measured],
        cells=[f"{item.cells:,}" for item in measured],
        error=[f"{item.error:.1%}" for item in measured],
        bits=[item.bits for item in measured],
    )
    first = measured[0]
    last = measured[-1]
    opening = fill(
        '<p class="headline"><b>$before</b> <span>→</span> <strong>$after</strong> '
        "<span>of people in the wrong cell</span></p>\n"
        '<p class="lead">$people people told where they live, each protected by the same ε. '
        "Hiding a home in the whole country costs the map. Hiding it among the places nearby "
        "keeps it.</p>",
        before=f"{first.error:.0%}",
        after=f"{last.error:.0%}",
        people=f"{people:,}",
    )
    sections = render(
        "demo/demo.html",
        chart=chart_html(SmallMultiples("Maps under each promise", tuple(panels), 2)),
        rows=rows,
        credit=credit,
    )
    return offline_document(title, kicker="Sfumato demo", opening=opening, sections=sections)
