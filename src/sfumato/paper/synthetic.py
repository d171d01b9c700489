"""Figure 2 of the paper: blocks against plain local privacy, on crowds that are drawn from four distributions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sfumato.codes import HadamardCode
from sfumato.contexts import Blocks, Uniform
from sfumato.designer import mechanism_for
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import BlockResponse, Mechanism, PlainResponse
from sfumato.pages.style import BAR, FAINT, INK, MAP_SCALE, PROMISE_SCALE
from sfumato.paper.crowds import crowd_sizes, geometric, shuffled_order, uniform, zipf
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["synthetic"]

K, EPSILON = 1000, 1
BLOCKS = (1, 10, 20, 50, 100)
PEOPLE = tuple(1000 * 2**i for i in range(10))
PEOPLE_QUICKLY = PEOPLE[::3]
RUNS, RUNS_QUICKLY = 10, 2
CROWDS = ("Uniform", "Geo(0.95)", "Geo(0.95), shuffled", "Zipf(1)")
_COLOURS = dict(
    zip(BLOCKS, (PROMISE_SCALE[0], PROMISE_SCALE[1], FAINT, BAR, MAP_SCALE[2]), strict=True)
)


def synthetic(
    options: RunOptions, *, people: Sequence[int] | None = None, workers: int | None = None
) -> ExperimentResult:
    """Total variation against the number of people, without blocks and with 10 to 100 equal ones; k = 1000, ε = 1.

    Every curve is measured twice on the same people: with the paper's scheme (Hadamard code, its own estimator, one
    projection on the simplex) and with the best code and the default decoder here. Errors are against the
    distribution that people were drawn from. ``people`` replaces the paper's crowds of 1,000 to 512,000; the numbers
    do not depend on how many ``workers`` there are.
    """
    crowds = (
        crowd_sizes(people) if people is not None else PEOPLE_QUICKLY if options.quick else PEOPLE
    )
    runs = options.repetitions(RUNS, RUNS_QUICKLY)
    jobs = [
        _Job(crowd, n, run, options.seed)
        for n in reversed(crowds)
        for crowd in CROWDS
        for run in range(runs)
    ]
    found = shared_out(
        _errors,
        jobs,
        workers=workers,
        on_progress=lambda done: options.on_progress(f"{done} of {len(jobs)} crowds have answered"),
    )
    by_job = dict(zip(jobs, found, strict=True))
    curves = [
        _curve(by_job, crowd, m, crowds, runs, options.seed) for crowd in CROWDS for m in BLOCKS
    ]
    return ExperimentResult(
        name="synthetic",
        title="Synthetic crowds: the finer the blocks, the smaller the error",
        summary=_summary(curves, crowds[-1]),
        columns=("distribution", "blocks", "people", "paper", "paper_se", "here", "here_se"),
        rows=tuple(row for curve in curves for row in curve.rows()),
        data={
            "symbols": K,
            "epsilon": EPSILON,
            "runs": runs,
            "seed": options.seed,
            "people": list(crowds),
            "curves": [curve.in_json() for curve in curves],
        },
        figure=lambda: _figure(curves),
        notes=(
            f"People are drawn from the distribution named, {runs} crowds for each point; every person's report is "
            "really made. Both schemes, with and without blocks, meet the same people.",
            "Blocks are intervals of equal size; one block is plain local privacy. Geo(0.95) is p(i) ∝ 0.95^i; the "
            "formula that the paper prints would put nearly everybody on three symbols.",
            "Paper: Hadamard code, the paper's own estimator, one Euclidean projection on the simplex. "
            "Here: the best code known, and the default decoder, which knows nothing of the distribution's kind.",
            "On the uniform crowd the default decoder soon finds that symbols are about equally frequent, so that "
            "blocks hardly matter to it. The other crowds are the fairer comparison.",
            "The shuffled order is drawn from the seed, once for all points.",
        ),
    )


@dataclass(frozen=True)
class _Job:
    """One crowd: its distribution, its size, the number of the run."""

    crowd: str
    people: int
    run: int
    seed: int


@dataclass(frozen=True)
class _Curve:
    """The errors of both schemes for one distribution and number of blocks."""

    crowd: str
    blocks: int
    people: Sequence[int]
    paper: Sequence[Measured]
    here: Sequence[Measured]

    def rows(self) -> list[tuple[Cell, ...]]:
        return [
            (self.crowd, self.blocks, n, *paper.in_cells(), *here.in_cells())
            for n, paper, here in zip(self.people, self.paper, self.here, strict=True)
        ]

    def in_json(self) -> dict[str, object]:
        paper, best = _schemes(self.blocks)
        points = [
            {"people": n, "paper": papers.in_json(), "here": ours.in_json()}
            for n, papers, ours in zip(self.people, self.paper, self.here, strict=True)
        ]
        return {
            "distribution": self.crowd,
            "blocks": self.blocks,
            "bits": {"paper": paper.bits, "here": best.bits},
            "total_variation": points,
        }


@cache
def _distribution(crowd: str, seed: int) -> Floats:
    falling = geometric(K, 0.95)
    return {
        "Uniform": uniform(K),
        "Geo(0.95)": falling,
        "Geo(0.95), shuffled": falling[shuffled_order(K, "synthetic", seed)],
        "Zipf(1)": zipf(K, 1.0),
    }[crowd]


@cache
def _schemes(m: int) -> tuple[BlockResponse, Mechanism]:
    """For m blocks the paper's mechanism, and the best one here."""
    if m == 1:
        plain = Uniform(K, EPSILON)
        return PlainResponse(plain, HadamardCode), mechanism_for(plain)
    context = Blocks(np.arange(K) // (K // m), EPSILON)
    return BlockResponse(context, HadamardCode), mechanism_for(context)


def _errors(job: _Job) -> Floats:
    """The errors of one crowd: a row for each number of blocks, the paper's and ours."""
    p, name = _distribution(job.crowd, job.seed), f"synthetic/{job.crowd}/{job.people}"
    symbols = drawn_people(p, job.people, name, job.run, job.seed)
    errors = np.empty((len(BLOCKS), 2))
    for row, m in zip(errors, BLOCKS, strict=True):
        paper, best = _schemes(m)
        papers = paper_estimate(
            paper, answered(paper, symbols, f"{name}/{m}/paper", job.run, job.seed)
        )
        ours = best_estimate(best, answered(best, symbols, f"{name}/{m}/here", job.run, job.seed))
        row[:] = total_variation(papers, p), total_variation(ours, p)
    return errors


def _curve(
    by_job: Mapping[_Job, Floats], crowd: str, m: int, people: Sequence[int], runs: int, seed: int
) -> _Curve:
    cells = [
        np.array([by_job[_Job(crowd, n, run, seed)][BLOCKS.index(m)] for run in range(runs)])
        for n in people
    ]
    paper, here = ([Measured.of(errors[:, j]) for errors in cells] for j in (0, 1))
    return _Curve(crowd, m, people, paper, here)


def _summary(curves: Sequence[_Curve], people: int) -> str:
    """The ends of the curves in words, and how often ours is the lower one."""
    ends = {
        (curve.crowd, curve.blocks): (curve.paper[-1].mean, curve.here[-1].mean) for curve in curves
    }
    told = []
    for crowd in CROWDS:
        (plain, plain_here), (fine, fine_here) = ends[crowd, BLOCKS[0]], ends[crowd, BLOCKS[-1]]
        told.append(f"{crowd} {plain:.3f} → {fine:.3f} (here {plain_here:.3f} → {fine_here:.3f})")
    pairs = [pair for curve in curves for pair in zip(curve.paper, curve.here, strict=True)]
    lower = sum(here.mean < paper.mean for paper, here in pairs)
    return (
        f"Total variation with {people:,} people, from no blocks to {BLOCKS[-1]}: {'; '.join(told)}. "
        f"The best code and default decoder here err less at {lower} of {len(pairs)} points."
    )


def _figure(curves: Sequence[_Curve]) -> "Figure":
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(11.0, 8.4), layout="constrained")
    for axes, crowd in zip(canvas.subplots(2, 2).ravel(), CROWDS, strict=True):
        _draw_panel(axes, crowd, [curve for curve in curves if curve.crowd == crowd])
    canvas.suptitle(
        "The finer the blocks, the smaller the error (k = 1000, ε = 1)\n"
        "dashed: the paper's scheme    solid: the best code and the default decoder here",
        x=0.01,
        ha="left",
        fontsize=12,
        color=INK,
    )
    return canvas


