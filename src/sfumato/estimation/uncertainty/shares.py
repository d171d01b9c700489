"""Shares inside a part of the domain: of the people in this block, how many are in this cell.

If a block is sent in clear, its reports are a sample of their own. For a balanced code the number
of them that lie in S_x is binomial for every distribution of the others, because everyone else in
the block hits S_x with the same probability:

    N(S_x) given N_j  ~  Binomial(N_j, q + ℓ [0 ∈ S_x] + Δ θ_x),      θ_x = p_x / p_j

So the interval of Clopper and Pearson for its success probability is an exact one for θ_x, at any
size. Codes that are not balanced, and other mechanisms, get the interval of ``intervals.py`` among
the block's reports.

If the part is not sent in clear, both p_x and the part's total are estimates. ``shares_within``
then finds the θ for which ``p̂_x − θ p̂_part`` is no further from 0 than chance allows (Fieller
1954). For symbols in clear, which are counts, it treats the ratio as a mean of scores, which it
nearly is. A part that may be empty bounds nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sfumato.domains import Label
from sfumato.estimation.uncertainty.boundary import boundary_bounds
from sfumato.estimation.uncertainty.intervals import (
    clopper_pearson,
    noisy_near_boundary,
    share_bounds,
    tail_probability,
)
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.mechanisms import Mechanism, ScoreMoments
from sfumato.tally import Tally

__all__ = ["Shares", "block_shares", "shares_within"]


@dataclass(frozen=True, eq=False)
class Shares:
    """The share of each label in a part of the domain, each with its own interval at ``level``.

    ``exact`` says where the interval covers at least that often for any number of reports.
    """

    labels: Sequence[Label]
    estimates: Floats
    low: Floats
    high: Floats
    exact: Booleans
    level: float


def block_shares(mechanism: Mechanism, tally: Tally, level: float) -> Shares:
    """Return every symbol's share of its own block, for blocks that are sent in clear.

    If nothing is sent in clear, all symbols are one block.
    """
    tail = tail_probability(level)
    group_of, totals = mechanism.scores.observed_shares(tally)
    share = totals[group_of]
    observed = share > 0
    among_all = ScoreMoments.of_symbols(mechanism.scores, tally.counts / tally.reports)
    moments = among_all.among(np.where(observed, share, 1.0))
    low, high = share_bounds(moments, np.maximum(np.rint(share * tally.reports), 1), tail)
    exact = _write_exact_bounds(mechanism, tally.counts, tail, low, high)
    # Nothing is known of a block without reports.
    low = np.where(observed, np.clip(low, 0, 1), 0.0)
    high = np.where(observed, np.clip(high, 0, 1), 1.0)
    estimates = np.where(observed, moments.first, np.nan)
    # A symbol alone in its block has all of it.
    alone = np.bincount(group_of)[group_of] == 1
    low[alone] = 1.0
    high[alone] = 1.0
    estimates[alone] = 1.0
    labels = mechanism.context.domain.labels
    return Shares(labels, estimates, low, high, exact | alone | ~observed, level)


def shares_within(mechanism: Mechanism, tally: Tally, part: Booleans, level: float) -> Shares:
    """Return the share of each symbol of ``part`` in the part's total.

    The interval is 0 to 1 if the total may be 0.
    """
    tail = tail_probability(level)
    ratio = _Ratio(mechanism, tally, part)
    size = int(part.sum())
    low = np.zeros(size)
    high = np.ones(size)
    estimates = ratio.estimates
    if size == 1:
        low = np.ones(1)
        estimates = np.ones(1)
    elif tally.reports > 1 and ratio.is_bounded(tail):
        low, high = ratio.bounds(tail)
    labels = mechanism.context.domain.labels
    part_labels = [labels[x] for x in np.flatnonzero(part).tolist()]
    return Shares(part_labels, estimates, low, high, np.full(size, size == 1), level)


def _write_exact_bounds(
    mechanism: Mechanism, counts: NDArray[np.int64], tail: float, low: Floats, high: Floats
) -> Booleans:
    """Write exact bounds to ``low`` and ``high`` where there are some, and return where."""
    binomial = mechanism.scores.hits(counts)
    known = binomial.known
    pi_low, pi_high = clopper_pearson(binomial.hits[known], binomial.trials[known], tail)
    base = binomial.base[known]
    contrast = binomial.contrast[known]
    low[known] = (pi_low - base) / contrast
    high[known] = (pi_high - base) / contrast
    return known


class _Ratio:
    """``θ_x = p̂_x / p̂_part`` for the symbols of a part.

    A are the scores of x, τ those of the part.
    """

    def __init__(self, mechanism: Mechanism, tally: Tally, part: Booleans) -> None:
        self.scores = mechanism.scores
        self.part = part
        self.n = tally.reports
        self.f = tally.counts / tally.reports
        self.tau = self.scores.totals(part.astype(np.float64))
        self.total = float(self.f @ self.tau)
        self.estimates = np.full(int(part.sum()), np.nan)
        if self.total > 0:
            self.estimates = self.scores.mean(self.f)[part] / self.total

    def is_bounded(self, tail: float) -> bool:
        """Return whether the part's total is certainly above 0."""
        if self.total <= 0:
            return False
        variance = float(self.f @ (self.tau - self.total) ** 2)
        relative_error = math.sqrt(variance / self.n) / max(self.total, 1e-300)
        return relative_error * -NormalDist().inv_cdf(tail) < 1

    def bounds(self, tail: float) -> tuple[Floats, Floats]:
        """Return Fieller's bounds for noisy symbols, and those of a mean of scores for counts.

        The latter know how lopsided a count is.
        """
        moments = self._linear_moments()
        near_zero, near_one = noisy_near_boundary(moments, self.n)
        fieller_low, fieller_high = self._fieller_bounds(tail)
        fieller_low, fieller_high = boundary_bounds(
            self.estimates, fieller_low, fieller_high, tail, near_zero, near_one
        )
        count_low, count_high = share_bounds(moments, self.n, tail)
        low = np.where(near_zero, fieller_low, count_low)
        high = np.where(near_zero, fieller_high, count_high)
        return low, high

    def _linear_moments(self) -> ScoreMoments:
        """Return the moments of ``θ̂ + (A − θ̂ τ)/p̂_part``.

        θ̂ is their mean, but for terms of second order in the error of the total.
        """
        f = self.f
        tau = self.tau
        part = self.part
        theta = self.estimates
        A = ScoreMoments.of_symbols(self.scores, f)
        # Σ_y f (A − θ̂ τ)² and Σ_y f (A − θ̂ τ)³, expanded
        second = A.second[part] - 2 * theta * self.scores.mean(f * tau)[part]
        second = second + theta**2 * float(f @ tau**2)
        third = A.third[part] - 3 * theta * self.scores.moments(f * tau, 2)[part]
        third = third + 3 * theta**2 * self.scores.mean(f * tau**2)[part]
        third = third - theta**3 * float(f @ tau**3)
        # (A − θ̂ τ)/p̂_part has mean 0; shift it by θ̂.
        second = second / self.total**2
        third = third / self.total**3
        tau_low, tau_high = np.sort([theta * tau.min(), theta * tau.max()], axis=0)
        return ScoreMoments(
            theta,
            second + theta**2,
            third + 3 * theta * second + theta**3,
            theta + (A.lowest[part] - tau_high) / self.total,
            theta + (A.highest[part] - tau_low) / self.total,
        )

    def _fieller_bounds(self, tail: float) -> tuple[Floats, Floats]:
        """Return all θ with ``(1 + t)(x − θ total)² ≤ t · mean square of A − θ τ``, t = z²/n."""
        t = NormalDist().inv_cdf(tail) ** 2 / self.n
        x = self.estimates * self.total
        a = (1 + t) * self.total**2 - t * float(self.f @ self.tau**2)
        b = (1 + t) * x * self.total - t * self.scores.mean(self.f * self.tau)[self.part]
        c = (1 + t) * x**2 - t * self.scores.moments(self.f, 2)[self.part]
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        return (b - root) / a, (b + root) / a
