"""Figure 1 of the paper: which errors a guess from one report must make, and who reaches the edge of that region.

The region is Theorem 1's; that the binary optimum fills it is what Theorem 2 rests on. Error rates are worked out
exactly from the integers of each channel, and counted on real reports beside it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sfumato.contexts import Context, PrivacyMatrix, Uniform
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import BinaryResponse, Mechanism, PlainResponse
from sfumato.pages.style import FAINT, INK, MAP_SCALE, PROMISE_SCALE, WHISKER
from sfumato.paper.experiment import Cell, ExperimentResult, Measured, RunOptions
from sfumato.promises.error_region import ErrorRegion
from sfumato.promises.error_region import error_region as region_of
from sfumato.simulation import SeededWords

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["error_region"]

_PEOPLE = 25_000  # of each symbol, in one run
_PAPER = ((math.log(3), math.log(3)), (math.log(2), math.log(4)))
_COLUMNS = (
    "case",
    "mechanism",
    "reports that say x",
    "P_FA exact",
    "P_MD exact",
    "P_FA measured",
    "P_MD measured",
    "inside",
)


@dataclass(frozen=True)
class _Vertex:
    """A best test: it says x on these reports; its errors, exactly and counted."""

    says_x: tuple[int, ...]
    false_alarm: Fraction
    miss: Fraction
    counted_false_alarm: Measured
    counted_miss: Measured


@dataclass(frozen=True, eq=False)
class _Guessed:
    """A mechanism, the region of its tests, and the vertices of it that are not blind."""

    name: str
    region: ErrorRegion
    vertices: tuple[_Vertex, ...]


@dataclass(frozen=True, eq=False)
class _Panel:
    """One pair of promises: what it allows, and what mechanisms that keep it reach."""

    context: Context
    guessed: tuple[_Guessed, ...]

    @property
    def epsilons(self) -> tuple[float, float]:
        """``E[x, x2]`` and ``E[x2, x]``."""
        return float(self.context.exact_epsilon(0, 1)), float(self.context.exact_epsilon(1, 0))

    @property
    def name(self) -> str:
        """The two odds."""
        return "odds " + " and ".join(_plainly(math.exp(epsilon)) for epsilon in self.epsilons)


def error_region(
    options: RunOptions, epsilon: float | None = None, epsilon_back: float | None = None
) -> ExperimentResult:
    """Figure 1: both panels of the paper; or one for ``epsilon = E[x, x2]`` and ``epsilon_back = E[x2, x]``.

    With only one of the two given, the other is the same. ``inf`` promises nothing in that direction.

    >>> result = error_region(RunOptions(runs=1), epsilon=1.0)
    >>> result.rows[0][1], result.rows[0][3] == result.rows[0][4]
    ('binary optimum', True)
    """
    runs = options.repetitions(full=100, quick=20)
    panels = []
    for a, b in _pairs(epsilon, epsilon_back):
        options.on_progress(f"error region for ε = {a:.3g} and {b:.3g}")
        panels.append(_panel(PrivacyMatrix([[0, a], [b, 0]]), runs, options.seed))
    return ExperimentResult(
        name="error-region",
        title="Error regions: the binary optimum fills what its promise allows",
        summary=_summary(panels),
        columns=_COLUMNS,
        rows=tuple(row for panel in panels for row in _rows(panel)),
        data={
            "people_per_symbol": _PEOPLE,
            "runs": runs,
            "seed": options.seed,
            "panels": list(map(_in_json, panels)),
        },
        figure=lambda: _figure(panels),
        notes=(
            "P_FA: says x when it was x2. P_MD: says x2 when it was x. Rows are the best tests of each mechanism; the "
            "two blind ones, (0, 1) and (1, 0), are left out. Exact rates come from the integers of the channel.",
            f"Measured: {runs} runs of {_PEOPLE:,} reports of each symbol.",
            "Corner of the region: P_FA = (e^b − 1)/(e^(a+b) − 1), P_MD = (e^a − 1)/(e^(a+b) − 1), with a = E[x, x2] "
            "and b = E[x2, x]. The paper's figure has it so; its appendix prints the first expression twice, and "
            "its text says miss detection where the small E[x, x2] raises the false alarm rate.",
        ),
    )


def _pairs(epsilon: float | None, epsilon_back: float | None) -> tuple[tuple[float, float], ...]:
    """The pairs of promises that are asked for."""
    if epsilon is None and epsilon_back is None:
        return _PAPER
    given = [value for value in (epsilon, epsilon_back) if value is not None]
    return ((given[0], given[-1]),)


def _panel(context: Context, runs: int, seed: int) -> _Panel:
    """The binary optimum for the context, and what is known for the smaller ε alone."""
    a, b = context.exact_epsilon(0, 1), context.exact_epsilon(1, 0)
    classical = Uniform(2, min(a, b))
    compared: dict[str, Mechanism] = {"binary optimum": BinaryResponse(context)}
    if a != b:
        compared["Warner's response, smaller ε"] = BinaryResponse(classical)
    compared["Hadamard response" if a == b else "Hadamard response, smaller ε"] = PlainResponse(
        classical
    )
    guessed = (
        _Guessed(name, region_of(mechanism, 0, 1), tuple(_vertices(mechanism, runs, seed)))
        for name, mechanism in compared.items()
    )
    return _Panel(context, tuple(guessed))


def _vertices(mechanism: Mechanism, runs: int, seed: int) -> Iterator[_Vertex]:
    """The likelihood-ratio tests: reports say x in order of how much they speak for it, equals together."""
    row, row2 = mechanism.exact_row(0), mechanism.exact_row(1)
    shares = np.array([[_shares(mechanism, x, run, seed) for x in (0, 1)] for run in range(runs)])
    ratios = [q / q2 if q2 else math.inf for q, q2 in zip(row, row2, strict=True)]
    for least in sorted(set(ratios), reverse=True)[:-1]:  # all reports together are a blind test
        said = [y for y, ratio in enumerate(ratios) if ratio >= least]
        counted = shares[:, :, said].sum(axis=2)
        yield _Vertex(
            says_x=tuple(said),
            false_alarm=sum((row2[y] for y in said), Fraction(0)),
            miss=1 - sum((row[y] for y in said), Fraction(0)),
            counted_false_alarm=Measured.of(counted[:, 1]),
            counted_miss=Measured.of(1 - counted[:, 0]),
        )


def _shares(mechanism: Mechanism, x: int, run: int, seed: int) -> Floats:
    """The share of each report among people who all have symbol x."""
    source = SeededWords(seed, run=2 * run + x)  # the two crowds must not share their words
    return mechanism.tally(mechanism.privatize(np.full(_PEOPLE, x), source)).counts / _PEOPLE


# --- words and numbers ------------------------------------------------------------------------------------------------


def _rows(panel: _Panel) -> Iterator[tuple[Cell, ...]]:
    for guessed in panel.guessed:
        for vertex in guessed.vertices:
            said = ", ".join(map(str, vertex.says_x))
            exact = round(float(vertex.false_alarm), 6), round(float(vertex.miss), 6)
            counted = str(vertex.counted_false_alarm), str(vertex.counted_miss)
            yield (
                panel.name,
                guessed.name,
                said,
                *exact,
                *counted,
                "no" if guessed.region.broken else "yes",
            )


def _summary(panels: list[_Panel]) -> str:
    corners = []
    for panel in panels:
        false_alarm, miss = map(_plainly, panel.guessed[0].region.promised[1])
        corners.append(f"at {panel.name} the corner is P_FA = {false_alarm}, P_MD = {miss}")
    return (
        f"The binary optimum reaches the corner of its region, so that an observer can do all that the promise allows; "
        f"Hadamard response, made for many symbols, stays inside. A{'; '.join(corners)[1:]}."
    )


def _in_json(panel: _Panel) -> dict[str, object]:
    a, b = (epsilon if math.isfinite(epsilon) else "inf" for epsilon in panel.epsilons)
    return {
        "epsilon": a,
        "epsilon_back": b,
        "promised": [list(point) for point in panel.guessed[0].region.promised],
        "mechanisms": [_guessed_in_json(guessed) for guessed in panel.guessed],
    }


def _guessed_in_json(guessed: _Guessed) -> dict[str, object]:
    tests: list[dict[str, object]] = [
        {
            "says_x": list(vertex.says_x),
            "false_alarm": str(vertex.false_alarm),
            "miss": str(vertex.miss),
            "counted_false_alarm": vertex.counted_false_alarm.in_json(),
            "counted_miss": vertex.counted_miss.in_json(),
        }
        for vertex in guessed.vertices
    ]
    edge = [[float(false_alarm), float(miss)] for false_alarm, miss in guessed.region.realised]
    return {
        "name": guessed.name,
        "kept": guessed.region.broken is None,
        "realised": edge,
        "tests": tests,
    }


def _plainly(number: float) -> str:
    """A small fraction if it is one, or three digits."""
    near = Fraction(number).limit_denominator(20) if math.isfinite(number) else None
    return str(near) if near is not None and abs(near - number) < 1e-6 else f"{number:.3g}"


# --- the picture ------------------------------------------------------------------------------------------------------


def _figure(panels: list[_Panel]) -> "Figure":
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    canvas = Canvas(figsize=(5.5 * len(panels) + 0.2, 6.1))
    left = 0.085 if len(panels) > 1 else 0.15
    canvas.subplots_adjust(left=left, right=0.985, top=0.88, bottom=0.17, wspace=0.24)
    for axes, panel in zip(canvas.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _draw(axes, panel)
    handles = [
        Patch(facecolor=MAP_SCALE[0], label="allowed by the promise"),
        Line2D(
            [],
            [],
            color=MAP_SCALE[2],
            linewidth=2.4,
            label="the binary optimum: it reaches the edge",
        ),
        Line2D([], [], color=FAINT, linewidth=0.9, linestyle="--", label="blind guessing"),
    ]
    canvas.legend(
        handles=handles,
        loc="lower center",
        ncols=3 if len(panels) > 1 else 2,
        frameon=False,
        fontsize=9.5,
    )
    return canvas


def _draw(axes: "Axes", panel: _Panel) -> None:
    region, (a, b) = panel.guessed[0].region, panel.epsilons
    (_, (false_alarm, miss), _) = region.promised
    axes.fill(
        [md for _, md in region.promised],
        [fa for fa, _ in region.promised],
        color=MAP_SCALE[0],
        linewidth=0,
    )
    axes.plot([0, 1], [1, 0], color=FAINT, linewidth=0.9, linestyle="--")
    for guessed in panel.guessed[1:]:
        _draw_inner(axes, guessed)
    edge = [(float(md), float(fa)) for fa, md in region.realised]
    axes.plot(
        *zip(*edge, strict=True),
        color=MAP_SCALE[2],
        linewidth=2.4,
        solid_joinstyle="round",
        zorder=2.5,
    )
    axes.plot(
        [miss, miss, 0],
        [0, false_alarm, false_alarm],
        color=WHISKER,
        linewidth=0.9,
        linestyle=(0, (3, 2)),
    )
    axes.plot([miss], [false_alarm], "o", color=WHISKER, markersize=5.5, zorder=4)
    if math.isfinite(b):
        _along(axes, (0, 1), (miss, false_alarm), f"P_FA + {_plainly(math.exp(b))} P_MD = 1")
    if math.isfinite(a):
        _along(axes, (miss, false_alarm), (1, 0), f"{_plainly(math.exp(a))} P_FA + P_MD = 1")
    _dress(axes, panel, false_alarm, miss)


def _draw_inner(axes: "Axes", guessed: _Guessed) -> None:
    """The edge of a mechanism that stays inside, with its name where the edge is lowest in the direction of x."""
    colour, dashes = (
        (INK, (0, (1.2, 1.6))) if guessed.name.startswith("Warner") else (PROMISE_SCALE[1], "-")
    )
    edge = [(float(md), float(fa)) for fa, md in guessed.region.realised]
    axes.plot(*zip(*edge, strict=True), color=colour, linewidth=1.5, linestyle=dashes)
    vertices = edge[1:-1]
    axes.plot(*zip(*vertices, strict=True), "o", color=colour, markersize=3.5)
    # The first vertex lies towards P_MD = 1, where two lines of text have room beyond the diagonal.
    at = vertices[0]
    axes.annotate(
        guessed.name.replace(", ", ",\n"),
        at,
        (0.55, 0.78) if guessed.name.startswith("Warner") else (0.72, 0.5),
        color=colour,
        fontsize=9.2,
        va="center",
        arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkB": 4},
    )


def _dress(axes: "Axes", panel: _Panel, false_alarm: float, miss: float) -> None:
    a, b = panel.epsilons
    axes.set_xticks(
        [0, miss, 1] if miss else [0, 1], ["0", _plainly(miss), "1"] if miss else ["0", "1"]
    )
    axes.set_yticks(
        [0, false_alarm, 1] if false_alarm else [0, 1],
        ["0", _plainly(false_alarm), "1"] if false_alarm else ["0", "1"],
    )
    axes.set(xlim=(-0.012, 1.03), ylim=(-0.012, 1.03), aspect="equal")
    axes.set_xlabel("miss rate P_MD: says x2 when it was x", color=FAINT)
    axes.set_ylabel("false alarm rate P_FA: says x when it was x2", color=FAINT)
    axes.tick_params(length=0, labelcolor=INK)
    for side, spine in axes.spines.items():
        spine.set(color=FAINT, linewidth=0.8, visible=side in ("left", "bottom"))
    title, remark = _title(a, b)
    axes.set_title(title, loc="left", pad=24, fontsize=11.5, color=INK)
    axes.annotate(
        remark,
        (0, 1),
        (0, 9),
        "axes fraction",
        textcoords="offset points",
        color=FAINT,
        fontsize=9.2,
        va="bottom",
    )


def _title(a: float, b: float) -> tuple[str, str]:
    there, back = _plainly(math.exp(a)), _plainly(math.exp(b))
    if a == b:
        return (
            "Classical: one ε for both directions",
            f"e^ε = {there} both ways: the region is symmetric.",
        )
    more, less, rises = ("x", "x2", "false alarms") if a < b else ("x2", "x", "misses")
    return (
        f"Context-aware: {more} is protected more than {less}",
        f"e^E[x, x2] = {there} and e^E[x2, x] = {back}: {rises} rise.",
    )


def _along(axes: "Axes", start: tuple[float, float], end: tuple[float, float], text: str) -> None:
    """A remark below an edge, in its direction."""
    run, rise = end[0] - start[0], end[1] - start[1]
    length = math.hypot(rise, run)
    axes.annotate(
        text,
        (start[0] + 0.6 * run, start[1] + 0.6 * rise),
        (12 * rise / length, -12 * run / length),
        textcoords="offset points",
        rotation=math.degrees(math.atan2(rise, run)),
        rotation_mode="anchor",
        ha="center",
        va="center",
        color=FAINT,
        fontsize=8.8,
    )
