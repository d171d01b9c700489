"""Intervals: binomial after matching three moments, Feldman and Cousins near the boundary, and what
is made of them.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import beta, binom, binomtest, norm

import sfumato as sf
from sfumato.errors import ContextMismatch, InvalidArgument, InvalidContext
from sfumato.estimation.uncertainty.boundary import boundary_bounds
from sfumato.estimation.uncertainty.differences import (
    CANNOT_TELL,
    CHANGED_DOWN,
    CHANGED_UP,
    Difference,
)
from sfumato.estimation.uncertainty.intervals import (
    _large_beta_quantile,
    binomial_bounds,
    chance_below,
    clopper_pearson,
    score_bounds,
    share_bounds,
    tail_probability,
    two_values,
)
from sfumato.estimation.uncertainty.ranking import Top
from sfumato.mechanisms import ScoreMoments
from support.mechanism_examples import REPRESENTATIVES

ALL = [mechanism for examples in REPRESENTATIVES.values() for mechanism in examples]
every_mechanism = pytest.mark.parametrize("mechanism", ALL, ids=repr)


def _tally(mechanism, p=None, reports=2000, seed=0):
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.ones(mechanism.inputs)) if p is None else p
    q = np.maximum(mechanism.forward(p), 0)
    return sf.Tally(random.multinomial(reports, q / q.sum()), mechanism.fingerprint)


def _estimate(mechanism, **keywords):
    """Intervals do not depend on the decoder, so the quickest will do."""
    return sf.estimate(mechanism, _tally(mechanism, **keywords), decoder="unbiased")


# --- moments of scores ---------------------------------------------------------------------------


@every_mechanism
def test_moments_are_those_of_the_scores_written_out(mechanism):
    f = np.random.default_rng(1).dirichlet(np.ones(mechanism.outputs))
    A = np.array(
        [[float(score) for score in mechanism.scores.exact(y)] for y in range(mechanism.outputs)]
    ).T
    found, size = ScoreMoments.of_symbols(mechanism.scores, f), np.abs(A).max()
    for i, moment in ((1, found.first), (2, found.second), (3, found.third)):
        assert np.abs(moment - A**i @ f).max() <= 1e-9 * size**i
    assert found.lowest == pytest.approx(A.min(axis=1), abs=1e-9 * size)
    assert found.highest == pytest.approx(A.max(axis=1), abs=1e-9 * size)


@pytest.mark.parametrize("seed", range(20))
def test_two_values_have_the_three_moments(seed):
    random = np.random.default_rng(seed)
    scores, f = random.normal(size=7) * 10, random.dirichlet(np.ones(7) * 0.3)
    moments = ScoreMoments.of_total(scores, f)
    down, up = (float(value[0]) for value in two_values(moments))
    chance = (float(f @ scores) - down) / (up - down)
    for i in (1, 2, 3):
        assert chance * up**i + (1 - chance) * down**i == pytest.approx(
            float(f @ scores**i), rel=1e-6, abs=1e-9
        )


def test_two_values_recover_two_scores():
    for share in (1e-9, 0.2, 0.5, 1 - 1e-6):
        down, up = two_values(
            ScoreMoments.of_total(np.array([-2.0, 5.0]), np.array([1 - share, share]))
        )
        assert (down[0], up[0]) == pytest.approx((-2, 5), rel=1e-4)
    down, up = two_values(ScoreMoments.of_total(np.array([3.0, 3.0]), np.array([0.5, 0.5])))
    assert down[0] == up[0] == 3


# --- binomial bounds -----------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [1, 10, 200])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_clopper_pearson_is_the_exact_interval(trials, level):
    counts = np.arange(trials + 1)
    low, high = clopper_pearson(
        counts.astype(float), np.full(trials + 1, float(trials)), (1 - level) / 2
    )
    exact = [binomtest(int(c), trials).proportion_ci(level, method="exact") for c in counts]
    # scipy solves to about 1e-9; large counts have a closed form here that is good to 1e-3 of a
    # standard error
    assert low == pytest.approx([ci.low for ci in exact], abs=1e-4)
    assert high == pytest.approx([ci.high for ci in exact], abs=1e-4)
    few = min(trials, 10) + 1
    assert low[:few] == pytest.approx([ci.low for ci in exact[:few]], abs=1e-9)


def test_clopper_pearson_of_no_trials_says_nothing():
    low, high = clopper_pearson(np.zeros(1), np.zeros(1), 0.025)
    assert (low[0], high[0]) == (0, 1)


@pytest.mark.parametrize("tail", [0.25, 0.025, 1e-3, 1e-6])
@pytest.mark.parametrize(("a", "b"), [(101.0, 101.0), (150.0, 1e6), (1e6, 150.0), (4e4, 5e5)])
def test_large_beta_quantiles_are_accurate(tail, a, b):
    found = _large_beta_quantile(np.array([a]), np.array([b]), tail)[0]
    assert beta.cdf(found, a, b) == pytest.approx(tail, rel=0.06)
    if tail >= 0.025:
        assert beta.cdf(found, a, b) == pytest.approx(tail, rel=1e-3)
    assert found == pytest.approx(betaincinv(a, b, tail), abs=0.02 * beta.std(a, b))


def _coverage(bounds, p, n):
    """The exact coverage of an interval for a binomial count, summed over all counts that can
    matter.
    """
    counts = np.arange(int(binom.ppf(1e-12, n, p)), int(binom.isf(1e-12, n, p)) + 1)
    low, high = bounds(counts.astype(float), np.full(counts.size, float(n)))
    return float(binom.pmf(counts, n, p)[(low <= p) & (p <= high)].sum())


EXPECTED = np.concatenate([np.linspace(0.02, 30, 400), np.geomspace(30, 1000, 40)])


def test_binomial_bounds_cover_by_enumeration():
    n, tail = 50_000, 0.025
    found = np.array(
        [
            _coverage(lambda c, t: binomial_bounds(c, t, tail), expected / n, n)
            for expected in EXPECTED
        ]
    )
    assert found.min() > 0.943
    assert found[EXPECTED < 8].min() > 0.95
    assert found[EXPECTED > 300] == pytest.approx(0.95, abs=0.004)


def test_normal_intervals_fail_the_same_test():
    def wald(counts, trials):
        share = counts / trials
        reach = 1.96 * np.sqrt(share * (1 - share) / trials)
        return share - reach, share + reach

    found = np.array([_coverage(wald, expected / 50_000, 50_000) for expected in EXPECTED])
    assert found[EXPECTED < 8].min() < 0.9


@pytest.mark.parametrize("tail", [1e-6, 1e-9])
def test_far_tails_of_small_counts_are_kept(tail):
    """What intervals that hold together for a million symbols rest on: a single report must not
    prove a share.
    """
    for expected in (0.01, 0.3, 2.0, 20.0):
        missed = 1 - _coverage(lambda c, t: binomial_bounds(c, t, tail), expected / 50_000, 50_000)
        assert missed <= 2.5 * tail


def test_chance_below_is_the_binomial_one_for_counts():
    n, value = 1000, 0.02
    for count in (3, 10, 25):
        f = np.array([1 - count / n, count / n])
        found = chance_below(ScoreMoments.of_total(np.array([0.0, 1.0]), f), n, value)[0]
        assert found == pytest.approx(binom.cdf(count, n, value), rel=1e-6)


# --- near the boundary ----------------------------------------------------------------------------


def _beside_zero(x, level, error=1e-3):
    """Bounds for estimates x in standard errors, from normal ones."""
    tail, z = (1 - level) / 2, norm.isf((1 - level) / 2)
    noisy = np.ones(x.shape, dtype=bool)
    low, high = boundary_bounds(x * error, (x - z) * error, (x + z) * error, tail, noisy, noisy)
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
def test_bounds_are_those_of_the_published_table(level, upper_at_minus_3, bounds_at_2):
    low, high = _beside_zero(np.array([-3.0, 2.0]), level)
    assert (low[0], high[0]) == pytest.approx((0, upper_at_minus_3), abs=0.006)
    assert (low[1], high[1]) == pytest.approx(bounds_at_2, abs=0.006)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_intervals_near_the_boundary_cover_and_are_not_empty(level):
    x = np.linspace(-9, 15, 240_001)
    low, high = _beside_zero(x, level)
    assert (high > low).all()
    assert (np.diff(low) >= -1e-9).all()
    assert (np.diff(high) >= -1e-9).all()
    for mu in (0.01, 0.3, 1.0, 1.9, 2.5, 6.0):
        inside = (low <= mu) & (mu <= high)
        covered = float(norm.pdf(x - mu)[inside].sum() * (x[1] - x[0]))
        assert covered == pytest.approx(level, abs=3e-4)


def test_cut_or_shifted_intervals_fail_the_same_test():
    x = np.linspace(-9, 15, 240_001)
    cut = np.clip(x - 1.96, 0, None), np.clip(x + 1.96, 0, None)
    assert (cut[0] == cut[1]).any()
    shifted = np.maximum(x, 0) + 1.96
    covered = float(norm.pdf(x - 0.3)[(cut[0] <= 0.3) & (shifted >= 0.3)].sum() * (x[1] - x[0]))
    assert covered > 0.97


def test_the_upper_wall_mirrors_the_lower():
    x, noisy = np.array([-0.02, 0.001, 0.03]), np.ones(3, dtype=bool)
    low, high = boundary_bounds(x, x - 0.02, x + 0.03, 0.025, noisy, noisy)
    turned = boundary_bounds(1 - x, 1 - x - 0.03, 1 - x + 0.02, 0.025, noisy, noisy)
    assert 1 - turned[1] == pytest.approx(low)
    assert 1 - turned[0] == pytest.approx(high)


def test_counts_are_only_cut():
    quiet = np.zeros(2, dtype=bool)
    low, high = boundary_bounds(
        np.array([0.1, 0.9]), np.array([-0.1, 0.8]), np.array([0.2, 1.2]), 0.025, quiet, quiet
    )
    assert (low.tolist(), high.tolist()) == ([0.0, 0.8], [0.2, 1.0])


# --- intervals of an estimate --------------------------------------------------------------------


@every_mechanism
def test_intervals_grow_with_their_level(mechanism):
    found = _estimate(mechanism)
    before = None
    for level in (0.5, 0.9, 0.95, 0.999):
        low, high = found.interval(level)
        assert (low >= 0).all()
        assert (high <= 1).all()
        nearest = np.clip(found.unbiased, 0, 1)
        assert (low <= nearest + 1e-12).all()
        assert (high >= nearest - 1e-12).all()
        if before is not None:
            assert (low <= before[0] + 1e-12).all()
            assert (high >= before[1] - 1e-12).all()
        before = low, high


@every_mechanism
def test_simultaneous_intervals_have_a_higher_level(mechanism):
    found = _estimate(mechanism)
    single = found.interval(1 - 0.05 / mechanism.inputs)
    assert np.allclose(found.simultaneous_interval(0.95), single, atol=1e-9)


@every_mechanism
def test_intervals_have_a_width(mechanism):
    for reports in (2, 50):
        low, high = _estimate(mechanism, reports=reports).interval()
        assert (high > low).all() == (mechanism.inputs > 1)


def test_intervals_of_many_reports_are_the_normal_ones():
    mechanism = sf.PlainResponse(sf.Uniform(5, 1.0))
    found = _estimate(mechanism, p=np.full(5, 0.2), reports=10**6)
    low, high = found.interval(0.95)
    reach = 1.959964 * found.standard_errors
    assert low == pytest.approx(found.unbiased - reach, abs=1e-3 * reach.max())
    assert high == pytest.approx(found.unbiased + reach, abs=1e-3 * reach.max())


def test_a_symbol_in_clear_has_the_interval_of_its_count():
    mechanism = sf.HighLowResponse(
        sf.HighLow(["clinic", "park", "café"], ["clinic"], 1.0), sf.RandomizedCode
    )
    tally = sf.Tally([900, 7, 93], mechanism.fingerprint)
    low, high = sf.estimate(mechanism, tally).interval(0.95)
    exact = binomtest(7, 1000).proportion_ci(0.95, method="exact")
    clear = mechanism.matrix()[1, 1]
    assert (low[1], high[1]) == pytest.approx((exact.low / clear, exact.high / clear), rel=1e-6)


def test_rare_symbols_are_covered_at_large_epsilon():
    """Its scores are three: own report, the block's others, all else. Normal intervals cover it
    one time in two.
    """
    n, mechanism = 50_000, sf.BlockResponse(sf.Blocks(np.repeat([0, 1], 10), 8), sf.RandomizedCode)
    p = np.concatenate([[0.5 / n, 2 / n], np.zeros(8), np.full(10, 0.1 - 0.25 / n)])
    A, q = mechanism.scores.matrix(), mechanism.forward(p)
    f = np.random.default_rng(3).multinomial(n, q / q.sum(), size=4000) / n
    bounds = ScoreMoments.of_symbols(mechanism.scores, f[0])
    moments = ScoreMoments(f @ A.T, f @ (A**2).T, f @ (A**3).T, bounds.lowest, bounds.highest)
    low, high = share_bounds(moments, n, 0.025)
    hits = ((low <= p) & (p <= high))[:, :2].sum(axis=0)
    assert (binom.cdf(hits, 4000, 0.93) > 1e-6).all()
    reach = 1.96 * np.sqrt((moments.second - moments.first**2) / n)
    assert (np.abs(moments.first - p) <= reach)[:, 0].mean() < 0.6


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, 95, math.nan, math.inf, 0.0, 1.0])
def test_invalid_levels_are_rejected(level):
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    found = _estimate(mechanism)
    calls = [
        found.interval,
        found.simultaneous_interval,
        found.block_shares,
        found.to_arrow,
        lambda level: found.total(["a"], level),
        lambda level: found.shares_within(["a", "b"], level),
        lambda level: found.difference(found, level),
        lambda level: found.top(1, level),
        lambda level: found.bootstrap(2, level=level),
    ]
    for call in calls:
        with pytest.raises(InvalidArgument, match=r"between 0 and 1.*0\.95"):
            call(level)


@pytest.mark.parametrize("level", [1e-300, 1e-20, math.nextafter(1, 0)])
@pytest.mark.parametrize("reports", [1, 2, 1000])
def test_every_level_between_the_ends_is_answered(level, reports):
    for mechanism in (
        ALL[0],
        sf.HighLowResponse(sf.HighLow(6, [1, 4], 4)),
        sf.PlainResponse(sf.Uniform(3, 1.0)),
    ):
        found = _estimate(mechanism, reports=reports)
        for low, high in (found.interval(level), found.simultaneous_interval(level)):
            assert ((low >= 0) & (low <= high) & (high <= 1)).all()


def test_bonferroni_divides_the_tail():
    assert tail_probability(0.95, 10) == pytest.approx(0.0025)
    assert tail_probability(math.nextafter(1, 0), 10**6) > 0


# --- totals --------------------------------------------------------------------------------------


@every_mechanism
def test_total_is_the_mean_of_its_scores(mechanism):
    tally = _tally(mechanism, reports=500)
    found = sf.estimate(mechanism, tally)
    weights = np.random.default_rng(2).normal(size=mechanism.inputs)
    scores = (
        weights
        @ np.array(
            [[float(s) for s in mechanism.scores.exact(y)] for y in range(mechanism.outputs)]
        ).T
    )
    each = np.repeat(scores, tally.counts)
    total = found.weighted_total(weights)
    assert total.estimate == pytest.approx(float(weights @ found.unbiased), abs=1e-9)
    assert total.estimate == pytest.approx(each.mean(), abs=1e-9)
    assert total.standard_error == pytest.approx(
        each.std(ddof=1) / math.sqrt(500), rel=1e-6, abs=1e-9
    )
    assert weights.min() - 1e-9 <= total.low <= total.high <= weights.max() + 1e-9


@every_mechanism
def test_the_total_of_one_label_is_its_interval(mechanism):
    found = _estimate(mechanism)
    low, high = found.interval(0.9)
    for x in {0, mechanism.inputs - 1}:
        total = found.total([found.labels[x]], level=0.9)
        assert (total.estimate, total.low, total.high) == pytest.approx(
            (found.unbiased[x], low[x], high[x]), abs=2e-3 * (high[x] - low[x]) + 1e-9
        )


@every_mechanism
def test_the_total_of_everything_is_known(mechanism):
    total = _estimate(mechanism).total(mechanism.context.domain.labels)
    assert (total.estimate, total.low, total.high) == pytest.approx((1, 1, 1), abs=1e-9)
    assert total.standard_error == pytest.approx(0, abs=1e-9)


def test_the_total_of_a_block_in_clear_is_a_count():
    mechanism = sf.BlockResponse(sf.Blocks([0, 1, 1, 1, 2, 2], 1.0, domain=list("abcdef")))
    tally = sf.Tally([6, 200, 100, 30, 70, 100, 200, 50, 44], mechanism.fingerprint)
    exact = binomtest(6, 800).proportion_ci(0.95, method="exact")
    total = sf.estimate(mechanism, tally).total("a")
    assert (total.low, total.high) == pytest.approx((exact.low, exact.high), rel=1e-6)
    assert sf.estimate(mechanism, tally).total(["b", "c", "d"]).estimate == pytest.approx(400 / 800)


def test_totals_know_covariances():
    """The intervals of two labels that make up nearly everything add up to far more than that of
    both.
    """
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0), sf.RandomizedCode)
    found = _estimate(mechanism, p=[0.5, 0.4, 0.1])
    low, high = found.interval()
    both, rest = found.total(["a", "b"]), found.total(["c"])
    assert both.high - both.low == pytest.approx(rest.high - rest.low, rel=1e-6)
    assert both.high - both.low < 0.6 * (high - low)[:2].sum()


def test_weights_come_as_a_row_or_by_label():
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    found = _estimate(mechanism)
    assert found.weighted_total({"c": 2.0, "a": -1}) == found.weighted_total([-1, 0, 2])
    assert (
        found.total("b")
        == found.total(["b"])
        == found.total({"b"})
        == found.weighted_total({"b": 1})
    )


def test_one_report_bounds_no_total():
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    total = sf.estimate(mechanism, mechanism.tally([1])).weighted_total([0, 2, 5])
    assert (total.standard_error, total.low, total.high) == (math.inf, 0, 5)


def test_totals_refuse_what_is_no_label_or_weight():
    found = _estimate(sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0)))
    with pytest.raises(InvalidArgument, match="at least one label"):
        found.total([])
    with pytest.raises(InvalidContext, match="'zoo'"):
        found.total(["a", "zoo"])
    for weights in ([1, 2], [1, 2, math.nan], [[1, 2, 3]], {"a": math.inf}):
        with pytest.raises(InvalidArgument, match="one per symbol"):
            found.weighted_total(weights)


# --- shares of blocks ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code", [sf.HadamardCode, sf.RandomizedCode], ids=["Hadamard", "randomised response"]
)
def test_block_shares_have_exact_binomial_intervals(code):
    context = sf.Blocks([0, 1, 0, 2, 1, 0], 1.0)
    mechanism = sf.BlockResponse(context, code)
    tally = _tally(mechanism, p=[0.3, 0.1, 0.05, 0.2, 0.25, 0.1], reports=300)
    shares, Q = sf.estimate(mechanism, tally).block_shares(0.9), mechanism.matrix()
    assert shares.exact.all()
    for x in (0, 1, 2, 4, 5):
        block = [x2 for x2 in range(6) if context.block_of[x2] == context.block_of[x]]
        range_ = [y for y in range(mechanism.outputs) if Q[x, y] > 0]
        raised = [y for y in range_ if Q[x, y] > Q[x, range_].min() * 1.5]
        inside, other = Q[x, raised].sum(), Q[next(x2 for x2 in block if x2 != x), raised].sum()
        counted = binomtest(int(tally.counts[raised].sum()), int(tally.counts[range_].sum()))
        exact = counted.proportion_ci(0.9, method="exact")
        for found, pi in ((shares.low[x], exact.low), (shares.high[x], exact.high)):
            assert found == pytest.approx(min(max((pi - other) / (inside - other), 0), 1), abs=2e-4)
    assert (shares.low[3], shares.estimates[3], shares.high[3]) == (1, 1, 1)


def test_a_block_without_reports_has_any_share():
    mechanism = sf.BlockResponse(sf.Blocks([0, 0, 1, 1], 1.0))
    shares = sf.estimate(mechanism, mechanism.tally([0, 1, 2, 0])).block_shares()
    assert shares.low[2:].tolist() == [0, 0]
    assert shares.high[2:].tolist() == [1, 1]
    assert np.isnan(shares.estimates[2:]).all()


def test_unbalanced_codes_have_no_exact_shares():
    mechanism = sf.BlockResponse(
        sf.Blocks([0] * 6 + [1] * 6, 1.0), sf.CyclicDesign(6, ((0, 1), (0, 2)))
    )
    found = _estimate(mechanism, reports=5000)
    shares = found.block_shares()
    assert not shares.exact.any()
    block = found.total(range(6))
    assert shares.estimates[:6] == pytest.approx(found.unbiased[:6] / block.estimate)
    assert (shares.low <= np.clip(shares.estimates, 0, 1)).all()
    assert (shares.high >= np.clip(shares.estimates, 0, 1)).all()


def test_blocks_inside_a_union_are_found():
    context = sf.union([sf.Uniform(["a", "b", "c"], 1.0), sf.HighLow(["d", "e"], ["e"], 1.0)])
    parts = [sf.PlainResponse(context.parts[0]), sf.HighLowResponse(context.parts[1])]
    mechanism = sf.UnionResponse(context, parts)
    tally = _tally(mechanism, reports=1000)
    shares = sf.estimate(mechanism, tally).block_shares()
    alone = sf.estimate(
        parts[0], sf.Tally(tally.counts[: parts[0].outputs], parts[0].fingerprint)
    ).block_shares()
    assert shares.exact.tolist() == [True, True, True, False, False]
    assert shares.low[:3] == pytest.approx(alone.low)
    assert shares.high[:3] == pytest.approx(alone.high)


def test_shares_within_use_fieller_bounds_for_noisy_symbols():
    mechanism = sf.PlainResponse(sf.Uniform(list("abcd"), 2.0))
    tally = _tally(mechanism, p=[0.4, 0.3, 0.2, 0.1], reports=20_000)
    found = sf.estimate(mechanism, tally)
    shares = found.shares_within(["a", "b"])
    assert shares.labels == ["a", "b"]
    assert shares.estimates == pytest.approx(found.unbiased[:2] / found.unbiased[:2].sum())
    # Fieller by hand: theta is in if the total with weights (1 − theta, −theta) may be 0.
    for x, (low, high) in enumerate(zip(shares.low, shares.high, strict=True)):
        for theta in (low, high):
            weights = np.array([-theta, -theta, 0, 0])
            weights[x] += 1
            total = found.weighted_total(weights)
            assert abs(total.estimate) / total.standard_error == pytest.approx(1.96, abs=2e-3)


def test_shares_within_an_empty_part_are_unknown():
    mechanism = sf.PlainResponse(sf.Uniform(list("abcd"), 0.5))
    found = _estimate(mechanism, p=[0.5, 0.5, 0, 0], reports=1000)
    unknown = found.shares_within(["c", "d"])
    assert (unknown.low.tolist(), unknown.high.tolist()) == ([0, 0], [1, 1])
    known = found.shares_within(["a"])
    assert (known.low[0], known.high[0], known.exact[0]) == (1, 1, True)


# --- differences ---------------------------------------------------------------------------------


def test_differences_square_the_arms_of_two_intervals():
    first, second = np.array([0.2, 0.5]), np.array([0.6, 0.0])
    found = Difference.from_intervals(
        "ab", first, (first - 0.03, first + 0.04), second, (second - 0.05, second + 0.06), 0.9
    )
    assert found.differences.tolist() == pytest.approx([0.4, -0.5])
    assert (found.differences - found.low).tolist() == pytest.approx([math.hypot(0.05, 0.04)] * 2)
    assert (found.high - found.differences).tolist() == pytest.approx([math.hypot(0.06, 0.03)] * 2)
    assert found.verdicts.tolist() == [CHANGED_UP, CHANGED_DOWN]
    assert found.changed == ["b", "a"]  # the largest first


def test_a_change_is_seen_and_no_change_is_not():
    mechanism = sf.BlockResponse(sf.Blocks([0, 0, 0, 1, 1], 1.0, domain=list("abcde")))
    before = _estimate(mechanism, p=[0.4, 0.1, 0.1, 0.2, 0.2], reports=20_000, seed=1)
    after = _estimate(mechanism, p=[0.1, 0.4, 0.1, 0.2, 0.2], reports=30_000, seed=2)
    found = before.difference(after)
    assert found.verdicts.tolist() == [
        CHANGED_DOWN,
        CHANGED_UP,
        CANNOT_TELL,
        CANNOT_TELL,
        CANNOT_TELL,
    ]
    assert set(found.changed) == {"a", "b"}
    assert "1 changed up, 1 changed down, 3 cannot tell" in repr(found)
    assert after.difference(before).verdicts.tolist()[:2] == [CHANGED_UP, CHANGED_DOWN]


def test_false_changes_are_as_rare_as_promised():
    mechanism, p = (
        sf.HighLowResponse(sf.HighLow(8, [0, 1, 2], 1.0)),
        [0.3, 0.2, 0.1, 0.3, 0.09, 0.005, 0.005, 0.0],
    )
    runs = 400
    wrong = sum(
        bool(
            _estimate(mechanism, p=p, seed=2 * i)
            .difference(_estimate(mechanism, p=p, seed=2 * i + 1))
            .changed
        )
        for i in range(runs)
    )
    assert binom.sf(wrong - 1, runs, 0.05) > 1e-6


def test_mechanisms_may_differ_but_labels_may_not():
    domain = ["a", "b", "c"]
    first = _estimate(sf.PlainResponse(sf.Uniform(domain, 1.0)))
    second = _estimate(sf.HighLowResponse(sf.HighLow(domain, ["b"], 2.0)), reports=100)
    assert len(first.difference(second).verdicts) == 3
    with pytest.raises(ContextMismatch, match="same labels"):
        first.difference(_estimate(sf.PlainResponse(sf.Uniform(["a", "c", "b"], 1.0))))


def test_one_report_cannot_tell_of_any_change():
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    one, many = sf.estimate(mechanism, mechanism.tally([1])), _estimate(mechanism)
    assert set(one.difference(many).verdicts) == set(many.difference(one).verdicts) == {CANNOT_TELL}


# --- rankings ------------------------------------------------------------------------------------


def _naive_top(low, high, size):
    """Whether x is among the top, in its worst and in its best case, by asking every other."""
    k = range(len(low))
    worst = [sum(high[other] > low[x] for other in k if other != x) for x in k]
    best = [sum(low[other] > high[x] for other in k if other != x) for x in k]
    return {x for x in k if worst[x] < size}, {x for x in k if best[x] < size}


@pytest.mark.parametrize("seed", range(30))
def test_top_asks_who_can_and_who_must_be_above(seed):
    random = np.random.default_rng(seed)
    middle = random.random(9).round(1)
    low, high = middle - random.random(9).round(1) / 3, middle + random.random(9).round(1) / 3
    for size in (1, 3, 9, 20):
        found = Top.from_intervals(range(9), middle, low, high, size, 0.95)
        assert (set(found.certainly), set(found.possibly)) == _naive_top(low, high, size)
        assert list(found.possibly) == sorted(found.possibly, key=lambda x: -middle[x])
        assert set(found.certainly) <= set(found.possibly)
        assert len(found.certainly) <= size


def test_top_holds_for_every_truth_inside_the_intervals():
    low, high = np.array([0.5, 0.3, 0.25, 0.0]), np.array([0.6, 0.4, 0.35, 0.1])
    for size in (1, 2, 3):
        found = Top.from_intervals(range(4), low, low, high, size, 0.95)
        for truth in itertools.product(*zip(low, high, strict=True)):
            best = set(np.argsort(-np.array(truth), kind="stable")[:size].tolist())
            assert set(found.certainly) <= best <= set(found.possibly)


def test_top_uses_simultaneous_intervals():
    mechanism = sf.PlainResponse(sf.Uniform(list("abcd"), 2.0))
    found = _estimate(mechanism, p=[0.6, 0.2, 0.19, 0.01], reports=20_000)
    top = found.top(2)
    assert top.certainly == ("a",)
    assert set(top.possibly) == {"a", "b", "c"}
    assert found.top(4).certainly == found.top(9).possibly
    for size in (0, -1, 1.5, True, "2"):
        with pytest.raises(InvalidArgument, match="positive integer"):
            found.top(size)


def test_bounds_of_scores_may_lie_outside():
    low, high = score_bounds(
        ScoreMoments.of_total(np.array([-3.0, 3.0]), np.array([0.5, 0.5])), 100, 0.025
    )
    assert (low[0], high[0]) == pytest.approx((-0.588, 0.588), abs=0.02)
