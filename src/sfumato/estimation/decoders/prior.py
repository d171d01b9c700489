"""Priors fitted to a crowd of noisy numbers: what the numbers behind them are distributed like.

Observations ``u ~ Normal(θ, s²)`` have known errors s, and the θ come from one unknown distribution G on [0, ∞). The
most likely G (Kiefer and Wolfowitz, 1956) is searched on a grid of values:

    maximise  Σ_i c_i log Σ_g w_g φ((u_i − θ_g)/s_i)   over  w ≥ 0,  Σ w = 1,  Σ w_g θ_g = mean

a convex problem, solved by sequential quadratic programming (Kim, Carbonetto, Stephens, Anitescu, 2020). Its solution
is a handful of atoms, far more certain of itself than the data are. So one further symbol is added to the crowd, spread
evenly over the grid, and the fit is repeated on resampled observations and averaged (bagged): what the data cannot tell
stays open.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.estimation.decoders.histograms import draw_histogram
from sfumato.foundation.arrays import Floats

__all__ = ["Observations", "Posterior", "Prior", "fitted_prior"]

_POINTS = (
    64  # values of the grid: neighbours differ by less than the errors do, wherever those matter
)
_BAGS = 8
_SPREAD = 1.0  # symbols that are spread evenly over the grid
_COARSE = 0.5  # width of bins of u, in units of s, that a fit is made on: it adds 2 % to the variance of an error
_ERROR_STEP = 0.2  # relative width of classes of s
_OUTLIER = 1e-8  # what an observation that fits no value of the grid still weighs
_PENALTY = 1e3  # on the squared distance of the mean from where it must be
_STEPS = 40
_TOLERANCE = 1e-5  # of the log-likelihood per observation
_CHUNK = 1 << 15  # rows of a posterior that are held at once
_KEY = hashlib.sha256(b"sfumato/estimation/prior").digest()


@dataclass(frozen=True, eq=False)
class Observations:
    """Numbers u with standard errors s, and how often each occurs."""

    u: Floats
    s: Floats
    counts: Floats

    @classmethod
    def binned(cls, u: Floats, s: Floats) -> "Observations":
        """Observations that are alike for the purpose of a fit, counted together."""
        classes = np.rint(np.log(s) / _ERROR_STEP)
        bins = np.rint(u / s / _COARSE)
        _, which, counts = np.unique(classes + 1j * bins, return_inverse=True, return_counts=True)
        which = which.reshape(u.shape)
        return cls(
            np.bincount(which, u) / counts,
            np.bincount(which, s) / counts,
            counts.astype(np.float64),
        )


@dataclass(frozen=True, eq=False)
class Prior:
    """Weights w on values θ, and how well the most likely ones explain the observations."""

    values: Floats
    weights: Floats
    log_likelihood: float

    def posterior(self, u: Floats, s: Floats) -> "Posterior":
        """What is known of each θ once its u is seen."""
        return Posterior(self, u, s)


@dataclass(frozen=True, eq=False)
class Posterior:
    """``P(θ_g | u_x) ∝ w_g φ((u_x − θ_g)/s_x)``, row by row, made a chunk at a time."""

    prior: Prior
    u: Floats
    s: Floats

    def means(self) -> Floats:
        """The posterior means: least squared error."""
        return np.concatenate(
            [rows @ self.prior.values for rows in self._chunks()] or [np.empty(0)]
        )

    def deviations(self) -> Floats:
        """The posterior standard deviations."""
        values, found = self.prior.values, [np.empty(0)]
        for rows in self._chunks():
            found.append(np.sqrt(np.maximum(rows @ values**2 - (rows @ values) ** 2, 0.0)))
        return np.concatenate(found)

    def cumulated(self) -> NDArray[np.float32]:
        """``P(θ < θ_g) + ½ P(θ = θ_g)``, row by row, in single precision: what quantiles are read from."""
        rows = [
            (np.cumsum(chunk, axis=1) - chunk / 2).astype(np.float32) for chunk in self._chunks()
        ]
        return (
            np.concatenate(rows)
            if rows
            else np.empty((0, self.prior.values.size), dtype=np.float32)
        )

    def _chunks(self) -> list[Floats]:
        starts = range(0, self.u.size, _CHUNK)
        return [_rows(self.u[a : a + _CHUNK], self.s[a : a + _CHUNK], self.prior) for a in starts]


def _rows(u: Floats, s: Floats, prior: Prior) -> Floats:
    rows = _likelihoods(u, s, prior.values) * prior.weights
    return rows / rows.sum(axis=1, keepdims=True)


def _likelihoods(u: Floats, s: Floats, values: Floats) -> Floats:
    """``φ((u − θ)/s)``, each row in units of its largest."""
    exponents = -0.5 * ((u[:, None] - values) / s[:, None]) ** 2
    return np.exp(exponents - exponents.max(axis=1, keepdims=True)) + _OUTLIER


def fitted_prior(u: Floats, s: Floats, *, mean: float, largest: float, bags: int = _BAGS) -> Prior:
    """The bagged prior of observations whose θ have a known mean and do not exceed ``largest``.

    >>> theta = np.repeat([0.0, 4.0], [750, 250])
    >>> noise = np.sin(np.arange(1000.0) * 7)  # as good as random here
    >>> prior = fitted_prior(theta + noise, np.full(1000, 0.7), mean=1.0, largest=10.0)
    >>> round(float(prior.weights @ prior.values), 2), round(float(prior.weights[prior.values > 2].sum()), 1)
    (1.0, 0.2)
    """
    observations = Observations.binned(u, s)
    values = _grid(observations, mean, largest)
    L = np.vstack(
        [_likelihoods(observations.u, observations.s, values), np.eye(values.size) + _OUTLIER]
    )
    counts, total, spread = (
        observations.counts,
        observations.counts.sum(),
        np.full(values.size, _SPREAD / values.size),
    )

    def fit(seen: Floats, start: Floats) -> Floats:
        return _most_likely(
            L, np.concatenate([seen, spread]) / (total + _SPREAD), values, mean, start
        )

    first = fit(counts, np.full(values.size, 1 / values.size))
    start, found = (first + 1e-3 / values.size) / (1 + 1e-3), [first]
    for bag in range(bags):
        drawn = draw_histogram(counts / total, int(total), draw=bag, key=_KEY).astype(np.float64)
        found.append(fit(drawn * (total / max(drawn.sum(), 1.0)), start))
    weights = np.mean(found, axis=0)
    nearest = np.abs(observations.u[:, None] - values).min(axis=1) / observations.s
    explained = np.log(L[: counts.size] @ first) - 0.5 * nearest**2
    return Prior(values, weights / weights.sum(), float(counts @ explained))


def _grid(observations: Observations, mean: float, largest: float) -> Floats:
    """0, and geometric steps from well below the least error to the largest value that can be."""
    top = max(min(largest, float(observations.u.max(initial=0.0))), 2 * mean)
    least = min(0.02 * mean, 0.05 * float(observations.s.min()))
    bottom = max(least, 1e-6 * top)
    return np.unique(np.concatenate([[0.0, mean], np.geomspace(bottom, top, _POINTS - 2)]))


def _most_likely(L: Floats, c: Floats, values: Floats, mean: float, start: Floats) -> Floats:
    """The weights of greatest likelihood, by sequential quadratic programming from ``start``."""
    from scipy.optimize import nnls

    # The mean is held by a penalty in units of the grid's own width; Σw = 1 holds by itself at the optimum.
    apart = (values - mean) / max(float(np.abs(values - mean).max()), 1e-300)
    w, cost = start, _cost(L, c, apart, start)
    for _ in range(_STEPS):
        inverse = c / (L @ w)
        gradient = 1 - L.T @ inverse + _PENALTY * (apart @ w) * apart
        scaled = L * np.sqrt(inverse / (L @ w))[:, None]
        H = scaled.T @ scaled + _PENALTY * np.outer(apart, apart)
        H[np.diag_indices_from(H)] += 1e-8 * np.trace(H) / values.size
        R = np.linalg.cholesky(H).T
        target, _ = nnls(R, np.linalg.solve(R.T, H @ w - gradient), maxiter=30 * values.size)
        step = target - w
        slope = float(gradient @ step)
        if -slope < _TOLERANCE:
            break
        w, cost = _descended(L, c, apart, w, cost, step, slope)
    return w / w.sum()


def _descended(
    L: Floats, c: Floats, apart: Floats, w: Floats, cost: float, step: Floats, slope: float
) -> tuple[Floats, float]:
    """Go along a step as far as the cost falls as it should (Armijo's rule)."""
    length = 1.0
    while length > 1e-6:
        tried = np.maximum(w + length * step, 0.0)
        found = _cost(L, c, apart, tried)
        if found <= cost + 1e-4 * length * slope:
            return tried, found
        length /= 2
    return w, cost


def _cost(L: Floats, c: Floats, apart: Floats, w: Floats) -> float:
    return float(w.sum() - c @ np.log(np.maximum(L @ w, 1e-300)) + _PENALTY / 2 * (apart @ w) ** 2)


def quantiles(
    cumulated: NDArray[np.float32], rows: NDArray[np.int64], values: Floats, levels: Floats
) -> Floats:
    """The quantile of the posterior number ``rows[i]`` at level ``levels[i]``, linear between values of the grid."""
    found = np.empty(rows.size)
    for a in range(0, rows.size, _CHUNK):
        C, level = cumulated[rows[a : a + _CHUNK]], levels[a : a + _CHUNK]
        above = np.clip((level.astype(np.float32)[:, None] > C).sum(axis=1), 1, values.size - 1)
        each = np.arange(above.size)
        low, high = C[each, above - 1], C[each, above]
        part = np.clip((level - low) / np.maximum(high - low, 1e-30), 0.0, 1.0)
        found[a : a + _CHUNK] = values[above - 1] + part * (values[above] - values[above - 1])
    return found
