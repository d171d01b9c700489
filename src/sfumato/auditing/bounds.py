"""Compare two counts: bounds on their log-ratio, and the least ratio that an audit would detect.

**Exact.** The number of samples of each symbol is drawn from a Poisson law (``sample_plan.py``).
The counts a and b of an event S under x and x2 are then independent and Poisson too, with means
``λ_x P(S|x)`` and ``λ_x2 P(S|x2)``. Given their sum, the first of them is binomial:

    a | a + b  ~  Bin(a + b, π),   π/(1 − π) = (λ_x/λ_x2) · P(S|x)/P(S|x2)

So one Clopper–Pearson bound on π bounds the ratio. There is no second unknown to allow for, and
nothing is approximated. Two bounds, one for each probability, would need about a third more samples
for randomized response with ε = 1.

**If the channel changes with time.** Poisson numbers of symbols in random order are the same as
symbols drawn one by one, independently. Let the channel be Q_t at query t, whatever the queries
were. Of the queries for x or x2 whose report is in S, the one at t is for x with odds of
``(λ_x/λ_x2) · Q_t(S|x)/Q_t(S|x2)``, at most ``e^E λ_x/λ_x2`` if Q_t keeps E, and independently of
all others. So a is at most as large, in distribution, as the binomial count of a ratio of e^E, and
a bound above E is as improbable as before.

**Rough.** The angle ``atan √(a/b)`` of two Poisson counts has a standard error of very nearly
``1/(2 √(a + b))``, however small the counts and however large their ratio. In angles, errors can
therefore be added and subtracted even if one of the counts is 0. (It is Fisher's arcsine transform
of the share a/(a + b).) Audits use it to guess and to predict, never for their bounds.

**Resolution.** Let x2 send the event S of a pair μ_x2 times on average, and suppose that x sends it
e^r times as often. If that would be more often than always, let x send it always, and x2 less
often:

    μ_x = min((λ_x/λ_x2) e^r μ_x2, λ_x),   μ_x2 ← μ_x / ((λ_x/λ_x2) e^r)

The test reports a violation if its lower bound is above E. In angles, that happens with probability
β if these expected counts are above E by

    z(1 − level) + z(β)   standard errors.

The least such r is the *resolution* of the pair on its event. Counts are integers, and the bound is
exact: moving one count from x to x2 makes up for it. The probability is then β or a little more.

All that is known of μ_x2 is a count. A lower bound on its mean takes its place, so the resolution
is too small no more often than the bound is too large. Half of the risk of missing something is
spent on that bound, and half on the test.

A pair that was not a suspect can be detected in two ways: by its own small level; or by becoming a
suspect, which takes a suspicion above that of the least suspect, and then by the test with the
suspects' share of the samples. The better way counts. Each of the two steps of the second way has
half of the test's risk.

The event is taken as given. An audit may choose a poor event, if there are too many different
reports for its samples. It does not see what happens elsewhere. The share of ``rare`` reports says
how much that may be.

References: Clopper and Pearson (1934); Garwood (1936) for one Poisson mean; Przyborowski and
Wilenski (1940) for the ratio of two.
"""

import numpy as np
from numpy.typing import ArrayLike

from sfumato.foundation.arrays import Floats

_MAX_EXCESS = 60.0  # the search looks for log-ratios up to this much above the promise
_STEPS = 60


def share_bound(successes: ArrayLike, trials: ArrayLike, level: ArrayLike) -> Floats:
    """Return the Clopper–Pearson lower bound on a probability.

    It is too large with probability at most ``level``.

    >>> float(share_bound(10, 10, 0.05).round(4)), float(share_bound(0, 10, 0.05))
    (0.7411, 0.0)
    """
    from scipy.special import betaincinv

    a = np.asarray(successes, dtype=float)
    n = np.asarray(trials, dtype=float)
    bound = betaincinv(np.maximum(a, 1), n - a + 1, np.asarray(level, dtype=float))
    return np.where(a > 0, bound, 0.0)


def mean_bound(count: ArrayLike, level: float) -> Floats:
    """Return a lower bound on the mean of a Poisson count.

    It is too large with probability at most ``level``.

    >>> float(mean_bound(10, 0.05).round(3)), float(mean_bound(0, 0.05))
    (5.425, 0.0)
    """
    from scipy.special import gammaincinv

    b = np.asarray(count, dtype=float)
    return np.where(b > 0, gammaincinv(np.maximum(b, 1), level), 0.0)


