"""Decoders turn a tally into a distribution. Decoding has no privacy cost.

A decoder is a frozen dataclass with a ``name`` and a ``decode`` method; its fields are its
parameters. To add a decoder, add a row to ``foundation/decoder_table.py``.

Some decoders pool the symbols of a group. In a group of k symbols with total share τ,
``u_x = p̂_x k/τ`` is approximately Normal(θ_x, s_x²). Here θ_x is the share of symbol x divided by
the group's mean share, and s_x follows from the mechanism's exact variances. These units make
symbols from different groups comparable, regardless of the groups' totals.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts import finest_groups
from sfumato.errors import InvalidArgument
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.foundation.notebook import FieldsView
from sfumato.foundation.numpy_values import require_unmasked
from sfumato.foundation.simplex import project_groups, project_groups_weighted
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Decoder", "DecoderResult", "Pools", "Projection", "Unbiased", "check_covariate"]

_MIN_SCALE = 1e-12  # relative to the largest scale; a scale of 0 would freeze a symbol's share

_MIN_NOISE_RATIO = 4.0
"""Pool a group only if its total variance, from sampling and randomization, is more than this many
times its sampling variance. The errors are then nearly normal, and similar for all symbols of the
group. Otherwise, as for unrandomized symbols, a symbol's own count is the best estimate."""

_MIN_RELATIVE_ERROR = 0.05
"""Do not pool groups whose relative error is smaller than this: there is little to gain."""


@dataclass(frozen=True, eq=False)
class DecoderResult(FieldsView):
    """Decoded frequencies, and ``details`` about how the decoder arrived at them.

    A decoder that averages models may put their weights in ``details["models"]``, by title.
    ``Estimate.model_summary`` shows them.
    """

    frequencies: Floats
    details: Mapping[str, object] = field(default_factory=dict)


class Decoder(Protocol):
    """An object that turns a tally into frequencies."""

    @property
    def name(self) -> str:
        """The name shown in results."""
        ...

    def decode(self, mechanism: Mechanism, tally: Tally) -> DecoderResult:
        """Estimate the frequencies behind a tally of this mechanism's reports."""
        ...


def check_covariate(covariate: ArrayLike, inputs: int, name: str) -> Floats:
    """Return one number for each symbol as an array; raise ``InvalidArgument`` for others."""
    require_unmasked(covariate, name, InvalidArgument)
    values = np.asarray(covariate, dtype=np.float64)
    if values.shape != (inputs,) or not np.isfinite(values).all():
        raise InvalidArgument(
            f"{name} must contain one finite number for each of the {inputs} symbols."
        )
    return values


@dataclass(frozen=True)
class Unbiased(FieldsView):
    """The unbiased estimate, unchanged: correct on average, but entries may be negative."""

    name: ClassVar[str] = "unbiased"

    def decode(self, mechanism: Mechanism, tally: Tally) -> DecoderResult:
        """Return the unbiased estimate ``p̂``."""
        return DecoderResult(mechanism.scores.unbiased(tally))


@dataclass(frozen=True)
class Projection(FieldsView):
    """Among all distributions with the observed block shares, the closest to the unbiased estimate.

    Distances are in units of each symbol's standard error, computed as if people were spread evenly
    within groups, so symbols with smaller errors move less. If all symbols of a block have the same
    error, this is Euclidean projection onto the simplex, also known as Norm-Sub. See ``simplex.py``
    for the formula.
    """

    name: ClassVar[str] = "projection"

    def decode(self, mechanism: Mechanism, tally: Tally) -> DecoderResult:
        """Return the projection of ``p̂``."""
        observed_groups, shares = mechanism.scores.observed_shares(tally)
        pools = Pools.from_tally(mechanism, tally)
        scales = pools.errors**2
        if not scales.any():
            scales = np.ones_like(scales)
        scales = np.maximum(scales, _MIN_SCALE * scales.max())
        return DecoderResult(
            project_groups_weighted(pools.unbiased, observed_groups, shares, scales)
        )


@dataclass(frozen=True, eq=False)
class Pools:
    """The estimates from a tally, with the symbols arranged in groups for pooling.

    ``group_of``: the group of each symbol.
    ``totals``: the total share of each group.
    ``unbiased``, ``errors``: the unbiased estimate and its standard errors.
    ``report_count``: the number of reports in the tally.
    """

    group_of: Symbols
    totals: Floats
    unbiased: Floats
    errors: Floats
    report_count: int

    @classmethod
    def from_tally(cls, mechanism: Mechanism, tally: Tally) -> "Pools":
        """Group symbols by observed block, subdivided by the context's finest groups."""
        observed_groups, shares = mechanism.scores.observed_shares(tally)
        unbiased = mechanism.scores.unbiased(tally)
        keys = np.column_stack([observed_groups, finest_groups(mechanism.context)])
        distinct_keys, group_of = np.unique(keys, axis=0, return_inverse=True)
        group_of = group_of.reshape(observed_groups.shape)
        sums = np.bincount(group_of, unbiased, minlength=len(distinct_keys)).astype(np.float64)
        totals = project_groups(sums, distinct_keys[:, 0], shares)
        means = (totals / np.bincount(group_of))[group_of]
        variances = mechanism.scores.variances(means / means.sum(), tally.reports)
        errors = np.sqrt(np.maximum(variances, 0.0))
        return cls(group_of, totals, unbiased, errors, tally.reports)

    @cached_property
    def sizes(self) -> Floats:
        """The number of symbols in each group."""
        return np.bincount(self.group_of, minlength=self.totals.size).astype(np.float64)

    @cached_property
    def means(self) -> Floats:
        """The mean share ``τ/k`` of each symbol's group."""
        return (self.totals / np.maximum(self.sizes, 1))[self.group_of]

    @cached_property
    def pooling_mask(self) -> Booleans:
        """A mask of the symbols whose group is worth pooling.

        A group is pooled either completely or not at all, because only its total is known.
        """
        variances = np.bincount(self.group_of, self.errors**2, minlength=self.totals.size)
        nonempty = self.totals > 0
        has_peers = self.sizes > 1
        noise_dominates = variances > _MIN_NOISE_RATIO * self.totals / self.report_count
        still_uncertain = variances * self.sizes > (_MIN_RELATIVE_ERROR * self.totals) ** 2
        worth_pooling = nonempty & has_peers & noise_dominates & still_uncertain
        return worth_pooling[self.group_of]

    @cached_property
    def u(self) -> Floats:
        """``p̂_x k/τ`` for the pooled symbols."""
        return self.unbiased[self.pooling_mask] / self.means[self.pooling_mask]

    @cached_property
    def s(self) -> Floats:
        """The standard errors of ``u``."""
        return self.errors[self.pooling_mask] / self.means[self.pooling_mask]
