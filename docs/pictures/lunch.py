"""Draw lunch.png and lunch_narrow.png: what is promised about lunch, and what is learned from it.

The narrow picture, for phones, has its two parts one below the other.

Run it with `.venv/bin/python docs/pictures/lunch.py`. The words come from a fixed key, so the
picture is always the same. Real reports use words from the operating system.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

import sfumato as sf
from sfumato.randomness import words_from

ANSWERS = {"park": 9000, "café": 6200, "clinic": 1400, "bar": 1000, "office": 2400}
SENSITIVE = ("clinic", "bar")

INK, FAINT, PALE = "#2b2b2b", "#8a8a8a", "#e4e1dc"
PROMISED, FREE = "#b5523b", "#3d6b8c"


def measured() -> tuple[sf.Mechanism, sf.Estimate]:
    """The mechanism, and the estimate from 20,000 reports that never change."""
    places = sf.Domain(list(ANSWERS))
    context = sf.HighLow(places, sensitive=SENSITIVE, epsilon=1.0)
    mechanism = sf.mechanism_for(context)
    people = places.symbols(np.repeat(list(ANSWERS), list(ANSWERS.values())))
    words = words_from(bytes(32), 0, people.size)[:, : mechanism.words]
    return mechanism, sf.estimate(mechanism, mechanism.tally(mechanism.reports_from(people, words)))


def draw_matrix(axes: Axes, context: sf.Context) -> None:
    E = context.matrix()
    for (x, x2), epsilon in np.ndenumerate(E):
        if np.isinf(epsilon):
            style, text, ink = (
                {"facecolor": "white", "edgecolor": PALE, "hatch": "////"},
                "∞",
                FAINT,
            )
        elif x == x2:
            style, text, ink = {"facecolor": PALE, "edgecolor": PALE}, "0", FAINT
        else:
            style, text, ink = (
                {"facecolor": PROMISED, "edgecolor": PROMISED},
                f"{epsilon:g}",
                "white",
            )
        axes.add_patch(Rectangle((x2 - 0.47, x - 0.47), 0.94, 0.94, linewidth=0.8, **style))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5} if np.isinf(epsilon) else None
        size = 15 if np.isinf(epsilon) else 12
        axes.text(x2, x, text, ha="center", va="center", color=ink, fontsize=size, bbox=box)
    axes.set(xlim=(-0.5, 4.5), ylim=(4.5, -0.5), aspect="equal")
    axes.set_xticks(range(5), ANSWERS)
    axes.set_yticks(range(5), ANSWERS)
    axes.set_xlabel("the other answer, x2")
    axes.set_ylabel("the answer, x")
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        mark(label)
    title(
        axes,
        "What is promised: the privacy matrix E[x, x2]",
        "1: no report over e ≈ 2.7 times as likely.   ∞: no promise.",
    )


def draw_estimate(axes: Axes, estimate: sf.Estimate, bits: int) -> None:
    truth = np.array(list(ANSWERS.values())) / sum(ANSWERS.values())
    low, high = estimate.interval(0.95)
    axes.barh(range(5), truth, height=0.62, color=PALE, zorder=1)
    for x, place in enumerate(ANSWERS):
        colour = PROMISED if place in SENSITIVE else FREE
        axes.plot(
            [low[x], high[x]], [x, x], color=colour, linewidth=2.2, solid_capstyle="butt", zorder=3
        )
        for end in (low[x], high[x]):
            axes.plot([end, end], [x - 0.16, x + 0.16], color=colour, linewidth=2.2, zorder=3)
        axes.plot(
            estimate.unbiased[x],
            x,
            "o",
            color=colour,
            markersize=6.5,
            markeredgecolor="white",
            zorder=4,
        )
    axes.set(xlim=(0, 0.5), ylim=(4.5, -0.5))
    axes.set_yticks(range(5), ANSWERS)
    axes.set_xticks([0, 0.1, 0.2, 0.3, 0.4, 0.5], ["0", "10 %", "20 %", "30 %", "40 %", "50 %"])
    axes.set_xlabel("share of people")
    for label in axes.get_yticklabels():
        mark(label)
    title(
        axes,
        f"What is learned from {estimate.reports:,} reports",
        f"Each person sends one report of {bits} bits.",
    )
    dot = {"marker": "o", "linewidth": 2.2, "markersize": 6.5, "markeredgecolor": "white"}
    handles = [
        Patch(facecolor=PALE, label="truth"),
        Line2D([], [], color=FREE, label="unbiased estimate, 95 % interval", **dot),
        Line2D([], [], color=PROMISED, label="the same, sensitive (ε = 1)", **dot),
    ]
    axes.legend(handles=handles, loc="lower right", frameon=False)


def title(axes: Axes, line: str, remark: str) -> None:
    axes.set_title(line, loc="left", pad=27)
    axes.annotate(
        remark, (0, 1), (0, 10), "axes fraction", "offset points", color=FAINT, fontsize=9.2
    )


def mark(label: mpl.text.Text) -> None:
    """Sensitive places in the colour of the promise."""
    if label.get_text() in SENSITIVE:
        label.set(color=PROMISED, fontweight="bold")


def main() -> None:
    plt.rcParams.update(
        {
            "font.family": "DejaVu Sans",
            "font.size": 10.5,
            "axes.titlesize": 11.5,
            "axes.labelcolor": FAINT,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "hatch.linewidth": 0.7,
        }
    )
    wide, (left, right) = plt.subplots(
        1, 2, figsize=(10.6, 4.8), width_ratios=[1, 1.25], layout="constrained"
    )
    wide.get_layout_engine().set(w_pad=0.12, h_pad=0.1, wspace=0.05)
    narrow, (top, bottom) = plt.subplots(2, 1, figsize=(5.0, 8.6), layout="constrained")
    narrow.get_layout_engine().set(w_pad=0.05, h_pad=0.1, hspace=0.04)
    mechanism, estimate = measured()
    for matrix_axes, estimate_axes in ((left, right), (top, bottom)):
        draw_matrix(matrix_axes, mechanism.context)
        draw_estimate(estimate_axes, estimate, mechanism.bits)
    for figure, name in ((wide, "lunch.png"), (narrow, "lunch_narrow.png")):
        save(figure, Path(__file__).with_name(name))


def save(figure: Figure, target: Path) -> None:
    for axes in figure.axes:
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
    figure.savefig(target, dpi=150, metadata={"Software": None})
    print(f"{target.name}: {target.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
