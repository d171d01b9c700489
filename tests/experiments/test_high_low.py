"""The high-low experiment: older mechanisms match their publications and keep the promise."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy.stats import binom, chi2

import sfumato as sf
from experiments.high_low import (
    DEFAULT,
    EPSILONS,
    FITTED,
    PAPER,
    SCHEMES,
    SENSITIVE,
    URAP,
    URR,
    _probabilities,
    _sensitive_symbols,
    high_low,
)
from experiments.utility_optimized import UtilityOptimizedRappor, utility_optimized_response
from sfumato.errors import NotEnoughReports
from sfumato.foundation.simplex import total_variation
from sfumato.paper.experiment import RunOptions
from sfumato.paper.schemes import paper_estimate
from sfumato.simulation import draw_people

ALPHA = 1e-6


def context(epsilon=1.0):
    return sf.HighLow(5, [1, 4], epsilon)


def bit_rows(rappor, k):
    """Return the chance of every row of bits for each symbol, by multiplication."""
    rows = []
    for x in range(k):
        chances = rappor.probabilities(x)
        vectors = itertools.product((0, 1), repeat=k)
        rows.append(
            [
                math.prod(c if bit else 1 - c for c, bit in zip(chances, y, strict=True))
                for y in vectors
            ]
        )
    return np.array(rows)


def largest_odds(Q, x, x2):
    return max(a / b if b else (math.inf if a else 0.0) for a, b in zip(Q[x], Q[x2], strict=True))


# --- uRR ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_urr_is_the_published_channel_and_is_certified(epsilon):
    mechanism = utility_optimized_response(context(epsilon))
    e = math.exp(epsilon)
    s = 2
    Z = s + e - 1
    # reports 0 and 1 are the sensitive symbols 1 and 4, reports 2.. the others
    expected = np.zeros((5, 5))
    expected[:, :2] = 1 / Z
    expected[1, 0] = expected[4, 1] = e / Z
    for x, y in ((0, 2), (2, 3), (3, 4)):
        expected[x, y] = 1 - s / Z
    np.testing.assert_allclose(mechanism.matrix(), expected, atol=1e-12)
    assert sf.certify(mechanism).realised_epsilon <= epsilon


# --- uRAP -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_urap_keeps_the_promise_exactly(epsilon):
    promise = context(epsilon)
    Q = bit_rows(UtilityOptimizedRappor(promise), 5)
    np.testing.assert_allclose(Q.sum(axis=1), 1)
    for x, x2 in itertools.permutations(range(5), 2):
        odds = largest_odds(Q, x, x2)
        if promise.is_sensitive[x]:
            assert odds == pytest.approx(math.exp(epsilon), rel=1e-12)
        else:
            assert odds == math.inf  # its own bit gives it away, as it may
    # the twin: what a larger ε would do is noticed
    faulty = bit_rows(UtilityOptimizedRappor(context(epsilon + 0.01)), 5)
    assert largest_odds(faulty, 1, 0) > math.exp(epsilon) * 1.005


def test_urap_has_the_published_chances():
    rappor = UtilityOptimizedRappor(context(2.0))
    own = math.e / (math.e + 1)
    other = 1 / (math.e + 1)
    free = 1 - 1 / math.e
    np.testing.assert_allclose(rappor.probabilities(1), [0, own, 0, 0, other])
    np.testing.assert_allclose(rappor.probabilities(3), [0, other, 0, free, other])


def test_urap_is_unbiased():
    rappor = UtilityOptimizedRappor(context())
    p = np.array([0.1, 0.3, 0.05, 0.35, 0.2])
    expected = sum(share * rappor.probabilities(x) for x, share in enumerate(p))
    np.testing.assert_allclose(rappor.unbiased(1000 * expected, 1000), p, atol=1e-12)
    with pytest.raises(NotEnoughReports):
        rappor.unbiased(np.zeros(5), 0)


def chi_square_of_counts(rappor, symbols, bit, chance_of):
    """The statistic of 1,500 counts of one bit against the slow sum over people, and its bound."""
    pmf = np.ones(1)
    for x in symbols:
        pmf = np.convolve(pmf, [1 - chance_of(x), chance_of(x)])
    draws = 1500
    counts = [rappor.bit_counts(symbols, key.to_bytes(32, "big"))[bit] for key in range(draws)]
    seen = np.bincount(counts, minlength=pmf.size)
    used = pmf > 0
    assert not seen[~used].any()
    statistic = ((seen[used] - draws * pmf[used]) ** 2 / (draws * pmf[used])).sum()
    return statistic, chi2.isf(ALPHA, used.sum() - 1)


@pytest.mark.parametrize("bit", [0, 1, 3])
def test_urap_counts_match_people_one_by_one(bit):
    rappor = UtilityOptimizedRappor(context(1.5))
    symbols = np.array([0, 0, 1, 1, 3, 4])
    statistic, bound = chi_square_of_counts(
        rappor, symbols, bit, lambda x: rappor.probabilities(x)[bit]
    )
    assert statistic < bound


def test_urap_counts_off_by_ten_per_cent_are_detected():
    rappor = UtilityOptimizedRappor(context(1.5))
    symbols = np.array([0, 0, 1, 1, 3, 4])
    statistic, bound = chi_square_of_counts(
        rappor, symbols, 1, lambda x: 1.1 * rappor.probabilities(x)[1]
    )
    assert statistic > bound


def test_urap_counts_of_many_people_have_the_right_mean():
    rappor = UtilityOptimizedRappor(context())
    symbols = np.repeat(np.arange(5), [10_000, 20_000, 0, 5_000, 1])
    counts = rappor.bit_counts(symbols, bytes(32))
    for bit, count in enumerate(counts.tolist()):
        chances = np.array([rappor.probabilities(x)[bit] for x in symbols])
        slack = math.sqrt(2 * math.log(2 / ALPHA) * float((chances * (1 - chances)).sum())) + 10
        assert abs(count - chances.sum()) <= slack
    assert counts[2] == 0
    assert binom.ppf(0.5, 0, 0.3) == 0  # a symbol without people


# --- the experiment -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny():
    return high_low(RunOptions(runs=1, seed=5), people=(200,), workers=1)


def test_result_is_complete(tiny, tmp_path):
    assert [row[:4] for row in tiny.rows] == [
        (s, epsilon, 200, scheme) for s in SENSITIVE for epsilon in EPSILONS for scheme in SCHEMES
    ]
    assert all(
        len(row) == len(tiny.columns) and 0 <= row[5] <= 1 and row[6] is None for row in tiny.rows
    )
    bits = {(row[0], row[1], row[3]): row[4] for row in tiny.rows}
    for s, epsilon in itertools.product(SENSITIVE, EPSILONS):
        assert bits[s, epsilon, URAP] == 1000
        assert bits[s, epsilon, URR] == 10
        assert bits[s, epsilon, PAPER] == (1000 - s + 2 ** s.bit_length() - 1).bit_length()
        assert max(bits[s, epsilon, DEFAULT], bits[s, epsilon, FITTED]) <= 13
    paths = tiny.save(tmp_path)
    assert [path.name for path in paths] == [
        f"high-low.{kind}" for kind in ("png", "pdf", "csv", "json")
    ]
    data = json.loads(paths[3].read_text(encoding="utf-8"))
    assert len(data["panels"]) == 9
    assert 0 < data["panels"][0]["sensitive_share"] < data["panels"][-1]["sensitive_share"] < 1


def test_table_matches_a_direct_computation(tiny):
    p = _probabilities(5)
    sensitive = _sensitive_symbols(100, 5)
    mechanism = sf.HighLowResponse(sf.HighLow(1000, sensitive.tolist(), 2))
    symbols = draw_people(p, 200, "high-low/200", 0, 5)
    estimate = paper_estimate(mechanism, symbols, "high-low/200/100/2/paper", 0, 5)
    row = next(row for row in tiny.rows if row[:4] == (100, 2, 200, PAPER))
    assert row[5] == round(total_variation(estimate, p), 5)


def test_paper_estimator_matches_its_formula():
    """Section 5.1 with ``1{Y ∈ [S]}`` and row x+1, report by report; then one projection."""
    promise = sf.HighLow(6, [0, 2, 5], 1)
    e = math.e
    mechanism = sf.HighLowResponse(promise)
    reports = np.arange(mechanism.outputs).repeat([7, 1, 3, 2, 9, 4, 5])
    n = reports.size
    S = 4
    p_A = (e + 1) / (e - 1) * ((reports < S).mean() - 2 / (e + 1))
    expected = np.zeros(6)
    for row, x in enumerate((0, 2, 5)):
        in_set = sum(y < S and ((row + 1) & y).bit_count() % 2 == 0 for y in reports.tolist()) / n
        expected[x] = 2 * (e + 1) / (e - 1) * (in_set - 1 / (e + 1)) - p_A
    for number, x in enumerate((1, 3, 4)):
        expected[x] = (e + 1) / (e - 1) * (reports == S + number).mean()
    np.testing.assert_allclose(
        mechanism.scores.paper_estimate(mechanism.tally(reports)), expected, atol=1e-12
    )


def test_sensitive_sets_are_nested():
    small = _sensitive_symbols(10, 0)
    large = _sensitive_symbols(100, 0)
    assert set(small.tolist()) < set(large.tolist())


@pytest.mark.slow
def test_workers_do_not_change_results(tiny):
    assert high_low(RunOptions(runs=1, seed=5), people=(200,), workers=2).rows == tiny.rows


@pytest.mark.slow
def test_short_reports_match_urap_and_better_codes_win():
    result = high_low(RunOptions(runs=5), people=(64_000,))
    figures = {(row[0], row[1], row[3]): row[5:] for row in result.rows}
    for s, epsilon in itertools.product(SENSITIVE, EPSILONS):
        mean = {scheme: figures[s, epsilon, scheme][0] for scheme in SCHEMES}
        slack = 3 * math.hypot(*(figures[s, epsilon, scheme][1] for scheme in SCHEMES))
        assert mean[PAPER] <= mean[URAP] + slack
        assert mean[PAPER] < mean[URR]
        assert mean[FITTED] < mean[PAPER]
