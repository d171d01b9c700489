"""The figures of a survey and its estimate as JSON; ``figures.js`` draws them, on the report page and the dashboard."""

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
    LARGEST_HEATMAP,
    decoded_bars,
    grid_map,
    privacy_heatmap,
    unbiased_whiskers,
)
from sfumato.survey import Survey

if TYPE_CHECKING:
    from plotly.graph_objects import Figure  # type: ignore[import-untyped]

__all__ = ["estimate_figures", "plotly_source", "plotly_style_ids", "promise_figures", "written"]


def promise_figures(survey: Survey) -> "dict[str, Figure]":
    """A picture of E, where it is small enough for one."""
    return (
        {"privacy": privacy_heatmap(survey.context)}
        if survey.context.size <= LARGEST_HEATMAP
        else {}
    )


def estimate_figures(survey: Survey, estimate: Estimate) -> "dict[str, Figure]":
    """Both readings of an estimate, and for a grid the map."""
    figures = {"decoded": decoded_bars(estimate), "unbiased": unbiased_whiskers(estimate)}
    if isinstance(survey.context.domain, GridDomain):
        figures["map"] = grid_map(survey.context.domain, estimate.frequencies)
    return figures


def written(figures: "dict[str, Figure]") -> dict[str, object]:
    """The figures as plain data; a map's cells as base64 of 32-bit floats, from which the page makes texts and rows."""
    plain = {}
    for name, figure in figures.items():
        if name == "map":
            cells = np.asarray(figure.data[0].z, dtype="<f4")
            figure.update_traces(z=None)
            figure.update_layout(
                meta={**figure.layout.meta, "packed": base64.b64encode(cells.tobytes()).decode()}
            )
        plain[name] = json.loads(figure.to_json())
    return plain


def plotly_source() -> str:
    """The drawing library, as its Python package brings it along."""
    try:
        from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtra("charts need plotly: pip install 'sfumato[charts]'") from None
    return str(get_plotlyjs())


@cache
def plotly_style_ids() -> tuple[str, ...]:
    """Names of the style elements that the drawing library writes when it is loaded, unless they are there already."""
    made = r'getElementById\("([0-9a-f]{64})"\)\)\{var \w+=document\.createElement\("style"\)'
    return tuple(re.findall(made, plotly_source()))
