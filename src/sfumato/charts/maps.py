"""Maps: cells coloured by their share, over the outlines of countries and states.

A cell whose interval holds zero may be empty: it has the colour of noise, whatever its share, or no
colour if its share is zero. The colours of the other cells are steps on a logarithmic scale. Cells
of one colour are one path, so that a map of 43,750 cells stays small, and a style sheet can change
its colours.
"""

import base64
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from sfumato.charts.chart import Chart
from sfumato.charts.drawing import SMALL, Drawing, text_width
from sfumato.charts.outlines import (
    Bounds,
    Outlines,
    Place,
    largest_places,
    outlines_within,
)
from sfumato.charts.palette import MAP_STEPS
from sfumato.charts.terminal import shade

__all__ = [
    "GridShapes",
    "MapChart",
    "MapProjection",
    "OutlineMap",
    "PolygonShapes",
    "latitude_stretch",
]

Numbers = NDArray[np.float64]
Steps = NDArray[np.int64]
Line = Sequence[tuple[float, float]]

_MAX_DECADES = 4.0  # that the colours span
_MAX_STRETCH = 3.0  # the true value is much larger near the poles
_MAX_HEIGHT_RATIO = 2.0
_LEGEND_HEIGHT = 54.0
_NAMES_PER_PIXEL = 1 / 75
_MAX_TEXT_ROWS = 24
_MAX_NOTES = 3000  # cells of any shape that are drawn one by one
_EMPTY = -2  # a cell that is not drawn
_NOISE = -1  # a cell that may be empty


def latitude_stretch(south: float, north: float) -> float:
    """Return the length of a degree of latitude divided by that of a degree of longitude.

    The lengths are those at the middle latitude. The result is at most 3.
    """
    middle = math.radians((south + north) / 2)
    return 1 / max(math.cos(middle), 1 / _MAX_STRETCH)


@dataclass(frozen=True)
class MapProjection:
    """Where a position lies on a map of a given width: a plate carrée.

    At the middle latitude, both axes have the same scale.
    """

    bounds: Bounds
    width: float

    @property
    def pixels_per_degree(self) -> tuple[float, float]:
        """The horizontal and the vertical scale. A map is at most twice as high as it is wide."""
        horizontal = self.width / (self.bounds.east - self.bounds.west)
        vertical = horizontal * latitude_stretch(self.bounds.south, self.bounds.north)
        largest = _MAX_HEIGHT_RATIO * self.width / (self.bounds.north - self.bounds.south)
        return horizontal, min(vertical, largest)

    @property
    def height(self) -> float:
        """The height of the map."""
        return self.pixels_per_degree[1] * (self.bounds.north - self.bounds.south)

    def place(self, longitude: float, latitude: float) -> tuple[float, float]:
        """Return the pixel of a position."""
        horizontal, vertical = self.pixels_per_degree
        return (
            (longitude - self.bounds.west) * horizontal,
            (self.bounds.north - latitude) * vertical,
        )


@dataclass(frozen=True)
class GridShapes:
    """Equal cells in rows and columns, from the south-western corner; steps are in degrees."""

    south: float
    west: float
    step: float
    rows: int
    columns: int

    @property
    def bounds(self) -> Bounds:
        """The edges of the grid."""
        return Bounds(
            self.south,
            self.south + self.rows * self.step,
            self.west,
            self.west + self.columns * self.step,
        )

    def paths(self, steps: Steps, projection: MapProjection) -> Iterator[tuple[int, str]]:
        """Yield a path for each step: a rectangle for each run of neighbouring cells in a row."""
        commands: dict[int, list[str]] = {}
        horizontal, vertical = projection.pixels_per_degree
        width = horizontal * self.step
        height = vertical * self.step
        for row, cells in enumerate(steps.reshape(self.rows, self.columns)):
            top = (self.rows - 1 - row) * height
            bottom = top + height
            for start, end in _runs(cells):
                step = int(cells[start])
                if step != _EMPTY:
                    left = f"{start * width:.2f}"
                    corner = f"M{left} {top:.2f}H{end * width:.2f}V{bottom:.2f}H{left}z"
                    commands.setdefault(step, []).append(corner)
        for step, parts in sorted(commands.items()):
            yield step, "".join(parts)


