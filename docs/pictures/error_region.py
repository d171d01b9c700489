"""Draw docs/pictures/error_region.png: Figure 1 of the paper, with the binary response that fills its regions.

Run it with `.venv/bin/python docs/pictures/error_region.py`. Nothing in it is random.
"""

from math import atan2, degrees, hypot, log
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import sfumato as sf

INK, FAINT, ALLOWED, REACHED, CORNER = "#2b2b2b", "#8a8a8a", "#d5dde7", "#35618f", "#b3402a"

PANELS = (
    (3, 3, "Classical: one ε for both directions", "e^ε = 3 both ways: the region is symmetric."),
    (2, 4, "Context-aware: x is protected more than x2", "e^E[x, x2] = 2 and e^E[x2, x] = 4: false alarms rise."),
)


def draw(axes: Axes, odds: int, odds_back: int, line: str, remark: str) -> None:
    context = sf.PrivacyMatrix([[0, log(odds)], [log(odds_back), 0]])
    region = sf.error_region(sf.BinaryResponse(context), 0, 1)
    region.plot(axes)
    restyle(axes)
    false_alarm, miss = region.corner
    axes.plot([miss, miss, 0], [0, false_alarm, false_alarm], color=CORNER, linewidth=0.9, linestyle=(0, (3, 2)))
    axes.annotate("the best test", (miss, false_alarm), (miss + 0.14, false_alarm + 0.03), va="center", **arrow(CORNER))
    along(axes, (0, 1), (miss, false_alarm), f"P_FA + {odds_back} P_MD = 1")
    along(axes, (miss, false_alarm), (1, 0), f"{odds} P_FA + P_MD = 1")
    axes.set_xticks([0, miss, 1], ["0", share(miss), "1"])
    axes.set_yticks([0, false_alarm, 1], ["0", share(false_alarm), "1"])
    axes.set_xlabel("miss rate P_MD: says x2 when it was x")
    axes.set_ylabel("false alarm rate P_FA: says x when it was x2", labelpad=8)
    axes.set_title(line, loc="left", pad=27)
    axes.annotate(remark, (0, 1), (0, 10), "axes fraction", "offset points", color=FAINT, fontsize=9.2)


def restyle(axes: Axes) -> None:
    """What is allowed as a pale area, what the mechanism reaches as the edge drawn on it: here they coincide."""
    axes.get_legend().remove()
    for text in list(axes.texts):
        text.remove()
    allowed, reached = axes.patches
    allowed.set(facecolor=ALLOWED, edgecolor="none")
    reached.set_visible(False)
    edge = reached.get_xy()[:-1]  # without the way back along the diagonal
    axes.plot(edge[:, 0], edge[:, 1], color=REACHED, linewidth=2.4, solid_joinstyle="round", zorder=1.5)
    axes.set(xlim=(-0.012, 1.03), ylim=(-0.012, 1.03))
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set(color=FAINT, linewidth=0.8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def along(axes: Axes, start: tuple[float, float], end: tuple[float, float], text: str) -> None:
    """A remark below an edge, in its direction."""
    rise, run = end[1] - start[1], end[0] - start[0]
    place = start[0] + 0.6 * run, start[1] + 0.6 * rise
    length = hypot(rise, run)
    below = 11 * rise / length, -11 * run / length
    style = {"ha": "center", "va": "center", "color": FAINT, "fontsize": 8.8, "textcoords": "offset points"}
    axes.annotate(text, place, below, rotation=degrees(atan2(rise, run)), rotation_mode="anchor", **style)


def arrow(colour: str) -> dict[str, object]:
    return {"color": colour, "arrowprops": {"arrowstyle": "-", "color": colour, "linewidth": 0.9, "shrinkB": 5}}


def share(number: float) -> str:
    return {0.25: "¼", 0.429: "3/7", 0.143: "1/7"}[round(number, 3)]


def main() -> None:
    plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 10.5, "axes.titlesize": 11.5, "text.color": INK})
    plt.rcParams.update({"axes.labelcolor": FAINT, "xtick.color": INK, "ytick.color": INK})
    figure, both = plt.subplots(1, 2, figsize=(10.6, 6.1))
    figure.subplots_adjust(left=0.075, right=0.985, top=0.885, bottom=0.155, wspace=0.2)
    for axes, panel in zip(both, PANELS, strict=True):
        draw(axes, *panel)
    handles = [
        Patch(facecolor=ALLOWED, label="allowed by the context"),
        Line2D(
            [], [], color=REACHED, linewidth=2.4, label="the best tests of the binary response: they reach its edge"
        ),
        Line2D([], [], color="#555555", linewidth=0.9, linestyle="--", label="blind guessing"),
    ]
    figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False)
    target = Path(__file__).with_suffix(".png")
    figure.savefig(target, dpi=130, metadata={"Software": None})
    print(f"{target.name}: {target.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
