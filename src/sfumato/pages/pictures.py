"""What all pictures drawn by matplotlib share. Needs the ``charts`` extra."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from sfumato.domains import Label
from sfumato.errors import MissingExtra
from sfumato.pages.words import MAX_LABEL_LENGTH, shorten_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

__all__ = [
    "colour_map",
    "figure_png",
    "figure_svg",
    "hide_sides",
    "plain_label",
    "require_matplotlib",
]


def require_matplotlib() -> None:
    """Raise ``MissingExtra`` if matplotlib is not installed."""
    try:
        import matplotlib as _mpl  # noqa: F401
    except ImportError:
        raise MissingExtra("pictures need matplotlib: pip install 'sfumato[charts]'") from None


def figure_png(figure: "Figure") -> bytes:
    """Return a figure as a PNG file."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=160)
    return file.getvalue()


def figure_svg(draw: "Callable[[], Figure]", *, salt: str) -> str:
    """Return a figure as an ``<svg>`` element, with text as text.

    ``salt`` goes into its ids: figures with different salts fit on one page. Equal figures with
    equal salts give equal bytes.
    """
    import matplotlib as mpl

    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        draw().savefig(file, format="svg", transparent=True, metadata=no_metadata, dpi=200)
    svg = file.getvalue()
    return svg[svg.index("<svg") :]


def colour_map(colours: tuple[str, ...]) -> "LinearSegmentedColormap":
    """Return a colour map that blends from each colour to the next."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("scale", colours)


def hide_sides(axes: "Axes", *sides: str) -> None:
    """Hide some sides of the frame around a plot."""
    for side in sides:
        axes.spines[side].set_visible(False)


def plain_label(label: Label, length: int = MAX_LABEL_LENGTH) -> str:
    """Shorten a label for matplotlib, which would read ``$…$`` as mathematics."""
    return shorten_label(label, length).replace("$", r"\$")
