"""Reproduce Figure 1 of Acharya et al. (2020): how a promise bounds the error rates of a guess.

The guess is based on a single report. Theorem 1 of the paper gives the region of possible error
rates, and Theorem 2 relies on the fact that the binary optimum fills that region. Error rates are
computed exactly from the integers of each channel, and also measured on simulated reports.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.contexts import Context, PrivacyMatrix, Uniform
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import BinaryResponse, Mechanism, PlainResponse
from sfumato.paper.experiment import Cell, ExperimentResult, RunOptions
from sfumato.paper.pictures import FAINT, INK, MAP_SCALE, PROMISE_SCALE, WHISKER
from sfumato.promises import ErrorRegion
from sfumato.promises import error_region as compute_region
from sfumato.simulation import SeededWords, Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["error_region"]

_PEOPLE_PER_SYMBOL = 25_000  # per run
# E[x, x2] and E[x2, x] in each panel of the paper's figure.
_PAPER_EPSILONS = ((math.log(3), math.log(3)), (math.log(2), math.log(4)))
_COLUMNS = (
    "case",
    "mechanism",
    "reports read as x",
    "P_FA exact",
    "P_MD exact",
    "P_FA measured",
    "P_MD measured",
    "inside",
)


@dataclass(frozen=True)
class _Test:
    """An optimal test, and its exact and measured error rates.

    The test guesses x for the reports in ``x_outputs``, and x2 for all others.
    """

    x_outputs: tuple[int, ...]
    false_alarm_rate: Fraction
    miss_rate: Fraction
    measured_false_alarm_rate: Spread
    measured_miss_rate: Spread


@dataclass(frozen=True, eq=False)
class _MechanismTests:
    """A mechanism with its error region and its optimal tests.

    The blind tests, which ignore the report, are omitted.
    """

    name: str
    region: ErrorRegion
    tests: tuple[_Test, ...]


@dataclass(frozen=True, eq=False)
class _Panel:
    """A panel of the figure: two promises, and mechanisms that satisfy both.

    ``epsilons``: the promises ``E[x, x2]`` and ``E[x2, x]``.
    """

    epsilons: tuple[float, float]
    mechanisms: tuple[_MechanismTests, ...]

    @property
    def odds_texts(self) -> tuple[str, str]:
        """``e^E[x, x2]`` and ``e^E[x2, x]``, formatted as text."""
        a, b = self.epsilons
        return _fraction_text(math.exp(a)), _fraction_text(math.exp(b))

    @property
    def name(self) -> str:
        """A short name for the panel, which states both odds."""
        forward, backward = self.odds_texts
        return f"odds {forward} and {backward}"


def error_region(
    options: RunOptions, epsilon: float | None = None, epsilon_back: float | None = None
) -> ExperimentResult:
    """Measure both panels of Figure 1, or a single panel for a different pair of promises.

    ``epsilon`` is ``E[x, x2]`` and ``epsilon_back`` is ``E[x2, x]``; each defaults to the other.
    Use ``inf`` to promise nothing in that direction.

    >>> result = error_region(RunOptions(runs=1), epsilon=1.0)
    >>> result.rows[0][1], result.rows[0][3] == result.rows[0][4]
    ('binary optimum', True)
    """
    runs = options.run_count(full=100, quick=20)
    panels = []
    for a, b in _epsilon_pairs(epsilon, epsilon_back):
        options.on_progress(f"error region for ε = {a:.3g} and {b:.3g}")
        context = PrivacyMatrix([[0, a], [b, 0]])
        panels.append(_measure_panel(context, runs, options.seed))
    data = {
        "people_per_symbol": _PEOPLE_PER_SYMBOL,
        "runs": runs,
        "seed": options.seed,
        "panels": list(map(_panel_to_dict, panels)),
    }
    return ExperimentResult(
        name="error-region",
        title="Error regions: the binary optimum fills the region that its promise allows",
        summary=_summarize(panels),
        columns=_COLUMNS,
        rows=tuple(_table_rows(panels)),
        data=data,
        draw_figure=lambda: _draw_figure(panels),
        notes=(
            "P_FA: the test guesses x, but the symbol was x2. P_MD: the test guesses x2, but the "
            "symbol was x. Each row is an optimal test of a mechanism; the two blind tests, "
            "(0, 1) and (1, 0), are omitted. Exact rates are computed from the channel's integers.",
            f"Measured: {runs} runs of {_PEOPLE_PER_SYMBOL:,} reports for each symbol.",
            "Corner of the region: P_FA = (e^b − 1)/(e^(a+b) − 1), P_MD = (e^a − 1)/(e^(a+b) − 1), "
            "with a = E[x, x2] and b = E[x2, x]. This agrees with the paper's figure. The paper's "
            "appendix prints the first expression twice, and its text has “miss detection” where "
            "the small E[x, x2] in fact raises the false alarm rate.",
        ),
    )


def _epsilon_pairs(
    epsilon: float | None, epsilon_back: float | None
) -> tuple[tuple[float, float], ...]:
    given_epsilons = [value for value in (epsilon, epsilon_back) if value is not None]
    if not given_epsilons:
        return _PAPER_EPSILONS
    return ((given_epsilons[0], given_epsilons[-1]),)


def _measure_panel(context: Context, runs: int, seed: int) -> _Panel:
    """Test the binary optimum, and mechanisms that use the smaller ε in both directions."""
    a = context.exact_epsilon(0, 1)
    b = context.exact_epsilon(1, 0)
    classical = Uniform(2, min(a, b))
    mechanisms: dict[str, Mechanism] = {"binary optimum": BinaryResponse(context)}
    if a == b:
        mechanisms["Hadamard response"] = PlainResponse(classical)
    else:
        mechanisms["Warner's response, smaller ε"] = BinaryResponse(classical)
        mechanisms["Hadamard response, smaller ε"] = PlainResponse(classical)
    mechanism_tests = []
    for name, mechanism in mechanisms.items():
        tests = tuple(_optimal_tests(mechanism, runs, seed))
        mechanism_tests.append(_MechanismTests(name, compute_region(mechanism, 0, 1), tests))
    return _Panel((float(a), float(b)), tuple(mechanism_tests))


def _optimal_tests(mechanism: Mechanism, runs: int, seed: int) -> Iterator[_Test]:
    """Yield the likelihood-ratio tests, ordered by how often they guess x."""
    row = mechanism.exact_row(0)
    row2 = mechanism.exact_row(1)
    ratios = []
    for q, q2 in zip(row, row2, strict=True):
        ratios.append(q / q2 if q2 else math.inf)
    shares = _measure_shares(mechanism, 0, runs, seed)
    shares2 = _measure_shares(mechanism, 1, runs, seed)
    thresholds = sorted(set(ratios), reverse=True)
    for threshold in thresholds[:-1]:  # the last test is blind: it always guesses x
        x_outputs = [y for y, ratio in enumerate(ratios) if ratio >= threshold]
        hit_rates = shares[:, x_outputs].sum(axis=1)
        false_alarm_rates = shares2[:, x_outputs].sum(axis=1)
        yield _Test(
            x_outputs=tuple(x_outputs),
            false_alarm_rate=Fraction(sum(row2[y] for y in x_outputs)),
            miss_rate=1 - Fraction(sum(row[y] for y in x_outputs)),
            measured_false_alarm_rate=Spread.from_figures(false_alarm_rates),
            measured_miss_rate=Spread.from_figures(1 - hit_rates),
        )


def _measure_shares(mechanism: Mechanism, x: int, runs: int, seed: int) -> Floats:
    """Return the share of each report among people with symbol x, with one row per run."""
    symbols = np.full(_PEOPLE_PER_SYMBOL, x)
    shares = []
    for run in range(runs):
        words = SeededWords(seed, run=2 * run + x)  # different words for each symbol
        shares.append(mechanism.privatize_and_tally(symbols, words).counts / _PEOPLE_PER_SYMBOL)
    return np.array(shares)


# --- text and data --------------------------------------------------------------------------------


def _table_rows(panels: list[_Panel]) -> Iterator[tuple[Cell, ...]]:
    for panel in panels:
        for mechanism in panel.mechanisms:
            for test in mechanism.tests:
                yield (
                    panel.name,
                    mechanism.name,
                    ", ".join(map(str, test.x_outputs)),
                    round(float(test.false_alarm_rate), 6),
                    round(float(test.miss_rate), 6),
                    str(test.measured_false_alarm_rate),
                    str(test.measured_miss_rate),
                    "no" if mechanism.region.violating_test else "yes",
                )


def _summarize(panels: list[_Panel]) -> str:
    corners = []
    for panel in panels:
        false_alarm, miss = map(_fraction_text, panel.mechanisms[0].region.promised[1])
        corners.append(f"with {panel.name}, the corner is P_FA = {false_alarm}, P_MD = {miss}")
    text = "; ".join(corners)
    return (
        "The binary optimum reaches the corner of its region, so an observer can learn as much as "
        "the promise allows. Hadamard response, designed for many symbols, stays inside the "
        "region. "
        f"{text[0].upper()}{text[1:]}."
    )


def _panel_to_dict(panel: _Panel) -> dict[str, object]:
    a, b = panel.epsilons
    return {
        "epsilon": _epsilon_to_json(a),
        "epsilon_back": _epsilon_to_json(b),
        "promised": list(map(list, panel.mechanisms[0].region.promised)),
        "mechanisms": list(map(_mechanism_to_dict, panel.mechanisms)),
    }


def _epsilon_to_json(epsilon: float) -> float | str:
    """Return ε as a number, or infinity as text, because JSON has no infinity."""
    return epsilon if math.isfinite(epsilon) else "inf"


def _mechanism_to_dict(mechanism: _MechanismTests) -> dict[str, object]:
    tests = []
    for test in mechanism.tests:
        fields = {
            "says_x": list(test.x_outputs),
            "false_alarm": str(test.false_alarm_rate),
            "miss": str(test.miss_rate),
            "counted_false_alarm": test.measured_false_alarm_rate.to_dict(),
            "counted_miss": test.measured_miss_rate.to_dict(),
        }
        tests.append(fields)
    return {
        "name": mechanism.name,
        "kept": mechanism.region.violating_test is None,
        "realised": [list(map(float, point)) for point in mechanism.region.realised],
        "tests": tests,
    }


def _fraction_text(number: float) -> str:
    """Format a number as a fraction with a small denominator, or else to three digits."""
    if math.isfinite(number):
        fraction = Fraction(number).limit_denominator(20)
        if abs(fraction - number) < 1e-6:
            return str(fraction)
    return f"{number:.3g}"


# --- the figure -----------------------------------------------------------------------------------


def _draw_figure(panels: list[_Panel]) -> "Figure":
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure = Figure(figsize=(5.5 * len(panels) + 0.2, 6.1))
    left_margin = 0.085 if len(panels) > 1 else 0.15
    figure.subplots_adjust(left=left_margin, right=0.985, top=0.88, bottom=0.17, wspace=0.24)
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, panel in zip(all_axes, panels, strict=True):
        _draw_panel(axes, panel)
    handles = [
        Patch(facecolor=MAP_SCALE[0], label="allowed by the promise"),
        Line2D(
            [],
            [],
            color=MAP_SCALE[2],
            linewidth=2.4,
            label="reached by the binary optimum",
        ),
        Line2D([], [], color=FAINT, linewidth=0.9, linestyle="--", label="blind guessing"),
    ]
    column_count = 3 if len(panels) > 1 else 2
    figure.legend(
        handles=handles, loc="lower center", ncols=column_count, frameon=False, fontsize=9.5
    )
    return figure


def _draw_panel(axes: "Axes", panel: _Panel) -> None:
    region = panel.mechanisms[0].region
    forward, backward = panel.odds_texts
    _, (false_alarm, miss), _ = region.promised
    corner = (miss, false_alarm)
    false_alarms, misses = zip(*region.promised, strict=True)
    axes.fill(misses, false_alarms, color=MAP_SCALE[0], linewidth=0)
    axes.plot([0, 1], [1, 0], color=FAINT, linewidth=0.9, linestyle="--")
    for mechanism in panel.mechanisms[1:]:
        _draw_inner_boundary(axes, mechanism)
    axes.plot(
        *_boundary_vertices(region).T,
        color=MAP_SCALE[2],
        linewidth=2.4,
        solid_joinstyle="round",
        zorder=2.5,
    )
    corner_guides = ([miss, miss, 0], [0, false_alarm, false_alarm])
    axes.plot(*corner_guides, color=WHISKER, linewidth=0.9, linestyle=(0, (3, 2)))
    axes.plot(*corner, "o", color=WHISKER, markersize=5.5, zorder=4)
    if backward != "inf":
        _write_along_edge(axes, (0, 1), corner, f"P_FA + {backward} P_MD = 1")
    if forward != "inf":
        _write_along_edge(axes, corner, (1, 0), f"{forward} P_FA + P_MD = 1")
    _style_panel(axes, panel, false_alarm, miss)


def _boundary_vertices(region: ErrorRegion) -> Floats:
    """Return the vertices of a mechanism's boundary, with one row (miss, false alarm) each."""
    return np.array(region.realised, dtype=np.float64)[:, ::-1]


