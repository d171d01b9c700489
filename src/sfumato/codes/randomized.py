"""k-ary randomized response, the classical baseline: the truth with odds of e^ε over any lie."""

from fractions import Fraction
from math import exp
from typing import ClassVar, Self

import numpy as np

from sfumato.codes.singleton import OwnPointCode
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Words
from sfumato.randomness.odds import Epsilon
from sfumato.randomness.thresholds import TwoLevels, two_levels

__all__ = ["RandomizedCode"]


class RandomizedCode(OwnPointCode):
    """``Q(y|x) = e/(e + k − 1)`` for y = x and ``1/(e + k − 1)`` otherwise.

    Guarantee: odds of at most e^ε between any two points and any output. Exactly optimal where e^ε is
    large against k; poor elsewhere. Reference: Kairouz, Bonawitz, Ramage (2016), k-RR.
    The simplest cyclic code, ``D = {0}`` on a circle of k points.
    Cost per report: one comparison and one division. Error: ``n·Var ≈ (k − 2 + e)/(e − 1)²`` per symbol.
    """

    kind: ClassVar[str] = "randomized"

    def __init__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> None:
        if points < 1 or not isinstance(epsilon, Fraction):
            raise InvalidContext(
                "randomized response needs a point and a finite ε; use a clear code."
            )
        self._hold(points, two_levels(points, 1, epsilon, word_bits), epsilon, word_bits)

    def _hold(self, points: int, levels: TwoLevels, epsilon: Epsilon, word_bits: int) -> None:
        self.points = self.outputs = points
        self.raised, self.shared = 1, Fraction(0)
        self.high, self.low, self.leftover = levels.high, levels.low, levels.leftover
        self.word_bits = word_bits
        self._epsilon = float(epsilon)
        self._demand_whole()

    @classmethod
    def of_integers(cls, outputs: int, levels: TwoLevels, epsilon: Epsilon, word_bits: int) -> Self:
        """The code that a record describes, with the integers it was published with, whatever rounding says today."""
        made = cls.__new__(cls)
        made._hold(outputs, levels, epsilon, word_bits)
        return made

    def place(self, point: Words, index: Words) -> Words:
        """The point itself, then the points 1, 2, … before it, around the circle."""
        y = point - np.minimum(index, np.uint64(self.outputs - 1))
        # Around the circle: what is below 0 has wrapped to a huge number, and the smaller one is right.
        np.minimum(y, y + np.uint64(self.outputs), out=y)
        return y

    def ideal_levels(self) -> tuple[float, float]:
        """``e/(e + k − 1)`` and ``1/(e + k − 1)``."""
        e = exp(self._epsilon)
        return e / (e + self.outputs - 1), 1 / (e + self.outputs - 1)
