"""Empirical Bayes: all noisy shares together show what shares are like, and so what each one is.

Symbols of a stratum (all of them, or those with a similar covariate) are taken to be exchangeable:
their θ, in units of their group's mean, come from one prior, fitted to the tally itself. Among all
estimates a with the right total in each group, the expected total variation ``½ Σ E|a_x − θ_x|`` is
least where

    P(θ_x ≤ a_x | u_x) = level   with one level for all symbols of a group

(the derivative of ``E|a − θ|`` is ``2 P(θ ≤ a) − 1``, the same multiple of the total's for every
x). So each group gets the one level whose quantiles add up to its total.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domains import Domain, GridDomain, H3Domain
from sfumato.errors import ContextMismatch, InvalidArgument
from sfumato.estimation.decoders.decoder import Decoded, Pools
from sfumato.estimation.decoders.prior import Posterior, Prior, fit_prior, quantiles
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.foundation.simplex import project_groups
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = [
    "WIDTHS",
    "EmpiricalBayes",
    "SpatialBayes",
    "has_neighbours",
    "predict_from_neighbours",
    "stratify",
]

WIDTHS = (0.7, 1.4, 2.8)
"""Widths of neighbourhoods, in cells. The tally chooses among them."""

_BISECTIONS = 16
_BIN_WIDTH = 0.02  # of u, in units of s, within which symbols share a posterior
_ERROR_STEP = 0.01
_EVIDENCE_POWER = 0.1
"""Power of the likelihoods in the weights of models. Cells are not independent draws, so
likelihoods are far too certain: models within some ten units of the best should share the weight.
Tuned on simulated maps of towns."""
_MIN_WEIGHT = 0.02  # models with a smaller share of the weights are left out of the average
_MAX_OWN_POSTERIORS = 1 << 15  # up to this many symbols, each has a posterior of its own
_MIN_STRATUM = 500  # fewer symbols cannot show what a prior looks like
_MAX_STRATA = 12
_KERNEL_RADIUS = 2.5  # in widths: where the kernel on H3 cells is cut off
_MAX_PAIRS = 3e7  # of H3 cells: more are not worth their memory
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class EmpiricalBayes:
    """A decoder that shrinks every symbol as far as all symbols together suggest.

    ``covariate``: any public number for each symbol that might go with its share, such as a
    population or last month's estimate. Symbols with similar numbers are pooled; nothing is assumed
    about how the two go together.
    ``bags``: how often to repeat the fit of the prior on resampled observations.
    """

    covariate: ArrayLike | None = None
    bags: int = 8
    name: ClassVar[str] = "empirical-bayes"

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """Return posterior quantiles at one level for each group."""
        pools = Pools.from_tally(mechanism, tally)
        stratum_of: Symbols = np.zeros(pools.u.size, dtype=np.int64)
        if self.covariate is not None:
            covariate = _check_covariate(self.covariate, mechanism.inputs)
            stratum_of = stratify(covariate[pools.is_pooled])
        model = _Model.fit(pools, stratum_of, self.bags)
        return Decoded(model.frequencies(pools), {"strata": len(model.strata)})


@dataclass(frozen=True)
class SpatialBayes:
    """Empirical Bayes that pools each cell with cells whose neighbourhoods look like its own.

    It is for domains with neighbours (grids, H3). A cell's covariate is the plain empirical Bayes
    estimate of its neighbours, without the cell itself. The tally decides how wide a neighbourhood
    is, and whether it helps at all: models are averaged by their evidence.
    ``widths``: the widths of neighbourhoods to try, in cells.
    """

    widths: tuple[float, ...] = WIDTHS
    name: ClassVar[str] = "spatial-bayes"

    def decode(self, mechanism: Mechanism, tally: Tally) -> Decoded:
        """Return the average of posterior quantiles over models, by their weights."""
        pools = Pools.from_tally(mechanism, tally)
        one_stratum = np.zeros(pools.u.size, dtype=np.int64)
        plain = _Model.fit(pools, one_stratum, bags=0)
        shares = np.zeros(mechanism.inputs)
        shares[pools.is_pooled] = plain.means(pools) * pools.means[pools.is_pooled]
        models = {0.0: plain}
        domain = mechanism.context.domain
        for width, predictions in predict_from_neighbours(domain, pools, shares, self.widths):
            models[width] = _Model.fit(pools, stratify(predictions), bags=0)
        weights = _model_weights(models)
        if 0.0 in weights:
            # A prior for all symbols is bagged; strata are averaged over widths instead.
            models[0.0] = _Model.fit(pools, one_stratum, EmpiricalBayes.bags)
        frequencies = np.zeros(mechanism.inputs)
        rounded_weights = {}
        for width, weight in weights.items():
            frequencies += weight * models[width].frequencies(pools)
            rounded_weights[width] = round(weight, 3)
        return Decoded(frequencies, {"widths": rounded_weights})


def _check_covariate(covariate: ArrayLike, inputs: int) -> Floats:
    """Return a covariate as one finite number for each symbol."""
    values = np.asarray(covariate, dtype=np.float64)
    if values.shape != (inputs,) or not np.isfinite(values).all():
        raise InvalidArgument(
            f"covariate must contain one finite number for each of the {inputs} symbols."
        )
    return values


# --- models --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Stratum:
    """Some of the pooled symbols, with their prior."""

    members: Symbols
    prior: Prior


@dataclass(frozen=True, eq=False)
class _Model:
    """The pooled symbols by strata, each with its prior."""

    strata: list[_Stratum]

    @classmethod
    def fit(cls, pools: Pools, stratum_of: Symbols, bags: int) -> "_Model":
        """Fit a prior to each stratum."""
        largest = float(pools.sizes.max())
        strata = []
        for stratum in range(int(stratum_of.max(initial=-1)) + 1):
            members = np.flatnonzero(stratum_of == stratum)
            u = pools.u[members]
            s = pools.s[members]
            # All symbols together have mean 1 by definition; those of a stratum, the mean of their
            # unbiased estimates.
            mean = 1.0
            if members.size < stratum_of.size:
                mean = max(float((u / s**2).sum() / (1 / s**2).sum()), 1e-3)
            prior = fit_prior(u, s, mean=mean, largest=largest, bags=bags)
            strata.append(_Stratum(members, prior))
        return cls(strata)

    @property
    def evidence(self) -> float:
        """The log-likelihood, less a penalty for each stratum (Schwarz, 1978).

        The penalty is half the logarithm of the stratum's size for each of two parameters: a
        stratum deserves its own prior if that has another mean or another spread.
        """
        evidence = 0.0
        for stratum in self.strata:
            evidence += stratum.prior.log_likelihood - math.log(max(stratum.members.size, 1))
        return evidence

    def means(self, pools: Pools) -> Floats:
        """Return the posterior mean of every pooled symbol."""
        theta = np.empty(pools.u.size)
        for stratum in self.strata:
            members = stratum.members
            posterior = Posterior(stratum.prior, pools.u[members], pools.s[members])
            theta[members] = posterior.means()
        return theta

    def frequencies(self, pools: Pools) -> Floats:
        """Return the estimate of least expected total variation."""
        frequencies = pools.unbiased.copy()
        if pools.u.size:
            theta = self._level_quantiles(pools)
            frequencies[pools.is_pooled] = theta * pools.means[pools.is_pooled]
        return project_groups(frequencies, pools.group_of, pools.totals)

    def _level_quantiles(self, pools: Pools) -> Floats:
        """Return quantiles at one level for each group, found by bisection on the group's total."""
        group = pools.group_of[pools.is_pooled]
        means = pools.means[pools.is_pooled]
        groups = pools.totals.size
        tables = [_posterior_table(pools, stratum) for stratum in self.strata]

        def theta_at(level: Floats) -> Floats:
            theta = np.empty(group.size)
            for stratum, (cumulative, rows) in zip(self.strata, tables, strict=True):
                levels = level[group[stratum.members]]
                values = stratum.prior.values
                theta[stratum.members] = quantiles(cumulative, rows, values, levels)
            return theta

        def totals_of(theta: Floats) -> Floats:
            return np.bincount(group, theta * means, minlength=groups).astype(np.float64)

        low = np.zeros(groups)
        high = np.ones(groups)
        for _ in range(_BISECTIONS):
            level = (low + high) / 2
            too_small = totals_of(theta_at(level)) < pools.totals
            low = np.where(too_small, level, low)
            high = np.where(too_small, high, level)
        # Quantiles may jump between two levels. A mixture of both fits the total and is as good as
        # either.
        below = theta_at(low)
        above = theta_at(high)
        least = totals_of(below)
        most = totals_of(above)
        gap = np.where(most > least, most - least, 1.0)
        fraction = np.clip((pools.totals - least) / gap, 0.0, 1.0)[group]
        return (1 - fraction) * below + fraction * above