@dataclass(frozen=True)
class PolygonShapes:
    """Any cells: the corners of each, as (longitude, latitude)."""

    polygons: tuple[Line, ...]

    @property
    def bounds(self) -> Bounds:
        """The smallest rectangle around all polygons."""
        corners = np.array([corner for polygon in self.polygons for corner in polygon])
        west, south = corners.min(axis=0).tolist()
        east, north = corners.max(axis=0).tolist()
        return Bounds(south, north, west, east)

    def paths(self, steps: Steps, projection: MapProjection) -> Iterator[tuple[int, str]]:
        """Yield a path for each step."""
        commands: dict[int, list[str]] = {}
        for polygon, step in zip(self.polygons, steps.tolist(), strict=True):
            if step != _EMPTY:
                commands.setdefault(step, []).append(f"{_path(polygon, projection)}z")
        for step, parts in sorted(commands.items()):
            yield step, "".join(parts)


def _runs(cells: Steps) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each run of equal numbers."""
    starts = np.flatnonzero(np.diff(cells, prepend=cells[0] - 1))
    ends = [*starts[1:].tolist(), cells.size]
    yield from zip(starts.tolist(), ends, strict=True)


def _path(line: Line, projection: MapProjection) -> str:
    points = [projection.place(longitude, latitude) for longitude, latitude in line]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


@dataclass(frozen=True, eq=False, repr=False)
class MapChart(Chart):
    """Cells on a map. ``values``, ``low`` and ``high``: the share of each cell and its interval.

    ``scale`` holds the shares with the palest and the strongest colour. By default, they are the
    smallest and the largest that are not noise, but no share is told apart from smaller ones if it
    is smaller than the narrowest interval. Give maps that are to be compared the same scale.
    """

    title: str
    shapes: GridShapes | PolygonShapes
    values: Numbers
    low: Numbers
    high: Numbers
    write: Callable[[float], str]
    scale: tuple[float, float] | None = None

    @property
    def _is_visible(self) -> NDArray[np.bool_]:
        """Which cells have a colour of the scale."""
        return (self.low > 0) & (self.values > 0)

    @property
    def _log_scale(self) -> tuple[float, float]:
        """The logarithms of the ends of the colour scale."""
        is_visible = self._is_visible
        start, end = self.scale or (0.1, 1.0)
        if self.scale is None and is_visible.any():
            half_widths = (self.high - self.low)[is_visible] / 2
            start = max(float(self.values[is_visible].min()), float(half_widths.min()))
            end = float(self.values[is_visible].max())
        top = math.log10(end)
        return min(max(math.log10(start), top - _MAX_DECADES), top - 0.5), top

    @property
    def steps(self) -> Steps:
        """The colour of each cell: a step of the scale, −1 for noise, or −2 for nothing."""
        bottom, top = self._log_scale
        steps = np.full(self.values.shape, _EMPTY, dtype=np.int64)
        steps[(self.values > 0) | (self.low > 0)] = _NOISE
        is_visible = self._is_visible
        logs = np.log10(self.values[is_visible])
        shares = (logs - bottom) / (top - bottom)
        steps[is_visible] = np.clip((shares * MAP_STEPS).astype(np.int64), 0, MAP_STEPS - 1)
        return steps

    def draw(self, drawing: Drawing) -> float:
        """Draw land, cells, outlines, names and the legend, from back to front."""
        projection = MapProjection(self.shapes.bounds, drawing.width)
        outlines = outlines_within(projection.bounds)
        _draw_land(drawing, projection, outlines)
        steps = self.steps
        if isinstance(self.shapes, PolygonShapes) and steps.size <= _MAX_NOTES:
            self._draw_with_notes(drawing, projection, self.shapes, steps)
        else:
            for step, commands in self.shapes.paths(steps, projection):
                drawing.path(commands, fill=_step_colour(step))
        _draw_lines(drawing, projection, outlines)
        self._draw_legend(drawing, projection.height + 16, steps)
        return projection.height + _LEGEND_HEIGHT

    def _draw_with_notes(
        self, drawing: Drawing, projection: MapProjection, shapes: PolygonShapes, steps: Steps
    ) -> None:
        """Draw each cell on its own, so that pointing at it shows its share and its interval."""
        for cell, step in enumerate(steps.tolist()):
            if step == _EMPTY:
                continue
            value, low, high = (
                self.write(float(layer[cell])) for layer in (self.values, self.low, self.high)
            )
            drawing.start_group(f"{value}, 95% interval {low} to {high}")
            drawing.path(f"{_path(shapes.polygons[cell], projection)}z", fill=_step_colour(step))
            drawing.end_group()

    def _draw_legend(self, drawing: Drawing, top: float, steps: Steps) -> None:
        bottom_log, top_log = self._log_scale
        width = min(drawing.width * 0.5, 280)
        if self.scale is None and not (steps >= 0).any():
            _draw_keys(drawing, 0, top, steps)
            return
        swatch = width / MAP_STEPS
        for step in range(MAP_STEPS):
            drawing.rectangle(step * swatch, top, swatch + 0.3, 10, f"map{step}")
        low_text = f"{_plain_number(100 * 10**bottom_log)}%"
        if (np.log10(self.values[self._is_visible]) < bottom_log - 1e-9).any():
            low_text = f"≤ {low_text}"
        high_text = f"{_plain_number(100 * 10**top_log)}%"
        drawing.text(0, top + 26, low_text, fill="faint", size=SMALL)
        drawing.text(width, top + 26, high_text, fill="faint", size=SMALL, anchor="end")
        _draw_keys(drawing, width + 24, top, steps)

    def to_html(self) -> str:
        """Return the map for a page, with the data that the page's script needs to read cells."""
        if not isinstance(self.shapes, GridShapes):
            return super().to_html()
        data = {
            "rows": self.shapes.rows,
            "columns": self.shapes.columns,
            "south": self.shapes.south,
            "west": self.shapes.west,
            "step": self.shapes.step,
            "height": MapProjection(self.shapes.bounds, 1.0).height,
            "decimals": len(self.write(0.0).rstrip("%").partition(".")[2]),
        }
        cells = np.nan_to_num(np.stack([self.values, self.low, self.high]))
        packed = base64.b64encode(cells.astype("<f4").tobytes()).decode()
        grid = escape(json.dumps(data, allow_nan=False))
        return (
            f'<div class="chart map" data-grid="{grid}" data-cells="{packed}" tabindex="0" '
            'role="group" aria-label="Cells of the map; arrow keys move from cell to cell">'
            f"{self._both_layouts()}"
            '<span class="marker" hidden></span>'
            '<p class="note reading" role="status">Point at a cell to read its share, or use the '
            "arrow keys.</p></div>"
        )

    def to_text(self, width: int = 80) -> str:
        """Return the map as shaded characters, each the largest of its cells."""
        if not isinstance(self.shapes, GridShapes):
            return f"{self.title}: {self.values.size:,} cells."
        steps = self.steps.reshape(self.shapes.rows, self.shapes.columns)
        rows = min(_MAX_TEXT_ROWS, steps.shape[0])
        columns = min(width, steps.shape[1])
        row_edges = np.linspace(0, steps.shape[0], rows + 1).astype(np.int64)
        column_edges = np.linspace(0, steps.shape[1], columns + 1).astype(np.int64)
        blocks = np.maximum.reduceat(steps, row_edges[:-1], axis=0)
        blocks = np.maximum.reduceat(blocks, column_edges[:-1], axis=1)
        lines = []
        for row in blocks[::-1].tolist():
            lines.append("".join(shade((step + 1) / MAP_STEPS) for step in row).rstrip())
        return "\n".join(lines)


