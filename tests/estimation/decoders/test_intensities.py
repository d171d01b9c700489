"""Posteriors on atoms and bins, compared with numeric integration of prior × normal density."""

import numpy as np
import pytest
from scipy.integrate import trapezoid

from sfumato.estimation.decoders import intensities
from sfumato.estimation.decoders.intensities import BinnedPosterior, IntensityScale, Likelihoods

SCALES = {
    "one atom": IntensityScale(np.geomspace(0.05, 20.0, 12)),
    "two atoms": IntensityScale(np.array([0.02, 0.1, 0.5, 1.0, 3.0, 20.0]), atoms=(0.0, 1.0)),
}
every_scale = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
LEVELS = np.array([0.001, 0.1, 0.3, 0.5, 0.8, 0.99, 0.9999])

CASES = {
    "inside": (2.0, 0.7),
    "in a wide bin": (6.3, 0.01),
    "at an edge": (0.5, 0.05),
    "near an atom": (0.001, 0.02),
    "below 0": (-2.0, 0.5),
    "far below 0": (-10.0, 0.4),
    "far above": (32.0, 0.6),
    "uninformative": (1.0, 1e4),
    "uninformative and far": (-5e4, 1e4),
    "tiny error": (0.7, 1e-5),
    "tiny error next to a bin": (20.0 + 2e-5, 1e-6),
}


def _random_prior(scale, seed):
    return np.random.default_rng(seed).dirichlet(np.ones(scale.values.size))


def _points(low, high, y, s):
    """Return points of a bin that are dense where the normal density changes."""
    nearest = np.clip(y, low, high)
    decay = s / max(abs(y - nearest) / s, 1.0)
    steps = decay * np.geomspace(1e-4, 1e3, 20_001)
    parts = [np.linspace(low, high, 2_001), nearest - steps, nearest + steps]
    return np.unique(np.clip(np.concatenate(parts), low, high))


def _naive_cumulative(scale, prior, y, s, theta):
    """Return P(state's θ < theta) and P(θ ≤ theta), by numeric integration over every state."""
    nearest = np.clip(y, scale.lows, scale.highs)
    largest = (-0.5 * ((nearest - y) / s) ** 2).max()

    def density(x):
        return np.exp(-0.5 * ((x - y) / s) ** 2 - largest)

    masses = []
    parts_below = []
    parts_at = []
    for low, high in zip(scale.lows, scale.highs, strict=True):
        if low == high:
            masses.append(float(density(low)))
            parts_below.append(float(low < theta))
            parts_at.append(float(low <= theta))
            continue
        x = _points(low, high, y, s)
        integral = trapezoid(density(x), x)
        masses.append(integral / (high - low))
        x = np.unique(np.append(x[x < theta], np.clip(theta, low, high)))
        part = trapezoid(density(x), x) / integral if integral > 0 else float(theta > low)
        parts_below.append(part)
        parts_at.append(part)
    weights = prior * (np.array(masses) / max(masses) + 1e-8)  # no state is impossible
    weights /= weights.sum()
    return weights @ parts_below, weights @ parts_at


def _posterior(scale, prior, y, s, root=None):
    rows = Likelihoods.of_shares(y, s, scale).rows
    priors = np.broadcast_to(prior.astype(np.float32), rows.shape).copy()
    root = np.ones(y.size) if root is None else root
    return BinnedPosterior.from_prior(scale, priors, rows, y, s, root)


@every_scale
@pytest.mark.parametrize(("y", "s"), CASES.values(), ids=CASES)
def test_quantiles_match_numeric_integration(scale, y, s):
    for seed in range(3):
        prior = _random_prior(scale, seed)
        posterior = _posterior(scale, prior, np.full(LEVELS.size, y), np.full(LEVELS.size, s))
        for level, theta in zip(LEVELS, posterior.quantiles(LEVELS), strict=True):
            below, at = _naive_cumulative(scale, prior, y, s, theta)
            # An atom has the quantiles of all levels from `below` to `at`.
            assert below - 1e-4 <= level <= at + 1e-4


def test_test_detects_even_posteriors_in_bins():
    """Where the error is a thousandth of the bin, a linear quantile is far off."""
    scale = SCALES["one atom"]
    prior = _random_prior(scale, 0)
    bin_index = int(np.searchsorted(scale.edges, 6.3)) - 1
    even = scale.edges[bin_index] + 0.3 * np.diff(scale.edges)[bin_index]
    below, at = _naive_cumulative(scale, prior, 6.3, 0.01, even)
    assert not below - 1e-4 <= 0.3 <= at + 1e-4


def test_far_shares_belong_to_the_nearest_state():
    scale = SCALES["one atom"]
    y = np.array([-1e6, 1e6])
    prior = _random_prior(scale, 0)
    theta = _posterior(scale, prior, y, np.full(2, 1e-3)).quantiles(np.full(2, 0.5))
    assert theta[0] == 0
    assert scale.edges[-2] <= theta[1] <= scale.edges[-1]


@every_scale
def test_quantiles_ascend_and_stay_on_the_scale(scale):
    rng = np.random.default_rng(1)
    y = rng.normal(1, 5, 200)
    s = rng.lognormal(0, 3, 200)
    posterior = _posterior(scale, _random_prior(scale, 1), y, s)
    quantiles = [posterior.quantiles(np.full(200, level)) for level in (0, *LEVELS, 1)]
    assert np.isfinite(quantiles).all()
    assert (np.diff(quantiles, axis=0) >= 0).all()
    assert np.min(quantiles) >= 0
    assert np.max(quantiles) <= scale.edges[-1]


