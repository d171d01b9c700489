"""Maximum likelihood: the distribution under which the reports are least surprising.

With f the shares of the reports and ``q = Qᵀp`` their probabilities under p, maximise

    ℓ(p) = n Σ_y f(y) log q(y)   over   p ≥ 0,  Σ_{x ∈ j} p_x = s_j for every group j.

The s_j are the shares that are observed without noise: one group of share 1, or one for each block.
ℓ is concave.

*How far from the maximum.* Let ``g = Q(f/q)``, so that n g is the gradient. For every feasible p*,
since ``log t ≤ t − 1``,

    ℓ(p*) − ℓ(p) = n Σ_y f(y) log(q*(y)/q(y)) ≤ n Σ_y f(y) q*(y)/q(y) − n = n Σ_x p*_x g_x − n
                 ≤ n (Σ_j s_j max_{x ∈ j} g_x − 1) = n Σ_j s_j (max_{x ∈ j} g_x − 1),

and the last line is the *gap*. It does not depend on p*. It is never negative, because
``Σ_x p_x g_x = 1`` and a maximum is no less than a mean. It is 0 exactly at the maximum: these are
the conditions of Karush, Kuhn and Tucker.

*How to get there.* Accelerated projected gradients (Nesterov 1983; Beck, Teboulle 2009) with
restarts (O'Donoghue, Candès 2015), two transforms for each step. Lengths are measured in
``Σ_x (·)_x²/d_x``, where d_x is the variance of the unbiased estimate from one report. That
estimate inverts the channel, so d is about the diagonal of the inverse of the curvature, and a step
of length 1 is about Newton's. With as many reports as symbols and no negative entry of p̂, the
projection is p̂, its q is f, and it is the maximum already.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidArgument
from sfumato.estimation.decoders.decoder import Decoded, Projection
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.simplex import nearest_in_groups
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Likelihood"]

_EVEN_SHARE = 0.001  # of the start is spread evenly, so that no observed report is impossible
_SHORTEN = 1.5  # cut a step that overshoots by this factor …
_LENGTHEN = 1.05  # … and try longer ones little by little
_MIN_LEFT = 0.1  # momentum leaves every report at least this fraction of its probability


@dataclass(frozen=True)
class Likelihood:
    """The most likely distribution, each block with its observed share.

    Guarantee: no distribution has a log-likelihood of more than ``gap`` above the result, which is
    at least as likely as the projection. ``gap ≤ tolerance`` unless ``max_iterations`` came first;
    ``converged`` says which. The default tolerance is far below what data can resolve: an entry
    that is off by one standard error costs half a unit. Reports that no symbol can send say nothing
    about symbols and are left out of the sum.

    Cost: two transforms for each iteration. There are some 5 to 50 iterations, or a few hundred
    where groups share reports. Memory: some twenty rows of the length of p or f.

    In this example the café and the park are unrandomized. The café has a quarter of the park's
    reports and gets a quarter of its share. The projection takes the same amount from both.

    >>> from sfumato.contexts import HighLow
    >>> from sfumato.mechanisms import HighLowResponse
    >>> context = HighLow(["park", "café", "clinic", "court"], ["clinic", "court"], 1.0)
    >>> mechanism = HighLowResponse(context)
    >>> tally = mechanism.tally([0, 0, 0, 4, 4, 4, 4, 5])
    >>> decoded = Likelihood(tolerance=1e-6).decode(mechanism, tally)
    >>> decoded.frequencies.round(3), decoded.details["converged"]
    (array([0.791, 0.198, 0.006, 0.006]), True)
    >>> Projection().decode(mechanism, tally).frequencies.round(3)
    array([0.906, 0.094, 0.   , 0.   ])
    """

    tolerance: float = 0.01
    max_iterations: int = 5_000
    name: str = "likelihood"

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < math.inf:
            raise InvalidArgument(
                f"tolerance must be positive and finite, such as 0.01; got {self.tolerance}."
            )
        limit = self.max_iterations
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InvalidArgument(f"max_iterations must be a positive integer; got {limit!r}.")

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """Return the projection if its gap is small; otherwise climb until the gap is small."""
        problem = _Problem.from_tally(mechanism, tally)
        best = problem.at(Projection().decode(mechanism, tally).frequencies)
        gap = problem.gap(best)
        iterations = 0
        if gap > self.tolerance:
            start = _interior_start(problem)
            top, iterations = _climb(problem, start, self.tolerance, self.max_iterations)
            top_gap = problem.gap(top)
            if problem.value(top) >= problem.value(best):
                best = top
                gap = top_gap
            else:
                # The gap of a point also holds for every point that is likelier.
                gap = min(gap, top_gap)
        details = {
            "gap": gap,
            "log_likelihood": problem.value(best),
            "iterations": iterations,
            "converged": gap <= self.tolerance,
        }
        return Decoded(best.p, details)


@dataclass(frozen=True, eq=False)
class _Point:
    """A distribution p, and q on the observed reports.

    Momentum may make entries of p negative, but not those of q.
    """

    p: Floats
    q: Floats

    def extrapolate(self, before: "_Point", factor: float) -> "_Point":
        """Continue on the line from ``before`` by this factor, or as far as q allows."""
        loss = before.q - self.q
        falling = loss > 0
        allowed = (1 - _MIN_LEFT) * self.q[falling] / loss[falling]
        factor = min(factor, float(allowed.min(initial=math.inf)))
        return _Point(self.p + factor * (self.p - before.p), self.q - factor * loss)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The likelihood of a tally, and the constraints on p."""

    mechanism: Mechanism
    observed: NDArray[np.intp]  # the reports that occurred, and that some symbol can send
    f: Floats  # their shares of all reports
    reports: int
    group_of: Symbols
    shares: Floats
    order: NDArray[np.intp]  # the symbols, group by group …
    first: NDArray[np.intp]  # … and where each group begins

    @classmethod
    def from_tally(cls, mechanism: Mechanism, tally: Tally) -> "_Problem":
        """Leave out reports that did not occur: ``0 log q = 0`` for every q."""
        group_of, shares = mechanism.scores.observed_shares(tally)
        possible = mechanism.forward(np.full(mechanism.inputs, 1 / mechanism.inputs)) > 0
        observed = np.flatnonzero((tally.counts > 0) & possible)
        f = tally.counts[observed] / tally.reports
        order = np.argsort(group_of, kind="stable")
        first = np.searchsorted(group_of[order], np.arange(shares.size))
        return cls(mechanism, observed, f, tally.reports, group_of, shares, order, first)

    def at(self, p: Floats) -> _Point:
        """Return p with its q."""
        return _Point(p, self.mechanism.forward(p)[self.observed])

    def value(self, point: _Point) -> float:
        """Return ``ℓ(p)``, −∞ if an observed report is impossible."""
        if (point.q <= 0).any():
            return -math.inf
        return self.reports * float(self.f @ np.log(point.q))

    def slope(self, point: _Point) -> Floats:
        """Return ``g = Q(f/q)``."""
        return self.mechanism.adjoint(self.spread(self.f / point.q))

    def spread(self, values: Floats) -> Floats:
        """Spread values of the observed reports over all reports, with 0 elsewhere."""
        spread = np.zeros(self.mechanism.outputs)
        spread[self.observed] = values
        return spread

    def gap(self, point: _Point) -> float:
        """Return the most by which the log-likelihood could still rise."""
        return math.inf if (point.q <= 0).any() else self.gap_from_slope(self.slope(point))

    def gap_from_slope(self, g: Floats) -> float:
        """Return the gap for this slope.

        If reports are left out, ``Σ_x p_x g_x`` is less than 1 by their share.
        """
        maxima = np.maximum.reduceat(g[self.order], self.first)
        gain = float(self.shares @ maxima - self.f.sum())
        return self.reports * max(gain, 0.0)

    def nearest(self, v: Floats, d: Floats) -> Floats:
        """Return the feasible p with the least ``Σ_x (p_x − v_x)²/d_x``."""
        return nearest_in_groups(v, self.group_of, self.shares, d)


