"""From posterior distributions to an estimate with known totals.

Among all estimates ``a`` with the correct total in each group, the expected total variation
``½ Σ E|a_x − θ_x|`` is smallest if

    P(θ_x ≤ a_x | reports) = level   with the same level for all members of a group,

because the derivative of ``E|a − θ|`` is ``2 P(θ ≤ a) − 1``, and at the minimum this derivative is
the same for every x in the group. So each group uses the level at which its quantiles add up to its
total.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["MixedPosterior", "Posterior", "combine_at_levels"]

_BISECTION_STEPS = 20
_QUANTILE_COUNTS = (8, 32)  # the fewest and the most quantiles that represent a posterior
_MAX_ENTRIES = 2**24
_TINY = 1e-300


class Posterior(Protocol):
    """The distribution of every θ, given all reports."""

    def quantiles(self, levels: Floats) -> Floats:
        """Return the quantile of each θ, at the level given for it."""
        ...


def combine_at_levels(
    posterior: Posterior, group_of: Symbols, weights: Floats, totals: Floats
) -> Floats:
    """Return quantiles at one level for each group.

    ``totals[group]``: the sum of ``weights · θ`` over the members of the group.
    """

    def group_totals(theta: Floats) -> Floats:
        return np.bincount(group_of, theta * weights, minlength=totals.size).astype(np.float64)

    low = np.zeros(totals.size)
    high = np.ones(totals.size)
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        is_short = group_totals(posterior.quantiles(middle[group_of])) < totals
        low = np.where(is_short, middle, low)
        high = np.where(is_short, high, middle)
    # Quantiles may jump between the low and the high level. A mixture of the two estimates
    # matches the total and has the same expected error.
    low_theta = posterior.quantiles(low[group_of])
    high_theta = posterior.quantiles(high[group_of])
    low_totals = group_totals(low_theta)
    spans = group_totals(high_theta) - low_totals
    fractions = np.clip((totals - low_totals) / np.where(spans > 0, spans, 1.0), 0.0, 1.0)[group_of]
    return (1 - fractions) * low_theta + fractions * high_theta


@dataclass(frozen=True, eq=False)
class MixedPosterior:
    """A mixture of posteriors, each represented by some of its quantiles.

    ``theta[x]``: the quantiles of all posteriors at x, in ascending order.
    ``cumulative[x]``: the weights of these quantiles, added up to the middle of each.
    """

    theta: Floats
    cumulative: Floats

    @classmethod
    def mix(
        cls, posteriors: Sequence[Posterior], weights: Sequence[float], size: int
    ) -> "MixedPosterior":
        """Mix posteriors of ``size`` values."""
        count = int(np.clip(_MAX_ENTRIES // (size * len(posteriors)), *_QUANTILE_COUNTS))
        levels = (np.arange(count) + 0.5) / count
        columns: list[Floats] = []
        for posterior in posteriors:
            columns.extend(posterior.quantiles(np.full(size, level)) for level in levels)
        theta = np.column_stack(columns)
        order = np.argsort(theta, axis=1)
        w = np.repeat(weights, count) / count
        sorted_weights = w[order]
        cumulative = np.cumsum(sorted_weights, axis=1) - sorted_weights / 2
        return cls(np.take_along_axis(theta, order, axis=1), cumulative)

    def quantiles(self, levels: Floats) -> Floats:
        """Return the quantile of every θ, interpolated between those of its parts."""
        count_below = (self.cumulative < levels[:, None]).sum(axis=1)
        upper = np.clip(count_below, 1, self.theta.shape[1] - 1)
        rows = np.arange(levels.size)
        low = self.cumulative[rows, upper - 1]
        high = self.cumulative[rows, upper]
        part = np.clip((levels - low) / np.maximum(high - low, _TINY), 0.0, 1.0)
        theta = self.theta[rows, upper - 1]
        return theta + part * (self.theta[rows, upper] - theta)
