"""Plotly figures for the report page and the dashboard. Requires the ``charts`` extra."""

import base64
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from sfumato.contexts import Context
from sfumato.domains import GridDomain, Label
from sfumato.errors import InvalidContext, MissingExtra
from sfumato.estimation import Estimate
from sfumato.foundation.arrays import Floats
from sfumato.foundation.formatting import format_epsilon, format_odds_factor
from sfumato.foundation.installation import install_hint
from sfumato.pages.map_cells import arrange_cells, decade_ticks, latitude_stretch, log_shares
from sfumato.pages.pictures import (
    BACKGROUND,
    BAR,
    FAINT,
    INK,
    MAP_SCALE,
    PALE,
    PROMISE_SCALE,
    WHISKER,
)
from sfumato.pages.promise import MAX_LABEL_LENGTH, shorten_label
from sfumato.pages.top_answers import MAX_BARS, TopAnswers
from sfumato.survey import Survey

if TYPE_CHECKING:
    from plotly.graph_objects import Figure  # type: ignore[import-untyped]

Figures = dict[str, "Figure"]
"""Figures, keyed by the id of their element on the page."""

MAX_HEATMAP_SYMBOLS = 30
"""The largest number of symbols for which a privacy matrix is drawn."""

_MAX_NUMBERED_SYMBOLS = 12  # larger heatmaps have no numbers in their squares
_MAX_HOURLY_BARS = 24 * 8  # with more hours, each bar is a day
_HOUR_MS = 3_600_000  # plotly's date axis is in milliseconds
_DAY_MS = 24 * _HOUR_MS
_SHORT_LABEL_LENGTH = 18  # characters
_TINY_LABEL_LENGTH = 9
# Matches the code in plotly.js that adds a style element. The group is the element's id.
_STYLE_ID_PATTERN = (
    r'getElementById\("([0-9a-f]{64})"\)\)\{var \w+=document\.createElement\("style"\)'
)


# --- the decoded and unbiased estimates -----------------------------------------------------------


def bar_chart(estimate: Estimate) -> "Figure":
    """Draw the decoded frequencies of the most frequent symbols as bars."""
    answers = TopAnswers.from_estimate(estimate, MAX_BARS)
    figure = _new_figure()
    figure.add_bar(
        x=answers.decoded.tolist(),
        y=list(range(len(answers.labels))),
        orientation="h",
        name="decoded estimate",
        marker_color=BAR,
        hovertext=_hover_texts(answers),
        hoverinfo="text",
    )
    return _lay_out_rows(figure, answers)


def whisker_chart(estimate: Estimate) -> "Figure":
    """Draw the unbiased estimates of the most frequent symbols, with their 95% intervals.

    An estimate outside its interval, for example below zero, is drawn at the nearer end.
    """
    answers = TopAnswers.from_estimate(estimate, MAX_BARS)
    whiskers = {
        "type": "data",
        "symmetric": False,
        "array": (answers.high - answers.points_to_draw).tolist(),
        "arrayminus": (answers.points_to_draw - answers.low).tolist(),
        "color": WHISKER,
        "thickness": 1.6,
        "width": 4,
    }
    figure = _new_figure()
    figure.add_scatter(
        x=answers.points_to_draw.tolist(),
        y=list(range(len(answers.labels))),
        mode="markers",
        name="unbiased estimate, 95% interval",
        marker={"color": WHISKER, "size": 7, "symbol": "diamond"},
        error_x=whiskers,
        hovertext=_hover_texts(answers),
        hoverinfo="text",
    )
    return _lay_out_rows(figure, answers)


