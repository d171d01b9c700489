"""Curves with bands: an error against a number of people, or a share over time.

A band is drawn like the end of a bar: it fades with its distance from the curve.
"""

import math
from dataclasses import dataclass, field

from sfumato.charts.axis import Axis
from sfumato.charts.chart import Chart
from sfumato.charts.drawing import SMALL, Drawing, fit_text, text_width
from sfumato.charts.terminal import DotCanvas

__all__ = ["Curve", "CurveChart", "Marker", "Rule"]

Points = tuple[tuple[float, float], ...]

_MIN_WIDE_WIDTH = 520
_HEIGHT_RATIO = 0.5
_NARROW_HEIGHT_RATIO = 0.85
_LEGEND_ROW = 20.0
_TITLE_HEIGHT = 28.0
_TITLE_GAP = 14.0  # between the title of the y-axis and the frame, for half of the top number
_AXIS_HEIGHT = 38.0
_BAND_SHADES = 4  # nested bands, each a little wider and lighter
_BAND_OPACITY = 0.14
_DOT_RADIUS = 2.2


@dataclass(frozen=True)
class Curve:
    """A line through points, with a band around it if there is one.

    ``band``: the points of the low end, then those of the high end. ``dashes``: lengths of dashes
    and gaps, as in SVG. ``is_scatter``: draw the points as dots, without a line. ``notes``: what
    the reader sees on pointing at each dot.
    """

    label: str
    points: Points
    colour: str = "bar"
    dashes: str = ""
    is_chosen: bool = False
    band: tuple[Points, Points] | None = None
    is_scatter: bool = False
    notes: tuple[str, ...] = ()

    @property
    def thickness(self) -> float:
        """The width of its line in pixels."""
        return 3.0 if self.is_chosen else 1.8


@dataclass(frozen=True)
class Rule:
    """A horizontal line at a number, with a text."""

    y: float
    text: str


@dataclass(frozen=True)
class Marker:
    """A point to look at, with a text next to it. A ring has no filling."""

    x: float
    y: float
    text: str = ""
    colour: str = "accent"
    is_ring: bool = False


