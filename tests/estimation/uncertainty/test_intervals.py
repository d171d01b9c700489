"""Intervals: binomial after matching three moments, and Feldman and Cousins near the boundary."""

import math

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import beta, binom, binomtest, norm

import sfumato as sf
from sfumato.errors import InvalidArgument
from sfumato.estimation.uncertainty.intervals import (
    _large_beta_quantile,
    adjust_near_boundary,
    binomial_bounds,
    clopper_pearson,
    matching_pair,
    probability_below,
    score_bounds,
    share_bounds,
    tail_probability,
)
from sfumato.mechanisms import ScoreMoments
from support.sample_estimates import MECHANISMS, every_mechanism, sample_estimate

# --- moments of scores ----------------------------------------------------------------------------


@every_mechanism
def test_moments_are_those_of_the_scores_written_out(mechanism):
    f = np.random.default_rng(1).dirichlet(np.ones(mechanism.outputs))
    columns = [mechanism.scores.exact_column(y) for y in range(mechanism.outputs)]
    A = np.array(columns, dtype=np.float64).T
    size = np.abs(A).max()
    moments = ScoreMoments.for_symbols(mechanism.scores, f)
    for i, moment in ((1, moments.first), (2, moments.second), (3, moments.third)):
        assert np.abs(moment - A**i @ f).max() <= 1e-9 * size**i
    assert moments.lowest == pytest.approx(A.min(axis=1), abs=1e-9 * size)
    assert moments.highest == pytest.approx(A.max(axis=1), abs=1e-9 * size)


@pytest.mark.parametrize("seed", range(20))
def test_two_values_have_the_three_moments(seed):
    random = np.random.default_rng(seed)
    scores = random.normal(size=7) * 10
    f = random.dirichlet(np.ones(7) * 0.3)
    moments = ScoreMoments.for_total(scores, f)
    down, up = (float(value[0]) for value in matching_pair(moments))
    chance = (float(f @ scores) - down) / (up - down)
    for i in (1, 2, 3):
        assert chance * up**i + (1 - chance) * down**i == pytest.approx(
            float(f @ scores**i), rel=1e-6, abs=1e-9
        )


def test_two_values_recover_two_scores():
    for share in (1e-9, 0.2, 0.5, 1 - 1e-6):
        moments = ScoreMoments.for_total(np.array([-2.0, 5.0]), np.array([1 - share, share]))
        down, up = matching_pair(moments)
        assert (down[0], up[0]) == pytest.approx((-2, 5), rel=1e-4)
    down, up = matching_pair(ScoreMoments.for_total(np.array([3.0, 3.0]), np.array([0.5, 0.5])))
    assert down[0] == up[0] == 3


def test_score_bounds_may_lie_outside_the_unit_interval():
    moments = ScoreMoments.for_total(np.array([-3.0, 3.0]), np.array([0.5, 0.5]))
    low, high = score_bounds(moments, 100, 0.025)
    assert (low[0], high[0]) == pytest.approx((-0.588, 0.588), abs=0.02)


# --- binomial bounds ------------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [1, 10, 200])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_clopper_pearson_is_the_exact_interval(trials, level):
    counts = np.arange(trials + 1)
    low, high = clopper_pearson(
        counts.astype(float), np.full(trials + 1, float(trials)), (1 - level) / 2
    )
    exact = [binomtest(int(c), trials).proportion_ci(level, method="exact") for c in counts]
    # scipy solves to about 1e-9. The closed form for large counts is accurate to 1e-3 of a
    # standard error.
    assert low == pytest.approx([ci.low for ci in exact], abs=1e-4)
    assert high == pytest.approx([ci.high for ci in exact], abs=1e-4)
    few = min(trials, 10) + 1
    assert low[:few] == pytest.approx([ci.low for ci in exact[:few]], abs=1e-9)


def test_clopper_pearson_without_trials_is_zero_to_one():
    low, high = clopper_pearson(np.zeros(1), np.zeros(1), 0.025)
    assert (low[0], high[0]) == (0, 1)


@pytest.mark.parametrize("tail", [0.25, 0.025, 1e-3, 1e-6])
@pytest.mark.parametrize(("a", "b"), [(101.0, 101.0), (150.0, 1e6), (1e6, 150.0), (4e4, 5e5)])
def test_large_beta_quantiles_are_accurate(tail, a, b):
    quantile = _large_beta_quantile(np.array([a]), np.array([b]), tail)[0]
    assert beta.cdf(quantile, a, b) == pytest.approx(tail, rel=0.06)
    if tail >= 0.025:
        assert beta.cdf(quantile, a, b) == pytest.approx(tail, rel=1e-3)
    assert quantile == pytest.approx(betaincinv(a, b, tail), abs=0.02 * beta.std(a, b))


def _coverage(bounds, p, n):
    """Return the exact coverage of an interval for a binomial count, from all likely counts."""
    counts = np.arange(int(binom.ppf(1e-12, n, p)), int(binom.isf(1e-12, n, p)) + 1)
    low, high = bounds(counts.astype(float), np.full(counts.size, float(n)))
    return float(binom.pmf(counts, n, p)[(low <= p) & (p <= high)].sum())


