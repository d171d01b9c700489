"""Compare the paper's bounds with measured errors, and show how the number of people grows.

Upper bounds: Propositions 4 and 5 as printed, the same with the definition of the error corrected,
and tight ones. Lower bounds: on the risk, for every mechanism with an unbiased estimate; on total
variation, for every mechanism and estimate (the lower bounds of Theorems 3 and 4, with constants).
Derivations: docs/bounds.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.error_bounds import PaperLine, measure_lines
from experiments.figures import draw_dots, style_axes
from experiments.growth import ERROR, GrowthCurve, measure_curves
from sfumato.paper.experiment import Cell, ExperimentResult, RunOptions
from sfumato.paper.pictures import FAINT, INK, MAP_SCALE, PALE, PROMISE_SCALE
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
"""Maps each column to the attribute of ``PaperLine`` that it shows."""

_COLOURS = {
    "lower bound": FAINT,
    "tight bound": INK,
    "paper's bound": FAINT,
    "as printed": PALE,
    "paper's scheme": PROMISE_SCALE[1],
    "best code": MAP_SCALE[2],
    "after projection": PROMISE_SCALE[0],
}
_ERROR_TITLES = {
    "risk": "Risk n · E‖p̂ − p‖² divided by its tight bound",
    "TV": "Mean total variation divided by its tight bound",
}


def bounds(options: RunOptions, *, workers: int | None = None) -> ExperimentResult:
    """Measure errors against their bounds, and growth against the exponents in the theorems.

    The numbers do not depend on ``workers``.
    """
    runs = options.run_count(full=40, quick=20)
    measured = measure_lines(options, runs, workers)
    growth = measure_curves(options, workers)
    rows = [_row(line) for line in measured]
    for curve in growth:
        rows += _exponent_rows(curve)
    verdicts = [row[-1] for row in rows]
    violation_count = verdicts.count("no")
    title = "Every measured error is within its bounds"
    if violation_count:
        title = f"{violation_count} of {len(verdicts)} lines violate a bound"
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


def _row(line: PaperLine) -> tuple[Cell, ...]:
    return tuple(_cell(getattr(line, attribute)) for attribute in _COLUMNS.values())


def _cell(value: Cell | Spread) -> Cell:
    """Round numbers to four significant digits, and standard errors to two."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if not isinstance(value, Spread):
        return value
    mean = f"{value.mean:.4g}"
    error = value.standard_error
    return f"{float(mean):g}" + ("" if error is None else f" ± {float(f'{error:.2g}'):g}")


def _exponent_rows(curve: GrowthCurve) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each fit, with the exponents in the columns of the quantities they fit."""
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


def _to_json(line: PaperLine) -> dict[str, object]:
    fields: dict[str, object] = {"holds": line.holds}
    for name, value in vars(line).items():
        fields[name] = value.to_dict() if isinstance(value, Spread) else value
    return fields


def _summary(measured: Sequence[PaperLine], growth: Sequence[GrowthCurve]) -> str:
    best_ratios = []
    paper_ratios = []
    tight_ratios = []
    printed_ratios = []
    for line in measured:
        if line.exact_best and line.exact_paper:
            best_ratios.append(line.exact_best / line.lower)
            paper_ratios.append(line.exact_paper / line.lower)
        else:
            tight_ratios.append(line.tight / line.paper.mean)
            printed_ratios.append(line.printed / line.paper.mean)
    exponents = []
    for curve in growth:
        for fit in curve.fits:
            exponents.append(f"{curve.variable}^{fit.measured:.2f} ({fit.theorem:g})")
    return (
        "Worst-case risk divided by the lower bound: "
        f"{min(best_ratios):.3f} to {max(best_ratios):.3f} for the best code, "
        f"{min(paper_ratios):.2f} to {max(paper_ratios):.2f} for the paper's scheme. "
        "The tight bound on total variation is "
        f"{min(tight_ratios):.2f} to {max(tight_ratios):.2f} times the measured error; "
        f"the paper's bound as printed is {min(printed_ratios):.1f} to {max(printed_ratios):.1f} "
        "times the measured error. The number of people needed grows as "
        f"{', '.join(exponents)} (theorem in brackets)."
    )


def _notes(runs: int) -> tuple[str, ...]:
    return (
        f"Measured: means over {runs} runs of real reports (four times as many for k = 100), "
        "± standard error, at the distribution that is hardest for the mechanism. The best code "
        "and the paper's scheme are unbiased estimates before any projection; their total "
        "variation can exceed 1.",
        "Risk is the number of people times the squared Euclidean error. Its lower bound holds for "
        "every unbiased estimate; the lower bound on total variation holds for every estimate, "
        "including the projected one. The upper bounds are for the paper's scheme; the best code "
        "must also satisfy the tight one.",
        "The paper's bounds on total variation are in fact bounds on Σ|p̂ − p|, which is twice the "
        'total variation. So "as printed" is twice the "paper\'s bound". For the risk, the two are '
        "equal; the bound for the high-low scheme is in the paper's proof.",
        "A line holds if the exact risks are between the bounds, and all measured means are too, "
        "up to 5 standard errors. An exponent holds if all four are within 0.15 of the theorem's, "
        "and the numbers of people are between the bounds.",
        f"Exponents are for the number of people needed for a total variation of {ERROR:g}. "
        "Measured: from the error of real reports, scaled by 1/√n. Exact variances: computed "
        "without sampling, assuming normal errors. Lower and tight bound: exponents of the bounds. "
        "The theorems are about limits (s far below or above √k, small ε), which explains small "
        "differences.",
    )


# --- figure ---------------------------------------------------------------------------------------


def _figure(measured: Sequence[PaperLine], growth: Sequence[GrowthCurve]) -> Figure:
    """Draw the errors divided by their tight bounds (top) and the growth curves (bottom)."""
    canvas = Figure(figsize=(14, 9.4), layout="constrained")
    above, below = canvas.subfigures(2, 1, squeeze=False).flat
    panels = above.subplots(1, len(_ERROR_TITLES), sharey=True)
    for axes, (error, title) in zip(panels, _ERROR_TITLES.items(), strict=True):
        rows = [(line.context, _ratios(line)) for line in measured if line.error == error]
        draw_dots(axes, title, rows, _COLOURS)
    for axes, curve in zip(below.subplots(1, len(growth)), growth, strict=True):
        _draw_growth(axes, curve)
    return canvas


def _ratios(line: PaperLine) -> list[Spread | None]:
    """Return bounds and means divided by the tight bound, in the order of ``_COLOURS``."""
    ratios: list[Spread | None] = []
    for bound in (line.lower, line.tight, line.paper_bound, line.printed):
        ratios.append(Spread(bound / line.tight, None))
    for spread in (line.paper, line.best, line.projected):
        ratios.append(spread and Spread(spread.mean / line.tight, None))
    return ratios


def _draw_growth(axes: Axes, curve: GrowthCurve) -> None:
    """Draw the numbers of people with their bounds. The title shows the exponents."""
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
