"""The figures of a survey and its estimate; ``figures.js`` draws them from JSON."""

import base64
import json
import re
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sfumato.domains import GridDomain
from sfumato.errors import MissingExtra
from sfumato.estimation import Estimate
from sfumato.pages.charts import (
    MAX_HEATMAP_SYMBOLS,
    bar_chart,
    grid_map,
    privacy_heatmap,
    whisker_chart,
)
from sfumato.survey import Survey

if TYPE_CHECKING:
    from plotly.graph_objects import Figure  # type: ignore[import-untyped]

__all__ = [
    "Figures",
    "estimate_figures",
    "figure_data",
    "plotly_source",
    "plotly_style_ids",
    "promise_figures",
]

Figures = dict[str, "Figure"]
"""Figures by the id of the element that each is drawn into."""

_STYLE_ID = r'getElementById\("([0-9a-f]{64})"\)\)\{var \w+=document\.createElement\("style"\)'


def promise_figures(survey: Survey) -> Figures:
    """Draw the privacy matrix, if it is small enough for a picture."""
    if survey.context.size > MAX_HEATMAP_SYMBOLS:
        return {}
    return {"privacy": privacy_heatmap(survey.context)}


def estimate_figures(survey: Survey, estimate: Estimate) -> Figures:
    """Draw both readings of an estimate, and the map if the domain is a grid."""
    figures = {"decoded": bar_chart(estimate), "unbiased": whisker_chart(estimate)}
    if isinstance(survey.context.domain, GridDomain):
        figures["map"] = grid_map(survey.context.domain, estimate.frequencies)
    return figures


def figure_data(figures: Figures) -> dict[str, object]:
    """Return the figures as plain data for JSON.

    The cells of a map become base64 of 32-bit floats, which ``figures.js`` unpacks.
    """
    data = {}
    for name, figure in figures.items():
        if name == "map":
            cells = np.asarray(figure.data[0].z, dtype="<f4")
            packed = base64.b64encode(cells.tobytes()).decode()
            figure.update_traces(z=None)
            figure.update_layout(meta={**figure.layout.meta, "packed": packed})
        data[name] = json.loads(figure.to_json())
    return data


def plotly_source() -> str:
    """Return the JavaScript of plotly, which its Python package contains."""
    try:
        from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtra("charts need plotly: pip install 'sfumato[charts]'") from None
    return str(get_plotlyjs())


@cache
def plotly_style_ids() -> tuple[str, ...]:
    """Return the ids of the style elements that plotly adds to a page that lacks them."""
    return tuple(re.findall(_STYLE_ID, plotly_source()))