def _lay_out_rows(figure: "Figure", answers: TopAnswers) -> "Figure":
    """Label the rows and set the layout, with the same horizontal axis in both charts."""
    row_count = len(answers.labels)
    max_share = float(max(answers.high.max(), answers.decoded.max()))
    axis_end = min(1.03 * max_share, 1.02)
    figure.update_xaxes(tickformat=".3~p", range=[0, axis_end], nticks=7, tickangle=0)
    figure.update_yaxes(
        tickvals=list(range(row_count)),
        ticktext=_plotly_labels(answers.labels, MAX_LABEL_LENGTH),
        range=[row_count - 0.4, -0.6],
        showgrid=False,
        automargin=True,
    )
    narrow_labels = _plotly_labels(answers.labels, _SHORT_LABEL_LENGTH)
    narrow_layout = {"xaxis": {"nticks": 4}, "yaxis": {"ticktext": narrow_labels}}
    figure.update_layout(
        height=74 + 26 * row_count,
        bargap=0.35,
        margin={"t": 10, "b": 36},
        meta={"narrow": narrow_layout},
        showlegend=False,
    )
    return figure


def _hover_texts(answers: TopAnswers) -> list[str]:
    """Return a hover text for each symbol, with both estimates."""
    texts = []
    for i, label in enumerate(answers.labels):
        decoded = answers.format_share(answers.decoded[i])
        unbiased = answers.format_share(answers.unbiased[i])
        low = answers.format_share(answers.low[i])
        high = answers.format_share(answers.high[i])
        texts.append(
            f"<b>{_plotly_label(label, 120)}</b><br>decoded {decoded}<br>"
            f"unbiased {unbiased}, 95% interval {low} to {high}"
        )
    return texts


# --- reports over time, and estimates on a map ----------------------------------------------------


def reports_over_time(reports_by_hour: Sequence[tuple[str, int]]) -> "Figure":
    """Draw the number of reports per hour, or per day if there are many hours.

    Each entry is a UTC hour, such as ``2026-11-15T17``, and its number of reports.
    """
    is_daily = len(reports_by_hour) > _MAX_HOURLY_BARS
    counts = Counter[str]()
    for hour, report_count in reports_by_hour:
        counts[hour[:10] if is_daily else f"{hour}:00"] += report_count
    figure = _new_figure()
    figure.add_bar(
        x=list(counts.keys()),
        y=list(counts.values()),
        width=0.8 * (_DAY_MS if is_daily else _HOUR_MS),
        offset=0,
        marker_color=BAR,
        hovertemplate="%{x}<br>%{y:,} reports<extra></extra>",
    )
    figure.update_xaxes(type="date", showgrid=False, nticks=8, tickangle=0)
    figure.update_yaxes(rangemode="tozero", tickformat="~s", nticks=5, automargin=True)
    figure.update_layout(
        height=230,
        margin={"t": 10, "b": 46},
        showlegend=False,
        meta={"narrow": {"xaxis": {"nticks": 3}}},
    )
    return figure


def grid_map(grid: GridDomain, frequencies: Floats) -> "Figure":
    """Colour the cells of a grid by the logarithm of their frequency, leaving empty cells blank.

    In the middle of the map, both axes have the same scale, except near the poles. In maps of more
    than 100,000 cells, neighbouring cells are merged. The grid's ``other`` label has no location
    and is omitted.
    """
    cells = arrange_cells(grid, frequencies)
    logs, bottom, top = log_shares(cells.shares)
    stretch = latitude_stretch(grid)
    figure = _new_figure()
    figure.add_heatmap(
        z=logs.astype(np.float32),
        x=_centres(cells.longitudes, cells.step),
        y=_centres(cells.latitudes, cells.step),
        hovertemplate="%{text}<extra></extra>",  # figures.js adds the text for each cell
        colorscale=_colour_scale(MAP_SCALE, (0, 0.4, 0.75, 1)),
        zmin=bottom,
        zmax=top,
        colorbar=_colour_bar(bottom, top),
    )
    figure.update_xaxes(showgrid=False, ticksuffix="°", constrain="domain", nticks=8, tickangle=0)
    figure.update_yaxes(
        showgrid=False, ticksuffix="°", scaleanchor="x", scaleratio=stretch, constrain="domain"
    )
    meta = {
        "aspect": stretch * len(cells.latitudes) / len(cells.longitudes),
        "rows": cells.latitudes,
        "columns": cells.longitudes,
        "narrow": {"xaxis": {"nticks": 4}},
    }
    margin = {"t": 10, "b": 70, "l": 50}
    figure.update_layout(plot_bgcolor=BACKGROUND, meta=meta, margin=margin, height=520)
    return figure