def log_ratio_bounds(
    hits: ArrayLike, hits2: ArrayLike, odds: ArrayLike, level: ArrayLike
) -> Floats:
    """Return a lower bound on ``log P(S|x)/P(S|x2)``, at least 0: some event has at least that.

    ``hits`` and ``hits2`` are the counts of S under x and x2; ``odds`` is ``λ_x/λ_x2``. The bound
    is too large with probability at most ``level``, whatever the two probabilities are.

    >>> float(log_ratio_bounds(3000, 1000, 1.0, 0.01).round(3))  # log 3 is 1.099
    1.013
    """
    a = np.asarray(hits, dtype=float)
    b = np.asarray(hits2, dtype=float)
    share = share_bound(a, a + b, level)
    with np.errstate(divide="ignore"):
        bounds = np.log(share) - np.log1p(-share) - np.log(odds)
    return np.maximum(bounds, 0.0)


# --- rough, in angles -----------------------------------------------------------------------------


def errors_above(hits: ArrayLike, hits2: ArrayLike, log_ratio: ArrayLike) -> Floats:
    """Return by how many standard errors the ratio of two counts is above exp(log_ratio).

    >>> float(errors_above(300, 100, np.log(3))), float(errors_above(300, 100, np.log(2)).round(2))
    (0.0, 3.68)
    """
    a = np.asarray(hits, dtype=float)
    b = np.asarray(hits2, dtype=float)
    with np.errstate(over="ignore"):  # an infinite ratio has a right angle
        angle = np.arctan(np.exp(np.asarray(log_ratio) / 2))
    excess = np.arctan2(np.sqrt(a), np.sqrt(b)) - angle
    return 2 * np.sqrt(a + b) * excess


def lower_log_ratio(hits: Floats, hits2: Floats, errors: float) -> Floats:
    """Return the log-ratio that is ``errors`` standard errors below that of two counts.

    It is −inf where the counts show nothing.

    >>> float(lower_log_ratio(np.array(40.0), np.array(0.0), 4.0).round(2))
    2.23
    """
    error = 1 / (2 * np.sqrt(hits + hits2))
    angle = np.arctan2(np.sqrt(hits), np.sqrt(hits2)) - errors * error
    with np.errstate(divide="ignore"):
        return 2 * np.log(np.tan(np.maximum(angle, 0.0)))


# --- resolution -----------------------------------------------------------------------------------


def detectable_by_test(
    promised: ArrayLike,
    mean2: ArrayLike,
    odds: ArrayLike,
    level: ArrayLike,
    power: float,
    samples: ArrayLike,
) -> Floats:
    """Return the least log-ratio that the test detects with probability ``power``, or ``inf``.

    ``mean2`` is how often x2 sends the event; ``odds`` is ``λ_x/λ_x2``; ``samples`` is the number
    of samples of x, more often than which x cannot send the event.
    """
    from scipy.special import ndtri

    errors = ndtri(power) - ndtri(np.asarray(level, dtype=float))
    return _least_log_ratio(promised, mean2, odds, errors, samples)


def detectable_as_suspect(
    promised: ArrayLike, mean2: ArrayLike, threshold: float, power: float, samples: ArrayLike
) -> Floats:
    """Return the least log-ratio that becomes a suspect with probability ``power``, or ``inf``.

    A suspect has a suspicion above ``threshold``. ``mean2`` is how often x2 sends the event in the
    part of the samples that suspects are chosen on, which has ``samples`` of each symbol.
    """
    from scipy.special import ndtri

    errors = np.asarray(max(threshold, 0.0) + ndtri(power))
    return _least_log_ratio(promised, mean2, 1.0, errors, samples)


def _least_log_ratio(
    promised: ArrayLike, mean2: ArrayLike, odds: ArrayLike, errors: Floats, samples: ArrayLike
) -> Floats:
    """Find by bisection the least r with expected counts ``errors`` standard errors above E."""
    arguments = (promised, mean2, odds, errors, samples)
    arrays = [np.asarray(argument, dtype=float) for argument in arguments]
    E, mu, w, needed, largest = np.broadcast_arrays(*arrays)
    low = E
    high = E + _MAX_EXCESS
    for _ in range(_STEPS):
        r = (low + high) / 2
        # In logarithms: a promise may be so large that e^r overflows.
        log_ratio = np.log(w) + r
        with np.errstate(divide="ignore"):
            log_a = np.minimum(np.log(mu) + log_ratio, np.log(largest))
        a = np.exp(log_a)
        b = np.exp(log_a - log_ratio)
        detected = errors_above(np.maximum(a - 1, 0), b + 1, E + np.log(w)) >= needed
        low = np.where(detected, low, r)
        high = np.where(detected, r, high)
    return np.where(high < E + _MAX_EXCESS, high, np.inf)
