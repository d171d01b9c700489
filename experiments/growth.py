"""Measure how the number of people needed grows, and compare it with the theorems' exponents.

The error of the paper's unbiased estimate falls as 1/√n. So the error for one n predicts all
others,

    E TV ≈ ½ √(2/π) Σ_x σ_x/√n,        people for an error α:  n · (E TV/α)².

Here ``σ_x²`` are the exact variances of one report at the hardest p, and √(2/π) is the mean
absolute value of a standard normal variable. The measured number of people is computed from the
total variation of real reports instead.
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
from sfumato.planning import hardest_for_tv, people_lower_bound, people_upper_bound
from sfumato.simulation import SeededWords, draw_people, run_jobs
from sfumato.tally import Tally

PaperResponse = BlockResponse | GroupResponse

ERROR = 0.01
"""The total variation for which the number of people is computed."""

_HALF_NORMAL_MEAN = math.sqrt(2 / math.pi)
_MIN_PEOPLE = 100_000
_REPORTS_PER_SYMBOL = 3  # unrandomized reports per run: enough for errors to be nearly normal
_MANY_SYMBOLS = 10_000  # one run is enough above this, since its error averages over symbols
_RUNS = 8


@dataclass(frozen=True)
class Point:
    """The number of people needed at one value of the variable: bounds, measured and exact."""

    value: float
    lower: int
    measured: float
    exact: float
    upper: int


@dataclass(frozen=True)
class PowerFit:
    """A straight segment of a curve on log-log axes, with the theorem's and fitted exponents."""

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
        """Whether all exponents are within 0.15 of the theorem's, which is for a limit."""
        exponents = (self.lower, self.measured, self.exact, self.upper)
        return all(abs(exponent - self.theorem) <= 0.15 for exponent in exponents)


@dataclass(frozen=True)
class GrowthCurve:
    """The number of people against one variable, with fits to the segments in the theorems."""

    name: str
    variable: str
    epsilon: float | None
    points: tuple[Point, ...]
    fits: tuple[PowerFit, ...]

    @property
    def is_ordered(self) -> bool:
        """Whether the measured and exact numbers are between the bounds at every point."""
        for point in self.points:
            if not point.lower <= min(point.measured, point.exact):
                return False
            if not max(point.measured, point.exact) <= point.upper:
                return False
        return True


@dataclass(frozen=True, eq=False)
class _Plan:
    """The contexts of a curve, and its segments: a text, a slice and the theorem's exponent."""

    name: str
    variable: str
    epsilon: float | None
    contexts: Mapping[float, Context]
    segments: tuple[tuple[str, slice, float], ...]


def measure_curves(options: RunOptions, workers: int | None) -> list[GrowthCurve]:
    """Return people against the number of blocks, sensitive symbols and symbols, and against ε."""
    result = []
    for plan in _plans(options.quick):
        options.on_progress(f"growth: {plan.name}")
        jobs = [(plan, value, options.seed) for value in plan.contexts]
        points = tuple(run_jobs(_measure_point, jobs, workers=workers))
        fits = []
        for text, segment, theorem in plan.segments:
            fits.append(_fit(text, theorem, points[segment]))
        result.append(GrowthCurve(plan.name, plan.variable, plan.epsilon, points, tuple(fits)))
    return result