def _centres(corners: list[str], step: float) -> list[float]:
    return [float(corner) + step / 2 for corner in corners]


def _colour_bar(bottom: float, top: float) -> dict[str, object]:
    ticks, labels = decade_ticks(bottom, top)
    return {
        "orientation": "h",
        "y": 0,
        "yref": "container",
        "yanchor": "bottom",
        "thickness": 10,
        "outlinewidth": 0,
        "tickvals": ticks,
        "ticktext": labels,
    }


# --- the privacy matrix ---------------------------------------------------------------------------


def privacy_heatmap(context: Context) -> "Figure":
    """Draw the privacy matrix as a heatmap.

    The stronger the colour of a square, the harder its two answers are to tell apart. ∞ means that
    nothing is promised for the pair itself.
    """
    k = context.size
    if k > MAX_HEATMAP_SYMBOLS:
        raise InvalidContext(
            f"a privacy matrix can be drawn for up to {MAX_HEATMAP_SYMBOLS} symbols; "
            f"this context has {k}."
        )
    E = context.matrix()
    is_promised = np.isfinite(E) & ~np.eye(k, dtype=np.bool_)
    max_epsilon = max(4.0, float(E[is_promised].max(initial=0.0)))
    plain_scale = _colour_scale((BACKGROUND, BACKGROUND), (0, 1))
    promise_scale = _colour_scale(PROMISE_SCALE, (0, 0.5, 1))
    faint_font = {"color": FAINT}
    figure = _new_figure()
    plain_values = np.where(is_promised, np.nan, 0.0)
    promise_values = np.where(is_promised, E, np.nan)
    _add_squares(figure, context, plain_values, max_epsilon, plain_scale, faint_font)
    _add_squares(figure, context, promise_values, max_epsilon, promise_scale, {})
    _lay_out_heatmap(figure, context.domain.labels)
    return figure


def _add_squares(
    figure: "Figure",
    context: Context,
    colour_values: Floats,
    max_epsilon: float,
    colour_scale: list[list[object]],
    font: Mapping[str, object],
) -> None:
    """Add the squares whose colour values are not NaN, with hover texts.

    In small heatmaps, also write each pair's ε in its square.
    """
    k = context.size
    E = context.matrix()
    labels = context.domain.labels
    z_values: list[list[float | None]] = [[None] * k for _ in range(k)]
    numbers = [[""] * k for _ in range(k)]
    hover_texts = [[""] * k for _ in range(k)]
    for x, x2 in np.argwhere(~np.isnan(colour_values)).tolist():
        epsilon = float(E[x, x2])
        z_values[x][x2] = float(colour_values[x, x2])
        numbers[x][x2] = "–" if x == x2 else format_epsilon(epsilon).removeprefix("≈ ")
        hover_texts[x][x2] = _pair_text(labels[x], labels[x2], epsilon)
    has_numbers = k <= _MAX_NUMBERED_SYMBOLS
    figure.add_heatmap(
        z=z_values,
        text=numbers if has_numbers else None,
        texttemplate="%{text}" if has_numbers else None,
        textfont={"size": 13, **font},
        hovertext=hover_texts,
        hoverinfo="text",
        colorscale=colour_scale,
        zmin=0,
        zmax=max_epsilon,
        showscale=False,
        xgap=2,
        ygap=2,
    )


def _pair_text(first: Label, second: Label, epsilon: float) -> str:
    first_label = _plotly_label(first, 60)
    if first == second:
        return f"{first_label}: the same answer"
    pair = f"odds of <b>{first_label}</b> against <b>{_plotly_label(second, 60)}</b><br>"
    if math.isinf(epsilon):
        return f"{pair}nothing is promised for the pair itself"
    factor = format_odds_factor(epsilon)
    return f"{pair}from 1:1 to at most {factor}:1 (ε = {format_epsilon(epsilon)})"


