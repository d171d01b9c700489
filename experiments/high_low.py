"""The high-low experiment, which the paper leaves out: its scheme, uRR, uRAP and the best here."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from experiments.utility_optimized import UtilityOptimizedRappor, utility_optimized_response
from sfumato.codes import HadamardCode
from sfumato.contexts import HighLow
from sfumato.designer import mechanism_for
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.simplex import project, total_variation
from sfumato.mechanisms import HighLowResponse, Mechanism
from sfumato.pages.pictures import BAR, FAINT, INK, MAP_SCALE, PROMISE_SCALE
from sfumato.paper.experiment import (
    Cell,
    ExperimentResult,
    RunOptions,
    population_sizes,
    spread_cells,
)
from sfumato.paper.schemes import best_estimate, paper_estimate
from sfumato.paper.synthetic import draw_curve, name_curves, style_panel, zipf
from sfumato.simulation import Spread, draw_order, draw_people, run_jobs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["high_low"]

K = 1000
SENSITIVE = (10, 100, 300)
EPSILONS = (0.5, 1, 2)
PEOPLE = tuple(1000 * 4**i for i in range(6))
QUICK_PEOPLE = PEOPLE[::2]
PAPER = "paper"
URR = "uRR"
URAP = "uRAP"
DEFAULT = "here, default"
FITTED = "here, fitted"
SCHEMES = (PAPER, URR, URAP, DEFAULT, FITTED)
OURS = (DEFAULT, FITTED)
_COLOURS = {PAPER: PROMISE_SCALE[0], URR: FAINT, URAP: INK, DEFAULT: BAR, FITTED: MAP_SCALE[2]}
_PROMISES = tuple((s, epsilon) for s in SENSITIVE for epsilon in EPSILONS)
_COLUMNS = (
    "sensitive",
    "epsilon",
    "people",
    "scheme",
    "bits",
    "total_variation",
    "standard_error",
)


def high_low(
    options: RunOptions, *, people: Sequence[int] | None = None, workers: int | None = None
) -> ExperimentResult:
    """Measure total variation against people, with s of k = 1000 symbols sensitive.

    Five schemes meet the same people. Three are projected on the simplex: the paper's (Hadamard code,
    its own estimator), and uRR and uRAP (Murakami and Kawamoto 2019) with their unbiased estimates.
    The best code here with the default decoder enters twice: chosen for the worst population, as by
    default, and fitted to a population whose sensitive share is s/k. Errors are against the
    distribution that people were drawn from.

    ``people`` replaces the sizes of 1,000 to 1,024,000. The numbers do not depend on ``workers``.
    """
    if people is not None:
        sizes = population_sizes(people)
    else:
        sizes = QUICK_PEOPLE if options.quick else PEOPLE
    runs = options.repetitions(full=10, quick=2)
    seed = options.seed
    jobs = [_Job(n, run, seed) for n in reversed(sizes) for run in range(runs)]
    results = run_jobs(
        _measure,
        jobs,
        workers=workers,
        on_progress=lambda done: options.on_progress(f"{done} of {len(jobs)} runs"),
    )
    errors = dict(zip(jobs, results, strict=True))
    panels = [_panel(errors, promise, sizes, seed) for promise in _PROMISES]
    return ExperimentResult(
        name="high-low",
        title="High-low promises: a dozen bits do as well as a thousand; "
        "a better code and decoder mostly do better",
        summary=_summary(panels),
        columns=_COLUMNS,
        rows=tuple(row for panel in panels for row in panel.rows()),
        data={
            "symbols": K,
            "runs": runs,
            "seed": seed,
            "people": list(sizes),
            "panels": [panel.in_json(seed) for panel in panels],
        },
        figure=lambda: _figure(panels),
        notes=_notes(runs, seed),
    )


def _notes(runs: int, seed: int) -> tuple[str, ...]:
    shares = ", ".join(f"{100 * _sensitive_share(s, seed):.1f} % at s = {s}" for s in SENSITIVE)
    return (
        "The paper proves its high-low scheme and shows no experiment of it; all of this is new.",
        f"People are drawn from Zipf(1) over {K} symbols in shuffled order, {runs} times for each "
        "point. Zipf, since answers mostly have a few favourites and many rarities; the sensitive "
        "symbols are drawn at random, so that nothing depends on whether they are the rare ones. "
        f"Their share of all people is {shares}.",
        "The paper's scheme, uRR and uRAP: unbiased estimate, one Euclidean projection on the "
        "simplex. Here: the best code known, and the default decoder; so the gain is the code's and "
        "the decoder's together.",
        "Here, default: the code with the least worst-case risk, which guards against a population "
        "that is all sensitive; with few sensitive symbols and a large ε that costs the others "
        "accuracy. Here, fitted: the code for a sensitive share of s/k, a guess that needs no look "
        "at the people.",
        "Every report is really made, except those of uRAP: its bits are independent, so the counts "
        "of bits are binomial given the people, and are drawn as such.",
    )


@dataclass(frozen=True)
class _Job:
    """One population: its size and the number of the run."""

    people: int
    run: int
    seed: int


@dataclass(frozen=True)
class _Panel:
    """How all schemes did for one promise."""

    sensitive: int
    epsilon: float
    people: Sequence[int]
    bits: Mapping[str, int]
    errors: Mapping[str, Sequence[Spread]]

    def rows(self) -> list[tuple[Cell, ...]]:
        rows: list[tuple[Cell, ...]] = []
        for i, n in enumerate(self.people):
            for scheme in SCHEMES:
                cells = spread_cells(self.errors[scheme][i])
                rows.append((self.sensitive, self.epsilon, n, scheme, self.bits[scheme], *cells))
        return rows

    def in_json(self, seed: int) -> dict[str, object]:
        curves = []
        for scheme in SCHEMES:
            points = []
            for n, error in zip(self.people, self.errors[scheme], strict=True):
                points.append({"people": n, **error.in_json()})
            fields = {"scheme": scheme, "bits": self.bits[scheme], "total_variation": points}
            curves.append(fields)
        return {
            "sensitive": self.sensitive,
            "epsilon": self.epsilon,
            "sensitive_share": _sensitive_share(self.sensitive, seed),
            "curves": curves,
        }


@cache
def _probabilities(seed: int) -> Floats:
    return zipf(K, 1.0)[draw_order(K, "high-low/crowd", seed)]


def _sensitive(s: int, seed: int) -> Symbols:
    """Return the sensitive symbols: those of a smaller s are among those of a larger."""
    return draw_order(K, "high-low/sensitive", seed)[:s]


def _sensitive_share(s: int, seed: int) -> float:
    return float(_probabilities(seed)[_sensitive(s, seed)].sum())


@dataclass(frozen=True, eq=False)
class _Entrants:
    """All that is compared for one promise."""

    paper: HighLowResponse
    urr: HighLowResponse
    urap: UtilityOptimizedRappor
    default: Mechanism
    fitted: Mechanism

    @property
    def bits(self) -> dict[str, int]:
        return {
            PAPER: self.paper.bits,
            URR: self.urr.bits,
            URAP: self.urap.bits,
            DEFAULT: self.default.bits,
            FITTED: self.fitted.bits,
        }


@cache
def _entrants(s: int, epsilon: float, seed: int) -> _Entrants:
    context = HighLow(K, _sensitive(s, seed).tolist(), epsilon)
    return _Entrants(
        HighLowResponse(context, HadamardCode),
        utility_optimized_response(context),
        UtilityOptimizedRappor(context),
        mechanism_for(context),
        mechanism_for(context, sensitive_share=s / K),
    )


def _measure(job: _Job) -> Floats:
    """Return the errors for one population: a row for each promise, a column for each scheme."""
    p = _probabilities(job.seed)
    symbols = draw_people(p, job.people, f"high-low/{job.people}", job.run, job.seed)
    errors = []
    for s, epsilon in _PROMISES:
        estimates = _estimates(job, symbols, s, epsilon)
        errors.append([total_variation(estimate, p) for estimate in estimates])
    return np.array(errors)


def _estimates(job: _Job, symbols: Symbols, s: int, epsilon: float) -> list[Floats]:
    """Return the estimate of each scheme."""
    entrants = _entrants(s, epsilon, job.seed)
    name = f"high-low/{job.people}/{s}/{epsilon}"
    key = hashlib.sha256(f"sfumato/paper/{name}/{URAP}/{job.run}/{job.seed}".encode()).digest()
    bit_counts = entrants.urap.bit_counts(symbols, key)
    run = job.run
    seed = job.seed
    return [
        paper_estimate(entrants.paper, symbols, f"{name}/{PAPER}", run, seed),
        paper_estimate(entrants.urr, symbols, f"{name}/{URR}", run, seed),
        project(entrants.urap.unbiased(bit_counts, symbols.size)),
        best_estimate(entrants.default, symbols, f"{name}/{DEFAULT}", run, seed),
        best_estimate(entrants.fitted, symbols, f"{name}/{FITTED}", run, seed),
    ]


def _panel(
    errors: Mapping[_Job, Floats], promise: tuple[int, float], people: Sequence[int], seed: int
) -> _Panel:
    row = _PROMISES.index(promise)
    spreads: dict[str, list[Spread]] = {scheme: [] for scheme in SCHEMES}
    for n in people:
        runs = np.array([result[row] for job, result in errors.items() if job.people == n])
        for scheme, column in zip(SCHEMES, runs.T, strict=True):
            spreads[scheme].append(Spread.of(column))
    s, epsilon = promise
    return _Panel(s, epsilon, people, _entrants(s, epsilon, seed).bits, spreads)


def _summary(panels: Sequence[_Panel]) -> str:
    """Say how the schemes compare at the ends of the curves."""
    texts = []
    for panel in panels:
        if panel.epsilon == 1:
            ends = ", ".join(f"{scheme} {panel.errors[scheme][-1].mean:.3f}" for scheme in SCHEMES)
            texts.append(f"s = {panel.sensitive}: {ends}")
    return f"Total variation with {panels[0].people[-1]:,} people at ε = 1: {'; '.join(texts)}."


def _figure(panels: Sequence[_Panel]) -> "Figure":
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(13.0, 9.8), layout="constrained")
    grid = canvas.subplots(len(SENSITIVE), len(EPSILONS), sharex=True, sharey="row")
    for row, s in zip(grid, SENSITIVE, strict=True):
        own = [panel for panel in panels if panel.sensitive == s]
        low = min(_lowest(panel) for panel in own)
        for axes, panel in zip(row, own, strict=True):
            _draw_panel(axes, panel, max(low / 1.4, 1e-4))
        row[0].set_ylabel("total variation error", color=INK, fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel("people", color=INK, fontsize=9)
    canvas.suptitle(
        "Some of 1000 symbols are sensitive: a dozen bits do as well as uRAP's 1,000; "
        "a better code and decoder mostly do better\n"
        "dashed: unbiased estimate, projected    solid: the best code and the default decoder here",
        x=0.01,
        ha="left",
        fontsize=12,
        color=INK,
    )
    return canvas


def _lowest(panel: _Panel) -> float:
    return min(error.mean for errors in panel.errors.values() for error in errors)


def _draw_panel(axes: "Axes", panel: _Panel, low: float) -> None:
    style_panel(axes, f"{panel.sensitive} of {K} sensitive, ε = {panel.epsilon:g}")
    names = []
    for scheme in SCHEMES:
        errors = panel.errors[scheme]
        colour = _COLOURS[scheme]
        draw_curve(axes, panel.people, errors, colour, dashed=scheme not in OURS)
        names.append((errors[-1].mean, f"{scheme}: {panel.bits[scheme]:,} bits", colour))
    right = panel.people[-1] * 1.1
    axes.set_xlim(panel.people[0] / 1.1, right)
    axes.set_ylim(low, 1.1)
    axes.set_xticks(panel.people if len(panel.people) < 4 else panel.people[::2])
    name_curves(axes, right, names, distance=0.058)
