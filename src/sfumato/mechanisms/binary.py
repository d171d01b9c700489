"""The universally optimal mechanism for two symbols: Warner, Mangat and everything between."""

from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from sfumato.contexts import Context
from sfumato.errors import ContextMismatch, NothingToLearn
from sfumato.foundation.arrays import Floats, Symbols, Words
from sfumato.foundation.canonical import (
    Fields,
    Json,
    require_fields,
    require_word_bits,
)
from sfumato.mechanisms.channel import IntegerChannel, format_rows, parse_rows
from sfumato.mechanisms.dense import DenseMechanism, DenseScores
from sfumato.randomness import binary_flips

__all__ = ["BinaryResponse"]


class BinaryResponse(DenseMechanism):
    """The mechanism for two symbols: any other one is it, garbled (Theorem 2 of the paper).

    With ``a = E[0, 1]``, ``b = E[1, 0]``, ``D = 1 − e^{−(a+b)}``::

        Q = 1/D · [[ 1 − e^{−b},            e^{−b}(1 − e^{−a}) ],
                   [ e^{−a}(1 − e^{−b}),    1 − e^{−a}         ]]

    ``a = b`` is Warner's randomized response (1965), ``a = inf`` Mangat's (1994) with
    p = e^{−b}, both infinite the identity.

    Guarantees: both log-ratios of rows are at most a and b for both reports; every row sums to 1;
    any utility that obeys the data-processing inequality is largest here.
    Cost per report: one word, one comparison.
    Error: ``n·Var(p̂_1) = q(1−q)/(1 − Q(1|0) − Q(0|1))²``.
    Reference: Acharya et al. (2020), Theorem 2.
    Proof: docs/proofs/binary.md.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> BinaryResponse(PrivacyMatrix([[0, "inf"], [1, 0]], domain=["no", "yes"])).matrix().round(4)
    array([[0.6321, 0.3679],
           [0.    , 1.    ]])
    """

    kind: ClassVar[str] = "binary"
    outputs = 2

    def __init__(self, context: Context, *, word_bits: int = 64) -> None:
        self._set_context(context, word_bits)
        self._set_flips(*binary_flips(self._a, self._b, word_bits))

    def _set_context(self, context: Context, word_bits: int) -> None:
        if context.size != 2:
            raise ContextMismatch(
                f"a binary response needs a context of two symbols; got {context.size}."
            )
        super().__init__(context)
        self.word_bits = word_bits
        self._a = context.exact_epsilon(0, 1)
        self._b = context.exact_epsilon(1, 0)
        if 0 in (self._a, self._b):
            raise NothingToLearn(
                "this context leaves nothing to learn: an entry of 0 makes both rows of every "
                "mechanism equal. Pass entries above 0."
            )

    def _set_flips(self, of_zero: int, of_one: int) -> None:
        """Keep on how many words each symbol is sent as the other."""
        self._flips = (of_zero, of_one)
        self._flips_of = np.array(self._flips, dtype=np.uint64)

    def record(self) -> Json:
        """Return the integers of the channel as plain data."""
        rows = format_rows([self.integer_row(0), self.integer_row(1)])
        return {"kind": self.kind, "word_bits": self.word_bits, "rows": rows}

    @classmethod
    def of_record(cls, record: Fields, context: Context) -> Self:
        """Return the mechanism with the integers of its record."""
        fields = require_fields(record, "mechanism", ("kind", "word_bits", "rows"))
        word_bits = require_word_bits(fields["word_bits"])
        rows = parse_rows(fields["rows"])
        mechanism = cls.__new__(cls)
        mechanism._set_context(context, word_bits)
        IntegerChannel(rows, word_bits)  # refuses rows that are no channel
        total = mechanism.denominator
        if [len(row) for row in rows] != [2, 2] or rows[0][1] + rows[1][0] >= total:
            raise ContextMismatch(
                "a binary response has two rows of two reports, and flips less often than not."
            )
        mechanism._set_flips(rows[0][1], rows[1][0])
        return mechanism

    def at_word(self, word_bits: int) -> Self:
        """Return the same mechanism over shorter words."""
        return type(self)(self.context, word_bits=word_bits)

    def _respond(self, symbols: Symbols, words: Words) -> Words:
        """The other symbol on the first ``flips`` words, the truth on the rest."""
        flips = words[:, 0] < self._flips_of[symbols]
        return (symbols ^ flips).astype(np.uint64)

    def integer_row(self, x: int) -> list[int]:
        """Return the row of x."""
        flips = self._flips[x]
        truths = self.denominator - flips
        return [truths, flips] if x == 0 else [flips, truths]

    def ideal_row(self, x: int) -> Floats:
        """The formula of Theorem 2, in the form that also holds for infinite entries."""
        a = float(self._a)
        b = float(self._b)
        D = -np.expm1(-(a + b))
        rows = [
            [-np.expm1(-b), -np.exp(-b) * np.expm1(-a)],
            [-np.exp(-a) * np.expm1(-b), -np.expm1(-a)],
        ]
        return np.array(rows[x]) / D

    @cached_property
    def scores(self) -> "BinaryScores":
        """What undoes the channel."""
        return BinaryScores(self)


class BinaryScores(DenseScores):
    """The inverse of the channel."""

    mechanism: BinaryResponse

    def exact(self, y: int) -> list[Fraction]:
        """``p̂_1 = (f(1) − Q(1|0)) / (1 − Q(1|0) − Q(0|1))``, ``p̂_0 = 1 − p̂_1``."""
        n01, n10 = self.mechanism._flips
        N = self.mechanism.denominator
        of_one = Fraction(y * N - n01, N - n01 - n10)
        return [1 - of_one, of_one]
