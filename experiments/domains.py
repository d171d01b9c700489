"""Not in the paper: does a promise by blocks help elsewhere, too? Four kinds of real data.

Classical local privacy and blocks at the same ε, each by the paper's scheme and by the best one here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.real_data import READERS, RealData
from sfumato.contexts import Blocks, Uniform
from sfumato.errors import MissingExtra
from sfumato.foundation.simplex import total_variation
from sfumato.pages.pictures import FAINT, INK, MAP_SCALE, PALE
from sfumato.paper.experiment import Cell, ExperimentResult, RunOptions
from sfumato.paper.schemes import Schemes
from sfumato.simulation import Spread, run_jobs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["domains"]

EPSILON = 1
_CLASSICAL = "classical LDP"
_BLOCKS = "blocks"
_PAPER = "paper's scheme"
_HERE = "best here"

Case = tuple[str, str]
"""A promise and a scheme."""

_CASES: tuple[Case, ...] = (
    (_CLASSICAL, _PAPER),
    (_CLASSICAL, _HERE),
    (_BLOCKS, _PAPER),
    (_BLOCKS, _HERE),
)
_COLOURS = dict(zip(_CASES, ("#cbc6bd", FAINT, MAP_SCALE[1], MAP_SCALE[2]), strict=True))
_COLUMNS = ("data", "symbols", "blocks are", "blocks", "people", *map(", ".join, _CASES))
_NUMBERS = {
    1: "one other kind",
    2: "two other kinds",
    3: "three other kinds",
    4: "four other kinds",
}
_BAR_WIDTH = 0.2


@dataclass(frozen=True, eq=False)
class _Errors:
    """The error of each promise and scheme on some data."""

    data: RealData
    errors: Mapping[Case, Spread]

    def gain(self, worse: Case, better: Case) -> float:
        """Return how many times smaller the error becomes."""
        return self.errors[worse].mean / self.errors[better].mean


@dataclass(frozen=True, eq=False)
class _Job:
    """One run on some data under one promise: all that a worker needs to know."""

    data: RealData
    promise: str
    run: int
    seed: int


def domains(
    options: RunOptions,
    readers: Mapping[str, Callable[[], RealData]] = READERS,
    *,
    workers: int | None = None,
) -> ExperimentResult:
    """Measure total variation on flights, first names, home towns and words.

    Data whose package is missing are left out. The numbers do not depend on ``workers``.

    >>> tiny = RealData.of(
    ...     {("A", "Ann"): 30, ("A", "Al"): 30, ("B", "Bob"): 20},
    ...     name="tiny", blocks_are="initial", why="For this example.", credit="Made up.",
    ... )
    >>> domains(RunOptions(runs=1), {"tiny": lambda: tiny}, workers=1).rows[0][:5]
    ('tiny', 3, 'initial', 2, 80)
    """
    data, missing = _read(options, readers)
    runs = options.repetitions(full=10, quick=2)
    results = _measure_all(data, runs, options, workers)
    return ExperimentResult(
        name="domains",
        title=_title(results),
        summary=_summary(results),
        columns=_COLUMNS,
        rows=tuple(map(_row, results)),
        data={
            "epsilon": EPSILON,
            "runs": runs,
            "seed": options.seed,
            "data": list(map(_to_json, results)),
            "not_run": missing,
        },
        figure=lambda: _figure(results),
        notes=tuple(_notes(results, runs, missing)),
    )


def _read(
    options: RunOptions, readers: Mapping[str, Callable[[], RealData]]
) -> tuple[list[RealData], dict[str, str]]:
    """Return the data that are there, and why the others are not."""
    data: list[RealData] = []
    missing: dict[str, str] = {}
    for name, read in readers.items():
        options.on_progress(f"reading {name}")
        try:
            data.append(read())
        except MissingExtra as problem:
            missing[name] = str(problem)
    if not data:
        raise MissingExtra("; ".join(missing.values()))
    return data, missing


def _measure_all(
    data: Sequence[RealData], runs: int, options: RunOptions, workers: int | None
) -> list[_Errors]:
    jobs = []
    for run in range(runs):
        for some in data:
            for promise in (_CLASSICAL, _BLOCKS):
                jobs.append(_Job(some, promise, run, options.seed))
    results = run_jobs(
        _measure,
        jobs,
        workers=workers,
        on_progress=lambda done: options.on_progress(f"{done} of {len(jobs)} runs"),
    )
    measured = []
    for some in data:
        figures: dict[Case, list[float]] = {case: [] for case in _CASES}
        for job, (paper, here) in zip(jobs, results, strict=True):
            if job.data is some:
                figures[job.promise, _PAPER].append(paper)
                figures[job.promise, _HERE].append(here)
        spreads = {case: Spread.of(errors) for case, errors in figures.items()}
        measured.append(_Errors(some, spreads))
    return measured


def _measure(job: _Job) -> tuple[float, float]:
    """Return the error of both schemes on one run's reports."""
    data = job.data
    if job.promise == _CLASSICAL:
        schemes = Schemes(Uniform(data.size, EPSILON))
    else:
        schemes = Schemes(Blocks(data.block_of, EPSILON))
    words = f"domains/{data.name}"
    paper, best = schemes.estimates(data.symbols(), (words, words), job.run, job.seed)
    return total_variation(paper, data.truth), total_variation(best, data.truth)


