"""Lower bounds on a log-ratio of two probabilities, from two counts.

The number of samples of each symbol is drawn from a Poisson law (see ``allotment.py``). The counts a and b of an event
S under x and x2 are then independent and Poisson, too, with means ``λ_x P(S|x)`` and ``λ_x2 P(S|x2)``, and given their
sum the first of them is binomial:

    a | a + b  ~  Bin(a + b, π),   π/(1 − π) = (λ_x/λ_x2) · P(S|x)/P(S|x2)

So one Clopper–Pearson bound on π bounds the ratio. There is no second unknown to allow for, and nothing is
approximated. Two bounds, one for each probability, would need about a third more samples for randomised response with
ε = 1.

**Where the channel changes with time.** Poisson numbers of symbols in random order are the same as symbols that are
drawn one by one, each for itself. Let the channel be Q_t at ask t, whatever was asked. Of the asks for x or x2 whose
report is in S, the one at t is for x with odds of ``(λ_x/λ_x2) · Q_t(S|x)/Q_t(S|x2)``, at most ``e^E λ_x/λ_x2`` if Q_t
keeps E, and independently of all others. So a is at most as large as the binomial count of a ratio of e^E, in
distribution, and a bound above E is as improbable as ever.

References: Clopper and Pearson (1934); Garwood (1936) for one Poisson mean; Przyborowski and Wilenski (1940) for the
ratio of two.
"""

import numpy as np
from numpy.typing import ArrayLike

from sfumato.foundation.arrays import Floats

__all__ = ["log_ratio_bounds", "mean_bound", "share_bound"]


def share_bound(successes: ArrayLike, trials: ArrayLike, level: ArrayLike) -> Floats:
    """The Clopper–Pearson lower bound on a probability: above it with probability at most ``level``.

    >>> float(share_bound(10, 10, 0.05).round(4)), float(share_bound(0, 10, 0.05))
    (0.7411, 0.0)
    """
    from scipy.special import betaincinv

    a, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    return np.where(
        a > 0, betaincinv(np.maximum(a, 1), n - a + 1, np.asarray(level, dtype=float)), 0.0
    )


def mean_bound(count: ArrayLike, level: float) -> Floats:
    """A lower bound on the mean of a Poisson count: above it with probability at most ``level``.

    >>> float(mean_bound(10, 0.05).round(3)), float(mean_bound(0, 0.05))
    (5.425, 0.0)
    """
    from scipy.special import gammaincinv

    b = np.asarray(count, dtype=float)
    return np.where(b > 0, gammaincinv(np.maximum(b, 1), level), 0.0)


def log_ratio_bounds(
    hits: ArrayLike, hits2: ArrayLike, odds: ArrayLike, level: ArrayLike
) -> Floats:
    """A lower bound on ``log P(S|x)/P(S|x2)``, and never less than 0: some event has at least that.

    ``hits`` and ``hits2`` are the counts of S, ``odds`` is ``λ_x/λ_x2``. The bound is too large with probability at
    most ``level``, whatever the two probabilities are.

    >>> float(log_ratio_bounds(3000, 1000, 1.0, 0.01).round(3))  # log 3 is 1.099
    1.013
    """
    a, b = np.asarray(hits, dtype=float), np.asarray(hits2, dtype=float)
    share = share_bound(a, a + b, level)
    with np.errstate(divide="ignore"):
        bounds = np.log(share) - np.log1p(-share) - np.log(odds)
    return np.maximum(bounds, 0.0)
