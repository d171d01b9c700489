"""Intervals near 0 and 1: a share is never below 0, but an unbiased estimate of it often is.

Cutting an interval at 0 leaves slivers, or nothing at all, just where the estimate was unlucky: a
reader would take them for certainty. Shifting it up until it has its width makes it cover too
often. Feldman and Cousins (1998) have the interval that does neither. For an estimate x of μ ≥ 0
with standard error 1 it contains the μ for which x is among the ``level`` most plausible estimates,
plausible by the likelihood of μ over that of the best μ ≥ 0:

    μ accepts x from x1 to x2 = μ + t,   x1 = μ − t  if that is ≥ 0, else (μ² − t²)/(2μ),
    with the t for which P(x1 ≤ x ≤ x2) = level

It covers with probability ``level`` for every μ, is never empty, and far from 0 it is ``x ± z``.

Reference: G. J. Feldman and R. D. Cousins, Physical Review D 57 (1998), section IV.B.
"""

from functools import lru_cache
from statistics import NormalDist

import numpy as np

from sfumato.foundation.arrays import Booleans, Floats

__all__ = ["boundary_bounds"]

_GRID_STEPS = 2000
_BISECTIONS = 60


def boundary_bounds(
    estimates: Floats,
    low: Floats,
    high: Floats,
    tail: float,
    noisy_near_zero: Booleans,
    noisy_near_one: Booleans,
) -> tuple[Floats, Floats]:
    """Turn two-sided bounds into bounds that lie in [0, 1] and never lose their width.

    ``noisy_near_zero`` says where estimates may fall below 0 although the share is 0, and
    ``noisy_near_one`` where they may exceed 1. Elsewhere an estimate stays in [0, 1] by itself, or
    nearly so, and its bounds are only cut.
    """
    low = low.copy()
    high = high.copy()
    near_zero = (noisy_near_zero | (high <= 0)) & (estimates < 0.5)
    near_one = (noisy_near_one | (low >= 1)) & (estimates >= 0.5)
    low[near_zero], high[near_zero] = _bounds_above_zero(
        estimates[near_zero], low[near_zero], high[near_zero], tail
    )
    # A share near 1 leaves a share near 0 for the others.
    rest_low, rest_high = _bounds_above_zero(
        1 - estimates[near_one], 1 - high[near_one], 1 - low[near_one], tail
    )
    high[near_one] = 1 - rest_low
    low[near_one] = 1 - rest_high
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def _bounds_above_zero(
    estimates: Floats, low: Floats, high: Floats, tail: float
) -> tuple[Floats, Floats]:
    """Return the bounds of Feldman and Cousins.

    Each arm of the interval over z stands for the standard error on its side.
    """
    z = -NormalDist().inv_cdf(tail)
    if z < 0.1:  # an interval of hardly any level
        return low, high
    down_error = np.maximum(estimates - low, 1e-300) / z
    up_error = np.maximum(high - estimates, 1e-300) / z
    mu, x1, x2 = _acceptance_table(tail)
    # Beyond the table the interval is x ± z.
    x = estimates / down_error
    lower = np.interp(x, x2, mu, left=0.0) * down_error
    lower = np.where(x >= x2[-1], low, lower)
    # Towards −∞ the upper end falls like t²/(−2x).
    x = estimates / up_error
    far_below = mu[0] * x1[0] / np.minimum(x, x1[0])
    upper = np.where(x < x1[0], far_below, np.interp(x, x1, mu)) * up_error
    upper = np.where(x >= x1[-1], high, upper)
    return lower, upper


@lru_cache(maxsize=64)
def _acceptance_table(tail: float) -> tuple[Floats, Floats, Floats]:
    """Return μ on a grid, with the least and the largest x that each μ accepts.

    The grid ends where 0 is too far away to matter.
    """
    from scipy.special import ndtr

    z = -NormalDist().inv_cdf(tail)
    mu = z * np.linspace(0, 1, _GRID_STEPS + 1)[1:] ** 2
    low = np.zeros_like(mu)
    high = np.full_like(mu, z)
    for _ in range(_BISECTIONS):
        t = (low + high) / 2
        missed = ndtr(-t) + ndtr(-(mu**2 + t**2) / (2 * mu))  # beyond x2, and before x1
        too_narrow = missed > 2 * tail
        low = np.where(too_narrow, t, low)
        high = np.where(too_narrow, high, t)
    x1 = (mu**2 - high**2) / (2 * mu)
    x2 = mu + high
    return mu, x1, x2
