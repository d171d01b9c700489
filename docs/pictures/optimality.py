"""Draw docs/pictures/optimality.png: no private channel of two symbols beats the binary optimum.

Run it with `.venv/bin/python docs/pictures/optimality.py`. The channels are drawn in fractions
from a fixed seed, so the picture is always the same, and each channel factors through the optimum
exactly.
"""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from sfumato.foundation.simplex import total_variation
from sfumato.promises.optimality import (
    binary_optimum,
    factor,
    minimax_risk,
    mutual_information,
)

INK, FAINT, DOT, BEST = "#2b2b2b", "#8a8a8a", "#3d6b8c", "#b3402a"

A, B = Fraction(2), Fraction(4)  # e^E[0, 1] and e^E[1, 0]
OUTPUTS = range(2, 7)
EACH = 80
PANELS = (
    (
        "Total variation",
        "more is better; each dot is a channel",
        lambda Q: total_variation(*Q),
        "linear",
    ),
    (
        "Mutual information, in nats",
        "more is better; both symbols equally likely",
        mutual_information,
        "linear",
    ),
    (
        "Minimax risk n·E(p̂ − p)²",
        "less is better; worst case over p, many people",
        minimax_risk,
        "log",
    ),
)

Channel = list[list[Fraction]]


def random_channel(rng: np.random.Generator, outputs: int) -> Channel:
    """Draw odds Q(y|0)/Q(y|1) from 1/B to A, some at the ends; both rows add up to 1."""
    odds = [drawn_odds(rng, above=y % 2 == 0) for y in range(outputs)]
    weights = [Fraction(int(w), 1000) for w in rng.integers(20, 1000, outputs)]
    gain = sum(w * (o - 1) for o, w in zip(odds, weights, strict=True) if o > 1)
    loss = sum(w * (1 - o) for o, w in zip(odds, weights, strict=True) if o < 1)
    scaled = [w * (loss if o > 1 else gain) for o, w in zip(odds, weights, strict=True)]
    second = [w / sum(scaled) for w in scaled]
    return [[o * w for o, w in zip(odds, second, strict=True)], second]


def drawn_odds(rng: np.random.Generator, *, above: bool) -> Fraction:
    top = A if above else B
    share = 1.0 if rng.random() < 0.3 else rng.uniform(0.05, 1)
    odds = top if share == 1.0 else Fraction(round(1000 * float(top) ** share), 1000)
    return odds if above else 1 / odds


def draw(
    axes: Axes,
    channels: dict[int, list[Channel]],
    panel: tuple[str, str, Callable[..., float], str],
) -> None:
    name, remark, utility, scale = panel
    rng = np.random.default_rng(1)
    for outputs, drawn in channels.items():
        values = [utility(np.array(Q, dtype=np.float64)) for Q in drawn]
        places = outputs + rng.uniform(-0.27, 0.27, len(values))
        axes.plot(
            places, values, "o", color=DOT, alpha=0.45, markersize=4, markeredgewidth=0, zorder=3
        )
    best = utility(np.array(binary_optimum(A, B), dtype=np.float64))
    axes.axhline(best, color=BEST, linewidth=1.6, zorder=4)
    axes.set(yscale=scale, xlim=(1.5, 6.5))
    if scale == "linear":
        axes.set_ylim(0, best * 1.13)
    else:
        axes.set_ylim(best / 1.7, 400)
        axes.set_yticks([2, 10, 100], ["2", "10", "100"])
        axes.minorticks_off()
    above = 6 if scale == "linear" else -15
    style = {"textcoords": "offset points", "ha": "right", "color": BEST}
    axes.annotate(f"the binary optimum: {best:.3g}", (6.5, best), (0, above), **style)
    axes.set_xticks(list(OUTPUTS))
    axes.set_xlabel("number of reports of the channel")
    axes.set_title(name, loc="left", pad=24)
    axes.annotate(
        remark, (0, 1), (0, 8), "axes fraction", "offset points", color=FAINT, fontsize=9.2
    )
    axes.tick_params(length=0)
    axes.grid(axis="y", color="#e9e6e1", linewidth=0.8, zorder=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def main() -> None:
    plt.rcParams.update(
        {"font.family": "DejaVu Sans", "font.size": 10, "axes.titlesize": 11.5, "text.color": INK}
    )
    plt.rcParams.update({"axes.labelcolor": FAINT, "xtick.color": INK, "ytick.color": INK})
    rng = np.random.default_rng(0)
    channels = {outputs: [random_channel(rng, outputs) for _ in range(EACH)] for outputs in OUTPUTS}
    optimum = binary_optimum(A, B)
    for drawn in channels.values():
        for Q in drawn:
            factor(Q, optimum)  # raises if a channel were not a garbling of the optimum
    figure, panels = plt.subplots(1, 3, figsize=(10.6, 4.2), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08, wspace=0.05)
    for axes, panel in zip(panels, PANELS, strict=True):
        draw(axes, channels, panel)
    target = Path(__file__).with_suffix(".png")
    figure.savefig(target, dpi=120, metadata={"Software": None})
    print(f"{target.name}: {target.stat().st_size // 1024} kB, {EACH * len(OUTPUTS)} channels")


if __name__ == "__main__":
    main()
