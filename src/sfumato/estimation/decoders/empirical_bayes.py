"""Empirical Bayes: a crowd of noisy shares tells what shares are like, and that tells what each one probably is.

Symbols of a stratum (all of them, or those with a similar covariate) are taken to be exchangeable: their θ, in units
of their group's mean, come from one prior, fitted to the tally itself. Among all estimates a with the right total in
each group, the expected total variation ``½ Σ E|a_x − θ_x|`` is least where

    P(θ_x ≤ a_x | u_x) = level   with one level for all symbols of a group

(the derivative of ``E|a − θ|`` is ``2 P(θ ≤ a) − 1``, the same multiple of the total's for every x). So each group
gets the one level whose quantiles add up to its total.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidContext
from sfumato.estimation.decoders.decoder import Decoded
from sfumato.estimation.decoders.pools import Pools, pooled
from sfumato.estimation.decoders.prior import Prior, fitted_prior, quantiles
from sfumato.estimation.decoders.strata import WIDTHS, predicted_by_neighbours, strata_of
from sfumato.foundation.arrays import Floats
from sfumato.foundation.simplex import project_groups
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["EmpiricalBayes", "SpatialBayes", "checked_covariate"]

_BISECTIONS = 16
_FINE = 0.02  # width of bins of u, in units of s, within which posteriors are not told apart
_ERROR_STEP = 0.01
_POWER = 0.1
"""Of likelihoods, in weights of models. Cells are no independent draws, so likelihoods are far too sure of themselves:
models within some ten units of the best should share the weight. Fixed on simulated maps of towns."""
_NEGLIGIBLE = 0.02  # share of the weights below which a model is left out of the average
_FEW = 1 << 15  # symbols up to which every one has its own posterior


@dataclass(frozen=True, eq=False)
class EmpiricalBayes:
    """Shrinks every symbol as far as the crowd of all symbols says it should be shrunk.

    ``covariate`` is any public number for each symbol that might go with its share (a population, last month's
    estimate): symbols with similar ones are pooled, and nothing is assumed of how they go together. ``bags`` is how
    often the fit of the prior is repeated.
    """

    covariate: ArrayLike | None = None
    bags: int = 8
    name: ClassVar[str] = "empirical-bayes"

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """Posterior quantiles at one level for each group."""
        pools = pooled(mechanism, tally)
        if self.covariate is None:
            stratum_of = np.zeros(pools.u.size, dtype=np.int64)
        else:
            stratum_of = strata_of(
                checked_covariate(self.covariate, mechanism.inputs)[pools.pooled]
            )
        model = _model(pools, stratum_of, self.bags)
        return Decoded(_frequencies(pools, model), {"strata": len(model.strata)})


@dataclass(frozen=True)
class SpatialBayes:
    """Empirical Bayes in which a cell is pooled with cells whose neighbourhoods look like its own.

    For domains with neighbours (grids, H3). What the neighbours, without the cell itself, are taken for by plain
    empirical Bayes is a cell's covariate. How wide a neighbourhood is, and whether it tells anything at all, the
    tally decides: models are averaged by their evidence.
    """

    widths: tuple[float, ...] = WIDTHS
    name: ClassVar[str] = "spatial-bayes"

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """The average of posterior quantiles over models, by their weights."""
        pools, domain = pooled(mechanism, tally), mechanism.context.domain
        everybody = np.zeros(pools.u.size, dtype=np.int64)
        plain = _model(pools, everybody, 0)
        shares = np.zeros(mechanism.inputs)
        shares[pools.pooled] = plain.means(pools) * pools.means[pools.pooled]
        predictions = predicted_by_neighbours(domain, pools, shares, self.widths)
        models = {width: _model(pools, strata_of(predicted), 0) for width, predicted in predictions}
        weights = _weights({0.0: plain, **models})
        if (
            0.0 in weights
        ):  # a prior for everybody is bagged; strata are averaged over widths instead
            models[0.0] = _model(pools, everybody, EmpiricalBayes.bags)
        frequencies = np.sum(
            [weight * _frequencies(pools, models[width]) for width, weight in weights.items()],
            axis=0,
        )
        return Decoded(
            frequencies, {"widths": {width: round(weight, 3) for width, weight in weights.items()}}
        )


def _weights(models: dict[float, "_Model"]) -> dict[float, float]:
    """Shares by evidence, to a small power because no model is right; without those that are negligible."""
    best = max(model.evidence for model in models.values())
    found = {
        width: float(np.exp(_POWER * (model.evidence - best))) for width, model in models.items()
    }
    kept = {
        width: weight
        for width, weight in found.items()
        if weight > _NEGLIGIBLE * sum(found.values())
    }
    return {width: weight / sum(kept.values()) for width, weight in kept.items()}


def checked_covariate(covariate: ArrayLike, inputs: int) -> Floats:
    """A covariate as one finite number for each symbol."""
    values = np.asarray(covariate, dtype=np.float64)
    if values.shape != (inputs,) or not np.isfinite(values).all():
        raise InvalidContext(
            f"covariate must hold one finite number for each of the {inputs} symbols."
        )
    return values


@dataclass(frozen=True, eq=False)
class _Model:
    """The pooled symbols by strata, each with its prior."""

    stratum_of: NDArray[np.int64]
    strata: list["_Stratum"]

    @property
    def evidence(self) -> float:
        """The log-likelihood, less half the logarithm of a stratum's size for each of its parameters (Schwarz, 1978).

        A stratum is worth its own prior where that has another mean or another spread: two parameters each.
        """
        explained = sum(stratum.prior.log_likelihood for stratum in self.strata)
        return explained - sum(
            float(np.log(max(stratum.members.size, 1))) for stratum in self.strata
        )

    def means(self, pools: Pools) -> Floats:
        """The posterior mean of every pooled symbol."""
        theta = np.empty(pools.u.size)
        for stratum in self.strata:
            u, s = pools.u[stratum.members], pools.s[stratum.members]
            theta[stratum.members] = stratum.prior.posterior(u, s).means()
        return theta


@dataclass(frozen=True, eq=False)
class _Stratum:
    """Some of the pooled symbols, with their prior."""

    members: NDArray[np.int64]
    prior: Prior


def _model(pools: Pools, stratum_of: NDArray[np.int64], bags: int) -> _Model:
    strata = []
    for stratum in range(int(stratum_of.max(initial=-1)) + 1):
        members = np.flatnonzero(stratum_of == stratum)
        u, s = pools.u[members], pools.s[members]
        # All symbols together have mean 1 by definition; those of a stratum, what their unbiased estimates say.
        alone = members.size == stratum_of.size
        mean = 1.0 if alone else max(float((u / s**2).sum() / (1 / s**2).sum()), 1e-3)
        strata.append(
            _Stratum(
                members, fitted_prior(u, s, mean=mean, largest=float(pools.sizes.max()), bags=bags)
            )
        )
    return _Model(stratum_of, strata)


def _frequencies(pools: Pools, model: _Model) -> Floats:
    """The estimate of least expected total variation under a model."""
    frequencies = pools.unbiased.copy()
    if pools.u.size:
        frequencies[pools.pooled] = _levelled(pools, model) * pools.means[pools.pooled]
    return project_groups(frequencies, pools.group_of, pools.totals)


def _levelled(pools: Pools, model: _Model) -> Floats:
    """Quantiles at one level for each group, found by bisection on the group's total."""
    group, means = pools.group_of[pools.pooled], pools.means[pools.pooled]
    groups = pools.totals.size
    tables = [_table(pools, stratum) for stratum in model.strata]

    def at(level: Floats) -> tuple[Floats, Floats]:
        theta = np.empty(group.size)
        for stratum, (cumulated, rows) in zip(model.strata, tables, strict=True):
            levels = level[group[stratum.members]]
            theta[stratum.members] = quantiles(cumulated, rows, stratum.prior.values, levels)
        return theta, np.bincount(group, theta * means, minlength=groups).astype(np.float64)

    low, high = np.zeros(groups), np.ones(groups)
    for _ in range(_BISECTIONS):
        level = (low + high) / 2
        short = at(level)[1] < pools.totals
        low, high = np.where(short, level, low), np.where(short, high, level)
    # Quantiles may jump between two levels: what lies between them fits the total, and is as good as either.
    (below, least), (above, most) = at(low), at(high)
    part = np.clip((pools.totals - least) / np.where(most > least, most - least, 1.0), 0.0, 1.0)[
        group
    ]
    return (1 - part) * below + part * above


def _table(pools: Pools, stratum: _Stratum) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The posteriors that can be told apart, and which of them each member has."""
    u, s = pools.u[stratum.members], pools.s[stratum.members]
    rows: NDArray[np.int64] = np.arange(u.size)
    if u.size > _FEW:
        alike = np.rint(np.log(s) / _ERROR_STEP) + 1j * np.rint(u / s / _FINE)
        _, first, rows = np.unique(alike, return_index=True, return_inverse=True)
        u, s = u[first], s[first]
    return stratum.prior.posterior(u, s).cumulated(), rows.reshape(stratum.members.shape)
