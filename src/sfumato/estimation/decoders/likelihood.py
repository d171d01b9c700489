"""Maximum likelihood: the distribution under which the reports that came are least surprising.

With f the shares of the reports and ``q = Qᵀp`` what p makes of them, maximise

    ℓ(p) = n Σ_y f(y) log q(y)   over   p ≥ 0,  Σ_{x ∈ j} p_x = s_j for every group j,

s_j being the shares that were seen without noise: one group of share 1, or one for each block. ℓ is concave.

*How far from the top.* Let ``g = Q(f/q)``, so that n g is the gradient. For every p* that is allowed, since
``log t ≤ t − 1``,

    ℓ(p*) − ℓ(p) = n Σ_y f(y) log(q*(y)/q(y)) ≤ n Σ_y f(y) q*(y)/q(y) − n = n Σ_x p*_x g_x − n
                 ≤ n (Σ_j s_j max_{x ∈ j} g_x − 1) = n Σ_j s_j (max_{x ∈ j} g_x − 1),

and the last line is the *gap*. It needs no knowledge of p*, it is never negative (``Σ_x p_x g_x = 1``, and a maximum is
no less than a mean), and it is 0 exactly at the top, where it states the conditions of Karush, Kuhn and Tucker.

*How to get there.* Accelerated projected gradients (Nesterov 1983; Beck, Teboulle 2009) with restarts (O'Donoghue,
Candès 2015), two transforms each. Lengths are measured in ``Σ_x (·)_x²/d_x``, where d_x is the variance of the unbiased
estimate from one report. That estimate undoes the channel, so d is about the diagonal of the inverse of the curvature,
and a step of length 1 is about Newton's. Where there are as many reports as symbols and no entry of p̂ is negative,
the projection is p̂, its q is f, and there is no way to go.
"""

import math
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidContext
from sfumato.estimation.decoders.decoder import Decoded, Projection
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.simplex import nearest_in_groups
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Likelihood"]

_Entry = TypeVar("_Entry", bound=np.generic)

_EVERYWHERE = (
    0.001  # how much of the start is spread evenly, so that no report that came is impossible
)
_SHORTEN, _LENGTHEN = (
    1.5,
    1.05,
)  # a step that overshoots is cut at once; longer ones are tried little by little
_KEPT = 0.1  # momentum may take from no report more than all but this part of its probability


@dataclass(frozen=True)
class Likelihood:
    """The most likely distribution, each block with the share that was observed.

    Guarantee: no distribution has a log-likelihood of more than ``gap`` above the one found, and that is no less
    likely than the projection. ``gap ≤ tolerance`` unless ``most_iterations`` came first; ``converged`` says which.
    The default is far below what data can tell: an entry that is off by one standard error costs half a unit.
    Reports that no symbol can send say nothing about symbols, and are left out of the sum.
    Cost: two transforms for each iteration, some 5 to 50 of them; a few hundred where groups take cover in each other.
    Memory: some twenty rows of the length of p or f.

    A café in clear that was named a quarter as often as the park keeps a quarter of its share, where the projection
    takes equally much from both.

    >>> from sfumato.contexts import HighLow
    >>> from sfumato.mechanisms import HighLowResponse
    >>> mechanism = HighLowResponse(HighLow(["park", "café", "clinic", "court"], ["clinic", "court"], 1.0))
    >>> tally = mechanism.tally([0, 0, 0, 4, 4, 4, 4, 5])
    >>> found = Likelihood(tolerance=1e-6).decode(mechanism, tally)
    >>> found.frequencies.round(3), found.details["converged"]
    (array([0.791, 0.198, 0.006, 0.006]), True)
    >>> Projection().decode(mechanism, tally).frequencies.round(3)
    array([0.906, 0.094, 0.   , 0.   ])
    """

    tolerance: float = 0.01
    most_iterations: int = 5_000
    name: str = "likelihood"

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < math.inf:
            raise InvalidContext(
                f"tolerance must be positive and finite; found {self.tolerance}. Pass e.g. 0.01."
            )
        most = self.most_iterations
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise InvalidContext(
                f"most_iterations must be a whole number of at least 1; found {most!r}."
            )

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """The projection if that will do; otherwise climb until the gap is small."""
        problem = _Problem.of(mechanism, tally)
        found, iterations = problem.at(Projection().decode(mechanism, tally).frequencies), 0
        gap = problem.gap(found)
        if gap > self.tolerance:
            top, iterations = _climb(problem, _inner(problem), self.tolerance, self.most_iterations)
            top_gap = problem.gap(top)
            if problem.value(top) >= problem.value(found):
                found, gap = top, top_gap
            else:  # a gap also holds for whatever is likelier than the point that it was measured at
                gap = min(gap, top_gap)
        details = {
            "gap": gap,
            "log_likelihood": problem.value(found),
            "iterations": iterations,
            "converged": gap <= self.tolerance,
        }
        return Decoded(found.p, details)