EXPECTED = np.concatenate([np.linspace(0.02, 30, 400), np.geomspace(30, 1000, 40)])


def test_binomial_bounds_cover_by_enumeration():
    n = 50_000

    def bounds(counts, trials):
        return binomial_bounds(counts, trials, 0.025)

    coverage = np.array([_coverage(bounds, expected / n, n) for expected in EXPECTED])
    assert coverage.min() > 0.943
    assert coverage[EXPECTED < 8].min() > 0.95
    assert coverage[EXPECTED > 300] == pytest.approx(0.95, abs=0.004)


def test_normal_intervals_fail_the_same_test():
    def wald(counts, trials):
        share = counts / trials
        reach = 1.96 * np.sqrt(share * (1 - share) / trials)
        return share - reach, share + reach

    coverage = np.array([_coverage(wald, expected / 50_000, 50_000) for expected in EXPECTED])
    assert coverage[EXPECTED < 8].min() < 0.9


@pytest.mark.parametrize("tail", [1e-6, 1e-9])
def test_small_counts_are_covered_at_extreme_levels(tail):
    """With a million simultaneous intervals, a single report must not prove a share."""
    for expected in (0.01, 0.3, 2.0, 20.0):
        missed = 1 - _coverage(lambda c, t: binomial_bounds(c, t, tail), expected / 50_000, 50_000)
        assert missed <= 2.5 * tail


def test_chance_below_is_binomial_for_counts():
    n = 1000
    value = 0.02
    for count in (3, 10, 25):
        f = np.array([1 - count / n, count / n])
        chance = probability_below(ScoreMoments.for_total(np.array([0.0, 1.0]), f), n, value)[0]
        assert chance == pytest.approx(binom.cdf(count, n, value), rel=1e-6)


# --- near the boundary ----------------------------------------------------------------------------


def _bounds_near_zero(x, level, error=1e-3):
    """Return the bounds for estimates x, both in standard errors, from normal bounds."""
    tail = (1 - level) / 2
    z = norm.isf(tail)
    noisy = np.ones(x.shape, dtype=bool)
    low, high = adjust_near_boundary(
        x * error, (x - z) * error, (x + z) * error, tail, noisy, noisy
    )
    return low / error, high / error


@pytest.mark.parametrize(
    ("level", "upper_at_minus_3", "bounds_at_2"),
    [
        (0.6827, 0.04, (1.0, 3.0)),
        (0.9, 0.26, (0.58, 3.64)),
        (0.95, 0.42, (0.35, 3.96)),
        (0.99, 0.80, (0.0, 4.58)),
    ],
)
def test_bounds_match_the_published_table(level, upper_at_minus_3, bounds_at_2):
    low, high = _bounds_near_zero(np.array([-3.0, 2.0]), level)
    assert (low[0], high[0]) == pytest.approx((0, upper_at_minus_3), abs=0.006)
    assert (low[1], high[1]) == pytest.approx(bounds_at_2, abs=0.006)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_intervals_near_the_boundary_cover_and_are_not_empty(level):
    x = np.linspace(-9, 15, 240_001)
    low, high = _bounds_near_zero(x, level)
    assert (high > low).all()
    assert (np.diff(low) >= -1e-9).all()
    assert (np.diff(high) >= -1e-9).all()
    for mu in (0.01, 0.3, 1.0, 1.9, 2.5, 6.0):
        inside = (low <= mu) & (mu <= high)
        coverage = float(norm.pdf(x - mu)[inside].sum() * (x[1] - x[0]))
        assert coverage == pytest.approx(level, abs=3e-4)


def test_cut_or_shifted_intervals_fail_the_same_test():
    x = np.linspace(-9, 15, 240_001)
    low = np.clip(x - 1.96, 0, None)
    high = np.clip(x + 1.96, 0, None)
    assert (low == high).any()
    shifted_high = np.maximum(x, 0) + 1.96
    inside = (low <= 0.3) & (shifted_high >= 0.3)
    coverage = float(norm.pdf(x - 0.3)[inside].sum() * (x[1] - x[0]))
    assert coverage > 0.97


def test_bounds_near_one_mirror_those_near_zero():
    x = np.array([-0.02, 0.001, 0.03])
    noisy = np.ones(3, dtype=bool)
    low, high = adjust_near_boundary(x, x - 0.02, x + 0.03, 0.025, noisy, noisy)
    rest_low, rest_high = adjust_near_boundary(
        1 - x, 1 - x - 0.03, 1 - x + 0.02, 0.025, noisy, noisy
    )
    assert 1 - rest_high == pytest.approx(low)
    assert 1 - rest_low == pytest.approx(high)


def test_bounds_of_counts_are_only_cut():
    quiet = np.zeros(2, dtype=bool)
    low, high = adjust_near_boundary(
        np.array([0.1, 0.9]), np.array([-0.1, 0.8]), np.array([0.2, 1.2]), 0.025, quiet, quiet
    )
    assert (low.tolist(), high.tolist()) == ([0.0, 0.8], [0.2, 1.0])


# --- intervals of an estimate ---------------------------------------------------------------------


