"""Intervals for a mean of scores, based on a binomial distribution that matches three moments.

The unbiased estimate p̂ of a share, or of any total, is a mean of n scores. Let m, V and γ be their
mean, their variance, and their third central moment divided by the variance. Exactly one pair of
values, one above m and one below, matches all three moments (the nodes of a Gauss quadrature):

    up, down:   (up − m)(m − down) = V,   (up − m) − (m − down) = γ,   so   up − down = √(γ² + 4V)

Replace the scores with this pair. The number of reports with the value *up*,
``N = n (p̂ − down)/(up − down)``, is then binomial. An interval for its success probability π gives
an interval for the share p:

    π_low = Beta⁻¹(α/2; N + 1 − w, n − N + w),   π_high = Beta⁻¹(1 − α/2; N + w, n − N + 1 − w)
    p = down + (up − down) π

If there are only two distinct scores to begin with (unrandomized symbols, shares of blocks,
randomized response over the domain), nothing changes, and N is the number of reports for the
symbol. Otherwise the mean, variance and skewness are correct; a normal interval would ignore the
skewness.

The weight w accounts for counts being integers. w = 1 gives the exact interval of Clopper and
Pearson (1934), whose coverage is never too low. w = ½ gives Jeffreys' interval, whose coverage is
correct on average. Let c be the number of successes or of failures, whichever is smaller. We use
w = 1 for c up to 10, and ``½ + 5/c`` above. At level 0.95, the coverage is then at least 94.4% for
small counts and 95.0% for large ones.

The reports alone do not reveal scores that did not occur: if a symbol has no reports, all its
observed scores are equal. So the pair is computed from the reports plus one imaginary report. This
report has the largest possible score for the upper bound, and the smallest for the lower bound.

*Moments that are estimates themselves.* With two values, all moments follow from the mean. With
more, they vary by themselves: the square of a score is ``V + γ (s − m) + r``, up to a residual r
that the pair cannot have, ``r = (s − up)(s − down)``. Its variance over V² is

    ρ = E[r²]/V² = (μ₄ − V² − γ² V)/V²            μ₄: the fourth central moment

Three errors of order ρ/n result. They act on the tail probability beyond z standard errors through
``z⁴ρ/n``: the estimate has a larger kurtosis than that of the pair (1/24); V is noisy (1/8), but
larger where the estimate is far off (−1/4); and so is γ, in the direction that shifts the interval
away from the truth (1/3). In sum, the tail is too large by a factor of ``exp(z⁴ρ/4n)``. So both
bounds are moved away from the estimate by ``z² ρ/4n`` of their distance. At level 0.95, this is
1% even with 70 reports from a block of two. It matters if many intervals hold at once: z is then
near 4, and the tail was 20% too large with 200 reports in each block of two.

*Near 0 and 1.* A share is never negative, but its unbiased estimate often is. Clipping an interval
at 0 leaves a sliver, or nothing at all, if the estimate happens to be far too low, and readers
would mistake the narrow interval for certainty. Shifting the interval up without changing its width
makes its coverage too high. The interval of Feldman and Cousins avoids both problems. For an
estimate x of μ ≥ 0 with standard error 1, it contains every μ that accepts x. Each μ accepts the
most plausible estimates, with a total probability of ``level``. The plausibility of x is the
likelihood of μ divided by the likelihood of the best μ ≥ 0:

    μ accepts x from x1 to x2 = μ + t,   x1 = μ − t  if that is ≥ 0, else (μ² − t²)/(2μ),
    with the t for which P(x1 ≤ x ≤ x2) = level

This interval has coverage ``level`` for every μ, is never empty, and far from 0 is ``x ± z``.

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
    "adjust_near_boundary",
    "binomial_bounds",
    "clopper_pearson",
    "matching_pair",
    "noisy_near_boundary",
    "probability_below",
    "score_bounds",
    "share_bounds",
    "tail_probability",
]

Bounds = tuple[Floats, Floats]
"""The lower and upper bounds of intervals."""

_MAX_EXACT_COUNT = 10.0  # up to this count, use the interval of Clopper and Pearson
_LARGE_COUNT = 100.0  # above this count, a closed form for beta quantiles is accurate enough
# Variances below this, relative to the largest squared score, are rounding errors.
_MIN_RELATIVE_VARIANCE = 1e-14
_MAX_WIDENING = 0.25  # with very few reports, the expansion does not hold
_GRID_SIZE = 2000
_BISECTION_STEPS = 60


def tail_probability(level: float, interval_count: int = 1) -> float:
    """Return the probability that the truth lies beyond a given end of an interval.

    ``interval_count``: the number of intervals that must hold simultaneously (Bonferroni).
    """
    if not 0 < level < 1:
        raise InvalidArgument(f"level must be between 0 and 1, such as 0.95; got {level}.")
    tail = (1 - float(level)) / 2 / interval_count
    return max(tail, math.ulp(0.0))


# --- a mean of scores ----------------------------------------------------------------------------


def share_bounds(moments: ScoreMoments, report_count: int | Floats, tail: float) -> Bounds:
    """Return bounds on shares: ``score_bounds``, adjusted to stay within [0, 1]."""
    low, high = score_bounds(moments, report_count, tail)
    near_zero, near_one = noisy_near_boundary(moments, report_count)
    return adjust_near_boundary(moments.first, low, high, tail, near_zero, near_one)


def score_bounds(moments: ScoreMoments, report_count: int | Floats, tail: float) -> Bounds:
    """Return bounds on the mean of the scores. Each bound fails with probability ``tail``.

    The bounds may lie outside [0, 1]. See ``tail_probability`` for the choice of ``tail``.

    >>> unrandomized = ScoreMoments.for_total(np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    >>> [float(end.round(4)[0]) for end in score_bounds(unrandomized, 100, 0.025)]
    [0.0, 0.0362]
    """
    n = np.broadcast_to(report_count, moments.first.shape)
    low = _score_bound(moments, moments.lowest, n, tail, 0)
    high = _score_bound(moments, moments.highest, n, tail, 1)
    widening = _widening(moments, n, tail)
    low = low - widening * (moments.first - low)
    high = high + widening * (high - moments.first)
    # The bounds use different imaginary reports; with few reports they could cross the estimate.
    return np.minimum(low, moments.first), np.maximum(high, moments.first)


def _score_bound(
    moments: ScoreMoments, extreme_score: Floats, n: Floats, tail: float, side: int
) -> Floats:
    """Return the lower (side 0) or upper (side 1) bound.

    ``extreme_score``: the score of the imaginary report.
    """
    down, up = matching_pair(moments.with_report(extreme_score, n))
    constant_mask = up <= down
    span = np.where(constant_mask, 1.0, up - down)
    counts = n * np.clip((moments.first - down) / span, 0.0, 1.0)
    bound = down + span * binomial_bounds(counts, n, tail)[side]
    return np.where(constant_mask, moments.first, bound)


def _widening(moments: ScoreMoments, n: Floats, tail: float) -> Floats:
    """Return ``z² ρ/4n``: how much wider bounds must be because the moments are estimates."""
    z = -NormalDist().inv_cdf(tail)
    m = moments.first
    V, gamma, is_constant = _variance_and_skewness(moments)
    mu4 = moments.fourth - 4 * m * moments.third + 6 * m**2 * moments.second - 3 * m**4
    rho = np.maximum(mu4 - V**2 - gamma**2 * V, 0.0) / V**2
    return np.where(is_constant, 0.0, np.minimum(z**2 * rho / (4 * n), _MAX_WIDENING))


def probability_below(moments: ScoreMoments, report_count: int, value: float) -> Floats:
    """Return the probability of an estimate no higher than this one if the mean is ``value``."""
    from scipy.special import betainc

    n = np.broadcast_to(report_count, moments.first.shape)
    down, up = matching_pair(moments.with_report(moments.highest, n))
    span = np.where(up > down, up - down, 1.0)
    N = n * np.clip((moments.first - down) / span, 0.0, 1.0)
    success_probability = np.clip((value - down) / span, 0.0, 1.0)
    below = betainc(np.maximum(n - N, 1e-300), N + 1, 1 - success_probability)
    constant_below = np.where(moments.first < value, 0.0, 1.0)
    return np.where(up > down, below, constant_below)


def matching_pair(moments: ScoreMoments) -> tuple[Floats, Floats]:
    """Return the pair of values that matches three moments, or the mean twice if the variance is 0.

    >>> moments = ScoreMoments.for_total(np.array([-1.0, 3.0]), np.array([0.9, 0.1]))
    >>> down, up = matching_pair(moments)
    >>> float(down.round(9)[0]), float(up.round(9)[0])
    (-1.0, 3.0)
    """
    m = moments.first
    V, gamma, constant_mask = _variance_and_skewness(moments)
    # Compute the longer arm first. To avoid cancellation, divide V by it to get the shorter arm.
    longer_arm = (np.sqrt(gamma**2 + 4 * V) + np.abs(gamma)) / 2
    upper_arm = np.where(gamma >= 0, longer_arm, V / longer_arm)
    down = np.where(constant_mask, m, m - V / upper_arm)
    up = np.where(constant_mask, m, m + upper_arm)
    return down, up


def _variance_and_skewness(moments: ScoreMoments) -> tuple[Floats, Floats, Booleans]:
    """Return V, γ and a mask of constant scores, for which both are meaningless."""
    m = moments.first
    V = moments.second - m**2
    constant_mask = np.maximum(moments.lowest**2, moments.highest**2) * _MIN_RELATIVE_VARIANCE >= V
    V = np.where(constant_mask, 1.0, V)
    gamma = (moments.third - 3 * m * moments.second + 2 * m**3) / V
    return V, gamma, constant_mask


# --- a binomial count ----------------------------------------------------------------------------


def binomial_bounds(counts: Floats, trials: Floats, tail: float) -> Bounds:
    """Return bounds on a success probability.

    They are exact if there are at most 10 successes or at most 10 failures. Otherwise, their
    coverage is approximately correct on average.
    """
    smaller_count = np.minimum(counts, trials - counts)
    clipped_count = np.maximum(smaller_count, _MAX_EXACT_COUNT)
    w = 0.5 + 0.5 * np.minimum(1.0, _MAX_EXACT_COUNT / clipped_count)
    return _beta_bounds(counts, trials, w, tail)


def clopper_pearson(counts: Floats, trials: Floats, tail: float) -> Bounds:
    """Return the exact bounds of Clopper and Pearson (1934), or 0 and 1 if there are no trials.

    >>> low, high = clopper_pearson(np.array([0.0, 5.0]), np.array([10.0, 10.0]), 0.025)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    return _beta_bounds(counts, trials, np.ones_like(counts), tail)


def _beta_bounds(counts: Floats, trials: Floats, w: Floats, tail: float) -> Bounds:
    """Return both bounds. For precision, get the upper bound from the lower bound on failures."""
    failures = trials - counts
    low = _lower_bound(counts, failures, w, tail)
    high = 1 - _lower_bound(failures, counts, w, tail)
    return low, high


def _lower_bound(counts: Floats, failures: Floats, w: Floats, tail: float) -> Floats:
    """Return ``Beta⁻¹(tail; counts + 1 − w, failures + w)``, or 0 for a count of 0."""
    from scipy.special import betaincinv

    a = counts + 1 - w
    b = failures + w
    bound = np.zeros(counts.shape)
    large = np.minimum(a, b) > _LARGE_COUNT
    bound[large] = _large_beta_quantile(a[large], b[large], tail)
    small = ~large & (counts > 0)
    bound[small] = betaincinv(a[small], b[small], tail)
    return bound


def _large_beta_quantile(a: Floats, b: Floats, tail: float) -> Floats:
    """Approximate a beta quantile (Paulson, 1942).

    Cube roots of gamma variables are nearly normal, and two gamma variables give a beta variable:
    ``x/(1 − x) = (a/b) t³`` where t, the ratio of two normal cube roots, has the distribution
    function ``Φ( ((1 − u) t − (1 − v)) / √(u t² + v) )``, u = 1/(9b), v = 1/(9a). The quantile of t
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


def noisy_near_boundary(
    moments: ScoreMoments, report_count: int | Floats
) -> tuple[Booleans, Booleans]:
    """Return a mask of estimates that are noisy if the true share is 0, and one for a share of 1.

    An estimate is noisy if it can be on either side of the true share. Otherwise, a true share of 0
    gives at most a handful of reports: the estimate is then a count, whose interval stays within
    [0, 1] anyway.
    """
    n = np.broadcast_to(report_count, moments.first.shape)
    down, up = matching_pair(moments.with_report(moments.highest, n))
    span = np.where(up > down, up - down, np.inf)
    near_zero = n * -down / span > _MAX_EXACT_COUNT
    near_one = n * (up - 1) / span > _MAX_EXACT_COUNT
    return near_zero, near_one


def adjust_near_boundary(
    estimates: Floats,
    low: Floats,
    high: Floats,
    tail: float,
    noisy_near_zero: Booleans,
    noisy_near_one: Booleans,
) -> Bounds:
    """Adjust two-sided bounds so they are within [0, 1] without becoming misleadingly narrow.

    ``noisy_near_zero``: a mask of the estimates that may be negative if the true share is 0.
    ``noisy_near_one``: a mask of the estimates that may exceed 1 if the true share is 1.
    Other estimates stay within [0, 1], or nearly so. Their bounds are only clipped.
    """
    low = low.copy()
    high = high.copy()
    near_zero = (noisy_near_zero | (high <= 0)) & (estimates < 0.5)
    near_one = (noisy_near_one | (low >= 1)) & (estimates >= 0.5)
    low[near_zero], high[near_zero] = _feldman_cousins_bounds(
        estimates[near_zero], low[near_zero], high[near_zero], tail
    )
    # If a share is near 1, the share of all other symbols is near 0.
    others_low, others_high = _feldman_cousins_bounds(
        1 - estimates[near_one], 1 - high[near_one], 1 - low[near_one], tail
    )
    high[near_one] = 1 - others_low
    low[near_one] = 1 - others_high
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def _feldman_cousins_bounds(estimates: Floats, low: Floats, high: Floats, tail: float) -> Bounds:
    """Return the bounds of Feldman and Cousins.

    The standard error on each side is the distance from the estimate to the given bound, divided by
    z.
    """
    z = -NormalDist().inv_cdf(tail)
    if z < 0.1:  # the level is close to 0, and so is the width of the interval
        return low, high
    down_error = np.maximum(estimates - low, 1e-300) / z
    up_error = np.maximum(high - estimates, 1e-300) / z
    mu, x1, x2 = _acceptance_table(tail)
    # Beyond the table the interval is x ± z.
    x = estimates / down_error
    lower = np.interp(x, x2, mu, left=0.0) * down_error
    lower = np.where(x >= x2[-1], low, lower)
    # As x goes to −∞, the upper bound falls like t²/(−2x).
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
    mu = z * np.linspace(0, 1, _GRID_SIZE + 1)[1:] ** 2
    t_low = np.zeros_like(mu)
    t_high = np.full_like(mu, z)
    for _ in range(_BISECTION_STEPS):
        t = (t_low + t_high) / 2
        above_x2 = ndtr(-t)
        below_x1 = ndtr(-(mu**2 + t**2) / (2 * mu))
        too_narrow = above_x2 + below_x1 > 2 * tail
        t_low = np.where(too_narrow, t, t_low)
        t_high = np.where(too_narrow, t_high, t)
    x1 = (mu**2 - t_high**2) / (2 * mu)
    x2 = mu + t_high
    return mu, x1, x2
