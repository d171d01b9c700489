"""Empirical Bayes: learn a prior from all noisy shares, and use it to estimate each share.

The symbols of a stratum (all symbols, or those with a similar covariate) are assumed to be
exchangeable: their θ, in units of their group's mean, come from one prior, which is fitted to the
tally itself. ``levels.py`` makes an estimate of their posterior distributions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato.estimation.decoders.decoder import DecoderResult, Pools, check_covariate
from sfumato.estimation.decoders.levels import Posterior, combine_at_levels
from sfumato.estimation.decoders.prior import Prior, fit_prior
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.notebook import FieldsView
from sfumato.foundation.simplex import project_groups
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["EmpiricalBayes", "stratify"]

_MIN_STRATUM_SIZE = 500  # a prior cannot be estimated well from fewer symbols
_MAX_STRATA = 12


@dataclass(frozen=True, eq=False)
class EmpiricalBayes(FieldsView):
    """A decoder that shrinks noisy shares towards a prior learned from all symbols.

    ``covariate``: a public number for each symbol that may be related to its share, such as a
    population or last month's estimate. Symbols with similar numbers are pooled; no particular
    relationship is assumed.
    ``bag_count``: how many times to refit the prior to resampled observations.
    """

    covariate: ArrayLike | None = None
    bag_count: int = 8
    name: ClassVar[str] = "empirical-bayes"

    def decode(self, mechanism: Mechanism, tally: Tally) -> DecoderResult:
        """Return posterior quantiles, at the same level for all symbols of a group."""
        pools = Pools.from_tally(mechanism, tally)
        stratum_of: Symbols = np.zeros(pools.u.size, dtype=np.int64)
        if self.covariate is not None:
            covariate = check_covariate(self.covariate, mechanism.inputs, "covariate")
            stratum_of = stratify(covariate[pools.pooling_mask])
        model = _Model.fit(pools, stratum_of, self.bag_count)
        return DecoderResult(model.estimate_frequencies(pools), {"strata": len(model.strata)})


# --- models --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Stratum:
    """A subset of the pooled symbols, with its prior."""

    members: Symbols
    prior: Prior


@dataclass(frozen=True, eq=False)
class _Model:
    """The pooled symbols, divided into strata."""

    strata: list[_Stratum]

    @classmethod
    def fit(cls, pools: Pools, stratum_of: Symbols, bag_count: int) -> "_Model":
        """Fit a prior to each stratum."""
        max_theta = float(pools.sizes.max())  # for a symbol with all of the largest group's share
        strata = []
        for index in range(int(stratum_of.max(initial=-1)) + 1):
            members = np.flatnonzero(stratum_of == index)
            u = pools.u[members]
            s = pools.s[members]
            # The mean over all symbols is 1 by definition. If there are several strata, use the
            # weighted mean of the stratum's unbiased estimates.
            mean = 1.0
            if members.size < stratum_of.size:
                mean = max(float((u / s**2).sum() / (1 / s**2).sum()), 1e-3)
            prior = fit_prior(u, s, mean=mean, max_theta=max_theta, bag_count=bag_count)
            strata.append(_Stratum(members, prior))
        return cls(strata)

    def estimate_frequencies(self, pools: Pools) -> Floats:
        """Return the estimate with the smallest expected total variation."""
        frequencies = pools.unbiased.copy()
        if pools.u.size:
            theta = self._level_quantiles(pools)
            frequencies[pools.pooling_mask] = theta * pools.means[pools.pooling_mask]
        return project_groups(frequencies, pools.group_of, pools.totals)

    def _level_quantiles(self, pools: Pools) -> Floats:
        posterior = _StratifiedPosterior.from_strata(self.strata, pools)
        group_of = pools.group_of[pools.pooling_mask]
        means = pools.means[pools.pooling_mask]
        return combine_at_levels(posterior, group_of, means, pools.totals)


@dataclass(frozen=True, eq=False)
class _StratifiedPosterior:
    """The posteriors of the members of each stratum."""

    parts: Sequence[tuple[Symbols, Posterior]]

    @classmethod
    def from_strata(cls, strata: list[_Stratum], pools: Pools) -> "_StratifiedPosterior":
        parts = []
        for stratum in strata:
            u = pools.u[stratum.members]
            s = pools.s[stratum.members]
            parts.append((stratum.members, stratum.prior.posterior(u, s)))
        return cls(parts)

    def quantiles(self, levels: Floats) -> Floats:
        theta = np.empty(levels.size)
        for members, posterior in self.parts:
            theta[members] = posterior.quantiles(levels[members])
        return theta


# --- strata: symbols that have similar covariates -------------------------------------------------


def stratify(covariate: Floats) -> Symbols:
    """Divide symbols into strata by covariate, and return the stratum of each symbol.

    Strata have about the same size. Symbols with equal covariates are in the same stratum.

    >>> np.bincount(stratify(np.arange(1200.0))).tolist()
    [600, 600]
    """
    stratum_count = int(np.clip(covariate.size // _MIN_STRATUM_SIZE, 1, _MAX_STRATA))
    edges = np.empty(0)
    if covariate.size:
        edges = np.quantile(covariate, np.arange(1, stratum_count) / stratum_count)
    strata = np.searchsorted(edges, covariate, side="right")
    _, stratum_of = np.unique(strata, return_inverse=True)
    return stratum_of.reshape(covariate.shape)
