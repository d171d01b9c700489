"""From posterior distributions to an estimate with known totals.

Among all estimates ``a`` with the correct total in each group, the expected total variation
``½ Σ E|a_x − θ_x|`` is smallest if

    P(θ_x ≤ a_x | reports) = level   with the same level for all members of a group,

because the derivative of ``E|a − θ|`` is ``2 P(θ ≤ a) − 1``, and at the minimum this derivative is
the same for every x in the group. So each group uses the level at which its quantiles add up to its
total.
"""

from typing import Protocol

import numpy as np

from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["Posterior", "combine_at_levels"]

_BISECTION_STEPS = 20


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
