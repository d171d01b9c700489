"""Intervals for a mean of scores: binomial where the scores are, and close to it elsewhere.

The unbiased estimate p̂ of a share, or of any total, is a mean of n scores. Let m, V and γ be their
mean, variance and third central moment over the variance. Exactly one pair of values, one above m
and one below, has all three moments (the two nodes of a Gauss quadrature):

    up, down:   (up − m)(m − down) = V,   (up − m) − (m − down) = γ,   so   up − down = √(γ² + 4V)

Replace the scores by this pair. The number of reports with the value *up* is then binomial,
``N = n (p̂ − down)/(up − down)``, and an interval for its success probability becomes one for the
share:

    π_low = Beta⁻¹(α/2; N + 1 − w, n − N + w),   π_high = Beta⁻¹(1 − α/2; N + w, n − N + 1 − w)
    p = down + (up − down) π

If there are only two scores to begin with (unrandomized symbols, shares of blocks, randomised
response over the domain), nothing changes, and N is the count of reports for the symbol. Elsewhere
mean, variance and skewness are right, which is more than a normal interval has.

w is the caution about a count being an integer. w = 1 is the exact interval of Clopper and Pearson
(1934), which never covers too rarely. w = ½ is Jeffreys' interval, which is right on average. We
take w = 1 up to counts of 10 and ``½ + 5/count`` above. At 95 % small counts are then covered 94.4
% of the time or more, large ones 95.0 %.

A score that did not occur would be missed: if a symbol has no reports, its scores are all equal. So
the pair comes from the reports and one imaginary report, with the largest possible score for the
upper end and the smallest for the lower.

*Near 0 and 1.* A share is never below 0, but its unbiased estimate often is. Cutting an interval at
0 leaves a sliver, or nothing at all, just where the estimate was unlucky, and readers would take it
for certainty. Shifting it up to keep its width makes it cover too often. The interval of Feldman
and Cousins does neither. For an estimate x of μ ≥ 0 with standard error 1 it contains the μ for
which x is among the ``level`` most plausible estimates. Plausibility is the likelihood of μ over
that of the best μ ≥ 0:

    μ accepts x from x1 to x2 = μ + t,   x1 = μ − t  if that is ≥ 0, else (μ² − t²)/(2μ),
    with the t for which P(x1 ≤ x ≤ x2) = level

It covers with probability ``level`` for every μ, is never empty, and far from 0 it is ``x ± z``.

Reference: G. J. Feldman and R. D. Cousins, Physical Review D 57 (1998), section IV.B.
"""

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from sfumato.errors import InvalidArgument
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.mechanisms import ScoreMoments

__all__ = [
    "Bounds",
    "binomial_bounds",
    "boundary_bounds",
    "chance_below",
    "clopper_pearson",
    "noisy_near_boundary",
    "score_bounds",
    "share_bounds",
    "tail_probability",
    "two_values",
]

Bounds = tuple[Floats, Floats]
"""The lower and the upper ends of intervals."""

_EXACT_COUNT = 10.0  # up to this count an interval is that of Clopper and Pearson
_LARGE_COUNT = 100.0  # above this count a closed form of beta quantiles is good enough
_ROUNDING = 1e-14  # a variance that is only rounding, relative to the largest score squared
_GRID_STEPS = 2000
_BISECTIONS = 60


def tail_probability(level: float, intervals: int = 1) -> float:
    """Return the probability that the truth lies beyond one end of an interval.

    ``intervals``: how many intervals must hold together (Bonferroni).
    """
    if not 0 < level < 1:
        raise InvalidArgument(f"level must be between 0 and 1, such as 0.95; got {level}.")
    tail = (1 - float(level)) / 2 / intervals
    return max(tail, math.ulp(0.0))


# --- a mean of scores ----------------------------------------------------------------------------


def share_bounds(moments: ScoreMoments, reports: int | Floats, tail: float) -> Bounds:
    """Return ``score_bounds`` for shares: inside [0, 1], but never empty."""
    low, high = score_bounds(moments, reports, tail)
    near_zero, near_one = noisy_near_boundary(moments, reports)
    return boundary_bounds(moments.first, low, high, tail, near_zero, near_one)


