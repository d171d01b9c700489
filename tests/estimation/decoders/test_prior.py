"""Fitted priors: as likely as plain EM finds them, by a bound that needs no twin, and sane where
there is little.
"""

import numpy as np
import pytest

from sfumato.estimation.decoders import prior as priors
from sfumato.estimation.decoders.prior import Observations, Prior, fit_prior, quantiles


def _crowd(count=300, seed=0, s=0.6):
    """Three quarters near 0, a quarter spread out; the mean is about 1."""
    rng = np.random.default_rng(seed)
    theta = np.where(rng.random(count) < 0.75, 0.1, rng.gamma(4, 1, count))
    errors = s * rng.uniform(0.7, 1.5, count)
    return theta + errors * rng.normal(size=count), errors


def _unbinned(cls, u, s):
    return cls(u, s, np.ones(u.size))


def _problem(u, s, values, spread):
    """Rows of likelihoods, those of the crowd and those of the spread symbol, with their weights."""
    L = np.exp(-0.5 * ((u[:, None] - values) / s[:, None]) ** 2)
    L = L / L.max(axis=1, keepdims=True) + 1e-8
    c = np.concatenate([np.ones(u.size), np.full(values.size, spread / values.size)])
    return np.vstack([L, np.eye(values.size) + 1e-8]), c / (u.size + spread)


def _apart(values, mean):
    return (values - mean) / np.abs(values - mean).max()


def _naive_em(L, c, apart, P=1e3, steps=20_000):
    """Plain EM. Its M-step, ``Σ N_g log w_g − P (a·w)²/2``, has ``w_g = N_g/(1 − P t² + P t a_g)``
    with t = a·w.
    """
    w, t = np.full(apart.size, 1 / apart.size), 0.0
    for _ in range(steps):
        N = w * (L.T @ (c / (L @ w)))
        t = _naive_shift(N, apart, P, t)
        w = N / (1 - P * t**2 + P * t * apart)
    return w / w.sum()


def _naive_shift(N, a, P, t):
    """The t with ``Σ a N/(1 − P t² + P t a) = t``, between the poles: Newton's method, halving
    where that leaves.
    """
    low = (a.max() - np.sqrt(a.max() ** 2 + 4 / P)) / 2
    high = (a.min() + np.sqrt(a.min() ** 2 + 4 / P)) / 2
    for _ in range(100):
        below = 1 - P * t**2 + P * t * a
        off = (a * N / below).sum() - t
        low, high = (t, high) if off > 0 else (low, t)
        t_next = t + off / (1 + (a * N * P * (a - 2 * t) / below**2).sum())
        if abs(t_next - t) < 1e-12:
            break
        t = t_next if low < t_next < high else (low + high) / 2
    return t


def _value(L, c, apart, w, penalty=1e3):
    return float(c @ np.log(L @ w) - penalty / 2 * (apart @ w) ** 2)


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_a_prior_is_as_likely_as_plain_em_finds_it(spread, monkeypatch):
    monkeypatch.setattr(priors, "_SPREAD", spread)
    monkeypatch.setattr(priors.Observations, "bin", classmethod(_unbinned))
    u, s = _crowd()
    found = fit_prior(u, s, mean=1.0, largest=50.0, bags=0)
    L, c = _problem(u, s, found.values, spread)
    apart = _apart(found.values, 1.0)
    twin = _naive_em(L, c, apart)
    ours, theirs = ((u.size + spread) * _value(L, c, apart, w) for w in (found.weights, twin))
    assert abs(ours - theirs) < max(1e-3, u.size * priors._TOLERANCE)
    assert (
        _value(L, c, apart, np.full(apart.size, 1 / apart.size)) * u.size < ours - 10
    )  # there was something to find


