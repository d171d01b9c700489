"""Not in the paper: does a promise by blocks help elsewhere, too? Four kinds of real data that packages bring.

Classical local privacy and blocks at the same ε, each by the paper's scheme and by the best one here.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.real_data import READERS, RealData
from sfumato.contexts import Blocks, Uniform
from sfumato.designer import mechanism_for
from sfumato.errors import MissingExtra
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import BlockResponse, PlainResponse
from sfumato.pages.style import FAINT, INK, MAP_SCALE, PALE
from sfumato.paper.experiment import Cell, ExperimentResult, Measured, RunOptions
from sfumato.paper.schemes import answered, best_estimate, paper_estimate
from sfumato.paper.workers import shared_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["domains"]

EPSILON = 1
_CLASSICAL, _BLOCKS = "classical LDP", "blocks"
_PAPER, _HERE = "paper's scheme", "best here"
_COMPARED = tuple(
    (promise, scheme) for promise in (_CLASSICAL, _BLOCKS) for scheme in (_PAPER, _HERE)
)
_COLOURS = dict(zip(_COMPARED, ("#cbc6bd", FAINT, MAP_SCALE[1], MAP_SCALE[2]), strict=True))
_COLUMNS = (
    "data",
    "symbols",
    "blocks are",
    "blocks",
    "people",
    *(", ".join(each) for each in _COMPARED),
)

_Errors = Mapping[tuple[str, str], Measured]


@dataclass(frozen=True, eq=False)
class _Compared:
    """The error of each promise and scheme on some data."""

    data: RealData
    errors: _Errors

    def gain(self, worse: tuple[str, str], better: tuple[str, str]) -> float:
        """How many times smaller the error becomes."""
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
    """Total variation on flights, first names, home towns and words; data whose package is missing are left out.

    The numbers do not depend on how many ``workers`` there are.

    >>> tiny = RealData.of(
    ...     {("A", "Ann"): 30, ("A", "Al"): 30, ("B", "Bob"): 20},
    ...     name="tiny", blocks_are="initial", why="For this example.", credit="Made up.",
    ... )
    >>> domains(RunOptions(runs=1), {"tiny": lambda: tiny}, workers=1).rows[0][:5]
    ('tiny', 3, 'initial', 2, 80)
    """
    found, absent = _read(options, readers)
    runs = options.repetitions(full=10, quick=2)
    compared = _compare(found, runs, options, workers)
    return ExperimentResult(
        name="domains",
        title=_title(compared),
        summary=_summary(compared),
        columns=_COLUMNS,
        rows=tuple(map(_row, compared)),
        data={
            "epsilon": EPSILON,
            "runs": runs,
            "seed": options.seed,
            "data": [_in_json(each) for each in compared],
            "not_run": absent,
        },
        figure=lambda: _figure(compared),
        notes=tuple(_notes(compared, runs, absent)),
    )


def _read(
    options: RunOptions, readers: Mapping[str, Callable[[], RealData]]
) -> tuple[list[RealData], dict[str, str]]:
    """The data that are there, and why the others are not."""
    found: list[RealData] = []
    absent: dict[str, str] = {}
    for name, reader in readers.items():
        options.on_progress(f"reading {name}")
        try:
            found.append(reader())
        except MissingExtra as problem:
            absent[name] = str(problem)
    if not found:
        raise MissingExtra("; ".join(absent.values()))
    return found, absent


def _compare(
    found: list[RealData], runs: int, options: RunOptions, workers: int | None
) -> list[_Compared]:
    jobs = [
        _Job(data, promise, run, options.seed)
        for run in range(runs)
        for data in found
        for promise in (_CLASSICAL, _BLOCKS)
    ]
    results = shared_out(
        _measured,
        jobs,
        workers=workers,
        on_progress=lambda done: options.on_progress(f"{done} of {len(jobs)} runs"),
    )
    compared = []
    for data in found:
        of_these = [
            (job.promise, result)
            for job, result in zip(jobs, results, strict=True)
            if job.data is data
        ]
        errors = {
            (promise, scheme): Measured.of(
                [result[scheme] for kept, result in of_these if kept == promise]
            )
            for promise, scheme in _COMPARED
        }
        compared.append(_Compared(data, errors))
    return compared


def _measured(job: _Job) -> dict[str, float]:
    """The error of both schemes on one run's reports. A worker calls this."""
    data, symbols, words = job.data, job.data.symbols(), f"domains/{job.data.name}"
    papers = _papers_mechanism(data, job.promise)
    best = mechanism_for(papers.context)
    estimates = {
        _PAPER: paper_estimate(papers, answered(papers, symbols, words, job.run, job.seed)),
        _HERE: best_estimate(best, answered(best, symbols, words, job.run, job.seed)),
    }
    return {scheme: total_variation(estimate, data.truth) for scheme, estimate in estimates.items()}


