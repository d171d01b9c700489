"""Every bound of the paper against what real reports give; and how the number of people grows.

Upper bounds: Propositions 4 and 5, as printed and for the error they are about, and the tight ones.
Lower bounds: on the risk, for every mechanism with an unbiased estimate; on total variation, for
every mechanism and estimate (the lower halves of Theorems 3 and 4, with constants). Derivations:
docs/bounds.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.error_bounds import Line, lines
from experiments.figures import draw_dots, style_axes
from experiments.growth import ERROR, Curve, curves
from sfumato.pages.pictures import FAINT, INK, MAP_SCALE, PALE, PROMISE_SCALE
from sfumato.paper.experiment import Cell, ExperimentResult, RunOptions
from sfumato.simulation import Spread

_COLUMNS = {
    "context": "context",
    "error": "error",
    "ε": "epsilon",
    "people": "people",
    "lower bound": "lower",
    "best code": "best",
    "paper's scheme": "paper",
    "after projection": "projected",
    "tight bound": "tight",
    "paper's bound": "paper_bound",
    "as printed": "printed",
    "holds": "holds",
}
"""The attribute of a line that each column shows."""
_COLOURS = {
    "lower bound": FAINT,
    "tight bound": INK,
    "paper's bound": FAINT,
    "as printed": PALE,
    "paper's scheme": PROMISE_SCALE[1],
    "best code": MAP_SCALE[2],
    "after projection": PROMISE_SCALE[0],
}
_ERRORS = {
    "risk": "Risk n · E‖p̂ − p‖² over its tight bound",
    "TV": "Mean total variation over its tight bound",
}


def bounds(options: RunOptions, *, workers: int | None = None) -> ExperimentResult:
    """Measure errors between their bounds, and the exponents of the paper's theorems.

    The numbers do not depend on ``workers``.
    """
    runs = options.run_count(full=40, quick=20)
    measured = lines(options, runs, workers)
    growth = curves(options, workers)
    rows = [_row(line) for line in measured]
    for curve in growth:
        rows += _exponent_rows(curve)
    verdicts = [row[-1] for row in rows]
    broken = verdicts.count("no")
    title = "Every measured error keeps its bounds"
    if broken:
        title = f"Of {len(verdicts)} lines, {broken} break a bound"
    return ExperimentResult(
        name="bounds",
        title=title,
        summary=f"{verdicts.count('yes')} of {len(verdicts)} lines hold. "
        f"{_summary(measured, growth)}",
        columns=tuple(_COLUMNS),
        rows=tuple(rows),
        data={
            "seed": options.seed,
            "runs": runs,
            "lines": [_to_json(line) for line in measured],
            "growth": [asdict(curve) for curve in growth],
            "growth_error": ERROR,
        },
        draw_figure=lambda: _figure(measured, growth),
        notes=_notes(runs),
    )


def _row(line: Line) -> tuple[Cell, ...]:
    return tuple(_cell(getattr(line, attribute)) for attribute in _COLUMNS.values())


def _cell(value: Cell | Spread) -> Cell:
    """Round to four digits, and standard errors to two."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if not isinstance(value, Spread):
        return value
    mean = f"{value.mean:.4g}"
    error = value.standard_error
    return f"{float(mean):g}" + ("" if error is None else f" ± {float(f'{error:.2g}'):g}")


def _exponent_rows(curve: Curve) -> Iterator[tuple[Cell, ...]]:
    """Yield exponents in the columns of what they are exponents of."""
    for fit in curve.fits:
        yield (
            f"{fit.text}; theorem {fit.theorem:g}, exact variances {fit.exact:.3f}",
            "exponent",
            curve.epsilon,
            None,
            round(fit.lower, 3) + 0.0,
            None,
            f"{fit.measured:.3f}",
            None,
            round(fit.upper, 3),
            None,
            None,
            "yes" if fit.holds and curve.is_ordered else "no",
        )


def _to_json(line: Line) -> dict[str, object]:
    fields: dict[str, object] = {"holds": line.holds}
    for name, value in vars(line).items():
        fields[name] = value.in_json() if isinstance(value, Spread) else value
    return fields


