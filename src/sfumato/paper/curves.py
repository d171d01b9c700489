"""Panels of error against people, with names next to the ends of the curves instead of a legend."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.pages.pictures import INK, PALE
from sfumato.simulation import Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_curve", "name_ends", "space_out", "style_panel"]

_LEAST = 1e-4  # a curve that drops below is cut there
_SOLID: dict[str, Any] = {
    "linestyle": "-",
    "linewidth": 1.9,
    "marker": ".",
    "markersize": 4.0,
    "zorder": 3,
}
_DASHED: dict[str, Any] = {
    "linestyle": (0, (3, 1.6)),
    "linewidth": 1.3,
    "marker": "o",
    "markersize": 3.2,
    "mfc": "white",
    "zorder": 2,
}


def draw_curve(
    axes: "Axes", people: Sequence[int], errors: Sequence[Spread], colour: str, dashed: bool
) -> None:
    """Draw one curve, with bars of one standard error if there are several runs."""
    means = []
    bars = []
    for error in errors:
        means.append(max(error.mean, _LEAST))
        bars.append(error.standard_error or 0.0)
    style = _DASHED if dashed else _SOLID
    axes.errorbar(people, means, bars, color=colour, elinewidth=0.8, **style)


def name_ends(
    axes: "Axes", x: float, names: Sequence[tuple[float, str, str]], *, apart: float
) -> None:
    """Write names to the right of x, and move them up or down where they would overlap.

    Each name is ``(height, text, colour)``. ``apart`` is the least distance, as a share of the
    panel's height. Call it when the axes have their limits.
    """
    low, high = np.log(axes.get_ylim())
    span = high - low
    ordered = sorted(names)
    heights = []
    for height, _, _ in ordered:
        log_height = float(np.log(max(height, _LEAST)))
        heights.append((log_height - low) / span)
    places = space_out(heights, apart)
    for place, (_, text, colour) in zip(places, ordered, strict=True):
        y = float(np.exp(low + place * span))
        axes.annotate(
            text,
            (x, y),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=8,
            annotation_clip=False,
        )


def space_out(wanted: Sequence[float], apart: float) -> list[float]:
    """Return places at least ``apart``, as near as possible to those wanted, which increase.

    Neighbours that are too near stand around their common middle: isotonic regression by pooling.

    >>> [round(place, 3) for place in space_out([0.0, 0.5, 0.52], 0.1)]
    [0.0, 0.46, 0.56]
    """
    # Each pool: the mean of what its members want, less the room for those below; its members.
    pools: list[tuple[float, int]] = []
    for number, place in enumerate(wanted):
        mean = place - number * apart
        members = 1
        while pools and pools[-1][0] > mean:
            other_mean, others = pools.pop()
            mean = (other_mean * others + mean * members) / (others + members)
            members += others
        pools.append((mean, members))
    places: list[float] = []
    for mean, members in pools:
        for _ in range(members):
            places.append(mean + len(places) * apart)
    return places


def style_panel(axes: "Axes", title: str) -> None:
    """Set logarithmic axes and a pale grid."""
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.grid(color=PALE, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, which="both", labelsize=8, length=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(PALE)
