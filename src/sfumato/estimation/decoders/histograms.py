"""Histograms of reports, drawn without any people: what a survey of n would count if p were the truth.

The counts of ``N ~ Poisson(n)`` reports are independent, ``count(y) ~ Poisson(n q(y))``, and given N they are exactly
multinomial. So one draw costs as much as there are outputs, however many people are planned for.

Keys are fixed, so a plan or a decoded picture is the same every time. Nothing here is private, and nothing here ever
meets a person.
"""

import hashlib

import numpy as np

from sfumato.foundation.arrays import Floats, Symbols, Words
from sfumato.randomness import words_from

__all__ = ["drawn_histogram", "halved_counts"]

_KEY = hashlib.sha256(b"sfumato/planning").digest()
_SMALL = (
    16.0  # means below which counts are drawn by inversion, above which from a corrected normal
)


def drawn_histogram(q: Floats, people: int, draw: int, key: bytes = _KEY) -> Symbols:
    """Counts of about ``people`` reports with distribution q; another ``draw`` gives other counts.

    >>> drawn_histogram(np.array([0.5, 0.5, 0.0]), 1_000_000, draw=0).tolist()
    [501264, 499440, 0]
    """
    words = words_from(key, draw * q.size, q.size)
    first = uniform(words[:, 0])
    means = people * np.maximum(q, 0.0)  # a transform may leave −1e-17 where there is nothing
    counts = _from_normal(means, normal(words))
    small = np.flatnonzero(means < _SMALL)
    counts[small] = _by_inversion(means[small], first[small])
    return counts


def halved_counts(counts: Symbols, key: bytes) -> Symbols:
    """``Binomial(count, ½)`` of each count: the ones among as many random bits; of many, a rounded normal number.

    >>> halved_counts(np.array([0, 1, 10, 10**6]), bytes(32)).tolist()
    [0, 1, 7, 499409]
    """
    words = words_from(key, 0, counts.size)
    bits = np.minimum(counts, 63).astype(np.uint64)
    few = np.bitwise_count(words[:, 0] & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    many = np.clip(np.rint(counts / 2 + np.sqrt(counts) / 2 * normal(words)), 0, counts).astype(
        np.int64
    )
    return np.where(counts < 64, few, many)


def uniform(words: Words) -> Floats:
    """Numbers in (0, 1) from words."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54


def normal(words: Words) -> Floats:
    """Standard normal numbers from pairs of words (Box and Muller, 1958)."""
    return np.sqrt(-2 * np.log(uniform(words[:, 0]))) * np.cos(2 * np.pi * uniform(words[:, 1]))


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
        active = active[
            (left[active] > 0) & (chance[active] > 2.0**-60)
        ]  # beyond, rounding is all that is left
    return counts
