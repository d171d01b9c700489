"""Maximum likelihood: the distribution that makes the observed reports most likely.

Let f(y) be the share of report y among all n reports, and ``q = Qᵀp`` the probabilities of the
reports under p. Maximize

    ℓ(p) = n Σ_y f(y) log q(y)   over   p ≥ 0,  Σ_{x ∈ j} p_x = s_j for every group j.

The s_j are the group shares that are observed without noise: there is one group with share 1, or
one group for each block. ℓ is concave.

*The gap.* Let ``g = Q(f/q)``; then n g is the gradient of ℓ. For every feasible p*, because
``log t ≤ t − 1``,

    ℓ(p*) − ℓ(p) = n Σ_y f(y) log(q*(y)/q(y)) ≤ n Σ_y f(y) q*(y)/q(y) − n = n Σ_x p*_x g_x − n
                 ≤ n (Σ_j s_j max_{x ∈ j} g_x − 1) = n Σ_j s_j (max_{x ∈ j} g_x − 1).

The last expression is the *gap*. It does not depend on p*. It is never negative, because
``Σ_x p_x g_x = 1`` and a maximum is at least as large as a mean. It is 0 exactly where ℓ is
maximal: a gap of 0 is equivalent to the Karush–Kuhn–Tucker conditions.

*The algorithm* is accelerated projected gradient ascent (Nesterov 1983; Beck, Teboulle 2009) with
restarts (O'Donoghue, Candès 2015). It uses two transforms per step. The squared length of a vector
v is ``Σ_x v_x²/d_x``, where d_x is the second moment of the unbiased estimate of p_x from one
report. That estimate inverts the channel, so d approximates the diagonal of the inverse curvature,
and a step of length 1 approximates a Newton step. If the mechanism has as many outputs as symbols
and p̂ has no negative entry, the projection is p̂ itself. Then q = f, so p̂ already maximizes ℓ.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidArgument
from sfumato.estimation.decoders.decoder import DecoderResult, Projection
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.notebook import FieldsView
from sfumato.foundation.simplex import project_groups_weighted
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Likelihood"]

# Spread this fraction of the starting point evenly, so that every observed report is possible.
_EVEN_SHARE = 0.001
_STEP_SHRINKAGE = 1.5  # after a step that is too long, divide its length by this factor
_STEP_GROWTH = 1.05  # after a successful step, multiply its length by this factor
# Momentum must leave each report at least this fraction of its probability.
_MIN_REMAINING_FRACTION = 0.1


@dataclass(frozen=True)
class Likelihood(FieldsView):
    """The most likely distribution that gives each block its observed share.

    Guarantee: no such distribution has a log-likelihood that exceeds the result's by more than the
    ``gap`` in ``details``, and the result is at least as likely as the projection. ``converged`` is
    true if ``gap ≤ tolerance``, which holds unless the decoder reaches ``max_iterations`` first.
    The default tolerance is far below what data can resolve: an entry that is off by one standard
    error lowers the log-likelihood by about ½. Reports that no symbol can produce carry no
    information and are left out of the log-likelihood.

    Cost: two transforms per iteration. Decoding takes about 5 to 50 iterations, or a few hundred if
    different groups can produce the same reports. Memory: about twenty arrays the size of p or f.

    In this example, the café and the park are unrandomized. The café has a quarter as many reports
    as the park, and its share is a quarter of the park's. The projection subtracts the same amount
    from both.

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
    name: ClassVar[str] = "likelihood"

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < math.inf:
            raise InvalidArgument(
                f"tolerance must be positive and finite, such as 0.01; got {self.tolerance}."
            )
        iterations = self.max_iterations
        if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
            raise InvalidArgument(f"max_iterations must be a positive integer; got {iterations!r}.")

    def decode(self, mechanism: Mechanism, tally: Tally) -> DecoderResult:
        """Return the projection if its gap is within the tolerance, and otherwise maximize ℓ."""
        problem = _Problem.from_tally(mechanism, tally)
        best = problem.point_at(Projection().decode(mechanism, tally).frequencies)
        gap = problem.gap(best)
        iterations = 0
        if gap > self.tolerance:
            start = _interior_start(problem)
            candidate, iterations = _maximize(problem, start, self.tolerance, self.max_iterations)
            candidate_gap = problem.gap(candidate)
            if problem.log_likelihood(candidate) >= problem.log_likelihood(best):
                best = candidate
                gap = candidate_gap
            else:
                # The gap of a point is also valid for every point with a higher likelihood.
                gap = min(gap, candidate_gap)
        details = {
            "gap": gap,
            "log_likelihood": problem.log_likelihood(best),
            "iterations": iterations,
            "converged": gap <= self.tolerance,
        }
        return DecoderResult(best.p, details)


