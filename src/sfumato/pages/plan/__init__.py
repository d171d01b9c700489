"""The plan page: a small HTML file without scripts, to email to decision-makers.

Its chart shows the error against the number of people, with one curve per mechanism.
"""

import math
from collections.abc import Iterable

import numpy as np

from sfumato.charts import Curve, CurveChart, Marker, Rule, log_axis
from sfumato.foundation.formatting import format_number, format_percent
from sfumato.pages.markup import (
    Html,
    chart_html,
    chart_link,
    fill,
    fill_each,
    join,
    offline_document,
    read_asset,
    render,
)
from sfumato.planning import Plan, PlanRow

_CHOSEN_COLOUR = "bar"
_LINES = {  # the colour and the dashes of each mechanism that is not chosen
    "classical": ("ink", "2 4"),
    "exponential": ("good", "7 4"),
    "hadamard": ("promise3", "10 3 2 3"),
    "best": ("map6", "4 3"),
    "own": ("ink", "12 4"),
}
_MEASURE_TITLES = {
    "tv": "total variation error",
    "symbol": "error of the least accurate share",
    "total": "error of the total",
    "l2": "Euclidean error",
}
_DISTRIBUTION_TITLES = {
    "worst": "worst population",
    "uniform": "even shares",
    "given": "shares as given",
}
_MAX_ERRORS = {"tv": 1.0, "symbol": 1.0, "l2": math.sqrt(2)}  # larger errors are impossible
_DECADES_AFTER = 1.5  # powers of ten shown after the plan's number of people
_DECADES_AFTER_DOT = 1.0  # after every other row's, to leave room for the goal
_UNREACHED_DECADES = 6  # shown if no number of people is enough
_MAX_EXPONENT = 12
_SIMULATED_POINT_COUNT = 9  # on a curve that must be simulated point by point
_SMALLEST_DECIMAL = 0.99e-5  # smaller errors are written as powers of ten
_PEOPLE_UNITS = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"))


def plan_page(plan: Plan, *, title: str = "Survey plan") -> str:
    """Return the plan page as self-contained HTML."""
    (_, *headings), *table = plan.table()
    chart = plan_chart(plan)
    marks = (
        "Dots are the numbers in the table below; the ring is the plan." if chart.markers else ""
    )
    sections = render(
        "plan/plan.html",
        chart=chart_html(chart),
        chart_file=chart_link(chart, "plan"),
        shape=_shape_sentence(plan),
        marks=marks,
        confidence=format_percent(plan.confidence),
        columns=fill_each('<th scope="col" class="number">$name</th>', name=headings),
        rows=_render_rows(plan, headings, table),
        notes=join(map(_render_note, plan.notes())),
    )
    return offline_document(
        title,
        kicker="Sfumato plan",
        opening=_render_opening(plan),
        sections=sections,
        css=read_asset("plan/plan.css"),
    )


def _render_opening(plan: Plan) -> Html:
    answer, *details = plan.sentences()
    return fill(
        '<p class="$css_class">$answer</p>\n<p>$details</p>',
        css_class="lead" if plan.is_feasible else "lead caution",
        answer=answer,
        details=" ".join(details),
    )


def _shape_sentence(plan: Plan) -> str:
    if plan.estimate == "unbiased":
        return "The error falls with the square root of the number of people."
    return (
        "The error of a decoded estimate falls slowly at first, because it can never be worse than "
        "a guess, and then with the square root of the number of people."
    )


def _render_rows(plan: Plan, headings: list[str], table: Iterable[list[str]]) -> Html:
    """Return a row for each mechanism, with the heading of each number for narrow screens."""
    cell = '<td class="number" data-name="$heading">$number</td>'
    rows = []
    available_rows = [row for row in plan.rows if row.is_available]
    for row, (name, *numbers) in zip(available_rows, table, strict=True):
        class_attribute = Html(' class="chosen"') if row.name == plan.chosen else ""
        cells = fill_each(cell, heading=headings, number=numbers)
        rows.append(
            fill(
                '<tr$class_attribute><th scope="row">$name</th>$cells</tr>',
                class_attribute=class_attribute,
                name=name,
                cells=cells,
            )
        )
    return join(rows, "\n")


def _render_note(note: str) -> Html:
    """Return a paragraph in which commands in backticks are code."""
    parts = []
    for index, text in enumerate(note.split("`")):
        parts.append(fill("<code>$text</code>" if index % 2 else "$text", text=text))
    return fill('<p class="note">$note</p>', note=join(parts))


# --- the chart ------------------------------------------------------------------------------------


def plan_png(plan: Plan) -> bytes:
    """Return the chart as the contents of a PNG file."""
    return plan_chart(plan).to_png()


def plan_svg(plan: Plan) -> str:
    """Return the chart as an ``<svg>`` element. Equal plans give equal bytes."""
    return plan_chart(plan).to_svg()


