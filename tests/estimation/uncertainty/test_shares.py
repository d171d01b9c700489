"""Totals and shares: their values, their intervals and their errors."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

import sfumato as sf
from sfumato.errors import InvalidArgument, InvalidContext
from support.sample_estimates import every_mechanism, sample_estimate, sample_tally

# --- totals ---------------------------------------------------------------------------------------


@every_mechanism
def test_total_is_the_mean_of_its_scores(mechanism):
    tally = sample_tally(mechanism, reports=500)
    estimate = sf.estimate(mechanism, tally)
    weights = np.random.default_rng(2).normal(size=mechanism.inputs)
    columns = [mechanism.scores.exact_column(y) for y in range(mechanism.outputs)]
    scores = np.array(columns, dtype=np.float64) @ weights
    sample = np.repeat(scores, tally.counts)
    total = estimate.weighted_total(weights)
    assert total.estimate == pytest.approx(float(weights @ estimate.unbiased), abs=1e-9)
    assert total.estimate == pytest.approx(sample.mean(), abs=1e-9)
    assert total.standard_error == pytest.approx(
        sample.std(ddof=1) / math.sqrt(500), rel=1e-6, abs=1e-9
    )
    assert weights.min() - 1e-9 <= total.low <= total.high <= weights.max() + 1e-9


@every_mechanism
def test_total_of_one_label_has_its_interval(mechanism):
    estimate = sample_estimate(mechanism)
    low, high = estimate.interval(0.9)
    for x in {0, mechanism.inputs - 1}:
        total = estimate.total([estimate.labels[x]], level=0.9)
        assert (total.estimate, total.low, total.high) == pytest.approx(
            (estimate.unbiased[x], low[x], high[x]), abs=2e-3 * (high[x] - low[x]) + 1e-9
        )


@every_mechanism
def test_total_of_all_labels_is_one(mechanism):
    total = sample_estimate(mechanism).total(mechanism.context.domain.labels)
    assert (total.estimate, total.low, total.high) == pytest.approx((1, 1, 1), abs=1e-9)
    assert total.standard_error == pytest.approx(0, abs=1e-9)


def test_total_of_an_unrandomized_block_is_a_count():
    mechanism = sf.BlockResponse(sf.Blocks([0, 1, 1, 1, 2, 2], 1.0, domain=list("abcdef")))
    tally = sf.Tally([6, 200, 100, 30, 70, 100, 200, 50, 44], mechanism.fingerprint)
    exact = binomtest(6, 800).proportion_ci(0.95, method="exact")
    total = sf.estimate(mechanism, tally).total("a")
    assert (total.low, total.high) == pytest.approx((exact.low, exact.high), rel=1e-6)
    assert sf.estimate(mechanism, tally).total(["b", "c", "d"]).estimate == pytest.approx(400 / 800)


def test_totals_account_for_covariances():
    """The total of two labels that make up nearly everything has a far narrower interval."""
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0), sf.RandomizedCode)
    estimate = sample_estimate(mechanism, p=[0.5, 0.4, 0.1])
    low, high = estimate.interval()
    both = estimate.total(["a", "b"])
    rest = estimate.total(["c"])
    assert both.high - both.low == pytest.approx(rest.high - rest.low, rel=1e-6)
    assert both.high - both.low < 0.6 * (high - low)[:2].sum()


def test_weights_are_a_list_or_a_mapping():
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    estimate = sample_estimate(mechanism)
    assert estimate.weighted_total({"c": 2.0, "a": -1}) == estimate.weighted_total([-1, 0, 2])
    total = estimate.total("b")
    assert total == estimate.total(["b"])
    assert total == estimate.total({"b"})
    assert total == estimate.weighted_total({"b": 1})


def test_one_report_gives_no_bounds_for_a_total():
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    total = sf.estimate(mechanism, mechanism.tally([1])).weighted_total([0, 2, 5])
    assert (total.standard_error, total.low, total.high) == (math.inf, 0, 5)


def test_totals_reject_unknown_labels_and_invalid_weights():
    estimate = sample_estimate(sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0)))
    with pytest.raises(InvalidArgument, match="at least one label"):
        estimate.total([])
    with pytest.raises(InvalidContext, match="'zoo'"):
        estimate.total(["a", "zoo"])
    for weights in ([1, 2], [1, 2, math.nan], [[1, 2, 3]], {"a": math.inf}):
        with pytest.raises(InvalidArgument, match="one per symbol"):
            estimate.weighted_total(weights)


# --- shares of blocks -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code", [sf.HadamardCode, sf.RandomizedCode], ids=["Hadamard", "randomised response"]
)
def test_block_shares_have_exact_binomial_intervals(code):
    context = sf.Blocks([0, 1, 0, 2, 1, 0], 1.0)
    mechanism = sf.BlockResponse(context, code)
    tally = sample_tally(mechanism, p=[0.3, 0.1, 0.05, 0.2, 0.25, 0.1], reports=300)
    shares = sf.estimate(mechanism, tally).block_shares(0.9)
    Q = mechanism.matrix()
    assert shares.exact.all()
    for x in (0, 1, 2, 4, 5):
        peer = next(
            x2 for x2 in range(6) if x2 != x and context.block_of[x2] == context.block_of[x]
        )
        outputs = np.flatnonzero(Q[x] > 0)
        hits = outputs[Q[x, outputs] > Q[x, outputs].min() * 1.5]
        own = Q[x, hits].sum()
        other = Q[peer, hits].sum()
        binomial = binomtest(int(tally.counts[hits].sum()), int(tally.counts[outputs].sum()))
        exact = binomial.proportion_ci(0.9, method="exact")
        for end, pi in ((shares.low[x], exact.low), (shares.high[x], exact.high)):
            assert end == pytest.approx(min(max((pi - other) / (own - other), 0), 1), abs=2e-4)
    assert (shares.low[3], shares.estimates[3], shares.high[3]) == (1, 1, 1)


def test_shares_of_a_block_without_reports_are_unknown():
    mechanism = sf.BlockResponse(sf.Blocks([0, 0, 1, 1], 1.0))
    shares = sf.estimate(mechanism, mechanism.tally([0, 1, 2, 0])).block_shares()
    assert shares.low[2:].tolist() == [0, 0]
    assert shares.high[2:].tolist() == [1, 1]
    assert np.isnan(shares.estimates[2:]).all()


def test_unbalanced_codes_have_no_exact_shares():
    mechanism = sf.BlockResponse(
        sf.Blocks([0] * 6 + [1] * 6, 1.0), sf.CyclicDesign(6, ((0, 1), (0, 2)))
    )
    estimate = sample_estimate(mechanism, reports=5000)
    shares = estimate.block_shares()
    assert not shares.exact.any()
    block = estimate.total(range(6))
    assert shares.estimates[:6] == pytest.approx(estimate.unbiased[:6] / block.estimate)
    assert (shares.low <= np.clip(shares.estimates, 0, 1)).all()
    assert (shares.high >= np.clip(shares.estimates, 0, 1)).all()


def test_block_shares_inside_a_union():
    context = sf.union([sf.Uniform(["a", "b", "c"], 1.0), sf.HighLow(["d", "e"], ["e"], 1.0)])
    parts = [sf.PlainResponse(context.parts[0]), sf.HighLowResponse(context.parts[1])]
    mechanism = sf.UnionResponse(context, parts)
    tally = sample_tally(mechanism, reports=1000)
    shares = sf.estimate(mechanism, tally).block_shares()
    part_tally = sf.Tally(tally.counts[: parts[0].outputs], parts[0].fingerprint)
    alone = sf.estimate(parts[0], part_tally).block_shares()
    assert shares.exact.tolist() == [True, True, True, False, False]
    assert shares.low[:3] == pytest.approx(alone.low)
    assert shares.high[:3] == pytest.approx(alone.high)


def test_shares_within_use_fieller_bounds_for_noisy_symbols():
    mechanism = sf.PlainResponse(sf.Uniform(list("abcd"), 2.0))
    tally = sample_tally(mechanism, p=[0.4, 0.3, 0.2, 0.1], reports=20_000)
    estimate = sf.estimate(mechanism, tally)
    shares = estimate.shares_within(["a", "b"])
    assert shares.labels == ["a", "b"]
    assert shares.estimates == pytest.approx(estimate.unbiased[:2] / estimate.unbiased[:2].sum())
    # Fieller by hand: theta is inside if the total with weights (1 − theta, −theta) may be 0.
    for x, (low, high) in enumerate(zip(shares.low, shares.high, strict=True)):
        for theta in (low, high):
            weights = np.array([-theta, -theta, 0, 0])
            weights[x] += 1
            total = estimate.weighted_total(weights)
            assert abs(total.estimate) / total.standard_error == pytest.approx(1.96, abs=2e-3)


def test_shares_within_an_empty_part_are_unknown():
    mechanism = sf.PlainResponse(sf.Uniform(list("abcd"), 0.5))
    estimate = sample_estimate(mechanism, p=[0.5, 0.5, 0, 0], reports=1000)
    unknown = estimate.shares_within(["c", "d"])
    assert (unknown.low.tolist(), unknown.high.tolist()) == ([0, 0], [1, 1])
    certain = estimate.shares_within(["a"])
    assert (certain.low[0], certain.high[0], certain.exact[0]) == (1, 1, True)