@dataclass(frozen=True, eq=False)
class _Point:
    """A distribution p, and q on the reports that came. After momentum p may have negative entries; q has none."""

    p: Floats
    q: Floats

    def beyond(self, before: "_Point", factor: float) -> "_Point":
        """On along the line from ``before``, by so much of the way that was come, or as far as q allows."""
        lost = before.q - self.q
        falling = lost > 0
        furthest = float(((1 - _KEPT) * self.q[falling] / lost[falling]).min(initial=math.inf))
        b = min(factor, furthest)
        return _Point(self.p + b * (self.p - before.p), self.q - b * lost)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is to be maximised: the tally's side of it, the channel, and the shares."""

    mechanism: Mechanism
    seen: NDArray[np.intp]  # the reports that came, and that some symbol can send
    f: Floats  # their shares of all reports
    reports: int
    group_of: Symbols
    shares: Floats
    order: NDArray[np.intp]  # the symbols, group by group …
    first: NDArray[np.intp]  # … and where each group begins

    @classmethod
    def of(cls, mechanism: Mechanism, tally: Tally) -> Self:
        """Reports that did not come drop out of the sum: ``0 log q = 0``, whatever q."""
        group_of, shares = mechanism.scores.observed_shares(tally)
        possible = mechanism.forward(np.full(mechanism.inputs, 1 / mechanism.inputs)) > 0
        seen = np.flatnonzero((tally.counts > 0) & possible)
        f = tally.counts[seen] / tally.reports
        order = np.argsort(group_of, kind="stable")
        first = np.searchsorted(group_of[order], np.arange(shares.size))
        return cls(mechanism, seen, f, tally.reports, group_of, shares, order, first)

    def at(self, p: Floats) -> _Point:
        return _Point(p, self.mechanism.forward(p)[self.seen])

    def value(self, point: _Point) -> float:
        """``ℓ(p)``, −∞ where a report that came is impossible."""
        if (point.q <= 0).any():
            return -math.inf
        return self.reports * float(self.f @ np.log(point.q))

    def slope(self, point: _Point) -> Floats:
        """``g = Q(f/q)``."""
        return self.mechanism.adjoint(self.by_report(self.f / point.q))

    def by_report(self, values: Floats) -> Floats:
        """Values of the reports that came, among all reports; 0 for the others."""
        spread = np.zeros(self.mechanism.outputs)
        spread[self.seen] = values
        return spread

    def bound(self, g: Floats) -> float:
        """The gap from its gradient; where reports are left out, ``Σ_x p_x g_x`` is what is left of 1."""
        highest = (
            g.max(keepdims=True)
            if self.shares.size == 1
            else np.maximum.reduceat(g[self.order], self.first)
        )
        return self.reports * max(float(self.shares @ highest - self.f.sum()), 0.0)

    def gap(self, point: _Point) -> float:
        """By how much the log-likelihood could still rise, at the most."""
        return math.inf if (point.q <= 0).any() else self.bound(self.slope(point))

    def totals(self, values: Floats) -> Floats:
        """The sum over each group; a single group needs no looking up."""
        if self.shares.size == 1:
            return values.sum(keepdims=True)
        return np.bincount(self.group_of, values, minlength=self.shares.size).astype(
            np.float64, copy=False
        )

    def by_symbol(self, values: NDArray[_Entry]) -> NDArray[_Entry]:
        """For each symbol the value of its group, in a form that broadcasts."""
        return values if self.shares.size == 1 else values[self.group_of]

    def nearest(self, v: Floats, d: Floats) -> Floats:
        """The allowed p with the least ``Σ_x (p_x − v_x)²/d_x``."""
        return nearest_in_groups(v, self.group_of, self.shares, d)


