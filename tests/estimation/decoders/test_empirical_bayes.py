"""Empirical Bayes: quantiles are optimal; covariates help or do no harm."""

import itertools

import numpy as np
import pytest

from sfumato.contexts import Blocks, HighLow, Uniform
from sfumato.errors import InvalidArgument
from sfumato.estimation.decoders import empirical_bayes
from sfumato.estimation.decoders.decoder import Pools, Projection
from sfumato.estimation.decoders.empirical_bayes import EmpiricalBayes, stratify
from sfumato.estimation.decoders.intensities import IntensityScale
from sfumato.estimation.decoders.prior import Prior
from sfumato.mechanisms import BlockResponse, HighLowResponse, PlainResponse
from sfumato.tally import Tally


def _draw_tally(mechanism, p, reports, seed=0):
    q = np.maximum(mechanism.forward(p), 0)
    return Tally(
        np.random.default_rng(seed).multinomial(reports, q / q.sum()), mechanism.fingerprint
    )


def _error(decoder, mechanism, p, reports, seeds=range(3)):
    results = [
        decoder.decode(mechanism, _draw_tally(mechanism, p, reports, seed)).frequencies
        for seed in seeds
    ]
    return float(np.mean([np.abs(each - p).sum() / 2 for each in results]))


# --- the quantile rule ----------------------------------------------------------------------------

SCALE = IntensityScale(np.geomspace(0.01, 5, 150))
VALUES = SCALE.values
PRIORS = {
    "smooth": np.exp(-VALUES),
    "sparse": np.where(VALUES == 0, 1.0, 2e-3),
    "two heaps": np.exp(-0.5 * ((VALUES - 0.2) / 0.1) ** 2)
    + 0.4 * np.exp(-0.5 * ((VALUES - 3) / 0.3) ** 2),
}
PARTS = 10
FINE_VALUES = (
    SCALE.lows + (np.arange(PARTS)[:, None] + 0.5) / PARTS * (SCALE.highs - SCALE.lows)
).T
"""Every bin in ten parts."""


def _case(name, k, seed, groups=1):
    rng = np.random.default_rng(seed)
    group_of = np.sort(np.arange(k) % groups)
    totals = rng.dirichlet(np.full(groups, 5.0))
    means = (totals / np.bincount(group_of))[group_of]
    s = rng.uniform(0.3, 1.5, k)
    u = rng.choice(VALUES, k, p=PRIORS[name] / PRIORS[name].sum()) + s * rng.normal(size=k)
    pools = Pools(group_of, totals, u * means, s * means, report_count=10**9)
    prior = Prior(SCALE, PRIORS[name] / PRIORS[name].sum())
    strata = [empirical_bayes._Stratum(np.arange(k), prior)]
    return pools, empirical_bayes._Model(strata)


def _posterior(name, u, s):
    """Return the weights of ``FINE_VALUES``, by Bayes' rule for one symbol."""
    weights = PRIORS[name][:, None] * np.exp(-0.5 * ((u - FINE_VALUES) / s) ** 2)
    return (weights / weights.sum()).ravel()


def _losses(pools, name, x, tried):
    """Return ``½ E|a − p_x|`` for each a."""
    mean = pools.means[x]
    weights = _posterior(name, pools.unbiased[x] / mean, pools.errors[x] / mean)
    return np.abs(np.asarray(tried)[:, None] - mean * FINE_VALUES.ravel()) @ weights / 2


def _expected_error(pools, name, frequencies):
    return sum(float(_losses(pools, name, x, [p])[0]) for x, p in enumerate(frequencies))


def _brute_force(pools, name, steps):
    """Return the least expected total variation of all allocations of the total in equal steps."""
    total = pools.totals[0]
    k = pools.unbiased.size
    losses = [_losses(pools, name, x, np.linspace(0, total, steps + 1)) for x in range(k)]
    return min(
        sum(losses[x][units] for x, units in enumerate((*parts, steps - sum(parts))))
        for parts in itertools.product(range(steps + 1), repeat=k - 1)
        if sum(parts) <= steps
    )


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize(("k", "steps"), [(3, 120), (4, 40)])
def test_level_quantiles_minimise_the_expected_error(name, k, steps):
    for seed in range(5):
        pools, model = _case(name, k, seed)
        assert pools.pooling_mask.all()
        result = model.estimate_frequencies(pools)
        assert result.sum() == pytest.approx(1, abs=1e-12)
        ours = _expected_error(pools, name, result)
        assert ours < _brute_force(pools, name, steps) + 1e-3


