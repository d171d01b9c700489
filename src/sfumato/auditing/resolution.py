"""What an audit would have seen: how large a ratio must be to be noticed with a given probability.

Let the event S of a pair have been sent by x2 as often as it was, and suppose that x sends it e^r times as often. The
test says "violates" when its lower bound lies above E. In angles (``angle.py``) that happens with probability β when
the expected counts ``μ_x = (λ_x/λ_x2) e^r μ_x2`` and μ_x2 lie above E by

    z(1 − level) + z(β)   standard errors.

The least such r is the *resolution* of the pair on its event. Counts are whole numbers, and the bound is exact: one
count is moved from x to x2 to make up for it. The probability is then β or a little more.

A pair that was no suspect has two ways to be noticed: by its own small level; or by becoming a suspect, which takes a
suspicion above the least one of those that became suspects, and then by the test with their share of the samples. The
better way counts, and each of the two steps of the second is asked for with half the risk of missing it.

The event is taken as given. An audit that chose a poor event, because reports are too many for the samples, would not
have seen what happens elsewhere; the share of ``rare`` reports says how much that may be.
"""

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Floats
from sfumato.auditing.angle import excess

__all__ = ["noticed_as_suspect", "noticed_by_test"]

_LARGEST = 60.0  # log-ratios are looked for up to so much above the promise
_STEPS = 60


def noticed_by_test(
    promised: ArrayLike, hits2: ArrayLike, odds: ArrayLike, level: ArrayLike, power: float, most: ArrayLike
) -> Floats:
    """The least log-ratio r that the test notices with probability ``power``; ``inf`` where no event could show it.

    ``hits2`` is the count of the event under x2, ``odds`` is ``λ_x/λ_x2``, ``most`` the number of samples of x: the
    event cannot be sent more often than always.
    """
    from scipy.special import ndtri

    b, w, largest = (np.asarray(array, dtype=float) for array in (hits2, odds, most))
    b = b + 0.5
    least = _least(promised, b, w, ndtri(power) - ndtri(np.asarray(level, dtype=float)))
    return np.where(b * w * np.exp(least) <= largest, least, np.inf)


def noticed_as_suspect(promised: ArrayLike, hits2: ArrayLike, threshold: float, power: float) -> Floats:
    """The least log-ratio whose suspicion passes ``threshold`` with probability ``power``.

    ``hits2`` is the count of the event under x2, in the part of the samples that suspects are chosen on.
    """
    from scipy.special import ndtri

    return _least(promised, hits2, 1.0, np.asarray(max(threshold, 0.0) + ndtri(power)))


def _least(promised: ArrayLike, hits2: ArrayLike, odds: ArrayLike, errors: Floats) -> Floats:
    """The least r at which the expected counts lie so many standard errors above E, by bisection."""
    E, b, w, needed = np.broadcast_arrays(
        *(np.asarray(array, dtype=float) for array in (promised, hits2, odds, errors))
    )
    low, high = E, E + _LARGEST
    for _ in range(_STEPS):
        r = (low + high) / 2
        seen = excess(np.maximum(b * w * np.exp(r) - 1, 0), b + 1, E + np.log(w)) >= needed
        low, high = np.where(seen, low, r), np.where(seen, r, high)
    return high