def _summary(measured: Sequence[Line], growth: Sequence[Curve]) -> str:
    best_risks = []
    paper_risks = []
    tight = []
    printed = []
    for line in measured:
        if line.exact_best and line.exact_paper:
            best_risks.append(line.exact_best / line.lower)
            paper_risks.append(line.exact_paper / line.lower)
        else:
            tight.append(line.tight / line.paper.mean)
            printed.append(line.printed / line.paper.mean)
    exponents = []
    for curve in growth:
        for fit in curve.fits:
            exponents.append(f"{curve.variable}^{fit.measured:.2f} ({fit.theorem:g})")
    return (
        f"Worst-case risk over the lower bound: {min(best_risks):.3f} to {max(best_risks):.3f} for "
        f"the best code, {min(paper_risks):.2f} to {max(paper_risks):.2f} for the paper's scheme. "
        f"The tight bound on total variation is {min(tight):.2f} to {max(tight):.2f} times the "
        f"measured error, the paper's as printed {min(printed):.1f} to {max(printed):.1f} times. "
        f"People needed grow as (theorem in brackets) {', '.join(exponents)}."
    )


def _notes(runs: int) -> tuple[str, ...]:
    return (
        f"Measured: means of {runs} runs of real reports (four times as many for k = 100), "
        "± standard error, at the distribution that the mechanism finds hardest. Best code and "
        "paper's scheme are unbiased estimates, before any projection; their total variation can "
        "be above 1.",
        "Risk is people times the squared Euclidean error. Its lower bound is for every unbiased "
        "estimate; that of total variation is for every estimate, the projected one included. The "
        "upper bounds are those of the paper's scheme; the best code must keep the tight one, too.",
        "The paper calls its bounds on Σ|p̂ − p| total variation, which is half of that: as "
        "printed is twice the paper's bound. For the risk they are the same; the bound of the "
        "high-low scheme is in the proof.",
        "A line holds if the exact risks lie between the bounds and all measured means do, up to "
        "5 of their standard errors; an exponent, if all four are within 0.15 of the theorem's and "
        "the people are in order.",
        f"Exponents: of the people for a total variation of {ERROR:g}. Measured: from the error of "
        "real reports, scaled by 1/√n. Exact variances: the same without sampling, with normal "
        "errors. Lower and tight bound: exponents of the bounds. The theorems are about limits "
        "(s far below or above √k, small ε), hence small differences.",
    )


# --- the picture ----------------------------------------------------------------------------------


def _figure(measured: Sequence[Line], growth: Sequence[Curve]) -> Figure:
    """Draw every line over its tight bound above, and people against each variable below."""
    canvas = Figure(figsize=(14, 9.4), layout="constrained")
    above, below = canvas.subfigures(2, 1, squeeze=False).flat
    panels = above.subplots(1, len(_ERRORS), sharey=True)
    for axes, (error, title) in zip(panels, _ERRORS.items(), strict=True):
        rows = [(line.context, _ratios(line)) for line in measured if line.error == error]
        draw_dots(axes, title, rows, _COLOURS)
    for axes, curve in zip(below.subplots(1, len(growth)), growth, strict=True):
        _draw_growth(axes, curve)
    return canvas


def _ratios(line: Line) -> list[Spread | None]:
    """Return bounds and means over the tight bound, in the order of the colours."""
    ratios: list[Spread | None] = []
    for bound in (line.lower, line.tight, line.paper_bound, line.printed):
        ratios.append(Spread(bound / line.tight, None))
    for spread in (line.paper, line.best, line.projected):
        ratios.append(spread and Spread(spread.mean / line.tight, None))
    return ratios


def _draw_growth(axes: Axes, curve: Curve) -> None:
    """Draw the people between their bounds, and write the exponents into the title."""
    values = [point.value for point in curve.points]
    lower = [point.lower for point in curve.points]
    upper = [point.upper for point in curve.points]
    colour = MAP_SCALE[2]
    axes.fill_between(values, lower, upper, color=colour, alpha=0.13)
    axes.plot(values, [point.exact for point in curve.points], color=colour)
    axes.plot(values, [point.measured for point in curve.points], "o", color=colour)
    axes.set(yscale="log", xlabel=curve.variable)
    exponents = ", ".join(f"{fit.measured:.2f} ({fit.theorem:g})" for fit in curve.fits)
    style_axes(axes, f"{curve.name}\nexponent: {exponents}")
    axes.set_xticks(values[:: 1 + len(values) // 6])
