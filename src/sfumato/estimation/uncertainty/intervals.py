"""Intervals for a mean of scores: binomial where the scores are, and close to it elsewhere.

The unbiased estimate p̂ of a share, or of any total, is a mean of n scores. Let m, V and γ be their
mean, variance and third central moment over the variance. There is exactly one pair of values, one
above m and one below, that has all three moments (the two nodes of a Gauss quadrature):

    up, down:   (up − m)(m − down) = V,   (up − m) − (m − down) = γ,   so   up − down = √(γ² + 4V)

Replace the scores by this pair. The reports with the value *up* are then a binomial count,
``N = n (p̂ − down)/(up − down)``, and an interval for its success probability becomes one for the
share:

    π_low = Beta⁻¹(α/2; N + 1 − w, n − N + w),   π_high = Beta⁻¹(1 − α/2; N + w, n − N + 1 − w)
    p = down + (up − down) π

If there are only two scores to begin with (symbols in clear, shares of blocks, randomised response
over the whole domain), nothing changes, and N is the count of reports for the symbol. Elsewhere
mean, variance and skewness are right, which is more than a normal interval has.

w is the caution about a count being an integer. w = 1 is the exact interval of Clopper and Pearson
(1934), which never covers too rarely. w = ½ is Jeffreys' interval, which is right on average. We
take w = 1 up to counts of 10 and ``½ + 5/count`` above. At 95 % small counts are then covered 94.4
% of the time or more, large ones 95.0 %.

Scores that did not occur would be missed: a symbol without reports has equal scores only. So the
pair is taken from the reports and one imaginary report with the largest score there is (for the
upper end), or the smallest (for the lower).
"""

import math
from statistics import NormalDist

import numpy as np

from sfumato.errors import InvalidArgument
from sfumato.estimation.uncertainty.boundary import boundary_bounds
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.mechanisms import ScoreMoments

__all__ = [
    "binomial_bounds",
    "chance_below",
    "check_level",
    "clopper_pearson",
    "noisy_near_boundary",
    "score_bounds",
    "share_bounds",
    "tail_probability",
    "two_values",
]

_EXACT_COUNT = 10.0  # counts up to which an interval is that of Clopper and Pearson
_LARGE_COUNT = 100.0  # counts above which a closed form of beta quantiles is good enough
_ROUNDING = 1e-14  # a variance that is only rounding, relative to the largest score squared


def check_level(level: float) -> float:
    """Return a level strictly between 0 and 1."""
    if not 0 < level < 1:
        raise InvalidArgument(f"level must be between 0 and 1, such as 0.95; got {level}.")
    return float(level)


def tail_probability(level: float, intervals: int = 1) -> float:
    """Return the probability that each end may miss.

    ``intervals`` is how many intervals must hold together (Bonferroni).
    """
    tail = (1 - check_level(level)) / 2 / intervals
    return max(tail, math.ulp(0.0))


def share_bounds(
    moments: ScoreMoments, reports: int | Floats, tail: float
) -> tuple[Floats, Floats]:
    """Return ``score_bounds`` for shares: cut to [0, 1], but never to nothing (``boundary.py``)."""
    low, high = score_bounds(moments, reports, tail)
    near_zero, near_one = noisy_near_boundary(moments, reports)
    return boundary_bounds(moments.first, low, high, tail, near_zero, near_one)


def noisy_near_boundary(moments: ScoreMoments, reports: int | Floats) -> tuple[Booleans, Booleans]:
    """Return where estimates of a share of 0 scatter on both sides of it; the same for 1.

    Elsewhere a share of 0 has no more than a handful of reports: the estimate is a count and
    respects its boundary by itself.
    """
    n = np.broadcast_to(np.asarray(reports, dtype=np.float64), moments.first.shape)
    down, up = two_values(moments.with_report(moments.highest, n))
    span = np.where(up > down, up - down, np.inf)
    near_zero = n * -down / span > _EXACT_COUNT
    near_one = n * (up - 1) / span > _EXACT_COUNT
    return near_zero, near_one


def score_bounds(
    moments: ScoreMoments, reports: int | Floats, tail: float
) -> tuple[Floats, Floats]:
    """Return bounds that the mean of scores misses with probability ``tail`` on either side.

    They may lie outside [0, 1]. ``tail`` is (1 − level)/2, over the number of intervals that must
    hold together.

    >>> in_clear = ScoreMoments.of_total(np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    >>> [float(end.round(4)[0]) for end in score_bounds(in_clear, 100, 0.025)]
    [0.0, 0.0362]
    """
    n = np.broadcast_to(np.asarray(reports, dtype=np.float64), moments.first.shape)
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

    n = np.full(moments.first.shape, float(reports))
    down, up = two_values(moments.with_report(moments.highest, n))
    span = np.where(up > down, up - down, 1.0)
    N = n * np.clip((moments.first - down) / span, 0.0, 1.0)
    chance = np.clip((value - down) / span, 0.0, 1.0)
    below = betainc(np.maximum(n - N, 1e-300), N + 1, 1 - chance)
    certain = np.where(moments.first < value, 0.0, 1.0)
    return np.where(up > down, below, certain)


def two_values(moments: ScoreMoments) -> tuple[Floats, Floats]:
    """Return the two values with the same three moments; both are the mean if the variance is 0.

    >>> moments = ScoreMoments.of_total(np.array([-1.0, 3.0]), np.array([0.9, 0.1]))
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


def binomial_bounds(counts: Floats, trials: Floats, tail: float) -> tuple[Floats, Floats]:
    """Return bounds on a success probability: exact for counts up to 10, later right on average."""
    rarer = np.minimum(counts, trials - counts)
    caution = 0.5 + 0.5 * np.minimum(1.0, _EXACT_COUNT / np.maximum(rarer, _EXACT_COUNT))
    return _beta_bounds(counts, trials, caution, tail)


def clopper_pearson(counts: Floats, trials: Floats, tail: float) -> tuple[Floats, Floats]:
    """Return the exact bounds of Clopper and Pearson (1934); without trials, 0 and 1.

    >>> low, high = clopper_pearson(np.array([0.0, 5.0]), np.array([10.0, 10.0]), 0.025)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    return _beta_bounds(counts, trials, np.ones_like(counts), tail)


def _beta_bounds(
    counts: Floats, trials: Floats, caution: Floats, tail: float
) -> tuple[Floats, Floats]:
    """Return both bounds; the upper one is 1 less the lower one of the misses, which is precise."""
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
