"""Reproduce Figure 2 of Acharya et al. (2020), "the paper": blocks versus plain local privacy.

People are drawn from four synthetic distributions.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sfumato.contexts import Blocks, Uniform
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import total_variation
from sfumato.paper.experiment import (
    Cell,
    ExperimentResult,
    RunOptions,
    sort_sizes,
    spread_cells,
)
from sfumato.paper.pictures import BAR, FAINT, INK, MAP_SCALE, PROMISE_SCALE, style_axes
from sfumato.paper.schemes import Schemes
from sfumato.simulation import Spread, draw_order, draw_people, run_jobs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_curve",
    "geometric",
    "label_curves",
    "space_out",
    "style_panel",
    "synthetic",
    "zipf",
]

K = 1000  # the number of symbols
EPSILON = 1
BLOCK_COUNTS = (1, 10, 20, 50, 100)
POPULATION_SIZES = tuple(1000 * 2**i for i in range(10))
DISTRIBUTIONS = ("Uniform", "Geo(0.95)", "Geo(0.95), shuffled", "Zipf(1)")
_COLOUR_BY_BLOCK_COUNT = {
    1: PROMISE_SCALE[0],
    10: PROMISE_SCALE[1],
    20: FAINT,
    50: BAR,
    100: MAP_SCALE[2],
}
_COLUMNS = ("distribution", "blocks", "people", "paper", "paper_se", "here", "here_se")

_MIN_ERROR = 1e-4  # the bottom of the error axis; smaller errors are drawn there
_SOLID_STYLE: dict[str, Any] = {
    "linestyle": "-",
    "linewidth": 1.9,
    "marker": ".",
    "markersize": 4.0,
    "zorder": 3,
}
_DASHED_STYLE: dict[str, Any] = {
    "linestyle": (0, (3, 1.6)),
    "linewidth": 1.3,
    "marker": "o",
    "markersize": 3.2,
    "mfc": "white",
    "zorder": 2,
}


def synthetic(
    options: RunOptions, *, sizes: Sequence[int] | None = None, workers: int | None = None
) -> ExperimentResult:
    """Measure the error for each population size, without blocks and with 10 to 100 blocks.

    There are k = 1000 symbols, and ε = 1. Every curve is measured twice on the same people: with
    the paper's scheme (Hadamard code, the paper's estimator, one projection onto the simplex) and
    with Sfumato's best code and default decoder. The error is the total variation distance from the
    distribution that people were drawn from.

    ``sizes`` replaces the paper's population sizes of 1,000 to 512,000. The results do not depend
    on ``workers``.
    """
    if sizes is not None:
        sizes = sort_sizes(sizes)
    else:
        sizes = POPULATION_SIZES[::3] if options.quick else POPULATION_SIZES
    runs = options.run_count(full=10, quick=2)
    jobs = []
    for size in reversed(sizes):
        for distribution in DISTRIBUTIONS:
            for run in range(runs):
                jobs.append(_Job(distribution, size, run, options.seed))

    def show_progress(finished_count: int) -> None:
        options.on_progress(f"{finished_count} of {len(jobs)} runs")

    results = run_jobs(_measure_population, jobs, workers=workers, on_progress=show_progress)
    errors_by_population = defaultdict(list)
    for job, errors in zip(jobs, results, strict=True):
        errors_by_population[job.distribution, job.size].append(errors)
    panels = []
    rows = []
    curves = []
    for distribution in DISTRIBUTIONS:
        panel = [_build_curve(errors_by_population, distribution, m, sizes) for m in BLOCK_COUNTS]
        panels.append(panel)
        for curve in panel:
            rows += curve.to_rows()
            curves.append(curve.to_dict())
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
        title="Synthetic populations: the finer the blocks, the smaller the error",
        summary=_summarize(panels, sizes[-1]),
        columns=_COLUMNS,
        rows=tuple(rows),
        data=data,
        draw_figure=lambda: _draw_figure(panels),
        notes=(
            f"People are drawn from the named distribution, {runs} times for each point, and every "
            "report is actually generated. Both schemes, with and without blocks, are measured on "
            "the same people.",
            "Blocks are intervals of equal size; one block is plain local privacy. Geo(0.95) is "
            "p(i) ∝ 0.95^i; the formula printed in the paper would put nearly everyone on three "
            "symbols.",
            "Paper: Hadamard code, the paper's estimator, one Euclidean projection onto the "
            "simplex. Here: Sfumato's best code and its default decoder, which is not told "
            "the kind of distribution.",
            "For the uniform distribution, the default decoder quickly learns that all symbols "
            "are about equally frequent, so blocks make little difference. The other distributions "
            "give a fairer comparison.",
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
    """One population: its distribution, its size and the run number."""

    distribution: str
    size: int
    run: int
    seed: int


class _Point(NamedTuple):
    """The errors of both schemes for one population size."""

    people: int
    paper_error: Spread
    best_error: Spread


@dataclass(frozen=True)
class _Curve:
    """The errors of both schemes for one distribution and number of blocks."""

    distribution: str
    block_count: int
    points: list[_Point]

    def to_rows(self) -> list[tuple[Cell, ...]]:
        rows: list[tuple[Cell, ...]] = []
        for people, paper_error, best_error in self.points:
            cells = (*spread_cells(paper_error), *spread_cells(best_error))
            rows.append((self.distribution, self.block_count, people, *cells))
        return rows

    def to_dict(self) -> dict[str, object]:
        schemes = _schemes(self.block_count)
        points = []
        for people, paper_error, best_error in self.points:
            point = {
                "people": people,
                "paper": paper_error.to_dict(),
                "here": best_error.to_dict(),
            }
            points.append(point)
        return {
            "distribution": self.distribution,
            "blocks": self.block_count,
            "bits": {
                "paper": schemes.paper_mechanism.bits,
                "here": schemes.best_mechanism.bits,
            },
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


def _measure_population(job: _Job) -> Floats:
    """Return the errors for one population: one row per block count, one column per scheme."""
    p = _probabilities(job.distribution, job.seed)
    name = f"synthetic/{job.distribution}/{job.size}"
    symbols = draw_people(p, job.size, name, job.run, job.seed)
    errors = np.empty((len(BLOCK_COUNTS), 2))
    for row, m in zip(errors, BLOCK_COUNTS, strict=True):
        stream_names = (f"{name}/{m}/paper", f"{name}/{m}/here")
        estimates = _schemes(m).estimate(symbols, stream_names, job.run, job.seed)
        row[:] = [total_variation(estimate, p) for estimate in estimates]
    return errors


def _build_curve(
    errors_by_population: Mapping[tuple[str, int], list[Floats]],
    distribution: str,
    m: int,
    sizes: Sequence[int],
) -> _Curve:
    """Return the curve for m blocks. Errors are keyed by the population's distribution and size."""
    points = []
    for n in sizes:
        errors = np.array(errors_by_population[distribution, n])
        paper_errors, best_errors = errors[:, BLOCK_COUNTS.index(m)].T
        paper_error = Spread.from_figures(paper_errors)
        best_error = Spread.from_figures(best_errors)
        points.append(_Point(n, paper_error, best_error))
    return _Curve(distribution, m, points)