def score_bounds(moments: ScoreMoments, reports: int | Floats, tail: float) -> Bounds:
    """Return bounds that the mean of scores misses with probability ``tail`` on either side.

    They may lie outside [0, 1]. ``tail`` is (1 − level)/2, over the number of intervals that must
    hold together.

    >>> unrandomized = ScoreMoments.for_total(np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    >>> [float(end.round(4)[0]) for end in score_bounds(unrandomized, 100, 0.025)]
    [0.0, 0.0362]
    """
    n = np.broadcast_to(reports, moments.first.shape)
    low = _one_bound(moments, moments.lowest, n, tail, 0)
    high = _one_bound(moments, moments.highest, n, tail, 1)
    # The two ends differ in their imaginary report; with few reports they could pass the estimate.
    return np.minimum(low, moments.first), np.maximum(high, moments.first)


def _one_bound(moments: ScoreMoments, extreme: Floats, n: Floats, tail: float, side: int) -> Floats:
    """Return one end, from the reports and an imaginary one with the score ``extreme``."""
    down, up = two_values(moments.with_report(extreme, n))
    is_constant = up <= down
    span = np.where(is_constant, 1.0, up - down)
    counts = n * np.clip((moments.first - down) / span, 0.0, 1.0)
    bound = down + span * binomial_bounds(counts, n, tail)[side]
    return np.where(is_constant, moments.first, bound)


def chance_below(moments: ScoreMoments, reports: int, value: float) -> Floats:
    """Return the probability of an estimate at most this low if the true share is ``value``."""
    from scipy.special import betainc

    n = np.broadcast_to(reports, moments.first.shape)
    down, up = two_values(moments.with_report(moments.highest, n))
    span = np.where(up > down, up - down, 1.0)
    N = n * np.clip((moments.first - down) / span, 0.0, 1.0)
    chance = np.clip((value - down) / span, 0.0, 1.0)
    below = betainc(np.maximum(n - N, 1e-300), N + 1, 1 - chance)
    certain = np.where(moments.first < value, 0.0, 1.0)
    return np.where(up > down, below, certain)


def two_values(moments: ScoreMoments) -> tuple[Floats, Floats]:
    """Return the two values with the same three moments; both are the mean if the variance is 0.

    >>> moments = ScoreMoments.for_total(np.array([-1.0, 3.0]), np.array([0.9, 0.1]))
    >>> down, up = two_values(moments)
    >>> float(down.round(9)[0]), float(up.round(9)[0])
    (-1.0, 3.0)
    """
    m = moments.first
    V = moments.second - m**2
    is_constant = np.maximum(moments.lowest**2, moments.highest**2) * _ROUNDING >= V
    V = np.where(is_constant, 1.0, V)
    gamma = (moments.third - 3 * m * moments.second + 2 * m**3) / V
    # The longer arm first: the other one is V over it, without cancellation.
    long = (np.sqrt(gamma**2 + 4 * V) + np.abs(gamma)) / 2
    above = np.where(gamma >= 0, long, V / long)
    down = np.where(is_constant, m, m - V / above)
    up = np.where(is_constant, m, m + above)
    return down, up


# --- a binomial count ----------------------------------------------------------------------------


def binomial_bounds(counts: Floats, trials: Floats, tail: float) -> Bounds:
    """Return bounds on a success probability: exact for counts up to 10, later right on average."""
    rarer = np.minimum(counts, trials - counts)
    caution = 0.5 + 0.5 * np.minimum(1.0, _EXACT_COUNT / np.maximum(rarer, _EXACT_COUNT))
    return _beta_bounds(counts, trials, caution, tail)


