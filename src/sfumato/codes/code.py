"""What a code is: for each point x a set of outputs S_x that x favours by odds of e^ε.

A code serves up to ``points`` symbols and has ``outputs`` outputs, of which every point favours
``raised`` and two points share ``shared``: every two of them (a design (b, r, λ)), or two on average.
Over a word of B bits each favoured output gets ``high`` words, each other one ``low``, and the
``leftover`` words of the word go to output 0 whatever the point:

    2^B · Q(y|x) = low + (high − low)·[y ∈ S_x] + leftover·[y = 0],      high ≤ e^ε · low

So privacy is ``(high + c)/(low + c) ≤ high/low ≤ e^ε`` for c ≥ 0, and everything that is linear in the
channel follows from two sums: ``gather`` over the outputs of S_x, ``spread`` over the points of y.
"""

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Booleans, Floats, Words
from sfumato.foundation.canonical import Json
from sfumato.randomness.odds import Epsilon
from sfumato.randomness.thresholds import two_level_index

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
    def place(self, point: Words, index: Words) -> Words:
        """The outputs of a point in a fixed order: indices below ``raised`` run through S_x, others through the rest.

        Pure, elementwise, the same work whatever the point; a new array. An index past the last place gives any output.
        A frame that has its own odds for a code draws the index itself; ``encode`` draws it by the code's own.
        """

    def encode(self, point: Words, word: Words) -> Words:
        """The output of each point for its word: ``high`` words for each place in S_x, then ``low`` for each other."""
        index = two_level_index(word, self.raised, self.high, self.low)
        answer = self.place(point, index)
        # Leftover words lead past the last place; they are answered by 0 whatever the point.
        left_over = word > np.uint64(self.total - self.leftover - 1)
        if left_over.any():  # hardly ever in 64 bits, and never a matter of the point
            answer[left_over] = 0
        return answer

    @abstractmethod
    def contains(self, point: Words | np.uint64, output: Words | np.uint64) -> Booleans:
        """Whether ``output ∈ S_point``, for arrays that broadcast."""

    def favoured(self, point: int) -> Booleans:
        """Which outputs lie in S_point."""
        return self.contains(np.uint64(point), np.arange(self.outputs, dtype=np.uint64))

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
    def rise(self) -> Fraction:
        """``high − low`` as a share of all words: what membership in S_x adds to the probability of an output."""
        return Fraction(self.high - self.low, self.total)

    @property
    def balanced(self) -> bool:
        """Whether every two points share exactly ``shared`` outputs, so that Δ and q are the same for every pair."""
        return True

    @property
    def contrast(self) -> Fraction:
        """``Δ = P(Y ∈ S_x | x) − P(Y ∈ S_x | x2)``, exactly."""
        return (self.raised - self.shared) * self.rise

    @property
    def overlap(self) -> Fraction:
        """``q = P(Y ∈ S_x | x2)`` for x2 ≠ x, exactly and without the leftover words."""
        return (self.shared * self.high + (self.raised - self.shared) * self.low) / self.total

    @property
    def family(self) -> "CodeFamily":
        """What makes this code for other words and ε."""
        return type(self)  # type: ignore[return-value]

    def _demand_whole(self) -> None:
        """Refuse integers that do not make a channel."""
        words = self.raised * self.high + (self.outputs - self.raised) * self.low + self.leftover
        if self.outputs and (
            words != self.total or min(self.low, self.leftover) < 0 or self.low >= self.high
        ):
            raise InvalidContext(
                f"the integers of a {self.kind} code must add up to 2^{self.word_bits} words, with high above low."
            )

    def record(self) -> dict[str, Json]:
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
