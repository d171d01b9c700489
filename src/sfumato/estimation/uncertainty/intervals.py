"""Intervals for a mean of scores: binomial where the scores are binomial, and close to it everywhere else.

The unbiased estimate p̂ of a share, or of any total, is a mean of n scores. Let m, V and γ be their mean, variance and
third central moment over the variance. There is exactly one pair of values, one above m and one below, that has all
three moments (the two nodes of a Gauss quadrature):

    up, down:   (up − m)(m − down) = V,   (up − m) − (m − down) = γ,   so   up − down = √(γ² + 4V)

The scores are replaced by this pair. The reports with the value *up* are then a binomial count,
``N = n (p̂ − down)/(up − down)``, and an interval for its success probability becomes one for the share:

    π_low = Beta⁻¹(α/2; N + 1 − w, n − N + w),   π_high = Beta⁻¹(1 − α/2; N + w, n − N + 1 − w)
    p = down + (up − down) π

Where there are only two scores to begin with (symbols in clear, shares of blocks, randomised response over the whole
domain), nothing was replaced, and N is the count of reports that speak for the symbol. Elsewhere mean, variance and
skewness are right, which is more than a normal interval has.

w is the caution about a count being a whole number: w = 1 is the exact interval of Clopper and Pearson (1934), which
never covers too rarely; w = ½ is Jeffreys' interval, which is right on average. We take w = 1 up to counts of 10 and
``½ + 5/count`` above. At 95 % small counts are then covered 94.4 % of the time or more, large ones 95.0 %.

Scores that were not seen would be missed: of a symbol that nobody reported all scores are equal. So the pair is taken
from the reports and one imaginary report that speaks for the symbol as loudly as a report can (for the upper end), or
against it (for the lower).
"""

import math
from statistics import NormalDist

import numpy as np

from sfumato.errors import InvalidContext
from sfumato.estimation.uncertainty.boundary import bounds_beside_walls
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.mechanisms import ScoreMoments

__all__ = [
    "binomial_bounds",
    "chance_below",
    "checked_level",
    "clopper_pearson",
    "score_bounds",
    "tail_of",
    "two_values",
]

_EXACT = 10.0  # counts up to which an interval is that of Clopper and Pearson
_LARGE = 100.0  # counts above which quantiles of the beta distribution have a closed form that is good enough
_NOTHING = (
    1e-14  # a variance that is nought but for rounding, relative to the largest score squared
)


def checked_level(level: float) -> float:
    """A level strictly between 0 and 1."""
    if not 0 < level < 1:
        raise InvalidContext(f"level must lie between 0 and 1; found {level}. Pass e.g. 0.95.")
    return float(level)


def tail_of(level: float, intervals: int = 1) -> float:
    """The probability that each end may be missed, where so many intervals are to hold together (Bonferroni)."""
    tail = (1 - checked_level(level)) / 2 / intervals
    return max(tail, math.ulp(0.0))


def share_bounds(
    moments: ScoreMoments, reports: int | Floats, tail: float
) -> tuple[Floats, Floats]:
    """``score_bounds`` for shares, which lie in [0, 1]: cut there, but never to nothing (``boundary.py``)."""
    low, high = score_bounds(moments, reports, tail)
    return bounds_beside_walls(
        moments.first, low, high, tail, *noisy_beside_walls(moments, reports)
    )


def noisy_beside_walls(moments: ScoreMoments, reports: int | Floats) -> tuple[Booleans, Booleans]:
    """Where estimates of a share of 0 scatter on both sides of it, and where those of a share of 1.

    Elsewhere, where no more than a handful of reports would speak for a share of 0, the estimate is a count and knows
    its own wall.
    """
    n = np.broadcast_to(np.asarray(reports, dtype=np.float64), moments.first.shape)
    down, up = two_values(moments.with_report(moments.highest, n))
    span = np.where(up > down, up - down, np.inf)
    return n * -down / span > _EXACT, n * (up - 1) / span > _EXACT


def score_bounds(
    moments: ScoreMoments, reports: int | Floats, tail: float
) -> tuple[Floats, Floats]:
    """Bounds that a mean of scores exceeds, on either side, with probability ``tail``; they may lie outside [0, 1].

    ``tail`` is (1 − level)/2, over the number of intervals where they are to hold together.

    >>> in_clear = ScoreMoments.of_total(np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    >>> [float(end.round(4)[0]) for end in score_bounds(in_clear, 100, 0.025)]
    [0.0, 0.0362]
    """
    n = np.broadcast_to(np.asarray(reports, dtype=np.float64), moments.first.shape)
    low, high = (
        _one_bound(moments, moments.lowest, n, tail, 0),
        _one_bound(moments, moments.highest, n, tail, 1),
    )
    # The pairs of the two ends differ by a report; with a handful of reports the ends could pass the estimate.
    return np.minimum(low, moments.first), np.maximum(high, moments.first)


