"""Symbols pooled for shrinkage: each group with its total, each symbol as a noisy share of its group.

In a group of k symbols and total τ, ``u_x = p̂_x k/τ`` is about Normal(θ_x, s_x²): θ_x is how many times the group's
mean symbol x is, and s_x follows from the mechanism's exact variances. In these units symbols of different groups,
crowded or empty, can be compared.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.contexts import finest_groups
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.foundation.simplex import project_groups
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Pools", "pooled"]

_DROWNED = 4.0
"""Symbols are pooled where randomising adds this many times the variance of drawing people: there errors are normal and
much the same for all symbols of a group. Elsewhere, as for symbols sent in clear, a symbol's own count says it best."""

_WELL_KNOWN = 0.05
"""Groups whose symbols are known to this share of their mean are left alone: there is little left to win, and a prior
on a grid of values is too coarse for them."""


@dataclass(frozen=True, eq=False)
class Pools:
    """The groups of symbols of a tally; ``unbiased`` and ``errors`` are in shares of everybody."""

    group_of: Symbols
    totals: Floats
    unbiased: Floats
    errors: Floats
    reports: int

    @cached_property
    def sizes(self) -> Floats:
        """The number of symbols of each group."""
        return np.bincount(self.group_of, minlength=self.totals.size).astype(np.float64)

    @cached_property
    def means(self) -> Floats:
        """``τ/k`` of each symbol's group."""
        return (self.totals / np.maximum(self.sizes, 1))[self.group_of]

    @cached_property
    def pooled(self) -> Booleans:
        """The symbols of groups that are worth pooling; a group is pooled as a whole, for its total is known."""
        variances = np.bincount(self.group_of, self.errors**2, minlength=self.totals.size)
        drowned = variances > _DROWNED * self.totals / self.reports
        open_still = variances * self.sizes > (_WELL_KNOWN * self.totals) ** 2
        return ((self.totals > 0) & (self.sizes > 1) & drowned & open_still)[self.group_of]

    @cached_property
    def u(self) -> Floats:
        """``p̂_x k/τ`` of the pooled symbols."""
        return self.unbiased[self.pooled] / self.means[self.pooled]

    @cached_property
    def s(self) -> Floats:
        """The errors of ``u``."""
        return self.errors[self.pooled] / self.means[self.pooled]


def pooled(mechanism: Mechanism, tally: Tally) -> Pools:
    """The groups of a mechanism: those whose totals it observes, split further where its context has groups."""
    observed, shares = mechanism.scores.observed_shares(tally)
    unbiased = mechanism.scores.unbiased(tally)
    cells = np.column_stack([observed, finest_groups(mechanism.context)])
    distinct, group_of = np.unique(cells, axis=0, return_inverse=True)
    group_of = group_of.reshape(observed.shape)
    sums = np.bincount(group_of, unbiased, minlength=len(distinct)).astype(np.float64)
    totals = project_groups(sums, distinct[:, 0], shares)
    means = (totals / np.bincount(group_of))[group_of]
    errors = np.sqrt(
        np.maximum(mechanism.scores.variances(means / means.sum(), tally.reports), 0.0)
    )
    return Pools(group_of, totals, unbiased, errors, tally.reports)
