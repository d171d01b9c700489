"""Adaptive composition: two answers by one person, the second mechanism chosen by the first report."""

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from sfumato.errors import ContextMismatch
from sfumato.foundation.arrays import Floats, Symbols, Words
from sfumato.foundation.canonical import Json
from sfumato.mechanisms.dense import TabledMechanism
from sfumato.mechanisms.mechanism import Mechanism, demand_outputs
from sfumato.randomness.words import WORDS_PER_POSITION

__all__ = ["ComposedResponse"]


class ComposedResponse(TabledMechanism):
    """``Q(y1, y2|x) = Q1(y1|x) · Q2^{y1}(y2|x)``: the pair of reports, keeping E1 + E2 (Proposition 2 of the paper).

    ``second`` is a mechanism, or a function from the first report to one; all it returns must promise the
    same context. Report ``y1 · K2 + y2`` stands for the pair, K2 the largest number of second reports.

    Guarantees: for every pair of symbols the log-ratio is at most E1 + E2; every row sums to 1.
    Cost per report: the words of both. Error: estimates of both reports, mixed by their risks.
    Reference: Acharya et al. (2020), Proposition 2.
    Proof: docs/proofs/composed.md.
    """

    kind: ClassVar[str] = "composed"

    def __init__(self, first: Mechanism, second: Mechanism | Callable[[int], Mechanism]) -> None:
        self._first = first
        if isinstance(second, Mechanism):
            self._seconds = [second] * first.outputs
        else:
            self._seconds = [second(y1) for y1 in range(first.outputs)]
        lead = self._seconds[0]
        if any(
            each.context != lead.context or each.word_bits != first.word_bits
            for each in self._seconds
        ):
            raise ContextMismatch(
                "every second mechanism must promise the same context and read the same word length."
            )
        super().__init__(first.context + lead.context)
        self.words = first.words + max(each.words for each in self._seconds)
        if self.words > WORDS_PER_POSITION:
            raise ContextMismatch(
                f"two answers may read {WORDS_PER_POSITION} words in all; these read {self.words}."
            )
        self.word_bits = first.word_bits
        self._width = max(each.outputs for each in self._seconds)
        self.outputs = demand_outputs(first.outputs * self._width)

    def record(self) -> Json:
        """Both stages as plain data."""
        return {
            "kind": self.kind,
            "first": self._first.record(),
            "seconds": [
                {"context": each.context.record(), "mechanism": each.record()}
                for each in self._distinct
            ],
            "second_of": [self._distinct.index(each) for each in self._seconds],
        }

    @cached_property
    def _distinct(self) -> list[Mechanism]:
        return list({id(each): each for each in self._seconds}.values())

    def at_word(self, word_bits: int) -> Self:
        """The same composition over shorter words."""
        shorter = {id(each): each.at_word(word_bits) for each in self._distinct}
        return type(self)(self._first.at_word(word_bits), lambda y1: shorter[id(self._seconds[y1])])

    def _respond(self, symbols: Symbols, words: Words) -> Words:
        y1 = self._first._respond(symbols, words[:, : self._first.words]).astype(np.int64)
        rest = words[:, self._first.words :]
        y2 = np.empty(symbols.size, dtype=np.uint64)
        for each in self._distinct:
            chosen = np.array([other is each for other in self._seconds])[y1]
            y2[chosen] = each._respond(symbols[chosen], rest[chosen])
        return y1.astype(np.uint64) * np.uint64(self._width) + y2

    def _integers(self, x: int) -> list[int]:
        pairs: list[int] = []
        for n1, second in zip(self._first.integer_row(x), self._seconds, strict=True):
            row = second.integer_row(x)
            pairs += [n1 * n2 for n2 in row] + [0] * (self._width - len(row))
        return pairs

    def ideal_row(self, x: int) -> Floats:
        """The product of the two formulas."""
        rows = [
            np.pad(each.ideal_row(x), (0, self._width - each.outputs)) for each in self._seconds
        ]
        return (self._first.ideal_row(x)[:, None] * np.array(rows)).ravel()

    def exact_scores(self, y: int) -> list[Fraction]:
        """``α A1[·, y1] + (1 − α) A2[·, y2]``: both are unbiased, so is their mixture."""
        y1, y2 = divmod(y, self._width)
        second = self._seconds[y1]
        if y2 >= second.outputs:  # padding: such a report cannot occur
            return [Fraction(0)] * self.inputs
        alpha = self._share_of_first
        pairs = zip(self._first.exact_scores(y1), second.exact_scores(y2), strict=True)
        return [alpha * a1 + (1 - alpha) * a2 for a1, a2 in pairs]

    @cached_property
    def _share_of_first(self) -> Fraction:
        """α = (R2 − T)/((R1 − T) + (R2 − T)), the best weight at uniform p.

        Both reports speak of the same person, so the two estimates share the risk T = 1 − 1/k of drawing people;
        only what randomising adds to it is independent.
        """
        p = np.full(self.inputs, 1 / self.inputs)
        shared = 1 - 1 / self.inputs
        first, second = (
            max(each.risk(p) - shared, 0.0) for each in (self._first, self._seconds[0])
        )
        if first + second <= 1e-12:
            return Fraction(1, 2)
        return Fraction(second / (first + second)).limit_denominator(1000)
