"""The high-low experiment, which the paper leaves out: its scheme beside uRR and uRAP, and beside the best here."""

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
from sfumato.pages.style import BAR, FAINT, INK, MAP_SCALE, PROMISE_SCALE
from sfumato.paper.crowds import crowd_sizes, shuffled_order, zipf
from sfumato.paper.curves import draw_curve, dress_panel, name_ends
from sfumato.paper.experiment import (
    Cell,
    ExperimentResult,
    Measured,
    RunOptions,
    drawn_people,
)
from sfumato.paper.schemes import answered, best_estimate, paper_estimate
from sfumato.paper.workers import shared_out
from sfumato.tally import Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["high_low"]

K = 1000
SENSITIVE = (10, 100, 300)
EPSILONS = (0.5, 1, 2)
PEOPLE = tuple(1000 * 4**i for i in range(6))
PEOPLE_QUICKLY = PEOPLE[::2]
RUNS, RUNS_QUICKLY = 10, 2
PAPER, URR, URAP, DEFAULT, FITTED = "paper", "uRR", "uRAP", "here, default", "here, fitted"
SCHEMES = (PAPER, URR, URAP, DEFAULT, FITTED)
OURS = (DEFAULT, FITTED)
_COLOURS = {PAPER: PROMISE_SCALE[0], URR: FAINT, URAP: INK, DEFAULT: BAR, FITTED: MAP_SCALE[2]}
_PROMISES = tuple((s, epsilon) for s in SENSITIVE for epsilon in EPSILONS)


def high_low(
    options: RunOptions, *, people: Sequence[int] | None = None, workers: int | None = None
) -> ExperimentResult:
    """Total variation against the number of people, s of k = 1000 symbols sensitive, for several s and ε.

    Five schemes meet the same people: the paper's (Hadamard code, its own estimator), uRR and uRAP (Murakami and
    Kawamoto 2019) with their unbiased estimates, these three projected on the simplex; and the best code here with the
    default decoder, twice: chosen for the worst crowd, as is the default, and fitted to a crowd whose sensitive share
    is s/k. Errors are against the distribution that people were drawn from. ``people`` replaces the crowds of 1,000 to
    1,024,000; the numbers do not depend on how many ``workers`` there are.
    """
    crowds = (
        crowd_sizes(people) if people is not None else PEOPLE_QUICKLY if options.quick else PEOPLE
    )
    runs = options.repetitions(RUNS, RUNS_QUICKLY)
    jobs = [_Job(n, run, options.seed) for n in reversed(crowds) for run in range(runs)]
    found = shared_out(
        _errors,
        jobs,
        workers=workers,
        on_progress=lambda done: options.on_progress(f"{done} of {len(jobs)} crowds have answered"),
    )
    by_job = dict(zip(jobs, found, strict=True))
    panels = [_panel(by_job, promise, crowds, runs, options.seed) for promise in _PROMISES]
    return ExperimentResult(
        name="high-low",
        title="High-low promises: a dozen bits do as well as a thousand; a better code and decoder mostly do better",
        summary=_summary(panels),
        columns=(
            "sensitive",
            "epsilon",
            "people",
            "scheme",
            "bits",
            "total_variation",
            "standard_error",
        ),
        rows=tuple(row for panel in panels for row in panel.rows()),
        data={
            "symbols": K,
            "runs": runs,
            "seed": options.seed,
            "people": list(crowds),
            "panels": [panel.in_json(options.seed) for panel in panels],
        },
        figure=lambda: _figure(panels),
        notes=_notes(runs, options.seed),
    )


def _notes(runs: int, seed: int) -> tuple[str, ...]:
    p = _crowd(seed)
    shares = ", ".join(f"{100 * p[_sensitive(s, seed)].sum():.1f} % at s = {s}" for s in SENSITIVE)
    return (
        "The paper proves its high-low scheme and shows no experiment of it; everything here is new.",
        f"People are drawn from Zipf(1) over {K} symbols in shuffled order, {runs} crowds for each point. Zipf, since "
        "answers mostly have a few favourites and many rarities; the sensitive symbols are drawn at random, so that "
        f"nothing rests on whether they are the rare ones. Of the crowd they are {shares}.",
        "The paper's scheme, uRR and uRAP: unbiased estimate, one Euclidean projection on the simplex. Here: the best "
        "code known, and the default decoder; so what they gain is the code's and the decoder's together.",
        "Here, default: the code of the least worst-case risk, which guards against a crowd that is all sensitive; "
        "with few sensitive symbols and a large ε that costs the others accuracy. Here, fitted: the code for a "
        "sensitive share of s/k, a guess that needs no look at the crowd.",
        "Every report is really made, except those of uRAP: its bits are independent, so that the counts of bits are "
        "binomial given the crowd, and are drawn as such.",
    )


@dataclass(frozen=True)
class _Job:
    """One crowd: its size, the number of the run."""

    people: int
    run: int
    seed: int


@dataclass(frozen=True)
class _Panel:
    """What all schemes did for one promise."""

    sensitive: int
    epsilon: float
    people: Sequence[int]
    bits: Mapping[str, int]
    errors: Mapping[str, Sequence[Measured]]

    def rows(self) -> list[tuple[Cell, ...]]:
        return [
            (
                self.sensitive,
                self.epsilon,
                n,
                scheme,
                self.bits[scheme],
                *self.errors[scheme][i].in_cells(),
            )
            for i, n in enumerate(self.people)
            for scheme in SCHEMES
        ]

    def in_json(self, seed: int) -> dict[str, object]:
        curves = [
            {
                "scheme": scheme,
                "bits": self.bits[scheme],
                "total_variation": [
                    {"people": n, **error.in_json()}
                    for n, error in zip(self.people, self.errors[scheme], strict=True)
                ],
            }
            for scheme in SCHEMES
        ]
        share = float(_crowd(seed)[_sensitive(self.sensitive, seed)].sum())
        return {
            "sensitive": self.sensitive,
            "epsilon": self.epsilon,
            "sensitive_share": share,
            "curves": curves,
        }