def test_atoms_are_exact():
    """A share that is surely 0, or surely at the second atom, is not moved by its report."""
    scale = SCALES["two atoms"]
    prior = np.where(scale.lows == scale.highs, 0.5, 0.0)
    y = np.array([0.02, -0.3, 0.98, 1.4])
    theta = _posterior(scale, prior, y, np.full(4, 0.1)).quantiles(np.full(4, 0.5))
    assert theta.tolist() == [0.0, 0.0, 1.0, 1.0]


def test_quantiles_are_relative_to_the_root():
    scale = SCALES["one atom"]
    prior = _random_prior(scale, 2)
    y = np.array([0.4, 1.0, 7.0])
    s = np.array([0.3, 0.2, 1.0])
    root = np.array([0.5, 1.0, 4.0])
    plain = _posterior(scale, prior, y, s).quantiles(np.full(3, 0.4))
    rooted = _posterior(scale, prior, y, s, root).quantiles(np.full(3, 0.4))
    assert rooted == pytest.approx(root * plain)


def test_chunks_do_not_matter(monkeypatch):
    scale = SCALES["two atoms"]
    rng = np.random.default_rng(3)
    y = rng.normal(1, 3, 100)
    s = rng.uniform(0.1, 2, 100)
    levels = rng.random(100)
    prior = _random_prior(scale, 3)
    expected = _posterior(scale, prior, y, s).quantiles(levels)
    monkeypatch.setattr(intensities, "_CHUNK_ROWS", 7)
    assert _posterior(scale, prior, y, s).quantiles(levels).tolist() == expected.tolist()


# --- likelihoods ----------------------------------------------------------------------------------


@every_scale
def test_likelihoods_are_mean_densities(scale):
    """``log_scale`` makes a density of the rows: that of all y if every θ is in one state."""
    y = np.array([0.3, 1.5, 4.0])
    s = np.array([5.0, 6.0, 9.0])
    likelihoods = Likelihoods.of_shares(y, s, scale)
    for state, (low, high) in enumerate(zip(scale.lows, scale.highs, strict=True)):
        theta = np.linspace(low, high, 10_001)[:, None]
        densities = np.exp(-0.5 * ((y - theta) / s) ** 2) / (s * np.sqrt(2 * np.pi))
        means = densities.mean(axis=0) if high > low else densities[0]
        log_density = np.log(likelihoods.rows[:, state]).sum() + likelihoods.log_scale
        assert log_density == pytest.approx(np.log(means).sum(), abs=2e-3)


def test_outliers_leave_every_state_possible():
    scale = SCALES["one atom"]
    rows = Likelihoods.of_shares(np.array([1e6, -1e6, 3.0]), np.full(3, 1e-3), scale).rows
    assert (rows > 0).all()
    assert (rows.max(axis=1) >= 1).all()


# --- scales ---------------------------------------------------------------------------------------


@every_scale
def test_states_ascend_without_gaps(scale):
    assert scale.lows[0] == scale.highs[0] == 0
    assert (np.diff(scale.lows) >= 0).all()
    assert (np.diff(scale.highs) >= 0).all()
    widths = scale.highs - scale.lows
    assert np.count_nonzero(widths == 0) == len(scale.atoms)
    assert widths.sum() == pytest.approx(scale.edges[-1] - scale.edges[0])


@every_scale
@pytest.mark.parametrize("intensity", [0.0, 0.03, 1.0, 7.0])
def test_distributions_at_an_intensity_have_its_mean(scale, intensity):
    distribution = scale.at(intensity)
    assert np.count_nonzero(distribution) <= 2
    assert distribution.sum() == pytest.approx(1)
    assert distribution @ scale.values == pytest.approx(intensity, abs=1e-6)


@pytest.mark.parametrize(
    ("y", "cell_count", "top"),
    [([0.5, 30.0], 100, 31.5), ([0.5, 30.0], 20, 21.0), ([0.1, -0.2], 100, 4.0)],
    ids=["largest share", "one cell has all", "errors"],
)
def test_scales_reach_as_far_as_shares_may(y, cell_count, top):
    scale = IntensityScale.spanning(np.array(y), np.ones(2), cell_count)
    assert top <= scale.edges[-1] <= 1.11 * top  # ends are rounded up
    assert scale.edges[0] == pytest.approx(0.05)
    assert np.diff(np.log(scale.edges)) == pytest.approx(np.full(39, scale.step))
    assert scale.values.size == 40


@every_scale
def test_distances_in_the_gap_are_those_from_the_nearer_state(scale):
    lowest = scale.edges[0]
    y = lowest * np.array([-1, 0, 0.25, 0.5, 0.75, 1, 2])
    expected = lowest * np.array([0, 0, 0.25, 0.5, 0.25, 0, 0])
    assert scale.distances_in_gap(y) == pytest.approx(expected)


def test_similar_shares_have_the_same_scale():
    """So that the transitions on it need not be computed again."""
    s = np.ones(2)
    scale = IntensityScale.spanning(np.array([0.5, 30.0]), s, 100)
    assert IntensityScale.spanning(np.array([0.2, 30.1]), s, 100) is scale
    assert IntensityScale.spanning(np.array([0.5, 40.0]), s, 100) is not scale
