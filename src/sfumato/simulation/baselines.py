"""The classical peers that this package has no mechanism for: optimised unary encoding and optimised local hashing.

A report of either *supports* some labels: the person's own with probability p, and each of the others with
probability q, all independently. C_x is how many of n reports support x, and n_x how many people have x:

    p̂_x = (C_x/n − q)/(p − q)
    n² Var(p̂_x) = (n_x p(1 − p) + (n − n_x) q(1 − q))/(p − q)²,   the covariances are 0

They are for comparisons only: their chances are floats, so no promise is certified.
Reference: Wang, Blocki, Li, Jha (2017), "Locally Differentially Private Protocols for Frequency Estimation", USENIX
Security.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats, Symbols, Words

__all__ = ["SEED_BITS", "LocalHashing", "Rival", "UnaryEncoding"]

SEED_BITS = 64
"""What naming a hash function costs a report of local hashing: enough that each person has one of their own."""


@dataclass(frozen=True)
class Rival(ABC):
    """A classical peer for ``size`` labels whose reports support sets of labels, with one ``epsilon`` for all pairs."""

    size: int
    epsilon: float

    def __post_init__(self) -> None:
        if self.size < 2 or not 0 < self.epsilon < math.inf:
            raise InvalidContext(
                "a classical peer needs two labels or more, and an ε above 0 that is finite."
            )

    @property
    @abstractmethod
    def own(self) -> float:
        """p: how likely a report supports the person's own label."""

    @property
    @abstractmethod
    def other(self) -> float:
        """q: how likely it supports any other one."""

    @property
    @abstractmethod
    def contrast(self) -> float:
        """The difference p − q, without cancellation where ε is small."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """The length of a report in bits."""

    @property
    def leverage(self) -> float:
        """How many honest people one fake report outweighs: the score of a label that it supports, (1 − q)/(p − q)."""
        return (1 - self.other) / self.contrast

    @property
    def reach(self) -> float:
        """How far one fake report in an honest one's place moves p̂, n times over, in total variation.

        ``½ Σ_x |A[x, y] − [x = x_i]|`` for the worst report y in the place of somebody who has x_i: all labels are
        supported, or all but that person's.
        """
        k, supported, passed_over = self.size, self.leverage, self.other / self.contrast
        return max(k * supported - 1, (k - 1) * supported + passed_over + 1) / 2

    def variances(self, counts: Symbols) -> Floats:
        """The exact variance of each entry of p̂ for these very people."""
        p, q, n = self.own, self.other, counts.sum()
        spread = counts * (p * (1 - p)) + (n - counts) * (q * (1 - q))
        return spread / (n * self.contrast) ** 2

    def draw(self, counts: Symbols, words: Words) -> Floats:
        """The unbiased estimate from one report of each person; words have shape ``(size, 2)``.

        People and supports are independent, so C_x is the sum of two binomial numbers, of those whose label x is and
        of the others, and different labels are independent: these are the very counts that reports would have.
        """
        n = int(counts.sum())
        supports = _binomial(counts, self.own, words[:, 0]) + _binomial(
            n - counts, self.other, words[:, 1]
        )
        return (supports / n - self.other) / self.contrast


class UnaryEncoding(Rival):
    """OUE: a bit for each label, the own one set with probability ½ and every other with probability 1/(e + 1).

    Guarantee: two labels differ in two bits, so odds are at most ``(p/q)·((1 − q)/(1 − p)) = e``.
    Cost per report: k bits. Leverage: ``2e/(e − 1)``, on as many labels as the forger likes.

    >>> peer = UnaryEncoding(size=100, epsilon=1.0)
    >>> peer.bits, round(peer.other, 3), round(peer.leverage, 2)
    (100, 0.269, 3.16)
    """

    @property
    def own(self) -> float:
        """½: the best for labels that few people have."""
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
        """One for each label."""
        return self.size


class LocalHashing(Rival):
    """OLH: a hash function h of one's own, and randomized response to the hash of one's label among g values.

    A report (h, y) supports the labels with h(x) = y. Its chances are ``p = e/(e + g − 1)`` and ``q = 1/g``, and g is
    the whole number nearest to e + 1.

    The hash is ideal: each person's function is uniform among all. Then the hashes of other labels are uniform and
    independent, whatever h and y say of the own one; so supports are independent, not only uncorrelated.

    Guarantee: h says nothing of the label, and y keeps odds of e.
    Cost per report: the name of h, taken as 64 bits, and log2 g. Leverage: ``(e + g − 1)/(e − 1)``; a forger who tries
    many h finds one that supports several labels.

    >>> peer = LocalHashing(size=100, epsilon=1.0)
    >>> peer.buckets, peer.bits, round(peer.leverage, 2)
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
        e, g = math.exp(self.epsilon), self.buckets
        return math.expm1(self.epsilon) * (1 - 1 / g) / (e + g - 1)

    @property
    def bits(self) -> int:
        """The name of the hash function, and the hash."""
        return SEED_BITS + (self.buckets - 1).bit_length()


def _binomial(trials: Symbols, chance: float, words: Words) -> Symbols:
    """Binomial numbers by inversion: the least count whose cumulative probability reaches a uniform number."""
    from scipy.stats import binom

    at = (
        (words >> np.uint64(12)).astype(np.float64) + 0.5
    ) * 2.0**-52  # never 0 or 1, even when rounded
    return np.asarray(binom.ppf(at, trials, chance)).astype(np.int64)
