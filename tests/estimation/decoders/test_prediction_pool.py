"""Pools of predictions: what they return, what they gain, and how they are fitted."""

import numpy as np
import pytest

from sfumato.estimation.decoders import prediction_pool
from sfumato.estimation.decoders.prediction_pool import PredictionPool, _Fit

STATES = 8


def _crowd(size=3_000, seed=0):
    """Return likelihoods, the distributions that the states were drawn from, and noisy copies."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(STATES, 0.5), size)
    states = (truth.cumsum(axis=1) < rng.random(size)[:, None]).sum(axis=1).clip(0, STATES - 1)
    noise = states + rng.normal(0, 0.7, size)
    rows = np.exp(-0.5 * ((noise[:, None] - np.arange(STATES)) / 0.7) ** 2) + 1e-8
    experts = []
    for _ in range(3):
        noisy = truth * rng.gamma(2, 1, truth.shape) + 1e-3
        experts.append((noisy / noisy.sum(axis=1, keepdims=True)).astype(np.float32))
    return rows.astype(np.float32), experts


def _pool(rows, experts, weights):
    pool = PredictionPool(rows)
    for expert, weight in zip(experts, weights, strict=True):
        pool.add(expert, weight)
    return pool.prior()


def _score(prior, rows):
    """Return the log density of all reports."""
    return float(np.log((prior * rows).sum(axis=1, dtype=np.float64)).sum())


def test_equal_experts_are_returned_if_reports_say_nothing():
    _, experts = _crowd()
    rows = np.ones_like(experts[0])
    prior, gain = _pool(rows, [experts[0]] * 3, [0.5, 0.3, 0.2])
    assert prior == pytest.approx(experts[0], rel=1e-3, abs=1e-5)
    assert gain == pytest.approx(0, abs=1e-2)


def test_priors_are_distributions():
    rows, experts = _crowd()
    prior, _ = _pool(rows, experts, [0.2, 0.5, 0.3])
    assert (prior >= 0).all()
    assert prior.sum(axis=1) == pytest.approx(np.ones(rows.shape[0]), rel=1e-5)


def test_gain_is_the_score_less_the_mean_score_of_the_experts():
    rows, experts = _crowd()
    weights = [0.2, 0.5, 0.3]
    prior, gain = _pool(rows, experts, weights)
    mean_score = np.dot(weights, [_score(expert, rows) for expert in experts])
    assert gain == pytest.approx(_score(prior, rows) - mean_score, abs=0.05)
    assert gain > 30  # independent errors of three experts cancel in part


def test_one_expert_gains_little():
    rows, experts = _crowd()
    _, gain = _pool(rows, experts[:1], [1.0])
    _, gain_of_three = _pool(rows, experts, [1 / 3] * 3)
    assert -0.1 <= gain < gain_of_three / 2


def test_pool_forgives_a_wrong_expert():
    """One of two experts predicts the opposite of the other."""
    rows, experts = _crowd()
    wrong = experts[1][:, ::-1]
    prior, _ = _pool(rows, [experts[0], wrong], [0.5, 0.5])
    scores = [_score(each, rows) for each in (experts[0], wrong)]
    assert _score(prior, rows) > np.mean(scores)


def test_equal_predictions_of_all_cells_may_be_broadcast():
    rows, experts = _crowd(100)
    same = experts[0][0]
    prior, gain = _pool(rows, [experts[0], np.broadcast_to(same, rows.shape)], [0.5, 0.5])
    copies = np.repeat(same[None, :], 100, axis=0)
    expected, expected_gain = _pool(rows, [experts[0], copies], [0.5, 0.5])
    assert prior.tolist() == expected.tolist()
    assert gain == expected_gain


def test_chunks_do_not_matter(monkeypatch):
    rows, experts = _crowd(200)
    expected, expected_gain = _pool(rows, experts, [0.2, 0.5, 0.3])
    monkeypatch.setattr(prediction_pool, "_CHUNK_ROWS", 7)
    prior, gain = _pool(rows, experts, [0.2, 0.5, 0.3])
    assert prior == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert gain == pytest.approx(expected_gain, abs=0.01)


# --- the fit --------------------------------------------------------------------------------------


def _fit(rows, experts):
    logs = np.mean([np.log(expert) for expert in experts], axis=0).astype(np.float32)
    means = np.log(np.mean(experts, axis=0)).astype(np.float32)
    crowd = np.log(np.mean(experts, axis=(0, 1))).astype(np.float32)
    return _Fit(rows, (logs, means, crowd))


@pytest.mark.parametrize("seed", range(3))
def test_fit_finds_the_best_weights(seed):
    optimize = pytest.importorskip("scipy.optimize")
    rows, experts = _crowd(seed=seed)
    fit = _fit(rows, experts)
    a = fit.best_weights()
    at_start = fit._evaluate(prediction_pool._START)[2]
    optimum = optimize.minimize(
        lambda x: -fit._evaluate(x)[2], prediction_pool._START, method="Nelder-Mead"
    )
    assert fit._evaluate(a)[2] > at_start + 1
    assert fit._evaluate(a)[2] > -optimum.fun - 0.2


def test_fit_stays_at_the_start_without_reports():
    _, experts = _crowd()
    fit = _fit(np.ones_like(experts[0]), experts)
    assert fit.best_weights() == pytest.approx(prediction_pool._START, abs=1e-3)
