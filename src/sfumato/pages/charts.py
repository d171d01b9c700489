"""The figures, in one quiet style: what is promised, and what was learned. Needs the ``charts`` extra."""

import math
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.contexts import Context
from sfumato.domains import GridDomain, Label
from sfumato.errors import InvalidContext, MissingExtra
from sfumato.estimation import Estimate
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.foundation.formatting import format_epsilon, format_odds_factor, format_share
from sfumato.pages.map_cells import cells_to_draw, decades_of, logarithms, stretch_of
from sfumato.pages.png import save_png
from sfumato.pages.style import (
    BAR,
    FAINT,
    FREE,
    INK,
    LONGEST_LABEL,
    MAPPED,
    MOST_BARS,
    PALE,
    PROMISED,
    WHISKER,
    most_frequent,
    places_for,
    short_label,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure  # type: ignore[import-untyped]

__all__ = [
    "LARGEST_HEATMAP",
    "decoded_bars",
    "grid_map",
    "privacy_heatmap",
    "reports_over_time",
    "save_png",
    "unbiased_whiskers",
]

LARGEST_HEATMAP = 30
"""A picture of E is drawn up to this many symbols; a number stands in each square up to twelve."""

_WRITTEN = 12
_MOST_HOURS = 24 * 8


def decoded_bars(estimate: Estimate) -> "Figure":
    """The decoded picture of the most frequent symbols: bars."""
    go = _plotly()
    shown = most_frequent(estimate, MOST_BARS)
    figure = go.Figure(layout=_layout())
    figure.add_bar(
        x=_list(estimate.frequencies[shown]),
        y=_list(np.arange(shown.size)),
        orientation="h",
        name="decoded picture",
        marker_color=BAR,
        hovertext=_readings_told(estimate, shown),
        hoverinfo="text",
    )
    return _symbol_by_symbol(figure, estimate, shown)


def unbiased_whiskers(estimate: Estimate) -> "Figure":
    """The unbiased estimate of the same symbols: diamonds, with whiskers for the 95 % interval.

    A diamond whose estimate lies outside its interval, below nought, stands at the interval's end.
    """
    go = _plotly()
    shown = most_frequent(estimate, MOST_BARS)
    low, high = (bound[shown] for bound in estimate.interval(0.95))
    middle = np.clip(estimate.unbiased[shown], low, high)
    reach = {
        "array": _list(high - middle),
        "arrayminus": _list(middle - low),
        "symmetric": False,
        "type": "data",
    }
    figure = go.Figure(layout=_layout())
    figure.add_scatter(
        x=_list(middle),
        y=_list(np.arange(shown.size)),
        mode="markers",
        name="unbiased estimate, 95 % interval",
        marker={"color": WHISKER, "size": 7, "symbol": "diamond"},
        error_x={**reach, "color": WHISKER, "thickness": 1.6, "width": 4},
        hovertext=_readings_told(estimate, shown),
        hoverinfo="text",
    )
    return _symbol_by_symbol(figure, estimate, shown)


def _symbol_by_symbol(figure: "Figure", estimate: Estimate, shown: NDArray[np.intp]) -> "Figure":
    """A row per symbol, and an axis of shares that is the same for both readings, so that they can be compared."""
    names = [estimate.labels[int(x)] for x in shown]
    bounds = estimate.interval(0.95)[1][shown]
    span = min(float(max(bounds.max(), estimate.frequencies[shown].max())) * 1.03, 1.02)
    ticks = {
        "tickvals": list(range(shown.size)),
        "ticktext": [_marked(name, LONGEST_LABEL) for name in names],
    }
    figure.update_yaxes(**ticks, range=[shown.size - 0.4, -0.6], showgrid=False, automargin=True)
    figure.update_xaxes(tickformat=".3~p", range=[0, span], nticks=7, tickangle=0)
    short = {"ticktext": [_marked(name, 18) for name in names]}
    meta = {"narrow": {"xaxis": {"nticks": 4}, "yaxis": short}}
    figure.update_layout(
        height=74 + 26 * shown.size,
        bargap=0.35,
        margin={"t": 10, "b": 36},
        meta=meta,
        showlegend=False,
    )
    return figure


def _readings_told(estimate: Estimate, shown: NDArray[np.intp]) -> list[str]:
    """What hovering over a symbol tells: both readings, by their names."""
    low, high = estimate.interval(0.95)
    places = places_for(estimate)
    return [
        f"<b>{_marked(estimate.labels[x], 120)}</b><br>decoded {format_share(estimate.frequencies[x], places)}<br>"
        f"unbiased {format_share(estimate.unbiased[x], places)}, 95 % interval {format_share(low[x], places)} to "
        f"{format_share(high[x], places)}"
        for x in shown.tolist()
    ]


def reports_over_time(hours: Sequence[tuple[str, int]]) -> "Figure":
    """How many reports came in each hour, or each day where there are many hours: ``2026-11-15T17``, in UTC."""
    go = _plotly()
    of_day = Counter[str]()
    for hour, reports in hours:
        of_day[hour[:10]] += reports
    shown = (
        [(f"{hour}:00", reports) for hour, reports in hours]
        if len(hours) <= _MOST_HOURS
        else list(of_day.items())
    )
    unit = (
        3_600_000 if len(hours) <= _MOST_HOURS else 24 * 3_600_000
    )  # in milliseconds, as the axis counts
    figure = go.Figure(layout=_layout())
    figure.add_bar(
        x=[time for time, _ in shown],
        y=[reports for _, reports in shown],
        width=0.8 * unit,
        offset=0,
        marker_color=BAR,
        hovertemplate="%{x}<br>%{y:,} reports<extra></extra>",
    )
    figure.update_xaxes(type="date", showgrid=False, nticks=8, tickangle=0)
    figure.update_yaxes(rangemode="tozero", tickformat="~s", nticks=5, automargin=True)
    meta = {"narrow": {"xaxis": {"nticks": 3}}}
    figure.update_layout(height=230, margin={"t": 10, "b": 46}, showlegend=False, meta=meta)
    return figure


def grid_map(grid: GridDomain, frequencies: Floats) -> "Figure":
    """The cells of a grid, coloured by the logarithm of their frequency; empty where it is nought.

    Degrees of longitude are drawn as long as they are in the middle of the map. Maps of more than 100,000 cells are
    drawn with neighbouring cells added up. ``other`` is no place and is left out.
    """
    go = _plotly()
    shares, rows, columns, step = cells_to_draw(grid, frequencies)
    z, bottom, top = logarithms(shares)
    decades = decades_of(bottom, top)
    figure = go.Figure(layout=_layout())
    figure.add_heatmap(
        z=z.astype(np.float32),
        x=_list(np.array(columns, dtype=np.float64) + step / 2),
        y=_list(np.array(rows, dtype=np.float64) + step / 2),
        hovertemplate="%{text}<extra></extra>",  # the page writes the texts: there are as many as cells
        colorscale=_scale(MAPPED, 0, 0.4, 0.75, 1),
        zmin=bottom,
        zmax=top,
        colorbar={
            "orientation": "h",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "thickness": 10,
            "outlinewidth": 0,
            "tickvals": decades,
            "ticktext": [f"{100 * 10.0**decade:.2g} %" for decade in decades],
        },
    )
    stretch = stretch_of(grid)
    height, width = len(rows) * step * stretch, len(columns) * step
    figure.update_xaxes(showgrid=False, ticksuffix="°", constrain="domain", nticks=8, tickangle=0)
    figure.update_yaxes(
        showgrid=False, ticksuffix="°", scaleanchor="x", scaleratio=stretch, constrain="domain"
    )
    meta = {
        "aspect": height / width,
        "rows": rows,
        "columns": columns,
        "narrow": {"xaxis": {"nticks": 4}},
    }
    figure.update_layout(
        plot_bgcolor=FREE, meta=meta, margin={"t": 10, "b": 70, "l": 50}, height=520
    )
    return figure


def privacy_heatmap(context: Context) -> "Figure":
    """E as a picture: the darker a square, the harder its two answers are to tell apart; ∞ promises nothing."""
    go = _plotly()
    k = context.size
    if k > LARGEST_HEATMAP:
        raise InvalidContext(
            f"a picture of E is drawn up to {LARGEST_HEATMAP} symbols; this context has {k}."
        )
    E, labels = context.matrix(), context.domain.labels
    promised = np.isfinite(E) & ~np.eye(k, dtype=np.bool_)
    figure = go.Figure(layout=_layout())
    layers = (
        (np.where(promised, np.nan, 0.0), [[0, FREE], [1, FREE]], FAINT),
        (np.where(promised, E, np.nan), _scale(PROMISED, 0, 0.5, 1), None),
    )
    for z, scale, ink in layers:
        figure.add_heatmap(
            z=[[None if math.isnan(entry) else entry for entry in row] for row in z.tolist()],
            text=_written(E, np.isfinite(z)) if k <= _WRITTEN else None,
            texttemplate="%{text}" if k <= _WRITTEN else None,
            textfont={"color": ink, "size": 13} if ink else {"size": 13},
            hovertext=_told(context, np.isfinite(z)),
            hoverinfo="text",
            colorscale=scale,
            zmin=0,
            zmax=max(4.0, float(E[promised].max(initial=0.0))),
            showscale=False,
            xgap=2,
            ygap=2,
        )
    ticks = {
        "tickvals": list(range(k)),
        "ticktext": [_marked(name, 18) for name in labels],
        "showgrid": False,
    }
    figure.update_xaxes(
        **ticks, side="top", title="… against this one", constrain="domain", automargin=True
    )
    figure.update_yaxes(
        **ticks,
        title="odds of this answer …",
        autorange="reversed",
        scaleanchor="x",
        constrain="domain",
        automargin=True,
    )
    short = [_marked(name, 9) for name in labels]
    meta = {"square": True, "narrow": {"xaxis": {"ticktext": short}, "yaxis": {"ticktext": short}}}
    figure.update_layout(
        height=150 + max(24, 64 - 5 * k) * k, margin={"t": 70, "b": 10, "r": 20}, meta=meta
    )
    return figure


def _written(E: Floats, where: Booleans) -> list[list[str]]:
    """The number in each square, for the squares of one layer."""
    k = len(E)
    texts = [[format_epsilon(entry).removeprefix("≈ ") for entry in row] for row in E.tolist()]
    return [
        [("–" if x == x2 else texts[x][x2]) if where[x, x2] else "" for x2 in range(k)]
        for x in range(k)
    ]


def _told(context: Context, where: Booleans) -> list[list[str]]:
    """What hovering over a square tells, for the squares of one layer."""
    labels, E = context.domain.labels, context.matrix()
    symbols = range(context.size)
    return [
        [
            _pair_told(labels[x], labels[x2], float(E[x, x2])) if where[x, x2] else ""
            for x2 in symbols
        ]
        for x in symbols
    ]


def _pair_told(first: Label, second: Label, epsilon: float) -> str:
    if first == second:
        return f"{_marked(first, 60)}: the same answer"
    pair = f"odds of <b>{_marked(first, 60)}</b> against <b>{_marked(second, 60)}</b><br>"
    if math.isinf(epsilon):
        return f"{pair}nothing is promised for the pair itself"
    return (
        f"{pair}from 1:1 to at most {format_odds_factor(epsilon)}:1 (ε = {format_epsilon(epsilon)})"
    )


def _layout() -> dict[str, Any]:
    axis = {
        "gridcolor": PALE,
        "zeroline": False,
        "linecolor": PALE,
        "tickcolor": PALE,
        "fixedrange": False,
    }
    return {
        "template": "none",
        "font": {
            "family": "system-ui, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif",
            "size": 13,
            "color": INK,
        },
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 10, "r": 16, "t": 20, "b": 40},
        "xaxis": axis,
        "yaxis": dict(axis),
        "dragmode": False,
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": FAINT, "activecolor": INK},
        "hoverlabel": {
            "align": "left",
            "bgcolor": FREE,
            "bordercolor": FAINT,
            "font": {"color": INK},
        },
    }


def _scale(colours: tuple[str, ...], *places: float) -> list[list[object]]:
    return [[place, colour] for place, colour in zip(places, colours, strict=True)]


def _list(values: Any) -> list[float]:  # noqa: ANN401 - any array
    return np.asarray(values).tolist()


def _marked(label: Label, longest: int) -> str:
    """A label that plotly shows as it is; it would take <b> and <a href> for marks, and $…$ for mathematics."""
    return escape(short_label(label, longest), quote=False).replace("$", "&#36;")


def _plotly() -> Any:  # noqa: ANN401 - plotly has no types
    try:
        import plotly.graph_objects as go  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise MissingExtra("charts need plotly: pip install 'sfumato[charts]'") from None
    return go
