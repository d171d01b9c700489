"""Drawing helpers for the experiments: dot plots with a legend, and plain axes."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from sfumato.paper.pictures import FAINT, INK, PALE
from sfumato.simulation import Spread


def draw_dots(
    axes: Axes,
    title: str,
    rows: Sequence[tuple[str, Sequence[Spread | None]]],
    colours: Mapping[str, str],
) -> None:
    """Draw a dot for each spread of each row, with bars of two standard errors, and a legend.

    The spreads of a row are in the order of ``colours``. Rows with the same label are drawn at the
    same height.
    """
    labels = list(dict.fromkeys(label for label, _ in rows))
    for index, (name, colour) in enumerate(colours.items()):
        legend_label = name
        for label, spreads in rows:
            spread = spreads[index]
            if spread is None:
                continue
            bar = 2 * (spread.standard_error or 0.0)
            height = labels.index(label)
            axes.errorbar(spread.mean, height, xerr=bar, fmt="o", color=colour, label=legend_label)
            legend_label = ""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(axis="y", color=PALE, linewidth=0.7)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=3, frameon=False)
    style_axes(axes, title)


def style_axes(axes: Axes, title: str) -> None:
    """Set the title and a logarithmic x-axis, and keep only the left and bottom borders."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.tick_params(which="both", length=0, labelcolor=INK, labelsize=9)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set(color=FAINT, linewidth=0.8, visible=side in ("left", "bottom"))