@pytest.mark.parametrize("name", PRIORS)
def test_test_detects_posterior_means(name):
    """Means minimise squares, not absolute values: they must lose by more than a thousandth."""
    losses = []
    for seed in range(5):
        pools, model = _case(name, 4, seed)
        ours = model.estimate_frequencies(pools)
        means = [
            _posterior(name, u, s) @ FINE_VALUES.ravel()
            for u, s in zip(pools.u, pools.s, strict=True)
        ]
        means = np.array(means) * pools.means
        errors = [_expected_error(pools, name, each) for each in (means / means.sum(), ours)]
        losses.append(errors[0] - errors[1])
    assert max(losses) > 1e-3


def test_groups_have_their_own_level_and_total():
    pools, model = _case("smooth", 600, 0, groups=3)
    result = model.estimate_frequencies(pools)
    assert np.bincount(pools.group_of, result) == pytest.approx(pools.totals, abs=1e-12)
    theta = model._level_quantiles(pools)
    assert np.bincount(pools.group_of, theta * pools.means) == pytest.approx(pools.totals, rel=1e-3)
    fine = FINE_VALUES.ravel()
    levels = np.array(
        [
            _posterior("smooth", pools.u[x], pools.s[x]) @ (fine <= theta[x])
            for x in range(theta.size)
        ]
    )
    inside = (theta > VALUES[1]) & (theta < VALUES[-1])
    for group in range(3):
        assert np.ptp(levels[inside & (pools.group_of == group)]) < 0.02


# --- the crowd ------------------------------------------------------------------------------------

PLAIN = PlainResponse(Uniform(600, 1))
ZIPF = 1 / np.arange(1, 601) / sum(1 / np.arange(1, 601))


@pytest.mark.parametrize(
    ("p", "gain"), [(np.full(600, 1 / 600), 0.25), (ZIPF, 0.8)], ids=["even", "Zipf"]
)  # measured: 0.08 and 0.69 of the projection's error
def test_shrinking_is_worth_it(p, gain):
    ours, projected = (
        _error(decoder, PLAIN, p, 60_000) for decoder in (EmpiricalBayes(), Projection())
    )
    assert ours < gain * projected


def test_unrandomized_symbols_keep_their_counts():
    mechanism = HighLowResponse(HighLow(500, range(400), 1.0))
    p = np.random.default_rng(0).dirichlet(np.full(500, 0.5))
    tally = _draw_tally(mechanism, p, 200_000)
    result = EmpiricalBayes().decode(mechanism, tally).frequencies
    unbiased = mechanism.scores.unbiased(tally)
    clear = slice(400, 500)
    hidden = slice(0, 400)
    moved = result[clear] - np.maximum(unbiased[clear], 0)
    assert np.abs(moved).sum() < 0.02
    assert np.abs(result[hidden] - np.maximum(unbiased[hidden], 0)).sum() > 0.1


def test_blocks_of_any_size_are_pooled_in_units_of_their_means():
    """Half of each block's symbols have no people; large and small blocks share this knowledge."""
    mechanism = BlockResponse(Blocks(np.repeat([0, 1], [300, 300]), 1))
    inside = np.tile([0.0, 2.0], 150) / 300
    p = np.concatenate([0.9 * inside, 0.1 * inside])
    ours, projected = (
        _error(decoder, mechanism, p, 100_000) for decoder in (EmpiricalBayes(), Projection())
    )
    assert ours < 0.9 * projected


# --- known weaknesses -----------------------------------------------------------------------------