def _step_colour(step: int) -> str:
    return "noise" if step == _NOISE else f"map{step}"


def _draw_keys(drawing: Drawing, x: float, top: float, steps: Steps) -> None:
    """Explain the cells that have no colour of the scale, as far as there are any."""
    if (steps == _NOISE).any():
        text = "may be empty: the interval holds zero"
        if x + 18 + text_width(text, SMALL) > drawing.width:
            text = "may be empty"
        drawing.rectangle(x, top, 12, 10, "noise")
        drawing.text(x + 18, top + 9, text, fill="faint", size=SMALL)
        top += 17
    if (steps == _EMPTY).any():
        drawing.rectangle(x, top, 12, 10, "coast")
        drawing.rectangle(x + 1, top + 1, 10, 8, "paper")
        drawing.text(x + 18, top + 9, "zero", fill="faint", size=SMALL)


def _plain_number(number: float) -> str:
    """Return a number with two significant digits, and never with an exponent.

    >>> _plain_number(0.0000912), _plain_number(3.71)
    ('0.000091', '3.7')
    """
    decimals = max(1 - math.floor(math.log10(number)), 0)
    return f"{number:.{decimals}f}"


@dataclass(frozen=True, repr=False)
class OutlineMap(Chart):
    """A map without data: land, borders and the names of the largest places.

    ``footer``: how many pixels at the lower edge have no names, for the labels of an axis.
    """

    title: str
    bounds: Bounds
    footer: float = 0

    def draw(self, drawing: Drawing) -> float:
        """Draw land, outlines and names."""
        projection = MapProjection(self.bounds, drawing.width)
        outlines = outlines_within(self.bounds)
        _draw_land(drawing, projection, outlines)
        _draw_lines(drawing, projection, outlines, self.footer)
        return projection.height

    def to_text(self, width: int = 80) -> str:
        """Return the names of the largest places."""
        names = [place.name for place in largest_places(self.bounds, width // 10)]
        return f"{self.title}: {', '.join(names)}"


def _draw_land(drawing: Drawing, projection: MapProjection, outlines: Outlines) -> None:
    for polygon in outlines.land:
        drawing.path(f"{_path(polygon, projection)}z", fill="land")
    for lake in outlines.lakes:
        drawing.path(f"{_path(lake, projection)}z", fill="paper")


def _draw_lines(
    drawing: Drawing, projection: MapProjection, outlines: Outlines, footer: float = 0
) -> None:
    """Draw borders, coasts, and the names of the largest places."""
    for line in outlines.states:
        drawing.path(_path(line, projection), stroke="coast", width=0.5)
    for line in (*outlines.borders, *outlines.coasts):
        drawing.path(_path(line, projection), stroke="coast", width=0.9)
    name_count = round(drawing.width * _NAMES_PER_PIXEL)
    places = largest_places(projection.bounds, name_count)
    free_area = _Box(0, projection.height - footer, drawing.width, footer)
    _draw_names(drawing, projection, places, [free_area] if footer else [])


def _draw_names(
    drawing: Drawing,
    projection: MapProjection,
    places: Sequence[Place],
    boxes: "list[_Box]",
) -> None:
    """Draw the names of places; leave out a name that would cover another, or one of the boxes."""
    for place in places:
        x, y = projection.place(place.longitude, place.latitude)
        width = text_width(place.name, SMALL)
        is_right = x > drawing.width - width - 10
        box = _Box(x - width - 8 if is_right else x - 3, y - 8, width + 11, 16)
        if any(box.overlaps(other) for other in boxes):
            continue
        boxes.append(box)
        drawing.circle(x, y, 1.8, fill="ink")
        anchor = "end" if is_right else "start"
        offset = -5 if is_right else 5
        drawing.text(x + offset, y + 4, place.name, anchor=anchor, size=SMALL, halo="paper")


@dataclass(frozen=True)
class _Box:
    """The rectangle that a name covers."""

    left: float
    top: float
    width: float
    height: float

    def overlaps(self, other: "_Box") -> bool:
        """Whether two rectangles have a point in common."""
        is_next = self.left > other.left + other.width or other.left > self.left + self.width
        is_apart = self.top > other.top + other.height or other.top > self.top + self.height
        return not (is_next or is_apart)