def plan_chart(plan: Plan) -> CurveChart:
    """Return the error of each available mechanism against the number of people."""
    low, high = _people_range(plan)
    # The chosen curve comes first: it is below the others, so that coinciding curves stay visible.
    rows = [row for row in plan.rows if row.is_available]
    rows.sort(key=lambda row: row.name != plan.chosen)
    curves = tuple(_draw_curve(plan, row, low, high) for row in rows)
    error_low, error_high = _error_range(plan, curves)
    rules: tuple[Rule, ...] = ()
    if plan.goal is not None:
        rules = (Rule(plan.goal, f"goal {plan.goal:g}"),)
    markers = [marker for marker in _draw_markers(plan, rows) if marker.y <= error_high]
    measure = _MEASURE_TITLES[plan.measure]
    error_title = (
        f"{measure}, {format_percent(plan.confidence)} confidence; "
        f"{_DISTRIBUTION_TITLES[plan.distribution]}"
    )
    return CurveChart(
        title="Error against people, one curve per mechanism",
        curves=curves,
        x_axis=log_axis(low, high, _write_people, "people"),
        y_axis=log_axis(error_low, error_high, _write_error, error_title),
        rules=rules,
        markers=tuple(markers),
    )


def _people_range(plan: Plan) -> tuple[float, float]:
    """Return the range of the horizontal axis: powers of ten around the plan's number of people.

    It extends far enough to the right for every row's number of people, and at least as far to the
    left. If these people are too few to learn anything, it is around a number that is enough.
    """
    if plan.people is None or plan.error is None:
        return 10.0 ** (_MAX_EXPONENT - _UNREACHED_DECADES), 10.0**_MAX_EXPONENT
    centre = math.log10(plan.people) + 2 * math.log10(max(plan.error, 1))
    high_exponent = centre + _DECADES_AFTER
    for row in plan.rows:
        if row.figures is not None:
            end = math.log10(row.figures.people) + _DECADES_AFTER_DOT
            high_exponent = max(high_exponent, end)
    high_exponent = min(math.ceil(high_exponent), _MAX_EXPONENT)
    low_exponent = math.floor(2 * centre - high_exponent - 0.1)
    if plan.error > 1:
        low_exponent = math.floor(centre - 0.1)
    low_exponent = max(min(low_exponent, high_exponent - 2), 0)
    return 10.0**low_exponent, 10.0**high_exponent


def _error_range(plan: Plan, curves: Iterable[Curve]) -> tuple[float, float]:
    """Return the range of the error axis. It ends at the largest error that is possible."""
    errors = [y for curve in curves for _, y in curve.points if y > 0]
    high = _MAX_ERRORS.get(plan.measure, max(1.0, plan.error or 0.0))
    low = min(errors, default=high / 10)
    if plan.goal is not None:
        low = min(low, plan.goal)
    low = min(low, high / 10)
    unit = 10.0 ** math.floor(math.log10(low))
    round_low = max(factor * unit for factor in (1, 2, 5) if factor * unit <= low * 1.000001)
    return round_low, high


def _draw_curve(plan: Plan, row: PlanRow, low: float, high: float) -> Curve:
    is_chosen = row.name == plan.chosen
    colour, dashes = _LINES[row.name]
    if is_chosen:
        colour = _CHOSEN_COLOUR
        dashes = ""
    point_count = 2 if plan.estimate == "unbiased" else _SIMULATED_POINT_COUNT
    spaced_counts = np.geomspace(low, high, point_count)
    people_counts = np.unique(np.rint(spaced_counts).astype(np.int64)).tolist()
    points = tuple((float(n), float(row.figures_at(n).error)) for n in people_counts)
    return Curve(row.title, points, colour, dashes, is_chosen)


def _draw_markers(plan: Plan, rows: Iterable[PlanRow]) -> list[Marker]:
    """Return a dot for each row's figures, and a ring around the plan's."""
    markers = []
    for row in rows:
        if row.figures is None or row.figures.error <= 0:
            continue
        is_chosen = row.name == plan.chosen
        colour = _CHOSEN_COLOUR if is_chosen else _LINES[row.name][0]
        markers.append(Marker(row.figures.people, row.figures.error, colour=colour))
    if plan.people is not None and plan.error:
        text = f"{plan.people:,} people, {format_number(plan.error)}"
        markers.append(Marker(plan.people, plan.error, text, is_ring=True))
    return markers


def _write_people(count: float) -> str:
    """Format a number of people, such as 10,000 or 10 million."""
    for unit, name in _PEOPLE_UNITS:
        if count >= unit:
            return f"{count / unit:,.4g} {name}"
    return f"{count:,.0f}"


def _write_error(error: float) -> str:
    """Format an error, such as 0.0002 or 10^-9."""
    if error < _SMALLEST_DECIMAL:
        return f"10^{math.log10(error):.3g}"
    return f"{error:.6f}"
