"""Classical mechanisms that the package does not offer: optimised unary encoding and local hashing.

A report of either *supports* some labels: the person's own with probability p, and each of the
others with probability q, all independently. Let C_x be the number of reports, out of n, that
support x, and n_x the number of people with x:

    p̂_x = (C_x/n − q)/(p − q)
    n² Var(p̂_x) = (n_x p(1 − p) + (n − n_x) q(1 − q))/(p − q)²,   the covariances are 0

Use them for comparisons only: their probabilities are floats, so no promise is certified.
Reference: Wang, Blocki, Li, Jha (2017), "Locally Differentially Private Protocols for Frequency
Estimation", USENIX Security.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats, Symbols, Words

__all__ = ["HASH_BITS", "Baseline", "LocalHashing", "UnaryEncoding", "binomial_counts"]

HASH_BITS = 64
"""Bits that name the hash function in a report: enough for a function of each person's own."""


@dataclass(frozen=True)
class Baseline(ABC):
    """A classical mechanism whose reports support sets of labels, with one ε for all pairs.

    ``size`` is the number of labels.
    """

    size: int
    epsilon: float

    def __post_init__(self) -> None:
        if self.size < 2 or not 0 < self.epsilon < math.inf:
            raise InvalidContext(
                "a classical mechanism needs at least two labels and a positive, finite ε."
            )

    @property
    @abstractmethod
    def own(self) -> float:
        """p: the probability that a report supports the person's own label."""

    @property
    @abstractmethod
    def other(self) -> float:
        """q: the probability that it supports any other label."""

    @property
    @abstractmethod
    def contrast(self) -> float:
        """The difference p − q, computed without cancellation for small ε."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """The length of a report in bits."""

    @property
    def leverage(self) -> float:
        """How many honest people one fake report outweighs.

        This is the score of a label that the report supports, ``(1 − q)/(p − q)``.
        """
        return (1 - self.other) / self.contrast

    @property
    def reach(self) -> float:
        """How far one fake report moves p̂ in total variation, times n.

        This is ``½ Σ_x |A[x, y] − [x = x_i]|`` for the worst report y in place of a person with
        x_i. That report supports all labels, or all but the person's own.
        """
        k = self.size
        supported = self.leverage
        unsupported = self.other / self.contrast
        all_labels = k * supported - 1
        all_but_own = (k - 1) * supported + unsupported + 1
        return max(all_labels, all_but_own) / 2

    def variances(self, counts: Symbols) -> Floats:
        """Return the exact variance of each entry of p̂ for exactly these people."""
        n = counts.sum()
        own_variance = self.own * (1 - self.own)
        other_variance = self.other * (1 - self.other)
        support_variance = counts * own_variance + (n - counts) * other_variance
        return support_variance / (n * self.contrast) ** 2

    def draw(self, counts: Symbols, words: Words) -> Floats:
        """Return the unbiased estimate from one report per person; words have shape ``(size, 2)``.

        People and supports are independent. So C_x is the sum of two binomial numbers, one for the
        people with label x and one for the others, and different labels are independent. These
        counts have exactly the distribution that counting reports would give.
        """
        n = int(counts.sum())
        from_own = binomial_counts(counts, self.own, words[:, 0])
        from_others = binomial_counts(n - counts, self.other, words[:, 1])
        supports = from_own + from_others
        return (supports / n - self.other) / self.contrast


class UnaryEncoding(Baseline):
    """OUE: a bit for each label. The own bit is set with probability ½, others with 1/(e + 1).

    Guarantee: two labels differ in two bits, so odds are at most ``(p/q)·((1 − q)/(1 − p)) = e``.
    Cost per report: k bits. Leverage: ``2e/(e − 1)``, on any number of labels.

    >>> mechanism = UnaryEncoding(size=100, epsilon=1.0)
    >>> mechanism.bits, round(mechanism.other, 3), round(mechanism.leverage, 2)
    (100, 0.269, 3.16)
    """

    @property
    def own(self) -> float:
        """½: the best choice for rare labels."""
        return 0.5

    @property
    def other(self) -> float:
        """1/(e + 1)."""
        return 1 / (math.exp(self.epsilon) + 1)

    @property
    def contrast(self) -> float:
        """(e − 1)/(2(e + 1))."""
        return math.tanh(self.epsilon / 2) / 2

    @property
    def bits(self) -> int:
        """One per label."""
        return self.size


class LocalHashing(Baseline):
    """OLH: a random hash function h, and randomized response to the label's hash among g values.

    A report (h, y) supports the labels with h(x) = y. Its probabilities are ``p = e/(e + g − 1)``
    and ``q = 1/g``, and g is the integer nearest to e + 1.

    The hash is ideal: each person's function is uniform among all functions. Then the hashes of
    other labels are uniform and independent of h and y, so supports are independent, not only
    uncorrelated.

    Guarantee: h reveals nothing about the label, and y keeps odds of e.
    Cost per report: the name of h, taken as 64 bits, and log2 g. Leverage: ``(e + g − 1)/(e − 1)``;
    a forger who tries many h finds one that supports several labels.

    >>> mechanism = LocalHashing(size=100, epsilon=1.0)
    >>> mechanism.buckets, mechanism.bits, round(mechanism.leverage, 2)
    (4, 66, 3.33)
    """

    @property
    def buckets(self) -> int:
        """g, the number of hashes."""
        return max(round(math.exp(self.epsilon) + 1), 2)

    @property
    def own(self) -> float:
        """e/(e + g − 1)."""
        e = math.exp(self.epsilon)
        return e / (e + self.buckets - 1)

    @property
    def other(self) -> float:
        """1/g."""
        return 1 / self.buckets

    @property
    def contrast(self) -> float:
        """(e − 1)(g − 1)/(g(e + g − 1))."""
        e = math.exp(self.epsilon)
        g = self.buckets
        return math.expm1(self.epsilon) * (1 - 1 / g) / (e + g - 1)

    @property
    def bits(self) -> int:
        """The bits for the name of the hash function and for the hash."""
        return HASH_BITS + (self.buckets - 1).bit_length()


def binomial_counts(trials: Symbols, chance: float | Floats, words: Words) -> Symbols:
    """Draw binomial numbers by inversion, one per word.

    Each is the smallest count whose cumulative probability reaches a uniform number.
    """
    from scipy.stats import binom

    # 52 bits and a half: never 0 or 1, even when rounded.
    bits = (words >> np.uint64(12)).astype(np.float64)
    uniform = (bits + 0.5) * 2.0**-52
    counts = binom.ppf(uniform, trials, chance)
    return np.asarray(counts).astype(np.int64)