def _draw_inner_boundary(axes: "Axes", mechanism: _MechanismTests) -> None:
    """Draw and name the boundary of a mechanism that stays inside the region."""
    colour = PROMISE_SCALE[1]
    line_style: Any = "-"
    name_position = (0.72, 0.5)
    if mechanism.name.startswith("Warner"):
        colour = INK
        line_style = (0, (1.2, 1.6))
        name_position = (0.55, 0.78)
    boundary = _boundary_vertices(mechanism.region)
    axes.plot(*boundary.T, color=colour, linewidth=1.5, linestyle=line_style)
    inner_vertices = boundary[1:-1]
    axes.plot(*inner_vertices.T, "o", color=colour, markersize=3.5)
    connector = {"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkB": 4}
    # The first inner vertex is the closest to P_MD = 1, where there is room for the name.
    axes.annotate(
        mechanism.name.replace(", ", ",\n"),
        tuple(inner_vertices[0]),
        name_position,
        color=colour,
        fontsize=9.2,
        va="center",
        arrowprops=connector,
    )


def _style_panel(axes: "Axes", panel: _Panel, false_alarm: float, miss: float) -> None:
    axes.set_xticks(*_ticks(miss))
    axes.set_yticks(*_ticks(false_alarm))
    axes.set(xlim=(-0.012, 1.03), ylim=(-0.012, 1.03), aspect="equal")
    axes.set_xlabel("miss rate P_MD: guess x2, truth x", color=FAINT)
    axes.set_ylabel("false alarm rate P_FA: guess x, truth x2", color=FAINT)
    axes.tick_params(length=0, labelcolor=INK)
    for side, spine in axes.spines.items():
        spine.set(color=FAINT, linewidth=0.8, visible=side in ("left", "bottom"))
    title, subtitle = _panel_titles(panel)
    axes.set_title(title, loc="left", pad=24, fontsize=11.5, color=INK)
    axes.annotate(
        subtitle,
        (0, 1),
        (0, 9),
        "axes fraction",
        textcoords="offset points",
        color=FAINT,
        fontsize=9.2,
        va="bottom",
    )