# --- words and numbers ----------------------------------------------------------------------------


def _row(result: _Errors) -> tuple[Cell, ...]:
    data = result.data
    errors = (str(result.errors[case]) for case in _CASES)
    return data.name, data.size, data.blocks_are, data.blocks, data.people, *errors


def _gains(results: Sequence[_Errors], worse: Case, better: Case) -> str:
    gains = [result.gain(worse, better) for result in results]
    low = f"{min(gains):.1f}"
    high = f"{max(gains):.1f}"
    return low if low == high else f"{low} to {high}"


def _title(results: Sequence[_Errors]) -> str:
    gains = _gains(results, (_CLASSICAL, _PAPER), (_BLOCKS, _PAPER))
    kinds = _NUMBERS.get(len(results), "other kinds")
    return f"Blocks make the error {gains} times smaller on {kinds} of data"


def _summary(results: Sequence[_Errors]) -> str:
    by_blocks = _gains(results, (_CLASSICAL, _PAPER), (_BLOCKS, _PAPER))
    by_code = _gains(results, (_BLOCKS, _PAPER), (_BLOCKS, _HERE))
    by_both = _gains(results, (_CLASSICAL, _PAPER), (_BLOCKS, _HERE))
    return (
        f"By the paper's scheme at ε = {EPSILON}, blocks make the total variation error {by_blocks} "
        "times smaller than classical local privacy. The best code and decoder here make the error "
        f"of blocks {by_code} times smaller again; both steps together, {by_both} times."
    )


def _notes(results: Sequence[_Errors], runs: int, missing: Mapping[str, str]) -> Iterator[str]:
    yield (
        "None of this is the paper's data. Error: total variation against the people's own shares, "
        f"mean of {runs} runs; everyone answers again in each. ε = {EPSILON} between the symbols of "
        "a block, which is shown, and in classical LDP between all symbols."
    )
    for result in results:
        data = result.data
        yield f"{data.name.capitalize()}, by {data.blocks_are}. {data.why} {data.credit}"
    for name, reason in missing.items():
        yield f"{name.capitalize()} left out: {reason}"


def _to_json(result: _Errors) -> dict[str, object]:
    data = result.data
    errors = []
    for promise, scheme in _CASES:
        spread = result.errors[promise, scheme].in_json()
        errors.append({"promise": promise, "scheme": scheme, **spread})
    return {
        "name": data.name,
        "symbols": data.size,
        "blocks_are": data.blocks_are,
        "blocks": data.blocks,
        "people": data.people,
        "why": data.why,
        "credit": data.credit,
        "total_variation": errors,
    }


# --- the picture ----------------------------------------------------------------------------------


def _figure(results: Sequence[_Errors]) -> "Figure":
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(2.2 + 2.3 * len(results), 5.2))
    canvas.subplots_adjust(left=0.55 / canvas.get_figwidth(), right=0.99, top=0.74, bottom=0.16)
    axes = canvas.add_subplot()
    labels = []
    for place, result in enumerate(results):
        _draw(axes, place, result)
        labels.append(f"{result.data.name}\nby {result.data.blocks_are}")
    axes.set_xticks(range(len(results)), labels, color=INK)
    axes.set_yticks([])
    axes.tick_params(length=0)
    for side, spine in axes.spines.items():
        spine.set(color=PALE, visible=side == "bottom")
    _draw_head(canvas, axes, results)
    return canvas


def _draw(axes: "Axes", place: int, result: _Errors) -> None:
    for index, case in enumerate(_CASES):
        mean = result.errors[case].mean
        at = place + (index - 1.5) * _BAR_WIDTH
        axes.bar(at, mean, _BAR_WIDTH * 0.92, color=_COLOURS[case])
        axes.text(at, mean, f"{mean:.3f}", ha="center", va="bottom", fontsize=8.5, color=INK)
    data = result.data
    axes.annotate(
        f"{data.size:,} symbols, {data.blocks} blocks\n{data.people:,} people",
        (place, 0),
        (0, -34),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=8.5,
        color=FAINT,
    )


def _draw_head(canvas: "Figure", axes: "Axes", results: Sequence[_Errors]) -> None:
    from matplotlib.patches import Patch

    left = axes.get_position().x0
    canvas.text(left, 0.955, _title(results), fontsize=12.5, color=INK, va="top")
    remark = (
        "Total variation between the estimate and the people's own shares, "
        f"ε = {EPSILON}: less is better."
    )
    canvas.text(left, 0.895, remark, fontsize=9.5, color=FAINT, va="top")
    canvas.legend(
        handles=[Patch(color=_COLOURS[case], label=", ".join(case)) for case in _CASES],
        loc="upper left",
        bbox_to_anchor=(left, 0.845),
        borderaxespad=0,
        borderpad=0,
        ncols=4,
        frameon=False,
        fontsize=9.5,
        handlelength=1.2,
        columnspacing=1.6,
    )
