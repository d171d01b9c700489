"""What a code is: for each point x a set of outputs S_x that x favours by odds of e^ε.

A code serves up to ``points`` symbols and has ``outputs`` outputs. Every point favours ``raised``
of them, and two points share ``shared``: any two (a design (b, r, λ)), or two on average. Over a
word of B bits each favoured output gets ``high`` words, each other output ``low``, and the
``leftover`` words go to output 0 for every point:

    2^B · Q(y|x) = low + (high − low)·[y ∈ S_x] + leftover·[y = 0],      high ≤ e^ε · low

So privacy is ``(high + c)/(low + c) ≤ high/low ≤ e^ε`` for c ≥ 0. Everything that is linear in the
channel follows from two sums: ``gather`` over the outputs of S_x, ``spread`` over the points of y.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Protocol, Self

import numpy as np

from sfumato.errors import InvalidContext, InvalidSurvey
from sfumato.foundation.arrays import Booleans, Floats, Words
from sfumato.foundation.canonical import (
    Fields,
    Json,
    is_count,
    parse_count,
    require_fields,
    require_word_bits,
)
from sfumato.randomness import Epsilon, TwoLevels, two_level_index

__all__ = ["MAX_OUTPUTS", "Code", "CodeFamily"]

MAX_OUTPUTS = 2**31
"""The most different reports: a report is a 32-bit integer on every wire."""


class Code(ABC):
    """A randomised response on points ``0 … points − 1``, over words of ``word_bits`` bits."""

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
        """Return the output at each index, in a fixed order of the outputs of each point.

        Indices below ``raised`` run through S_x, the others through the rest; an index past the
        last gives any output. Pure, elementwise, the same work for every point; a new array. A
        mechanism with its own odds draws the index itself; ``encode`` draws it by the code's odds.
        """

    def encode(self, point: Words, word: Words) -> Words:
        """Return the output of each point for its word.

        The first words give the outputs in S_x, ``high`` words each; then come the others, with
        ``low`` words each.
        """
        index = two_level_index(word, self.raised, self.high, self.low)
        outputs = self.place(point, index)
        is_leftover = word > np.uint64(self.total - self.leftover - 1)
        if is_leftover.any():  # rare at 64 bits, and independent of the point
            outputs[is_leftover] = 0
        return outputs

    @abstractmethod
    def contains(self, point: Words | np.uint64, output: Words | np.uint64) -> Booleans:
        """Return whether ``output ∈ S_point``, for arrays that broadcast."""

    def favours(self, point: int) -> Booleans:
        """Return which outputs are in S_point."""
        return self.contains(np.uint64(point), np.arange(self.outputs, dtype=np.uint64))

    @abstractmethod
    def gather(self, weights: Floats) -> Floats:
        """Return ``Σ_{y ∈ S_x} weights[…, y]`` for every point x.

        The last axis changes from outputs to points.
        """

    @abstractmethod
    def spread(self, weights: Floats) -> Floats:
        """Return ``Σ_{x : y ∈ S_x} weights[…, x]`` for every output y.

        The last axis changes from points to outputs.
        """

    @abstractmethod
    def ideal_levels(self) -> tuple[float, float]:
        """Return ``Q(y|x)`` for y in S_x and for y outside it, by the published formula."""

    @property
    def total(self) -> int:
        """The number of words, 2^B: the denominator of every probability."""
        return 1 << self.word_bits

    @property
    def rise(self) -> Fraction:
        """``high − low`` as a share of all words: what membership in S_x adds to a probability."""
        return Fraction(self.high - self.low, self.total)

    @property
    def is_balanced(self) -> bool:
        """Whether any two points share exactly ``shared`` outputs, so that Δ and q are constant."""
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

    def serves(self, size: int) -> bool:
        """Return whether the code can serve ``size`` symbols.

        A code that is not balanced needs a symbol for every point.
        """
        return self.points == size or (self.points > size and self.is_balanced)

    def record(self) -> dict[str, Json]:
        """Return the integers of the channel as plain data, for fingerprints and files."""
        return {
            "kind": self.kind,
            "points": self.points,
            "outputs": self.outputs,
            "word_bits": self.word_bits,
            "high": str(self.high),
            "low": str(self.low),
            "leftover": str(self.leftover),
        }

    @classmethod
    @abstractmethod
    def of_record(cls, record: Fields, epsilon: Epsilon) -> Self:
        """Return the code with the integers of its record.

        They may differ from those that this version would choose. ``epsilon`` enters
        ``ideal_levels`` only.
        """

    @staticmethod
    def _read_fields(record: Fields, own: Sequence[str] = ()) -> tuple[Fields, TwoLevels]:
        """Check the fields of a record, with the code's ``own`` ones, and read its integers."""
        names = ("kind", "points", "outputs", "word_bits", "high", "low", "leftover", *own)
        fields = require_fields(record, "a code of the mechanism", names)
        require_word_bits(fields["word_bits"])
        for name in ("outputs", "points"):
            if not is_count(fields[name]) or fields[name] > MAX_OUTPUTS:
                raise InvalidSurvey("a code has between 0 and 2^31 points and outputs.")
        high, low, leftover = (parse_count(fields[name]) for name in ("high", "low", "leftover"))
        return fields, TwoLevels(high, low, leftover)

    def _require_full_words(self) -> None:
        """Refuse integers that do not make a channel."""
        words = self.raised * self.high + (self.outputs - self.raised) * self.low + self.leftover
        is_channel = words == self.total and 0 <= self.low < self.high and self.leftover >= 0
        if self.outputs and not is_channel:
            raise InvalidContext(
                f"the integers of a {self.kind} code must add up to 2^{self.word_bits} words, "
                "with high above low."
            )


class CodeFamily(Protocol):
    """Makes codes for a number of points and an ε: the code classes themselves are families."""

    @property
    def kind(self) -> str:
        """The name of the family, as in records."""
        ...

    def __call__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> Code:
        """Return a code for at least ``points`` points."""
        ...