@cache
def _crowd(seed: int) -> Floats:
    return zipf(K, 1.0)[shuffled_order(K, "high-low/crowd", seed)]


def _sensitive(s: int, seed: int) -> Symbols:
    """The sensitive symbols: those of a smaller s are among those of a larger."""
    return shuffled_order(K, "high-low/sensitive", seed)[:s]


@dataclass(frozen=True, eq=False)
class _Schemes:
    """All that is compared for one promise."""

    paper: HighLowResponse
    urr: HighLowResponse
    urap: UtilityOptimizedRappor
    default: Mechanism
    fitted: Mechanism

    @property
    def bits(self) -> dict[str, int]:
        lengths = (
            self.paper.bits,
            self.urr.bits,
            self.urap.bits,
            self.default.bits,
            self.fitted.bits,
        )
        return dict(zip(SCHEMES, lengths, strict=True))


@cache
def _schemes(s: int, epsilon: float, seed: int) -> _Schemes:
    context = HighLow(K, _sensitive(s, seed).tolist(), epsilon)
    return _Schemes(
        HighLowResponse(context, HadamardCode),
        utility_optimized_response(context),
        UtilityOptimizedRappor(context),
        mechanism_for(context),
        mechanism_for(context, sensitive_share=s / K),
    )


def _errors(job: _Job) -> Floats:
    """The errors of one crowd: a row for each promise, a column for each scheme."""
    p = _crowd(job.seed)
    symbols = drawn_people(p, job.people, f"high-low/{job.people}", job.run, job.seed)
    estimates = [_estimates(job, symbols, s, epsilon) for s, epsilon in _PROMISES]
    return np.array([[total_variation(found, p) for found in row] for row in estimates])


def _estimates(job: _Job, symbols: Symbols, s: int, epsilon: float) -> list[Floats]:
    """What each scheme makes of one crowd."""
    made, name = _schemes(s, epsilon, job.seed), f"high-low/{job.people}/{s}/{epsilon}"

    def tally(mechanism: Mechanism, scheme: str) -> Tally:
        return answered(mechanism, symbols, f"{name}/{scheme}", job.run, job.seed)

    key = hashlib.sha256(f"sfumato/paper/{name}/{URAP}/{job.run}/{job.seed}".encode()).digest()
    bit_counts = made.urap.bit_counts(symbols, key)
    return [
        paper_estimate(made.paper, tally(made.paper, PAPER)),
        paper_estimate(made.urr, tally(made.urr, URR)),
        project(made.urap.unbiased(bit_counts, symbols.size)),
        best_estimate(made.default, tally(made.default, DEFAULT)),
        best_estimate(made.fitted, tally(made.fitted, FITTED)),
    ]


def _panel(
    by_job: Mapping[_Job, Floats],
    promise: tuple[int, float],
    people: Sequence[int],
    runs: int,
    seed: int,
) -> _Panel:
    row = _PROMISES.index(promise)
    cells = [np.array([by_job[_Job(n, run, seed)][row] for run in range(runs)]) for n in people]
    errors = {
        scheme: [Measured.of(cell[:, j]) for cell in cells] for j, scheme in enumerate(SCHEMES)
    }
    return _Panel(*promise, people, _schemes(*promise, seed).bits, errors)


def _summary(panels: Sequence[_Panel]) -> str:
    """How the schemes compare at the ends of the curves."""
    told = []
    for panel in panels:
        if panel.epsilon == 1:
            ends = ", ".join(f"{scheme} {panel.errors[scheme][-1].mean:.3f}" for scheme in SCHEMES)
            told.append(f"s = {panel.sensitive}: {ends}")
    return (
        f"Total variation with {panels[0].people[-1]:,} people at ε = 1: " + "; ".join(told) + "."
    )


def _figure(panels: Sequence[_Panel]) -> "Figure":
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(13.0, 9.8), layout="constrained")
    grid = canvas.subplots(len(SENSITIVE), len(EPSILONS), sharex=True, sharey="row")
    for row, s in zip(grid, SENSITIVE, strict=True):
        of_row = [panel for panel in panels if panel.sensitive == s]
        low = min(
            error.mean for panel in of_row for errors in panel.errors.values() for error in errors
        )
        for axes, panel in zip(row, of_row, strict=True):
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


def _draw_panel(axes: "Axes", panel: _Panel, low: float) -> None:
    dress_panel(axes, f"{panel.sensitive} of {K} sensitive, ε = {panel.epsilon:g}")
    for scheme in SCHEMES:
        draw_curve(
            axes, panel.people, panel.errors[scheme], _COLOURS[scheme], dashed=scheme not in OURS
        )
    right = panel.people[-1] * 1.1
    axes.set_xlim(panel.people[0] / 1.1, right)
    axes.set_ylim(low, 1.1)
    axes.set_xticks(panel.people if len(panel.people) < 4 else panel.people[::2])
    names = [
        (panel.errors[scheme][-1].mean, f"{scheme}: {panel.bits[scheme]:,} bits", _COLOURS[scheme])
        for scheme in SCHEMES
    ]
    name_ends(axes, right, names, apart=0.058)