def test_groups_with_uneven_errors_are_decoded():
    """In padded blocks of 5 at ε = 3, one symbol is known slightly better than the others."""
    mechanism = BlockResponse(Blocks(np.arange(600) // 5, 3.0))
    ours, projected = (
        _error(decoder, mechanism, ZIPF, 300_000) for decoder in (EmpiricalBayes(), Projection())
    )
    assert ours < 0.8 * projected


def test_many_reports_are_not_rounded_to_a_coarse_grid():
    """In nearly even blocks that are known to 1 %, pooling must not make things worse."""
    mechanism = BlockResponse(Blocks(np.arange(600) // 10, 1.0))
    p = 0.95 ** np.arange(600) / sum(0.95 ** np.arange(600))
    ours, projected = (
        _error(decoder, mechanism, p, 5_000_000) for decoder in (EmpiricalBayes(), Projection())
    )
    assert ours < 1.1 * projected


def test_two_symbols_and_two_heaps_get_the_best_allocation():
    for seed in range(8):
        pools, model = _case("two heaps", 2, seed)
        ours = _expected_error(pools, "two heaps", model.estimate_frequencies(pools))
        assert ours < _brute_force(pools, "two heaps", 400) + 1e-3


# --- covariates -----------------------------------------------------------------------------------

LARGE = PlainResponse(Uniform(2_000, 1))
SKEWED = np.random.default_rng(5).permutation(np.random.default_rng(5).lognormal(0, 1.5, 2_000))
SKEWED = SKEWED / SKEWED.sum()


def test_informative_covariates_help_and_others_do_not_hurt():
    plain, told, noise = (
        _error(EmpiricalBayes(covariate), LARGE, SKEWED, 200_000)
        for covariate in (None, SKEWED, np.random.default_rng(6).normal(size=2_000))
    )
    assert told < 0.8 * plain
    assert noise < 1.08 * plain


def test_only_the_order_of_a_covariate_matters():
    tally = _draw_tally(LARGE, SKEWED, 50_000)
    results = [
        EmpiricalBayes(x).decode(LARGE, tally)
        for x in (SKEWED, np.log(SKEWED), (1e6 * SKEWED).tolist())
    ]
    assert (
        results[0].frequencies.tolist()
        == results[1].frequencies.tolist()
        == results[2].frequencies.tolist()
    )
    assert results[0].details == {"strata": 4}


def test_constant_covariate_changes_nothing():
    tally = _draw_tally(LARGE, SKEWED, 50_000)
    result = EmpiricalBayes(np.ones(2_000)).decode(LARGE, tally).frequencies
    assert result.tolist() == EmpiricalBayes().decode(LARGE, tally).frequencies.tolist()


@pytest.mark.parametrize(
    "covariate",
    [
        np.ones(1_999),
        np.ones((2_000, 1)),
        np.full(2_000, np.nan),
        np.append(np.ones(1_999), np.inf),
        1.0,
    ],
    ids=["short", "a column", "nan", "infinite", "one number"],
)
def test_invalid_covariates_are_rejected(covariate):
    with pytest.raises(InvalidArgument, match="one finite number for each of the 2000 symbols"):
        EmpiricalBayes(covariate).decode(LARGE, _draw_tally(LARGE, SKEWED, 100))


# --- strata ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "count"), [(1, 1), (999, 1), (1_000, 2), (3_700, 7), (6_000, 12), (43_750, 12)]
)
def test_strata_are_equally_large_and_in_order(size, count):
    covariate = np.random.default_rng(size).normal(size=size)
    result = stratify(covariate)
    sizes = np.bincount(result)
    assert sizes.size == count
    assert sizes.max() - sizes.min() <= 1
    assert (np.diff(result[np.argsort(covariate)]) >= 0).all()


def test_equal_values_stay_together():
    covariate = np.repeat([3.0, 1.0, 2.0], [100, 2_800, 300])
    result = stratify(covariate)
    for value in (1.0, 2.0, 3.0):
        assert np.unique(result[covariate == value]).size == 1
    assert stratify(np.full(5_000, 0.5)).tolist() == [0] * 5_000


def test_strata_are_numbered_without_gaps():
    """Most values are 0, as on a mostly empty map: edges coincide, and some strata are empty."""
    covariate = np.concatenate([np.zeros(5_000), np.arange(1_000.0)])
    result = stratify(covariate)
    assert np.unique(result).tolist() == list(range(result.max() + 1))
    assert result.max() >= 1


def test_no_symbols_have_no_strata():
    assert stratify(np.empty(0)).shape == (0,)
