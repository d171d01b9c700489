"""The picture of a design: the promise, how much of it is used, the channel. Needs ``charts``."""

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
    DARK,
    FAINT,
    INK,
    MAP_SCALE,
    PALE,
    PROMISE_SCALE,
    colour_map,
    figure_png,
    figure_svg,
    hide_sides,
    plain_label,
    require_matplotlib,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

MAX_DRAWN = 256
"""Most symbols for which a design is drawn."""

_MAX_LABELS = 24  # if there are more symbols, about 12 of them have a label
_MAX_NUMBERED = 10  # symbols; larger squares have no numbers
_ROW_LABEL = 18  # characters
_COLUMN_LABEL = 12
_SAMPLES = 1600  # columns of the picture of the channel
_MIN_WIDTH = 0.025  # of the picture; symbols whose reports take less have no label below
_LUMINANCE = np.array([0.30, 0.59, 0.11])
_ROUNDING = 1e-6  # relative to the promise; rounding alone leaves this much over
_TIE = 1e-6  # logarithms that differ by less count as equal
_FACTORS = (1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000, 1e4, 1e6, 1e8, 1e10, 1e12, 1e14, 1e16)
_MAX_TICKS = 8  # on the scale of factors

_LIGHT = {colour: colour for colour in DARK}

Palette = Mapping[str, str]
"""Maps a colour of the light page to the colour to draw with."""


def require_drawable(symbols: int) -> None:
    """Raise an error if there are too many symbols for a picture, or if matplotlib is missing."""
    if symbols > MAX_DRAWN:
        raise InvalidContext(
            f"a design can be drawn for up to {MAX_DRAWN} symbols; this context has {symbols}. "
            "Leave out the picture."
        )
    require_matplotlib()


def design_png(design: Design) -> bytes:
    """Return the picture as a PNG file."""
    return figure_png(_figure(design, _LIGHT))


def design_svg(design: Design, *, dark: bool = False) -> str:
    """Return the picture as an ``<svg>`` element, for a light or a dark page."""
    palette = DARK if dark else _LIGHT
    return figure_svg(lambda: _figure(design, palette), salt=f"sfumato {dark}")


# --- what is shown --------------------------------------------------------------------------------


def promise_used(Q: Floats) -> Floats:
    """Return ``T[x, x2] = max_y log Q(y|x)/Q(y|x2)``: the smallest matrix that a channel keeps.

    >>> promise_used(np.array([[0.6, 0.4], [0.2, 0.8]])).round(3)
    array([[0.   , 1.099],
           [0.693, 0.   ]])
    """
    with np.errstate(divide="ignore"):
        logs = np.log(Q)
    T = np.zeros((len(Q), len(Q)))
    for x, sends in enumerate(Q > 0):
        T[x] = (logs[x, sends] - logs[:, sends]).max(axis=1)
    return T


