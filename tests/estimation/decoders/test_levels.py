"""Estimates at one level per group: totals are met, and no other estimate expects less error."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import gamma

from sfumato.estimation.decoders.levels import MixedPosterior, combine_at_levels


@dataclass(frozen=True)
class _Gammas:
    """Gamma distributions, independent of each other."""

    shapes: np.ndarray

    def quantiles(self, levels):
        return gamma.ppf(levels, self.shapes)

    def expected_errors(self, theta):
        """Return E|a − θ| for each a: ``a(2F(a) − 1) + mean − 2 ∫_0^a x f(x) dx``."""
        a = np.maximum(theta, 0)
        partial_mean = self.shapes * gamma.cdf(a, self.shapes + 1)
        return a * (2 * gamma.cdf(a, self.shapes) - 1) + self.shapes - 2 * partial_mean


@dataclass(frozen=True)
class _Draws:
    """Equally likely values, one row for each cell: quantiles jump."""

    values: np.ndarray

    def quantiles(self, levels):
        ordered = np.sort(self.values, axis=1)
        index = np.ceil(levels * ordered.shape[1]).astype(np.int64) - 1
        return ordered[np.arange(levels.size), index.clip(0)]

    def expected_errors(self, theta):
        return np.abs(self.values - theta[:, None]).mean(axis=1)


def _case(seed, k=12):
    rng = np.random.default_rng(seed)
    group_of = np.sort(np.arange(k) % 3)
    if seed % 2:
        return (
            _Gammas(rng.gamma(2, 1, k) + 0.1),
            group_of,
            np.bincount(group_of, rng.gamma(2, 1, k)),
        )
    draws = np.maximum(rng.normal(rng.gamma(1, 1, k)[:, None], 1, (k, 20)), 0)
    return _Draws(draws), group_of, np.bincount(group_of, draws[:, :2].mean(axis=1))


def _best_change(posterior, theta, group_of):
    """Return the least change of the expected error when any pair of a group exchanges a bit."""
    errors = posterior.expected_errors(theta)
    changes = [0.0]
    for step in (0.003, 0.03, 0.3):
        more = posterior.expected_errors(theta + step) - errors
        less = posterior.expected_errors(theta - step) - errors
        less[theta < step] = np.inf
        for group in range(group_of.max() + 1):
            inside = group_of == group
            changes.append(float((more[inside][:, None] + less[inside]).min()))
    return min(changes)


@pytest.mark.parametrize("seed", range(8))
def test_totals_are_met(seed):
    posterior, group_of, totals = _case(seed)
    theta = combine_at_levels(posterior, group_of, np.ones(12), totals)
    assert np.bincount(group_of, theta) == pytest.approx(totals, rel=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_no_exchange_reduces_the_expected_error(seed):
    posterior, group_of, totals = _case(seed)
    theta = combine_at_levels(posterior, group_of, np.ones(12), totals)
    assert _best_change(posterior, theta, group_of) > -1e-5


@pytest.mark.parametrize("seed", [1, 3])
def test_test_detects_scaled_medians(seed):
    posterior, group_of, totals = _case(seed)
    medians = posterior.quantiles(np.full(12, 0.5))
    scaled = medians * (totals / np.bincount(group_of, medians))[group_of]
    assert _best_change(posterior, scaled, group_of) < -1e-3


def test_weights_count_in_the_totals():
    posterior, group_of, totals = _case(1)
    weights = np.random.default_rng(0).uniform(0.1, 3, 12)
    theta = combine_at_levels(posterior, group_of, weights, totals)
    assert np.bincount(group_of, weights * theta) == pytest.approx(totals, rel=1e-5)
    levels = gamma.cdf(theta, posterior.shapes)
    for group in range(3):
        assert np.ptp(levels[group_of == group]) < 1e-5


def test_cells_without_weight_do_not_count():
    posterior, group_of, totals = _case(1)
    weights = np.ones(12)
    weights[::4] = 0.0
    theta = combine_at_levels(posterior, group_of, weights, totals)
    assert np.bincount(group_of, weights * theta) == pytest.approx(totals, rel=1e-5)


def test_totals_beyond_all_quantiles_are_approached():
    posterior = _Draws(np.array([[1.0, 2.0], [3.0, 4.0]]))
    group_of = np.zeros(2, dtype=np.int64)
    low = combine_at_levels(posterior, group_of, np.ones(2), np.array([0.0]))
    high = combine_at_levels(posterior, group_of, np.ones(2), np.array([100.0]))
    assert low.tolist() == [1.0, 3.0]
    assert high.tolist() == [2.0, 4.0]


# --- mixtures -------------------------------------------------------------------------------------


def test_mixtures_have_the_quantiles_of_their_distribution():
    """The distribution function at the quantile is the level, but for the steps of 32 quantiles."""
    rng = np.random.default_rng(0)
    shapes = rng.gamma(2, 2, (2, 9)) + 0.3
    weights = [0.7, 0.3]
    mixed = MixedPosterior.mix([_Gammas(shapes[0]), _Gammas(shapes[1])], weights, 9)
    for level in (0.05, 0.3, 0.5, 0.9):
        theta = mixed.quantiles(np.full(9, level))
        levels = weights @ np.array([gamma.cdf(theta, each) for each in shapes])
        assert np.abs(levels - level).max() < 0.03


def test_test_detects_averages_of_quantiles():
    shapes = np.array([0.5, 8.0])
    average = gamma.ppf(0.9, shapes).mean()
    assert abs(gamma.cdf(average, shapes).mean() - 0.9) > 0.1


def test_mixture_of_equals_has_their_quantiles():
    posterior = _Gammas(np.array([0.5, 2.0, 9.0]))
    mixed = MixedPosterior.mix([posterior, posterior], [0.4, 0.6], 3)
    levels = np.array([0.3, 0.5, 0.8])
    assert gamma.cdf(mixed.quantiles(levels), posterior.shapes) == pytest.approx(levels, abs=0.02)


def test_levels_of_mixtures_may_differ_from_cell_to_cell():
    posterior = _Gammas(np.full(4, 2.0))
    mixed = MixedPosterior.mix([posterior, _Gammas(np.full(4, 5.0))], [0.5, 0.5], 4)
    theta = mixed.quantiles(np.array([0.0, 0.2, 0.7, 1.0]))
    assert (np.diff(theta) > 0).all()
    assert np.isfinite(theta).all()
