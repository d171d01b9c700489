"""Priors are as likely as those of plain EM, and sound when data are scarce."""

import numpy as np
import pytest

from sfumato.estimation.decoders import prior as priors
from sfumato.estimation.decoders.prior import (
    Observations,
    Posterior,
    Prior,
    fit_prior,
    posterior_quantiles,
)


def _observations(count=300, seed=0, s=0.6):
    """Return observations, three quarters near 0 and a quarter spread out, with mean about 1."""
    rng = np.random.default_rng(seed)
    theta = np.where(rng.random(count) < 0.75, 0.1, rng.gamma(4, 1, count))
    errors = s * rng.uniform(0.7, 1.5, count)
    return theta + errors * rng.normal(size=count), errors


def _unbinned(cls, u, s):
    return cls(u, s, np.ones(u.size))


def _problem(u, s, values, spread):
    """Return the likelihoods of the observations and of the spread symbol, and their weights."""
    L = np.exp(-0.5 * ((u[:, None] - values) / s[:, None]) ** 2)
    L = L / L.max(axis=1, keepdims=True) + 1e-8
    c = np.concatenate([np.ones(u.size), np.full(values.size, spread / values.size)])
    return np.vstack([L, np.eye(values.size) + 1e-8]), c / (u.size + spread)


def _apart(values, mean):
    return (values - mean) / np.abs(values - mean).max()


def _naive_em(L, c, apart, P=1e3, steps=20_000):
    """Fit by plain EM.

    The M-step, ``Σ N_g log w_g − P (a·w)²/2``, has ``w_g = N_g/(1 − P t² + P t a_g)``, t = a·w.
    """
    w = np.full(apart.size, 1 / apart.size)
    t = 0.0
    for _ in range(steps):
        N = w * (L.T @ (c / (L @ w)))
        t = _naive_shift(N, apart, P, t)
        w = N / (1 - P * t**2 + P * t * apart)
    return w / w.sum()


def _naive_shift(N, a, P, t):
    """Solve ``Σ a N/(1 − P t² + P t a) = t`` between the poles.

    This is Newton's method, with bisection where a step leaves the bracket.
    """
    low = (a.max() - np.sqrt(a.max() ** 2 + 4 / P)) / 2
    high = (a.min() + np.sqrt(a.min() ** 2 + 4 / P)) / 2
    for _ in range(100):
        below = 1 - P * t**2 + P * t * a
        off = (a * N / below).sum() - t
        if off > 0:
            low = t
        else:
            high = t
        t_next = t + off / (1 + (a * N * P * (a - 2 * t) / below**2).sum())
        if abs(t_next - t) < 1e-12:
            break
        t = t_next if low < t_next < high else (low + high) / 2
    return t


def _value(L, c, apart, w, penalty=1e3):
    return float(c @ np.log(L @ w) - penalty / 2 * (apart @ w) ** 2)


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_prior_is_as_likely_as_that_of_plain_em(spread, monkeypatch):
    monkeypatch.setattr(priors, "_PSEUDO_COUNT", spread)
    monkeypatch.setattr(priors.Observations, "bin", classmethod(_unbinned))
    u, s = _observations()
    prior = fit_prior(u, s, mean=1.0, max_theta=50.0, bag_count=0)
    L, c = _problem(u, s, prior.values, spread)
    apart = _apart(prior.values, 1.0)
    slow_weights = _naive_em(L, c, apart)
    value = (u.size + spread) * _value(L, c, apart, prior.weights)
    theirs = (u.size + spread) * _value(L, c, apart, slow_weights)
    assert abs(value - theirs) < max(1e-3, u.size * priors._TOLERANCE)
    # An even prior is far less likely.
    even = np.full(apart.size, 1 / apart.size)
    assert _value(L, c, apart, even) * u.size < value - 10