def _plans(quick: bool) -> list[_Plan]:
    """Return all plans. A quick run uses a smaller domain for the high-low curves."""
    k = 20_000 if quick else 100_000
    max_power = 12 if quick else 15
    by_blocks: dict[float, Context] = {m: _equal_blocks(m, 1) for m in (1, 2, 5, 10, 20, 50, 100)}
    powers = [2**i for i in range(max_power + 1)]
    by_sensitive: dict[float, Context] = {s: HighLow(k, range(s), 1) for s in powers}
    sizes = (k // 8, k // 4, k // 2, k)
    by_size: dict[float, Context] = {size: HighLow(size, range(2), 1) for size in sizes}
    epsilons = ("0.05", "0.1", "0.2", "0.4")
    ten_blocks = {float(epsilon): _equal_blocks(10, epsilon) for epsilon in epsilons}
    one_sensitive = {float(epsilon): HighLow(20_000, [0], epsilon) for epsilon in epsilons}
    few = (f"people ∝ s^a, s ≤ 4 of k = {k:,}", slice(0, 3), 0.0)
    many = (f"people ∝ s^a, s ≥ {2 ** (max_power - 3):,} of k = {k:,}", slice(-4, None), 2.0)
    all_points = slice(None)
    return [
        _Plan(
            "blocks of equal size, k = 1000",
            "m",
            1.0,
            by_blocks,
            (("people ∝ m^a, equal blocks of k = 1000", all_points, -1.0),),
        ),
        _Plan(f"high-low, k = {k:,}", "s", 1.0, by_sensitive, (few, many)),
        _Plan(
            "high-low, s = 2",
            "k",
            1.0,
            by_size,
            (("people ∝ k^a, high-low with s = 2", all_points, 1.0),),
        ),
        _Plan(
            "10 equal blocks, k = 1000",
            "ε",
            None,
            ten_blocks,
            (("people ∝ ε^a, 10 equal blocks of k = 1000", all_points, -2.0),),
        ),
        _Plan(
            "high-low, s = 1, k = 20,000",
            "ε",
            None,
            one_sensitive,
            (("people ∝ ε^a, high-low with s = 1 of k = 20,000", all_points, -1.0),),
        ),
    ]


def _equal_blocks(block_count: int, epsilon: float | str) -> Context:
    return Blocks(np.arange(1000) * block_count // 1000, epsilon)


def _measure_point(job: tuple[_Plan, float, int]) -> Point:
    plan, value, seed = job
    context = plan.contexts[value]
    mechanism = hadamard_response(context)
    p = hardest_for_tv(mechanism)
    unrandomized_share = math.tanh((plan.epsilon or value) / 2)
    n = max(_MIN_PEOPLE, round(_REPORTS_PER_SYMBOL * context.size / unrandomized_share))
    errors = []
    for run in range(1 if context.size > _MANY_SYMBOLS else _RUNS):
        tally = run_tally(mechanism, p, n, f"growth/{plan.name}/{value}", run, seed)
        errors.append(total_variation(mechanism.scores.paper_estimate(tally), p))
    variances = np.maximum(mechanism.scores.paper_variances(p, 1), 0.0)
    exact_error = _HALF_NORMAL_MEAN * float(np.sqrt(variances).sum()) / 2
    return Point(
        value=value,
        lower=people_lower_bound(context, ERROR),
        measured=n * float(np.mean(errors) / ERROR) ** 2,
        exact=(exact_error / ERROR) ** 2,
        upper=people_upper_bound(context, ERROR),
    )


def run_tally(mechanism: Mechanism, p: Floats, n: int, name: str, run: int, seed: int) -> Tally:
    """Draw n people from p, privatize their symbols, and return the tally."""
    people = draw_people(p, n, name, run, seed)
    return mechanism.tally(mechanism.privatize(people, SeededWords(seed, run=run)))


def hadamard_response(context: Context) -> PaperResponse:
    """Return the paper's scheme for a uniform, block or high-low context."""
    mechanism: Mechanism = mechanism_for(context, code="hadamard")
    if not isinstance(mechanism, PaperResponse):
        raise ContextMismatch(
            f"the paper has schemes only for uniform, block and high-low contexts; got {context!r}."
        )
    return mechanism


def _fit(text: str, theorem: float, points: tuple[Point, ...]) -> PowerFit:
    """Fit the exponents by least squares in log space."""
    values, *people = np.log([astuple(point) for point in points]).T
    exponents = [float(np.polyfit(values, column, 1)[0]) for column in people]
    return PowerFit(text, points[0].value, points[-1].value, theorem, *exponents)