@pytest.mark.parametrize("s", [0.05, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("mean", [0.8, 1.0, 1.3])
def test_em_finds_no_likelier_prior(s, mean, monkeypatch):
    monkeypatch.setattr(priors.Observations, "bin", classmethod(_unbinned))
    u, errors = _crowd(seed=1, s=s)
    found = fit_prior(u, errors, mean=mean, largest=50.0, bags=0)
    L, c = _problem(u, errors, found.values, 1.0)
    apart = _apart(found.values, mean)
    twin = _naive_em(L, c, apart, steps=2_000)
    lost = (u.size + 1) * (_value(L, c, apart, twin) - _value(L, c, apart, found.weights))
    # Where the crowd contradicts the mean, the penalty pulls at Σw too, and rescaling that costs a
    # little.
    assert lost < (max(1e-3, u.size * priors._TOLERANCE) if mean == 1 else 5e-2)
    assert found.weights @ found.values == pytest.approx(mean, abs=0.01 * found.values.max())


def _explained(prior, u, s):
    """Per observation, without the constant of the normal density."""
    chances = np.exp(-0.5 * ((u[:, None] - prior.values) / s[:, None]) ** 2) @ prior.weights
    return float(np.log(chances).mean())


def test_binning_costs_next_to_nothing(monkeypatch):
    """Bins of half an error: a thousandth of a unit of likelihood per observation, bins of four
    cost more.
    """
    u, s = _crowd(2_000)
    assert 30 < Observations.bin(u, s).u.size < 200
    binned = fit_prior(u, s, mean=1.0, largest=50.0, bags=0)
    monkeypatch.setattr(priors, "_BIN_WIDTH", 4.0)
    coarse = fit_prior(u, s, mean=1.0, largest=50.0, bags=0)
    monkeypatch.setattr(priors.Observations, "bin", classmethod(_unbinned))
    exact = fit_prior(u, s, mean=1.0, largest=50.0, bags=0)
    best = _explained(exact, u, s)
    assert best - _explained(binned, u, s) < 1e-3
    assert best - _explained(coarse, u, s) > 5e-3


@pytest.mark.parametrize("bags", [0, 8])
def test_the_log_likelihood_is_that_of_the_first_fit(bags):
    u, s = _crowd(500)
    found = fit_prior(u, s, mean=1.0, largest=50.0, bags=bags)
    first = fit_prior(u, s, mean=1.0, largest=50.0, bags=0)
    binned = Observations.bin(u, s)
    chances = (
        np.exp(-0.5 * ((binned.u[:, None] - first.values) / binned.s[:, None]) ** 2) @ first.weights
    )
    assert found.log_likelihood == pytest.approx(float(binned.counts @ np.log(chances)), rel=1e-5)


def test_binning_keeps_the_mean():
    u, s = _crowd(1_000)
    binned = Observations.bin(u, s)
    assert binned.counts.sum() == 1_000
    assert binned.counts @ binned.u == pytest.approx(u.sum())
    assert binned.counts @ binned.s == pytest.approx(s.sum())
    far = np.array([0.0, 10.0]), np.array([1.0, 1.0])
    assert Observations.bin(*far).u.tolist() == [0.0, 10.0]


def test_two_points_are_recovered():
    """A quarter at 4, the others at 0, errors of 1/2: the weight of each half of the line, and the
    posterior means.
    """
    rng = np.random.default_rng(3)
    theta = np.repeat([0.0, 4.0], [3_000, 1_000])
    s = np.full(theta.size, 0.5)
    prior = fit_prior(theta + s * rng.normal(size=theta.size), s, mean=1.0, largest=20.0)
    assert prior.weights.sum() == pytest.approx(1)
    assert prior.weights @ prior.values == pytest.approx(1, abs=0.01)
    assert prior.weights[prior.values > 2].sum() == pytest.approx(0.25, abs=0.01)
    assert prior.weights[(prior.values > 0.7) & (prior.values < 3)].sum() < 0.01
    posterior = prior.posterior(np.array([-1.0, 0.2, 3.9, 5.0]), np.full(4, 0.5))
    assert posterior.means() == pytest.approx([0, 0, 4, 4], abs=0.15)
    assert (posterior.deviations() < 0.35).all()


def test_bags_leave_open_what_the_data_do_not_tell():
    """One fit is a handful of atoms; the mean of nine has more of them and is the same every time."""
    u, s = _crowd(200, s=2.0)
    one, many = (fit_prior(u, s, mean=1.0, largest=50.0, bags=bags) for bags in (0, 8))
    assert (many.weights**2).sum() < (one.weights**2).sum()
    assert fit_prior(u, s, mean=1.0, largest=50.0).weights.tolist() == many.weights.tolist()
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
    prior = fit_prior(u, s, mean=1.0, largest=max(u.size, 2))
    assert np.isfinite(prior.weights).all()
    assert (prior.weights >= 0).all()
    assert prior.weights.sum() == pytest.approx(1)
    assert np.isfinite(prior.log_likelihood)
    posterior = prior.posterior(u, s)
    for found in (posterior.means(), posterior.deviations(), posterior.cumulative()):
        assert np.isfinite(found).all()
    assert (posterior.means() >= 0).all()


def test_nothing_observed_has_an_empty_posterior():
    prior = Prior(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 0.0)
    posterior = prior.posterior(np.empty(0), np.empty(0))
    assert posterior.means().shape == posterior.deviations().shape == (0,)
    assert posterior.cumulative().shape == (0, 2)


def test_a_posterior_is_bayes_rule(monkeypatch):
    """Row by row, over chunks that do not divide the rows."""
    monkeypatch.setattr(priors, "_CHUNK", 7)
    rng = np.random.default_rng(4)
    values = np.sort(rng.random(5)) * 4
    prior = Prior(values, rng.dirichlet(np.ones(5)), 0.0)
    u, s = rng.normal(1, 1, 20), rng.uniform(0.5, 2, 20)
    posterior = prior.posterior(u, s)
    means, deviations, cumulative = (
        posterior.means(),
        posterior.deviations(),
        posterior.cumulative(),
    )
    for i in range(20):
        weights = [
            w * np.exp(-((u[i] - v) ** 2) / (2 * s[i] ** 2))
            for v, w in zip(values, prior.weights, strict=True)
        ]
        chances = np.array(weights) / sum(weights)
        mean = sum(chances * values)
        assert means[i] == pytest.approx(mean, rel=1e-5)
        assert deviations[i] == pytest.approx(
            np.sqrt(sum(chances * (values - mean) ** 2)), rel=1e-3
        )
        halfway = [sum(chances[:g]) + chances[g] / 2 for g in range(5)]
        assert cumulative[i] == pytest.approx(halfway, abs=1e-6)


def test_quantiles_interpolate_on_the_grid(monkeypatch):
    monkeypatch.setattr(priors, "_CHUNK", 3)
    values = np.array([0.0, 1.0, 3.0, 7.0])
    cumulative = np.array([[0.1, 0.4, 0.7, 0.95], [0.4, 0.9, 0.95, 0.99]], dtype=np.float32)
    rows = np.array([0, 1, 0, 1, 0, 1, 0])
    levels = np.array([0.4, 0.65, 0.55, 0.1, 1.0, 0.97, 0.05])
    expected = [
        np.interp(level, cumulative[row], values) for row, level in zip(rows, levels, strict=True)
    ]
    assert quantiles(cumulative, rows, values, levels) == pytest.approx(expected, abs=1e-5)
