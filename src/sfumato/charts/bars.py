"""Bars whose ends are blurred: solid up to the low end of the interval, fading to the high end.

The fading part *is* the interval, so that a share and its uncertainty are one mark. A line marks
the estimate itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sfumato.charts.axis import Axis, linear_axis
from sfumato.charts.chart import Chart
from sfumato.charts.drawing import SMALL, Drawing, fit_text, text_width
from sfumato.foundation.formatting import shorten

__all__ = ["Bar", "BarChart"]

_MIN_WIDE_WIDTH = 520  # below, labels are above their bars
_MAX_LABEL_SHARE = 0.34  # of the width
_GAP = 12.0
_BAR_HEIGHT = 16.0
_WIDE_ROW = 32.0
_NARROW_ROW = 48.0
_AXIS_HEIGHT = 26.0
_LEGEND_HEIGHT = 26.0
_RING_RADIUS = 4.5

# The last part of a bar in a terminal: from low to high, ever lighter.
_SHADES = "▓▒░"
_TEXT_RING = "◆"


@dataclass(frozen=True)
class Bar:
    """A labelled bar, with the interval of its value if there is one.

    ``is_accented``: whether it has the accent colour. ``note``: what the reader sees on pointing
    at it. ``ring``: a second value, which is marked by a ring.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    is_accented: bool = False
    note: str = ""
    ring: float | None = None

    @property
    def solid_end(self) -> float:
        """Where the solid part ends."""
        return self.value if self.low is None else self.low

    @property
    def end(self) -> float:
        """Where the mark ends."""
        return self.value if self.high is None else max(self.value, self.high)

    @property
    def extent(self) -> float:
        """The largest number that is drawn."""
        return self.end if self.ring is None else max(self.end, self.ring)

    @property
    def colour(self) -> str:
        """The name of its colour."""
        return "accent" if self.is_accented else "bar"