def _model_weights(models: dict[float, _Model]) -> dict[float, float]:
    """Return weights by evidence, without negligible ones.

    Evidence is taken to a small power because no model is right.
    """
    best = max(model.evidence for model in models.values())
    weights = {}
    for width, model in models.items():
        weights[width] = math.exp(_EVIDENCE_POWER * (model.evidence - best))
    least = _MIN_WEIGHT * sum(weights.values())
    weights = {width: weight for width, weight in weights.items() if weight > least}
    total = sum(weights.values())
    return {width: weight / total for width, weight in weights.items()}


def _posterior_table(pools: Pools, stratum: _Stratum) -> tuple[NDArray[np.float32], Symbols]:
    """Return the distinct cumulative posteriors, and the row of each member among them."""
    u = pools.u[stratum.members]
    s = pools.s[stratum.members]
    rows: Symbols = np.arange(u.size)
    if u.size > _MAX_OWN_POSTERIORS:
        bins = np.rint(np.log(s) / _ERROR_STEP) + 1j * np.rint(u / s / _BIN_WIDTH)
        _, first, rows = np.unique(bins, return_index=True, return_inverse=True)
        u = u[first]
        s = s[first]
    cumulative = Posterior(stratum.prior, u, s).cumulative()
    return cumulative, rows.reshape(stratum.members.shape)


