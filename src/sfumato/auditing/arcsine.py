"""The square-root form of a comparison of two counts, for what an audit guesses or predicts; never for its bounds.

Of two Poisson counts a and b, the angle ``atan √(a/b)`` has a standard error of very nearly ``1/(2 √(a + b))``, however
small the counts and however large their ratio. In angles, errors can therefore be added and taken away even where one
of the counts is 0. (It is Fisher's arcsine transform of the share a/(a + b).)
"""

import numpy as np
from numpy.typing import ArrayLike

from sfumato.foundation.arrays import Floats

__all__ = ["errors_above", "lower_log_ratio"]


def errors_above(hits: ArrayLike, hits2: ArrayLike, log_ratio: ArrayLike) -> Floats:
    """By how many standard errors the ratio of two counts lies above exp(log_ratio).

    >>> float(errors_above(300, 100, np.log(3))), float(errors_above(300, 100, np.log(2)).round(2))
    (0.0, 3.68)
    """
    a, b = np.asarray(hits, dtype=float), np.asarray(hits2, dtype=float)
    with np.errstate(over="ignore"):  # a ratio beyond all numbers has a right angle
        angle = np.arctan(np.exp(np.asarray(log_ratio) / 2))
    return 2 * np.sqrt(a + b) * (np.arctan2(np.sqrt(a), np.sqrt(b)) - angle)


def lower_log_ratio(hits: Floats, hits2: Floats, errors: float) -> Floats:
    """The log-ratio that lies so many standard errors below what two counts show; −inf where that is none.

    >>> float(lower_log_ratio(np.array(40.0), np.array(0.0), 4.0).round(2))
    2.23
    """
    angle = np.arctan2(np.sqrt(hits), np.sqrt(hits2)) - errors / (2 * np.sqrt(hits + hits2))
    with np.errstate(divide="ignore"):
        return 2 * np.log(np.tan(np.maximum(angle, 0.0)))