@every_mechanism
def test_intervals_grow_with_their_level(mechanism):
    estimate = sample_estimate(mechanism)
    before = None
    for level in (0.5, 0.9, 0.95, 0.999):
        low, high = estimate.interval(level)
        assert (low >= 0).all()
        assert (high <= 1).all()
        nearest = np.clip(estimate.unbiased, 0, 1)
        assert (low <= nearest + 1e-12).all()
        assert (high >= nearest - 1e-12).all()
        if before is not None:
            assert (low <= before[0] + 1e-12).all()
            assert (high >= before[1] - 1e-12).all()
        before = low, high


@every_mechanism
def test_simultaneous_intervals_have_a_higher_level(mechanism):
    estimate = sample_estimate(mechanism)
    single = estimate.interval(1 - 0.05 / mechanism.inputs)
    assert np.allclose(estimate.simultaneous_interval(0.95), single, atol=1e-9)


@every_mechanism
def test_intervals_are_not_empty(mechanism):
    for reports in (2, 50):
        low, high = sample_estimate(mechanism, reports=reports).interval()
        assert (high > low).all() == (mechanism.inputs > 1)


def test_intervals_of_many_reports_are_normal():
    mechanism = sf.PlainResponse(sf.Uniform(5, 1.0))
    estimate = sample_estimate(mechanism, p=np.full(5, 0.2), reports=10**6)
    low, high = estimate.interval(0.95)
    reach = 1.959964 * estimate.standard_errors
    assert low == pytest.approx(estimate.unbiased - reach, abs=1e-3 * reach.max())
    assert high == pytest.approx(estimate.unbiased + reach, abs=1e-3 * reach.max())


def test_unrandomized_symbol_has_the_interval_of_its_count():
    mechanism = sf.HighLowResponse(
        sf.HighLow(["clinic", "park", "café"], ["clinic"], 1.0), sf.RandomizedCode
    )
    tally = sf.Tally([900, 7, 93], mechanism.fingerprint)
    low, high = sf.estimate(mechanism, tally).interval(0.95)
    exact = binomtest(7, 1000).proportion_ci(0.95, method="exact")
    q = mechanism.matrix()[1, 1]
    assert (low[1], high[1]) == pytest.approx((exact.low / q, exact.high / q), rel=1e-6)


def test_rare_symbols_are_covered_at_large_epsilon():
    """A symbol has three scores: own report, others of its block, all else.

    Normal intervals cover it half of the time.
    """
    n = 50_000
    mechanism = sf.BlockResponse(sf.Blocks(np.repeat([0, 1], 10), 8), sf.RandomizedCode)
    p = np.concatenate([[0.5 / n, 2 / n], np.zeros(8), np.full(10, 0.1 - 0.25 / n)])
    A = mechanism.scores.matrix()
    q = mechanism.forward(p)
    f = np.random.default_rng(3).multinomial(n, q / q.sum(), size=4000) / n
    bounds = ScoreMoments.for_symbols(mechanism.scores, f[0])
    powers = [f @ (A**power).T for power in (1, 2, 3, 4)]
    moments = ScoreMoments(*powers, bounds.lowest, bounds.highest)
    low, high = share_bounds(moments, n, 0.025)
    hits = ((low <= p) & (p <= high))[:, :2].sum(axis=0)
    assert (binom.cdf(hits, 4000, 0.93) > 1e-6).all()
    reach = 1.96 * np.sqrt((moments.second - moments.first**2) / n)
    assert (np.abs(moments.first - p) <= reach)[:, 0].mean() < 0.6


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, 95, math.nan, math.inf, 0.0, 1.0])
def test_invalid_levels_are_rejected(level):
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    estimate = sample_estimate(mechanism)
    calls = [
        estimate.interval,
        estimate.simultaneous_interval,
        estimate.block_shares,
        estimate.to_arrow,
        lambda level: estimate.total(["a"], level),
        lambda level: estimate.shares_within(["a", "b"], level),
        lambda level: estimate.difference(estimate, level),
        lambda level: estimate.top(1, level),
        lambda level: estimate.bootstrap(2, level=level),
    ]
    for call in calls:
        with pytest.raises(InvalidArgument, match=r"between 0 and 1.*0\.95"):
            call(level)


@pytest.mark.parametrize("level", [1e-300, 1e-20, math.nextafter(1, 0)])
@pytest.mark.parametrize("reports", [1, 2, 1000])
def test_extreme_levels_give_valid_intervals(level, reports):
    for mechanism in (
        MECHANISMS[0],
        sf.HighLowResponse(sf.HighLow(6, [1, 4], 4)),
        sf.PlainResponse(sf.Uniform(3, 1.0)),
    ):
        estimate = sample_estimate(mechanism, reports=reports)
        for low, high in (estimate.interval(level), estimate.simultaneous_interval(level)):
            assert ((low >= 0) & (low <= high) & (high <= 1)).all()


def test_bonferroni_divides_the_tail():
    assert tail_probability(0.95, 10) == pytest.approx(0.0025)
    assert tail_probability(math.nextafter(1, 0), 10**6) > 0
