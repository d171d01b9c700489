"""Post-processing: a mechanism followed by a channel that never sees the symbol."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from sfumato.errors import ContextMismatch
from sfumato.foundation.arrays import Floats, Symbols, Words
from sfumato.foundation.canonical import Json, decimal_text
from sfumato.mechanisms.channel import IntegerChannel, stochastic_rows
from sfumato.mechanisms.dense import TabledMechanism
from sfumato.mechanisms.mechanism import Mechanism

__all__ = ["ProcessedResponse"]


class ProcessedResponse(TabledMechanism):
    """``Q'(z|x) = Σ_y Q(y|x) W(z|y)``: what keeps a context goes on keeping it (Proposition 1 of the paper).

    Guarantees: for every pair, ``Σ_y Q(y|x) W(z|y) ≤ e^E Σ_y Q(y|x2) W(z|y)`` because every term obeys it; this
    holds for the W of 2^B-ths that the second word really draws from, whatever its distance to the W asked for.
    Cost per report: the mechanism's word and one more. Error: that of the least-variance
    unbiased estimate at the uniform distribution.
    Reference: Acharya et al. (2020), Proposition 1.
    Proof: docs/proofs/processed.md.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> PlainResponse(Uniform(2, 1)).then([[1, 0], ["0.5", "0.5"], [0, 1], [0, 1]]).outputs
    2
    """

    kind: ClassVar[str] = "processed"

    def __init__(self, mechanism: Mechanism, W: Sequence[Sequence[object]]) -> None:
        super().__init__(mechanism.context)
        rows = stochastic_rows(W)
        if len(rows) != mechanism.outputs:
            raise ContextMismatch(
                f"W must have a row per report, {mechanism.outputs}; found {len(rows)}."
            )
        if isinstance(mechanism, ProcessedResponse):  # two channels in a row are one
            rows, mechanism = _product(mechanism._W, rows), mechanism._mechanism
        self._mechanism: Mechanism = mechanism
        self._W: list[list[Fraction]] = rows
        if mechanism.words > 1:
            raise ContextMismatch(
                "only a mechanism that reads one word can be followed by a channel."
            )
        self.words, self.word_bits = 2, mechanism.word_bits
        self._channel_W = IntegerChannel.nearest(self._W, self.word_bits)
        self.outputs = self._channel_W.outputs

    def record(self) -> Json:
        """Both channels as plain data."""
        return {
            "kind": self.kind,
            "mechanism": self._mechanism.record(),
            "word_bits": self.word_bits,
            "then": [[str(entry) for entry in row] for row in self._channel_W.rows],
            "wanted": [[decimal_text(entry) for entry in row] for row in self._W],
        }

    def at_word(self, word_bits: int) -> Self:
        """The same mechanism over shorter words."""
        return type(self)(self._mechanism.at_word(word_bits), self._W)

    def _respond(self, symbols: Symbols, words: Words) -> Words:
        first = self._mechanism._respond(symbols, words[:, :1]).astype(np.uint64)
        return self._channel_W.choose(first, words[:, 1])

    def _integers(self, x: int) -> list[int]:
        row = self._mechanism.integer_row(x)
        return [
            sum(q * w[z] for q, w in zip(row, self._channel_W.rows, strict=True))
            for z in range(self.outputs)
        ]

    def ideal_row(self, x: int) -> Floats:
        """The product of the two formulas."""
        return self._mechanism.ideal_row(x) @ np.array(
            [[float(entry) for entry in row] for row in self._W]
        )

    @cached_property
    def _table(self) -> Floats:
        return self._left_inverse.floats()


def _product(first: list[list[Fraction]], then: list[list[Fraction]]) -> list[list[Fraction]]:
    columns = list(zip(*then, strict=True))
    return [
        [sum((a * b for a, b in zip(row, column, strict=True)), Fraction(0)) for column in columns]
        for row in first
    ]
