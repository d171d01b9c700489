"""The picture of the partitions: where their borders run, what they cost, and among how many cells people hide."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfumato.domains import GridDomain
from sfumato.pages.style import BAR, FAINT, INK, MAP_SCALE, PALE, PROMISE_SCALE, WHISKER
from sfumato.paper.checkins import Crowd
from sfumato.paper.maps import draw_borders, draw_shares
from sfumato.paper.repeats import Repeated

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from experiments.partitions import Hiding, Partition

__all__ = ["drawn_partitions"]

_COLOURS = {
    "none": FAINT,
    "tiles": INK,
    "hexagons": BAR,
    "towns apart": PROMISE_SCALE[1],
    "cities": WHISKER,
}
_MAPS = 4  # one of each kind, at the coarser level


def drawn_partitions(
    title: str,
    domain: GridDomain,
    crowd: Crowd,
    compared: Mapping[str, "Partition"],
    hiding: Mapping[str, "Hiding"],
    found: Mapping[str, Repeated],
) -> "Figure":
    """Four maps with borders above; errors, and errors against hiding, below."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(13.6, 6.6))
    canvas.suptitle(
        title,
        x=0.02, y=0.97, ha="left", fontsize=15, color=INK,
    )  # fmt: skip
    above = canvas.add_gridspec(
        1, _MAPS, left=0.02, right=0.985, top=0.885, bottom=0.645, wspace=0.04
    )
    for place, partition in enumerate(list(compared.values())[1 : 1 + _MAPS]):
        axes = canvas.add_subplot(above[place])
        draw_shares(axes, domain, crowd.truth)
        draw_borders(axes, domain, partition.block_of)
        axes.set_title(partition.name, loc="left", fontsize=9.5, color=_COLOURS[partition.kind])
    below = canvas.add_gridspec(1, 2, left=0.197, right=0.985, top=0.585, bottom=0.1, wspace=0.16)
    _draw_errors(canvas.add_subplot(below[0]), compared, hiding, found)
    _draw_hiding(canvas.add_subplot(below[1]), compared, hiding, found)
    canvas.text(0.02, 0.02, f"{crowd}. ε = 1 inside each block.", fontsize=9, color=FAINT)
    return canvas


def _draw_errors(
    axes: "Axes",
    compared: Mapping[str, "Partition"],
    hiding: Mapping[str, "Hiding"],
    found: Mapping[str, Repeated],
) -> None:
    """A row per partition: the paper's scheme as a pale bar, the best here as a full one before it."""
    for row, (name, each) in enumerate(found.items()):
        axes.barh(row, each.paper.mean, height=0.66, color=PALE)
        axes.barh(row, each.best.mean, height=0.66, color=_COLOURS[compared[name].kind])
        figures = f"{each.best.mean:.3f}   ({each.paper.mean:.3f})"
        axes.text(each.paper.mean + 0.008, row, figures, va="center", fontsize=8.5, color=INK)
    axes.set_yticks(
        range(len(found)), [f"{name}: {_blocks(hiding[name].blocks)}" for name in found]
    )
    axes.set_ylim(len(found) - 0.5, -0.6)
    axes.set_xlim(0, max(each.paper.mean for each in found.values()) * 1.3)
    axes.set_xticks([])
    title = "total variation error: the best here   (pale bar: the paper's scheme)"
    _dressed(axes, title, ("top", "right", "bottom"))


def _blocks(number: int) -> str:
    return "1 block" if number == 1 else f"{number:,} blocks"


def _draw_hiding(
    axes: "Axes",
    compared: Mapping[str, "Partition"],
    hiding: Mapping[str, "Hiding"],
    found: Mapping[str, Repeated],
) -> None:
    """Error against the size of a typical person's block, both on logarithmic axes."""
    for name, each in found.items():
        x, colour = hiding[name].typical, _COLOURS[compared[name].kind]
        axes.plot([x, x], [each.best.mean, each.paper.mean], color=PALE, linewidth=2, zorder=1)
        axes.plot([x], [each.paper.mean], "o", markersize=6, markerfacecolor="white", color=colour)
        axes.plot([x], [each.best.mean], "o", markersize=7, color=colour)
    for kind, name in {
        compared[name].kind: name for name in found
    }.items():  # the finer level of each kind
        beside = (
            (8, 2, "left") if kind == "hexagons" else (0, -13, "center")
        )  # hexagons and tiles nearly coincide
        _named(axes, (hiding[name].typical, found[name].best.mean), kind, *beside)
    axes.set(xscale="log", yscale="log")
    axes.set_xlim(
        min(each.typical for each in hiding.values()) / 1.8,
        1.8 * max(each.typical for each in hiding.values()),
    )
    axes.set_ylim(min(each.best.mean for each in found.values()) / 1.5, None)
    axes.set_xlabel(
        "cells in a typical person's block: the further right, the better hidden",
        fontsize=9.5,
        color=INK,
    )
    ticks = [
        tick
        for tick in (0.02, 0.05, 0.1, 0.2, 0.5)
        if axes.get_ylim()[0] <= tick <= axes.get_ylim()[1]
    ]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    axes.set_xticks([1, 10, 100, 1000, 10000], ["1", "10", "100", "1,000", "10,000"])
    axes.minorticks_off()
    axes.grid(color=MAP_SCALE[0], linewidth=0.7)
    axes.set_axisbelow(True)
    _dressed(
        axes,
        "error against hiding   (filled: the best here; open: the paper's scheme)",
        ("top", "right"),
    )


def _named(
    axes: "Axes", point: tuple[float, float], kind: str, right: float, up: float, aligned: str
) -> None:
    words, colour = "no blocks" if kind == "none" else kind, _COLOURS[kind]
    axes.annotate(
        words,
        point,
        (right, up),
        textcoords="offset points",
        ha=aligned,
        va="center",
        fontsize=9,
        color=colour,
    )


def _dressed(axes: "Axes", title: str, hidden: tuple[str, ...]) -> None:
    axes.set_title(title, loc="left", fontsize=9.5, color=INK)
    axes.tick_params(length=0, labelsize=9)
    for side, spine in axes.spines.items():
        spine.set(color=FAINT, linewidth=0.8, visible=side not in hidden)
