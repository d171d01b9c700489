"""Measure whether block promises also help on other kinds of data, which the paper does not try.

Classical local privacy and blocks are compared at the same ε on four kinds of real data, each with
the paper's scheme and with the best scheme in this package.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from experiments.figures import draw_dots
from experiments.real_data import READERS, RealData
from sfumato.contexts import Blocks, Uniform
from sfumato.errors import MissingExtra
from sfumato.paper.experiment import Cell, ExperimentResult, RunOptions
from sfumato.paper.pictures import FAINT, INK, MAP_SCALE
from sfumato.paper.schemes import measure_contexts
from sfumato.simulation import Spread

EPSILON = 1
_CLASSICAL_PAPER = "classical LDP, paper's scheme"
_CLASSICAL_BEST = "classical LDP, best here"
_BLOCKS_PAPER = "blocks, paper's scheme"
_BLOCKS_BEST = "blocks, best here"
_COLOURS = {
    _CLASSICAL_PAPER: FAINT,
    _CLASSICAL_BEST: INK,
    _BLOCKS_PAPER: MAP_SCALE[1],
    _BLOCKS_BEST: MAP_SCALE[2],
}
_COLUMNS = ("data", "symbols", "blocks are", "blocks", "people", *_COLOURS)

Reader = Callable[[], RealData]


@dataclass(frozen=True, eq=False)
class _Result:
    """The error of each promise and scheme on one dataset, in the order of ``_COLOURS``."""

    data: RealData
    errors: Mapping[str, Spread]


def domains(
    options: RunOptions,
    readers: Mapping[str, Reader] = READERS,
    *,
    workers: int | None = None,
) -> ExperimentResult:
    """Measure total variation on flights, first names, home towns and words.

    Datasets whose package is missing are left out. The numbers do not depend on ``workers``.

    >>> tiny = RealData.from_weights(
    ...     {("A", "Ann"): 30, ("A", "Al"): 30, ("B", "Bob"): 20},
    ...     name="tiny", blocks_are="initial", why="For this example.", credit="Made up.",
    ... )
    >>> domains(RunOptions(runs=1), {"tiny": lambda: tiny}, workers=1).rows[0][:5]
    ('tiny', 3, 'initial', 2, 80)
    """
    runs = options.run_count(full=10, quick=2)
    results = []
    missing: dict[str, str] = {}
    for name, read in readers.items():
        options.on_progress(f"reading {name}")
        try:
            data = read()
        except MissingExtra as problem:
            missing[name] = str(problem)
        else:
            results.append(_measure(data, runs, options, workers))
    if not results:
        raise MissingExtra("; ".join(missing.values()))
    block_gains = _format_gains(results, _CLASSICAL_PAPER, _BLOCKS_PAPER)
    code_gains = _format_gains(results, _BLOCKS_PAPER, _BLOCKS_BEST)
    total_gains = _format_gains(results, _CLASSICAL_PAPER, _BLOCKS_BEST)
    return ExperimentResult(
        name="domains",
        title=f"Blocks make the error {block_gains} times smaller on other kinds of data",
        summary=f"With the paper's scheme at ε = {EPSILON}, blocks make the total variation error "
        f"{block_gains} times smaller than classical local privacy. With blocks, the best code and "
        f"decoder here make the error another {code_gains} times smaller. Both steps together make "
        f"it {total_gains} times smaller.",
        columns=_COLUMNS,
        rows=tuple(map(_row, results)),
        data={
            "epsilon": EPSILON,
            "runs": runs,
            "seed": options.seed,
            "data": list(map(_to_json, results)),
            "not_run": missing,
        },
        draw_figure=lambda: _figure(results),
        notes=tuple(_notes(results, runs, missing)),
    )


def _measure(data: RealData, runs: int, options: RunOptions, workers: int | None) -> _Result:
    errors = measure_contexts(
        {"classical": Uniform(data.size, EPSILON), "blocks": Blocks(data.block_of, EPSILON)},
        data.counts,
        runs,
        options.seed,
        stream_name=f"domains/{data.name}",
        on_progress=lambda line: options.on_progress(f"{data.name}, {line}"),
        workers=workers,
    )
    spreads = []
    for scheme in errors.values():
        spreads += [scheme.paper_error, scheme.best_error]
    return _Result(data, dict(zip(_COLOURS, spreads, strict=True)))


def _row(result: _Result) -> tuple[Cell, ...]:
    data = result.data
    errors = map(str, result.errors.values())
    return data.name, data.size, data.blocks_are, data.blocks, data.people, *errors


def _format_gains(results: Sequence[_Result], worse: str, better: str) -> str:
    """Return how many times smaller the error becomes, as a range."""
    gains = [result.errors[worse].mean / result.errors[better].mean for result in results]
    low = f"{min(gains):.1f}"
    high = f"{max(gains):.1f}"
    return low if low == high else f"{low} to {high}"


def _notes(results: Sequence[_Result], runs: int, missing: Mapping[str, str]) -> Iterator[str]:
    yield (
        "None of this is the paper's data. The error is the total variation distance from the "
        f"people's true shares, as a mean over {runs} runs; everyone answers again in each run. "
        f"ε = {EPSILON} applies between the symbols of a block, which is revealed; in classical "
        "LDP, it applies between all symbols."
    )
    for result in results:
        data = result.data
        yield f"{data.name.capitalize()}, by {data.blocks_are}. {data.why} {data.credit}"
    for name, reason in missing.items():
        yield f"{name.capitalize()} left out: {reason}"


def _to_json(result: _Result) -> dict[str, object]:
    data = result.data
    errors = []
    for name, spread in result.errors.items():
        promise, scheme = name.split(", ")
        errors.append({"promise": promise, "scheme": scheme, **spread.to_dict()})
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


def _figure(results: Sequence[_Result]) -> Figure:
    canvas = Figure(figsize=(9, 4.5), layout="constrained")
    rows = []
    for result in results:
        data = result.data
        label = f"{data.name} by {data.blocks_are}\n{data.size:,} symbols, {data.blocks} blocks"
        rows.append((label, list(result.errors.values())))
    draw_dots(canvas.subplots(), f"Total variation error, ε = {EPSILON}", rows, _COLOURS)
    return canvas
