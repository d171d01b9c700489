"""Draw a design: the promise, how much of it is used, and the channel.

Requires the ``charts`` extra.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.designer import Design
from sfumato.domains import Label
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats
from sfumato.pages.pictures import (
    BACKGROUND,
    FAINT,
    INK,
    LIGHT_TO_DARK,
    MAP_SCALE,
    PALE,
    PROMISE_SCALE,
    colour_map,
    figure_png,
    figure_svg,
    hide_sides,
    matplotlib_label,
    require_matplotlib,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

MAX_DRAWN_SYMBOLS = 256
"""The largest number of symbols for which a design is drawn."""

_MAX_LABELS = 24  # if there are more symbols, about 12 of them have a label
_MAX_NUMBERED_SYMBOLS = 10  # larger matrices have no numbers
_ROW_LABEL_LENGTH = 18  # characters
_COLUMN_LABEL_LENGTH = 12
_CHANNEL_WIDTH = 1600  # pixels
_MIN_LABEL_WIDTH = 0.025  # symbols whose reports occupy a smaller share of the axis have no label
_LUMINANCE_WEIGHTS = np.array([0.30, 0.59, 0.11])
_ROUNDING_TOLERANCE = 1e-6  # differences below this fraction of ε are rounding errors
_TIE_TOLERANCE = 1e-6  # numbers that differ by less are treated as equal
_ROUND_FACTORS = (
    *(1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000),
    *(1e4, 1e6, 1e8, 1e10, 1e12, 1e14, 1e16),
)
_MAX_TICKS = 8  # on the scale of factors

_LIGHT_PALETTE = {colour: colour for colour in LIGHT_TO_DARK}

Palette = Mapping[str, str]
"""Maps each colour of the light page to the colour to draw with."""


def require_drawable(symbol_count: int) -> None:
    """Raise an error if there are too many symbols to draw, or if matplotlib is missing."""
    if symbol_count > MAX_DRAWN_SYMBOLS:
        raise InvalidContext(
            f"a design can be drawn for up to {MAX_DRAWN_SYMBOLS} symbols; "
            f"this context has {symbol_count}. Omit the figure."
        )
    require_matplotlib()


def design_png(design: Design) -> bytes:
    """Return the figure as the contents of a PNG file."""
    return figure_png(_draw_figure(design, _LIGHT_PALETTE))


def design_svg(design: Design, *, dark: bool = False) -> str:
    """Return the figure as an ``<svg>`` element, for a light or a dark page."""
    palette = LIGHT_TO_DARK if dark else _LIGHT_PALETTE
    return figure_svg(lambda: _draw_figure(design, palette), salt=f"sfumato {dark}")


# --- what to draw ---------------------------------------------------------------------------------


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


def order_reports(Q: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order the reports by the symbol most likely to produce each, then by how much they reveal.

    The less likely other symbols are to produce a report, the more it reveals. Return the order,
    with each symbol's most revealing reports first, and the symbol of each report in that order.
    """
    relative_probabilities = Q / Q.max(axis=0)
    symbols = (relative_probabilities >= 1 - _TIE_TOLERANCE).argmax(axis=0)
    order = np.lexsort((relative_probabilities.sum(axis=0).round(6), symbols))
    return order, symbols[order]


@dataclass(frozen=True)
class _Span:
    """The part of the horizontal axis, from 0 to 1, that one symbol's reports occupy."""

    symbol: int
    left: float
    right: float


def _channel_image(Q: Floats, prior: Floats) -> tuple[Floats, list[_Span]]:
    """Return an image of the channel, and the span of each symbol's reports.

    The width of a report is proportional to its frequency. A pixel is
    ``log Q(y|x) − max_x2 log Q(y|x2)``, or −inf where x never produces y.
    """
    order, symbols = order_reports(Q)
    with np.errstate(divide="ignore"):
        logs = np.log(Q / Q.max(axis=0))
    ends = np.cumsum((prior @ Q)[order])
    pixel_centres = (np.arange(_CHANNEL_WIDTH) + 0.5) / _CHANNEL_WIDTH * ends[-1]
    ranks = np.minimum(np.searchsorted(ends, pixel_centres), len(ends) - 1)
    edges = np.concatenate([[0.0], ends / ends[-1]])
    starts = np.flatnonzero(np.diff(symbols, prepend=-1))
    stops = np.append(starts[1:], len(order))
    spans = []
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        spans.append(_Span(int(symbols[start]), float(edges[start]), float(edges[stop])))
    return logs[:, order[ranks]], spans


