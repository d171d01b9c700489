"""Empirical Bayes: learn a prior from all noisy shares, and use it to estimate each share.

The symbols of a stratum (all symbols, or those with a similar covariate) are assumed to be
exchangeable: their θ, in units of their group's mean, come from one prior, which is fitted to the
tally itself. Among all estimates ``a`` with the correct total in each group, the expected total
variation ``½ Σ E|a_x − θ_x|`` is smallest if

    P(θ_x ≤ a_x | u_x) = level   with the same level for all symbols of a group,

because the derivative of ``E|a − θ|`` is ``2 P(θ ≤ a) − 1``, and at the minimum this derivative is
the same for every x in the group. So each group uses the level at which its quantiles add up to its
total.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domains import Domain, GridDomain, H3Domain
from sfumato.errors import ContextMismatch, InvalidArgument
from sfumato.estimation.decoders.decoder import DecoderResult, Pools
from sfumato.estimation.decoders.prior import Posterior, Prior, fit_prior, posterior_quantiles
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.foundation.notebook import FieldsView
from sfumato.foundation.numpy_values import require_unmasked
from sfumato.foundation.simplex import project_groups
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = [
    "DEFAULT_WIDTHS",
    "EmpiricalBayes",
    "SpatialBayes",
    "has_neighbours",
    "predict_from_neighbours",
    "stratify",
]

DEFAULT_WIDTHS = (0.7, 1.4, 2.8)
"""The neighbourhood widths to try by default, in cells. The tally determines their weights."""

_BISECTION_STEPS = 16
_U_BIN_WIDTH = 0.02  # bin width of u, in units of s; symbols in a bin share a posterior
_S_BIN_WIDTH = 0.01  # relative bin width of s
_EVIDENCE_POWER = 0.1
"""Exponent of the likelihood in model weights. Cells are not independent draws, so likelihoods are
overconfident: models within about ten log units of the best should share the weight. Tuned on
simulated maps of towns."""
_MIN_WEIGHT = 0.02  # models with a smaller fraction of the total weight are ignored
_MAX_SEPARATE_POSTERIORS = 1 << 15  # up to this many symbols, each has its own posterior
_MIN_STRATUM_SIZE = 500  # a prior cannot be estimated well from fewer symbols
_MAX_STRATA = 12
_KERNEL_RADIUS = 2.5  # cutoff of the kernel on H3 cells, in multiples of its width
_MAX_CELL_PAIRS = 3e7  # more pairs of H3 cells would use too much memory
_MIN_KERNEL_SUM = 1e-12  # avoids division by 0 for cells without neighbours


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
            covariate = _check_covariate(self.covariate, mechanism.inputs)
            stratum_of = stratify(covariate[pools.pooling_mask])
        model = _Model.fit(pools, stratum_of, self.bag_count)
        return DecoderResult(model.estimate_frequencies(pools), {"strata": len(model.strata)})


@dataclass(frozen=True)
class SpatialBayes(FieldsView):
    """Empirical Bayes that pools each cell with cells that have similar neighbourhoods.

    It requires a domain whose cells have neighbours (a grid or H3). A cell's covariate is a
    weighted mean of its neighbours' plain empirical Bayes estimates, excluding the cell itself. The
    tally determines how wide neighbourhoods should be, and whether they help at all: there is one
    model for each width and one without neighbours. The models are averaged with weights based on
    their evidence.
    ``widths``: the neighbourhood widths to try, in cells.
    """

    widths: tuple[float, ...] = DEFAULT_WIDTHS
    name: ClassVar[str] = "spatial-bayes"

    def decode(self, mechanism: Mechanism, tally: Tally) -> DecoderResult:
        """Return posterior quantiles, averaged over the models."""
        pools = Pools.from_tally(mechanism, tally)
        one_stratum = np.zeros(pools.u.size, dtype=np.int64)
        plain_model = _Model.fit(pools, one_stratum, bag_count=0)
        shares = np.zeros(mechanism.inputs)
        theta = plain_model.posterior_means(pools)
        shares[pools.pooling_mask] = theta * pools.means[pools.pooling_mask]
        models = {0.0: plain_model}
        domain = mechanism.context.domain
        for width, predictions in predict_from_neighbours(domain, pools, shares, self.widths):
            models[width] = _Model.fit(pools, stratify(predictions), bag_count=0)
        weights = _model_weights(models)
        if 0.0 in weights:
            # Use bagging only for the plain model; the other models are averaged over widths.
            models[0.0] = _Model.fit(pools, one_stratum, EmpiricalBayes.bag_count)
        frequencies = np.zeros(mechanism.inputs)
        rounded_weights = {}
        for width, weight in weights.items():
            frequencies += weight * models[width].estimate_frequencies(pools)
            rounded_weights[width] = round(weight, 3)
        return DecoderResult(frequencies, {"widths": rounded_weights})


def _check_covariate(covariate: ArrayLike, inputs: int) -> Floats:
    """Return the covariate as an array; raise ``InvalidArgument`` if it is not valid."""
    require_unmasked(covariate, "covariate", InvalidArgument)
    values = np.asarray(covariate, dtype=np.float64)
    if values.shape != (inputs,) or not np.isfinite(values).all():
        raise InvalidArgument(
            f"covariate must contain one finite number for each of the {inputs} symbols."
        )
    return values


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

    @property
    def evidence(self) -> float:
        """The log-likelihood minus a penalty for each stratum (Schwarz, 1978).

        The penalty is half the logarithm of the stratum's size for each of two parameters: strata
        can differ in the mean and the spread of their priors.
        """
        evidence = 0.0
        for stratum in self.strata:
            evidence += stratum.prior.log_likelihood - math.log(max(stratum.members.size, 1))
        return evidence

    def posterior_means(self, pools: Pools) -> Floats:
        """Return the posterior mean of every pooled symbol."""
        theta = np.empty(pools.u.size)
        for stratum in self.strata:
            members = stratum.members
            posterior = Posterior(stratum.prior, pools.u[members], pools.s[members])
            theta[members] = posterior.means()
        return theta

    def estimate_frequencies(self, pools: Pools) -> Floats:
        """Return the estimate with the smallest expected total variation."""
        frequencies = pools.unbiased.copy()
        if pools.u.size:
            theta = self._level_quantiles(pools)
            frequencies[pools.pooling_mask] = theta * pools.means[pools.pooling_mask]
        return project_groups(frequencies, pools.group_of, pools.totals)

    def _level_quantiles(self, pools: Pools) -> Floats:
        """Find each group's level by bisection, and return the quantiles at these levels."""
        group_of = pools.group_of[pools.pooling_mask]
        means = pools.means[pools.pooling_mask]
        group_count = pools.totals.size
        tables = [_posterior_table(pools, stratum) for stratum in self.strata]

        def theta_at(levels: Floats) -> Floats:
            theta = np.empty(group_of.size)
            for stratum, (cumulative, rows) in zip(self.strata, tables, strict=True):
                member_levels = levels[group_of[stratum.members]]
                values = stratum.prior.values
                quantiles = posterior_quantiles(cumulative, rows, values, member_levels)
                theta[stratum.members] = quantiles
            return theta

        def group_totals(theta: Floats) -> Floats:
            return np.bincount(group_of, theta * means, minlength=group_count).astype(np.float64)

        low = np.zeros(group_count)
        high = np.ones(group_count)
        for _ in range(_BISECTION_STEPS):
            middle = (low + high) / 2
            too_small = group_totals(theta_at(middle)) < pools.totals
            low = np.where(too_small, middle, low)
            high = np.where(too_small, high, middle)
        # Quantiles may jump between the low and the high level. A mixture of the two estimates
        # matches the total and has the same expected error.
        low_theta = theta_at(low)
        high_theta = theta_at(high)
        low_totals = group_totals(low_theta)
        high_totals = group_totals(high_theta)
        spans = np.where(high_totals > low_totals, high_totals - low_totals, 1.0)
        fraction = np.clip((pools.totals - low_totals) / spans, 0.0, 1.0)[group_of]
        return (1 - fraction) * low_theta + fraction * high_theta