def order_reports(Q: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order the reports by the symbol that sends each most often, the most revealing first.

    Return the order, and the symbol of each report in that order. The less often the other symbols
    send a report, the more it reveals.
    """
    share = Q / Q.max(axis=0)
    symbol = (share >= 1 - _TIE).argmax(axis=0)
    order = np.lexsort((share.sum(axis=0).round(6), symbol))
    return order, symbol[order]


@dataclass(frozen=True)
class _Span:
    """The part of the picture, from 0 to 1, that the reports of one symbol take up."""

    symbol: int
    left: float
    right: float


def _channel_picture(Q: Floats, prior: Floats) -> tuple[Floats, list[_Span]]:
    """Return the channel with each report as wide as it is frequent, and the span of each symbol.

    A point is ``log Q(y|x) − max_x2 log Q(y|x2)``, −inf where x never sends y.
    """
    order, symbols = order_reports(Q)
    with np.errstate(divide="ignore"):
        logs = np.log(Q / Q.max(axis=0))
    ends = np.cumsum((prior @ Q)[order])
    samples = (np.arange(_SAMPLES) + 0.5) / _SAMPLES * ends[-1]
    reports = np.minimum(np.searchsorted(ends, samples), len(ends) - 1)
    edges = np.concatenate([[0.0], ends / ends[-1]])
    starts = np.flatnonzero(np.diff(symbols, prepend=-1))
    stops = np.append(starts[1:], len(order))
    spans = []
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        spans.append(_Span(int(symbols[start]), float(edges[start]), float(edges[stop])))
    return logs[:, order[reports]], spans


def _left_over(E: Floats, T: Floats) -> Floats:
    """Return ``E − T`` without what rounding leaves over; inf where nothing is promised."""
    difference = np.full_like(E, np.inf)
    np.subtract(E, T, where=np.isfinite(E), out=difference)
    return np.where(difference < _ROUNDING * E, 0.0, difference)


# --- how it is drawn ------------------------------------------------------------------------------


def _figure(design: Design, palette: Palette) -> "Figure":
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
        _draw_squares(panels, design, palette)
        _draw_channel(figure.add_subplot(grid[1, :]), design, palette)
    return figure


def _draw_squares(panels: "list[Axes]", design: Design, palette: Palette) -> None:
    """Draw three matrices: what is promised, what the reports use of it, and what is left over."""
    E = design.context.closure().matrix()
    used = np.minimum(promise_used(design.mechanism.matrix()), E)
    T = np.where(np.isfinite(E), used, np.inf)
    largest = float(E[np.isfinite(E)].max(initial=0.0)) or 1.0
    promise_colours = _colour_map(PROMISE_SCALE, palette)
    left_over_colours = _colour_map((BACKGROUND, MAP_SCALE[1], MAP_SCALE[2]), palette)
    squares = (
        ("promised: ε", E, promise_colours),
        ("used by the reports", T, promise_colours),
        ("left over", _left_over(E, T), left_over_colours),
    )
    labels = design.context.domain.labels
    symbols = _symbols_to_label(labels)
    for axes, (title, square, colours) in zip(panels, squares, strict=True):
        _draw_square(axes, square, colours(np.clip(square / largest, 0, 1)), palette)
        _label_answers(axes, labels, symbols, symbols)
        axes.set_title(title)
    for axes in panels[1:]:
        axes.set_yticks([])
    panels[0].set_ylabel("odds of this answer …")
    panels[1].set_xlabel("… against this one")
    _draw_scale(panels[:2], promise_colours, largest, "ε")
    _draw_scale(panels[2:], left_over_colours, largest, "ε left over")


def _draw_square(axes: "Axes", square: Floats, colours: Floats, palette: Palette) -> None:
    """Colour each pair; hatch the pairs for which nothing is promised."""
    k = len(square)
    diagonal = np.arange(k)
    colours[~np.isfinite(square)] = 0
    colours[diagonal, diagonal] = _colour_map((PALE, PALE), palette)(0.0)
    _draw_hatch(axes, palette)
    axes.imshow(colours, interpolation="nearest", extent=(-0.5, k - 0.5, k - 0.5, -0.5), zorder=1)
    if k <= _MAX_NUMBERED:
        _write_numbers(axes, square, colours, palette)


def _write_numbers(axes: "Axes", square: Floats, colours: Floats, palette: Palette) -> None:
    """Write the number of each square, dark on light and light on dark."""
    for (x, x2), entry in np.ndenumerate(square):
        text = f"{entry:.2g}"
        brightness = float(colours[x, x2, :3] @ _LUMINANCE)
        ink = INK if brightness > 0.45 else DARK[INK]
        if x == x2:
            text = "–"
            ink = palette[FAINT]
        elif math.isinf(entry):
            text = "∞"
            ink = palette[FAINT]
        axes.text(x2, x, text, ha="center", va="center", fontsize=8, color=ink, zorder=2)


def _draw_channel(axes: "Axes", design: Design, palette: Palette) -> None:
    Q = design.mechanism.matrix()
    logs, spans = _channel_picture(Q, design.prior)
    sent = np.isfinite(logs)
    depth = float(-logs[sent].min(initial=0.0)) or 1.0
    scale = _colour_map(MAP_SCALE, palette)
    colours = scale(1 + np.where(sent, logs, 0) / depth)
    colours[~sent] = 0
    _draw_hatch(axes, palette)
    extent = (0, 1, len(Q) - 0.5, -0.5)
    axes.imshow(colours, interpolation="nearest", extent=extent, aspect="auto", zorder=1)
    for span in spans[1:]:
        axes.axvline(span.left, color=palette[PALE], linewidth=0.5, zorder=2)
    symbols = []
    middles = []
    for span in spans:
        if span.right - span.left >= _MIN_WIDTH:
            symbols.append(span.symbol)
            middles.append((span.left + span.right) / 2)
    _label_answers(axes, design.context.domain.labels, symbols, middles)
    axes.set_title("the reports of each answer")
    axes.set_xlabel(
        f"{design.mechanism.outputs:,} reports by the answer that sends them most, "
        "each as wide as it is frequent"
    )
    axes.set_ylabel("sent by this answer")
    title = "times less often than the answer that sends it most"
    bar = _draw_scale([axes], scale, depth, title)
    factors = _factor_ticks(depth)
    places = [depth - math.log(factor) for factor in factors]
    bar.set_ticks(places, labels=[f"{factor:,g}" for factor in factors])


def _label_answers(
    axes: "Axes", labels: Sequence[Label], symbols: Sequence[int], places: Sequence[float]
) -> None:
    """Label the rows, and these ``places`` of the horizontal axis with the names of ``symbols``."""
    rows = _symbols_to_label(labels)
    row_names = [plain_label(labels[x], _ROW_LABEL) for x in rows]
    column_names = [plain_label(labels[x], _COLUMN_LABEL) for x in symbols]
    axes.set_yticks(rows, row_names, fontsize=8)
    axes.set_xticks(places, column_names, rotation=90, fontsize=8)
    axes.tick_params(length=0)
    hide_sides(axes, *axes.spines)


def _symbols_to_label(labels: Sequence[Label]) -> range:
    """Return all symbols, or some at equal distances if there are many."""
    step = 1
    if len(labels) > _MAX_LABELS:
        step = math.ceil(2 * len(labels) / _MAX_LABELS)
    return range(0, len(labels), step)


def _factor_ticks(depth: float) -> list[float]:
    """Return round factors up to e^depth that do not crowd a scale of logarithms."""
    ticks: list[float] = [1]
    for factor in _FACTORS:
        has_room = depth / _MAX_TICKS <= math.log(factor / ticks[-1])
        if has_room and math.log(factor) <= depth + _TIE:
            ticks.append(factor)
    return ticks


def _draw_scale(panels: "list[Axes]", colours: "Colormap", largest: float, title: str) -> Any:  # noqa: ANN401
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = ScalarMappable(Normalize(0, largest), colours)
    bar = panels[0].figure.colorbar(
        scale, ax=panels, location="bottom", shrink=0.5, aspect=40, pad=0.02
    )
    bar.set_label(title, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    return bar


def _draw_hatch(axes: "Axes", palette: Palette) -> None:
    """Hatch the background, which shows where no square covers it."""
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
