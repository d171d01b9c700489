"""The colours of the paper's figures, and helpers for drawing them with Matplotlib.

Drawing requires the ``paper`` extra. Pages have charts of their own (``sfumato.charts``).
"""

from typing import TYPE_CHECKING

from sfumato.charts.maps import latitude_stretch
from sfumato.errors import MissingExtra
from sfumato.estimation.map_cells import MapCells
from sfumato.foundation.arrays import Floats
from sfumato.foundation.installation import install_hint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.image import AxesImage

INK = "#2b2b2b"  # text
FAINT = "#77736c"  # less important text and lines
PALE = "#e4e1dc"  # grid lines and axes
BACKGROUND = "#f3f1ed"
BAR = "#7ba0bc"
WHISKER = "#a8432c"
PROMISE_SCALE = ("#b04a33", "#d08a74", "#f6e7e1")
MAP_SCALE = ("#e3ebf1", "#8fb3cd", "#3d6b8c", "#12293d")


def require_matplotlib() -> None:
    """Raise ``MissingExtra`` if matplotlib is not installed."""
    try:
        import matplotlib as _mpl  # noqa: F401
    except ImportError:
        raise MissingExtra(f"figures require matplotlib: {install_hint('paper')}") from None


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
    axes: "Axes", cells: MapCells, logs: Floats, scale_ends: tuple[float, float]
) -> "AxesImage":
    """Colour the cells of a map by the logarithms of their shares, leaving NaN blank."""
    bottom, top = scale_ends
    _, _, south, north = cells.extent
    axes.set_facecolor(BACKGROUND)
    return axes.imshow(
        logs,
        origin="lower",
        extent=cells.extent,
        aspect=latitude_stretch(south, north),
        cmap=colour_map(MAP_SCALE),
        vmin=bottom,
        vmax=top,
        interpolation="none",
    )
