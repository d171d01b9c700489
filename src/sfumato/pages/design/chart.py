"""Draw a design: the promise, how much of it the reports use, and the channel."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.charts import Chart, HeatMap, Panel, SmallMultiples, Square
from sfumato.charts.chart import svg_to_png
from sfumato.charts.drawing import Drawing
from sfumato.charts.palette import MAP_STEPS
from sfumato.charts.strips import ColourRun, Span, Strip, StripChart
from sfumato.designer import Design
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats
from sfumato.foundation.formatting import format_number, format_odds_factor, plural
from sfumato.pages.promise import shorten_label

MAX_DRAWN_SYMBOLS = 256
"""The largest number of symbols for which a design is drawn."""

_ROUNDING_TOLERANCE = 1e-6  # differences below this fraction of ε are rounding errors
_TIE_TOLERANCE = 1e-6  # numbers that differ by less are treated as equal
_WEAKEST_EPSILON = 4.0  # promises at least this weak have the palest colour, unless all are weak
_MAX_COLUMNS = 840  # of the picture of the channel; narrower reports may be left out
_MAX_RUNS = 12_000  # with more, the picture gets fewer columns
_PART_GAP = 18.0
_NOTED_SYMBOLS = 40  # with more, squares are too small to point at

Steps = NDArray[np.intp]
"""For each answer and each column, a step on the scale of colours, or −1 for never."""


def require_drawable(symbol_count: int, *, as_png: bool = False) -> None:
    """Raise an error if there are too many symbols to draw.

    ``as_png``: also raise one if PNG files cannot be written, because the ``charts`` extra is
    missing.
    """
    if symbol_count > MAX_DRAWN_SYMBOLS:
        raise InvalidContext(
            f"a design can be drawn for up to {MAX_DRAWN_SYMBOLS} symbols; "
            f"this context has {symbol_count}. Omit the figure."
        )
    if as_png:
        svg_to_png(Drawing(1).to_svg(1, ""))  # an empty picture


@dataclass(frozen=True)
class DesignChart(Chart):
    """The promise above the channel that keeps it."""

    title: str
    promise: SmallMultiples
    channel: StripChart

    def draw(self, drawing: Drawing) -> float:
        """Draw both parts over the whole width."""
        top = self.promise.draw(drawing) + _PART_GAP
        channel = SmallMultiples(self.title, (Panel(self.channel.title, self.channel),))
        drawing.start_group(dy=top)
        height = channel.draw(drawing)
        drawing.end_group()
        return top + height

    def to_text(self, width: int = 80) -> str:
        """Return both parts below each other."""
        channel = self.channel.to_text(width)
        return f"{self.promise.to_text(width)}\n\n{self.channel.title}\n{channel}"


def design_chart(design: Design) -> DesignChart:
    """Return what is promised, what the reports use of it, what is left over, and the channel."""
    require_drawable(design.context.size)
    return DesignChart(
        "A promise, and the mechanism designed for it", _draw_promise(design), _draw_channel(design)
    )


def design_png(design: Design) -> bytes:
    """Return the chart as the contents of a PNG file."""
    return design_chart(design).to_png()


# --- the promise ----------------------------------------------------------------------------------


def compute_used_promise(Q: Floats) -> Floats:
    """Return ``T[x, x2] = max_y log Q(y|x)/Q(y|x2)``: the smallest matrix that Q satisfies.

    >>> compute_used_promise(np.array([[0.6, 0.4], [0.2, 0.8]])).round(3)
    array([[0.   , 1.099],
           [0.693, 0.   ]])
    """
    with np.errstate(divide="ignore"):
        logs = np.log(Q)
    T = np.zeros((len(Q), len(Q)))
    for x, is_possible in enumerate(Q > 0):
        T[x] = (logs[x, is_possible] - logs[:, is_possible]).max(axis=1)
    return T


def _compute_unused_promise(E: Floats, T: Floats) -> Floats:
    """Return ``E − T``, with 0 for rounding errors and inf where nothing is promised."""
    unused = np.full_like(E, np.inf)
    np.subtract(E, T, where=np.isfinite(E), out=unused)
    return np.where(unused < _ROUNDING_TOLERANCE * E, 0.0, unused)


def _draw_promise(design: Design) -> SmallMultiples:
    """Draw the promise, the part that the reports use, and the part left over, if there is any."""
    E = design.context.closure().matrix()
    used = np.minimum(compute_used_promise(design.mechanism.matrix()), E)
    T = np.where(np.isfinite(E), used, np.inf)
    unused = _compute_unused_promise(E, T)
    weakest = float(E[np.isfinite(E)].max(initial=_WEAKEST_EPSILON))
    labels = tuple(shorten_label(label) for label in design.context.domain.labels)
    promised = _heat_map("Promised: ε for every pair of answers", labels, E, weakest)
    in_use = _heat_map("Used by the reports: ε for every pair of answers", labels, T, weakest)
    panels = [Panel("promised: ε", promised), Panel("used by the reports", in_use)]
    largest_rest = float(unused[np.isfinite(unused)].max(initial=0.0))
    if largest_rest > 0:
        title = "Left over: ε for every pair of answers"
        panels.append(
            Panel("left over", _heat_map(title, labels, unused, largest_rest, scale="map"))
        )
    return SmallMultiples("What is promised, and how much of it the reports use", tuple(panels))


def _heat_map(
    title: str, labels: tuple[str, ...], matrix: Floats, largest: float, scale: str = "promise"
) -> HeatMap:
    """Draw a matrix: a stronger promise and a larger rest both have the stronger colour."""
    is_promise = scale == "promise"
    rows = []
    for x, entries in enumerate(matrix.tolist()):
        squares = []
        for x2, entry in enumerate(entries):
            if x == x2:
                squares.append(Square(None, "–"))
            elif math.isinf(entry):
                squares.append(Square(None, "∞", _note(labels, x, x2, "nothing is promised")))
            else:
                strength = 1 - entry / largest if is_promise else entry / largest
                note = _note(labels, x, x2, f"ε = {entry:.4g}")
                squares.append(Square(strength, f"{entry:.2g}", note))
        rows.append(tuple(squares))
    ends = ("nothing", f"ε = {format_number(largest)}")
    if is_promise:
        ends = (f"weak, ε = {format_number(largest)}", "strong, ε = 0")
    return HeatMap(title, labels, tuple(rows), scale=scale, scale_ends=ends)


def _note(labels: tuple[str, ...], x: int, x2: int, text: str) -> str:
    if len(labels) > _NOTED_SYMBOLS:
        return ""
    return f"odds of {labels[x]} against {labels[x2]}: {text}"


# --- the channel ----------------------------------------------------------------------------------


def order_reports(Q: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order the reports by the symbol most likely to produce each, then by how much they reveal.

    The less likely other symbols are to produce a report, the more it reveals. Return the order,
    with each symbol's most revealing reports first, and the symbol of each report in that order.
    """
    relative_probabilities = Q / Q.max(axis=0)
    symbols = (relative_probabilities >= 1 - _TIE_TOLERANCE).argmax(axis=0)
    order = np.lexsort((relative_probabilities.sum(axis=0).round(6), symbols))
    return order, symbols[order]