@dataclass(frozen=True, eq=False)
class _Point:
    """A vector p that adds up to 1, and the probabilities q of the observed reports under p.

    Momentum may make entries of p negative, but not those of q.
    """

    p: Floats
    q: Floats

    def extrapolate(self, previous: "_Point", factor: float) -> "_Point":
        """Return this point plus ``factor`` times the change since ``previous``.

        If that would make an entry of q too small, use the largest factor that does not.
        """
        decrease = previous.q - self.q
        mask = decrease > 0
        max_factors = (1 - _MIN_REMAINING_FRACTION) * self.q[mask] / decrease[mask]
        factor = min(factor, float(max_factors.min(initial=math.inf)))
        return _Point(self.p + factor * (self.p - previous.p), self.q - factor * decrease)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The likelihood function of a tally, and the constraints on p."""

    mechanism: Mechanism
    observed: NDArray[np.intp]  # the reports that occurred and that some symbol can produce
    f: Floats  # the share of each observed report among all reports
    report_count: int
    group_of: Symbols
    shares: Floats
    sorted_symbols: NDArray[np.intp]  # the symbols, sorted by group
    group_starts: NDArray[np.intp]  # the start of each group in ``sorted_symbols``

    @classmethod
    def from_tally(cls, mechanism: Mechanism, tally: Tally) -> "_Problem":
        """Build the problem from the observed reports.

        Omit reports that did not occur, which add ``0 log q = 0`` to ℓ, and reports that no symbol
        can produce.
        """
        group_of, shares = mechanism.scores.observed_shares(tally)
        can_be_sent = mechanism.forward(np.full(mechanism.inputs, 1 / mechanism.inputs)) > 0
        observed = np.flatnonzero((tally.counts > 0) & can_be_sent)
        f = tally.counts[observed] / tally.reports
        sorted_symbols = np.argsort(group_of, kind="stable")
        group_starts = np.searchsorted(group_of[sorted_symbols], np.arange(shares.size))
        return cls(
            mechanism, observed, f, tally.reports, group_of, shares, sorted_symbols, group_starts
        )

    def point_at(self, p: Floats) -> _Point:
        """Compute q for this p, and return both as a point."""
        return _Point(p, self.mechanism.forward(p)[self.observed])

    def log_likelihood(self, point: _Point) -> float:
        """Return ``ℓ(p)``, or −∞ if an observed report is impossible under p."""
        if (point.q <= 0).any():
            return -math.inf
        return self.report_count * float(self.f @ np.log(point.q))

    def mean_gradient(self, point: _Point) -> Floats:
        """Return ``g = Q(f/q)``, the gradient of ℓ divided by n."""
        return self.mechanism.adjoint(self.expand(self.f / point.q))

    def expand(self, values: Floats) -> Floats:
        """Expand values for the observed reports to all reports, with 0 elsewhere."""
        expanded = np.zeros(self.mechanism.outputs)
        expanded[self.observed] = values
        return expanded

    def gap(self, point: _Point) -> float:
        """Return a bound on how much the log-likelihood can still increase."""
        if (point.q <= 0).any():
            return math.inf
        return self.gap_from_gradient(self.mean_gradient(point))

    def gap_from_gradient(self, g: Floats) -> float:
        """Return the gap of a point, given ``g`` at that point.

        If impossible reports are left out, the 1 in the formula at the top of this file is replaced
        with ``Σ_y f(y)``.
        """
        maxima = np.maximum.reduceat(g[self.sorted_symbols], self.group_starts)
        gap_per_report = float(self.shares @ maxima - self.f.sum())
        return self.report_count * max(gap_per_report, 0.0)

    def nearest(self, v: Floats, d: Floats) -> Floats:
        """Return the feasible p that minimizes ``Σ_x (p_x − v_x)²/d_x``."""
        return project_groups_weighted(v, self.group_of, self.shares, d)


def _interior_start(problem: _Problem) -> _Point:
    """Return a starting point that makes every observed report possible.

    Project p̂ with each symbol's squared distance divided by the second moment of its scores, so
    that symbols with less noise move less. Then mix in an even distribution, and take two EM steps.
    EM (``p_x ← p_x g_x``) restores unrandomized symbols that the projection set to 0 although their
    reports occurred.
    """
    mechanism = problem.mechanism
    group_of = problem.group_of
    group_count = problem.shares.size
    sizes = np.bincount(group_of, minlength=group_count)
    even = (problem.shares / np.maximum(sizes, 1))[group_of]
    f = problem.expand(problem.f)
    second_moments = np.maximum(mechanism.scores.moments(f, 2), even**2)
    p = problem.nearest(mechanism.scores.mean(f), second_moments)
    p = (1 - _EVEN_SHARE) * p + _EVEN_SHARE * even
    for _ in range(2):
        updated = p * problem.mean_gradient(problem.point_at(p))
        totals = np.bincount(group_of, updated, minlength=group_count)
        scale = problem.shares / np.where(totals > 0, totals, 1.0)
        p = np.where((totals > 0)[group_of], updated * scale[group_of], p)
    return problem.point_at(p)


def _maximize(
    problem: _Problem, start: _Point, tolerance: float, max_iterations: int
) -> tuple[_Point, int]:
    """Run accelerated projected gradient ascent until the gap is at most ``tolerance``.

    Return the last point and the number of iterations, which is at most ``max_iterations``.
    """
    # d_x = Σ_y q(y) A[x, y]² at the start, which is at least p_x² because A inverts the channel.
    moments = problem.mechanism.scores.moments(problem.mechanism.forward(start.p), 2)
    d = np.maximum(moments, start.p**2)
    current = start
    lookahead = start  # the current point, moved forward by momentum
    step_length = 1.0
    theta = 1.0
    for iteration in range(max_iterations):
        g = problem.mean_gradient(lookahead)
        if problem.gap_from_gradient(g) <= tolerance:
            # Momentum may leave the feasible set, so check the nearest feasible p.
            feasible = problem.point_at(problem.nearest(lookahead.p, d))
            if problem.gap(feasible) <= tolerance:
                return feasible, iteration
        next_point, step_length = _take_step(problem, lookahead, g, d, step_length)
        if next_point is None:
            lookahead = current
            theta = 1.0
            continue
        # Keep the momentum while it leads uphill.
        if _inner_product(lookahead.p - next_point.p, next_point.p - current.p, d) <= 0:
            next_theta = 2 / (1 + math.sqrt(1 + 4 / theta**2))
            lookahead = next_point.extrapolate(current, (1 / theta - 1) * next_theta)
            theta = next_theta
        else:
            lookahead = next_point
            theta = 1.0
        current = next_point
        step_length *= _STEP_GROWTH
    return current, max_iterations


def _take_step(
    problem: _Problem, origin: _Point, g: Floats, d: Floats, step_length: float
) -> tuple[_Point | None, float]:
    """Return the feasible point nearest to ``origin + step_length · d g``, and the step length.

    Shorten the step until its quadratic model is a lower bound on ℓ. Return ``None`` instead of a
    point if no step is short enough, or if ``origin`` is not feasible and the nearest feasible
    point makes an observed report impossible.
    """
    while step_length > np.finfo(np.float64).tiny:
        candidate = problem.point_at(problem.nearest(origin.p + step_length * d * g, d))
        relative_change = candidate.q / origin.q - 1
        if (relative_change > -1).all():
            curvature = float(problem.f @ (relative_change - np.log1p(relative_change)))
            move = candidate.p - origin.p
            max_curvature = _inner_product(move, move, d) / (2 * step_length)
            max_curvature += np.finfo(np.float64).eps ** 2
            if curvature <= max_curvature:
                return candidate, step_length
        elif (origin.p < 0).any():
            return None, step_length
        step_length /= _STEP_SHRINKAGE
    return None, 1.0


def _inner_product(u: Floats, v: Floats, d: Floats) -> float:
    """Return ``Σ_x u_x v_x/d_x``, omitting terms with d_x = 0, because those symbols never move."""
    return float(np.divide(u * v, d, out=np.zeros_like(d), where=d > 0).sum())
