"""The picture of the check-ins: the truth, what both schemes see of it, and their errors."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfumato.domains import GridDomain
from sfumato.pages.style import BAR, FAINT, INK, WHISKER
from sfumato.paper.checkins import Crowd
from sfumato.paper.maps import draw_shares
from sfumato.paper.repeats import Repeated

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["drawn_maps"]

_WRITTEN = 0.11  # the width of a number on the axis of errors
_MAPPED = {"LDP": "without blocks (LDP)", "(25,35)": "with 875 blocks, (25,35)"}


def drawn_maps(
    domain: GridDomain,
    crowd: Crowd,
    runs: int,
    found: Mapping[str, Repeated],
    papers: Mapping[str, float],
) -> "Figure":
    """Two rows: truth and errors on the left, the maps of both schemes on the right."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(13.6, 6.3))
    places = canvas.subplots(2, 3, gridspec_kw={"width_ratios": (1, 1, 1)})
    canvas.subplots_adjust(
        left=0.045, right=0.988, top=0.875, bottom=0.125, wspace=0.06, hspace=0.17
    )
    canvas.suptitle(
        "The smaller the blocks, the sharper the map; better codes and decoders sharpen it again",
        x=0.02, y=0.97, ha="left", fontsize=15, color=INK,
    )  # fmt: skip
    picture = draw_shares(places[0, 0], domain, crowd.truth)
    _titled(places[0, 0], f"the truth: {crowd}")
    for row, (name, words) in enumerate(_MAPPED.items()):
        each = found[name]
        draw_shares(places[row, 1], domain, each.papers_map)
        _titled(places[row, 1], f"the paper's scheme, {words}: error {each.paper.mean:.3f}")
        draw_shares(places[row, 2], domain, each.best_map)
        _titled(places[row, 2], f"the best here, {words}: error {each.best.mean:.3f}")
    _draw_errors(places[1, 0], found, papers, runs)
    bar = canvas.colorbar(
        picture, cax=canvas.add_axes((0.52, 0.062, 0.3, 0.018)), orientation="horizontal"
    )
    bar.set_ticks([-5, -4, -3, -2], labels=["0.001 %", "0.01 %", "0.1 %", "1 %"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=9)
    canvas.text(
        0.51, 0.071, "share of people in a cell", ha="right", va="center", fontsize=9.5, color=FAINT
    )
    return canvas


def _titled(axes: "Axes", title: str) -> None:
    axes.set_title(title, loc="left", fontsize=9.5, color=INK)


def _draw_errors(
    axes: "Axes", found: Mapping[str, Repeated], papers: Mapping[str, float], runs: int
) -> None:
    """A row per kind of blocks: the paper's figure as a line, both schemes as bars."""
    for row, (each, paper) in enumerate(zip(found.values(), papers.values(), strict=True)):
        axes.plot([paper, paper], [row - 0.42, row], color=INK, linewidth=1.6)
        between = paper - each.paper.mean > _WRITTEN  # there is room for the number before the line
        _draw_bar(
            axes,
            row - 0.2,
            each.paper.mean,
            WHISKER,
            each.paper.mean if between else max(each.paper.mean, paper),
        )
        _draw_bar(axes, row + 0.2, each.best.mean, BAR, each.best.mean)
    for height, name in ((-0.2, "the paper's scheme"), (0.2, "the best here")):
        axes.text(0.01, height, name, va="center", fontsize=9, color="white")
    beside = max(papers["(5,7)"], found["(5,7)"].paper.mean) + 0.12
    axes.text(beside, 0.8, "line: in the paper, on its data", va="center", fontsize=9, color=FAINT)
    axes.set_yticks(range(len(found)), list(found))
    axes.set_ylim(len(found) - 0.5, -0.55)
    axes.set_xlim(0, 0.95)
    axes.set_xticks([])
    axes.tick_params(length=0, labelsize=9)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    axes.spines["left"].set(color=FAINT, linewidth=0.8)
    _titled(
        axes,
        f"total variation error, mean of {runs} runs"
        if runs > 1
        else "total variation error, one run",
    )


def _draw_bar(axes: "Axes", row: float, length: float, colour: str, written_at: float) -> None:
    axes.barh(row, length, height=0.36, color=colour)
    axes.text(written_at + 0.012, row, f"{length:.3f}", va="center", fontsize=9, color=INK)