def _compute_unused_promise(E: Floats, T: Floats) -> Floats:
    """Return ``E − T``, with 0 for rounding errors and inf where nothing is promised."""
    unused = np.full_like(E, np.inf)
    np.subtract(E, T, where=np.isfinite(E), out=unused)
    return np.where(unused < _ROUNDING_TOLERANCE * E, 0.0, unused)


# --- drawing --------------------------------------------------------------------------------------


def _draw_figure(design: Design, palette: Palette) -> "Figure":
    require_drawable(design.context.size)
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    style: dict[Any, object] = {
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "axes.titlecolor": palette[INK],
        "axes.labelcolor": palette[FAINT],
        "xtick.color": palette[INK],
        "ytick.color": palette[INK],
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(9.4, 8.0), layout=ConstrainedLayoutEngine(h_pad=0.1))
        grid = figure.add_gridspec(2, 3, height_ratios=(1.5, 1))
        panels = [figure.add_subplot(grid[0, column]) for column in range(3)]
        _draw_matrices(panels, design, palette)
        _draw_channel(figure.add_subplot(grid[1, :]), design, palette)
    return figure


def _draw_matrices(panels: "list[Axes]", design: Design, palette: Palette) -> None:
    """Draw three matrices: the promise, the part that reports use, and the part left over."""
    E = design.context.closure().matrix()
    used = np.minimum(compute_used_promise(design.mechanism.matrix()), E)
    T = np.where(np.isfinite(E), used, np.inf)
    largest_epsilon = float(E[np.isfinite(E)].max(initial=0.0)) or 1.0
    promise_colours = _colour_map(PROMISE_SCALE, palette)
    unused_colours = _colour_map((BACKGROUND, MAP_SCALE[1], MAP_SCALE[2]), palette)
    matrices = (
        ("promised: ε", E, promise_colours),
        ("used by the reports", T, promise_colours),
        ("left over", _compute_unused_promise(E, T), unused_colours),
    )
    labels = design.context.domain.labels
    symbols = _symbols_to_label(labels)
    for axes, (title, matrix, colours) in zip(panels, matrices, strict=True):
        _draw_matrix(axes, matrix, colours(np.clip(matrix / largest_epsilon, 0, 1)), palette)
        _label_answers(axes, labels, symbols, symbols)
        axes.set_title(title)
    for axes in panels[1:]:
        axes.set_yticks([])
    panels[0].set_ylabel("odds of this answer …")
    panels[1].set_xlabel("… against this one")
    _draw_colour_bar(panels[:2], promise_colours, largest_epsilon, "ε")
    _draw_colour_bar(panels[2:], unused_colours, largest_epsilon, "ε left over")


def _draw_matrix(axes: "Axes", matrix: Floats, colours: Floats, palette: Palette) -> None:
    """Colour each pair, and hatch the pairs for which nothing is promised."""
    k = len(matrix)
    diagonal = np.arange(k)
    colours[~np.isfinite(matrix)] = 0
    colours[diagonal, diagonal] = _colour_map((PALE, PALE), palette)(0.0)
    _draw_hatch(axes, palette)
    axes.imshow(colours, interpolation="nearest", extent=(-0.5, k - 0.5, k - 0.5, -0.5), zorder=1)
    if k <= _MAX_NUMBERED_SYMBOLS:
        _write_numbers(axes, matrix, colours, palette)


def _write_numbers(axes: "Axes", matrix: Floats, colours: Floats, palette: Palette) -> None:
    """Write each entry on its square, dark on light or light on dark."""
    for (x, x2), entry in np.ndenumerate(matrix):
        text = f"{entry:.2g}"
        brightness = float(colours[x, x2, :3] @ _LUMINANCE_WEIGHTS)
        ink = INK if brightness > 0.45 else LIGHT_TO_DARK[INK]
        if x == x2:
            text = "–"
            ink = palette[FAINT]
        elif math.isinf(entry):
            text = "∞"
            ink = palette[FAINT]
        axes.text(x2, x, text, ha="center", va="center", fontsize=8, color=ink, zorder=2)


