"""The plan page: a small HTML file without scripts, to email to decision-makers.

Its figure shows the error against the number of people, with one line per mechanism. Requires the
``charts`` extra.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

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
    FAINT,
    INK,
    LIGHT_TO_DARK,
    MAP_SCALE,
    PROMISE_SCALE,
    WHISKER,
    figure_png,
    figure_svg,
    require_matplotlib,
    style_axes,
)
from sfumato.planning import MAX_PEOPLE, Plan, PlanRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINE_STYLES = {  # the colour and line style of each mechanism
    "classical": (FAINT, (0, (1.2, 1.6))),
    "exponential": (MAP_SCALE[2], (0, (2.5, 1.2))),
    "hadamard": (PROMISE_SCALE[1], (0, (5, 2))),
    "best": (BAR, "-"),
    "own": (INK, (0, (4, 1.5, 1, 1.5))),
}
_LINE_WIDTH = 1.8
_CHOSEN_LINE_WIDTH = 2.6
_MEASURE_TITLES = {
    "tv": "total variation error",
    "symbol": "error of the least accurate share",
    "total": "error of the total",
    "l2": "Euclidean error",
}
_DISTRIBUTION_TITLES = {
    "worst": "hardest distribution",
    "uniform": "people spread evenly",
    "given": "distribution as given",
}
_DECADES_PER_SIDE = 2  # powers of ten shown on either side of the plan's number of people
_SIMULATED_POINT_COUNT = 9  # on a curve that must be simulated point by point
_MAX_ERROR = 20.0  # the end of the error axis; errors above 1 are meaningless anyway


def plan_page(plan: Plan, *, title: str = "Survey plan") -> str:
    """Return the plan page as self-contained HTML."""
    (mechanism_heading, *headings), *table = plan.table()
    sections = render(
        "plan/plan.html",
        chart=_render_chart(plan),
        confidence=format_percent(plan.confidence),
        mechanism=mechanism_heading,
        columns=fill_each('<th scope="col" class="number">$name</th>', name=headings),
        rows=_render_rows(plan, table),
        notes=fill_each('<p class="note">$note</p>', note=plan.notes()),
    )
    return offline_document(
        title,
        kicker="Sfumato plan",
        opening=_render_opening(plan),
        sections=sections,
        css=read_asset("plan/plan.css") + _colour_variables(),
    )


def _render_opening(plan: Plan) -> Html:
    answer, *details = plan.sentences()
    return fill(
        '<p class="$css_class">$answer</p>\n<p>$details</p>',
        css_class="lead" if plan.is_feasible else "lead caution",
        answer=answer,
        details=" ".join(details),
    )


def _render_rows(plan: Plan, table: Iterable[Iterable[str]]) -> Html:
    rows = []
    available_rows = [row for row in plan.rows if row.is_available]
    for row, (name, *numbers) in zip(available_rows, table, strict=True):
        css_class = "chosen" if row.name == plan.chosen else ""
        rows.append(number_row(name, numbers, css_class))
    return join(rows)


def _render_chart(plan: Plan) -> Html:
    """Return the chart with CSS variables as colours, so that they can change on a dark page."""
    svg = plan_svg(plan)
    for colour in LIGHT_TO_DARK:
        svg = svg.replace(colour, f"var({_css_variable(colour)})")
    return Html(svg)


def _colour_variables() -> str:
    light = []
    dark = []
    for colour, dark_colour in LIGHT_TO_DARK.items():
        light.append(f"{_css_variable(colour)}: {colour};")
        dark.append(f"{_css_variable(colour)}: {dark_colour};")
    return (
        f".plot {{ {' '.join(light)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ .plot {{ {' '.join(dark)} }} }}\n"
    )


def _css_variable(colour: str) -> str:
    return f"--c{colour[1:]}"


# --- the figure -----------------------------------------------------------------------------------


def plan_png(plan: Plan) -> bytes:
    """Return the figure as the contents of a PNG file."""
    return figure_png(_draw_figure(plan))


def plan_svg(plan: Plan) -> str:
    """Return the figure as an ``<svg>`` element. Equal plans give equal bytes."""
    return figure_svg(lambda: _draw_figure(plan), salt="sfumato")


def _draw_figure(plan: Plan) -> "Figure":
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.6), layout="constrained")
    axes = figure.add_subplot()
    for row in plan.rows:
        if row.is_available:
            _draw_line(axes, plan, row)
    _draw_goal(axes, plan)
    _style_axes(axes, plan)
    return figure


def _people_range(plan: Plan) -> tuple[float, float]:
    """Return the range of the horizontal axis: around the plan's number of people.

    It extends far enough to the right for every row's number of people, but not beyond 10^12.
    """
    centre = math.log10(plan.people or MAX_PEOPLE)
    low_exponent = math.floor(centre) - _DECADES_PER_SIDE
    high_exponent = math.ceil(centre) + _DECADES_PER_SIDE
    for row in plan.rows:
        if row.figures is not None:
            row_exponent = math.ceil(math.log10(row.figures.people) + 0.3)
            high_exponent = max(high_exponent, row_exponent)
    return 10.0 ** max(low_exponent, 1), 10.0 ** min(high_exponent, 12)


def _draw_line(axes: "Axes", plan: Plan, row: PlanRow) -> None:
    colour, style = _LINE_STYLES[row.name]
    width = _LINE_WIDTH
    layer = 3
    if row.name == plan.chosen:  # thick and at the back, so that coinciding lines stay visible
        style = "-"
        width = _CHOSEN_LINE_WIDTH
        layer = 2
    point_count = 2 if plan.estimate == "unbiased" else _SIMULATED_POINT_COUNT
    spaced_counts = np.geomspace(*_people_range(plan), point_count)
    people_counts = np.unique(np.rint(spaced_counts).astype(np.int64)).tolist()
    errors = [row.figures_at(n).error for n in people_counts]
    axes.plot(
        people_counts,
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
    """Draw a line at the goal, and a ring around the plan's number of people and error."""
    note_style: dict[str, Any] = {
        "textcoords": "offset points",
        "ha": "right",
        "color": WHISKER,
        "fontsize": 9,
    }
    if plan.goal is not None:
        axes.axhline(plan.goal, color=WHISKER, linewidth=1)
        right_end = (1, plan.goal)
        coordinates = ("axes fraction", "data")
        axes.annotate(f"goal {plan.goal:g}", right_end, (-4, 4), coordinates, **note_style)
    if plan.people is None or plan.error is None:
        return
    point = (plan.people, plan.error)
    axes.plot(*point, "o", ms=8, mfc="none", mec=WHISKER, mew=1.6, zorder=6)
    text = f"{plan.people:,} people, {plan.error:.3g}"
    axes.annotate(text, point, (-8, -15), zorder=6, **note_style)


def _style_axes(axes: "Axes", plan: Plan) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(_people_range(plan))
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, min(top, _MAX_ERROR))
    axes.set_xlabel("people", color=INK)
    axes.set_ylabel(
        f"{_MEASURE_TITLES[plan.measure]}, {100 * plan.confidence:.6g}% confidence", color=INK
    )
    title = f"{_DISTRIBUTION_TITLES[plan.distribution]}; {plan.estimate} estimate"
    axes.set_title(title, loc="left", fontsize=10, color=FAINT)
    style_axes(axes)
    axes.legend(loc="best", frameon=False, fontsize=9, labelcolor=INK)
