"""The page of a plan: one small HTML file without scripts, to mail to those who decide."""

from collections.abc import Iterable

from sfumato.foundation.formatting import format_percent
from sfumato.pages.document import offline_document
from sfumato.pages.markup import Html, fill, fill_each, join, number_row, read_asset, render
from sfumato.pages.plan.chart import plan_svg
from sfumato.pages.style import DARK
from sfumato.planning import Plan

__all__ = ["plan_page"]


def plan_page(plan: Plan, *, title: str = "Plan of a survey") -> str:
    """Return the page as HTML. It links to nothing outside itself."""
    (mechanism, *columns), *table = plan.table()
    sections = render(
        "plan/plan.html",
        chart=_chart(plan),
        confidence=format_percent(plan.confidence),
        mechanism=mechanism,
        columns=fill_each('<th scope="col" class="number">$name</th>', name=columns),
        rows=_rows(plan, table),
        notes=fill_each('<p class="note">$note</p>', note=plan.notes()),
    )
    return offline_document(
        title,
        kicker="Sfumato plan",
        opening=_opening(plan),
        sections=sections,
        css=read_asset("plan/plan.css") + _colour_variables(),
    )


def _opening(plan: Plan) -> Html:
    answer, *details = plan.sentences()
    return fill(
        '<p class="$style">$answer</p>\n<p>$details</p>',
        style="lead" if plan.feasible else "lead caution",
        answer=answer,
        details=" ".join(details),
    )


def _rows(plan: Plan, table: Iterable[Iterable[str]]) -> Html:
    rows = []
    for mechanism, (name, *numbers) in zip(plan.rows, table, strict=True):
        style = "chosen" if mechanism.name == plan.chosen else ""
        rows.append(number_row(name, numbers, style))
    return join(rows)


def _chart(plan: Plan) -> Html:
    """Draw the plan with variables for colours, so that a dark page has a dark picture."""
    svg = plan_svg(plan)
    for colour in DARK:
        svg = svg.replace(colour, f"var({_variable(colour)})")
    return Html(svg)


def _colour_variables() -> str:
    light = " ".join(f"{_variable(colour)}: {colour};" for colour in DARK)
    dark = " ".join(f"{_variable(colour)}: {partner};" for colour, partner in DARK.items())
    return (
        f".plot {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ .plot {{ {dark} }} }}\n"
    )


def _variable(colour: str) -> str:
    return f"--c{colour[1:]}"
