"""uRR and uRAP, the two mechanisms for high-low promises that predate the paper.

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
    """Return uRR: randomized response over the s sensitive symbols, which other symbols also send.

    ::

        x sensitive:      Q(y|x) = e/(s + e − 1)  if y = x,   1/(s + e − 1)  for other sensitive y
        x not sensitive:  Q(y|x) = 1/(s + e − 1)  for sensitive y,   (e − 1)/(s + e − 1)  if y = x

    It is this package's high-low mechanism with randomized response as its code.

    >>> context = HighLow(["park", "clinic", "church"], ["clinic", "church"], 1)
    >>> utility_optimized_response(context).matrix().round(3)
    array([[0.269, 0.269, 0.462],
           [0.731, 0.269, 0.   ],
           [0.269, 0.731, 0.   ]])
    """
    return HighLowResponse(context, RandomizedCode)


class UtilityOptimizedRappor:
    """uRAP: one independent bit for each symbol. Only symbol i itself sets a non-sensitive bit i.

    With ``θ = e^{ε/2}/(e^{ε/2} + 1)``, ``d1 = θ/((1 − θ)e^ε + θ)`` and
    ``d2 = ((1 − θ)e^ε + θ)/e^ε``, symbol x sets bit i with

        probability θ       if i is sensitive and i = x
        probability d1      if i is sensitive and i ≠ x
        probability 1 − d2  if i is not sensitive and i = x
        probability 0       if i is not sensitive and i ≠ x

    Guarantee: for sensitive x and any x2, every report has a log-ratio of at most ε. Cost per
    report: k bits. Only for comparisons: the probabilities are floats, so no promise is certified.

    >>> UtilityOptimizedRappor(HighLow(["park", "clinic"], ["clinic"], 1)).probabilities(0).round(3)
    array([0.393, 0.378])
    """

    def __init__(self, context: HighLow) -> None:
        sensitive = context.is_sensitive
        e = math.exp(context.exact_inside)
        theta = math.exp(context.exact_inside / 2) / (math.exp(context.exact_inside / 2) + 1)
        cover = (1 - theta) * e + theta
        self._own_probabilities = np.where(sensitive, theta, 1 - cover / e)
        self._other_probabilities = np.where(sensitive, theta / cover, 0.0)

    @property
    def bits(self) -> int:
        """The length of a report in bits, k."""
        return self._own_probabilities.size

    def probabilities(self, x: int) -> Floats:
        """Return the probability that symbol x sets each bit."""
        row = self._other_probabilities.copy()
        row[x] = self._own_probabilities[x]
        return row

    def bit_counts(self, symbols: Symbols, key: bytes) -> Symbols:
        """Return how many of these people set each bit.

        All bits are independent. So the count of a bit is the sum of two binomial counts, one for
        the people with that symbol and one for the others, and the counts of different bits are
        independent. The distribution is exactly the same as if every person drew k bits.
        """
        people_counts = np.bincount(symbols, minlength=self.bits)
        words = words_from(key, 0, self.bits)
        own_counts = binomial_counts(people_counts, self._own_probabilities, words[:, 0])
        other_people = symbols.size - people_counts
        other_counts = binomial_counts(other_people, self._other_probabilities, words[:, 1])
        return own_counts + other_counts

    def unbiased(self, counts: Symbols, people: int) -> Floats:
        """Return the unbiased estimate.

        It is ``(N/n − d1)/(θ − d1)`` for a sensitive symbol, and ``N/(n(1 − d2))`` otherwise.
        """
        if people < 1:
            raise NotEnoughReports("an estimate needs at least one report.")
        excess = counts / people - self._other_probabilities
        return excess / (self._own_probabilities - self._other_probabilities)
