"""Strips: rows of coloured runs, such as the reports that each answer may produce.

Runs of the same colour are drawn as one path, so that even a picture of 256 rows with thousands of
runs stays small.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sfumato.charts.chart import Chart
from sfumato.charts.drawing import SMALL, Drawing, fit_text, text_width
from sfumato.charts.palette import MAP_STEPS
from sfumato.charts.terminal import shade
from sfumato.foundation.formatting import shorten

__all__ = [
    "STEP_COUNTS",
    "ColourRun",
    "Span",
    "Strip",
    "StripChart",
    "draw_runs",
    "draw_scale",
    "label_stride",
    "number_labels",
    "scale_colour",
]

STEP_COUNTS = {"promise": 5, "map": MAP_STEPS}
"""The number of colours on each scale."""

_LABEL_SHARE = 0.3  # of the width
_HEIGHT = 380.0  # of all rows together
_MIN_ROW = 1.5
_MAX_ROW = 30.0
_MIN_GAP_ROW = 9.0  # lower rows have no gaps between them
_GAP = 2.0
_MIN_SPAN = 5.0  # narrower spans have no lines between them
_OVERLAP = 0.4  # of rows without gaps, which would otherwise show the paper between them
_LABEL_HEIGHT = 15.0
_MAX_SPARSE_LABELS = 12  # if there is no room for all labels
_SWATCH = 15.0
_SCALE_HEIGHT = 26.0

PixelRun = tuple[float, float, str]
"""Where a run starts and ends, in pixels, and the name of its colour."""

TenthsRun = tuple[int, int, str]
"""The same in tenths of a pixel."""


@dataclass(frozen=True)
class ColourRun:
    """A part of a row, from 0 at its start to 1 at its end.

    ``strength`` is from 0 to 1, or ``None`` for no colour.
    """

    start: float
    end: float
    strength: float | None


@dataclass(frozen=True)
class Strip:
    """A row of runs, from left to right."""

    label: str
    runs: tuple[ColourRun, ...]


@dataclass(frozen=True)
class Span:
    """A part of the horizontal axis, from 0 to 1, that belongs to the row with this number."""

    start: float
    end: float
    row: int


@dataclass(frozen=True, repr=False)
class StripChart(Chart):
    """Rows of coloured runs over a common axis.

    ``heading`` says what the rows and the runs are. ``spans`` divide the axis and are labelled like
    their rows. ``scale`` names the colours, and ``scale_ends`` says what the weakest and the
    strongest colour mean.
    """

    title: str
    strips: tuple[Strip, ...]
    spans: tuple[Span, ...] = ()
    heading: str = ""
    scale: str = "map"
    scale_ends: tuple[str, str] = ("", "")

    def draw(self, drawing: Drawing) -> float:
        """Draw the rows, with their labels on the left and those of the spans above."""
        labels = [strip.label for strip in self.strips]
        rows, columns, left = self._arrange_labels(labels, drawing.width)
        y = 14.0
        if self.heading:
            heading = fit_text(self.heading, drawing.width, SMALL)
            drawing.text(0, y, heading, fill="faint", size=SMALL)
            y += 24
        width = drawing.width - left
        self._draw_span_labels(drawing, columns, left, width, y)
        top = y + 8
        height = min(max(_HEIGHT / max(len(labels), 1), _MIN_ROW), _MAX_ROW)
        for row in range(0, len(rows), label_stride(len(rows), height)):
            middle = top + (row + 0.5) * height
            drawing.text(left - 8, middle + 4, rows[row], anchor="end", size=SMALL)
        draw_runs(drawing, [self._place(strip, left, width) for strip in self.strips], top, height)
        bottom = top + height * len(rows)
        self._draw_edges(drawing, left, width, top, bottom)
        return draw_scale(drawing, left, bottom + 8, self.scale, self.scale_ends)

    def _arrange_labels(
        self, labels: list[str], width: float
    ) -> tuple[list[str], list[str], float]:
        """Return the labels of rows and of spans, and where the rows start."""
        limit = _LABEL_SHARE * width
        short_labels = [fit_text(label, limit, SMALL) for label in labels]
        left = _label_end(short_labels)
        for span in self.spans:
            if text_width(labels[span.row], SMALL) > (span.end - span.start) * (width - left) - 4:
                rows, columns = number_labels(labels, limit)
                return rows, columns, _label_end(rows)
        return short_labels, labels, left

    def _draw_span_labels(
        self, drawing: Drawing, labels: list[str], left: float, width: float, y: float
    ) -> None:
        """Draw the labels above the spans, except those that are too close to the last one."""
        text_end = 0.0
        gap = 4.0 if len(self.spans) <= _MAX_SPARSE_LABELS else 12.0
        for span in self.spans:
            middle = left + (span.start + span.end) / 2 * width
            text = labels[span.row]
            half = text_width(text, SMALL) / 2
            middle = min(middle, drawing.width - half)
            if middle - half > text_end:
                drawing.text(middle, y, text, anchor="middle", size=SMALL)
                text_end = middle + half + gap

    def _draw_edges(
        self, drawing: Drawing, left: float, width: float, top: float, bottom: float
    ) -> None:
        """Draw a line between spans, unless they are so narrow that lines would hide them."""
        for span, after in pairwise(self.spans):
            if min(span.end - span.start, after.end - after.start) * width >= _MIN_SPAN:
                x = left + after.start * width
                drawing.line(x, top, x, bottom, "paper", 1.5)

    def _place(self, strip: Strip, left: float, width: float) -> Iterator[PixelRun]:
        for run in strip.runs:
            colour = scale_colour(self.scale, run.strength)
            yield left + run.start * width, left + run.end * width, colour

    def to_text(self, width: int = 80) -> str:
        """Return a line of shaded characters per row."""
        labels = [shorten(strip.label, max(width // 3, 8)) for strip in self.strips]
        label_width = max(map(len, labels), default=0)
        track = max(width - label_width - 2, 10)
        lines = []
        for label, strip in zip(labels, self.strips, strict=True):
            marks = "".join(_shade_at(strip, (column + 0.5) / track) for column in range(track))
            lines.append(f"{label:>{label_width}}  {marks}".rstrip())
        return "\n".join(lines)


def _shade_at(strip: Strip, position: float) -> str:
    for run in strip.runs:
        if run.start <= position < run.end:
            return shade(run.strength or 0.0)
    return " "


# --- labels ---------------------------------------------------------------------------------------


def number_labels(labels: Sequence[str], limit: float) -> tuple[list[str], list[str]]:
    """Return labels that start with their number, no wider than ``limit``, and the numbers.

    Labels that are as short as numbers stay as they are.
    """
    numbers = [str(index + 1) for index in range(len(labels))]
    if max(map(len, labels), default=0) <= len(str(len(labels))):
        return list(labels), list(labels)
    rows = []
    for number, label in zip(numbers, labels, strict=True):
        rows.append(fit_text(f"{number} {label}", limit, SMALL))
    return rows, numbers


def label_stride(count: int, height: float) -> int:
    """Return how many rows of this height lie between two labels: all have one if there is room."""
    if height >= _LABEL_HEIGHT - 2:
        return 1
    return max(math.ceil(_LABEL_HEIGHT / height), math.ceil(count / _MAX_SPARSE_LABELS))


def _label_end(labels: Iterable[str]) -> float:
    return max((text_width(label, SMALL) for label in labels), default=0.0) + 10


# --- colours --------------------------------------------------------------------------------------


def scale_colour(scale: str, strength: float | None) -> str:
    """Return the name of the colour of a strength from 0 to 1, or of ``None``."""
    if strength is None:
        return "noise"
    step_count = STEP_COUNTS[scale]
    return f"{scale}{min(int(strength * step_count), step_count - 1)}"


def draw_scale(
    drawing: Drawing, left: float, top: float, scale: str, ends: tuple[str, str]
) -> float:
    """Draw the colours of a scale between two texts; return where they end."""
    low, high = ends
    if not low and not high:
        return top
    x = left
    total = text_width(low + high, SMALL) + 16 + _SWATCH * STEP_COUNTS[scale]
    if x + total > drawing.width:
        x = 0
    x += text_width(low, SMALL) + 8
    drawing.text(x - 8, top + 14, low, fill="faint", anchor="end", size=SMALL)
    for step in range(STEP_COUNTS[scale]):
        drawing.rectangle(x + step * _SWATCH, top + 5, _SWATCH + 0.3, 10, f"{scale}{step}")
    x += _SWATCH * STEP_COUNTS[scale] + 8
    drawing.text(x, top + 14, high, fill="faint", size=SMALL)
    return top + _SCALE_HEIGHT


# --- runs -----------------------------------------------------------------------------------------


def draw_runs(
    drawing: Drawing, rows: Sequence[Iterable[PixelRun]], top: float, height: float
) -> None:
    """Draw rows of runs below each other, with one path for each colour.

    If the rows have neither gaps nor holes, the colour of most runs is a rectangle behind them.
    """
    merged_rows = [list(_merge(runs)) for runs in rows]
    has_gaps = height >= _MIN_GAP_ROW
    colours = Counter(colour for runs in merged_rows for _, _, colour in runs)
    background = ""
    if colours and not has_gaps and _is_full(merged_rows):
        background = colours.most_common(1)[0][0]
        left = merged_rows[0][0][0] / 10
        right = merged_rows[0][-1][1] / 10
        drawing.rectangle(left, top, right - left, height * len(rows), background)
    thickness = height - _GAP if has_gaps else height + _OVERLAP
    for colour in sorted(colours):
        if colour != background:
            commands = _commands(merged_rows, colour, top, height)
            drawing.path(commands, stroke=colour, width=thickness)


def _is_full(rows: Sequence[Sequence[TenthsRun]]) -> bool:
    """Return whether all rows cover the same part of the axis, without holes."""
    ends = {(runs[0][0], runs[-1][1]) for runs in rows if runs}
    if len(ends) != 1 or not all(rows):
        return False
    return all(run[1] == after[0] for runs in rows for run, after in pairwise(runs))


def _commands(rows: Sequence[Sequence[TenthsRun]], colour: str, top: float, height: float) -> str:
    """Return a path through the middle of all runs of a colour."""
    commands = []
    for row, runs in enumerate(rows):
        last_end: int | None = None
        for start, end, run_colour in runs:
            if run_colour != colour:
                continue
            if last_end is None:
                y = round(10 * (top + (row + 0.5) * height))
                commands.append(f"M{_tenths(start)} {_tenths(y)}")
            else:
                commands.append(f"m{_tenths(start - last_end)} 0")
            commands.append(f"h{_tenths(end - start)}")
            last_end = end
    return "".join(commands)


def _merge(runs: Iterable[PixelRun]) -> Iterator[TenthsRun]:
    """Yield the runs in tenths of a pixel, with neighbours of the same colour as one."""
    last: TenthsRun | None = None
    for left, right, colour in runs:
        start = round(10 * left)
        end = round(10 * right)
        if start == end:
            continue
        if last is not None and last[1:] == (start, colour):
            last = (last[0], end, colour)
            continue
        if last is not None:
            yield last
        last = (start, end, colour)
    if last is not None:
        yield last


def _tenths(number: int) -> str:
    """Format a number of tenths as briefly as SVG allows."""
    whole, rest = divmod(number, 10)
    if not rest:
        return str(whole)
    return f"{whole or ''}.{rest}"