def _model_weights(models: dict[float, _Model]) -> dict[float, float]:
    """Return the weight of each model, based on its evidence; omit models with negligible weight.

    The evidence is a logarithm. It is multiplied by ``_EVIDENCE_POWER`` because likelihoods are
    overconfident.
    """
    best_evidence = max(model.evidence for model in models.values())
    weights = {}
    for width, model in models.items():
        weights[width] = math.exp(_EVIDENCE_POWER * (model.evidence - best_evidence))
    threshold = _MIN_WEIGHT * sum(weights.values())
    weights = {width: weight for width, weight in weights.items() if weight > threshold}
    total = sum(weights.values())
    return {width: weight / total for width, weight in weights.items()}


def _posterior_table(pools: Pools, stratum: _Stratum) -> tuple[NDArray[np.float32], Symbols]:
    """Return the distinct cumulative posteriors, and the row index for each member."""
    u = pools.u[stratum.members]
    s = pools.s[stratum.members]
    rows: Symbols = np.arange(u.size)
    if u.size > _MAX_SEPARATE_POSTERIORS:
        bins = np.rint(np.log(s) / _S_BIN_WIDTH) + 1j * np.rint(u / s / _U_BIN_WIDTH)
        _, first_indices, rows = np.unique(bins, return_index=True, return_inverse=True)
        u = u[first_indices]
        s = s[first_indices]
    cumulative = Posterior(stratum.prior, u, s).cumulative()
    return cumulative, rows.reshape(stratum.members.shape)