def _draw_panel(axes: "Axes", crowd: str, curves: Sequence[_Curve]) -> None:
    dress_panel(axes, crowd)
    for curve in curves:
        draw_curve(axes, curve.people, curve.paper, _COLOURS[curve.blocks], dashed=True)
        draw_curve(axes, curve.people, curve.here, _COLOURS[curve.blocks], dashed=False)
    people = curves[0].people
    right = people[-1] * 1.1
    low = min(error.mean for curve in curves for error in (*curve.paper, *curve.here))
    axes.set_xlim(people[0] / 1.1, right)
    axes.set_ylim(max(low / 1.4, 1e-4), 1.1)
    axes.set_xticks(people if len(people) < 6 else people[::3])
    axes.set_xlabel("people", color=INK, fontsize=9)
    axes.set_ylabel("total variation error", color=INK, fontsize=9)
    name_ends(axes, right, [name for curve in curves for name in _names(curve)], apart=0.036)


def _names(curve: _Curve) -> list[tuple[float, str, str]]:
    blocks, colour = (
        "no blocks" if curve.blocks == 1 else f"{curve.blocks} blocks",
        _COLOURS[curve.blocks],
    )
    return [
        (curve.paper[-1].mean, f"{blocks}, paper", colour),
        (curve.here[-1].mean, f"{blocks}, here", colour),
    ]
