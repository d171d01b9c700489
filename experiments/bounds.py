"""Every bound of the paper against what real reports give; and how the number of people grows.

Upper bounds: Propositions 4 and 5, as printed and for the error they are about, and the tight ones. Lower bounds: on
the risk, for every mechanism with an unbiased estimate; on total variation, for every mechanism and estimate (the
lower halves of Theorems 3 and 4, with constants). Derivations: docs/bounds.md.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from experiments.bounds_figure import bounds_figure
from experiments.error_bounds import Line, lines
from experiments.growth import ERROR, Curve, curves
from sfumato.paper.experiment import Cell, ExperimentResult, RunOptions
from sfumato.simulation import Spread

__all__ = ["bounds"]

_COLUMNS = (
    "context",
    "error",
    "ε",
    "people",
    "lower bound",
    "best code",
    "paper's scheme",
    "after projection",
    "tight bound",
    "paper's bound",
    "as printed",
    "holds",
)


def bounds(options: RunOptions) -> ExperimentResult:
    """Lower bounds, measured errors and upper bounds, line by line; then the exponents of the paper's theorems."""
    workers = min(os.cpu_count() or 1, 4)
    runs = options.repetitions(full=40, quick=20)
    measured = lines(options, runs, workers)
    grown = curves(options, workers)
    verdicts = [
        *(line.holds for line in measured),
        *(_verdict(curve, fit.holds) for curve in grown for fit in curve.fits),
    ]
    kept = verdicts.count("yes")
    broken = verdicts.count("no")
    return ExperimentResult(
        name="bounds",
        title=f"Of {len(verdicts)} lines, {broken} break a bound"
        if broken
        else "Every measured error keeps its bounds",
        summary=f"{kept} of {len(verdicts)} lines hold. {_summary(measured, grown)}",
        columns=_COLUMNS,
        rows=(*map(_row, measured), *(row for curve in grown for row in _growth_rows(curve))),
        data={
            "seed": options.seed,
            "runs": runs,
            "lines": [_in_json(line) for line in measured],
            "growth": [asdict(curve) for curve in grown],
            "growth_error": ERROR,
        },
        figure=lambda: bounds_figure(measured, grown),
        notes=_notes(runs),
    )


def _verdict(curve: Curve, fits: bool) -> str:
    return "yes" if fits and curve.is_ordered else "no"


def _row(line: Line) -> tuple[Cell, ...]:
    measured = (_text(line.best), _text(line.paper), _text(line.projected))
    upper = (_digits(line.tight), _digits(line.paper_bound), _digits(line.printed))
    return (
        line.context,
        line.error,
        line.epsilon,
        line.people,
        _digits(line.lower),
        *measured,
        *upper,
        line.holds,
    )


def _growth_rows(curve: Curve) -> Iterator[tuple[Cell, ...]]:
    """Exponents in the columns of what they are exponents of."""
    for fit in curve.fits:
        text = f"{fit.text}; theorem {fit.theorem:g}, exact variances {fit.exact:.3f}"
        measured = (None, f"{fit.measured:.3f}", None)
        upper = (round(fit.upper, 3), None, None)
        holds = _verdict(curve, fit.holds)
        yield (
            text,
            "exponent",
            curve.epsilon,
            None,
            round(fit.lower, 3) + 0.0,
            *measured,
            *upper,
            holds,
        )


def _text(found: Spread | None) -> str | None:
    if found is None:
        return None
    mean = f"{_digits(found.mean):g}"
    error = found.standard_error
    return mean if error is None else f"{mean} ± {float(f'{error:.2g}'):g}"


def _digits(number: float) -> float:
    return float(f"{number:.4g}")


def _in_json(line: Line) -> dict[str, object]:
    exact = dict(zip(("exact_best", "exact_paper"), line.exact or (None, None), strict=True))
    return {
        "context": line.context,
        "error": line.error,
        "epsilon": line.epsilon,
        "people": line.people,
        "lower": line.lower,
        "best": line.best.in_json(),
        "paper": line.paper.in_json(),
        "projected": line.projected and line.projected.in_json(),
        **exact,
        "tight": line.tight,
        "paper_bound": line.paper_bound,
        "printed": line.printed,
        "holds": line.holds,
    }


def _summary(found: Sequence[Line], grown: Sequence[Curve]) -> str:
    risks = [line for line in found if line.exact]
    over = [line.exact[0] / line.lower for line in risks if line.exact]
    over2 = [line.exact[1] / line.lower for line in risks if line.exact]
    tight = [line.tight / line.paper.mean for line in found if line.error == "TV"]
    printed = [line.printed / line.paper.mean for line in found if line.error == "TV"]
    exponents = ", ".join(
        f"{curve.variable}^{fit.measured:.2f} ({fit.theorem:g})"
        for curve in grown
        for fit in curve.fits
    )
    return (
        f"Worst-case risk over what nobody can go below: {min(over):.3f} to {max(over):.3f} for the best code, "
        f"{min(over2):.2f} to {max(over2):.2f} for the paper's scheme. The tight bound on total variation is "
        f"{min(tight):.2f} to {max(tight):.2f} times what was measured, the paper's as printed {min(printed):.1f} to "
        f"{max(printed):.1f} times. People needed grow as (theorem in brackets) {exponents}."
    )


def _notes(runs: int) -> tuple[str, ...]:
    return (
        f"Measured: means of {runs} runs of real reports (four times as many for k = 100), ± standard error, at the "
        "distribution that the mechanism finds hardest. Best code and paper's scheme are unbiased estimates, before "
        "any projection; their total variation can be above 1.",
        "Risk is people times the squared Euclidean error. Its lower bound is for every unbiased estimate; that of "
        "total variation is for every estimate, the projected one included. The upper bounds are those of the "
        "paper's scheme; the best code is held to the tight one as well.",
        "The paper calls its bounds on Σ|p̂ − p| total variation, which is half of that: as printed is twice the "
        "paper's bound. For the risk they are the same; that of the high-low scheme stands in the proof.",
        "A line holds if the exact risks lie between the bounds and all measured means do, up to 5 of their standard "
        "errors; an exponent, if all four are within 0.15 of the theorem's and the people are in order.",
        f"Exponents: of the people for a total variation of {ERROR:g}. Measured: from the error of real reports, "
        "scaled by 1/√n. Exact variances: the same with no sampling, and normal errors. Lower and tight bound: of the "
        "bounds. The theorems speak of limits (s far below or above √k, small ε), hence small differences.",
    )
