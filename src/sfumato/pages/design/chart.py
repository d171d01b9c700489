"""The picture of a design: what is promised, what is used of it, and what the reports say. Needs ``charts``."""

import io
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.designer.design import Design
from sfumato.domains import Label
from sfumato.errors import InvalidContext, MissingExtra
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.pages.style import DARK, FAINT, FREE, INK, MAPPED, PALE, PROMISED, short_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "LARGEST_PICTURE",
    "demand_drawable",
    "design_png",
    "design_svg",
    "promise_used",
    "speaking_order",
]

LARGEST_PICTURE = 256
"""A design is drawn up to this many symbols."""

_NAMED = 24  # symbols that are all named; of more, about half as many are
_WRITTEN = 10  # symbols up to which a number stands in each square
_LONGEST, _LONGEST_BELOW = 18, 12  # characters of a label
_SAMPLES = 1600  # columns of the picture of the channel
_NARROWEST = 0.025  # of the width: reports of a symbol that take less are not named below it
_LUMINANCE = np.array([0.30, 0.59, 0.11])
_ROUNDED = 1e-6  # of what is promised: less than that is left over by rounding alone
_TIE = 1e-6  # logarithms that differ by less are taken to be equal
_FACTORS = (
    1,
    1.1,
    1.2,
    1.5,
    2,
    3,
    5,
    10,
    20,
    50,
    100,
    1000,
    *(10**power for power in range(4, 18, 2)),
)
_MARKS = 8  # on the scale of factors, at the most

Paint = Callable[[str], str]


def demand_drawable(symbols: int) -> None:
    """Refuse a picture without the means to draw it, or of more symbols than anybody could make out."""
    if symbols > LARGEST_PICTURE:
        raise InvalidContext(
            f"a design is drawn up to {LARGEST_PICTURE} symbols; this context has {symbols}. Leave out the picture."
        )
    try:
        import matplotlib as _mpl  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "a picture of a design needs matplotlib: pip install 'sfumato[charts]'"
        ) from None


def design_png(design: Design) -> bytes:
    """The picture as a PNG file."""
    file = io.BytesIO()
    _figure(design, lambda colour: colour).savefig(file, format="png", dpi=160)
    return file.getvalue()


def design_svg(design: Design, *, dark: bool = False) -> str:
    """The picture as an ``<svg>`` element with its text as text, in the colours of a light or of a dark page."""
    demand_drawable(design.context.size)
    import matplotlib as mpl

    file = io.StringIO()
    # A salt for each, so that the two can stand on one page without sharing the names of their parts.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": f"sfumato {dark}"}):
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        canvas = _figure(design, lambda colour: DARK.get(colour, colour) if dark else colour)
        canvas.savefig(file, format="svg", transparent=True, metadata=nothing, dpi=200)
    drawn = file.getvalue()
    return drawn[drawn.index("<svg") :]


# --- what is shown ----------------------------------------------------------------------------------------------------


def promise_used(Q: Floats) -> Floats:
    """``T[x, x2] = max_y log Q(y|x)/Q(y|x2)``: the least matrix that a channel keeps.

    >>> promise_used(np.array([[0.6, 0.4], [0.2, 0.8]])).round(3)
    array([[0.   , 1.099],
           [0.693, 0.   ]])
    """
    with np.errstate(divide="ignore"):
        logarithms = np.log(Q)
    T = np.zeros((len(Q), len(Q)))
    for x, sent in enumerate(Q > 0):
        T[x] = (logarithms[x, sent] - logarithms[:, sent]).max(axis=1)
    return T