@dataclass(frozen=True, repr=False)
class BarChart(Chart):
    """Horizontal bars from zero, one per row.

    ``write`` formats a value. ``maximum`` is the end of the axis; by default, the longest bar.
    ``legend``: what the bars and the rings show, if there are rings.
    """

    title: str
    bars: tuple[Bar, ...]
    write: Callable[[float], str]
    maximum: float | None = None
    legend: tuple[str, str] | None = None

    @property
    def axis(self) -> Axis:
        """The axis below the bars."""
        longest = max((bar.extent for bar in self.bars), default=1.0)
        return linear_axis(0, self.maximum or longest or 1.0, self.write)

    def draw(self, drawing: Drawing) -> float:
        """Draw the bars: labels on the left if there is room, otherwise above their bars."""
        if self.legend is None:
            return self._draw_bars(drawing)
        _draw_legend(drawing, *self.legend)
        drawing.start_group(dy=_LEGEND_HEIGHT)
        height = self._draw_bars(drawing)
        drawing.end_group()
        return _LEGEND_HEIGHT + height

    def _draw_bars(self, drawing: Drawing) -> float:
        if drawing.width >= _MIN_WIDE_WIDTH:
            return self._draw_wide(drawing)
        return self._draw_narrow(drawing)

    def _draw_wide(self, drawing: Drawing) -> float:
        label_limit = _MAX_LABEL_SHARE * drawing.width
        labels = [fit_text(bar.label, label_limit) for bar in self.bars]
        label_end = max(map(text_width, labels), default=0.0)
        value_width = max(
            (text_width(self.write(bar.value), bold=True) for bar in self.bars), default=0.0
        )
        left = label_end + _GAP
        right = drawing.width - value_width - self._interval_width() - 2 * _GAP
        bottom = _WIDE_ROW * len(self.bars)
        self._draw_grid(drawing, left, right - left, 0, bottom, 6)
        self._draw_ticks(drawing, left, right, bottom, 6)
        for row, (bar, label) in enumerate(zip(self.bars, labels, strict=True)):
            middle = _WIDE_ROW * (row + 0.5)
            drawing.start_group(bar.note)
            drawing.text(label_end, middle + 4.5, label, anchor="end")
            self._draw_mark(drawing, bar, left, right, middle)
            value_end = right + _GAP + value_width
            drawing.text(value_end, middle + 4.5, self.write(bar.value), anchor="end", bold=True)
            self._draw_interval(drawing, bar, drawing.width, middle + 4.5)
            drawing.end_group()
        return bottom + _AXIS_HEIGHT

    def _draw_narrow(self, drawing: Drawing) -> float:
        bottom = _NARROW_ROW * len(self.bars)
        left = _RING_RADIUS + 1 if self.legend else 0.0  # a ring at either end is drawn whole
        right = drawing.width - left
        for row in range(len(self.bars)):  # no line crosses the numbers above a bar
            top = _NARROW_ROW * row + 21
            self._draw_grid(drawing, left, right - left, top, _NARROW_ROW - 21, 3)
        self._draw_ticks(drawing, left, right, bottom, 3)
        interval_width = self._interval_width()
        for row, bar in enumerate(self.bars):
            top = _NARROW_ROW * row
            value = self.write(bar.value)
            value_end = drawing.width - interval_width - 6
            label_limit = value_end - text_width(value, bold=True) - _GAP
            drawing.start_group(bar.note)
            drawing.text(0, top + 15, fit_text(bar.label, label_limit))
            drawing.text(value_end, top + 15, value, anchor="end", bold=True)
            self._draw_interval(drawing, bar, drawing.width, top + 15)
            self._draw_mark(drawing, bar, left, right, top + 31)
            drawing.end_group()
        return bottom + _AXIS_HEIGHT

    def _draw_interval(self, drawing: Drawing, bar: Bar, right: float, y: float) -> None:
        text = self._interval_text(bar)
        drawing.text(right, y, text, fill="faint", anchor="end", size=SMALL)

    def _interval_width(self) -> float:
        return max((text_width(self._interval_text(bar), SMALL) for bar in self.bars), default=0.0)

    def _interval_text(self, bar: Bar) -> str:
        if bar.low is None or bar.high is None:
            return ""
        return f"{self.write(bar.low)} – {self.write(bar.high)}"

    def _draw_grid(
        self,
        drawing: Drawing,
        left: float,
        width: float,
        top: float,
        height: float,
        tick_count: int,
    ) -> None:
        for tick in self.axis.ticks(tick_count):
            x = left + self.axis.position(tick) * width
            drawing.line(x, top, x, top + height, "line")

    def _draw_ticks(
        self, drawing: Drawing, left: float, right: float, bottom: float, tick_count: int
    ) -> None:
        axis = self.axis
        for tick in axis.ticks(tick_count):
            x = left + axis.position(tick) * (right - left)
            text = axis.tick_text(tick)
            anchor = "middle"
            if x - left < text_width(text, SMALL) / 2:
                anchor = "start"
            elif right - x < text_width(text, SMALL) / 2:
                anchor = "end"
            drawing.text(x, bottom + 17, text, fill="faint", anchor=anchor, size=SMALL)

    def _draw_mark(
        self, drawing: Drawing, bar: Bar, left: float, right: float, middle: float
    ) -> None:
        axis = self.axis
        width = right - left
        solid_end = left + axis.position(bar.solid_end) * width
        value = left + axis.position(bar.value) * width
        top = middle - _BAR_HEIGHT / 2
        drawing.rectangle(left, top, solid_end - left + 0.3, _BAR_HEIGHT, bar.colour)
        if bar.high is not None:
            end = left + axis.position(bar.high) * width
            drawing.fading_rectangle(solid_end, top, end - solid_end, _BAR_HEIGHT, bar.colour)
            drawing.line(end, top + 3, end, top + _BAR_HEIGHT - 3, bar.colour, 1.2)
        drawing.line(value, top - 2, value, top + _BAR_HEIGHT + 2, "ink", 2)
        if bar.ring is not None:
            x = left + axis.position(bar.ring) * width
            drawing.circle(x, middle, _RING_RADIUS, fill="paper", stroke="ink")

    def to_text(self, width: int = 80) -> str:
        """Return one line per bar."""
        numbers = [f"{self.write(bar.value)}  {self._interval_text(bar)}" for bar in self.bars]
        number_width = max(map(len, numbers), default=0)
        label_limit = max(width // 3, 8)
        labels = [shorten(bar.label, label_limit) for bar in self.bars]
        label_width = max(map(len, labels), default=0)
        track = max(width - label_width - number_width - 4, 10)
        lines = []
        for bar, label, number in zip(self.bars, labels, numbers, strict=True):
            mark = _text_mark(bar, self.axis, track)
            lines.append(f"{label:>{label_width}}  {mark:<{track}}  {number}".rstrip())
        if self.legend is not None:
            bar_label, ring_label = self.legend
            lines.append(f"{'':{label_width}}  █ {bar_label}"[:width])
            lines.append(f"{'':{label_width}}  {_TEXT_RING} {ring_label}"[:width])
        return "\n".join(lines)


def _text_mark(bar: Bar, axis: Axis, track: int) -> str:
    """Return a bar of block characters that gets lighter along its interval."""
    solid = round(axis.position(bar.solid_end) * track)
    end = round(axis.position(bar.end) * track)
    text = "█" * solid
    blurred = end - solid
    for index in range(blurred):
        text += _SHADES[index * len(_SHADES) // blurred]
    if bar.ring is None:
        return text
    column = min(round(axis.position(bar.ring) * track), track - 1)
    text = text.ljust(column + 1)
    return text[:column] + _TEXT_RING + text[column + 1 :]


def _draw_legend(drawing: Drawing, bar_label: str, ring_label: str) -> None:
    """Draw a bar and a ring with their labels, in one line."""
    ring_width = 18 + text_width(ring_label, SMALL)
    bar_text = fit_text(bar_label, drawing.width - 34 - 16 - ring_width, SMALL)
    drawing.rectangle(0, 4, 13, 10, "bar")
    drawing.fading_rectangle(13, 4, 13, 10, "bar")
    drawing.line(19, 2, 19, 16, "ink", 2)
    drawing.text(34, 13, bar_text, size=SMALL)
    ring_x = 34 + text_width(bar_text, SMALL) + 16
    drawing.circle(ring_x + _RING_RADIUS, 9, _RING_RADIUS, fill="paper", stroke="ink")
    drawing.text(ring_x + 18, 13, ring_label, size=SMALL)
