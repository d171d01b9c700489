"""The code without noise: a point is its own report. For ε = inf, and for a group of one symbol."""

from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from sfumato.codes.singleton import OwnPointCode
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Words
from sfumato.randomness.odds import Epsilon
from sfumato.randomness.thresholds import TwoLevels

__all__ = ["ClearCode"]


class ClearCode(OwnPointCode):
    """``Q(y|x) = [y = x]``: promises nothing, and for a single point needs to promise nothing."""

    kind: ClassVar[str] = "clear"

    def __init__(self, points: int, epsilon: Epsilon = float("inf"), word_bits: int = 64) -> None:
        if points > 1 and isinstance(epsilon, Fraction):
            raise InvalidContext("a clear code keeps no finite ε between two points.")
        self.points = self.outputs = points
        self.raised, self.shared = 1, Fraction(0)
        self.high, self.low, self.leftover = 1 << word_bits, 0, 0
        self.word_bits = word_bits

    @classmethod
    def of_integers(cls, outputs: int, levels: TwoLevels, epsilon: Epsilon, word_bits: int) -> Self:
        """The code that a record describes, with the integers it was published with, whatever rounding says today."""
        made = cls(outputs, word_bits=word_bits)
        if (made.high, made.low, made.leftover) != (levels.high, levels.low, levels.leftover):
            raise InvalidContext("a clear code has all words on the point itself.")
        return made

    def place(self, point: Words, index: Words) -> Words:
        """The point itself first; the places that are never drawn follow around the circle."""
        return (point + index) % np.uint64(self.outputs)

    def encode(self, point: Words, word: Words) -> Words:
        """The point itself, in a new array: a report is nobody's symbol to be changed."""
        return point.copy()

    def ideal_levels(self) -> tuple[float, float]:
        """Certainty."""
        return 1.0, 0.0
