"""Panels of error against people: quiet axes, and names beside the ends of the curves instead of a legend."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.pages.style import INK, PALE
from sfumato.paper.experiment import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_curve", "dress_panel", "name_ends", "spread_apart"]

_LEAST = 1e-4  # a curve that drops below is cut there


def draw_curve(
    axes: "Axes", people: Sequence[int], errors: Sequence[Measured], colour: str, dashed: bool
) -> None:
    """One curve, with bars of one standard error where there are several runs."""
    style = (
        {"linestyle": (0, (3, 1.6)), "marker": "o", "mfc": "white"}
        if dashed
        else {"linestyle": "-", "marker": "."}
    )
    axes.errorbar(
        people,
        [max(error.mean, _LEAST) for error in errors],
        [np.nan_to_num(error.standard_error) for error in errors],
        color=colour,
        linewidth=1.3 if dashed else 1.9,
        markersize=3.2 if dashed else 4.0,
        elinewidth=0.8,
        zorder=2 if dashed else 3,
        **style,
    )


def name_ends(
    axes: "Axes", x: float, names: Sequence[tuple[float, str, str]], *, apart: float
) -> None:
    """Names, each ``(height, text, colour)``, to the right of x; moved up or down where they would overlap.

    ``apart`` is the least distance, as a share of the panel's height. Call it when the axes have their limits.
    """
    low, high = np.log(axes.get_ylim())
    ordered = sorted(names)
    wanted = [(float(np.log(max(height, _LEAST))) - low) / (high - low) for height, _, _ in ordered]
    for place, (_, text, colour) in zip(spread_apart(wanted, apart), ordered, strict=True):
        axes.annotate(
            text,
            (x, float(np.exp(low + place * (high - low)))),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=8,
            annotation_clip=False,
        )


def spread_apart(wanted: Sequence[float], apart: float) -> list[float]:
    """Places in increasing order, at least so far apart, as near as can be to those wanted (which increase).

    Neighbours that are too near stand around their common middle: isotonic regression by pooling.

    >>> [round(place, 3) for place in spread_apart([0.0, 0.5, 0.52], 0.1)]
    [0.0, 0.46, 0.56]
    """
    pools: list[
        tuple[float, int]
    ] = []  # mean of what its members want, less the room for those below; members
    for number, place in enumerate(wanted):
        mean, members = place - number * apart, 1
        while pools and pools[-1][0] > mean:
            before, count = pools.pop()
            mean, members = (before * count + mean * members) / (count + members), count + members
        pools.append((mean, members))
    level = [mean for mean, members in pools for _ in range(members)]
    return [mean + number * apart for number, mean in enumerate(level)]


def dress_panel(axes: "Axes", title: str) -> None:
    """Powers on both axes, a pale grid, nothing else."""
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
