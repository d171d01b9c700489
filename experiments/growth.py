"""How the number of people grows that a total variation error needs: the exponents of the paper's two theorems.

The error of the paper's unbiased estimate falls as 1/√n. So one n says what every n gives,

    E TV ≈ ½ √(2/π) Σ_x σ_x/√n,        people for an error α:  n · (E TV/α)²,

with the exact variances ``σ_x²`` of one report at the hardest p (the factor √(2/π) is that of normal errors), or with
the total variation that real reports had.
"""

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from sfumato.contexts import Blocks, Context, HighLow
from sfumato.designer.choose import mechanism_for
from sfumato.errors import ContextMismatch
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import BlockResponse, GroupResponse, Mechanism
from sfumato.paper.experiment import RunOptions
from sfumato.planning import hardest_for_tv, lower_bound_people, upper_bound_people
from sfumato.simulation import SeededWords, draw_people

__all__ = ["ERROR", "Curve", "Point", "PowerFit", "curves", "hadamard_response"]

ERROR = 0.01
"""The total variation that people are counted for."""

_HALF_NORMAL = math.sqrt(2 / math.pi)
_FEWEST = 100_000  # people of a run
_PER_SYMBOL = 3  # reports in clear of a run for every symbol: enough for errors to be nearly normal
_LARGE = 10_000  # symbols from which one run is enough, because its error is a mean over them
_RUNS = 8


@dataclass(frozen=True)
class Point:
    """At one value of what varies: people by the lower bound, by a run, by exact variances, by the upper bound."""

    value: float
    lower: int
    measured: float
    exact: float
    upper: int


@dataclass(frozen=True)
class PowerFit:
    """A straight piece of a curve on logarithms: what the theorem says of it, and what was found."""

    text: str
    first: float
    last: float
    theorem: float
    lower: float
    measured: float
    exact: float
    upper: float

    @property
    def holds(self) -> bool:
        """Whether all exponents are within 0.15 of the theorem's, which is a limit."""
        exponents = (self.lower, self.measured, self.exact, self.upper)
        return all(abs(exponent - self.theorem) <= 0.15 for exponent in exponents)


@dataclass(frozen=True)
class Curve:
    """People against one quantity, and the pieces of it that the theorems speak of."""

    name: str
    variable: str
    epsilon: float | None
    points: tuple[Point, ...]
    fits: tuple[PowerFit, ...]

    @property
    def is_ordered(self) -> bool:
        """Whether lower bound, measured and exact people, and upper bound come in this order everywhere."""
        return all(
            point.lower <= min(point.measured, point.exact)
            and max(point.measured, point.exact) <= point.upper
            for point in self.points
        )


@dataclass(frozen=True, eq=False)
class _Plan:
    """Which contexts make a curve; pieces are slices of them, with the theorem's exponent."""

    name: str
    variable: str
    epsilon: float | None
    contexts: Mapping[float, Context]
    pieces: tuple[tuple[str, slice, float], ...]


def curves(options: RunOptions, workers: int) -> list[Curve]:
    """People against the number of blocks, of sensitive symbols, of symbols, and against ε."""
    result = []
    for plan in _plans(options.quick):
        options.on_progress(f"growth: {plan.name}")
        with ThreadPoolExecutor(workers) as pool:
            points = tuple(
                pool.map(lambda value, plan=plan: _point(plan, value, options.seed), plan.contexts)
            )
        fits = tuple(_fit(text, exponent, points[piece]) for text, piece, exponent in plan.pieces)
        result.append(Curve(plan.name, plan.variable, plan.epsilon, points, fits))
    return result


