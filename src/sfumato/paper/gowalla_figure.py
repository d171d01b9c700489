"""The picture of the check-ins: the true map, what both schemes see of it, and their errors."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfumato.domains import GridDomain
from sfumato.pages.pictures import BAR, FAINT, INK, WHISKER
from sfumato.paper.checkins import MapPopulation
from sfumato.paper.maps import draw_shares
from sfumato.paper.schemes import MapErrors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = ["draw_figure"]

_NUMBER_WIDTH = 0.11  # of a number on the axis of errors
_TITLE = "The smaller the blocks, the sharper the map; better codes and decoders sharpen it again"
_MAPS = {"LDP": "without blocks (LDP)", "(25,35)": "with 875 blocks, (25,35)"}


def draw_figure(
    domain: GridDomain,
    population: MapPopulation,
    runs: int,
    measured: Mapping[str, MapErrors],
    printed: Mapping[str, float],
) -> "Figure":
    """Draw two rows: the truth and the errors on the left, the maps of both schemes on the right.

    ``printed``: the errors in the paper.
    """
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(13.6, 6.3))
    places = canvas.subplots(2, 3)
    canvas.subplots_adjust(
        left=0.045, right=0.988, top=0.875, bottom=0.125, wspace=0.06, hspace=0.17
    )
    canvas.suptitle(_TITLE, x=0.02, y=0.97, ha="left", fontsize=15, color=INK)
    picture = draw_shares(places[0, 0], domain, population.truth)
    _set_title(places[0, 0], f"the truth: {population}")
    for row, (name, blocks) in enumerate(_MAPS.items()):
        errors = measured[name]
        _, paper_axes, best_axes = places[row]
        draw_shares(paper_axes, domain, errors.paper_map)
        _set_title(paper_axes, f"the paper's scheme, {blocks}: error {errors.paper.mean:.3f}")
        draw_shares(best_axes, domain, errors.best_map)
        _set_title(best_axes, f"the best here, {blocks}: error {errors.best.mean:.3f}")
    _draw_errors(places[1, 0], measured, printed, runs)
    _draw_scale(canvas, picture)
    return canvas


def _draw_scale(canvas: "Figure", picture: "AxesImage") -> None:
    axes = canvas.add_axes((0.52, 0.062, 0.3, 0.018))
    bar = canvas.colorbar(picture, cax=axes, orientation="horizontal")
    bar.set_ticks([-5, -4, -3, -2], labels=["0.001 %", "0.01 %", "0.1 %", "1 %"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=9)
    title = "share of people in a cell"
    canvas.text(0.51, 0.071, title, ha="right", va="center", fontsize=9.5, color=FAINT)


def _set_title(axes: "Axes", title: str) -> None:
    axes.set_title(title, loc="left", fontsize=9.5, color=INK)


def _draw_errors(
    axes: "Axes", measured: Mapping[str, MapErrors], printed: Mapping[str, float], runs: int
) -> None:
    """Draw a row per kind of blocks: the printed error as a line, both schemes as bars."""
    for row, (name, errors) in enumerate(measured.items()):
        line = printed[name]
        paper = errors.paper.mean
        axes.plot([line, line], [row - 0.42, row], color=INK, linewidth=1.6)
        fits_before_line = line - paper > _NUMBER_WIDTH
        number_at = paper if fits_before_line else max(paper, line)
        _draw_bar(axes, row - 0.2, paper, WHISKER, number_at)
        _draw_bar(axes, row + 0.2, errors.best.mean, BAR, errors.best.mean)
    axes.text(0.01, -0.2, "the paper's scheme", va="center", fontsize=9, color="white")
    axes.text(0.01, 0.2, "the best here", va="center", fontsize=9, color="white")
    remark_at = max(printed["(5,7)"], measured["(5,7)"].paper.mean) + 0.12
    remark = "line: in the paper, on its data"
    axes.text(remark_at, 0.8, remark, va="center", fontsize=9, color=FAINT)
    axes.set_yticks(range(len(measured)), list(measured))
    axes.set_ylim(len(measured) - 0.5, -0.55)
    axes.set_xlim(0, 0.95)
    axes.set_xticks([])
    axes.tick_params(length=0, labelsize=9)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    axes.spines["left"].set(color=FAINT, linewidth=0.8)
    repeats = f"mean of {runs} runs" if runs > 1 else "one run"
    _set_title(axes, f"total variation error, {repeats}")


def _draw_bar(axes: "Axes", row: float, length: float, colour: str, number_at: float) -> None:
    axes.barh(row, length, height=0.36, color=colour)
    axes.text(number_at + 0.012, row, f"{length:.3f}", va="center", fontsize=9, color=INK)
