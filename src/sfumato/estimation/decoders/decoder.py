"""Decoders: from a tally to a distribution. Decoding costs no privacy.

A decoder is an object with a ``name`` and a ``decode``; those with parameters are dataclasses. To
add one, add a row to ``foundation/decoder_table.py``.

Decoders see symbols in pools: groups with their totals, and symbols as noisy shares of them. In a
group of k symbols and total τ, ``u_x = p̂_x k/τ`` is about Normal(θ_x, s_x²). Here θ_x is the share
of symbol x in multiples of the group's mean, and s_x follows from the mechanism's exact variances.
In these units you can compare symbols of different groups, crowded or empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from sfumato.contexts import finest_groups
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.foundation.simplex import nearest_in_groups, project_groups
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Decoded", "Decoder", "Pools", "Projection", "Unbiased"]

_MIN_SCALE = 1e-12  # of the largest scale, so that no symbol is fixed by a scale of 0

_NOISE_RATIO = 4.0
"""Symbols are pooled where randomising adds this many times the variance of drawing people. There
errors are normal and much the same for all symbols of a group. Elsewhere, as for unrandomized
symbols, a symbol's own count is the best estimate."""

_MIN_UNCERTAINTY = 0.05
"""Groups whose symbols are known to this share of their mean are left alone: there is little left
to gain, and a prior on a grid of values is too coarse for them."""


@dataclass(frozen=True, eq=False)
class Decoded:
    """Decoded frequencies, and ``details`` on how the decoder arrived at them (such as a gap)."""

    frequencies: Floats
    details: Mapping[str, object] = field(default_factory=dict)


class Decoder(Protocol):
    """A way to turn a tally into frequencies."""

    @property
    def name(self) -> str:
        """The name that results show."""
        ...

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """Return the frequencies that explain a tally of this mechanism's reports."""
        ...


@dataclass(frozen=True)
class Unbiased:
    """The unbiased estimate as it is: right on average, entries may be negative."""

    name: str = "unbiased"

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """Return ``p̂``."""
        return Decoded(mechanism.scores.unbiased(tally))


@dataclass(frozen=True)
class Projection:
    """The nearest distribution to the unbiased estimate, each block with its observed share.

    Distances are in units of the symbols' own errors, those that the mechanism would make if people
    were spread evenly inside groups: a symbol that is known well moves less than one that is known
    badly. If all symbols of a block are known equally well, this is Euclidean projection on the
    simplex, also known as Norm-Sub; ``simplex.py`` has the formula.
    """

    name: str = "projection"

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """Return ``p̂``, projected."""
        observed, shares = mechanism.scores.observed_shares(tally)
        pools = Pools.from_tally(mechanism, tally)
        scales = pools.errors**2
        if not scales.any():
            scales = np.ones_like(scales)
        scales = np.maximum(scales, _MIN_SCALE * scales.max())
        return Decoded(nearest_in_groups(pools.unbiased, observed, shares, scales))


@dataclass(frozen=True, eq=False)
class Pools:
    """The groups of symbols of a tally.

    ``group_of``: the group of each symbol.
    ``totals``: the share of each group among all reports.
    ``unbiased`` and ``errors``: the unbiased estimate and its standard errors, as shares of all.
    ``reports``: the number of reports in the tally.
    """

    group_of: Symbols
    totals: Floats
    unbiased: Floats
    errors: Floats
    reports: int

    @classmethod
    def from_tally(cls, mechanism: Mechanism, tally: Tally) -> "Pools":
        """Group symbols by the totals that the mechanism observes, and further by its context."""
        observed, shares = mechanism.scores.observed_shares(tally)
        unbiased = mechanism.scores.unbiased(tally)
        keys = np.column_stack([observed, finest_groups(mechanism.context)])
        distinct, group_of = np.unique(keys, axis=0, return_inverse=True)
        group_of = group_of.reshape(observed.shape)
        sums = np.bincount(group_of, unbiased, minlength=len(distinct)).astype(np.float64)
        totals = project_groups(sums, distinct[:, 0], shares)
        means = (totals / np.bincount(group_of))[group_of]
        variances = mechanism.scores.variances(means / means.sum(), tally.reports)
        errors = np.sqrt(np.maximum(variances, 0.0))
        return cls(group_of, totals, unbiased, errors, tally.reports)

    @cached_property
    def sizes(self) -> Floats:
        """The number of symbols of each group."""
        return np.bincount(self.group_of, minlength=self.totals.size).astype(np.float64)

    @cached_property
    def means(self) -> Floats:
        """``τ/k`` of each symbol's group."""
        return (self.totals / np.maximum(self.sizes, 1))[self.group_of]

    @cached_property
    def is_pooled(self) -> Booleans:
        """Whether each symbol's group is worth pooling.

        All symbols of a group are pooled or none, because only its total is known.
        """
        variances = np.bincount(self.group_of, self.errors**2, minlength=self.totals.size)
        nonempty = self.totals > 0
        has_peers = self.sizes > 1
        noise_dominates = variances > _NOISE_RATIO * self.totals / self.reports
        still_uncertain = variances * self.sizes > (_MIN_UNCERTAINTY * self.totals) ** 2
        worth_pooling = nonempty & has_peers & noise_dominates & still_uncertain
        return worth_pooling[self.group_of]

    @cached_property
    def u(self) -> Floats:
        """``p̂_x k/τ`` of the pooled symbols."""
        return self.unbiased[self.is_pooled] / self.means[self.is_pooled]

    @cached_property
    def s(self) -> Floats:
        """The standard errors of ``u``."""
        return self.errors[self.is_pooled] / self.means[self.is_pooled]
