"""Draw docs/pictures/manipulation.png: how many fake people it takes to fail the test of fit.

Run it with `.venv/bin/python docs/pictures/manipulation.py`. It takes a few minutes and also
prints the table in docs/manipulation.md. All seeds are fixed, so the picture is always the same.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt

import sfumato as sf
from sfumato.simulation import AttackResult, attack
from sfumato.simulation.attack import KINDS

INK, FAINT = "#2b2b2b", "#8a8a8a"
COLOURS = {"raise": "#b3402a", "lower": "#3d6b8c", "blend": "#8a6d1f", "pretend": "#5b7a3a"}
PEOPLE, SYMBOLS, TARGET = 100_000, 100, 7
SHARES = [step * 10.0**power for power in (-4, -3, -2) for step in (1, 1.5, 2, 3, 4, 5, 7)] + [
    0.1,
    0.15,
    0.2,
    0.3,
]
MECHANISMS = {
    "randomised response": sf.PlainResponse(sf.Uniform(SYMBOLS, 1), sf.RandomizedCode),
    "Hadamard code": sf.PlainResponse(sf.Uniform(SYMBOLS, 1)),
    "best code": sf.mechanism_for(sf.Uniform(SYMBOLS, 1)),
    "high-low, 20 sensitive": sf.mechanism_for(sf.HighLow(SYMBOLS, range(20), 1)),
}


def crowd() -> np.ndarray:
    """Draw people from Zipf's law over shuffled symbols; the last ones become the fake people."""
    random = np.random.default_rng(1)
    p = random.permutation(1 / np.arange(1, SYMBOLS + 1))
    return random.choice(SYMBOLS, PEOPLE, p=p / p.sum())


def first_noticed(
    mechanism: sf.Mechanism, people: np.ndarray, kind: str
) -> tuple[AttackResult, bool]:
    """The attack by the smallest share of fakes that is noticed, or by the largest if none is."""
    for share in SHARES:
        found = attack(
            mechanism, people, fake_count=round(share * PEOPLE), target=TARGET, kind=kind
        )
        if found.is_detected:
            return found, True
    return found, False


def main() -> None:
    """Draw the picture and print the table."""
    people = crowd()
    figure, axes = plt.subplots(figsize=(8.2, 5.4))
    height = 0
    ticks = []
    print("| mechanism | attack | noticed from | by then the target has moved by |")
    print("|---|---|---|---|")
    for name, mechanism in MECHANISMS.items():
        ticks.append((height + 1.5, name))
        for kind in KINDS:
            found, noticed = first_noticed(mechanism, people, kind)
            share, moved = found.fake_count / PEOPLE, 100 * found.decoded_shift
            axes.plot([SHARES[0], share], [height, height], color=COLOURS[kind], linewidth=2)
            axes.plot([share], [height], "o" if noticed else ">", color=COLOURS[kind], markersize=7)
            axes.annotate(
                f" {kind}: {moved:+.1f} points"
                if noticed
                else f" {kind}: unnoticed; {moved:+.1f} points",
                (share, height),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                color=INK,
                fontsize=8,
            )
            told = f"{100 * share:.3g} %" if noticed else "not up to 30 %"
            print(f"| {name} | {kind} | {told} | {moved:+.1f} points |")
            height += 1
        height += 1
    axes.set_xscale("log")
    axes.set_xlim(SHARES[0], 5)
    axes.set_xticks([1e-4, 1e-3, 1e-2, 1e-1], ["0.01 %", "0.1 %", "1 %", "10 %"])
    axes.minorticks_off()
    axes.set_yticks([place for place, _ in ticks], [name for _, name in ticks])
    axes.invert_yaxis()
    axes.set_xlabel(f"fake people among {PEOPLE:,}, until the test of fit notices")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(colors=FAINT, left=False)
    for label in axes.get_yticklabels() + axes.get_xticklabels():
        label.set_color(INK)
    axes.set_title("What the fakes achieve before anybody can know", loc="left", color=INK)
    figure.tight_layout()
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=140, metadata={"Software": None})


if __name__ == "__main__":
    main()