# --- strata: symbols that a covariate, or their neighbours, suggest to be alike ------------------


def stratify(covariate: Floats) -> Symbols:
    """Return equally large strata in the order of a covariate; equal values stay together.

    >>> np.bincount(stratify(np.arange(1200.0))).tolist()
    [600, 600]
    """
    count = int(np.clip(covariate.size // _MIN_STRATUM, 1, _MAX_STRATA))
    edges = np.empty(0)
    if covariate.size:
        edges = np.quantile(covariate, np.arange(1, count) / count)
    strata = np.searchsorted(edges, covariate, side="right")
    _, numbers = np.unique(strata, return_inverse=True)
    return numbers.reshape(covariate.shape)


def has_neighbours(domain: Domain) -> bool:
    """Return whether the domain's symbols are cells of a map."""
    return isinstance(domain, GridDomain | H3Domain)


def predict_from_neighbours(
    domain: Domain, pools: Pools, shares: Floats, widths: Sequence[float]
) -> Iterator[tuple[float, Floats]]:
    """Yield each width with the pooled symbols' predictions from neighbourhoods of that width.

    A prediction is ``Σ_{x2 ≠ x} K(x, x2) share_x2 / Σ_{x2 ≠ x} K(x, x2)`` with a Gaussian K, in
    units of the group's mean. A cell's own share has no part in it.
    """
    used = pools.is_pooled
    if isinstance(domain, GridDomain):
        smooth_shares = _smooth_on_grid(domain, shares, used, widths)
    elif isinstance(domain, H3Domain):
        smooth_shares = _smooth_on_h3(domain, shares, used, widths)
    else:
        raise ContextMismatch(
            "this domain has no neighbours. Use the empirical-bayes decoder, perhaps with a "
            "covariate."
        )
    for width, predictions in smooth_shares:
        yield width, predictions[used] / pools.means[used]


def _smooth_on_grid(
    domain: GridDomain, values: Floats, used: Booleans, widths: Sequence[float]
) -> Iterator[tuple[float, Floats]]:
    """Smooth values on a grid, leaving out each cell's own value."""
    from scipy.ndimage import gaussian_filter

    cells = domain.cell_count
    mask = used[:cells].astype(np.float64).reshape(domain.shape)
    field = mask * values[:cells].reshape(domain.shape)
    for width in widths:
        # The filter's weight for the cell itself, from filtering a single 1.
        side = 2 * int(4 * width + 0.5) + 1
        impulse = np.zeros((side, side))
        impulse[side // 2, side // 2] = 1.0
        own = gaussian_filter(impulse, width, mode="constant").max()
        weights = gaussian_filter(mask, width, mode="constant") - own * mask
        sums = gaussian_filter(field, width, mode="constant") - own * field
        smooth = np.zeros(values.size)
        smooth[:cells] = (sums / np.maximum(weights, _TINY)).ravel()
        yield width, smooth


def _smooth_on_h3(
    domain: H3Domain, values: Floats, used: Booleans, widths: Sequence[float]
) -> Iterator[tuple[float, Floats]]:
    """Smooth values on H3 cells, which have no rows and columns, by distance on the sphere."""
    from scipy.sparse import csr_matrix
    from scipy.spatial import cKDTree

    latitudes, longitudes = np.radians(domain.centres())
    x = np.cos(latitudes) * np.cos(longitudes)
    y = np.cos(latitudes) * np.sin(longitudes)
    points = np.column_stack([x, y, np.sin(latitudes)])
    cells = len(points)
    tree = cKDTree(points)
    distances = np.asarray(tree.query(points, k=min(2, cells))[0]).reshape(cells, -1)
    spacing = float(np.median(distances[:, -1])) or 1.0
    mask = used[:cells].astype(np.float64)
    field = mask * values[:cells]
    for width in widths:
        radius = _KERNEL_RADIUS * width
        if cells * np.pi * radius**2 > _MAX_PAIRS:
            break
        pairs = tree.sparse_distance_matrix(tree, radius * spacing, output_type="coo_matrix")
        apart = pairs.row != pairs.col
        kernel = np.exp(-0.5 * (pairs.data[apart] / (width * spacing)) ** 2)
        K = csr_matrix((kernel, (pairs.row[apart], pairs.col[apart])), shape=(cells, cells))
        smooth = np.zeros(values.size)
        smooth[:cells] = (K @ field) / np.maximum(K @ mask, _TINY)
        yield width, smooth