def _draw_channel(design: Design) -> StripChart:
    """Draw how much less often each answer produces a report than the most likely answer does.

    The width of a report is proportional to its frequency.
    """
    Q = design.mechanism.matrix()
    order, symbols = order_reports(Q)
    ends = np.cumsum((design.prior @ Q)[order])
    ends /= ends[-1]
    with np.errstate(divide="ignore"):
        logs = np.log(Q / Q.max(axis=0))[:, order]
    log_range = float(-logs[np.isfinite(logs)].min(initial=0.0)) or 1.0
    steps = _quantise(logs, log_range)
    strips = []
    labels = [shorten_label(label) for label in design.context.domain.labels]
    for label, row in zip(labels, _sample(steps, ends), strict=True):
        strips.append(Strip(label, _runs(row)))
    reports = plural(design.mechanism.outputs, "report")
    return StripChart(
        title="How often each answer produces each report",
        strips=tuple(strips),
        spans=_spans(ends, symbols),
        heading=f"{reports}, grouped by their most likely answer",
        scale_ends=(f"{format_odds_factor(log_range)} times less often", "most often"),
    )


def _quantise(logs: Floats, log_range: float) -> Steps:
    """Return the step of each entry on the scale of colours."""
    strengths = np.where(np.isfinite(logs), 1 + np.maximum(logs, -log_range) / log_range, 0)
    steps = np.minimum(strengths * MAP_STEPS + _TIE_TOLERANCE, MAP_STEPS - 1).astype(np.intp)
    return np.where(np.isfinite(logs), steps, -1)


def _sample(steps: Steps, ends: Floats) -> Steps:
    """Return the report at each of many evenly spaced columns, without too many runs.

    ``ends``: where each report ends, from 0 to 1.
    """
    column_count = _MAX_COLUMNS
    while True:
        centres = (np.arange(column_count) + 0.5) / column_count
        ranks = np.minimum(np.searchsorted(ends, centres), len(ends) - 1)
        columns = steps[:, ranks]
        run_count = len(steps) + np.count_nonzero(np.diff(columns, axis=1))
        if run_count <= _MAX_RUNS or column_count <= len(steps):
            return columns
        column_count = column_count * 3 // 4


def _runs(row: Steps) -> tuple[ColourRun, ...]:
    """Return one run for each stretch of equal steps."""
    edges = [0, *(np.flatnonzero(np.diff(row)) + 1).tolist(), len(row)]
    runs = []
    for start, end in pairwise(edges):
        step = int(row[start])
        strength = None if step < 0 else (step + 0.5) / MAP_STEPS
        runs.append(ColourRun(start / len(row), end / len(row), strength))
    return tuple(runs)


def _spans(ends: Floats, symbols: NDArray[np.intp]) -> tuple[Span, ...]:
    """Return the part of the axis that each symbol's reports occupy."""
    starts = np.flatnonzero(np.diff(symbols, prepend=-1))
    edges = [0.0, *ends[starts[1:] - 1].tolist(), 1.0]
    rows = symbols[starts].tolist()
    return tuple(
        Span(start, end, row) for (start, end), row in zip(pairwise(edges), rows, strict=True)
    )
