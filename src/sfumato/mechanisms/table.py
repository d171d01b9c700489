"""Table response: any channel that is small enough to be written out, in integers."""

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from sfumato.arrays import Floats, Symbols, Words
from sfumato.canonical import Json
from sfumato.contexts import Context
from sfumato.errors import ContextMismatch
from sfumato.mechanisms.channel import IntegerChannel, stochastic_rows
from sfumato.mechanisms.rounding import rounded_table
from sfumato.mechanisms.tabled import TabledMechanism

__all__ = ["TableResponse"]

_LARGEST_MOVE = 1e-3
_FULL_WORD = 32  # shorter words are for examination, and are coarse by nature


class TableResponse(TabledMechanism):
    """A channel written out: ``integers[x][y]`` of the ``2^word_bits`` words send report y for symbol x.

    The constructor takes the integers as they are and checks no promise: ``certify`` does. ``of`` makes them
    from fractions, rounded so that the context is kept exactly.

    Guarantees: every row sums to 1; made by ``of``, every pair keeps its promise.
    Cost per report: one word, one comparison per report there is. Error: that of the least-variance unbiased
    estimate at the uniform distribution. Reference: the rounding is Sfumato's own, see the proof page.
    Proof: docs/proofs/table.md.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> context = PrivacyMatrix([[0, 1], [2, 0]])
    >>> TableResponse.of(context, [["0.6", "0.4"], ["0.3", "0.7"]]).matrix().round(6)
    array([[0.6, 0.4],
           [0.3, 0.7]])
    """

    kind: ClassVar[str] = "table"

    def __init__(self, context: Context, integers: Sequence[Sequence[int]], *, word_bits: int = 64) -> None:
        super().__init__(context)
        if len(integers) != context.size:
            raise ContextMismatch(f"a table must have a row per symbol, {context.size}; found {len(integers)}.")
        self._drawn = IntegerChannel(integers, word_bits)
        self.word_bits, self.outputs = word_bits, self._drawn.outputs

    @classmethod
    def of(cls, context: Context, Q: Sequence[Sequence[object]], *, word_bits: int = 64) -> Self:
        """A table near the stochastic matrix Q (fractions or decimals) that keeps ``context`` exactly."""
        rows = stochastic_rows(Q)
        made = cls(context, rounded_table(rows, context, word_bits), word_bits=word_bits)
        wanted = np.array([[float(q) for q in row] for row in rows])
        moved = float(np.abs(made.matrix() - wanted).max())
        if word_bits >= _FULL_WORD and moved > _LARGEST_MOVE:
            raise ContextMismatch(
                f"Q does not keep the context: an entry would have to move by {moved:.2g}. Pass one that keeps it."
            )
        return made

    def record(self) -> Json:
        """The integers as plain data."""
        rows = [[str(entry) for entry in row] for row in self._drawn.rows]
        return {"kind": self.kind, "word_bits": self.word_bits, "rows": rows}

    def at_word(self, word_bits: int) -> Self:
        """The same table over another word, rounded anew."""
        if word_bits == self.word_bits:
            return type(self)(self.context, self._drawn.rows, word_bits=word_bits)
        rows = [[Fraction(entry, self.denominator) for entry in row] for row in self._drawn.rows]
        return type(self).of(self.context, rows, word_bits=word_bits)

    def _respond(self, symbols: Symbols, words: Words) -> Words:
        return self._drawn.choose(symbols.astype(np.uint64), words[:, 0])

    def _integers(self, x: int) -> list[int]:
        return self._drawn.rows[x]

    def ideal_row(self, x: int) -> Floats:
        """The table is its own formula."""
        return np.array([entry / self.denominator for entry in self._drawn.rows[x]])