def clopper_pearson(counts: Floats, trials: Floats, tail: float) -> Bounds:
    """Return the exact bounds of Clopper and Pearson (1934); without trials, 0 and 1.

    >>> low, high = clopper_pearson(np.array([0.0, 5.0]), np.array([10.0, 10.0]), 0.025)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    return _beta_bounds(counts, trials, np.ones_like(counts), tail)


def _beta_bounds(counts: Floats, trials: Floats, caution: Floats, tail: float) -> Bounds:
    """Return both bounds; for precision the upper one is 1 less the lower one of the misses."""
    misses = trials - counts
    low = _lower_bound(counts, misses, caution, tail)
    high = 1 - _lower_bound(misses, counts, caution, tail)
    return low, high


def _lower_bound(counts: Floats, misses: Floats, caution: Floats, tail: float) -> Floats:
    """Return ``Beta⁻¹(tail; counts + 1 − caution, misses + caution)``, 0 for a count of 0."""
    from scipy.special import betaincinv

    a = counts + 1 - caution
    b = misses + caution
    bound = np.zeros(counts.shape)
    large = np.minimum(a, b) > _LARGE_COUNT
    bound[large] = _large_beta_quantile(a[large], b[large], tail)
    small = ~large & (counts > 0)
    bound[small] = betaincinv(a[small], b[small], tail)
    return bound


def _large_beta_quantile(a: Floats, b: Floats, tail: float) -> Floats:
    """Return a beta quantile by Paulson (1942).

    Cube roots of gamma variables are nearly normal, and a beta variable is made of two of them:
    ``x/(1 − x) = (a/b) t³`` where t, the ratio of two normal cube roots, has the distribution
    function ``Φ( ((1 − u) t − (1 − v)) / √(u t² + v) )``, u = 1/(9b), v = 1/(9a). Its quantile
    solves a quadratic equation.
    """
    z = -NormalDist().inv_cdf(tail)
    u = 1 / (9 * b)
    v = 1 / (9 * a)
    A = (1 - u) ** 2 - z**2 * u
    B = (1 - u) * (1 - v)
    C = (1 - v) ** 2 - z**2 * v
    t = C / (B + np.sqrt(np.maximum(B**2 - A * C, 0.0)))  # the root below the median
    odds = a / b * np.maximum(t, 0.0) ** 3
    return odds / (1 + odds)


# --- near 0 and 1 --------------------------------------------------------------------------------


def noisy_near_boundary(moments: ScoreMoments, reports: int | Floats) -> tuple[Booleans, Booleans]:
    """Return where estimates of a share of 0 scatter on both sides of it; the same for 1.

    Elsewhere a share of 0 has no more than a handful of reports: the estimate is a count, which
    respects its boundary by itself.
    """
    n = np.broadcast_to(reports, moments.first.shape)
    down, up = two_values(moments.with_report(moments.highest, n))
    span = np.where(up > down, up - down, np.inf)
    near_zero = n * -down / span > _EXACT_COUNT
    near_one = n * (up - 1) / span > _EXACT_COUNT
    return near_zero, near_one


def boundary_bounds(
    estimates: Floats,
    low: Floats,
    high: Floats,
    tail: float,
    noisy_near_zero: Booleans,
    noisy_near_one: Booleans,
) -> Bounds:
    """Turn two-sided bounds into bounds that lie in [0, 1] and never lose their width.

    ``noisy_near_zero``: where estimates may fall below 0 although the share is 0.
    ``noisy_near_one``: where they may exceed 1. Elsewhere an estimate stays in [0, 1] by itself, or
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


def _bounds_above_zero(estimates: Floats, low: Floats, high: Floats, tail: float) -> Bounds:
    """Return the bounds of Feldman and Cousins.

    The length of each arm of the interval, over z, serves as the standard error on its side.
    """
    z = -NormalDist().inv_cdf(tail)
    if z < 0.1:  # the level is close to 0, and so is the width
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
    """Return μ on a grid, with the smallest and the largest x that each μ accepts.

    The grid ends where 0 is too far away to matter.
    """
    from scipy.special import ndtr

    z = -NormalDist().inv_cdf(tail)
    mu = z * np.linspace(0, 1, _GRID_STEPS + 1)[1:] ** 2
    low = np.zeros_like(mu)
    high = np.full_like(mu, z)
    for _ in range(_BISECTIONS):
        t = (low + high) / 2
        beyond_x2 = ndtr(-t)
        before_x1 = ndtr(-(mu**2 + t**2) / (2 * mu))
        is_narrow = beyond_x2 + before_x1 > 2 * tail
        low = np.where(is_narrow, t, low)
        high = np.where(is_narrow, high, t)
    x1 = (mu**2 - high**2) / (2 * mu)
    x2 = mu + high
    return mu, x1, x2
