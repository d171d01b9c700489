"""The two mechanisms that were known for high-low promises before the paper: uRR and uRAP.

Reference: Murakami and Kawamoto (2019), "Utility-Optimized Local Differential Privacy Mechanisms
for Distribution Estimation", USENIX Security.
"""

import math

import numpy as np

from sfumato.codes import RandomizedCode
from sfumato.contexts import HighLow
from sfumato.errors import NotEnoughReports
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.mechanisms import HighLowResponse
from sfumato.randomness import words_from
from sfumato.simulation import binomial_counts


def utility_optimized_response(context: HighLow) -> HighLowResponse:
    """Return uRR: randomized response among the s sensitive symbols, which the others also send.

    ::

        x sensitive:      Q(y|x) = e/(s + e − 1)  if y = x,   1/(s + e − 1)  for other sensitive y
        x not sensitive:  Q(y|x) = 1/(s + e − 1)  for sensitive y,   (e − 1)/(s + e − 1)  if y = x

    It is the high-low mechanism of this package with randomized response for its code.

    >>> context = HighLow(["park", "clinic", "church"], ["clinic", "church"], 1)
    >>> utility_optimized_response(context).matrix().round(3)
    array([[0.269, 0.269, 0.462],
           [0.731, 0.269, 0.   ],
           [0.269, 0.731, 0.   ]])
    """
    return HighLowResponse(context, RandomizedCode)


class UtilityOptimizedRappor:
    """uRAP: one bit per symbol, all independent. A bit that is not sensitive can only be one's own.

    With ``θ = e^{ε/2}/(e^{ε/2} + 1)``, ``d1 = θ/((1 − θ)e^ε + θ)`` and
    ``d2 = ((1 − θ)e^ε + θ)/e^ε``, bit i is 1 with

        probability θ       if i is sensitive and one's own
        probability d1      if i is sensitive and another's
        probability 1 − d2  if i is not sensitive and one's own
        probability 0       if i is not sensitive and another's

    Guarantee: for sensitive x and any x2, every row of bits has a log-ratio of at most ε.
    Cost per report: k bits. Only for comparisons: its probabilities are floats, so no promise is
    certified.

    >>> UtilityOptimizedRappor(HighLow(["park", "clinic"], ["clinic"], 1)).chances(0).round(3)
    array([0.393, 0.378])
    """

    def __init__(self, context: HighLow) -> None:
        sensitive = context.is_sensitive
        e = math.exp(context.exact_inside)
        theta = math.exp(context.exact_inside / 2) / (math.exp(context.exact_inside / 2) + 1)
        cover = (1 - theta) * e + theta
        self._own_chances = np.where(sensitive, theta, 1 - cover / e)
        self._other_chances = np.where(sensitive, theta / cover, 0.0)

    @property
    def bits(self) -> int:
        """The length of a report in bits, k."""
        return self._own_chances.size

    def chances(self, x: int) -> Floats:
        """Return how likely symbol x sets each bit."""
        row = self._other_chances.copy()
        row[x] = self._own_chances[x]
        return row

    def bit_counts(self, symbols: Symbols, key: bytes) -> Symbols:
        """Return how many of these people set each bit.

        The bits of a report are independent, and so are people. So the count of a bit is the sum
        of two binomial numbers, one for the people whose own bit it is and one for the others, and
        the counts of different bits are independent. They are distributed exactly as if every
        person had drawn k bits.
        """
        own = np.bincount(symbols, minlength=self.bits)
        words = words_from(key, 0, self.bits)
        from_own = binomial_counts(own, self._own_chances, words[:, 0])
        from_others = binomial_counts(symbols.size - own, self._other_chances, words[:, 1])
        return from_own + from_others

    def unbiased(self, counts: Symbols, people: int) -> Floats:
        """Return the unbiased estimate.

        It is ``(N/n − d1)/(θ − d1)`` for a sensitive symbol, and ``N/(n(1 − d2))`` for another.
        """
        if people < 1:
            raise NotEnoughReports("an estimate needs at least one report.")
        excess = counts / people - self._other_chances
        return excess / (self._own_chances - self._other_chances)
