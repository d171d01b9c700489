"""Differences between estimates, and rankings within one."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

import sfumato as sf
from sfumato.errors import ContextMismatch, InvalidArgument
from sfumato.estimation.uncertainty.comparisons import (
    DECREASED,
    INCONCLUSIVE,
    INCREASED,
    Difference,
    TopSymbols,
)
from support.sample_estimates import sample_estimate

# --- differences ----------------------------------------------------------------------------------


def test_differences_square_the_arms_of_two_intervals():
    before = np.array([0.2, 0.5])
    after = np.array([0.6, 0.0])
    result = Difference.from_intervals(
        "ab", before, (before - 0.03, before + 0.04), after, (after - 0.05, after + 0.06), 0.9
    )
    down = result.differences - result.low
    up = result.high - result.differences
    assert result.differences.tolist() == pytest.approx([0.4, -0.5])
    assert down.tolist() == pytest.approx([math.hypot(0.05, 0.04)] * 2)
    assert up.tolist() == pytest.approx([math.hypot(0.06, 0.03)] * 2)
    assert result.verdicts.tolist() == [INCREASED, DECREASED]
    assert result.changed == ["b", "a"]  # the largest first


def test_difference_reports_changes_only():
    mechanism = sf.BlockResponse(sf.Blocks([0, 0, 0, 1, 1], 1.0, domain=list("abcde")))
    before = sample_estimate(mechanism, p=[0.4, 0.1, 0.1, 0.2, 0.2], reports=20_000, seed=1)
    after = sample_estimate(mechanism, p=[0.1, 0.4, 0.1, 0.2, 0.2], reports=30_000, seed=2)
    result = before.difference(after)
    assert result.verdicts.tolist() == [DECREASED, INCREASED, *[INCONCLUSIVE] * 3]
    assert set(result.changed) == {"a", "b"}
    assert "1 increased, 1 decreased, 3 inconclusive" in repr(result)
    assert after.difference(before).verdicts.tolist()[:2] == [INCREASED, DECREASED]


def test_false_changes_are_as_rare_as_promised():
    mechanism = sf.HighLowResponse(sf.HighLow(8, [0, 1, 2], 1.0))
    p = [0.3, 0.2, 0.1, 0.3, 0.09, 0.005, 0.005, 0.0]
    runs = 400
    wrong = 0
    for run in range(runs):
        before = sample_estimate(mechanism, p=p, seed=2 * run)
        after = sample_estimate(mechanism, p=p, seed=2 * run + 1)
        wrong += bool(before.difference(after).changed)
    assert binom.sf(wrong - 1, runs, 0.05) > 1e-6


def test_difference_needs_the_same_labels_but_not_the_same_mechanism():
    domain = ["a", "b", "c"]
    first = sample_estimate(sf.PlainResponse(sf.Uniform(domain, 1.0)))
    second = sample_estimate(sf.HighLowResponse(sf.HighLow(domain, ["b"], 2.0)), reports=100)
    assert len(first.difference(second).verdicts) == 3
    with pytest.raises(ContextMismatch, match="same labels"):
        first.difference(sample_estimate(sf.PlainResponse(sf.Uniform(["a", "c", "b"], 1.0))))


def test_one_report_shows_no_change():
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    one = sf.estimate(mechanism, mechanism.tally([1]))
    many = sample_estimate(mechanism)
    assert (
        set(one.difference(many).verdicts) == set(many.difference(one).verdicts) == {INCONCLUSIVE}
    )


# --- rankings -------------------------------------------------------------------------------------


def _naive_top(low, high, size):
    """Compare each symbol with every other, in its worst and in its best case."""
    certainly = set()
    possibly = set()
    for x in range(len(low)):
        others = [other for other in range(len(low)) if other != x]
        if sum(high[other] > low[x] for other in others) < size:
            certainly.add(x)
        if sum(low[other] > high[x] for other in others) < size:
            possibly.add(x)
    return certainly, possibly


@pytest.mark.parametrize("seed", range(30))
def test_top_matches_comparing_every_pair(seed):
    random = np.random.default_rng(seed)
    middle = random.random(9).round(1)
    low = middle - random.random(9).round(1) / 3
    high = middle + random.random(9).round(1) / 3
    for size in (1, 3, 9, 20):
        top = TopSymbols.from_intervals(range(9), middle, (low, high), size, 0.95)
        assert (set(top.certainly), set(top.possibly)) == _naive_top(low, high, size)
        assert list(top.possibly) == sorted(top.possibly, key=lambda x: -middle[x])
        assert set(top.certainly) <= set(top.possibly)
        assert len(top.certainly) <= size


def test_top_holds_for_every_truth_inside_the_intervals():
    low = np.array([0.5, 0.3, 0.25, 0.0])
    high = np.array([0.6, 0.4, 0.35, 0.1])
    for size in (1, 2, 3):
        top = TopSymbols.from_intervals(range(4), low, (low, high), size, 0.95)
        for truth in itertools.product(*zip(low, high, strict=True)):
            best = set(np.argsort(-np.array(truth), kind="stable")[:size].tolist())
            assert set(top.certainly) <= best <= set(top.possibly)


def test_top_uses_simultaneous_intervals():
    mechanism = sf.PlainResponse(sf.Uniform(list("abcd"), 2.0))
    estimate = sample_estimate(mechanism, p=[0.6, 0.2, 0.19, 0.01], reports=20_000)
    top = estimate.top(2)
    assert top.certainly == ("a",)
    assert set(top.possibly) == {"a", "b", "c"}
    assert estimate.top(4).certainly == estimate.top(9).possibly
    for size in (0, -1, 1.5, True, "2"):
        with pytest.raises(InvalidArgument, match="positive integer"):
            estimate.top(size)
