"""Bound the log-ratio of an event's probabilities under two symbols, and compute resolutions.

**Exact bounds.** The number of samples for each symbol has a Poisson distribution
(see ``sample_plan.py``). The counts a and b of an event S under x and x2 are then independent and
Poisson, with means ``λ_x P(S|x)`` and ``λ_x2 P(S|x2)``. Given a + b, a is binomial:

    a | a + b  ~  Bin(a + b, π),   π/(1 − π) = (λ_x/λ_x2) · P(S|x)/P(S|x2)

So a single Clopper–Pearson bound on π bounds the ratio, with no other unknowns or approximation.
Bounding each probability separately would require about a third more samples for randomized
response with ε = 1.

**If the channel changes over time.** Querying Poisson numbers of symbols in random order is
equivalent to drawing the symbols independently, one by one. Let Q_t be the channel at query t,
which may depend on earlier queries. Consider the queries for x or x2 whose report is in S. If query
t is one of them, it is for x with odds ``(λ_x/λ_x2) · Q_t(S|x)/Q_t(S|x2)``, independently of all
others. These odds are at most ``e^E λ_x/λ_x2`` if Q_t satisfies E. So a is stochastically dominated
by the binomial count for a ratio of e^E, and a bound above E is at least as improbable as before.

**Approximation.** The angle ``atan √(a/b)`` of two Poisson counts has a standard error close to
``1/(2 √(a + b))``, even for small counts and large ratios. So standard errors can be added to an
angle or subtracted from it even if one of the counts is 0. (The angle is Fisher's arcsine transform
of the share a/(a + b).) Audits use angles for choices and predictions, never for their bounds.

**Resolution.** What is the smallest log-ratio that an audit can detect? Let μ_x2 be the expected
count of a pair's event S under x2. Suppose that the probability of S under x is e^r times its
probability under x2. If the former would exceed 1, set it to 1 and reduce the latter:

    μ_x = min((λ_x/λ_x2) e^r μ_x2, λ_x),   μ_x2 ← μ_x / ((λ_x/λ_x2) e^r)

The test reports a violation if its lower bound is above E. In terms of angles, that happens with
probability β if the angle of these expected counts exceeds the angle at r = E by

    z(1 − level) + z(β)   standard errors.

The smallest such r is the *resolution* of the pair on its event. Since counts are integers and the
bound is exact, the expected count for x is reduced by 1 and that for x2 is increased by 1. The
probability of detection is then β or slightly more.

The true μ_x2 is unknown, so a lower bound is computed from the observed count of x2. The resolution
is too small only if that bound is too large. Half of the risk of missing a violation is allotted to
that bound, and half to the test.

A violation by a pair that was not a suspect could have been detected in two ways: by the pair's
own test, at a small level; or by a test with a suspect's samples, if the pair's suspicion had
exceeded the smallest suspicion among the suspects. The pair's resolution is the smallest log-ratio
for which one of these two ways succeeds. In the second way, each of the two steps is allotted half
of the test's risk.

The resolution applies only to the chosen event. An audit may choose a poor event if there are too
many different reports for the number of samples. It cannot detect violations on other events. The
share of rare reports indicates how much the audit may miss.

References: Clopper and Pearson (1934); Garwood (1936) for one Poisson mean; Przyborowski and
Wilenski (1940) for the ratio of two.
"""

import numpy as np
from numpy.typing import ArrayLike

from sfumato.foundation.arrays import Floats

_MAX_EXCESS = 60.0  # the search ends at log-ratios this far above the promise
_BISECTION_STEPS = 60


def probability_lower_bound(successes: ArrayLike, trials: ArrayLike, level: ArrayLike) -> Floats:
    """Return the Clopper–Pearson lower bound on a probability.

    The bound is too large with probability at most ``level``.

    >>> float(probability_lower_bound(10, 10, 0.05).round(4))
    0.7411
    >>> float(probability_lower_bound(0, 10, 0.05))
    0.0
    """
    from scipy.special import betaincinv

    a = np.asarray(successes, dtype=float)
    n = np.asarray(trials, dtype=float)
    bound = betaincinv(np.maximum(a, 1), n - a + 1, np.asarray(level, dtype=float))
    return np.where(a > 0, bound, 0.0)


def poisson_mean_lower_bound(count: ArrayLike, level: float) -> Floats:
    """Return a lower bound on the mean of a Poisson count.

    The bound is too large with probability at most ``level``.

    >>> float(poisson_mean_lower_bound(10, 0.05).round(3))
    5.425
    >>> float(poisson_mean_lower_bound(0, 0.05))
    0.0
    """
    from scipy.special import gammaincinv

    b = np.asarray(count, dtype=float)
    return np.where(b > 0, gammaincinv(np.maximum(b, 1), level), 0.0)


