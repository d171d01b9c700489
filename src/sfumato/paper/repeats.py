"""The same people, randomised again and again: the paper's scheme beside the best one here.

The paper's scheme is Hadamard's code, the paper's own estimate, and Euclidean projection of the whole vector on the
simplex; the paper does not say how it projects, but its figures do. The best one here is ``mechanism_for`` with the
default decoder. Neither is told how people are spread.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.contexts import Blocks, Uniform
from sfumato.designer import mechanism_for
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import BlockResponse, PlainResponse
from sfumato.paper.experiment import Measured
from sfumato.paper.schemes import answered, best_estimate, paper_estimate
from sfumato.paper.workers import shared_out

__all__ = ["Repeated", "repeated"]

_PORTION = 4  # runs that a worker does in one go, so that it builds its mechanisms once


@dataclass(frozen=True, eq=False)
class Repeated:
    """The total variation error of both schemes over all runs, and what both found in the first run."""

    paper: Measured
    best: Measured
    papers_map: Floats
    best_map: Floats


def repeated(
    contexts: Mapping[str, Uniform | Blocks],
    counts: Symbols,
    runs: int,
    seed: int,
    *,
    on_progress: Callable[[str], None] = lambda line: None,
    workers: int | None = None,
) -> dict[str, Repeated]:
    """Randomise the people of ``counts`` ``runs`` times under each context, by both schemes.

    Only the randomiser is repeated: people stay who they are. The words of a run depend on the context's name, the
    seed and the run's number alone, so the result does not depend on how many processes share the work.

    A block of one symbol is sent as it is, so there is no error here:

    >>> found = repeated({"in clear": Blocks([0, 1], epsilon=1)}, np.array([3, 1]), runs=2, seed=0, workers=1)
    >>> found["in clear"].paper, found["in clear"].papers_map
    (Measured(mean=0.0, standard_error=0.0), array([0.75, 0.25]))
    """
    portions = [
        _Portion(name, context, counts, range(first, min(first + _PORTION, runs)), seed)
        for name, context in contexts.items()
        for first in range(0, runs, _PORTION)
    ]

    def told(done: int) -> None:
        portion = portions[done - 1]
        on_progress(
            f"{portion.name}: {portion.runs.stop} of {runs} runs ({done / len(portions):.0%} of all)"
        )

    found: dict[str, list[_Run]] = {name: [] for name in contexts}
    for portion, some in zip(
        portions, shared_out(_runs_of, portions, workers=workers, on_progress=told), strict=True
    ):
        found[portion.name] += some
    return {name: _gathered(each) for name, each in found.items()}


@dataclass(frozen=True, eq=False)
class _Portion:
    """Some runs under one context: what a worker is sent."""

    name: str
    context: Uniform | Blocks
    counts: Symbols
    runs: range
    seed: int


@dataclass(frozen=True, eq=False)
class _Run:
    """The errors of both schemes; and their estimates, which only the first run keeps."""

    errors: tuple[float, float]
    estimates: tuple[Floats, Floats] | None


def _runs_of(portion: _Portion) -> list[_Run]:
    symbols = np.repeat(np.arange(portion.counts.size), portion.counts)
    truth = portion.counts / symbols.size
    hadamard, best = _hadamard(portion.context), mechanism_for(portion.context)
    runs = []
    for run in portion.runs:
        tally = answered(hadamard, symbols, f"map/{portion.name}/paper", run, portion.seed)
        papers = paper_estimate(hadamard, tally)
        tally = answered(best, symbols, f"map/{portion.name}/best", run, portion.seed)
        bests = best_estimate(best, tally)
        errors = total_variation(papers, truth), total_variation(bests, truth)
        runs.append(_Run(errors, (papers, bests) if run == 0 else None))
    return runs


def _hadamard(context: Uniform | Blocks) -> BlockResponse:
    """The paper's mechanism: a block response around Hadamard's code."""
    return PlainResponse(context) if isinstance(context, Uniform) else BlockResponse(context)


def _gathered(runs: list[_Run]) -> Repeated:
    paper, best = zip(*(run.errors for run in runs), strict=True)
    (maps,) = [run.estimates for run in runs if run.estimates is not None]
    return Repeated(Measured.of(paper), Measured.of(best), *maps)
