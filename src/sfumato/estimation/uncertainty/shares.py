"""Shares inside a part of the domain: of the people in this block, how many are in this cell.

Where a block is sent in clear, its reports are a sample of their own. For a balanced code the number of them that lie
in S_x is then binomial whatever the others hold, since everybody else in the block hits S_x with the same probability:

    N(S_x) given N_j  ~  Binomial(N_j, q + ℓ [0 ∈ S_x] + Δ θ_x),      θ_x = p_x / p_j

so that the interval of Clopper and Pearson for its success probability is an exact one for θ_x, at any size. Codes that
are not balanced, and other mechanisms, have the interval of ``intervals.py`` among the block's reports.

Where the part is not sent in clear, both p_x and the part's total are estimates. ``shares_within`` then asks which θ
make ``p̂_x − θ p̂_part`` no further from 0 than chance allows (Fieller 1954). For symbols in clear, which are counts, it
takes the ratio for a mean of scores, which it nearly is. A part that may be empty bounds nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sfumato.domains import Label
from sfumato.estimation.uncertainty.boundary import bounds_beside_walls
from sfumato.estimation.uncertainty.intervals import (
    clopper_pearson,
    noisy_beside_walls,
    share_bounds,
    tail_of,
)
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.mechanisms import Mechanism, ScoreMoments
from sfumato.tally import Tally

__all__ = ["Shares", "block_shares", "shares_within"]


@dataclass(frozen=True, eq=False)
class Shares:
    """For each label its share of a part of the domain, each with an interval of its own at ``level``.

    ``exact`` says where the interval covers at least as often as it says whatever the number of reports.
    """

    labels: Sequence[Label]
    estimates: Floats
    low: Floats
    high: Floats
    exact: Booleans
    level: float


def block_shares(mechanism: Mechanism, tally: Tally, level: float) -> Shares:
    """Every symbol's share of its own block, for blocks that are sent in clear; all symbols if there are none."""
    group_of, totals = mechanism.scores.observed_shares(tally)
    share = totals[group_of]
    alone = np.bincount(group_of)[group_of] == 1
    tail = tail_of(level)
    seen = share > 0
    among_all = ScoreMoments.of_symbols(mechanism.scores, tally.counts / tally.reports)
    moments = among_all.among(np.where(seen, share, 1.0))
    low, high = share_bounds(moments, np.maximum(np.rint(share * tally.reports), 1), tail)
    exact = _exact_bounds(mechanism, tally.counts, tail, low, high)
    estimates = np.where(seen, moments.first, np.nan)
    # Of nobody anything may be said; of a block of one everything is known.
    low, high = np.where(seen, np.clip(low, 0, 1), 0.0), np.where(seen, np.clip(high, 0, 1), 1.0)
    low, high, estimates = (np.where(alone, 1.0, values) for values in (low, high, estimates))
    return Shares(
        mechanism.context.domain.labels, estimates, low, high, exact | alone | ~seen, level
    )


def _exact_bounds(
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


def shares_within(mechanism: Mechanism, tally: Tally, part: Booleans, level: float) -> Shares:
    """The share of each symbol of ``part`` in the part's total.

    Unbounded, that is 0 to 1, where the total is not known to be above 0.
    """
    tail, ratio = tail_of(level), _Ratio(mechanism, tally, part)
    low: Floats
    high: Floats
    size = int(part.sum())
    low, high, estimates = np.zeros(size), np.ones(size), ratio.estimates
    if size == 1:
        low, estimates = high, high
    elif (
        tally.reports > 1
        and ratio.total > 0
        and ratio.relative_error * -NormalDist().inv_cdf(tail) < 1
    ):
        low, high = ratio.bounds(tail)
    labels = mechanism.context.domain.labels
    named = [labels[int(symbol)] for symbol in np.flatnonzero(part)]
    return Shares(named, estimates, low, high, np.full(size, size == 1), level)


class _Ratio:
    """``θ_x = p̂_x / p̂_part`` for the symbols of a part, with the moments of both scores, A for x and τ for the part."""

    def __init__(self, mechanism: Mechanism, tally: Tally, part: Booleans) -> None:
        self.mechanism, self.part, self.n = mechanism, part, tally.reports
        self.f, self.tau = (
            tally.counts / tally.reports,
            mechanism.scores.totals(part.astype(np.float64)),
        )
        self.total = float(self.f @ self.tau)
        spread = float(self.f @ (self.tau - self.total) ** 2)
        self.relative_error = math.sqrt(spread / self.n) / max(self.total, 1e-300)
        x = mechanism.scores.mean(self.f)[part]
        self.estimates = x / self.total if self.total > 0 else np.full(x.shape, np.nan)

    def bounds(self, tail: float) -> tuple[Floats, Floats]:
        """Fieller's for symbols in noise; for counts the bounds of a mean of scores, which know how lopsided it is."""
        linear = self._linear_moments()
        noisy = noisy_beside_walls(linear, self.n)
        by_fieller = bounds_beside_walls(self.estimates, *self._fieller_bounds(tail), tail, *noisy)
        by_count = share_bounds(linear, self.n, tail)
        low, high = (np.where(noisy[0], *ends) for ends in zip(by_fieller, by_count, strict=True))
        return low, high

    def _linear_moments(self) -> ScoreMoments:
        """θ̂ is the mean of ``θ̂ + (A − θ̂ τ)/p̂_part``, but for terms of second order in the error of the total."""
        f, tau, part, theta = self.f, self.tau, self.part, self.estimates
        scores = self.mechanism.scores
        A = ScoreMoments.of_symbols(scores, f)
        second = (
            A.second[part] - 2 * theta * scores.mean(f * tau)[part] + theta**2 * float(f @ tau**2)
        )
        third = (
            A.third[part]
            - 3 * theta * scores.moments(f * tau, 2)[part]
            + 3 * theta**2 * scores.mean(f * tau**2)[part]
        )
        third = third - theta**3 * float(f @ tau**3)
        # (A − θ̂ τ)/p̂_part has mean 0; shifted by θ̂, its moments are:
        second, third = second / self.total**2, third / self.total**3
        ends = np.sort([theta * tau.min(), theta * tau.max()], axis=0)
        return ScoreMoments(
            theta,
            second + theta**2,
            third + 3 * theta * second + theta**3,
            theta + (A.lowest[part] - ends[1]) / self.total,
            theta + (A.highest[part] - ends[0]) / self.total,
        )

    def _fieller_bounds(self, tail: float) -> tuple[Floats, Floats]:
        """All θ with ``(1 + t)(x − θ total)² ≤ t · mean square of A − θ τ``, t = z²/n."""
        f, tau, part, total = self.f, self.tau, self.part, self.total
        x, t = self.estimates * total, NormalDist().inv_cdf(tail) ** 2 / self.n
        a = (1 + t) * total**2 - t * float(f @ tau**2)
        b = (1 + t) * x * total - t * self.mechanism.scores.mean(f * tau)[part]
        c = (1 + t) * x**2 - t * self.mechanism.scores.moments(f, 2)[part]
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        return (b - root) / a, (b + root) / a
