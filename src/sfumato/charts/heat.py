"""Heat maps: a square for each pair of labels, the stronger its colour the larger its strength."""

import math
from dataclasses import dataclass

from sfumato.charts.chart import Chart
from sfumato.charts.drawing import SMALL, Drawing, fit_text, text_width
from sfumato.charts.strips import (
    PixelRun,
    draw_runs,
    draw_scale,
    label_stride,
    number_labels,
    scale_colour,
)
from sfumato.charts.terminal import shade
from sfumato.foundation.formatting import shorten

__all__ = ["HeatMap", "Square"]

_MAX_SQUARE = 62.0
_MIN_SEPARATE = 9.0  # smaller squares are drawn as runs, without notes
_LABEL_SHARE = 0.3  # of the width
_NUMBERED_LABEL_SHARE = 0.38
_TEXT_SIZES = (SMALL, 10.0)  # in squares; the first that fits into all of them


@dataclass(frozen=True)
class Square:
    """A square: its strength from 0 to 1, or ``None`` for no colour; a short text, and a note."""

    strength: float | None
    text: str = ""
    note: str = ""


@dataclass(frozen=True, repr=False)
class HeatMap(Chart):
    """Squares in rows and columns.

    ``heading`` says what the rows and the columns are. ``scale`` names the colours: promise or map.
    ``scale_ends`` says what the weakest and the strongest colour mean.
    """

    title: str
    labels: tuple[str, ...]
    squares: tuple[tuple[Square, ...], ...]
    heading: str = ""
    column_labels: tuple[str, ...] = ()
    scale: str = "promise"
    scale_ends: tuple[str, str] = ("", "")

    def draw(self, drawing: Drawing) -> float:
        """Draw the squares, with the labels of rows on the left and of columns above."""
        rows, columns, left, side = self._arrange_labels(drawing.width)
        top = self._draw_column_labels(drawing, columns, left, side)
        for row in range(0, len(rows), label_stride(len(rows), side)):
            y = top + (row + 0.5) * side + 4
            drawing.text(left - 8, y, rows[row], anchor="end", size=SMALL)
        if side < _MIN_SEPARATE:
            draw_runs(drawing, [self._runs(row, left, side) for row in self.squares], top, side)
        else:
            self._draw_squares(drawing, left, top, side)
        bottom = top + side * len(self.squares) + 4
        return draw_scale(drawing, left, bottom, self.scale, self.scale_ends)

    def _arrange_labels(self, width: float) -> tuple[list[str], list[str], float, float]:
        """Return the labels of rows and columns, where the squares start, and their size.

        If labels are too wide for the columns, number them, and write the numbers in both places.
        """
        limit = _LABEL_SHARE * width
        columns = list(self.column_labels or self.labels)
        rows = [fit_text(label, limit, SMALL) for label in self.labels]
        left, side = self._place_squares(rows, columns, width)
        widest = max((text_width(label, SMALL) for label in columns), default=0.0)
        if not self.column_labels and widest > side - 4:
            rows, columns = number_labels(self.labels, _NUMBERED_LABEL_SHARE * width)
            left, side = self._place_squares(rows, columns, width)
        return rows, columns, left, side

    def _place_squares(
        self, rows: list[str], columns: list[str], width: float
    ) -> tuple[float, float]:
        left = max((text_width(label, SMALL) for label in rows), default=0.0) + 10
        return left, min((width - left) / max(len(columns), 1), _MAX_SQUARE)

    def _draw_column_labels(
        self, drawing: Drawing, columns: list[str], left: float, side: float
    ) -> float:
        """Draw the labels above the columns, as many as there is room for; return their end."""
        y = 14.0
        if self.heading:
            heading = fit_text(self.heading, drawing.width, SMALL)
            drawing.text(0, y, heading, fill="faint", size=SMALL)
            y += 24
        stride = label_stride(len(columns), side)
        if not self.column_labels and columns:
            widest = max(text_width(label, SMALL) for label in columns)
            stride = max(stride, math.ceil((widest + 3) / side))
        for column in range(0, len(columns), stride):
            text = fit_text(columns[column], stride * side - 3, SMALL)
            drawing.text(left + (column + 0.5) * side, y, text, anchor="middle", size=SMALL)
        return y + 8

    def _runs(self, squares: tuple[Square, ...], left: float, side: float) -> list[PixelRun]:
        runs = []
        for column, square in enumerate(squares):
            start = left + column * side
            end = left + (column + 1) * side  # exactly where the next one starts
            runs.append((start, end, scale_colour(self.scale, square.strength)))
        return runs

    def _draw_squares(self, drawing: Drawing, left: float, top: float, side: float) -> None:
        text_size = self._text_size(side)
        for row, squares in enumerate(self.squares):
            y = top + row * side
            for column, square in enumerate(squares):
                self._draw_square(drawing, square, left + column * side, y, side, text_size)

    def _text_size(self, side: float) -> float:
        """Return the size of the texts in squares, or 0 if some do not fit."""
        texts = {square.text for squares in self.squares for square in squares}
        for size in _TEXT_SIZES:
            if all(text_width(text, size) <= side - 2 for text in texts):
                return size
        return 0

    def _draw_square(
        self,
        drawing: Drawing,
        square: Square,
        x: float,
        y: float,
        side: float,
        text_size: float,
    ) -> None:
        gap = 1.0 if side > 12 else 0.2
        fill = scale_colour(self.scale, square.strength)
        drawing.start_group(square.note)
        drawing.rectangle(x + gap, y + gap, side - 2 * gap, side - 2 * gap, fill, 2)
        if square.text and text_size:
            is_dark = square.strength is not None and square.strength >= 0.6
            text_colour = "paper" if is_dark else "ink"
            drawing.text(
                x + side / 2,
                y + side / 2 + 4,
                square.text,
                anchor="middle",
                size=text_size,
                fill=text_colour,
            )
        drawing.end_group()

    def to_text(self, width: int = 80) -> str:
        """Return two shaded characters per square."""
        labels = [shorten(label, max(width // 3, 8)) for label in self.labels]
        label_width = max(map(len, labels), default=0)
        lines = []
        for label, squares in zip(labels, self.squares, strict=True):
            marks = "".join(2 * shade(square.strength or 0.0) for square in squares)
            lines.append(f"{label:>{label_width}}  {marks}".rstrip())
        return "\n".join(lines)