def log_ratio_lower_bounds(
    hits: ArrayLike, hits2: ArrayLike, size_ratio: ArrayLike, level: ArrayLike
) -> Floats:
    """Return a lower bound on ``max(log P(S|x)/P(S|x2), 0)``.

    ``hits`` and ``hits2`` are the counts of S under x and x2; ``size_ratio`` is ``λ_x/λ_x2``. The
    bound is too large with probability at most ``level``, whatever the two probabilities are.

    >>> float(log_ratio_lower_bounds(3000, 1000, 1.0, 0.01).round(3))  # log 3 is 1.099
    1.013
    """
    a = np.asarray(hits, dtype=float)
    b = np.asarray(hits2, dtype=float)
    share = probability_lower_bound(a, a + b, level)
    with np.errstate(divide="ignore"):
        bounds = np.log(share) - np.log1p(-share) - np.log(size_ratio)
    return np.maximum(bounds, 0.0)


# --- approximations with angles -------------------------------------------------------------------


def standard_errors_above(hits: ArrayLike, hits2: ArrayLike, log_ratio: ArrayLike) -> Floats:
    """Return how many standard errors the ratio of two counts is above exp(log_ratio).

    >>> float(standard_errors_above(300, 100, np.log(3)))
    0.0
    >>> float(standard_errors_above(300, 100, np.log(2)).round(2))
    3.68
    """
    a = np.asarray(hits, dtype=float)
    b = np.asarray(hits2, dtype=float)
    with np.errstate(over="ignore"):  # an infinite ratio corresponds to a right angle
        angle = np.arctan(np.exp(np.asarray(log_ratio) / 2))
    excess = np.arctan2(np.sqrt(a), np.sqrt(b)) - angle
    return 2 * np.sqrt(a + b) * excess


def cautious_log_ratio(hits: Floats, hits2: Floats, standard_errors: float) -> Floats:
    """Return the log-ratio of two counts, after subtracting standard errors from its angle.

    The result is −inf if the counts are too small.

    >>> float(cautious_log_ratio(np.array(40.0), np.array(0.0), 4.0).round(2))
    2.23
    """
    standard_error = 1 / (2 * np.sqrt(hits + hits2))
    angle = np.arctan2(np.sqrt(hits), np.sqrt(hits2)) - standard_errors * standard_error
    with np.errstate(divide="ignore"):
        return 2 * np.log(np.tan(np.maximum(angle, 0.0)))


# --- resolution -----------------------------------------------------------------------------------


def detectable_log_ratio(
    promised: ArrayLike,
    mean2: ArrayLike,
    size_ratio: ArrayLike,
    level: ArrayLike,
    power: float,
    max_count: ArrayLike,
) -> Floats:
    """Return the smallest log-ratio that the test detects with probability ``power``.

    The result is ``inf`` if the test cannot detect any log-ratio with that probability.

    ``mean2`` is the expected count of the event under x2; ``size_ratio`` is ``λ_x/λ_x2``. The count
    of the event under x is at most ``max_count``, the number of samples for x.
    """
    from scipy.special import ndtri

    required_errors = ndtri(power) - ndtri(np.asarray(level, dtype=float))
    return _smallest_log_ratio(promised, mean2, size_ratio, required_errors, max_count)


def suspicious_log_ratio(
    promised: ArrayLike, mean2: ArrayLike, threshold: float, power: float, max_count: ArrayLike
) -> Floats:
    """Return the smallest log-ratio that makes a pair a suspect with probability ``power``.

    The result is ``inf`` if no log-ratio does. A suspect has a suspicion above ``threshold``.
    Suspects are chosen from one part of the samples, which has ``max_count`` samples for each
    symbol. ``mean2`` is the expected count of the event under x2 in that part.
    """
    from scipy.special import ndtri

    required_errors = np.asarray(max(threshold, 0.0) + ndtri(power))
    return _smallest_log_ratio(promised, mean2, 1.0, required_errors, max_count)


def _smallest_log_ratio(
    promised: ArrayLike,
    mean2: ArrayLike,
    size_ratio: ArrayLike,
    required_errors: Floats,
    max_count: ArrayLike,
) -> Floats:
    """Find by bisection the smallest log-ratio r whose expected counts are far enough above E.

    Their angle must be at least ``required_errors`` standard errors above the angle at r = E.
    """
    arguments = (promised, mean2, size_ratio, required_errors, max_count)
    arrays = [np.asarray(argument, dtype=float) for argument in arguments]
    E, mu, w, min_errors, max_a = np.broadcast_arrays(*arrays)
    low = E
    high = E + _MAX_EXCESS
    for _ in range(_BISECTION_STEPS):
        r = (low + high) / 2
        # Use logarithms: a promise may be so large that e^r overflows.
        log_ratio = np.log(w) + r
        with np.errstate(divide="ignore"):
            log_a = np.minimum(np.log(mu) + log_ratio, np.log(max_a))
        a = np.exp(log_a)
        b = np.exp(log_a - log_ratio)
        expected_errors = standard_errors_above(np.maximum(a - 1, 0), b + 1, E + np.log(w))
        is_detected = expected_errors >= min_errors
        low = np.where(is_detected, low, r)
        high = np.where(is_detected, r, high)
    return np.where(high < E + _MAX_EXCESS, high, np.inf)
