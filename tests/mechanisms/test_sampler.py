"""The production kernel with cryptographic words, and a planted 1 % error that must show."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import sfumato as sf
from sfumato.promises.exam import ALPHA
from sfumato.randomness import words_from

PEOPLE = 2**22


def flips(mechanism, symbol, seed):
    """Return how many of PEOPLE holders of `symbol` report the other one, for a seeded key."""
    key = seed.to_bytes(32, "big")
    words = words_from(key, 0, PEOPLE)[:, :1]
    return int((mechanism.reports_from(np.full(PEOPLE, symbol), words) != symbol).sum())


def far_out(count, probability):
    """Return whether a binomial count lies in the outer α of its exact distribution."""
    return (
        min(binom.cdf(count, PEOPLE, probability), binom.sf(count - 1, PEOPLE, probability))
        < ALPHA / 2
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_warner_flips_match_the_formula(seed):
    count = flips(sf.BinaryResponse(sf.Uniform(2, 1)), 0, seed)
    assert not far_out(count, 1 / (1 + math.e)), (seed, PEOPLE, count)


@pytest.mark.parametrize("seed", [1, 2])
def test_odds_off_by_one_per_cent_are_detected(seed):
    wrong = sf.BinaryResponse(sf.Uniform(2, 1 + math.log(1.01)))
    assert far_out(flips(wrong, 0, seed), 1 / (1 + math.e))


def test_system_words_give_the_same_distribution():
    mechanism = sf.BinaryResponse(sf.Uniform(2, 1))
    reports = mechanism.privatize(np.zeros(PEOPLE, dtype=np.int64))
    probability = 1 / (1 + math.e)
    assert not far_out(int(reports.sum()), probability), (
        "a correct source fails this once in a million runs"
    )


@pytest.mark.parametrize(
    "context",
    [sf.Uniform(20, 1), sf.Blocks(np.arange(20) // 5, 1), sf.HighLow(20, range(6), 1)],
    ids=repr,
)
def test_estimates_have_the_predicted_variance(context):
    """The mean squared error of 200 seeded tallies stays in the χ² range at 1e-6."""
    mechanism = sf.mechanism_for(context, code="hadamard")
    p = np.arange(20, 0, -1.0) / 210
    q = mechanism.forward(p)
    n = 20_000
    runs = 200
    rng = np.random.default_rng(7)
    errors = [mechanism.scores.mean(rng.multinomial(n, q) / n) - p for _ in range(runs)]
    ratio = np.square(errors).sum(axis=1) * n / mechanism.scores.risk(p)
    # The mean of `runs` positive ratios with mean 1; their own spread bounds its error.
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / math.sqrt(runs)
    # This would detect a risk that is off by a third.
    assert abs(ratio.mean() * 1.5 - 1) > 5 * ratio.std() / math.sqrt(runs)
