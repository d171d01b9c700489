"""How the number of people grows that a total variation error needs: exponents of the theorems.

The error of the paper's unbiased estimate falls as 1/√n. So one n says what every n gives,

    E TV ≈ ½ √(2/π) Σ_x σ_x/√n,        people for an error α:  n · (E TV/α)².

Here ``σ_x²`` are the exact variances of one report at the hardest p, and √(2/π) is the factor of
normal errors. The measured number of people comes from the total variation of real reports instead.
"""

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass

import numpy as np

from sfumato.contexts import Blocks, Context, HighLow
from sfumato.designer import mechanism_for
from sfumato.errors import ContextMismatch
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import BlockResponse, GroupResponse, Mechanism
from sfumato.paper.experiment import RunOptions
from sfumato.planning import hardest_for_tv, lower_bound_people, upper_bound_people
from sfumato.simulation import SeededWords, draw_people, run_jobs
from sfumato.tally import Tally

PaperResponse = BlockResponse | GroupResponse

ERROR = 0.01
"""The total variation that people are counted for."""

_HALF_NORMAL = math.sqrt(2 / math.pi)
_MIN_PEOPLE = 100_000
_REPORTS_PER_SYMBOL = 3  # unrandomized ones in a run: enough for errors to be nearly normal
_MANY_SYMBOLS = 10_000  # one run is enough from here, since its error is a mean over symbols
_RUNS = 8


@dataclass(frozen=True)
class Point:
    """The people needed at one value of the variable, by bounds, a run and exact variances."""

    value: float
    lower: int
    measured: float
    exact: float
    upper: int


@dataclass(frozen=True)
class PowerFit:
    """A straight piece of a curve on logarithmic axes: exponents by the theorem and as fitted."""

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
    """People against one variable, and the pieces of the curve that the theorems are about."""

    name: str
    variable: str
    epsilon: float | None
    points: tuple[Point, ...]
    fits: tuple[PowerFit, ...]

    @property
    def is_ordered(self) -> bool:
        """Whether measured and exact people lie between the bounds at every point."""
        for point in self.points:
            if not point.lower <= min(point.measured, point.exact):
                return False
            if not max(point.measured, point.exact) <= point.upper:
                return False
        return True


@dataclass(frozen=True, eq=False)
class _Plan:
    """The contexts of a curve, and its pieces: a text, a slice and the theorem's exponent."""

    name: str
    variable: str
    epsilon: float | None
    contexts: Mapping[float, Context]
    pieces: tuple[tuple[str, slice, float], ...]


def curves(options: RunOptions, workers: int | None) -> list[Curve]:
    """Return people against the number of blocks, sensitive symbols and symbols, and against ε."""
    result = []
    for plan in _plans(options.quick):
        options.on_progress(f"growth: {plan.name}")
        jobs = [(plan, value, options.seed) for value in plan.contexts]
        points = tuple(run_jobs(_point, jobs, workers=workers))
        fits = []
        for text, piece, theorem in plan.pieces:
            fits.append(_fit(text, theorem, points[piece]))
        result.append(Curve(plan.name, plan.variable, plan.epsilon, points, tuple(fits)))
    return result


def _plans(quick: bool) -> list[_Plan]:
    """Return all plans. A quick run has a smaller domain for the high-low curves."""
    k = 20_000 if quick else 100_000
    most = 12 if quick else 15
    blocks: dict[float, Context] = {m: _equal_blocks(m, 1) for m in (1, 2, 5, 10, 20, 50, 100)}
    by_sensitive: dict[float, Context] = {2**i: HighLow(k, range(2**i), 1) for i in range(most + 1)}
    sizes = (k // 8, k // 4, k // 2, k)
    by_size: dict[float, Context] = {size: HighLow(size, range(2), 1) for size in sizes}
    epsilons = ("0.05", "0.1", "0.2", "0.4")
    ten_blocks = {float(epsilon): _equal_blocks(10, epsilon) for epsilon in epsilons}
    one_sensitive = {float(epsilon): HighLow(20_000, [0], epsilon) for epsilon in epsilons}
    few = (f"people ∝ s^a, s ≤ 4 of k = {k:,}", slice(0, 3), 0.0)
    many = (f"people ∝ s^a, s ≥ {2 ** (most - 3):,} of k = {k:,}", slice(-4, None), 2.0)
    everywhere = slice(None)
    return [
        _Plan(
            "blocks of equal size, k = 1000",
            "m",
            1.0,
            blocks,
            (("people ∝ m^a, equal blocks of k = 1000", everywhere, -1.0),),
        ),
        _Plan(f"high-low, k = {k:,}", "s", 1.0, by_sensitive, (few, many)),
        _Plan(
            "high-low, s = 2",
            "k",
            1.0,
            by_size,
            (("people ∝ k^a, high-low with s = 2", everywhere, 1.0),),
        ),
        _Plan(
            "10 equal blocks, k = 1000",
            "ε",
            None,
            ten_blocks,
            (("people ∝ ε^a, 10 equal blocks of k = 1000", everywhere, -2.0),),
        ),
        _Plan(
            "high-low, s = 1, k = 20,000",
            "ε",
            None,
            one_sensitive,
            (("people ∝ ε^a, high-low with s = 1 of k = 20,000", everywhere, -1.0),),
        ),
    ]


def _equal_blocks(blocks: int, epsilon: float | str) -> Context:
    return Blocks(np.arange(1000) * blocks // 1000, epsilon)


def _point(job: tuple[_Plan, float, int]) -> Point:
    plan, value, seed = job
    context = plan.contexts[value]
    mechanism = hadamard_response(context)
    p = hardest_for_tv(mechanism)
    unrandomized = math.tanh((plan.epsilon or value) / 2)  # the share of such reports
    n = max(_MIN_PEOPLE, round(_REPORTS_PER_SYMBOL * context.size / unrandomized))
    errors = []
    for run in range(1 if context.size > _MANY_SYMBOLS else _RUNS):
        tally = run_tally(mechanism, p, n, f"growth/{plan.name}/{value}", run, seed)
        errors.append(total_variation(mechanism.scores.paper_estimate(tally), p))
    variances = np.maximum(mechanism.scores.paper_variances(p, 1), 0.0)
    exact_error = _HALF_NORMAL * float(np.sqrt(variances).sum()) / 2
    return Point(
        value=value,
        lower=lower_bound_people(context, ERROR),
        measured=n * float(np.mean(errors) / ERROR) ** 2,
        exact=(exact_error / ERROR) ** 2,
        upper=upper_bound_people(context, ERROR),
    )


def run_tally(mechanism: Mechanism, p: Floats, n: int, name: str, run: int, seed: int) -> Tally:
    """Return the tally of n people drawn from p, each with a real report."""
    people = draw_people(p, n, name, run, seed)
    return mechanism.tally(mechanism.privatize(people, SeededWords(seed, run=run)))


def hadamard_response(context: Context) -> PaperResponse:
    """Return the paper's scheme for a uniform, block or high-low context."""
    mechanism: Mechanism = mechanism_for(context, code="hadamard")
    if not isinstance(mechanism, PaperResponse):
        raise ContextMismatch(
            f"the paper has schemes for uniform, block and high-low contexts; got {context!r}."
        )
    return mechanism


def _fit(text: str, theorem: float, points: tuple[Point, ...]) -> PowerFit:
    """Fit exponents by least squares on logarithms."""
    values, *people = np.log([astuple(point) for point in points]).T
    exponents = [float(np.polyfit(values, column, 1)[0]) for column in people]
    return PowerFit(text, points[0].value, points[-1].value, theorem, *exponents)
