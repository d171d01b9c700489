"""What an audit would have seen: how large a ratio must be to be noticed with a given probability.

Let x2 send the event S of a pair μ_x2 times on average, and suppose that x sends it e^r times as often. Where that
would be more often than always, let x send it always, and x2 less often than it did:

    μ_x = min((λ_x/λ_x2) e^r μ_x2, λ_x),   μ_x2 ← μ_x / ((λ_x/λ_x2) e^r)

The test says "violates" when its lower bound lies above E. In angles (``angle.py``) that happens with probability β
when these expected counts lie above E by

    z(1 − level) + z(β)   standard errors.

The least such r is the *resolution* of the pair on its event. Counts are whole numbers, and the bound is exact: one
count is moved from x to x2 to make up for it. The probability is then β or a little more.

What is known of μ_x2 is a count. A lower bound on the mean is put in its place, so that the resolution is too small no
more often than the bound is too large; half of the risk of missing something is spent on that, and half on the test.

A pair that was no suspect has two ways to be noticed: by its own small level; or by becoming a suspect, which takes a
suspicion above the least one of those that became suspects, and then by the test with their share of the samples. The
better way counts, and each of the two steps of the second has half of the risk of the test.

The event is taken as given. An audit that chose a poor event, because reports are too many for the samples, would not
have seen what happens elsewhere; the share of ``rare`` reports says how much that may be.
"""

import numpy as np
from numpy.typing import ArrayLike

from sfumato.auditing.arcsine import errors_above
from sfumato.foundation.arrays import Floats

__all__ = ["noticed_as_suspect", "noticed_by_test"]

_LARGEST = 60.0  # log-ratios are looked for up to so much above the promise
_STEPS = 60


def noticed_by_test(
    promised: ArrayLike,
    mean2: ArrayLike,
    odds: ArrayLike,
    level: ArrayLike,
    power: float,
    most: ArrayLike,
) -> Floats:
    """The least log-ratio r that the test notices with probability ``power``; ``inf`` where it could notice none.

    ``mean2`` is how often x2 sends the event, ``odds`` is ``λ_x/λ_x2``, and ``most`` the number of samples of x: the
    event cannot be sent more often than always.
    """
    from scipy.special import ndtri

    return _least(promised, mean2, odds, ndtri(power) - ndtri(np.asarray(level, dtype=float)), most)


def noticed_as_suspect(
    promised: ArrayLike, mean2: ArrayLike, threshold: float, power: float, most: ArrayLike
) -> Floats:
    """The least log-ratio whose suspicion passes ``threshold`` with probability ``power``; ``inf`` where none does.

    ``mean2`` is how often x2 sends the event in the part of the samples that suspects are chosen on, which has ``most``
    of each symbol.
    """
    from scipy.special import ndtri

    return _least(promised, mean2, 1.0, np.asarray(max(threshold, 0.0) + ndtri(power)), most)


def _least(
    promised: ArrayLike, mean2: ArrayLike, odds: ArrayLike, errors: Floats, most: ArrayLike
) -> Floats:
    """The least r at which the expected counts lie so many standard errors above E, by bisection."""
    E, mu, w, needed, largest = np.broadcast_arrays(
        *(np.asarray(array, dtype=float) for array in (promised, mean2, odds, errors, most))
    )
    low, high = E, E + _LARGEST
    for _ in range(_STEPS):
        r = (low + high) / 2
        # In logarithms, for a promise may be too large for e^r to be a number.
        with np.errstate(divide="ignore"):
            a = np.exp(np.minimum(np.log(mu) + np.log(w) + r, np.log(largest)))
            b = np.exp(np.log(a) - np.log(w) - r)
        seen = errors_above(np.maximum(a - 1, 0), b + 1, E + np.log(w)) >= needed
        low, high = np.where(seen, low, r), np.where(seen, r, high)
    return np.where(high < E + _LARGEST, high, np.inf)