@dataclass(frozen=True, repr=False)
class CurveChart(Chart):
    """Curves over a common pair of axes, with a legend if there are several."""

    title: str
    curves: tuple[Curve, ...]
    x_axis: Axis
    y_axis: Axis
    rules: tuple[Rule, ...] = ()
    markers: tuple[Marker, ...] = field(default=())

    def draw(self, drawing: Drawing) -> float:
        """Draw the legend, the axes, the bands, the curves and the markers."""
        is_wide = drawing.width >= _MIN_WIDE_WIDTH
        top = self._draw_legend(drawing) + _TITLE_HEIGHT
        ratio = _HEIGHT_RATIO if is_wide else _NARROW_HEIGHT_RATIO
        y_ticks = self.y_axis.ticks(5)
        left = max(text_width(self.y_axis.tick_text(tick), SMALL) for tick in y_ticks or [0.0]) + 10
        frame = _Frame(
            left, drawing.width - 8, top, top + ratio * drawing.width, self.x_axis, self.y_axis
        )
        self._draw_axes(drawing, frame, y_ticks, 8 if is_wide else 4)
        for curve in self.curves:
            _draw_band(drawing, frame, curve)
        for rule in self.rules:
            _draw_rule(drawing, frame, rule)
        for curve in self.curves:
            if curve.is_scatter:
                _draw_dots(drawing, frame, curve)
            else:
                _draw_line(drawing, frame, curve)
        for marker in self.markers:
            _draw_marker(drawing, frame, marker)
        return frame.bottom + _AXIS_HEIGHT

    def _draw_legend(self, drawing: Drawing) -> float:
        """Draw a line and a label for each curve, in rows; return where the last row ends."""
        if len(self.curves) < 2:
            return 0
        x = 0.0
        y = 14.0
        for curve in self.curves:
            label = fit_text(curve.label, drawing.width - 40)
            width = 34 + text_width(label, bold=curve.is_chosen) + 18
            if x and x + width > drawing.width:
                x = 0
                y += _LEGEND_ROW
            _draw_sample(drawing, curve, x, y - 4)
            drawing.text(x + 34, y, label, bold=curve.is_chosen)
            x += width
        return y + 6

    def _draw_axes(
        self, drawing: Drawing, frame: "_Frame", y_ticks: list[float], tick_count: int
    ) -> None:
        drawing.text(0, frame.top - _TITLE_GAP, self.y_axis.title, fill="faint", size=SMALL)
        for tick in y_ticks:
            _, y = frame.place(self.x_axis.low, tick)
            drawing.line(frame.left, y, frame.right, y, "line")
            text = self.y_axis.tick_text(tick)
            drawing.text(frame.left - 8, y + 4, text, fill="faint", anchor="end", size=SMALL)
        text_end = 0.0
        for tick in self.x_axis.ticks(tick_count):
            x, _ = frame.place(tick, self.y_axis.low)
            drawing.line(x, frame.top, x, frame.bottom, "line")
            text = self.x_axis.tick_text(tick)
            width = text_width(text, SMALL)
            start = min(x - width / 2, drawing.width - width)
            if start > text_end:  # otherwise, it would overlap the last text
                drawing.text(start, frame.bottom + 17, text, fill="faint", size=SMALL)
                text_end = start + width + 6
        drawing.text(
            frame.right,
            frame.bottom + 34,
            self.x_axis.title,
            fill="faint",
            anchor="end",
            size=SMALL,
        )

    def to_text(self, width: int = 80) -> str:
        """Return the curves as dots, and the last value of each below the picture."""
        canvas = DotCanvas(width - 10, 16)
        for curve in self.curves:
            points = [(self.x_axis.position(x), self.y_axis.position(y)) for x, y in curve.points]
            if curve.is_scatter:
                canvas.add_dots(points)
            else:
                canvas.add_line(points)
        high = self.y_axis.write(self.y_axis.high)
        low = self.y_axis.write(self.y_axis.low)
        lines = [f"{'':9} {line}" for line in canvas.lines()]
        lines[0] = f"{high:>9} {lines[0][10:]}"
        lines[-1] = f"{low:>9} {lines[-1][10:]}"
        start = self.x_axis.write(self.x_axis.low)
        end = self.x_axis.write(self.x_axis.high)
        lines.append(f"{'':10}{start}{end:>{max(width - 10 - len(start), len(end))}}")
        lines.append(f"{'':10}{self.x_axis.title}; {self.y_axis.title}")
        for curve in self.curves:
            if curve.points:
                lines.append(f"{'':10}{curve.label}: {self.y_axis.write(curve.points[-1][1])}")
        return "\n".join(lines)


