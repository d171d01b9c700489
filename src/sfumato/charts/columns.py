"""Columns over time: how many reports arrived in each hour or on each day."""

from collections.abc import Callable
from dataclasses import dataclass

from sfumato.charts.axis import linear_axis, time_axis
from sfumato.charts.chart import Chart
from sfumato.charts.drawing import SMALL, Drawing, text_width
from sfumato.charts.terminal import shade

__all__ = ["Column", "ColumnChart"]

_HEIGHT = 150.0
_MIN_HEIGHT = 3.0  # so that all ticks are whole numbers
_FILL = 0.8  # of the time that a column stands for
_MARGIN = 0.25  # before the first column and after the last, in columns
_MIN_COLUMNS = 12


@dataclass(frozen=True)
class Column:
    """A number for a stretch of time that starts at ``start``, in seconds since 1970."""

    start: float
    value: float
    note: str = ""


@dataclass(frozen=True, repr=False)
class ColumnChart(Chart):
    """Columns of equal width, each ``duration`` seconds long."""

    title: str
    columns: tuple[Column, ...]
    duration: float
    write: Callable[[float], str]

    def draw(self, drawing: Drawing) -> float:
        """Draw the axes and the columns."""
        starts = [column.start for column in self.columns]
        first = min(starts) - _MARGIN * self.duration
        end = max(starts) + (1 + _MARGIN) * self.duration
        # With few columns, free space keeps them from looking like one slab.
        last = max(end, first + _MIN_COLUMNS * self.duration)
        x_axis = time_axis(first, last)
        highest = max(column.value for column in self.columns)
        y_axis = linear_axis(0, max(highest, _MIN_HEIGHT), self.write)
        y_ticks = y_axis.ticks(3)
        left = max(text_width(self.write(tick), SMALL) for tick in y_ticks) + 10
        width = drawing.width - left
        bottom = 10 + _HEIGHT
        for tick in y_ticks:
            y = bottom - y_axis.position(tick) * _HEIGHT
            drawing.line(left, y, drawing.width, y, "line")
            text = self.write(tick)
            drawing.text(left - 8, y + 4, text, fill="faint", anchor="end", size=SMALL)
        slot_width = self.duration / (last - first) * width
        for tick in x_axis.ticks(8 if drawing.width > 500 else 4):
            text = x_axis.write(tick)
            half = text_width(text, SMALL) / 2
            x = left + x_axis.position(tick) * width + slot_width / 2
            if x + half <= drawing.width:
                drawing.text(x, bottom + 18, text, fill="faint", anchor="middle", size=SMALL)
        column_width = _FILL * slot_width
        for column in self.columns:
            x = left + x_axis.position(column.start) * width + (slot_width - column_width) / 2
            height = y_axis.position(column.value) * _HEIGHT
            drawing.start_group(column.note)
            drawing.rectangle(x, bottom - height, max(column_width, 1), height, "bar", 1.5)
            drawing.end_group()
        return bottom + 26

    def to_text(self, width: int = 80) -> str:
        """Return one shaded character per column, and the largest number."""
        highest = max(column.value for column in self.columns) or 1
        marks = "".join(shade(column.value / highest) for column in self.columns[-width:])
        return f"{marks}\nat most {self.write(highest)}"
