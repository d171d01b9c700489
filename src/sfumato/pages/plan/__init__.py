"""The page of a plan: one small HTML file without scripts, to mail to the people who decide.

Its picture shows error against people, with a line per mechanism; it needs the ``charts`` extra.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from sfumato.foundation.formatting import format_percent
from sfumato.pages.markup import (
    Html,
    fill,
    fill_each,
    join,
    number_row,
    offline_document,
    read_asset,
    render,
)
from sfumato.pages.pictures import (
    BAR,
    DARK,
    FAINT,
    INK,
    MAP_SCALE,
    PALE,
    PROMISE_SCALE,
    WHISKER,
    figure_png,
    figure_svg,
    hide_sides,
    require_matplotlib,
)
from sfumato.planning import MAX_PEOPLE, Plan, PlanRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plan_page", "plan_png", "plan_svg"]

_LINES = {  # colour and dashes
    "classical": (FAINT, (0, (1.2, 1.6))),
    "exponential": (MAP_SCALE[2], (0, (2.5, 1.2))),
    "hadamard": (PROMISE_SCALE[1], (0, (5, 2))),
    "best": (BAR, "-"),
    "own": (INK, (0, (4, 1.5, 1, 1.5))),
}
_BROAD = 2.6  # width of the plan's own line
_THIN = 1.8
_MEASURES = {
    "tv": "total variation error",
    "symbol": "error of the share known worst",
    "total": "error of the total",
    "l2": "Euclidean error",
}
_CROWDS = {
    "worst": "hardest distribution",
    "uniform": "people spread evenly",
    "given": "distribution as given",
}
_DECADES = 2  # shown on either side of the plan's number of people
_POINTS = 9  # on a curve that must be simulated point by point
_MAX_ERROR = 20.0  # an error above 1 means that nothing is learned; more need not be shown


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


# --- the picture ----------------------------------------------------------------------------------


def plan_png(plan: Plan) -> bytes:
    """Return the picture as a PNG file."""
    return figure_png(_figure(plan))


def plan_svg(plan: Plan) -> str:
    """Return the picture as an ``<svg>`` element. Equal plans give equal bytes."""
    require_matplotlib()
    return figure_svg(lambda: _figure(plan), salt="sfumato")


def _figure(plan: Plan) -> "Figure":
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.6), layout="constrained")
    axes = figure.add_subplot()
    low, high = _people_range(plan)
    for row in plan.rows:
        if row.available:
            _draw_line(axes, plan, row, low, high)
    _draw_goal(axes, plan)
    _draw_point(axes, plan)
    _set_scales(axes, low, high)
    _label_axes(axes, plan)
    return figure


def _people_range(plan: Plan) -> tuple[float, float]:
    """Return two decades on either side of the plan's people, and all people that a goal needs."""
    centre = math.log10(plan.people or MAX_PEOPLE)
    low = math.floor(centre) - _DECADES
    high = math.ceil(centre) + _DECADES
    for row in plan.rows:
        if row.figures is not None:
            high = max(high, math.ceil(math.log10(row.figures.people) + 0.3))
    return 10.0 ** max(low, 1), 10.0 ** min(high, 12)


def _draw_line(axes: "Axes", plan: Plan, row: PlanRow, low: float, high: float) -> None:
    colour, style = _LINES[row.name]
    width = _THIN
    layer = 3
    if row.name == plan.chosen:  # solid, broad and below, so that lines which coincide show on top
        style = "-"
        width = _BROAD
        layer = 2
    points = 2 if plan.reading == "unbiased" else _POINTS
    people = np.unique(np.rint(np.geomspace(low, high, points)).astype(np.int64)).tolist()
    errors = [row.figures_at(n).error for n in people]
    axes.plot(
        people,
        errors,
        color=colour,
        linestyle=style,
        linewidth=width,
        label=row.title,
        zorder=layer,
    )
    if row.figures is not None:
        axes.plot([row.figures.people], [row.figures.error], "o", ms=5, color=colour, zorder=5)


def _draw_goal(axes: "Axes", plan: Plan) -> None:
    if plan.goal is None:
        return
    axes.axhline(plan.goal, color=WHISKER, linewidth=1)
    axes.annotate(
        f"goal {plan.goal:g}",
        (1, plan.goal),
        xycoords=("axes fraction", "data"),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        color=WHISKER,
        fontsize=9,
    )


def _draw_point(axes: "Axes", plan: Plan) -> None:
    """Ring the plan's own point."""
    if plan.people is None or plan.error is None:
        return
    axes.plot([plan.people], [plan.error], "o", ms=8, mfc="none", mec=WHISKER, mew=1.6, zorder=6)
    axes.annotate(
        f"{plan.people:,} people, {plan.error:.3g}",
        (plan.people, plan.error),
        xytext=(-8, -15),
        textcoords="offset points",
        ha="right",
        color=WHISKER,
        fontsize=9,
        zorder=6,
    )


def _set_scales(axes: "Axes", low: float, high: float) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, min(top, _MAX_ERROR))


def _label_axes(axes: "Axes", plan: Plan) -> None:
    axes.set_xlabel("people", color=INK)
    axes.set_ylabel(f"{_MEASURES[plan.measure]}, {100 * plan.confidence:.6g} %", color=INK)
    title = f"{_CROWDS[plan.distribution]}; {plan.reading} estimate"
    axes.set_title(title, loc="left", fontsize=10, color=FAINT)
    axes.grid(color=PALE, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, which="both")
    hide_sides(axes, "top", "right")
    for side in ("left", "bottom"):
        axes.spines[side].set_color(PALE)
    axes.legend(loc="best", frameon=False, fontsize=9, labelcolor=INK)
