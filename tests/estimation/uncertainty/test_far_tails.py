"""Simultaneous intervals in blocks of two: exact coverage, summed over all counts of a block.

Simultaneous intervals hold at a level near 1, where small errors of the moments count.
"""

import math

import numpy as np
import pytest
from scipy.stats import multinomial

import sfumato as sf
from sfumato.estimation.uncertainty import intervals
from sfumato.estimation.uncertainty.intervals import share_bounds, tail_probability
from sfumato.mechanisms import ScoreMoments
from support.slow import slow_except

LABELS = 300
PEOPLE = 30_000
TAIL = tail_probability(0.95, LABELS)


def _likely_counts(mean):
    radius = 9 * math.sqrt(mean)
    return np.arange(max(0, int(mean - radius)), int(mean + radius) + 20)


def _block_bounds(epsilon, block_reports, theta, tail):
    """Return the probability of each outcome, and the bounds on the share of the first symbol.

    A block of two has ``block_reports`` reports on average. ``theta`` is the first one's share.
    """
    n = PEOPLE
    truthful = math.exp(epsilon) / (1 + math.exp(epsilon))
    share = block_reports / n
    shares = np.array([theta, 1 - theta]) * share
    q = truthful * shares + (1 - truthful) * shares[::-1]
    counts, counts2 = np.meshgrid(*(_likely_counts(n * chance) for chance in q), indexing="ij")
    outcomes = np.stack([counts, counts2, n - counts - counts2], axis=-1).reshape(-1, 3)
    probability = np.exp(multinomial.logpmf(outcomes, n, [*q, 1 - q.sum()]))
    is_likely = probability > 1e-13
    f = outcomes[is_likely] / n
    contrast = 2 * truthful - 1
    scores = np.array([truthful, truthful - 1, 0]) / contrast
    powers = [f @ scores**power for power in (1, 2, 3, 4)]
    lowest = np.full(len(f), scores.min())
    moments = ScoreMoments(*powers, lowest, np.full(len(f), scores.max()))
    low, high = share_bounds(moments, n, tail)
    return probability[is_likely], shares[0], low, high


def _misses(epsilon, block_reports, theta, tail=TAIL):
    """Return the probability that an interval misses, divided by the tail; 2 is right."""
    probability, share, low, high = _block_bounds(epsilon, block_reports, theta, tail)
    is_miss = (low > share + 1e-12) | (high < share - 1e-12)
    return float(probability[is_miss].sum()) / tail


def _mean_misses(epsilon, block_reports, theta):
    both = (theta, 1 - theta)
    return np.mean([_misses(epsilon, block_reports, each) for each in both])


def _mean_width(epsilon, block_reports, theta):
    probability, _, low, high = _block_bounds(epsilon, block_reports, theta, TAIL)
    return float(probability @ (high - low))


def test_scores_of_this_file_are_those_of_the_mechanism():
    mechanism = sf.mechanism_for(sf.Blocks([0, 0, 1, 1], 1.0))
    truthful = math.e / (1 + math.e)
    expected = np.array([truthful, truthful - 1, 0, 0]) / (2 * truthful - 1)
    assert mechanism.scores.matrix()[0] == pytest.approx(expected, abs=1e-9)


CASES = [
    (epsilon, reports, theta)
    for epsilon in (0.3, 1, 2, 4)
    for reports in (100, 200, 667)
    for theta in (0.5, 0.2, 0.05, 0)
]


@pytest.mark.parametrize(
    ("epsilon", "reports", "theta"),
    slow_except({(1, 200, 0.5), (1, 200, 0.05), (1, 200, 0), (0.3, 100, 0.2)}, CASES),
)
def test_all_cells_are_covered_at_once(epsilon, reports, theta):
    """If all blocks are like this one, all 300 intervals hold in 94.5 of 100 surveys."""
    coverage = 1 - LABELS * TAIL * _mean_misses(epsilon, reports, theta)
    assert coverage >= 0.945


@pytest.mark.parametrize(("epsilon", "reports", "theta"), [(1, 200, 0.05), (0.3, 100, 0.2)])
def test_moments_taken_for_the_truth_miss_too_often(monkeypatch, epsilon, reports, theta):
    """The twin: bounds that are not widened."""
    width = _mean_width(epsilon, reports, theta)
    monkeypatch.setattr(intervals, "_widening", lambda moments, n, tail: 0.0)
    assert 1 - LABELS * TAIL * _mean_misses(epsilon, reports, theta) < 0.945
    assert 1 < width / _mean_width(epsilon, reports, theta) < 1.04


@pytest.mark.parametrize("reports", [70, 200])
def test_single_cells_keep_their_level(reports):
    for theta in (0.5, 0.05, 0, 1):
        assert 0.945 <= 1 - 0.025 * _misses(1, reports, theta, 0.025) <= 0.96


def test_scores_of_two_values_are_not_widened():
    for mechanism in (
        sf.PlainResponse(sf.Uniform(2, 1), sf.RandomizedCode),
        sf.PlainResponse(sf.Uniform(5, 1), sf.RandomizedCode),
        sf.HighLowResponse(sf.HighLow(4, [1], 1), sf.RandomizedCode),
    ):
        f = np.random.default_rng(1).dirichlet(np.ones(mechanism.outputs))
        moments = ScoreMoments.for_symbols(mechanism.scores, f)
        n = np.full(mechanism.inputs, 1000)
        widening = intervals._widening(moments, n, TAIL)
        is_two_valued = [np.unique(row.round(9)).size == 2 for row in mechanism.scores.matrix()]
        assert any(is_two_valued)
        assert widening[is_two_valued] == pytest.approx(0, abs=1e-12)


@pytest.mark.slow
def test_intervals_of_estimates_hold_at_once():
    """Two thousand seeded surveys: 93 of 100 would be noticed, and chance alone would not."""
    rng = np.random.default_rng(1)
    mechanism = sf.mechanism_for(sf.Blocks([x // 2 for x in range(LABELS)], 1))
    p = rng.dirichlet(np.ones(LABELS))
    q = np.maximum(mechanism.forward(p), 0)
    covered = 0
    runs = 2000
    for counts in rng.multinomial(PEOPLE, q / q.sum(), size=runs):
        estimate = sf.estimate(
            mechanism, sf.Tally(counts, mechanism.fingerprint), decoder="unbiased"
        )
        low, high = estimate.simultaneous_interval(0.95)
        covered += bool(((low <= p) & (p <= high)).all())
    assert covered >= 0.945 * runs - 4.75 * math.sqrt(runs * 0.945 * 0.055)
