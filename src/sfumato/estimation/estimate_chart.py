"""Charts of an estimate: bars with blurred ends, and maps."""

from typing import TYPE_CHECKING

import numpy as np

from sfumato.charts import Bar, BarChart, Chart
from sfumato.charts.maps import GridShapes, MapChart, PolygonShapes
from sfumato.charts.outlines import nearest_place
from sfumato.contexts import MAX_MATRIX_SIZE, Context
from sfumato.domains import Domain, GridDomain, H3Domain
from sfumato.estimation.map_cells import arrange_cells
from sfumato.estimation.top_answers import (
    MAX_BARS,
    decimal_places,
    in_reading_order,
    most_frequent,
)
from sfumato.estimation.uncertainty.intervals import Bounds
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.foundation.formatting import format_percent, format_share, plural

if TYPE_CHECKING:
    from sfumato.estimation.estimate import Estimate

__all__ = ["answer_name", "draw_bars", "draw_estimate", "draw_map", "sensitive_mask"]

_MAX_PLACE_DISTANCE = 0.5  # degrees of latitude within which a cell is named after a place


def draw_estimate(estimate: "Estimate", context: Context, bounds: Bounds, level: float) -> Chart:
    """Return a map if the labels are places; otherwise, bars for the most frequent labels."""
    if isinstance(context.domain, GridDomain | H3Domain):
        return draw_map(estimate, context.domain, bounds)
    return draw_bars(estimate, context, bounds, level)


def draw_bars(
    estimate: "Estimate",
    context: Context,
    bounds: Bounds,
    level: float,
    count: int = MAX_BARS,
    *,
    marks_decoded: bool = False,
) -> BarChart:
    """Return a bar for each of the ``count`` most frequent labels, or for all if there are fewer.

    A bar shows the unbiased estimate, because the interval is its own. An estimate outside its
    interval, for example below zero, is drawn at the nearer end. If ``marks_decoded``, a ring is at
    the decoded estimate.
    """
    low, high = bounds
    shares = np.clip(estimate.unbiased, low, high)
    symbols = _choose_symbols(estimate, context.domain, shares, count)
    is_sensitive = sensitive_mask(context)
    decimals = decimal_places(estimate.standard_errors[symbols])

    def write(share: float) -> str:
        return format_share(share, decimals)

    bars = []
    for symbol in symbols.tolist():
        share = float(shares[symbol])
        interval = f"{write(float(low[symbol]))} to {write(float(high[symbol]))}"
        label = answer_name(context.domain, symbol)
        note = f"{label}: {write(share)}, {format_percent(level)} interval {interval}"
        decoded = None
        if marks_decoded:
            decoded = float(estimate.frequencies[symbol])
            note += f"; decoded {write(decoded)}"
        bars.append(
            Bar(
                label,
                share,
                float(low[symbol]),
                float(high[symbol]),
                bool(is_sensitive[symbol]),
                note,
                decoded,
            )
        )
    title = f"Shares of {plural(len(bars), 'answer')}, with {format_percent(level)} intervals"
    if not marks_decoded:
        return BarChart(title, tuple(bars), write)
    labels = (f"unbiased, with {format_percent(level)} interval", "decoded")
    return BarChart(f"{title}, and decoded shares", tuple(bars), write, legend=labels)


def draw_map(estimate: "Estimate", domain: GridDomain | H3Domain, bounds: Bounds) -> MapChart:
    """Return a map of all cells. The label for other places has no location, and is left out.

    In grids of more than 100,000 cells, neighbouring cells are merged. The ends of their intervals
    are added up, which makes the intervals wider than necessary.
    """
    decimals = decimal_places(estimate.standard_errors)
    columns = (estimate.frequencies, *bounds)
    shapes: GridShapes | PolygonShapes
    if isinstance(domain, GridDomain):
        layers = [arrange_cells(domain, column) for column in columns]
        rows, width = layers[0].shares.shape
        west, _, south, _ = layers[0].extent
        shapes = GridShapes(south, west, layers[0].step, rows, width)
        # The ends of merged intervals may add up to more than everyone.
        values, low, high = (np.minimum(layer.shares.ravel(), 1.0) for layer in layers)
    else:
        shapes = PolygonShapes(_hexagons(domain))
        values, low, high = (np.asarray(column)[: len(shapes.polygons)] for column in columns)
    title = f"Map of the share of people in {plural(values.size, 'cell')}"
    return MapChart(title, shapes, values, low, high, lambda share: format_share(share, decimals))


def _hexagons(domain: Domain) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Return the corners of all cells. At the date line, longitudes continue beyond 180 degrees."""
    import h3

    polygons = []
    middle = None  # all cells are drawn on the side of the date line where the first one is
    for label in domain.labels:
        if label != domain.other:
            corners = h3.cell_to_boundary(str(label))
            middle = corners[0][1] if middle is None else middle
            polygons.append(
                tuple((_unwrap(longitude, middle), latitude) for latitude, longitude in corners)
            )
    return tuple(polygons)


def _unwrap(longitude: float, middle: float) -> float:
    """Return the same longitude, at most half a turn from ``middle``."""
    return middle + (longitude - middle + 180) % 360 - 180


def _choose_symbols(estimate: "Estimate", domain: Domain, shares: Floats, count: int) -> Symbols:
    """Return the most frequent symbols by share, or in domain order if the labels are numbers."""
    symbols = most_frequent(estimate, count)
    by_share = symbols[np.argsort(-shares[symbols], kind="stable")]
    return in_reading_order(estimate, domain, by_share)


def answer_name(domain: Domain, symbol: int) -> str:
    """Return a label on one line. The name of a large place nearby is added to a cell of a map."""
    label = " ".join(str(domain.labels[symbol]).split())
    if not isinstance(domain, GridDomain | H3Domain) or domain.labels[symbol] == domain.other:
        return label
    if isinstance(domain, GridDomain):
        latitude, longitude = domain.centre(symbol)
    else:
        import h3

        latitude, longitude = h3.cell_to_latlng(label)
    place = nearest_place(longitude, latitude, _MAX_PLACE_DISTANCE)
    return label if place is None else f"near {place.name} ({label})"


def sensitive_mask(context: Context) -> Booleans:
    """Return which symbols are protected, if others are not; otherwise, all are alike."""
    mask = np.zeros(context.size, dtype=np.bool_)
    if context.groups is None and context.size > MAX_MATRIX_SIZE:
        return mask
    unprotected = context.unprotected_symbols()
    if 0 < unprotected.size < context.size:
        mask[:] = True
        mask[unprotected] = False
    return mask
