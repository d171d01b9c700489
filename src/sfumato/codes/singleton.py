"""Codes in which a point favours itself alone: ``S_x = {x}``."""

from fractions import Fraction
from math import exp
from typing import ClassVar, Self

import numpy as np

from sfumato.codes.code import Code
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Booleans, Floats, Words
from sfumato.foundation.canonical import Fields
from sfumato.randomness import Epsilon, TwoLevels, two_levels

__all__ = ["ClearCode", "RandomizedCode", "SingletonCode"]


class SingletonCode(Code):
    """A code with ``S_x = {x}``: sums over sets are the entries themselves."""

    raised = 1
    shared = Fraction(0)

    def contains(self, point: Words | np.uint64, output: Words | np.uint64) -> Booleans:
        """``output = point``."""
        return point == output

    def gather(self, weights: Floats) -> Floats:
        """Return the weights themselves."""
        return weights

    def spread(self, weights: Floats) -> Floats:
        """Return the weights themselves."""
        return weights


class ClearCode(SingletonCode):
    """The code without noise, ``Q(y|x) = [y = x]``: for ε = inf, and for a single point.

    It promises nothing, and for a single point needs to promise nothing.
    """

    kind: ClassVar[str] = "clear"

    def __init__(self, points: int, epsilon: Epsilon = float("inf"), word_bits: int = 64) -> None:
        if points > 1 and isinstance(epsilon, Fraction):
            raise InvalidContext("a clear code keeps no finite ε between two points.")
        self.points = points
        self.outputs = points
        self.high = 1 << word_bits
        self.low = 0
        self.leftover = 0
        self.word_bits = word_bits

    @classmethod
    def of_record(cls, record: Fields, epsilon: Epsilon) -> Self:
        """Return the code of a record, which has no choice of integers."""
        fields, levels = cls._read_fields(record)
        code = cls(fields["outputs"], word_bits=fields["word_bits"])
        if levels != TwoLevels(code.high, code.low, code.leftover):
            raise InvalidContext("a clear code has all words on the point itself.")
        return code

    def place(self, point: Words, index: Words) -> Words:
        """The point itself first, then the others around the circle, which are never drawn."""
        return (point + index) % np.uint64(self.outputs)

    def encode(self, point: Words, word: Words) -> Words:
        """Return the point itself, in a new array: callers may change what they get."""
        return point.copy()

    def ideal_levels(self) -> tuple[float, float]:
        """Certainty."""
        return 1.0, 0.0


class RandomizedCode(SingletonCode):
    """k-ary randomized response, the classical baseline: the truth, or any lie.

    ``Q(y|x) = e/(e + k − 1)`` for y = x and ``1/(e + k − 1)`` otherwise.

    Guarantee: odds of at most e^ε between any two points and any output. Exactly optimal where
    e^ε is large against k; poor elsewhere. Reference: Kairouz, Bonawitz, Ramage (2016), k-RR.
    The simplest cyclic code, ``D = {0}`` on a circle of k points.
    Cost per report: one comparison and one division. Error: ``n·Var ≈ (k − 2 + e)/(e − 1)²`` per
    symbol.
    """

    kind: ClassVar[str] = "randomized"

    def __init__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> None:
        if points < 1 or not isinstance(epsilon, Fraction):
            raise InvalidContext(
                "randomized response needs a point and a finite ε; use a clear code."
            )
        levels = two_levels(points, 1, epsilon, word_bits)
        self._set_integers(points, levels, epsilon, word_bits)

    def _set_integers(
        self, points: int, levels: TwoLevels, epsilon: Epsilon, word_bits: int
    ) -> None:
        self.points = points
        self.outputs = points
        self.high = levels.high
        self.low = levels.low
        self.leftover = levels.leftover
        self.word_bits = word_bits
        self._epsilon = float(epsilon)
        self._require_full_words()

    @classmethod
    def of_record(cls, record: Fields, epsilon: Epsilon) -> Self:
        """Return the code with the integers of its record."""
        fields, levels = cls._read_fields(record)
        code = cls.__new__(cls)
        code._set_integers(fields["outputs"], levels, epsilon, fields["word_bits"])
        return code

    def place(self, point: Words, index: Words) -> Words:
        """The point itself, then the points 1, 2, … before it, around the circle."""
        y = point - np.minimum(index, np.uint64(self.outputs - 1))
        # Around the circle: a number below 0 has wrapped to a huge one, and the smaller is right.
        np.minimum(y, y + np.uint64(self.outputs), out=y)
        return y

    def ideal_levels(self) -> tuple[float, float]:
        """``e/(e + k − 1)`` and ``1/(e + k − 1)``."""
        e = exp(self._epsilon)
        return e / (e + self.outputs - 1), 1 / (e + self.outputs - 1)
