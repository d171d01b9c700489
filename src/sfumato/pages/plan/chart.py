"""The picture of a plan: error against people, a line per mechanism, the goal marked. Needs the ``charts`` extra."""

import io
import math
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import MissingExtra
from sfumato.pages.style import BAR, FAINT, INK, MAPPED, PALE, PROMISED, WHISKER
from sfumato.planning import Plan, PlanRow
from sfumato.planning.predict import MAX_PEOPLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plan_png", "plan_svg"]

_LOOKS = {
    "classical": (FAINT, (0, (1.2, 1.6))),
    "exponential": (MAPPED[2], (0, (2.5, 1.2))),
    "hadamard": (PROMISED[1], (0, (5, 2))),
    "best": (BAR, "-"),
    "own": (INK, (0, (4, 1.5, 1, 1.5))),
}
_BROAD, _THIN = 2.6, 1.8
_NAMES = {
    "tv": "total variation error",
    "symbol": "error of the share known worst",
    "total": "error of the total",
    "l2": "Euclidean error",
}
_DECADES = 2  # on either side of the people that the plan is about
_POINTS = 9  # of a curve whose every point must be drawn and decoded


def plan_png(plan: Plan) -> bytes:
    """The picture as a PNG file."""
    file = io.BytesIO()
    _figure(plan).savefig(file, format="png", dpi=160)
    return file.getvalue()


def plan_svg(plan: Plan) -> str:
    """The picture as an ``<svg>`` element, with its text as text; the same plan gives the same bytes."""
    import matplotlib as mpl

    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "sfumato"}):
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        _figure(plan).savefig(file, format="svg", transparent=True, metadata=nothing)
    drawn = file.getvalue()
    return drawn[drawn.index("<svg") :]


def _figure(plan: Plan) -> "Figure":
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise MissingExtra(
            "a picture of a plan needs matplotlib: pip install 'sfumato[charts]'"
        ) from None
    canvas = Canvas(figsize=(8.0, 4.6), layout="constrained")
    axes = canvas.add_subplot()
    low, high = _people_shown(plan)
    for row in plan.rows:
        if row.available:
            _draw_line(axes, plan, row, low, high)
    _draw_goal(axes, plan)
    _dress(axes, plan, low, high)
    return canvas


def _people_shown(plan: Plan) -> tuple[float, float]:
    """Two powers of ten on either side of the plan's people, and all people that a goal needs."""
    centre = math.log10(plan.people or MAX_PEOPLE)
    low, high = math.floor(centre) - _DECADES, math.ceil(centre) + _DECADES
    found = [row.figures.people for row in plan.rows if row.figures is not None]
    high = max([high, *(math.ceil(math.log10(people) + 0.3) for people in found)])
    return 10.0 ** max(low, 1), 10.0 ** min(high, 12)


def _draw_line(axes: "Axes", plan: Plan, row: PlanRow, low: float, high: float) -> None:
    colour, dashes = _LOOKS[row.name]
    points = 2 if plan.reading == "unbiased" else _POINTS
    people = np.unique(np.rint(np.geomspace(low, high, points)).astype(np.int64)).tolist()
    errors = [row.figures_at(n).error for n in people]
    # The plan's own line is solid, broad and below: those that coincide with it show on top.
    style, width, front = ("-", _BROAD, 2) if row.name == plan.chosen else (dashes, _THIN, 3)
    axes.plot(
        people,
        errors,
        color=colour,
        linestyle=style,
        linewidth=width,
        label=row.title,
        zorder=front,
    )
    if row.figures is not None:
        axes.plot([row.figures.people], [row.figures.error], "o", ms=5, color=colour, zorder=5)


def _draw_goal(axes: "Axes", plan: Plan) -> None:
    if plan.goal is not None:
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
    if plan.people is not None and plan.error is not None:
        axes.plot(
            [plan.people], [plan.error], "o", ms=8, mfc="none", mec=WHISKER, mew=1.6, zorder=6
        )
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


def _dress(axes: "Axes", plan: Plan, low: float, high: float) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    bottom, top = axes.get_ylim()
    axes.set_ylim(
        bottom, min(top, 20.0)
    )  # beyond 1 there is nothing to be learned, only how much is missing
    axes.set_xlabel("people", color=INK)
    axes.set_ylabel(f"{_NAMES[plan.measure]}, {100 * plan.confidence:.6g} %", color=INK)
    crowd = {
        "worst": "hardest distribution",
        "uniform": "people spread evenly",
        "given": "distribution as given",
    }
    told = f"{crowd[plan.distribution]}; {plan.reading} estimate"
    axes.set_title(told, loc="left", fontsize=10, color=FAINT)
    axes.grid(color=PALE, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, which="both")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(PALE)
    axes.legend(loc="best", frameon=False, fontsize=9, labelcolor=INK)