def _draw_channel(axes: "Axes", design: Design, palette: Palette) -> None:
    Q = design.mechanism.matrix()
    logs, spans = _channel_image(Q, design.prior)
    is_possible = np.isfinite(logs)
    log_range = float(-logs[is_possible].min(initial=0.0)) or 1.0
    colour_scale = _colour_map(MAP_SCALE, palette)
    colours = colour_scale(1 + np.where(is_possible, logs, 0) / log_range)
    colours[~is_possible] = 0
    _draw_hatch(axes, palette)
    extent = (0, 1, len(Q) - 0.5, -0.5)
    axes.imshow(colours, interpolation="nearest", extent=extent, aspect="auto", zorder=1)
    for span in spans[1:]:
        axes.axvline(span.left, color=palette[PALE], linewidth=0.5, zorder=2)
    symbols = []
    centres = []
    for span in spans:
        if span.right - span.left >= _MIN_LABEL_WIDTH:
            symbols.append(span.symbol)
            centres.append((span.left + span.right) / 2)
    _label_answers(axes, design.context.domain.labels, symbols, centres)
    axes.set_title("how often each answer produces each report")
    axes.set_xlabel(
        f"{design.mechanism.outputs:,} reports, grouped by the answer that produces them most "
        "often; width: frequency"
    )
    axes.set_ylabel("produced by this answer")
    title = "times less often than by the answer that produces it most often"
    bar = _draw_colour_bar([axes], colour_scale, log_range, title)
    factors = _factor_ticks(log_range)
    positions = [log_range - math.log(factor) for factor in factors]
    bar.set_ticks(positions, labels=[f"{factor:,g}" for factor in factors])


def _label_answers(
    axes: "Axes", labels: Sequence[Label], symbols: Sequence[int], positions: Sequence[float]
) -> None:
    """Label the rows, and label each of ``positions`` on the horizontal axis with its symbol."""
    rows = _symbols_to_label(labels)
    row_labels = [matplotlib_label(labels[x], _ROW_LABEL_LENGTH) for x in rows]
    column_labels = [matplotlib_label(labels[x], _COLUMN_LABEL_LENGTH) for x in symbols]
    axes.set_yticks(rows, row_labels, fontsize=8)
    axes.set_xticks(positions, column_labels, rotation=90, fontsize=8)
    axes.tick_params(length=0)
    hide_sides(axes, *axes.spines)


def _symbols_to_label(labels: Sequence[Label]) -> range:
    """Return all symbols, or about 12 evenly spaced ones if there are many."""
    step = 1
    if len(labels) > _MAX_LABELS:
        step = math.ceil(2 * len(labels) / _MAX_LABELS)
    return range(0, len(labels), step)


def _factor_ticks(log_range: float) -> list[float]:
    """Return round factors up to e^log_range, far enough apart for a logarithmic scale."""
    ticks: list[float] = [1]
    for factor in _ROUND_FACTORS:
        has_room = log_range / _MAX_TICKS <= math.log(factor / ticks[-1])
        if has_room and math.log(factor) <= log_range + _TIE_TOLERANCE:
            ticks.append(factor)
    return ticks


def _draw_colour_bar(
    panels: "list[Axes]", colours: "Colormap", max_value: float, title: str
) -> Any:  # noqa: ANN401
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = ScalarMappable(Normalize(0, max_value), colours)
    bar = panels[0].figure.colorbar(
        scale, ax=panels, location="bottom", shrink=0.5, aspect=40, pad=0.02
    )
    bar.set_label(title, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    return bar


def _draw_hatch(axes: "Axes", palette: Palette) -> None:
    """Hatch the background, which is visible where nothing covers it."""
    from matplotlib.patches import Rectangle

    background = Rectangle(
        (0, 0),
        1,
        1,
        transform=axes.transAxes,
        facecolor=palette[BACKGROUND],
        edgecolor=palette[PALE],
        hatch="////",
        lw=0,
    )
    axes.add_patch(background)


def _colour_map(scale: tuple[str, ...], palette: Palette) -> "Colormap":
    return colour_map(tuple(palette[colour] for colour in scale))
