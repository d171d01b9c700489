"""Classical mechanisms for comparison only: optimized unary encoding and local hashing.

With both mechanisms, a report *supports* some labels: the person's own label with probability p,
and each other label with probability q, all independently. Let C_x be the number of reports, out of
n, that support x, and n_x the number of people with label x. Then

    p̂_x = (C_x/n − q)/(p − q)
    n² Var(p̂_x) = (n_x p(1 − p) + (n − n_x) q(1 − q))/(p − q)²,   all covariances are 0

Do not use these mechanisms to protect anyone: their probabilities are floats, so no promise is
certified.

Reference: Wang, Blocki, Li, Jha (2017), "Locally Differentially Private Protocols for Frequency
Estimation", USENIX Security.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats, Symbols, Words
from sfumato.foundation.notebook import FieldsView

__all__ = ["HASH_BITS", "Baseline", "LocalHashing", "UnaryEncoding", "binomial_counts"]

HASH_BITS = 64
"""Bits that identify the hash function in a report: enough that two people rarely share one."""


@dataclass(frozen=True)
class Baseline(FieldsView, ABC):
    """A classical mechanism whose reports support sets of labels, with one ε for all pairs.

    ``size``: the number of labels.
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
    def own_probability(self) -> float:
        """p: the probability that a report supports the person's own label."""

    @property
    @abstractmethod
    def other_probability(self) -> float:
        """q: the probability that a report supports any given other label."""

    @property
    @abstractmethod
    def contrast(self) -> float:
        """The difference p − q, computed without cancellation even for small ε."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """The length of a report in bits."""

    @property
    def leverage(self) -> float:
        """The number of honest people that one fake report can outweigh.

        This is the score of a label that the report supports, ``(1 − q)/(p − q)``.
        """
        return (1 - self.other_probability) / self.contrast

    @property
    def reach(self) -> float:
        """How far one fake report can move p̂ in total variation, times the number of people.

        This is ``½ Σ_x |A[x, y] − [x = x_i]|`` for the worst report y from a person with the label
        x_i. That report supports all labels, or all except the person's own.
        """
        k = self.size
        supported = self.leverage
        unsupported = self.other_probability / self.contrast
        sum_for_all = k * supported - 1
        sum_for_all_but_own = (k - 1) * supported + unsupported + 1
        return max(sum_for_all, sum_for_all_but_own) / 2

    def variances(self, counts: Symbols) -> Floats:
        """Return the exact variance of each entry of p̂ if ``counts[x]`` people have label x."""
        n = counts.sum()
        own_variance = self.own_probability * (1 - self.own_probability)
        other_variance = self.other_probability * (1 - self.other_probability)
        support_variance = counts * own_variance + (n - counts) * other_variance
        return support_variance / (n * self.contrast) ** 2

    def draw(self, counts: Symbols, words: Words) -> Floats:
        """Draw the unbiased estimate from one report per person.

        ``words``: random words of shape ``(size, 2)``.

        A report supports each label independently of the others. So C_x is the sum of two binomial
        counts, one for the people with label x and one for everyone else, and the C_x of different
        labels are independent. Drawing the binomial counts gives exactly the same distribution as
        drawing individual reports.
        """
        n = int(counts.sum())
        from_own = binomial_counts(counts, self.own_probability, words[:, 0])
        from_others = binomial_counts(n - counts, self.other_probability, words[:, 1])
        support_counts = from_own + from_others
        return (support_counts / n - self.other_probability) / self.contrast


class UnaryEncoding(Baseline):
    """OUE: one bit per label. The bit for a person's own label is set with probability ½.

    Every other bit is set with probability ``1/(e^ε + 1)``.

    Guarantee: the encodings of two labels differ in two bits, so the probabilities of a report
    differ by a factor of at most ``(p/q)·((1 − q)/(1 − p)) = e^ε``.
    Cost per report: k bits. Leverage: ``2e^ε/(e^ε − 1)`` for any number of labels.

    >>> mechanism = UnaryEncoding(size=100, epsilon=1.0)
    >>> mechanism.bits, round(mechanism.other_probability, 3), round(mechanism.leverage, 2)
    (100, 0.269, 3.16)
    """

    @property
    def own_probability(self) -> float:
        """½, the best choice for rare labels."""
        return 0.5

    @property
    def other_probability(self) -> float:
        """1/(e^ε + 1)."""
        return 1 / (math.exp(self.epsilon) + 1)

    @property
    def contrast(self) -> float:
        """(e^ε − 1)/(2(e^ε + 1))."""
        return math.tanh(self.epsilon / 2) / 2

    @property
    def bits(self) -> int:
        """One bit per label."""
        return self.size


class LocalHashing(Baseline):
    """OLH: a random hash function h, and randomized response on the label's hash.

    The hash has g possible values. A report (h, y) supports the labels x with h(x) = y. Below, e
    stands for e^ε. The probabilities of support are ``p = e/(e + g − 1)`` and ``q = 1/g``, where g
    is the integer nearest to e + 1.

    The hash is ideal: each person's function is drawn uniformly from all functions. Then the hashes
    of the other labels are uniform, and independent of each other and of y. So whether a report
    supports a label is independent of the other labels, and not merely uncorrelated with them.

    Guarantee: h reveals nothing about the label, and for any two labels, the probabilities of y
    differ by a factor of at most e.
    Cost per report: 64 bits that identify h, and log2 g bits for y. Leverage:
    ``(e + g − 1)/(e − 1)``; a forger who tries many functions h can find one that supports several
    labels.

    >>> mechanism = LocalHashing(size=100, epsilon=1.0)
    >>> mechanism.bucket_count, mechanism.bits, round(mechanism.leverage, 2)
    (4, 66, 3.33)
    """

    @property
    def bucket_count(self) -> int:
        """g, the number of hash values."""
        return max(round(math.exp(self.epsilon) + 1), 2)

    @property
    def own_probability(self) -> float:
        """e/(e + g − 1), where e stands for e^ε."""
        e = math.exp(self.epsilon)
        return e / (e + self.bucket_count - 1)

    @property
    def other_probability(self) -> float:
        """1/g."""
        return 1 / self.bucket_count

    @property
    def contrast(self) -> float:
        """(e − 1)(g − 1)/(g(e + g − 1)), where e stands for e^ε."""
        e = math.exp(self.epsilon)
        g = self.bucket_count
        return math.expm1(self.epsilon) * (1 - 1 / g) / (e + g - 1)

    @property
    def bits(self) -> int:
        """The bits that identify the hash function, plus the bits of the hash value."""
        return HASH_BITS + (self.bucket_count - 1).bit_length()


def binomial_counts(trials: Symbols, probability: float | Floats, words: Words) -> Symbols:
    """Draw binomial counts by inversion, one per word.

    Each count is the smallest one whose cumulative probability reaches the uniform number that its
    word gives.
    """
    from scipy.stats import binom

    # With 52 bits plus ½, the uniform number is never 0 or 1, even after rounding.
    bits = (words >> np.uint64(12)).astype(np.float64)
    uniform = (bits + 0.5) * 2.0**-52
    counts = binom.ppf(uniform, trials, probability)
    return np.asarray(counts).astype(np.int64)
