"""The picture of the bounds: where measured errors lie between them, and how the number of people grows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.error_bounds import Line
from experiments.growth import ERROR, Curve, PowerFit
from sfumato.pages.pictures import FAINT, INK, MAP_SCALE, PALE, PROMISE_SCALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["bounds_figure"]

_SPREAD = 0.5  # of the height of a row that its lines share
_ERRORS = {"risk": "Risk, n · E‖p̂ − p‖²", "TV": "Mean total variation"}
_FOUND = {
    "m": "Equal blocks: people fall as 1/m",
    "s": "High-low: first k decides, then s²",
    "ε": "Blocks 1/ε², one sensitive symbol 1/ε",
}
_AXES = {"m": "equal blocks m, of k = 1000", "s": "sensitive symbols s", "ε": "ε"}


def bounds_figure(lines: Sequence[Line], curves: Sequence[Curve]) -> "Figure":
    """Above, every line over its tight bound; below, people against blocks, sensitive symbols and ε."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(12.4, 9.4), layout="constrained")
    grid = canvas.add_gridspec(2, 6, height_ratios=(1.1, 1))
    for i, error in enumerate(_ERRORS):
        axes = canvas.add_subplot(grid[0, 3 * i : 3 * i + 3])
        _draw_lines(axes, [line for line in lines if line.error == error], named=i == 0)
    for i, variable in enumerate(_FOUND):
        axes = canvas.add_subplot(grid[1, 2 * i : 2 * i + 2])
        _draw_growth(axes, [curve for curve in curves if curve.variable == variable])
    _legend(canvas)
    return canvas


def _draw_lines(axes: "Axes", lines: Sequence[Line], named: bool) -> None:
    names = list(dict.fromkeys(line.context for line in lines))
    for name in names:
        few = [line for line in lines if line.context == name]
        for i, line in enumerate(few):
            y = names.index(name) + _SPREAD * ((i + 0.5) / len(few) - 0.5)
            _draw_line(axes, line, y)
    axes.axvline(1, color=INK, linewidth=1.1)
    axes.set_xscale("log")
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), names)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.text(1, -0.58, " tight bound", color=INK, fontsize=9, va="bottom")
    axes.set_xlabel(
        "over the tight upper bound; one line for each ε and number of people", color=FAINT
    )
    axes.set_title(_ERRORS[lines[0].error], loc="left", pad=14, fontsize=11.5, color=INK)
    axes.tick_params(which="both", length=0, labelcolor=INK, labelleft=named)
    _bare(axes)


def _draw_line(axes: "Axes", line: Line, y: float) -> None:
    axes.plot(
        [line.lower / line.tight, line.printed / line.tight],
        [y, y],
        color=PALE,
        linewidth=1,
        zorder=0,
    )
    for bound in (line.lower, line.paper_bound, line.printed):
        axes.plot([bound / line.tight], [y], "|", color=FAINT, markersize=7)
    looks = (
        (line.paper, PROMISE_SCALE[1], PROMISE_SCALE[1]),
        (line.best, MAP_SCALE[2], MAP_SCALE[2]),
        (line.projected, "none", PROMISE_SCALE[0]),
    )
    for spread, face, edge in looks:
        if spread is not None:
            mean = spread.mean / line.tight
            error = 2 * (spread.standard_error or 0.0) / line.tight
            axes.plot([mean - error, mean + error], [y, y], color=edge, linewidth=1)
            axes.plot([mean], [y], "o", mfc=face, mec=edge, markersize=4.5)


def _legend(canvas: "Figure") -> None:
    from matplotlib.lines import Line2D

    looks = (
        ("|", FAINT, FAINT, "bounds: lower on the left, the paper's and as printed on the right"),
        ("o", MAP_SCALE[2], MAP_SCALE[2], "best code, ± 2 standard errors"),
        ("o", PROMISE_SCALE[1], PROMISE_SCALE[1], "paper's scheme"),
        ("o", "none", PROMISE_SCALE[0], "after projection"),
    )
    handles = [
        Line2D([], [], linestyle="", marker=m, mfc=face, mec=edge, label=text)
        for m, face, edge, text in looks
    ]
    canvas.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False, fontsize=9.5)


def _draw_growth(axes: "Axes", curves: Sequence[Curve]) -> None:
    from matplotlib.ticker import NullLocator

    looks = ((MAP_SCALE[2], "o"), (PROMISE_SCALE[1], "s"))
    for curve, (colour, mark) in zip(curves, looks, strict=False):
        at = [point.value for point in curve.points]
        axes.fill_between(
            at,
            [point.lower for point in curve.points],
            [point.upper for point in curve.points],
            color=colour,
            alpha=0.13,
            linewidth=0,
        )
        axes.plot(at, [point.exact for point in curve.points], color=colour, linewidth=1.6)
        axes.plot(
            at, [point.measured for point in curve.points], mark, color=colour, markersize=4.5
        )
        for fit in curve.fits:
            _name_fit(axes, curve, fit, colour)
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel(_AXES[curves[0].variable], color=FAINT)
    if curves[0].variable == "m":
        axes.set_ylabel(f"people for a total variation of {ERROR:g}", color=FAINT)
        last = curves[0].points[-1]
        axes.text(
            last.value,
            0.5 * last.lower,
            "shaded: from lower\nto upper bound",
            ha="right",
            color=FAINT,
            fontsize=9,
        )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xticks(
        [point.value for point in curves[0].points][:: max(1, len(curves[0].points) // 4)],
        minor=False,
    )
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_title(_FOUND[curves[0].variable], loc="left", fontsize=11.5, color=INK)
    axes.tick_params(which="both", length=0, labelcolor=INK)
    axes.margins(y=0.1)
    _bare(axes)


def _name_fit(axes: "Axes", curve: Curve, fit: PowerFit, colour: str) -> None:
    """Write the exponent at its piece, above the upper bound."""
    piece = [point for point in curve.points if fit.first <= point.value <= fit.last]
    anchor = piece[len(piece) // 2 if fit.theorem else 0]
    axes.annotate(
        f"{curve.variable}^{fit.measured:.2f} measured\n(theorem {fit.theorem:g})".replace(
            "-", "−"
        ),
        (anchor.value, anchor.upper),
        (0, 7),
        textcoords="offset points",
        ha="right" if fit.theorem > 1 else "left",
        color=colour,
        fontsize=9,
    )


def _bare(axes: "Axes") -> None:
    for side, spine in axes.spines.items():
        spine.set(color=FAINT, linewidth=0.8, visible=side in ("left", "bottom"))
