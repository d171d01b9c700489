"""Intervals beside a wall: a share is never below 0, but an unbiased estimate of it often is.

Cutting an interval at 0 leaves slivers, or nothing at all, just where the estimate was unlucky: a reader would take
them for certainty. Shifting it up until it has its width makes it cover too often. Feldman and Cousins (1998) have the
interval that does neither. For an estimate x of μ ≥ 0 with standard error 1 it holds the μ for which x is among the
``level`` most plausible estimates, plausible by the likelihood of μ over that of the best μ ≥ 0:

    μ accepts x from x1 to x2 = μ + t,   x1 = μ − t  if that is ≥ 0, else (μ² − t²)/(2μ),   P(x1 ≤ x ≤ x2) = level

It covers with probability ``level`` for every μ, is never empty, and far from the wall it is ``x ± z``.

Reference: G. J. Feldman and R. D. Cousins, Physical Review D 57 (1998), section IV.B.
"""

from functools import lru_cache
from statistics import NormalDist

import numpy as np

from sfumato.foundation.arrays import Booleans, Floats

__all__ = ["bounds_beside_walls"]

_STEPS = 2000
_HALVINGS = 60


def bounds_beside_walls(
    estimates: Floats,
    low: Floats,
    high: Floats,
    tail: float,
    noisy_below: Booleans,
    noisy_above: Booleans,
) -> tuple[Floats, Floats]:
    """Two-sided bounds, turned into bounds that lie in [0, 1] and never lose their width.

    ``noisy_below`` says where estimates may fall below 0 although the share is 0, and ``noisy_above`` where above 1.
    Elsewhere an estimate stays in [0, 1] by itself, or nearly so, and its bounds are only cut.
    """
    below = (noisy_below | (high <= 0)) & (estimates < 0.5)
    above = (noisy_above | (low >= 1)) & (estimates >= 0.5)
    low, high = low.copy(), high.copy()
    low[below], high[below] = _above_zero(estimates[below], low[below], high[below], tail)
    turned = _above_zero(1 - estimates[above], 1 - high[above], 1 - low[above], tail)
    high[above], low[above] = 1 - turned[0], 1 - turned[1]
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def _above_zero(estimates: Floats, low: Floats, high: Floats, tail: float) -> tuple[Floats, Floats]:
    """Each arm of the interval over z is taken for the standard error on that side."""
    z = -NormalDist().inv_cdf(tail)
    if z < 0.1:  # an interval of hardly any level
        return low, high
    down, up = (np.maximum(arm, 1e-300) / z for arm in (estimates - low, high - estimates))
    mu, x1, x2 = _accepted(tail)
    # Beyond the table the interval is x ± z; towards −∞ its upper end falls like t²/(−2x).
    lowest = np.interp(estimates / down, x2, mu, left=0.0)
    far = estimates / down >= x2[-1]
    x = estimates / up
    highest = np.where(x < x1[0], mu[0] * x1[0] / np.minimum(x, x1[0]), np.interp(x, x1, mu))
    return np.where(far, low, lowest * down), np.where(x >= x1[-1], high, highest * up)


@lru_cache(maxsize=64)
def _accepted(tail: float) -> tuple[Floats, Floats, Floats]:
    """μ on a grid from the wall to where it is no longer felt, with the least and the largest x that it accepts."""
    from scipy.special import ndtr

    z = -NormalDist().inv_cdf(tail)
    mu = z * np.linspace(0, 1, _STEPS + 1)[1:] ** 2
    least, most = np.zeros_like(mu), np.full_like(mu, z)
    for _ in range(_HALVINGS):
        t = (least + most) / 2
        missed = ndtr(-t) + ndtr(-(mu**2 + t**2) / (2 * mu))  # beyond x2, and before x1
        least, most = np.where(missed > 2 * tail, t, least), np.where(missed > 2 * tail, most, t)
    x1, x2 = (mu**2 - most**2) / (2 * mu), mu + most
    return mu, x1, x2
