"""Draw histograms of reports directly from their distribution, without simulating people.

If the number of reports is ``N ~ Poisson(n)``, their counts are independent, with
``count(y) ~ Poisson(n q(y))``. Given N, they are exactly multinomial. So the cost of a draw depends
on the number of outputs, not on the number of people.

The keys are fixed or derived from a seed, so plans and estimates are reproducible. NOT PRIVATE:
never use this module to randomize anyone's answer.
"""

import hashlib

import numpy as np

from sfumato.estimation.decoders.seeded_variates import words_to_normal, words_to_uniform
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.mechanisms import Mechanism
from sfumato.randomness import words_from
from sfumato.tally import Tally

__all__ = ["draw_histogram", "draw_tally", "halve_counts"]

_KEY = hashlib.sha256(b"sfumato/planning").digest()
_SMALL_MEAN = 16.0  # below this mean, counts are drawn by inversion, not from normal variates
_MAX_BITS = 63  # counts up to this number are halved by adding up random bits


def draw_tally(
    mechanism: Mechanism, q: Floats, people: int, draw_index: int, key: bytes = _KEY
) -> Tally:
    """Draw a non-empty tally of about ``people`` reports with distribution q.

    Different values of ``draw_index`` give independent draws.
    """
    counts = draw_histogram(q, people, draw_index, key)
    if not counts.any():  # with only a few people, a draw may be empty
        counts[int(np.argmax(q))] = 1
    return Tally(counts, mechanism.fingerprint)


def draw_histogram(q: Floats, people: int, draw_index: int, key: bytes = _KEY) -> Symbols:
    """Draw the counts of about ``people`` reports with distribution q.

    Different values of ``draw_index`` give independent draws.

    >>> draw_histogram(np.array([0.5, 0.5, 0.0]), 1_000_000, draw_index=0).tolist()
    [501264, 499440, 0]
    """
    words = words_from(key, draw_index * q.size, q.size)
    means = people * np.maximum(q, 0.0)  # a transform may leave −1e-17 instead of 0
    counts = _poisson_from_normal(means, words_to_normal(words))
    small = np.flatnonzero(means < _SMALL_MEAN)
    uniform = words_to_uniform(words[small, 0])
    counts[small] = _poisson_by_inversion(means[small], uniform)
    return counts


def halve_counts(counts: Symbols, key: bytes) -> Symbols:
    """Draw ``Binomial(count, ½)`` for each count.

    For a small count, add up that many random bits; for a large count, round a normal variate.

    >>> halve_counts(np.array([0, 1, 10, 10**6]), bytes(32)).tolist()
    [0, 1, 7, 499409]
    """
    words = words_from(key, 0, counts.size)
    bit_counts = np.minimum(counts, _MAX_BITS).astype(np.uint64)
    masks = (np.uint64(1) << bit_counts) - np.uint64(1)
    bit_sums = np.bitwise_count(words[:, 0] & masks).astype(np.int64)
    rounded = np.rint(counts / 2 + np.sqrt(counts) / 2 * words_to_normal(words))
    rounded = np.clip(rounded, 0, counts).astype(np.int64)
    return np.where(counts <= _MAX_BITS, bit_sums, rounded)


def _poisson_from_normal(means: Floats, z: Floats) -> Symbols:
    """Draw Poisson counts with large means λ: ``λ + z √λ + (z² − 1)/6``.

    This has the correct mean and skewness, and variance λ + 0.06.
    """
    counts = means + z * np.sqrt(means) + (z**2 - 1) / 6
    return np.maximum(np.rint(counts), 0).astype(np.int64)


def _poisson_by_inversion(means: Floats, u: Floats) -> Symbols:
    """Return the smallest counts whose cumulative probabilities reach u."""
    counts = np.zeros(means.size, dtype=np.int64)
    probability = np.exp(-means)
    remaining = u - probability
    active = np.flatnonzero(remaining > 0)
    count = 0
    while active.size:
        count += 1
        probability[active] *= means[active] / count
        remaining[active] -= probability[active]
        counts[active] = count
        # Below a probability of 2^−60, only rounding errors remain.
        active = active[(remaining[active] > 0) & (probability[active] > 2.0**-60)]
    return counts