@dataclass(frozen=True)
class _Frame:
    """The rectangle in which the curves are drawn."""

    left: float
    right: float
    top: float
    bottom: float
    x_axis: Axis
    y_axis: Axis

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a point."""
        return (
            self.left + self.x_axis.position(x) * (self.right - self.left),
            self.bottom - self.y_axis.position(y) * (self.bottom - self.top),
        )

    def place_all(self, points: Points) -> list[list[tuple[float, float]]]:
        """Return the pixels of a curve: one line for each part between the top and the bottom."""
        positions = []
        for x, y in points:
            positions.append((self.x_axis.position(x), self.y_axis.raw_position(y)))
        lines = []
        for part in _crop(positions):
            pixels = []
            for x, y in part:
                left = self.left + x * (self.right - self.left)
                pixels.append((left, self.bottom - y * (self.bottom - self.top)))
            lines.append(pixels)
        return lines


def _crop(positions: list[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """Return the parts of a line whose second coordinate is from 0 to 1."""
    parts: list[list[tuple[float, float]]] = [[]]
    for index, (x, y) in enumerate(positions):
        if index:
            parts[-1] += _crossings(positions[index - 1], (x, y))
        if 0 <= y <= 1:
            parts[-1].append((x, y))
        else:
            parts.append([])
    return [part for part in parts if part]


def _crossings(start: tuple[float, float], end: tuple[float, float]) -> list[tuple[float, float]]:
    """Return where a straight line crosses the edges 0 and 1, in order."""
    crossings = []
    for edge in (0.0, 1.0):
        is_crossed = (start[1] < edge < end[1]) or (end[1] < edge < start[1])
        if is_crossed and math.isfinite(start[1]) and math.isfinite(end[1]):
            share = (edge - start[1]) / (end[1] - start[1])
            crossings.append((share, start[0] + share * (end[0] - start[0]), edge))
    return [(x, y) for _, x, y in sorted(crossings)]


def _draw_line(drawing: Drawing, frame: _Frame, curve: Curve) -> None:
    drawing.start_group(curve.label)
    for points in frame.place_all(curve.points):
        drawing.polyline(points, curve.colour, curve.thickness, dashes=curve.dashes)
    drawing.end_group()


def _draw_dots(drawing: Drawing, frame: _Frame, curve: Curve) -> None:
    notes = curve.notes or (curve.label,) * len(curve.points)
    for point, note in zip(curve.points, notes, strict=True):
        x, y = frame.place(*point)
        drawing.start_group(note)
        drawing.circle(x, y, _DOT_RADIUS, fill=curve.colour)
        drawing.end_group()


def _draw_sample(drawing: Drawing, curve: Curve, x: float, y: float) -> None:
    """Draw what a curve looks like, for the legend."""
    if curve.band is not None:
        drawing.rectangle(x, y - 6, 26, 12, curve.colour, opacity=2 * _BAND_OPACITY)
    if curve.is_scatter:
        drawing.circle(x + 13, y, _DOT_RADIUS, fill=curve.colour)
    else:
        drawing.line(x, y, x + 26, y, curve.colour, curve.thickness, dashes=curve.dashes)


def _draw_band(drawing: Drawing, frame: _Frame, curve: Curve) -> None:
    """Draw nested areas around a curve, so that the band fades towards its ends."""
    if curve.band is None:
        return
    low, high = curve.band
    for shade in range(1, _BAND_SHADES + 1):
        share = shade / _BAND_SHADES
        lower = _blend(curve.points, low, share)
        upper = _blend(curve.points, high, share)
        outline = [frame.place(x, y) for x, y in (*lower, *reversed(upper))]
        drawing.polygon(outline, curve.colour, _BAND_OPACITY)


def _blend(points: Points, ends: Points, share: float) -> list[tuple[float, float]]:
    blended = []
    for (x, y), (_, end) in zip(points, ends, strict=True):
        blended.append((x, y + share * (end - y)))
    return blended


def _draw_rule(drawing: Drawing, frame: _Frame, rule: Rule) -> None:
    _, y = frame.place(frame.x_axis.low, rule.y)
    drawing.line(frame.left, y, frame.right, y, "accent", 1.2, dashes="4 3")
    drawing.text(frame.right - 4, y - 5, rule.text, fill="accent", anchor="end", size=SMALL)


def _draw_marker(drawing: Drawing, frame: _Frame, marker: Marker) -> None:
    x, y = frame.place(marker.x, marker.y)
    if marker.is_ring:
        drawing.circle(x, y, 5.5, stroke=marker.colour)
    else:
        drawing.circle(x, y, 3.2, fill=marker.colour)
    if not marker.text:
        return
    is_right = x > (frame.left + frame.right) / 2
    anchor = "end" if is_right else "start"
    offset = -10 if is_right else 10
    drawing.text(x + offset, y + 18, marker.text, anchor=anchor, size=SMALL, bold=True)