def _ticks(corner_rate: float) -> tuple[list[float], list[str]]:
    """Return ticks at 0, at the corner's error rate and at 1, with their labels."""
    ticks = sorted({0.0, corner_rate, 1.0})
    return ticks, list(map(_fraction_text, ticks))


def _panel_titles(panel: _Panel) -> tuple[str, str]:
    a, b = panel.epsilons
    forward, backward = panel.odds_texts
    if a == b:
        title = "Classical: one ε for both directions"
        return title, f"e^ε = {forward} in both directions: the region is symmetric."
    if a < b:
        title = "Context-aware: x is protected more than x2"
        error_kind = "false alarms"
    else:
        title = "Context-aware: x2 is protected more than x"
        error_kind = "misses"
    return title, f"e^E[x, x2] = {forward} and e^E[x2, x] = {backward}: more {error_kind}."


def _write_along_edge(
    axes: "Axes", start: tuple[float, float], end: tuple[float, float], text: str
) -> None:
    """Write text below the edge from ``start`` to ``end``, parallel to it."""
    run, rise = np.subtract(end, start).tolist()
    length = math.hypot(rise, run)
    position = (start[0] + 0.6 * run, start[1] + 0.6 * rise)
    offset = (12 * rise / length, -12 * run / length)  # 12 points, at a right angle to the edge
    axes.annotate(
        text,
        position,
        offset,
        textcoords="offset points",
        rotation=math.degrees(math.atan2(rise, run)),
        rotation_mode="anchor",
        ha="center",
        va="center",
        color=FAINT,
        fontsize=8.8,
    )
