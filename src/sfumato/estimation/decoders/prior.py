"""Fit a prior: the distribution of the true values behind many noisy observations.

Observations ``u ~ Normal(θ, s²)`` have known standard errors s, and the θ come from one unknown
distribution G on [0, ∞). Find the most likely G (Kiefer and Wolfowitz, 1956) on a scale of states:

    maximize  Σ_i c_i log Σ_g w_g L_ig   over  w ≥ 0,  Σ w = 1,  Σ w_g θ_g = mean

Here c_i is the number of times that observation i occurs, and L_ig its density in state g: an atom,
or a bin with an even density. Sequential quadratic programming solves this convex problem (Kim,
Carbonetto, Stephens, Anitescu, 2020). The solution has only a handful of states, so it looks far
more certain than the data justify. Two remedies restore the uncertainty: a pseudo-observation
spread evenly over the states, and bagging, which averages fits to resampled observations.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from sfumato.estimation.decoders.histograms import draw_histogram
from sfumato.estimation.decoders.intensities import BinnedPosterior, IntensityScale, Likelihoods
from sfumato.foundation.arrays import Floats

__all__ = ["Observations", "Prior", "fit_prior"]

_BIN_COUNT = 64
_ERRORS_ABOVE = 3.0  # the scale ends this many standard errors above the largest observation
_PSEUDO_COUNT = 1.0  # count of the pseudo-observation
_U_BIN_WIDTH = 0.5  # bin width of u, in units of s; binning adds 2% to the error variance
_S_BIN_WIDTH = 0.2  # relative bin width of s
_OUTLIER_LIKELIHOOD = 1e-8  # added to all likelihoods, for observations far from all states
_PENALTY_FACTOR = 1e3  # on the squared difference between the prior's mean and the required mean
_MAX_STEPS = 40
_MIN_STEP_LENGTH = 1e-6
_TOLERANCE = 1e-5  # on the log-likelihood per observation
_KEY = hashlib.sha256(b"sfumato/estimation/prior").digest()


@dataclass(frozen=True, eq=False)
class Observations:
    """Observations u with standard errors s, and the number of times that each occurs."""

    u: Floats
    s: Floats
    counts: Floats

    @classmethod
    def bin(cls, u: Floats, s: Floats) -> "Observations":
        """Merge observations that are nearly equal, and count how many were merged."""
        s_bins = np.rint(np.log(s) / _S_BIN_WIDTH)
        u_bins = np.rint(u / s / _U_BIN_WIDTH)
        _, bin_of, counts = np.unique(s_bins + 1j * u_bins, return_inverse=True, return_counts=True)
        bin_of = bin_of.reshape(u.shape)
        mean_u = np.bincount(bin_of, u) / counts
        mean_s = np.bincount(bin_of, s) / counts
        return cls(mean_u, mean_s, counts.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Prior:
    """Weights w of the states of a scale."""

    scale: IntensityScale
    weights: Floats

    def posterior(self, u: Floats, s: Floats) -> BinnedPosterior:
        """Return the distribution of each θ, given its observation."""
        rows = Likelihoods.of_shares(u, s, self.scale).rows
        prior = np.broadcast_to(self.weights.astype(np.float32), rows.shape).copy()
        return BinnedPosterior.from_prior(self.scale, prior, rows, u, s, np.ones(u.size))


def fit_prior(u: Floats, s: Floats, *, mean: float, max_theta: float, bag_count: int) -> Prior:
    """Fit a bagged prior to observations whose θ have a known mean and do not exceed ``max_theta``.

    ``bag_count``: how many times to refit the prior to resampled observations.

    >>> theta = np.repeat([0.0, 4.0], [750, 250])
    >>> noise = np.sin(np.arange(1000.0) * 7)  # irregular enough for this example
    >>> prior = fit_prior(theta + noise, np.full(1000, 0.7), mean=1.0, max_theta=10.0, bag_count=8)
    >>> round(float(prior.weights @ prior.scale.values), 2)
    1.0
    >>> round(float(prior.weights[prior.scale.values > 2].sum()), 1)
    0.2
    """
    observations = Observations.bin(u, s)
    scale = _make_scale(observations, mean, max_theta)
    values = scale.values
    likelihoods = Likelihoods.of_shares(observations.u, observations.s, scale).rows
    L = np.vstack([likelihoods, np.eye(values.size) + _OUTLIER_LIKELIHOOD])
    pseudo_counts = np.full(values.size, _PSEUDO_COUNT / values.size)
    total_count = observations.counts.sum()

    def fit(counts: Floats, start: Floats) -> Floats:
        row_weights = np.concatenate([counts, pseudo_counts]) / (total_count + _PSEUDO_COUNT)
        return _maximize_likelihood(L, row_weights, values, mean, start)

    first_fit = fit(observations.counts, np.full(values.size, 1 / values.size))
    start = (first_fit + 1e-3 / values.size) / (1 + 1e-3)
    fits = [first_fit]
    shares = observations.counts / total_count
    for bag in range(bag_count):
        resampled = draw_histogram(shares, int(total_count), draw_index=bag, key=_KEY)
        counts = resampled.astype(np.float64)
        fits.append(fit(counts * (total_count / max(counts.sum(), 1.0)), start))
    weights = np.mean(fits, axis=0)
    return Prior(scale, weights / weights.sum())


def _make_scale(observations: Observations, mean: float, max_theta: float) -> IntensityScale:
    """Return a scale with atoms at 0 and at the mean, and bins in a geometric sequence.

    The sequence starts far below the mean and the smallest standard error. It ends above the
    largest u, capped at ``max_theta``, or at twice the mean if that is larger.
    """
    largest = float((observations.u + _ERRORS_ABOVE * observations.s).max(initial=0.0))
    top = max(min(max_theta, largest), 2 * mean)
    small_value = min(0.02 * mean, 0.05 * float(observations.s.min()))
    bottom = max(small_value, 1e-6 * top)
    sequence = np.geomspace(bottom, top, _BIN_COUNT)
    return IntensityScale(np.unique(np.append(sequence, mean)), atoms=(0.0, mean))


def _maximize_likelihood(
    L: Floats, c: Floats, values: Floats, mean: float, start: Floats
) -> Floats:
    """Return the prior weights that maximize the likelihood, by sequential quadratic programming.

    ``L``: the likelihoods, with one row for each observation.
    ``c``: the weight of each row.
    """
    from scipy.optimize import nnls

    # A penalty on the difference between the prior's mean and the required mean, relative to the
    # scale's width, enforces the required mean. Σw = 1 holds automatically at the optimum.
    offsets = (values - mean) / max(float(np.abs(values - mean).max()), 1e-300)
    w = start
    cost = _cost(L, c, offsets, w)
    for _ in range(_MAX_STEPS):
        ratios = c / (L @ w)
        gradient = 1 - L.T @ ratios + _PENALTY_FACTOR * (offsets @ w) * offsets
        scaled_L = L * np.sqrt(ratios / (L @ w))[:, None]
        H = scaled_L.T @ scaled_L + _PENALTY_FACTOR * np.outer(offsets, offsets)
        H[np.diag_indices_from(H)] += 1e-8 * np.trace(H) / values.size
        R = np.linalg.cholesky(H).T
        target, _ = nnls(R, np.linalg.solve(R.T, H @ w - gradient), maxiter=30 * values.size)
        step = target - w
        slope = float(gradient @ step)
        if -slope < _TOLERANCE:
            break
        # Halve the step until the cost decreases enough (Armijo's rule).
        step_length = 1.0
        while step_length > _MIN_STEP_LENGTH:
            candidate = np.maximum(w + step_length * step, 0.0)
            candidate_cost = _cost(L, c, offsets, candidate)
            if candidate_cost <= cost + 1e-4 * step_length * slope:
                w = candidate
                cost = candidate_cost
                break
            step_length /= 2
    return w / w.sum()


def _cost(L: Floats, c: Floats, offsets: Floats, w: Floats) -> float:
    """Return the negative log-likelihood, plus Σw and a penalty for a wrong mean."""
    log_likelihood = c @ np.log(np.maximum(L @ w, 1e-300))
    penalty = _PENALTY_FACTOR / 2 * (offsets @ w) ** 2
    return float(w.sum() - log_likelihood + penalty)
