"""Codes in which each point favours only itself: ``S_x = {x}``."""

from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from sfumato.codes.code import Code
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Booleans, Floats, PerPerson, Words
from sfumato.foundation.canonical import Fields
from sfumato.foundation.elementwise import add_if_negative, smaller
from sfumato.randomness import Epsilon, TwoLevels, two_levels

__all__ = ["ClearCode", "RandomizedCode", "SingletonCode"]


class SingletonCode(Code):
    """A code with ``S_x = {x}``, so a sum over S_x has a single term."""

    raised = 1
    shared = Fraction(0)

    def contains(self, point: Words | np.uint64, output: Words | np.uint64) -> Booleans:
        """Return whether ``output = point``."""
        return point == output

    def gather(self, weights: Floats) -> Floats:
        """Return the weights themselves."""
        return weights

    def spread(self, weights: Floats) -> Floats:
        """Return the weights themselves."""
        return weights


class ClearCode(SingletonCode):
    """The noiseless code, ``Q(y|x) = [y = x]``, for ε = inf or a single point.

    It promises nothing, and for a single point there is nothing to promise.
    """

    kind: ClassVar[str] = "clear"

    def __init__(self, points: int, epsilon: Epsilon = float("inf"), word_bits: int = 64) -> None:
        if points > 1 and isinstance(epsilon, Fraction):
            raise InvalidContext("a clear code cannot satisfy a finite ε between two points.")
        self.points = points
        self.outputs = points
        self._set_levels(TwoLevels(1 << word_bits, 0, 0), epsilon, word_bits)

    @classmethod
    def from_record(cls, record: Fields, epsilon: Epsilon) -> Self:
        """Return the code stored in a record."""
        fields, levels = cls._read_fields(record)
        code = cls(fields["outputs"], word_bits=fields["word_bits"])
        if levels != TwoLevels(code.high, code.low, code.leftover):
            raise InvalidContext("a clear code must assign every word to the point itself.")
        return code

    def output_at(self, point: PerPerson, index: PerPerson) -> PerPerson:
        """Return the point at index 0; larger indices, which are never drawn, give the others."""
        return (point + index) % self.outputs

    def encode(self, point: PerPerson, word: PerPerson) -> PerPerson:
        """Return the points in a new array that callers may modify."""
        return +point

    def ideal_levels(self) -> tuple[float, float]:
        """Return probability 1 for the point itself and 0 for every other output."""
        return 1.0, 0.0


class RandomizedCode(SingletonCode):
    """k-ary randomized response, the classical baseline: send the truth or any other point.

    ``Q(y|x) = e/(e + k − 1)`` for y = x and ``1/(e + k − 1)`` otherwise, where e stands for e^ε.

    Guarantee: odds of at most e^ε between any two points, for every output. The code is optimal if
    e^ε is large compared with k, and poor otherwise. It is the simplest cyclic code: ``D = {0}`` on
    a circle of k points.
    Cost per report: one comparison and one division. Error: ``n·Var ≈ (k − 2 + e)/(e − 1)²`` per
    symbol. Reference: Kairouz, Bonawitz, Ramage (2016), k-RR.
    """

    kind: ClassVar[str] = "randomized"

    def __init__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> None:
        if points < 1 or not isinstance(epsilon, Fraction):
            raise InvalidContext(
                "randomized response needs at least one point and a finite ε. For infinite ε, use "
                "ClearCode."
            )
        self.points = points
        self.outputs = points
        self._set_levels(two_levels(points, 1, epsilon, word_bits), epsilon, word_bits)

    @classmethod
    def from_record(cls, record: Fields, epsilon: Epsilon) -> Self:
        """Return the code stored in a record."""
        fields, levels = cls._read_fields(record)
        code = cls.__new__(cls)
        code.points = fields["outputs"]
        code.outputs = fields["outputs"]
        code._set_levels(levels, epsilon, fields["word_bits"])
        return code

    def output_at(self, point: PerPerson, index: PerPerson) -> PerPerson:
        """Return the point itself, then the points 1, 2, … steps before it on the circle."""
        y = point - smaller(index, self.outputs - 1)
        return add_if_negative(y, self.outputs)
