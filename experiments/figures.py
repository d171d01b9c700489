"""What the pictures of the experiments share: rows of dots with a legend, and plain axes."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from sfumato.pages.pictures import FAINT, INK, PALE
from sfumato.simulation import Spread


def draw_dots(
    axes: Axes,
    title: str,
    rows: Sequence[tuple[str, Sequence[Spread | None]]],
    colours: Mapping[str, str],
) -> None:
    """Draw one dot per name in ``colours``, with bars of two standard errors, and a legend.

    Rows with the same label share a line of the picture.
    """
    labels = list(dict.fromkeys(label for label, _ in rows))
    for index, (name, colour) in enumerate(colours.items()):
        legend = name
        for label, spreads in rows:
            spread = spreads[index]
            if spread is None:
                continue
            bar = 2 * (spread.standard_error or 0.0)
            height = labels.index(label)
            axes.errorbar(spread.mean, height, xerr=bar, fmt="o", color=colour, label=legend)
            legend = ""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(axis="y", color=PALE, linewidth=0.7)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=3, frameon=False)
    style_axes(axes, title)


def style_axes(axes: Axes, title: str) -> None:
    """Set the title and a logarithmic x axis, and leave only the left and the lower border."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.tick_params(which="both", length=0, labelcolor=INK, labelsize=9)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set(color=FAINT, linewidth=0.8, visible=side in ("left", "bottom"))
