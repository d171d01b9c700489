"""Histograms of reports, drawn without any people: what a survey of n would count if p were the truth.

The counts of ``N ~ Poisson(n)`` reports are independent, ``count(y) ~ Poisson(n q(y))``, and given N they are exactly
multinomial. So one draw costs as much as there are outputs, however many people are planned for.

The key is fixed, so a plan is the same every time. Nothing here is private, and nothing here ever meets a person.
"""

import hashlib

import numpy as np

from sfumato.arrays import Floats, Symbols
from sfumato.randomness.words import words_from

__all__ = ["drawn_histogram"]

_KEY = hashlib.sha256(b"sfumato/planning").digest()
_SMALL = 16.0  # means below which counts are drawn by inversion, above which from a corrected normal


def drawn_histogram(q: Floats, people: int, draw: int) -> Symbols:
    """Counts of about ``people`` reports with distribution q; another ``draw`` gives other counts.

    >>> drawn_histogram(np.array([0.5, 0.5, 0.0]), 1_000_000, draw=0).tolist()
    [501264, 499440, 0]
    """
    words = words_from(_KEY, draw * q.size, q.size)
    first, second = ((words[:, i] >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54 for i in (0, 1))
    means = people * np.maximum(q, 0.0)  # a transform may leave −1e-17 where there is nothing
    counts = _from_normal(means, np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second))
    small = np.flatnonzero(means < _SMALL)
    counts[small] = _by_inversion(means[small], first[small])
    return counts


def _from_normal(means: Floats, z: Floats) -> Symbols:
    """Poisson counts of large means: ``λ + z √λ + (z² − 1)/6`` has their mean and skewness, and variance λ + 0.06."""
    return np.maximum(np.rint(means + z * np.sqrt(means) + (z**2 - 1) / 6), 0).astype(np.int64)


def _by_inversion(means: Floats, u: Floats) -> Symbols:
    """The least count whose cumulative probability reaches u."""
    counts = np.zeros(means.size, dtype=np.int64)
    chance = np.exp(-means)
    left = u - chance
    active = np.flatnonzero(left > 0)
    step = 0
    while active.size:
        step += 1
        chance[active] *= means[active] / step
        left[active] -= chance[active]
        counts[active] = step
        active = active[(left[active] > 0) & (chance[active] > 2.0**-60)]  # beyond, rounding is all that is left
    return counts
