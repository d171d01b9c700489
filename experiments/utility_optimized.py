"""The two mechanisms that were known for high-low promises before the paper: uRR and uRAP.

Reference: Murakami and Kawamoto (2019), "Utility-Optimized Local Differential Privacy Mechanisms for Distribution
Estimation", USENIX Security.
"""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.codes import RandomizedCode
from sfumato.contexts import HighLow
from sfumato.errors import NotEnoughReports
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.mechanisms import HighLowResponse
from sfumato.randomness import words_from

__all__ = ["RapporChances", "UtilityOptimizedRappor", "utility_optimized_response"]


def utility_optimized_response(context: HighLow) -> HighLowResponse:
    """uRR: randomized response among the s sensitive symbols, in which the others take cover.

    ::

        x sensitive:      Q(y|x) = e/(s + e − 1)  if y = x,   1/(s + e − 1)  for other sensitive y
        x not sensitive:  Q(y|x) = 1/(s + e − 1)  for sensitive y,   (e − 1)/(s + e − 1)  if y = x

    It is the high-low frame of this package with randomized response for its code.

    >>> utility_optimized_response(HighLow(["park", "clinic", "church"], ["clinic", "church"], 1)).matrix().round(3)
    array([[0.269, 0.269, 0.462],
           [0.731, 0.269, 0.   ],
           [0.269, 0.731, 0.   ]])
    """
    return HighLowResponse(context, RandomizedCode)


@dataclass(frozen=True)
class RapporChances:
    """How likely uRAP makes a bit 1: a sensitive person's own, a sensitive one of anybody else, a free person's own."""

    own: float
    other: float
    free: float

    @classmethod
    def at(cls, epsilon: float) -> "RapporChances":
        """θ, d1 and 1 − d2 of the published mechanism, with ``θ = e^{ε/2}/(e^{ε/2} + 1)``."""
        e = math.exp(epsilon)
        theta = math.exp(epsilon / 2) / (math.exp(epsilon / 2) + 1)
        cover = (1 - theta) * e + theta
        return cls(own=theta, other=theta / cover, free=1 - cover / e)


class UtilityOptimizedRappor:
    """uRAP: one bit for each symbol, all independent, of which those that are not sensitive can only be one's own.

    With ``θ = e^{ε/2}/(e^{ε/2} + 1)``, ``d1 = θ/((1 − θ)e^ε + θ)`` and ``d2 = ((1 − θ)e^ε + θ)/e^ε``, bit i is 1 with

        probability θ       if i is sensitive and one's own
        probability d1      if i is sensitive and another's
        probability 1 − d2  if i is not sensitive and one's own
        probability 0       if i is not sensitive and another's

    Guarantee: for sensitive x and any x2, every row of bits has a log-ratio of at most ε.
    Cost per report: k bits. Only for comparisons: its chances are floats, so no promise is certified.

    >>> UtilityOptimizedRappor(HighLow(["park", "clinic"], ["clinic"], 1)).chances(0).round(3)
    array([0.393, 0.378])
    """

    def __init__(self, context: HighLow) -> None:
        self._sensitive = context.is_sensitive
        self._chances = RapporChances.at(float(context.exact_inside))

    @property
    def bits(self) -> int:
        """The length of a report in bits, k."""
        return self._sensitive.size

    def chances(self, x: int) -> Floats:
        """For each bit, how likely symbol x sends 1."""
        row = np.where(self._sensitive, self._chances.other, 0.0)
        row[x] = self._chances.own if self._sensitive[x] else self._chances.free
        return row

    def bit_counts(self, symbols: Symbols, key: bytes) -> Symbols:
        """How many of these people send 1 in each bit.

        The bits of a report are independent, and so are people. So given the crowd, the count of a bit is the sum of
        two binomial numbers, of those whose own bit it is and of the others, and the counts of different bits are
        independent: this draws from the very distribution that k bits for each person would have.
        """
        own = np.bincount(symbols, minlength=self.bits)
        words = words_from(key, 0, self.bits)
        at = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        from_own = _binomial(
            own, np.where(self._sensitive, self._chances.own, self._chances.free), at[:, 0]
        )
        from_others = _binomial(
            symbols.size - own, np.where(self._sensitive, self._chances.other, 0.0), at[:, 1]
        )
        return from_own + from_others

    def unbiased(self, counts: Symbols, people: int) -> Floats:
        """The unbiased estimate: ``(N/n − d1)/(θ − d1)`` of a sensitive symbol, ``N/(n(1 − d2))`` of another."""
        if people < 1:
            raise NotEnoughReports("an estimate needs at least one report.")
        share, bit = counts / people, self._chances
        return np.where(
            self._sensitive, (share - bit.other) / (bit.own - bit.other), share / bit.free
        )


def _binomial(trials: Symbols, chance: Floats, at: Floats) -> Symbols:
    """Binomial numbers by inversion: the least count whose cumulative probability reaches ``at``."""
    from scipy.stats import binom

    return np.asarray(binom.ppf(at, trials, chance)).astype(np.int64)