def _inner(problem: _Problem) -> _Point:
    """A start that thinks no report impossible: p̂, projected in its own variances, spread a little, two steps of EM.

    In its variances, because less should be taken from what is known better; EM (``p_x ← p_x g_x``), because a symbol
    in clear that was cut to 0 although its reports came regains its scale at once.
    """
    mechanism = problem.mechanism
    sizes = np.bincount(problem.group_of, minlength=problem.shares.size)
    even = np.broadcast_to(
        problem.by_symbol(problem.shares / np.maximum(sizes, 1)), problem.group_of.shape
    )
    f = problem.by_report(problem.f)
    p = problem.nearest(
        mechanism.scores.mean(f), np.maximum(mechanism.scores.moments(f, 2), even**2)
    )
    p = (1 - _EVERYWHERE) * p + _EVERYWHERE * even
    for _ in range(2):
        weighed = p * problem.slope(problem.at(p))
        totals = problem.totals(weighed)
        scale = problem.shares / np.where(totals > 0, totals, 1.0)
        p = np.where(problem.by_symbol(totals > 0), weighed * problem.by_symbol(scale), p)
    return problem.at(p)


def _climb(
    problem: _Problem, start: _Point, tolerance: float, most_iterations: int
) -> tuple[_Point, int]:
    """Accelerated projected gradients until the gap is small, and how many there were."""
    d = _scales(problem, start)
    x = y = start
    step, theta = 1.0, 1.0
    for iteration in range(most_iterations):
        g = problem.slope(y)
        if problem.bound(g) <= tolerance:
            # Momentum may have left what is allowed: only the nearest p that is allowed counts.
            settled = problem.at(problem.nearest(y.p, d))
            if problem.gap(settled) <= tolerance:
                return settled, iteration
        ahead, step = _step(problem, y, g, d, step)
        if ahead is None:
            y, theta = x, 1.0
            continue
        uphill = _product(y.p - ahead.p, ahead.p - x.p, d) <= 0
        theta_next = 2 / (1 + math.sqrt(1 + 4 / theta**2)) if uphill else 1.0
        y = ahead.beyond(x, (1 / theta - 1) * theta_next) if uphill else ahead
        x, theta, step = ahead, theta_next, step * _LENGTHEN
    return x, most_iterations


def _scales(problem: _Problem, start: _Point) -> Floats:
    """d: ``Σ_y q(y) A[x, y]²`` at the start, which is at least p_x² as A undoes the channel."""
    moments = problem.mechanism.scores.moments(problem.mechanism.forward(start.p), 2)
    return np.maximum(moments, start.p**2)


def _step(
    problem: _Problem, y: _Point, g: Floats, d: Floats, step: float
) -> tuple[_Point | None, float]:
    """The nearest p to ``y + step · d g``, the step cut until the quadratic that it relies on lies below ℓ.

    None where the nearest p to y itself would make a report impossible that came: then no step is short enough.
    """
    while step > np.finfo(np.float64).tiny:
        ahead = problem.at(problem.nearest(y.p + step * d * g, d))
        change = ahead.q / y.q - 1
        if (change > -1).all():
            bend = float(problem.f @ (change - np.log1p(change)))
            away = ahead.p - y.p
            if bend <= _product(away, away, d) / (2 * step) + np.finfo(np.float64).eps ** 2:
                return ahead, step
        elif (y.p < 0).any():
            return None, step
        step /= _SHORTEN
    return None, 1.0


def _product(u: Floats, v: Floats, d: Floats) -> float:
    """``Σ_x u_x v_x/d_x``; where d_x = 0 nothing moves."""
    return float(np.divide(u * v, d, out=np.zeros_like(d), where=d > 0).sum())
