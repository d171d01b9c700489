"""Figure 2 of the paper: blocks against plain local privacy, on four synthetic populations."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sfumato.contexts import Blocks, Uniform
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import total_variation
from sfumato.pages.pictures import BAR, FAINT, INK, MAP_SCALE, PROMISE_SCALE, style_axes
from sfumato.paper.experiment import (
    Cell,
    ExperimentResult,
    RunOptions,
    population_sizes,
    spread_cells,
)
from sfumato.paper.schemes import Schemes
from sfumato.simulation import Spread, draw_order, draw_people, run_jobs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_curve",
    "geometric",
    "name_curves",
    "space_out",
    "style_panel",
    "synthetic",
    "zipf",
]

K = 1000
EPSILON = 1
BLOCKS = (1, 10, 20, 50, 100)
PEOPLE = tuple(1000 * 2**i for i in range(10))
DISTRIBUTIONS = ("Uniform", "Geo(0.95)", "Geo(0.95), shuffled", "Zipf(1)")
_COLOURS = {1: PROMISE_SCALE[0], 10: PROMISE_SCALE[1], 20: FAINT, 50: BAR, 100: MAP_SCALE[2]}
_COLUMNS = ("distribution", "blocks", "people", "paper", "paper_se", "here", "here_se")

_MIN_ERROR = 1e-4  # smaller errors are drawn here
_SOLID: dict[str, Any] = {
    "linestyle": "-",
    "linewidth": 1.9,
    "marker": ".",
    "markersize": 4.0,
    "zorder": 3,
}
_DASHED: dict[str, Any] = {
    "linestyle": (0, (3, 1.6)),
    "linewidth": 1.3,
    "marker": "o",
    "markersize": 3.2,
    "mfc": "white",
    "zorder": 2,
}


def synthetic(
    options: RunOptions, *, people: Sequence[int] | None = None, workers: int | None = None
) -> ExperimentResult:
    """Measure total variation against the number of people, without blocks and with 10 to 100.

    k = 1000, ε = 1. Every curve is measured twice on the same people: with the paper's scheme
    (Hadamard code, its own estimator, one projection onto the simplex) and with the best code and
    the default decoder here. The truth is the distribution that people were drawn from.

    ``people`` replaces the paper's sizes of 1,000 to 512,000. The numbers do not depend on
    ``workers``.
    """
    if people is not None:
        sizes = population_sizes(people)
    else:
        sizes = PEOPLE[::3] if options.quick else PEOPLE
    runs = options.repetitions(full=10, quick=2)
    jobs = []
    for size in reversed(sizes):
        for distribution in DISTRIBUTIONS:
            for run in range(runs):
                jobs.append(_Job(distribution, size, run, options.seed))

    def show_progress(done: int) -> None:
        options.on_progress(f"{done} of {len(jobs)} runs")

    results = run_jobs(_measure, jobs, workers=workers, on_progress=show_progress)
    errors = defaultdict(list)
    for job, result in zip(jobs, results, strict=True):
        errors[job.distribution, job.people].append(result)
    panels = []
    rows = []
    curves = []
    for distribution in DISTRIBUTIONS:
        panel = [_curve(errors, distribution, m, sizes) for m in BLOCKS]
        panels.append(panel)
        for curve in panel:
            rows += curve.rows()
            curves.append(curve.in_json())
    data = {
        "symbols": K,
        "epsilon": EPSILON,
        "runs": runs,
        "seed": options.seed,
        "people": list(sizes),
        "curves": curves,
    }
    return ExperimentResult(
        name="synthetic",
        title="Synthetic crowds: the finer the blocks, the smaller the error",
        summary=_summary(panels, sizes[-1]),
        columns=_COLUMNS,
        rows=tuple(rows),
        data=data,
        figure=lambda: _figure(panels),
        notes=(
            f"People are drawn from the named distribution, {runs} times for each point, and every "
            "report is really made. Both schemes, with and without blocks, meet the same people.",
            "Blocks are intervals of equal size; one block is plain local privacy. Geo(0.95) is "
            "p(i) ∝ 0.95^i; the formula that the paper prints would put nearly everyone on three "
            "symbols.",
            "Paper: Hadamard code, the paper's own estimator, one Euclidean projection on the "
            "simplex. Here: the best code known, and the default decoder, which does not know what "
            "kind of distribution it is.",
            "For the uniform distribution the default decoder soon finds that symbols are about "
            "equally frequent, so blocks hardly matter to it. The other distributions are the "
            "fairer comparison.",
            "The shuffled order is drawn from the seed, once for all points.",
        ),
    )


def geometric(k: int, ratio: float) -> Floats:
    """Return ``p_x ∝ ratio^x``.

    >>> geometric(3, 0.5).round(3)
    array([0.571, 0.286, 0.143])
    """
    p = ratio ** np.arange(k)
    return p / p.sum()


def zipf(k: int, exponent: float) -> Floats:
    """Return ``p_x ∝ (x + 1)^{−exponent}``.

    >>> zipf(3, 1.0).round(3)
    array([0.545, 0.273, 0.182])
    """
    p = (np.arange(k) + 1.0) ** -exponent
    return p / p.sum()


@dataclass(frozen=True)
class _Job:
    """One population: its distribution and size, and the number of the run."""

    distribution: str
    people: int
    run: int
    seed: int


class _Point(NamedTuple):
    """The errors of both schemes for one number of people."""

    people: int
    paper: Spread
    here: Spread


@dataclass(frozen=True)
class _Curve:
    """The errors of both schemes for one distribution and number of blocks."""

    distribution: str
    blocks: int
    points: list[_Point]

    def rows(self) -> list[tuple[Cell, ...]]:
        rows: list[tuple[Cell, ...]] = []
        for people, paper, here in self.points:
            cells = (*spread_cells(paper), *spread_cells(here))
            rows.append((self.distribution, self.blocks, people, *cells))
        return rows

    def in_json(self) -> dict[str, object]:
        schemes = _schemes(self.blocks)
        points = []
        for people, paper, here in self.points:
            point = {"people": people, "paper": paper.in_json(), "here": here.in_json()}
            points.append(point)
        return {
            "distribution": self.distribution,
            "blocks": self.blocks,
            "bits": {"paper": schemes.paper.bits, "here": schemes.best.bits},
            "total_variation": points,
        }


@cache
def _probabilities(distribution: str, seed: int) -> Floats:
    if distribution == "Uniform":
        return np.full(K, 1 / K)
    if distribution == "Zipf(1)":
        return zipf(K, 1.0)
    p = geometric(K, 0.95)
    if distribution == "Geo(0.95)":
        return p
    return p[draw_order(K, "synthetic", seed)]


@cache
def _schemes(m: int) -> Schemes:
    """Return both schemes for m blocks of equal size."""
    if m == 1:
        return Schemes(Uniform(K, EPSILON))
    return Schemes(Blocks(np.arange(K) // (K // m), EPSILON))


def _measure(job: _Job) -> Floats:
    """Return the errors for one population: a row per number of blocks, a column per scheme."""
    p = _probabilities(job.distribution, job.seed)
    name = f"synthetic/{job.distribution}/{job.people}"
    symbols = draw_people(p, job.people, name, job.run, job.seed)
    errors = np.empty((len(BLOCKS), 2))
    for row, m in zip(errors, BLOCKS, strict=True):
        names = (f"{name}/{m}/paper", f"{name}/{m}/here")
        paper, here = _schemes(m).estimates(symbols, names, job.run, job.seed)
        row[:] = (total_variation(paper, p), total_variation(here, p))
    return errors


def _curve(
    errors: Mapping[tuple[str, int], list[Floats]],
    distribution: str,
    m: int,
    people: Sequence[int],
) -> _Curve:
    """Return a curve; ``errors`` are those of each run, by distribution and number of people."""
    points = []
    for n in people:
        papers, ours = np.array(errors[distribution, n])[:, BLOCKS.index(m)].T
        points.append(_Point(n, Spread.from_figures(papers), Spread.from_figures(ours)))
    return _Curve(distribution, m, points)


def _summary(panels: Sequence[Sequence[_Curve]], people: int) -> str:
    """State the errors at the ends of the curves, and how often ours is the lower one."""
    texts = []
    points = 0
    lower = 0
    for panel in panels:
        plain = panel[0].points[-1]
        finest = panel[-1].points[-1]
        texts.append(
            f"{panel[0].distribution} {plain.paper.mean:.3f} → {finest.paper.mean:.3f} "
            f"(here {plain.here.mean:.3f} → {finest.here.mean:.3f})"
        )
        for curve in panel:
            points += len(curve.points)
            lower += sum(point.here.mean < point.paper.mean for point in curve.points)
    return (
        f"Total variation with {people:,} people, from no blocks to {BLOCKS[-1]}: "
        f"{'; '.join(texts)}. "
        f"The best code and default decoder here err less at {lower} of {points} points."
    )


def _figure(panels: Sequence[Sequence[_Curve]]) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 8.4), layout="constrained")
    for axes, panel in zip(figure.subplots(2, 2).ravel(), panels, strict=True):
        _draw_panel(axes, panel)
    title = (
        "The finer the blocks, the smaller the error (k = 1000, ε = 1)\n"
        "dashed: the paper's scheme    solid: the best code and the default decoder here"
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    return figure


def _draw_panel(axes: "Axes", curves: Sequence[_Curve]) -> None:
    style_panel(axes, curves[0].distribution)
    names = []
    low = 1.0
    for curve in curves:
        colour = _COLOURS[curve.blocks]
        blocks = "no blocks" if curve.blocks == 1 else f"{curve.blocks} blocks"
        people, *schemes = zip(*curve.points, strict=True)
        for errors, scheme in zip(schemes, ("paper", "here"), strict=True):
            draw_curve(axes, people, errors, colour, dashed=scheme == "paper")
            names.append((errors[-1].mean, f"{blocks}, {scheme}", colour))
            low = min(low, *(error.mean for error in errors))
    right = people[-1] * 1.1
    axes.set_xlim(people[0] / 1.1, right)
    axes.set_ylim(max(low / 1.4, 1e-4), 1.1)
    axes.set_xticks(people if len(people) < 6 else people[::3])
    axes.set_xlabel("people", color=INK, fontsize=9)
    axes.set_ylabel("total variation error", color=INK, fontsize=9)
    name_curves(axes, right, names, distance=0.036)


# --- curves in a panel, with names at their ends instead of a legend ------------------------------


def draw_curve(
    axes: "Axes", people: Sequence[int], errors: Sequence[Spread], colour: str, dashed: bool
) -> None:
    """Draw one curve, with bars of one standard error if there are several runs."""
    means = []
    bars = []
    for error in errors:
        means.append(max(error.mean, _MIN_ERROR))
        bars.append(error.standard_error or 0.0)
    style = _DASHED if dashed else _SOLID
    axes.errorbar(people, means, bars, color=colour, elinewidth=0.8, **style)


def name_curves(
    axes: "Axes", x: float, names: Sequence[tuple[float, str, str]], *, distance: float
) -> None:
    """Write names to the right of x, and move them up or down where they would overlap.

    Each name is ``(height, text, colour)``. ``distance`` is the smallest between two names, as a
    share of the panel's height. Set the limits of the axes first.
    """
    low, high = np.log(axes.get_ylim())
    span = high - low
    from_bottom = sorted(names)
    heights = []
    for height, _, _ in from_bottom:
        log_height = float(np.log(max(height, _MIN_ERROR)))
        heights.append((log_height - low) / span)
    places = space_out(heights, distance)
    for place, (_, text, colour) in zip(places, from_bottom, strict=True):
        y = float(np.exp(low + place * span))
        axes.annotate(
            text,
            (x, y),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=8,
            annotation_clip=False,
        )


def space_out(places: Sequence[float], distance: float) -> list[float]:
    """Move places, given in increasing order, as little as possible to be ``distance`` apart.

    Neighbours that are too close spread around their common mean: isotonic regression by pooling.

    >>> [round(place, 3) for place in space_out([0.0, 0.5, 0.52], 0.1)]
    [0.0, 0.46, 0.56]
    """
    # A pool is the mean of its members' places, minus the room for those below, and their number.
    pools: list[tuple[float, int]] = []
    for number, place in enumerate(places):
        mean = place - number * distance
        members = 1
        while pools and pools[-1][0] > mean:
            other_mean, others = pools.pop()
            mean = (other_mean * others + mean * members) / (others + members)
            members += others
        pools.append((mean, members))
    spaced: list[float] = []
    for mean, members in pools:
        for _ in range(members):
            spaced.append(mean + len(spaced) * distance)
    return spaced


def style_panel(axes: "Axes", title: str) -> None:
    """Set logarithmic axes and a pale grid."""
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.tick_params(which="both", labelsize=8, length=0)
    style_axes(axes)