def _lay_out_heatmap(figure: "Figure", labels: Sequence[Label]) -> None:
    k = len(labels)
    figure.update_xaxes(title="… against this one", side="top")
    figure.update_yaxes(title="odds of this answer …", autorange="reversed", scaleanchor="x")
    for update_axes in (figure.update_xaxes, figure.update_yaxes):
        update_axes(
            tickvals=list(range(k)),
            ticktext=_plotly_labels(labels, _SHORT_LABEL_LENGTH),
            showgrid=False,
            constrain="domain",
            automargin=True,
        )
    narrow_axis = {"ticktext": _plotly_labels(labels, _TINY_LABEL_LENGTH)}
    figure.update_layout(
        height=150 + max(24, 64 - 5 * k) * k,
        margin={"t": 70, "b": 10, "r": 20},
        meta={"square": True, "narrow": {"xaxis": narrow_axis, "yaxis": narrow_axis}},
    )


# --- the style of all figures ---------------------------------------------------------------------


def _import_plotly(module_name: str) -> ModuleType:
    try:
        return import_module(f"plotly.{module_name}")
    except ImportError:
        raise MissingExtra(f"charts require plotly: {install_hint('charts')}") from None


def _new_figure() -> "Figure":
    axis = {
        "gridcolor": PALE,
        "zeroline": False,
        "linecolor": PALE,
        "tickcolor": PALE,
        "fixedrange": False,
    }
    font = {
        "family": "system-ui, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif",
        "size": 13,
        "color": INK,
    }
    hover_label = {
        "align": "left",
        "bgcolor": BACKGROUND,
        "bordercolor": FAINT,
        "font": {"color": INK},
    }
    layout = {
        "template": "none",
        "font": font,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 10, "r": 16, "t": 20, "b": 40},
        "xaxis": axis,
        "yaxis": axis,
        "dragmode": False,
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": FAINT, "activecolor": INK},
        "hoverlabel": hover_label,
    }
    return _import_plotly("graph_objects").Figure(layout=layout)


def _colour_scale(colours: tuple[str, ...], positions: tuple[float, ...]) -> list[list[object]]:
    return list(map(list, zip(positions, colours, strict=True)))


def _plotly_labels(labels: Sequence[Label], max_length: int) -> list[str]:
    return [_plotly_label(label, max_length) for label in labels]


def _plotly_label(label: Label, max_length: int) -> str:
    """Shorten and escape a label for plotly.

    Plotly would interpret ``<b>`` and ``<a href>`` as markup, and ``$…$`` as mathematics.
    """
    return escape(shorten_label(label, max_length), quote=False).replace("$", "&#36;")


# --- figures for the browser ----------------------------------------------------------------------


def promise_figures(survey: Survey) -> Figures:
    """Return the heatmap of the privacy matrix, or no figure if the matrix is too large."""
    if survey.context.size > MAX_HEATMAP_SYMBOLS:
        return {}
    return {"privacy": privacy_heatmap(survey.context)}


def estimate_figures(survey: Survey, estimate: Estimate) -> Figures:
    """Return the figures of both estimates, and a map if the domain is a grid."""
    figures = {"decoded": bar_chart(estimate), "unbiased": whisker_chart(estimate)}
    domain = survey.context.domain
    if isinstance(domain, GridDomain):
        figures["map"] = grid_map(domain, estimate.frequencies)
    return figures


def figure_data(figures: Figures) -> dict[str, object]:
    """Return the figures as JSON-compatible data.

    The cell values of a map are moved to its metadata as base64-encoded 32-bit floats, which
    ``figures.js`` unpacks.
    """
    data = {}
    for element_id, figure in figures.items():
        if element_id == "map":
            cells = np.asarray(figure.data[0].z, dtype="<f4")
            packed = base64.b64encode(cells.tobytes()).decode()
            figure.update_traces(z=None)
            figure.update_layout(meta={**figure.layout.meta, "packed": packed})
        data[element_id] = json.loads(figure.to_json())
    return data


def plotly_source() -> str:
    """Return the source of plotly.js, which plotly's Python package contains."""
    return str(_import_plotly("offline").get_plotlyjs())


@cache
def plotly_style_ids() -> tuple[str, ...]:
    """Return the ids of the style elements that plotly adds to a page."""
    return tuple(re.findall(_STYLE_ID_PATTERN, plotly_source()))