# --- strata: symbols that have similar covariates or similar neighbours --------------------------


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


def has_neighbours(domain: Domain) -> bool:
    """Return whether the domain's symbols are cells with neighbours."""
    return isinstance(domain, GridDomain | H3Domain)


def predict_from_neighbours(
    domain: Domain, pools: Pools, shares: Floats, widths: Sequence[float]
) -> Iterator[tuple[float, Floats]]:
    """Yield each width, with predictions for the pooled symbols from neighbourhoods of that width.

    A prediction is ``Σ_{x2 ≠ x} K(x, x2) share_x2 / Σ_{x2 ≠ x} K(x, x2)`` with a Gaussian kernel K,
    in units of the group's mean. A cell's own share is excluded.
    """
    pooling_mask = pools.pooling_mask
    if isinstance(domain, GridDomain):
        smoothed = _smooth_on_grid(domain, shares, pooling_mask, widths)
    elif isinstance(domain, H3Domain):
        smoothed = _smooth_on_h3(domain, shares, pooling_mask, widths)
    else:
        raise ContextMismatch(
            "the symbols of this domain have no neighbours. Use the empirical-bayes decoder, "
            "optionally with a covariate."
        )
    for width, predictions in smoothed:
        yield width, predictions[pooling_mask] / pools.means[pooling_mask]


def _smooth_on_grid(
    domain: GridDomain, values: Floats, pooling_mask: Booleans, widths: Sequence[float]
) -> Iterator[tuple[float, Floats]]:
    """Yield each width, with weighted means of the pooled values of each cell's neighbours."""
    from scipy.ndimage import gaussian_filter

    cell_count = domain.cell_count
    mask = pooling_mask[:cell_count].astype(np.float64).reshape(domain.shape)
    masked_values = mask * values[:cell_count].reshape(domain.shape)
    for width in widths:
        # Filter a single 1 to find the weight that the filter gives to the cell itself.
        side = 2 * int(4 * width + 0.5) + 1
        impulse = np.zeros((side, side))
        impulse[side // 2, side // 2] = 1.0
        centre_weight = gaussian_filter(impulse, width, mode="constant").max()
        weights = gaussian_filter(mask, width, mode="constant") - centre_weight * mask
        sums = gaussian_filter(masked_values, width, mode="constant")
        sums = sums - centre_weight * masked_values
        smoothed = np.zeros(values.size)
        smoothed[:cell_count] = (sums / np.maximum(weights, _MIN_KERNEL_SUM)).ravel()
        yield width, smoothed


def _smooth_on_h3(
    domain: H3Domain, values: Floats, pooling_mask: Booleans, widths: Sequence[float]
) -> Iterator[tuple[float, Floats]]:
    """Yield each width, with weighted means of the pooled values of each cell's neighbours.

    Stop at the first width for which the kernel would use too much memory.
    """
    from scipy.sparse import csr_matrix
    from scipy.spatial import cKDTree

    latitudes, longitudes = np.radians(domain.centres())
    x = np.cos(latitudes) * np.cos(longitudes)
    y = np.cos(latitudes) * np.sin(longitudes)
    points = np.column_stack([x, y, np.sin(latitudes)])
    cell_count = len(points)
    tree = cKDTree(points)
    distances = np.asarray(tree.query(points, k=min(2, cell_count))[0]).reshape(cell_count, -1)
    spacing = float(np.median(distances[:, -1])) or 1.0
    mask = pooling_mask[:cell_count].astype(np.float64)
    masked_values = mask * values[:cell_count]
    for width in widths:
        radius = _KERNEL_RADIUS * width
        if cell_count * np.pi * radius**2 > _MAX_CELL_PAIRS:
            break
        pairs = tree.sparse_distance_matrix(tree, radius * spacing, output_type="coo_matrix")
        off_diagonal = pairs.row != pairs.col
        kernel = np.exp(-0.5 * (pairs.data[off_diagonal] / (width * spacing)) ** 2)
        indices = (pairs.row[off_diagonal], pairs.col[off_diagonal])
        K = csr_matrix((kernel, indices), shape=(cell_count, cell_count))
        smoothed = np.zeros(values.size)
        smoothed[:cell_count] = (K @ masked_values) / np.maximum(K @ mask, _MIN_KERNEL_SUM)
        yield width, smoothed