def _summarize(panels: Sequence[Sequence[_Curve]], people: int) -> str:
    """State the errors for the largest population, and how often Sfumato's error is lower."""
    texts = []
    point_count = 0
    lower_count = 0
    for panel in panels:
        without_blocks = panel[0].points[-1]
        with_blocks = panel[-1].points[-1]
        paper_text = f"{without_blocks.paper_error.mean:.3f} → {with_blocks.paper_error.mean:.3f}"
        best_text = f"{without_blocks.best_error.mean:.3f} → {with_blocks.best_error.mean:.3f}"
        texts.append(f"{panel[0].distribution} {paper_text} (here {best_text})")
        for curve in panel:
            for point in curve.points:
                point_count += 1
                lower_count += point.best_error.mean < point.paper_error.mean
    return (
        f"Total variation error with {people:,} people, from no blocks to {BLOCK_COUNTS[-1]} "
        "blocks: "
        f"{'; '.join(texts)}. "
        f"Sfumato's best code and default decoder have the smaller error at {lower_count} of "
        f"{point_count} points."
    )


def _draw_figure(panels: Sequence[Sequence[_Curve]]) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 8.4), layout="constrained")
    for axes, panel in zip(figure.subplots(2, 2).ravel(), panels, strict=True):
        _draw_panel(axes, panel)
    title = (
        "The finer the blocks, the smaller the error (k = 1000, ε = 1)\n"
        "dashed: the paper's scheme    solid: Sfumato's best code and default decoder"
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    return figure


def _draw_panel(axes: "Axes", curves: Sequence[_Curve]) -> None:
    style_panel(axes, curves[0].distribution)
    labels = []
    smallest_error = 1.0
    for curve in curves:
        colour = _COLOUR_BY_BLOCK_COUNT[curve.block_count]
        blocks_text = "no blocks" if curve.block_count == 1 else f"{curve.block_count} blocks"
        people, *errors_by_scheme = zip(*curve.points, strict=True)
        for errors, scheme in zip(errors_by_scheme, ("paper", "here"), strict=True):
            draw_curve(axes, people, errors, colour, dashed=scheme == "paper")
            labels.append((errors[-1].mean, f"{blocks_text}, {scheme}", colour))
            smallest_error = min(smallest_error, *(error.mean for error in errors))
    right_end = people[-1] * 1.1
    axes.set_xlim(people[0] / 1.1, right_end)
    axes.set_ylim(max(smallest_error / 1.4, _MIN_ERROR), 1.1)
    axes.set_xticks(people if len(people) < 6 else people[::3])
    axes.set_xlabel("people", color=INK, fontsize=9)
    axes.set_ylabel("total variation error", color=INK, fontsize=9)
    label_curves(axes, right_end, labels, min_distance=0.036)


# --- curves in a panel, with labels at their ends instead of a legend -----------------------------


def draw_curve(
    axes: "Axes", people: Sequence[int], errors: Sequence[Spread], colour: str, dashed: bool
) -> None:
    """Draw a curve, with error bars of one standard error if there are several runs."""
    means = []
    error_bars = []
    for error in errors:
        means.append(max(error.mean, _MIN_ERROR))
        error_bars.append(error.standard_error or 0.0)
    style = _DASHED_STYLE if dashed else _SOLID_STYLE
    axes.errorbar(people, means, error_bars, color=colour, elinewidth=0.8, **style)


def label_curves(
    axes: "Axes", x: float, labels: Sequence[tuple[float, str, str]], *, min_distance: float
) -> None:
    """Write curve labels to the right of x, moving them up or down to avoid overlaps.

    Each label is ``(height, text, colour)``. ``min_distance``: the minimum distance between two
    labels, as a fraction of the panel's height. Set the axis limits first.
    """
    bottom, top = np.log(axes.get_ylim())
    span = top - bottom
    sorted_labels = sorted(labels)
    heights = []
    for height, _, _ in sorted_labels:
        log_height = float(np.log(max(height, _MIN_ERROR)))
        heights.append((log_height - bottom) / span)
    positions = space_out(heights, min_distance)
    for position, (_, text, colour) in zip(positions, sorted_labels, strict=True):
        y = float(np.exp(bottom + position * span))
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


def space_out(positions: Sequence[float], min_distance: float) -> list[float]:
    """Move increasing positions as little as possible, to be at least ``min_distance`` apart.

    This is isotonic regression: positions that are too close are spread around their common mean.

    >>> [round(position, 3) for position in space_out([0.0, 0.5, 0.52], 0.1)]
    [0.0, 0.46, 0.56]
    """
    # A pool is a mean and a number of members. Each position is first reduced by the space that the
    # positions below it need, so that all members of a pool have the same value.
    pools: list[tuple[float, int]] = []
    for index, position in enumerate(positions):
        mean = position - index * min_distance
        member_count = 1
        while pools and pools[-1][0] > mean:
            lower_mean, lower_count = pools.pop()
            total = lower_mean * lower_count + mean * member_count
            member_count += lower_count
            mean = total / member_count
        pools.append((mean, member_count))
    spaced: list[float] = []
    for mean, member_count in pools:
        for _ in range(member_count):
            spaced.append(mean + len(spaced) * min_distance)
    return spaced


def style_panel(axes: "Axes", title: str) -> None:
    """Set the title and logarithmic axes, and draw a pale grid."""
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
