"""Priors are as likely as those of plain EM, and sound when data are scarce."""

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.estimation.decoders import prior as priors
from sfumato.estimation.decoders.intensities import IntensityScale
from sfumato.estimation.decoders.prior import Observations, Prior, fit_prior


def _observations(count=300, seed=0, s=0.6):
    """Return observations, three quarters near 0 and a quarter spread out, with mean about 1."""
    rng = np.random.default_rng(seed)
    theta = np.where(rng.random(count) < 0.75, 0.1, rng.gamma(4, 1, count))
    errors = s * rng.uniform(0.7, 1.5, count)
    return theta + errors * rng.normal(size=count), errors


def _unbinned(cls, u, s):
    return cls(u, s, np.ones(u.size))


def _densities(u, s, scale):
    """Return the density of each u in each state: at an atom, or on average over a bin."""
    normals = norm(scale.values[:, None], s)
    at_atom = normals.pdf(u)
    widths = scale.highs - scale.lows
    is_bin = widths > 0
    upper = norm.cdf(scale.highs[:, None], u, s)
    lower = norm.cdf(scale.lows[:, None], u, s)
    over_bin = (upper - lower) / np.where(is_bin, widths, 1.0)[:, None]
    return np.where(is_bin[:, None], over_bin, at_atom).T


def _problem(u, s, scale, spread):
    """Return the likelihoods of the observations and of the spread symbol, and their weights."""
    L = _densities(u, s, scale)
    L = L / L.max(axis=1, keepdims=True) + 1e-8
    size = scale.values.size
    c = np.concatenate([np.ones(u.size), np.full(size, spread / size)])
    return np.vstack([L, np.eye(size) + 1e-8]), c / (u.size + spread)


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
    L, c = _problem(u, s, prior.scale, spread)
    apart = _apart(prior.scale.values, 1.0)
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
    L, c = _problem(u, errors, prior.scale, 1.0)
    apart = _apart(prior.scale.values, mean)
    slow_weights = _naive_em(L, c, apart, steps=2_000)
    loss = (u.size + 1) * (_value(L, c, apart, slow_weights) - _value(L, c, apart, prior.weights))
    # Where the observations contradict the mean, the penalty changes Σw too, and rescaling that
    # costs a little. Where the errors are small, the last steps gain little.
    is_easy = mean == 1 and s > 0.1
    assert loss < (max(1e-3, u.size * priors._TOLERANCE) if is_easy else 5e-2)
    assert prior.weights @ prior.scale.values == pytest.approx(
        mean, abs=0.01 * prior.scale.values.max()
    )


def _mean_log_likelihood(prior, u, s):
    """Return the log-likelihood per observation, without the constant of the normal density."""
    densities = _densities(u, s, prior.scale) * s[:, None]
    return float(np.log(densities @ prior.weights).mean())


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
    assert prior.weights @ prior.scale.values == pytest.approx(1, abs=0.01)
    assert prior.weights[prior.scale.values > 2].sum() == pytest.approx(0.25, abs=0.01)
    assert prior.weights[(prior.scale.values > 0.7) & (prior.scale.values < 3)].sum() < 0.01
    posterior = prior.posterior(np.array([-1.0, 0.2, 3.9, 5.0]), np.full(4, 0.5))
    assert posterior.quantiles(np.full(4, 0.5)) == pytest.approx([0, 0, 4, 4], abs=0.25)


def test_bagging_spreads_the_weights():
    """One fit has a few atoms; the mean of nine has more, and is deterministic."""
    u, s = _observations(200, s=2.0)
    one = fit_prior(u, s, mean=1.0, max_theta=50.0, bag_count=0)
    many = fit_prior(u, s, mean=1.0, max_theta=50.0, bag_count=8)
    again = fit_prior(u, s, mean=1.0, max_theta=50.0, bag_count=8)
    assert (many.weights**2).sum() < (one.weights**2).sum()
    assert again.weights.tolist() == many.weights.tolist()
    assert many.weights @ many.scale.values == pytest.approx(1, abs=0.05)


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
    posterior = prior.posterior(u, s)
    quantiles = [posterior.quantiles(np.full(u.size, level)) for level in (0, 0.1, 0.5, 0.9, 1)]
    assert np.isfinite(quantiles).all()
    assert np.min(quantiles) >= 0
    assert (np.diff(quantiles, axis=0) >= 0).all()


def test_no_observations_have_an_empty_posterior():
    prior = Prior(IntensityScale(np.array([0.5, 1.0])), np.array([0.5, 0.5]))
    posterior = prior.posterior(np.empty(0), np.empty(0))
    assert posterior.quantiles(np.empty(0)).shape == (0,)


def test_few_large_symbols_are_not_rounded():
    """The errors are a hundredth of a bin's width, and quantiles stay within them."""
    rng = np.random.default_rng(5)
    theta = np.array([0.3, 0.9, 1.8])
    s = np.full(3, 1e-3)
    u = theta + s * rng.normal(size=3)
    prior = fit_prior(u, s, mean=1.0, max_theta=3.0, bag_count=8)
    assert np.diff(prior.scale.edges[prior.scale.edges > 0.3]).min() > 10 * s[0]
    medians = prior.posterior(u, s).quantiles(np.full(3, 0.5))
    assert np.abs(medians - u).max() < 2 * s[0]