def _plans(quick: bool) -> list[_Plan]:
    """A quick run has a smaller domain for the high-low curves: its pieces are shorter."""
    k, most = (20_000, 12) if quick else (100_000, 15)
    epsilons = ("0.05", "0.1", "0.2", "0.4")
    last = slice(-4, None)
    few = slice(0, 3)
    return [
        _Plan(
            name="blocks of equal size, k = 1000",
            variable="m",
            epsilon=1.0,
            contexts={m: _blocks(1000, m, 1) for m in (1, 2, 5, 10, 20, 50, 100)},
            pieces=(("people ∝ m^a, equal blocks of k = 1000", slice(None), -1.0),),
        ),
        _Plan(
            name=f"high-low, k = {k:,}",
            variable="s",
            epsilon=1.0,
            contexts={2**i: HighLow(k, range(2**i), 1) for i in range(most + 1)},
            pieces=(
                (f"people ∝ s^a, s ≤ 4 of k = {k:,}", few, 0.0),
                (f"people ∝ s^a, s ≥ {2 ** (most - 3):,} of k = {k:,}", last, 2.0),
            ),
        ),
        _Plan(
            name="high-low, s = 2",
            variable="k",
            epsilon=1.0,
            contexts={size: HighLow(size, range(2), 1) for size in (k // 8, k // 4, k // 2, k)},
            pieces=(("people ∝ k^a, high-low with s = 2", slice(None), 1.0),),
        ),
        _Plan(
            name="10 equal blocks, k = 1000",
            variable="ε",
            epsilon=None,
            contexts={float(epsilon): _blocks(1000, 10, epsilon) for epsilon in epsilons},
            pieces=(("people ∝ ε^a, 10 equal blocks of k = 1000", slice(None), -2.0),),
        ),
        _Plan(
            name="high-low, s = 1, k = 20,000",
            variable="ε",
            epsilon=None,
            contexts={float(epsilon): HighLow(20_000, [0], epsilon) for epsilon in epsilons},
            pieces=(("people ∝ ε^a, high-low with s = 1 of k = 20,000", slice(None), -1.0),),
        ),
    ]


def _blocks(size: int, blocks: int, epsilon: float | str) -> Context:
    return Blocks(np.arange(size) * blocks // size, epsilon)


def _point(plan: _Plan, value: float, seed: int) -> Point:
    context = plan.contexts[value]
    mechanism = hadamard_response(context)
    p = hardest_for_tv(mechanism)
    name = f"growth/{plan.name}/{value}"
    n = max(_FEWEST, round(_PER_SYMBOL * context.size / math.tanh((plan.epsilon or value) / 2)))
    runs = 1 if context.size > _LARGE else _RUNS
    error = np.mean([_run(mechanism, p, n, name, run, seed) for run in range(runs)])
    one_report = (
        _HALF_NORMAL
        * float(np.sqrt(np.maximum(mechanism.scores.paper_variances(p, 1), 0.0)).sum())
        / 2
    )
    return Point(
        value=value,
        lower=lower_bound_people(context, ERROR),
        measured=n * float(error / ERROR) ** 2,
        exact=(one_report / ERROR) ** 2,
        upper=upper_bound_people(context, ERROR),
    )


def _run(
    mechanism: BlockResponse | GroupResponse, p: Floats, n: int, name: str, run: int, seed: int
) -> float:
    """The total variation of the paper's estimate from n real reports."""
    people = draw_people(p, n, name, run, seed)
    return total_variation(
        mechanism.scores.paper_estimate(
            mechanism.tally(mechanism.privatize(people, SeededWords(seed, run=run)))
        ),
        p,
    )


def hadamard_response(context: Context) -> BlockResponse | GroupResponse:
    """The paper's scheme for a uniform, block or high-low context."""
    mechanism: Mechanism = mechanism_for(context, code="hadamard")
    if not isinstance(mechanism, BlockResponse | GroupResponse):
        raise ContextMismatch(
            f"the paper has schemes for uniform, block and high-low contexts; found {context!r}."
        )
    return mechanism


def _fit(text: str, theorem: float, points: tuple[Point, ...]) -> PowerFit:
    """Least squares on logarithms."""
    at = np.log([point.value for point in points])

    def exponent(people: list[float]) -> float:
        return float(np.polyfit(at, np.log(people), 1)[0])

    return PowerFit(
        text,
        points[0].value,
        points[-1].value,
        theorem,
        lower=exponent([point.lower for point in points]),
        measured=exponent([point.measured for point in points]),
        exact=exponent([point.exact for point in points]),
        upper=exponent([point.upper for point in points]),
    )