def _interior_start(problem: _Problem) -> _Point:
    """Return a start under which every observed report is possible.

    It is p̂, projected in units of its own variances, spread a little, after two steps of EM. In
    these units the projection takes less from symbols that are known better. EM
    (``p_x ← p_x g_x``) restores the scale of an unrandomized symbol that was cut to 0 although its
    reports occurred.
    """
    mechanism = problem.mechanism
    group_of = problem.group_of
    groups = problem.shares.size
    sizes = np.bincount(group_of, minlength=groups)
    even = (problem.shares / np.maximum(sizes, 1))[group_of]
    f = problem.spread(problem.f)
    variances = np.maximum(mechanism.scores.moments(f, 2), even**2)
    p = problem.nearest(mechanism.scores.mean(f), variances)
    p = (1 - _EVEN_SHARE) * p + _EVEN_SHARE * even
    for _ in range(2):
        target = p * problem.slope(problem.at(p))
        totals = np.bincount(group_of, target, minlength=groups)
        scale = problem.shares / np.where(totals > 0, totals, 1.0)
        p = np.where((totals > 0)[group_of], target * scale[group_of], p)
    return problem.at(p)


def _climb(
    problem: _Problem, start: _Point, tolerance: float, max_iterations: int
) -> tuple[_Point, int]:
    """Climb by accelerated projected gradients until the gap is small.

    Return the last point and the number of iterations.
    """
    # d_x = Σ_y q(y) A[x, y]² at the start, which is at least p_x² because A inverts the channel.
    moments = problem.mechanism.scores.moments(problem.mechanism.forward(start.p), 2)
    d = np.maximum(moments, start.p**2)
    x = start
    y = start
    step = 1.0
    theta = 1.0
    for iteration in range(max_iterations):
        g = problem.slope(y)
        if problem.gap_from_slope(g) <= tolerance:
            # Momentum may leave the feasible set, so judge the nearest feasible p.
            feasible = problem.at(problem.nearest(y.p, d))
            if problem.gap(feasible) <= tolerance:
                return feasible, iteration
        ahead, step = _step(problem, y, g, d, step)
        if ahead is None:
            y = x
            theta = 1.0
            continue
        if _product(y.p - ahead.p, ahead.p - x.p, d) <= 0:  # still uphill: keep the momentum
            next_theta = 2 / (1 + math.sqrt(1 + 4 / theta**2))
            y = ahead.extrapolate(x, (1 / theta - 1) * next_theta)
            theta = next_theta
        else:
            y = ahead
            theta = 1.0
        x = ahead
        step *= _LENGTHEN
    return x, max_iterations


def _step(
    problem: _Problem, y: _Point, g: Floats, d: Floats, step: float
) -> tuple[_Point | None, float]:
    """Return the nearest feasible p to ``y + step · d g``, and the step, cut until short enough.

    A step is short enough if the quadratic that it relies on lies below ℓ. Return ``None`` if no
    step is: even the nearest feasible p to y makes an observed report impossible.
    """
    while step > np.finfo(np.float64).tiny:
        ahead = problem.at(problem.nearest(y.p + step * d * g, d))
        change = ahead.q / y.q - 1
        if (change > -1).all():
            curvature = float(problem.f @ (change - np.log1p(change)))
            move = ahead.p - y.p
            allowed = _product(move, move, d) / (2 * step) + np.finfo(np.float64).eps ** 2
            if curvature <= allowed:
                return ahead, step
        elif (y.p < 0).any():
            return None, step
        step /= _SHORTEN
    return None, 1.0


def _product(u: Floats, v: Floats, d: Floats) -> float:
    """Return ``Σ_x u_x v_x/d_x``; where d_x = 0 nothing moves."""
    return float(np.divide(u * v, d, out=np.zeros_like(d), where=d > 0).sum())
