"""The colours of all figures, helpers for drawing with matplotlib, and estimates as PNG files.

Drawing requires the ``charts`` extra.
"""

import io
import warnings
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from sfumato.domains import GridDomain, Label
from sfumato.errors import MissingExtra
from sfumato.estimation.map_cells import (
    MapCells,
    latitude_stretch,
)
from sfumato.foundation.arrays import Floats
from sfumato.foundation.installation import install_hint
from sfumato.pages.promise import MAX_LABEL_LENGTH, shorten_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# Colours on a light page.
INK = "#2b2b2b"  # text
FAINT = "#77736c"  # less important text and lines
PALE = "#e4e1dc"  # grid lines and axes
BACKGROUND = "#f3f1ed"
BAR = "#7ba0bc"
WHISKER = "#a8432c"
PROMISE_SCALE = ("#b04a33", "#d08a74", "#f6e7e1")
MAP_SCALE = ("#e3ebf1", "#8fb3cd", "#3d6b8c", "#12293d")

LIGHT_TO_DARK = {
    INK: "#e8e4dd",
    FAINT: "#a19c93",
    PALE: "#3a3833",
    BACKGROUND: "#2a2824",
    BAR: "#5b87a8",
    WHISKER: "#f0a084",
    **dict(zip(PROMISE_SCALE, ("#cf6f54", "#94503e", "#3d2c27"), strict=True)),
    **dict(zip(MAP_SCALE, ("#24303a", "#3d6b8c", "#8fbbdb", "#fdf3d8"), strict=True)),
}
"""Maps each colour to its replacement on a dark page."""

# Fonts for other scripts on Linux, Windows and macOS, used for characters that DejaVu Sans lacks.
_FALLBACK_FONTS = (
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans CJK KR",
    "Noto Sans SC",
    "Noto Sans JP",
    "Noto Sans KR",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "IPAGothic",
    "NanumGothic",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Noto Emoji",
    "Symbola",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Segoe UI Emoji",
    "Segoe UI Symbol",
    "PingFang SC",
    "Hiragino Sans",
    "Apple SD Gothic Neo",
    "Arial Unicode MS",
    "Unifont",
)

_FIGURE_WIDTH = 8.0  # inches
_BAR_HEIGHT = 0.26  # inches


# --- drawing with matplotlib ----------------------------------------------------------------------


def require_matplotlib() -> None:
    """Raise ``MissingExtra`` if matplotlib is not installed."""
    try:
        import matplotlib as _mpl  # noqa: F401
    except ImportError:
        raise MissingExtra(f"figures require matplotlib: {install_hint('charts')}") from None


class MissingGlyphs(UserWarning):
    """No installed font has some of the characters in a picture."""


def figure_png(figure: "Figure") -> bytes:
    """Return a figure as the contents of a PNG file.

    Characters that Matplotlib's own font lacks come from other installed fonts. If there are none,
    warns once.
    """
    from matplotlib.text import Text

    families = _font_families()
    for text in figure.findobj(Text):
        text.set_fontfamily(families)
    buffer = io.BytesIO()
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        figure.savefig(buffer, format="png", dpi=160)
    is_incomplete = False
    for warning in messages:
        if "missing from" in str(warning.message):  # one warning for each character
            is_incomplete = True
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if is_incomplete:
        warnings.warn(
            "some characters in the picture's labels are shown as boxes, because no installed font "
            "has them. Install a font such as Noto Sans CJK or Noto Emoji.",
            MissingGlyphs,
            stacklevel=2,
        )
    return buffer.getvalue()


@cache
def _font_families() -> list[str]:
    """Return Matplotlib's default font and the installed fonts that can stand in for it."""
    from matplotlib import font_manager

    installed_names = {font.name for font in font_manager.fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in _FALLBACK_FONTS if name in installed_names)]


def figure_svg(draw: "Callable[[], Figure]", *, salt: str) -> str:
    """Return a figure as an ``<svg>`` element that contains text as text, not as outlines.

    ``draw`` creates the figure. ``salt`` makes the element's ids unique, so that a page can contain
    several figures. The same figure and salt always give the same text.
    """
    require_matplotlib()
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        draw().savefig(buffer, format="svg", transparent=True, metadata=no_metadata, dpi=200)
    svg = buffer.getvalue()
    return svg[svg.index("<svg") :]


def colour_map(colours: tuple[str, ...]) -> "LinearSegmentedColormap":
    """Return a colour map that blends from each colour to the next."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("scale", colours)


def hide_sides(axes: "Axes", *sides: str) -> None:
    """Hide the given sides of the frame around a plot."""
    for side in sides:
        axes.spines[side].set_visible(False)


def style_axes(axes: "Axes") -> None:
    """Draw a pale grid and pale axes on the left and at the bottom."""
    axes.grid(color=PALE, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, which="both")
    hide_sides(axes, "top", "right")
    for side in ("left", "bottom"):
        axes.spines[side].set_color(PALE)


def draw_cells(
    axes: "Axes", grid: GridDomain, cells: MapCells, logs: Floats, scale_ends: tuple[float, float]
) -> "AxesImage":
    """Colour the cells of a map by the logarithms of their shares, leaving NaN blank."""
    bottom, top = scale_ends
    axes.set_facecolor(BACKGROUND)
    return axes.imshow(
        logs,
        origin="lower",
        extent=cells.extent,
        aspect=latitude_stretch(grid),
        cmap=colour_map(MAP_SCALE),
        vmin=bottom,
        vmax=top,
        interpolation="none",
    )


def matplotlib_label(label: Label, max_length: int = MAX_LABEL_LENGTH) -> str:
    """Shorten a label, and escape ``$``, which matplotlib would interpret as mathematics."""
    return shorten_label(label, max_length).replace("$", r"\$")