def _one_bound(moments: ScoreMoments, loudest: Floats, n: Floats, tail: float, side: int) -> Floats:
    down, up = two_values(moments.with_report(loudest, n))
    known = up <= down
    span = np.where(known, 1.0, up - down)
    counts = n * np.clip((moments.first - down) / span, 0.0, 1.0)
    return np.where(known, moments.first, down + span * binomial_bounds(counts, n, tail)[side])


def chance_below(moments: ScoreMoments, reports: int, value: float) -> Floats:
    """How probable an estimate as low as this, or lower, is where the true share is ``value``."""
    from scipy.special import betainc

    n = np.full(moments.first.shape, float(reports))
    down, up = two_values(moments.with_report(moments.highest, n))
    span = np.where(up > down, up - down, 1.0)
    N = n * np.clip((moments.first - down) / span, 0.0, 1.0)
    chance = np.clip((value - down) / span, 0.0, 1.0)
    below = betainc(np.maximum(n - N, 1e-300), N + 1, 1 - chance)
    return np.where(up > down, below, np.where(moments.first < value, 0.0, 1.0))


def two_values(moments: ScoreMoments) -> tuple[Floats, Floats]:
    """The two values with the same first three moments; both are the mean where there is nothing else.

    >>> down, up = two_values(ScoreMoments.of_total(np.array([-1.0, 3.0]), np.array([0.9, 0.1])))
    >>> float(down.round(9)[0]), float(up.round(9)[0])
    (-1.0, 3.0)
    """
    m = moments.first
    V = moments.second - m**2
    known = np.maximum(moments.lowest**2, moments.highest**2) * _NOTHING >= V
    V = np.where(known, 1.0, V)
    gamma = (moments.third - 3 * m * moments.second + 2 * m**3) / V
    # The longer arm first: the other one is V over it, without cancellation.
    long = (np.sqrt(gamma**2 + 4 * V) + np.abs(gamma)) / 2
    above = np.where(gamma >= 0, long, V / long)
    down, up = m - V / above, m + above
    return np.where(known, m, down), np.where(known, m, up)


def binomial_bounds(counts: Floats, trials: Floats, tail: float) -> tuple[Floats, Floats]:
    """Bounds on a success probability: exact for counts up to 10, right on average for large ones."""
    rarer = np.minimum(counts, trials - counts)
    caution = 0.5 + 0.5 * np.minimum(1.0, _EXACT / np.maximum(rarer, _EXACT))
    return _beta_bounds(counts, trials, caution, tail)


def clopper_pearson(counts: Floats, trials: Floats, tail: float) -> tuple[Floats, Floats]:
    """The exact bounds of Clopper and Pearson (1934); without trials, 0 and 1.

    >>> low, high = clopper_pearson(np.array([0.0, 5.0]), np.array([10.0, 10.0]), 0.025)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    return _beta_bounds(counts, trials, np.ones_like(counts), tail)


def _beta_bounds(
    counts: Floats, trials: Floats, caution: Floats, tail: float
) -> tuple[Floats, Floats]:
    """Of both ends the one that is small has its precision; so the upper bound is 1 − the others' lower one."""
    others = trials - counts
    return _lower_bound(counts, others, caution, tail), 1 - _lower_bound(
        others, counts, caution, tail
    )


def _lower_bound(counts: Floats, others: Floats, caution: Floats, tail: float) -> Floats:
    """``Beta⁻¹(tail; counts + 1 − caution, others + caution)``; 0 for a count of 0."""
    from scipy.special import betaincinv

    a, b = counts + 1 - caution, others + caution
    bound = np.zeros(counts.shape)
    large = np.minimum(a, b) > _LARGE
    bound[large] = _large_beta_quantile(a[large], b[large], tail)
    small = ~large & (counts > 0)
    bound[small] = betaincinv(a[small], b[small], tail)
    return bound


def _large_beta_quantile(a: Floats, b: Floats, tail: float) -> Floats:
    """Paulson (1942): cube roots of gamma variables are nearly normal, and a beta variable is made of two of them.

    ``x/(1 − x) = (a/b) t³`` where t, the ratio of two normal cube roots, has the distribution function
    ``Φ( ((1 − u) t − (1 − v)) / √(u t² + v) )``, u = 1/(9b), v = 1/(9a): a quadratic equation for its quantile.
    """
    z = -NormalDist().inv_cdf(tail)
    u, v = 1 / (9 * b), 1 / (9 * a)
    A, B, C = (1 - u) ** 2 - z**2 * u, (1 - u) * (1 - v), (1 - v) ** 2 - z**2 * v
    t = C / (B + np.sqrt(np.maximum(B**2 - A * C, 0.0)))  # the root below the median
    odds = a / b * np.maximum(t, 0.0) ** 3
    return odds / (1 + odds)
