"""The reach of the scores from their structure matches the scores in fractions."""

from functools import cache, cached_property

import numpy as np
import pytest

import sfumato as sf
from sfumato.mechanisms import PlainResponse, Reach
from sfumato.mechanisms.blocks import BlockScores
from support.mechanism_examples import ALL_REPRESENTATIVES

LARGER = [
    sf.PlainResponse(sf.Uniform(100, 1.0)),  # 27 points of the code are unused
    sf.PlainResponse(sf.Uniform(127, 1.0)),
    sf.PlainResponse(sf.Uniform(60, 1.0), sf.BestCode()),
    sf.PlainResponse(sf.Uniform(50, 2.0), sf.RandomizedCode),
    sf.BlockResponse(sf.Blocks([i * i % 11 for i in range(90)], 1.0)),
    sf.HighLowResponse(sf.HighLow(80, range(0, 80, 3), 1.0)),
    sf.GroupResponse(sf.Blocks([i % 3 for i in range(70)], 1.0, across=2)),
]


@cache
def _score_matrix(mechanism):
    """Return all scores, from fractions."""
    return np.array(
        [
            [float(score) for score in mechanism.scores.exact_column(y)]
            for y in range(mechanism.outputs)
        ]
    ).T


def _agree(mechanism, slack=1e-6):
    A = _score_matrix(mechanism)
    result = mechanism.scores.reach
    nearly = {"rtol": 0, "atol": 1e-9 * np.abs(A).max()}
    np.testing.assert_allclose(result.highest, A.max(axis=1), **nearly)
    np.testing.assert_allclose(result.lowest, A.min(axis=1), **nearly)
    heaviest = np.abs(A).sum(axis=0).max()
    assert heaviest * (1 - 1e-9) <= result.max_absolute_sum <= heaviest * (1 + slack)


@pytest.mark.parametrize("mechanism", ALL_REPRESENTATIVES + LARGER, ids=repr)
def test_reach_matches_the_score_matrix(mechanism):
    _agree(mechanism)


@pytest.mark.parametrize("mechanism", LARGER, ids=repr)
def test_leftover_words_are_counted(mechanism):
    """In short words they are up to two per cent of the heaviest report's weight."""
    _agree(mechanism.with_word_bits(14), slack=0.02)


@pytest.mark.parametrize("mechanism", ALL_REPRESENTATIVES + LARGER, ids=repr)
def test_leverage_is_the_largest_score(mechanism):
    A = _score_matrix(mechanism)
    result = mechanism.scores.reach
    assert mechanism.scores.leverage == pytest.approx(np.abs(A).max(), rel=1e-9)
    assert result.max_shift <= mechanism.scores.leverage + 1 + 1e-9


@pytest.mark.parametrize("mechanism", ALL_REPRESENTATIVES, ids=repr)
def test_reach_bounds_are_attained_by_the_worst_forgery(mechanism):
    """One report replaces one honest person, for every pair: ``A[·, y] − e_x``."""
    A = _score_matrix(mechanism)
    k = mechanism.inputs
    moved = A[:, :, None] - np.eye(k)[:, None, :]  # (symbol, report, symbol of the replaced person)
    scale = np.abs(A).max()
    np.testing.assert_allclose(mechanism.scores.reach.up, moved.max(axis=(1, 2)), atol=1e-9 * scale)
    np.testing.assert_allclose(
        mechanism.scores.reach.down, -moved.min(axis=(1, 2)), atol=1e-9 * scale
    )
    worst = np.abs(moved).sum(axis=0).max() / 2
    assert worst * (1 - 1e-9) <= mechanism.scores.reach.total_variation <= worst * 1.01 + 1e-9


def test_halved_reach_is_detected():
    class Half(BlockScores):
        def _compute_reach(self):
            whole = super()._compute_reach()
            return Reach(whole.highest / 2, whole.lowest / 2, whole.max_absolute_sum / 2)

    class Halved(PlainResponse):
        """Claims half of the effect of a forged report."""

        @cached_property
        def scores(self):
            return Half(self)

    with pytest.raises(AssertionError):
        _agree(Halved(sf.Uniform(20, 1.0)))


def test_published_numbers_at_1024_symbols():
    """Randomised response: (e + k − 2)/(e − 1). The Hadamard code: about (e + 1)/(e − 1)."""
    randomised = sf.PlainResponse(sf.Uniform(1024, 1.0), sf.RandomizedCode).scores.reach
    assert randomised.up.max() == pytest.approx((np.e + 1022) / (np.e - 1), rel=1e-9)
    assert randomised.down.max() == pytest.approx(np.e / (np.e - 1), rel=1e-9)
    coded = sf.PlainResponse(sf.Uniform(1023, 1.0)).scores.reach
    assert coded.up.max() == pytest.approx((np.e + 1) / (np.e - 1), rel=5e-3)


def test_unrandomized_fake_counts_once():
    reach = sf.PlainResponse(sf.Uniform(4, "inf")).scores.reach
    np.testing.assert_allclose(reach.up, 1)
    np.testing.assert_allclose(reach.down, 1)
    assert reach.total_variation == pytest.approx(1)


def test_single_symbol_cannot_be_moved():
    reach = sf.PlainResponse(sf.Uniform(1, 1)).scores.reach
    assert (reach.up[0], reach.down[0], reach.total_variation) == pytest.approx((0, 0, 0))