def speaking_order(Q: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Reports by the symbol that they speak for most, the narrowest first; and that symbol, in the same order.

    A report speaks for the symbol that sends it most often, and is the narrower the less the others send it.
    """
    share = Q / Q.max(axis=0)
    spoken = (share >= 1 - _TIE).argmax(axis=0)
    order = np.lexsort((share.sum(axis=0).round(6), spoken))
    return order, spoken[order]


def _spread(Q: Floats, prior: Floats) -> tuple[Floats, list[tuple[int, float, float]]]:
    """The channel as a picture, each report as wide as it is frequent; and where those of each symbol begin and end.

    A point is ``log Q(y|x) − max_x2 log Q(y|x2)``, −inf where x never sends y.
    """
    order, spoken = speaking_order(Q)
    with np.errstate(divide="ignore"):
        said = np.log(Q / Q.max(axis=0))
    ends = np.cumsum((prior @ Q)[order])
    samples = (np.arange(_SAMPLES) + 0.5) / _SAMPLES * ends[-1]
    shown = said[:, order[np.minimum(np.searchsorted(ends, samples), len(ends) - 1)]]
    edges = np.concatenate([[0.0], ends / ends[-1]])
    first = np.flatnonzero(np.diff(spoken, prepend=-1))
    last = np.append(first[1:], len(order))
    ranges = [
        (int(spoken[a]), float(edges[a]), float(edges[b])) for a, b in zip(first, last, strict=True)
    ]
    return shown, ranges


# --- how it is drawn --------------------------------------------------------------------------------------------------


def _figure(design: Design, paint: Paint) -> "Figure":
    demand_drawable(design.context.size)
    from matplotlib.figure import Figure as Canvas
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    E, Q = design.context.closure().matrix(), design.mechanism.matrix()
    T = np.where(np.isfinite(E), np.minimum(promise_used(Q), E), np.inf)
    labels = design.context.domain.labels
    canvas = Canvas(figsize=(9.4, 8.0), layout=ConstrainedLayoutEngine(h_pad=0.1))
    grid = canvas.add_gridspec(2, 3, height_ratios=(1.5, 1))
    panels = [canvas.add_subplot(grid[0, place]) for place in range(3)]
    top = float(E[np.isfinite(E)].max(initial=0.0)) or 1.0
    titles = ("promised: ε", "used by the reports", "left over")
    squares = (E, T, _left_over(E, T))
    scales = (PROMISED, PROMISED, (FREE, MAPPED[1], MAPPED[2]))
    for axes, title, square, scale in zip(panels, titles, squares, scales, strict=True):
        _draw_square(axes, square, labels, paint, scale, top)
        axes.set_title(title, loc="left", fontsize=11, color=paint(INK))
    for axes in panels[1:]:
        axes.set_yticks([])
    panels[0].set_ylabel("odds of this answer …", color=paint(FAINT))
    panels[1].set_xlabel("… against this one", color=paint(FAINT))
    _draw_scale(canvas, panels[:2], paint, PROMISED, top, "ε")
    _draw_scale(canvas, panels[2:], paint, scales[2], top, "ε left over")
    _draw_channel(canvas.add_subplot(grid[1, :]), design, Q, labels, paint)
    return canvas


def _left_over(E: Floats, T: Floats) -> Floats:
    """``E − T``, without what is left by rounding; inf where nothing is promised."""
    finite = np.isfinite(E)
    left = np.subtract(E, T, where=finite, out=np.full_like(E, np.inf))
    return np.where(left < _ROUNDED * E, 0.0, left)


def _draw_square(
    axes: "Axes",
    square: Floats,
    labels: Sequence[Label],
    paint: Paint,
    scale: tuple[str, ...],
    top: float,
) -> None:
    """One number per pair, in colours; hatched where nothing is promised."""
    k = len(square)
    colours = _colours(scale, paint)(np.clip(square / top, 0, 1))
    colours[~np.isfinite(square)] = 0
    colours[np.arange(k), np.arange(k)] = _colours((PALE, PALE), paint)(0.0)
    _draw_hatch(axes, paint)
    axes.imshow(colours, interpolation="nearest", extent=(-0.5, k - 0.5, k - 0.5, -0.5), zorder=1)
    if k <= _WRITTEN:
        _write_numbers(axes, square, colours, paint)
    shown = _some(labels)
    axes.set_xticks(
        shown, [_name(labels[x], _LONGEST_BELOW) for x in shown], rotation=90, fontsize=8
    )
    axes.set_yticks(shown, [_name(labels[x], _LONGEST) for x in shown], fontsize=8)
    _quieten(axes, paint)


def _write_numbers(axes: "Axes", square: Floats, colours: Floats, paint: Paint) -> None:
    """The number of each square, dark on light and light on dark."""
    for x, row in enumerate(square.tolist()):
        for x2, entry in enumerate(row):
            text = "–" if x == x2 else "∞" if math.isinf(entry) else f"{entry:.2g}"
            bright = float(colours[x, x2, :3] @ _LUMINANCE)
            ink = (
                paint(FAINT)
                if x == x2 or math.isinf(entry)
                else INK
                if bright > 0.45
                else DARK[INK]
            )
            axes.text(x2, x, text, ha="center", va="center", fontsize=8, color=ink, zorder=2)


def _draw_channel(
    axes: "Axes", design: Design, Q: Floats, labels: Sequence[Label], paint: Paint
) -> None:
    k = len(Q)
    shown, ranges = _spread(Q, design.prior)
    sent: Booleans = np.isfinite(shown)
    depth = float(-shown[sent].min(initial=0.0)) or 1.0
    colours = _colours(MAPPED, paint)(1 + np.where(sent, shown, 0) / depth)
    colours[~sent] = 0
    _draw_hatch(axes, paint)
    axes.imshow(
        colours, interpolation="nearest", extent=(0, 1, k - 0.5, -0.5), aspect="auto", zorder=1
    )
    for _, left, _ in ranges[1:]:
        axes.axvline(left, color=paint(PALE), linewidth=0.5, zorder=2)
    places = _some(labels)
    axes.set_yticks(places, [_name(labels[x], _LONGEST) for x in places], fontsize=8)
    wide = [(x, (left + right) / 2) for x, left, right in ranges if right - left >= _NARROWEST]
    names = [_name(labels[x], _LONGEST_BELOW) for x, _ in wide]
    axes.set_xticks([middle for _, middle in wide], names, rotation=90, fontsize=8)
    axes.set_title("the reports of each answer", loc="left", fontsize=11, color=paint(INK))
    axes.set_xlabel(
        f"{design.mechanism.outputs:,} reports by the answer they speak for most, each as wide as it is frequent",
        color=paint(FAINT),
    )
    axes.set_ylabel("sent by this answer", color=paint(FAINT))
    _quieten(axes, paint)
    bar = _draw_scale(
        axes.figure,
        [axes],
        paint,
        MAPPED,
        depth,
        "times less often than the answer that sends it most",
    )
    factors = _marked(depth)
    bar.set_ticks(
        [depth - math.log(factor) for factor in factors],
        labels=[f"{factor:,}" for factor in factors],
    )


def _marked(depth: float) -> list[float]:
    """Round factors up to e^depth that stand apart on a scale of logarithms."""
    marked: list[float] = [1]
    for factor in _FACTORS:
        if depth / _MARKS <= math.log(factor / marked[-1]) and math.log(factor) <= depth + _TIE:
            marked.append(factor)
    return marked


def _draw_scale(
    figure: Any,  # noqa: ANN401
    panels: Any,  # noqa: ANN401
    paint: Paint,
    scale: tuple[str, ...],
    top: float,
    name: str,
) -> Any:  # noqa: ANN401
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    mapped = ScalarMappable(Normalize(0, top), _colours(scale, paint))
    bar = figure.colorbar(
        mapped, ax=list(panels), location="bottom", shrink=0.5, aspect=40, pad=0.02
    )
    bar.set_label(name, color=paint(FAINT), fontsize=9)
    bar.ax.tick_params(colors=paint(INK), labelsize=8)
    bar.outline.set_visible(False)
    return bar


def _draw_hatch(axes: "Axes", paint: Paint) -> None:
    """What lies below the squares and shows where there is none."""
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle(
            (0, 0),
            1,
            1,
            transform=axes.transAxes,
            facecolor=paint(FREE),
            edgecolor=paint(PALE),
            hatch="////",
            lw=0,
        )
    )


def _quieten(axes: "Axes", paint: Paint) -> None:
    axes.tick_params(colors=paint(INK), length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _colours(scale: tuple[str, ...], paint: Paint) -> Any:  # noqa: ANN401 - matplotlib's colour maps
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("scale", [paint(colour) for colour in scale])


def _some(labels: Sequence[Label]) -> list[int]:
    """All symbols; of many, some, evenly apart."""
    return list(
        range(0, len(labels), 1 if len(labels) <= _NAMED else math.ceil(2 * len(labels) / _NAMED))
    )


def _name(label: Label, longest: int) -> str:
    """A label on one line; a dollar sign in it is a dollar sign, not mathematics."""
    return short_label(label, longest).replace("$", r"\$")
