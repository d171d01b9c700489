"""What a code is: for each point x a set of outputs S_x that x favours by odds of e^ε.

A code serves up to ``points`` symbols and has ``outputs`` outputs, of which every point favours
``raised`` and every two points share ``shared`` (a design (b, r, λ)). Over a word of B bits each
favoured output gets ``high`` words, each other one ``low``, and the ``leftover`` words of the word go
to output 0 whatever the point:

    2^B · Q(y|x) = low + (high − low)·[y ∈ S_x] + leftover·[y = 0],      high ≤ e^ε · low

So privacy is ``(high + c)/(low + c) ≤ high/low ≤ e^ε`` for c ≥ 0, and everything that is linear in the
channel follows from two sums: ``gather`` over the outputs of S_x, ``spread`` over the points of y.
"""

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar, Protocol, Self

import numpy as np

from sfumato.arrays import Booleans, Floats, Words
from sfumato.canonical import Json
from sfumato.errors import InvalidContext
from sfumato.randomness.odds import Epsilon
from sfumato.randomness.thresholds import TwoLevels

__all__ = ["Code", "CodeFamily"]


class Code(ABC):
    """A randomised response on points ``0 … points − 1``, realised over words of ``word_bits`` bits."""

    kind: ClassVar[str]

    points: int
    outputs: int
    raised: int
    shared: Fraction
    high: int
    low: int
    leftover: int
    word_bits: int

    @abstractmethod
    def encode(self, point: Words, word: Words) -> Words:
        """The output of each point for its word: pure, elementwise, the same work whatever the point."""

    @abstractmethod
    def contains(self, point: Words | np.uint64, output: Words | np.uint64) -> Booleans:
        """Whether ``output ∈ S_point``, for arrays that broadcast."""

    @abstractmethod
    def gather(self, weights: Floats) -> Floats:
        """``Σ_{y ∈ S_x} weights[…, y]`` for every point x: last axis ``outputs`` → ``points``."""

    @abstractmethod
    def spread(self, weights: Floats) -> Floats:
        """``Σ_{x : y ∈ S_x} weights[…, x]`` for every output y: last axis ``points`` → ``outputs``."""

    @abstractmethod
    def ideal_levels(self) -> tuple[float, float]:
        """``Q(y|x)`` for y in S_x and for y outside it, by the published formula in floats."""

    @property
    def total(self) -> int:
        """The number of words, 2^B: the denominator of every probability."""
        return 1 << self.word_bits

    @property
    def contrast(self) -> Fraction:
        """``Δ = P(Y ∈ S_x | x) − P(Y ∈ S_x | x2)``, exactly."""
        return (self.raised - self.shared) * (self.high - self.low) / self.total

    @property
    def overlap(self) -> Fraction:
        """``q = P(Y ∈ S_x | x2)`` for x2 ≠ x, exactly and without the leftover words."""
        return (self.shared * self.high + (self.raised - self.shared) * self.low) / self.total

    @classmethod
    @abstractmethod
    def of_integers(cls, outputs: int, levels: TwoLevels, epsilon: Epsilon, word_bits: int) -> Self:
        """The code that a record describes, with the integers it was published with, whatever rounding says today.

        ``epsilon`` is what it was made for; it enters ``ideal_levels`` alone.
        """

    def _demand_whole(self) -> None:
        """Refuse integers that do not make a channel."""
        words = self.raised * self.high + (self.outputs - self.raised) * self.low + self.leftover
        if self.outputs and (words != self.total or min(self.low, self.leftover) < 0 or self.low >= self.high):
            raise InvalidContext(
                f"the integers of a {self.kind} code must add up to 2^{self.word_bits} words, with high above low."
            )

    def record(self) -> Json:
        """The integers of the channel as plain data, for fingerprints and files."""
        return {
            "kind": self.kind,
            "points": self.points,
            "outputs": self.outputs,
            "word_bits": self.word_bits,
            "high": str(self.high),
            "low": str(self.low),
            "leftover": str(self.leftover),
        }


class CodeFamily(Protocol):
    """Makes a code for at least so many points at ε: the code classes themselves are families."""

    @property
    def kind(self) -> str:
        """The name of the family, as in records."""
        ...

    def __call__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> Code:
        """A code for at least ``points`` points."""
        ...
