"""What an audit would have seen: how large a ratio must be to be detected.

Let x2 send the event S of a pair μ_x2 times on average, and suppose that x sends it e^r times as
often. If that would be more often than always, let x send it always, and x2 less often:

    μ_x = min((λ_x/λ_x2) e^r μ_x2, λ_x),   μ_x2 ← μ_x / ((λ_x/λ_x2) e^r)

The test reports a violation if its lower bound is above E. In angles (``bounds.py``) that happens
with probability β if these expected counts are above E by

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

The event is taken as given. An audit that chose a poor event, because there are too many different
reports for its samples, would not have seen what happens elsewhere. The share of ``rare`` reports
says how much that may be.
"""

import numpy as np
from numpy.typing import ArrayLike

from sfumato.auditing.bounds import errors_above
from sfumato.foundation.arrays import Floats

__all__ = ["detectable_as_suspect", "detectable_by_test"]

_MAX_EXCESS = 60.0  # the search looks for log-ratios up to this much above the promise
_STEPS = 60


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
    """Return the least r whose expected counts are ``errors`` standard errors above E.

    Found by bisection.
    """
    arguments = (promised, mean2, odds, errors, samples)
    arrays = [np.asarray(argument, dtype=float) for argument in arguments]
    E, mu, w, needed, largest = np.broadcast_arrays(*arrays)
    low = E
    high = E + _MAX_EXCESS
    for _ in range(_STEPS):
        r = (low + high) / 2
        # In logarithms: a promise may be so large that e^r overflows.
        with np.errstate(divide="ignore"):
            a = np.exp(np.minimum(np.log(mu) + np.log(w) + r, np.log(largest)))
            b = np.exp(np.log(a) - np.log(w) - r)
        detected = errors_above(np.maximum(a - 1, 0), b + 1, E + np.log(w)) >= needed
        low = np.where(detected, low, r)
        high = np.where(detected, r, high)
    return np.where(high < E + _MAX_EXCESS, high, np.inf)