def _papers_mechanism(data: RealData, promise: str) -> BlockResponse:
    """Hadamard's code, over all symbols or inside each block."""
    if promise == _CLASSICAL:
        return PlainResponse(Uniform(data.size, EPSILON))
    return BlockResponse(Blocks(data.block_of, EPSILON))


# --- words and numbers ------------------------------------------------------------------------------------------------


def _row(compared: _Compared) -> tuple[Cell, ...]:
    data = compared.data
    errors = (str(compared.errors[each]) for each in _COMPARED)
    return data.name, data.size, data.blocks_are, data.blocks, data.people, *errors


def _span(compared: list[_Compared], worse: tuple[str, str], better: tuple[str, str]) -> str:
    gains = [each.gain(worse, better) for each in compared]
    low, high = f"{min(gains):.1f}", f"{max(gains):.1f}"
    return low if low == high else f"{low} to {high}"


def _title(compared: list[_Compared]) -> str:
    kinds = {
        1: "one other kind",
        2: "two other kinds",
        3: "three other kinds",
        4: "four other kinds",
    }
    span = _span(compared, (_CLASSICAL, _PAPER), (_BLOCKS, _PAPER))
    return f"Blocks make the error {span} times smaller on {kinds.get(len(compared), 'other kinds')} of data"


def _summary(compared: list[_Compared]) -> str:
    by_blocks = _span(compared, (_CLASSICAL, _PAPER), (_BLOCKS, _PAPER))
    by_code = _span(compared, (_BLOCKS, _PAPER), (_BLOCKS, _HERE))
    by_both = _span(compared, (_CLASSICAL, _PAPER), (_BLOCKS, _HERE))
    return (
        f"By the paper's scheme at ε = {EPSILON}, blocks make the total variation error {by_blocks} times smaller than "
        f"classical local privacy. The best code and decoder here make the error of blocks {by_code} times smaller "
        f"again; both steps together, {by_both} times."
    )


def _notes(compared: list[_Compared], runs: int, absent: Mapping[str, str]) -> Iterator[str]:
    yield (
        f"None of this is the paper's data. Error: total variation against the people's own shares, mean of {runs} "
        f"runs; everybody answers anew in each. ε = {EPSILON} between the symbols of a block, which is shown, and in "
        "classical LDP between all symbols."
    )
    for each in compared:
        yield f"{each.data.name.capitalize()}, by {each.data.blocks_are}. {each.data.why} {each.data.credit}"
    for name, reason in absent.items():
        yield f"{name.capitalize()} left out: {reason}"


def _in_json(compared: _Compared) -> dict[str, object]:
    data = compared.data
    return {
        "name": data.name,
        "symbols": data.size,
        "blocks_are": data.blocks_are,
        "blocks": data.blocks,
        "people": data.people,
        "why": data.why,
        "credit": data.credit,
        "total_variation": [
            {"promise": promise, "scheme": scheme, **compared.errors[promise, scheme].in_json()}
            for promise, scheme in _COMPARED
        ],
    }


# --- the picture ------------------------------------------------------------------------------------------------------


def _figure(compared: list[_Compared]) -> "Figure":
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(2.2 + 2.3 * len(compared), 5.2))
    canvas.subplots_adjust(left=0.55 / canvas.get_figwidth(), right=0.99, top=0.74, bottom=0.16)
    axes = canvas.add_subplot()
    for place, each in enumerate(compared):
        _draw(axes, place, each)
    axes.set_xticks(
        range(len(compared)),
        [f"{each.data.name}\nby {each.data.blocks_are}" for each in compared],
        color=INK,
    )
    axes.set_yticks([])
    axes.tick_params(length=0)
    for side, spine in axes.spines.items():
        spine.set(color=PALE, visible=side == "bottom")
    _head(canvas, axes, compared)
    return canvas


def _draw(axes: "Axes", place: int, compared: _Compared) -> None:
    width = 0.2
    for index, each in enumerate(_COMPARED):
        error = compared.errors[each]
        at = place + (index - 1.5) * width
        axes.bar(at, error.mean, width * 0.92, color=_COLOURS[each])
        axes.text(
            at, error.mean, f"{error.mean:.3f}", ha="center", va="bottom", fontsize=8.5, color=INK
        )
    data = compared.data
    facts = f"{data.size:,} symbols, {data.blocks} blocks\n{data.people:,} people"
    axes.annotate(
        facts,
        (place, 0),
        (0, -34),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=8.5,
        color=FAINT,
    )


def _head(canvas: "Figure", axes: "Axes", compared: list[_Compared]) -> None:
    from matplotlib.patches import Patch

    left = axes.get_position().x0
    canvas.text(left, 0.955, _title(compared), fontsize=12.5, color=INK, va="top")
    remark = f"Total variation between the estimate and the people's own shares, ε = {EPSILON}: less is better."
    canvas.text(left, 0.895, remark, fontsize=9.5, color=FAINT, va="top")
    handles = [Patch(color=_COLOURS[each], label=", ".join(each)) for each in _COMPARED]
    canvas.legend(
        handles=handles,
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