@pytest.mark.parametrize("s", [0.05, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("mean", [0.8, 1.0, 1.3])
def test_em_finds_no_likelier_prior(s, mean, monkeypatch):
    monkeypatch.setattr(priors.Observations, "bin", classmethod(_unbinned))
    u, errors = _observations(seed=1, s=s)
    prior = fit_prior(u, errors, mean=mean, max_theta=50.0, bag_count=0)
    L, c = _problem(u, errors, prior.values, 1.0)
    apart = _apart(prior.values, mean)
    slow_weights = _naive_em(L, c, apart, steps=2_000)
    loss = (u.size + 1) * (_value(L, c, apart, slow_weights) - _value(L, c, apart, prior.weights))
    # Where the observations contradict the mean, the penalty changes Σw too, and rescaling that
    # costs a little.
    assert loss < (max(1e-3, u.size * priors._TOLERANCE) if mean == 1 else 5e-2)
    assert prior.weights @ prior.values == pytest.approx(mean, abs=0.01 * prior.values.max())


def _mean_log_likelihood(prior, u, s):
    """Return the log-likelihood per observation, without the constant of the normal density."""
    chances = np.exp(-0.5 * ((u[:, None] - prior.values) / s[:, None]) ** 2) @ prior.weights
    return float(np.log(chances).mean())


def test_binning_costs_little(monkeypatch):
    """Bins of half an error cost a thousandth of a unit per observation. Bins of four cost more."""
    u, s = _observations(2_000)
    assert 30 < Observations.bin(u, s).u.size < 200
    binned = fit_prior(u, s, mean=1.0, max_theta=50.0, bag_count=0)
    monkeypatch.setattr(priors, "_U_BIN_WIDTH", 4.0)
    coarse = fit_prior(u, s, mean=1.0, max_theta=50.0, bag_count=0)
    monkeypatch.setattr(priors.Observations, "bin", classmethod(_unbinned))
    exact = fit_prior(u, s, mean=1.0, max_theta=50.0, bag_count=0)
    best = _mean_log_likelihood(exact, u, s)
    assert best - _mean_log_likelihood(binned, u, s) < 1e-3
    assert best - _mean_log_likelihood(coarse, u, s) > 5e-3


@pytest.mark.parametrize("bag_count", [0, 8])
def test_log_likelihood_is_from_the_first_fit(bag_count):
    u, s = _observations(500)
    prior = fit_prior(u, s, mean=1.0, max_theta=50.0, bag_count=bag_count)
    first = fit_prior(u, s, mean=1.0, max_theta=50.0, bag_count=0)
    binned = Observations.bin(u, s)
    z = (binned.u[:, None] - first.values) / binned.s[:, None]
    chances = np.exp(-0.5 * z**2) @ first.weights
    assert prior.log_likelihood == pytest.approx(float(binned.counts @ np.log(chances)), rel=1e-5)


def test_binning_keeps_the_mean():
    u, s = _observations(1_000)
    binned = Observations.bin(u, s)
    assert binned.counts.sum() == 1_000
    assert binned.counts @ binned.u == pytest.approx(u.sum())
    assert binned.counts @ binned.s == pytest.approx(s.sum())
    far = np.array([0.0, 10.0]), np.array([1.0, 1.0])
    assert Observations.bin(*far).u.tolist() == [0.0, 10.0]


def test_two_points_are_recovered():
    """A quarter of the values are 4 and the others 0, with errors of ½."""
    rng = np.random.default_rng(3)
    theta = np.repeat([0.0, 4.0], [3_000, 1_000])
    s = np.full(theta.size, 0.5)
    u = theta + s * rng.normal(size=theta.size)
    prior = fit_prior(u, s, mean=1.0, max_theta=20.0, bag_count=8)
    assert prior.weights.sum() == pytest.approx(1)
    assert prior.weights @ prior.values == pytest.approx(1, abs=0.01)
    assert prior.weights[prior.values > 2].sum() == pytest.approx(0.25, abs=0.01)
    assert prior.weights[(prior.values > 0.7) & (prior.values < 3)].sum() < 0.01
    posterior = Posterior(prior, np.array([-1.0, 0.2, 3.9, 5.0]), np.full(4, 0.5))
    assert posterior.means() == pytest.approx([0, 0, 4, 4], abs=0.15)


def test_bagging_spreads_the_weights():
    """One fit has a few atoms; the mean of nine has more, and is deterministic."""
    u, s = _observations(200, s=2.0)
    one = fit_prior(u, s, mean=1.0, max_theta=50.0, bag_count=0)
    many = fit_prior(u, s, mean=1.0, max_theta=50.0, bag_count=8)
    again = fit_prior(u, s, mean=1.0, max_theta=50.0, bag_count=8)
    assert (many.weights**2).sum() < (one.weights**2).sum()
    assert again.weights.tolist() == many.weights.tolist()
    assert many.weights @ many.values == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("u", "s"),
    [
        (np.ones(50), np.full(50, 0.3)),
        (np.zeros(50), np.full(50, 0.3)),
        (np.full(50, -4.0), np.full(50, 0.3)),
        (np.array([1.0]), np.array([0.5])),
        (np.array([-3.0, 5.0]), np.array([1e-9, 1e-9])),
        (np.linspace(-1e6, 1e6, 40), np.full(40, 1e6)),
        (np.linspace(0, 3, 40), np.full(40, 1e-12)),
        (np.linspace(0, 3, 40), np.geomspace(1e-6, 1e6, 40)),
        (np.array([1e12, -1e12, 0.0]), np.array([1.0, 1.0, 1.0])),
    ],
    ids=[
        "all 1",
        "all 0",
        "all negative",
        "one",
        "two, sure",
        "huge errors",
        "tiny errors",
        "mixed errors",
        "far out",
    ],
)
def test_degenerate_observations_have_a_prior(u, s):
    prior = fit_prior(u, s, mean=1.0, max_theta=max(u.size, 2), bag_count=8)
    assert np.isfinite(prior.weights).all()
    assert (prior.weights >= 0).all()
    assert prior.weights.sum() == pytest.approx(1)
    assert np.isfinite(prior.log_likelihood)
    posterior = Posterior(prior, u, s)
    assert np.isfinite(posterior.means()).all()
    assert np.isfinite(posterior.cumulative()).all()
    assert (posterior.means() >= 0).all()


def test_no_observations_have_an_empty_posterior():
    prior = Prior(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 0.0)
    posterior = Posterior(prior, np.empty(0), np.empty(0))
    assert posterior.means().shape == (0,)
    assert posterior.cumulative().shape == (0, 2)


def test_posterior_follows_bayes_rule(monkeypatch):
    """Row by row, in chunks that do not divide the rows."""
    monkeypatch.setattr(priors, "_CHUNK_ROWS", 7)
    rng = np.random.default_rng(4)
    values = np.sort(rng.random(5)) * 4
    prior = Prior(values, rng.dirichlet(np.ones(5)), 0.0)
    u = rng.normal(1, 1, 20)
    s = rng.uniform(0.5, 2, 20)
    posterior = Posterior(prior, u, s)
    means = posterior.means()
    cumulative = posterior.cumulative()
    for i in range(20):
        weights = [
            w * np.exp(-((u[i] - v) ** 2) / (2 * s[i] ** 2))
            for v, w in zip(values, prior.weights, strict=True)
        ]
        chances = np.array(weights) / sum(weights)
        assert means[i] == pytest.approx(sum(chances * values), rel=1e-5)
        middles = [sum(chances[:g]) + chances[g] / 2 for g in range(5)]
        assert cumulative[i] == pytest.approx(middles, abs=1e-6)


def test_quantiles_interpolate_on_the_grid(monkeypatch):
    monkeypatch.setattr(priors, "_CHUNK_ROWS", 3)
    values = np.array([0.0, 1.0, 3.0, 7.0])
    cumulative = np.array([[0.1, 0.4, 0.7, 0.95], [0.4, 0.9, 0.95, 0.99]], dtype=np.float32)
    rows = np.array([0, 1, 0, 1, 0, 1, 0])
    levels = np.array([0.4, 0.65, 0.55, 0.1, 1.0, 0.97, 0.05])
    expected = [
        np.interp(level, cumulative[row], values) for row, level in zip(rows, levels, strict=True)
    ]
    assert posterior_quantiles(cumulative, rows, values, levels) == pytest.approx(
        expected, abs=1e-5
    )
