"""Codes: each point x has a set S_x of outputs that it favours by odds of e^ε.

A code serves up to ``points`` symbols and has ``outputs`` outputs. Every point favours ``raised``
of them. Two points have ``shared`` favoured outputs in common, either exactly, as in a (b, r, λ)
design, or on average. Of the 2^B words of B bits, ``high`` words map to each favoured output and
``low`` words to each of the remaining outputs. For every point, the ``leftover`` words map to
output 0:

    2^B · Q(y|x) = low + (high − low)·[y ∈ S_x] + leftover·[y = 0],      high ≤ e^ε · low

The code is private, because ``(high + c)/(low + c) ≤ high/low ≤ e^ε`` for c ≥ 0. Two sums suffice
to compute any linear function of the channel: ``gather`` sums over the outputs in S_x, and
``spread`` sums over the points that favour y.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from math import exp
from typing import ClassVar, Protocol, Self

import numpy as np

from sfumato.errors import InvalidContext, InvalidSurvey
from sfumato.foundation.arrays import Booleans, Floats, PerPerson, Words
from sfumato.foundation.canonical import (
    Fields,
    Json,
    is_count,
    parse_count,
    require_fields,
    require_word_bits,
)
from sfumato.foundation.elementwise import zero_where
from sfumato.foundation.notebook import facts_html
from sfumato.randomness import Epsilon, TwoLevels, two_level_index

__all__ = ["MAX_OUTPUTS", "Code", "CodeFamily"]

MAX_OUTPUTS = 2**31
"""The maximum number of distinct reports: a report is a 32-bit integer in every format."""


class Code(ABC):
    """A randomized response on points ``0 … points − 1``, over words of ``word_bits`` bits."""

    kind: ClassVar[str]

    points: int
    outputs: int
    raised: int
    shared: Fraction
    high: int
    low: int
    leftover: int
    word_bits: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.points} points, {self.outputs} outputs)"

    def _repr_html_(self) -> str:
        """Return the size of the code as HTML, for notebooks."""
        facts = {"points": f"{self.points:,}", "outputs": f"{self.outputs:,}"}
        return facts_html(type(self).__name__, facts)

    @abstractmethod
    def output_at(self, point: PerPerson, index: PerPerson) -> PerPerson:
        """Return the output at each index, in an ordering of the outputs specific to the point.

        Indices below ``raised`` enumerate S_x; larger indices enumerate the remaining outputs. The
        output at an out-of-range index is unspecified. The result is a new array, computed
        elementwise by a pure function that does the same work for every point. ``encode`` draws
        the index with the code's odds; a mechanism with different odds draws its own index.
        """

    def encode(self, point: PerPerson, word: PerPerson) -> PerPerson:
        """Return the output for each point and its word.

        The first words map to the outputs in S_x, ``high`` words to each. The next words map to the
        remaining outputs, ``low`` words to each. The leftover words map to output 0.
        """
        index = two_level_index(word, self.raised, self.high, self.low)
        outputs = self.output_at(point, index)
        # Leftover words are rare at 64 bits, and independent of the point.
        is_leftover = word > self.denominator - self.leftover - 1
        return zero_where(is_leftover, outputs)

    @abstractmethod
    def contains(self, point: Words | np.uint64, output: Words | np.uint64) -> Booleans:
        """Return whether ``output ∈ S_point``; arrays are broadcast."""

    def membership(self, point: int) -> Booleans:
        """Return a mask of the outputs in S_point."""
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

    def ideal_levels(self) -> tuple[float, float]:
        """Return ``Q(y|x)`` for y inside and outside S_x, before rounding to words.

        For K outputs, r of them in S_x, these are ``e/Z`` and ``1/Z`` with ``Z = re + K − r``,
        where e stands for e^ε.
        """
        e = exp(self._epsilon)
        Z = self.raised * e + (self.outputs - self.raised)
        return e / Z, 1 / Z

    @property
    def denominator(self) -> int:
        """The number of words, 2^B, which is the denominator of every probability."""
        return 1 << self.word_bits

    @property
    def rise(self) -> Fraction:
        """``high − low`` as a share of all words: the extra probability of an output in S_x."""
        return Fraction(self.high - self.low, self.denominator)

    @property
    def is_balanced(self) -> bool:
        """Whether any two points share exactly ``shared`` favoured outputs."""
        return True

    @property
    def contrast(self) -> Fraction:
        """The exact ``Δ = P(Y ∈ S_x | x) − P(Y ∈ S_x | x2)`` for x2 ≠ x."""
        return (self.raised - self.shared) * self.rise

    @property
    def overlap(self) -> Fraction:
        """The exact ``q = P(Y ∈ S_x | x2)`` for x2 ≠ x, ignoring the leftover words."""
        return (self.shared * self.high + (self.raised - self.shared) * self.low) / self.denominator

    @property
    def family(self) -> "CodeFamily":
        """The family of this code, which builds such codes for any word length and ε."""
        return type(self)  # type: ignore[return-value]

    def can_serve(self, size: int) -> bool:
        """Return whether the code can serve ``size`` symbols.

        An unbalanced code needs a symbol for every point.
        """
        return self.points == size or (self.points > size and self.is_balanced)

    def to_record(self) -> dict[str, Json]:
        """Return the channel's integers as plain data, for fingerprints and files."""
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
    def from_record(cls, record: Fields, epsilon: Epsilon) -> Self:
        """Return the code stored in a record.

        Its integers may differ from those that this version would choose. Only ``ideal_levels``
        depends on ``epsilon``.
        """

    @staticmethod
    def _read_fields(record: Fields, extra_names: Sequence[str] = ()) -> tuple[Fields, TwoLevels]:
        """Check the fields of a record, and return them and its levels."""
        common_names = ("kind", "points", "outputs", "word_bits", "high", "low", "leftover")
        fields = require_fields(record, "a code of the mechanism", (*common_names, *extra_names))
        require_word_bits(fields["word_bits"])
        for name in ("outputs", "points"):
            if not is_count(fields[name]) or fields[name] > MAX_OUTPUTS:
                raise InvalidSurvey(f"{name!r} in a code must be an integer from 0 to 2^31.")
        high, low, leftover = (parse_count(fields[name]) for name in ("high", "low", "leftover"))
        return fields, TwoLevels(high, low, leftover)

    def _set_levels(self, levels: TwoLevels, epsilon: Epsilon, word_bits: int) -> None:
        """Set the channel's integers; raise ``InvalidContext`` if they do not form a channel."""
        self.high = levels.high
        self.low = levels.low
        self.leftover = levels.leftover
        self.word_bits = word_bits
        self._epsilon = float(epsilon)
        total = self.raised * self.high + (self.outputs - self.raised) * self.low + self.leftover
        is_channel = total == self.denominator and 0 <= self.low < self.high and self.leftover >= 0
        if self.outputs and not is_channel:
            raise InvalidContext(
                f"the integers of a {self.kind} code must add up to 2^{self.word_bits} words, "
                "with high above low."
            )


class CodeFamily(Protocol):
    """A callable, such as a class of codes, that builds a code for a number of points and an ε."""

    def __call__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> Code:
        """Return a code for at least ``points`` points."""
        ...
