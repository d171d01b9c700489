"""Draw histograms of reports without simulating people: the counts if p were the truth.

The counts of ``N ~ Poisson(n)`` reports are independent, ``count(y) ~ Poisson(n q(y))``, and given
N they are exactly multinomial. So the cost of a draw grows with the outputs, not with the people.

Keys are fixed, so a plan or a decoded estimate is the same every time. NOT PRIVATE: never use this
to randomize anyone's answer.
"""

import hashlib

import numpy as np

from sfumato.foundation.arrays import Floats, Symbols, Words
from sfumato.mechanisms import Mechanism
from sfumato.randomness import words_from
from sfumato.tally import Tally

__all__ = ["draw_histogram", "draw_tally", "halve_counts"]

_KEY = hashlib.sha256(b"sfumato/planning").digest()
_SMALL_MEAN = 16.0  # draw counts by inversion below this mean, from a corrected normal above it
_MAX_BITS = 63  # halve counts up to this bit by bit


def draw_tally(mechanism: Mechanism, q: Floats, people: int, draw: int, key: bytes = _KEY) -> Tally:
    """Draw a tally of about ``people`` reports with distribution q; it is never empty."""
    counts = draw_histogram(q, people, draw, key)
    if not counts.any():  # with one or two people a draw may be empty
        counts[int(np.argmax(q))] = 1
    return Tally(counts, mechanism.fingerprint)


def draw_histogram(q: Floats, people: int, draw: int, key: bytes = _KEY) -> Symbols:
    """Draw counts of about ``people`` reports with distribution q; each ``draw`` is different.

    >>> draw_histogram(np.array([0.5, 0.5, 0.0]), 1_000_000, draw=0).tolist()
    [501264, 499440, 0]
    """
    words = words_from(key, draw * q.size, q.size)
    means = people * np.maximum(q, 0.0)  # a transform may leave −1e-17 instead of 0
    counts = _from_normal(means, _normal(words))
    small = np.flatnonzero(means < _SMALL_MEAN)
    counts[small] = _by_inversion(means[small], _uniform(words[small, 0]))
    return counts


def halve_counts(counts: Symbols, key: bytes) -> Symbols:
    """Draw ``Binomial(count, ½)`` for each count.

    For a small count, add up that many random bits; for a large one, round a normal number.

    >>> halve_counts(np.array([0, 1, 10, 10**6]), bytes(32)).tolist()
    [0, 1, 7, 499409]
    """
    words = words_from(key, 0, counts.size)
    bits = np.minimum(counts, _MAX_BITS).astype(np.uint64)
    mask = (np.uint64(1) << bits) - np.uint64(1)
    small = np.bitwise_count(words[:, 0] & mask).astype(np.int64)
    large = np.rint(counts / 2 + np.sqrt(counts) / 2 * _normal(words))
    large = np.clip(large, 0, counts).astype(np.int64)
    return np.where(counts <= _MAX_BITS, small, large)


def _uniform(words: Words) -> Floats:
    """Turn words into numbers in (0, 1)."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54


def _normal(words: Words) -> Floats:
    """Turn pairs of words into standard normal numbers (Box and Muller, 1958)."""
    radius = np.sqrt(-2 * np.log(_uniform(words[:, 0])))
    return radius * np.cos(2 * np.pi * _uniform(words[:, 1]))


def _from_normal(means: Floats, z: Floats) -> Symbols:
    """Draw Poisson counts of large means: ``λ + z √λ + (z² − 1)/6``.

    This has the right mean and skewness, and variance λ + 0.06.
    """
    counts = means + z * np.sqrt(means) + (z**2 - 1) / 6
    return np.maximum(np.rint(counts), 0).astype(np.int64)


def _by_inversion(means: Floats, u: Floats) -> Symbols:
    """Return the smallest counts whose cumulative probabilities reach u."""
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
        # Below a chance of 2^−60 only rounding errors are left.
        active = active[(left[active] > 0) & (chance[active] > 2.0**-60)]
    return counts
