"""Table response: any channel that is small enough to be written out, in integers."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts import Context
from sfumato.errors import ContextMismatch, InvalidContext, NothingToLearn
from sfumato.foundation.arrays import Floats, Symbols, Words
from sfumato.foundation.canonical import Json
from sfumato.foundation.records import (
    Fields,
    parse_count,
    require_fields,
    require_word_bits,
)
from sfumato.mechanisms.channel import IntegerChannel, stochastic_rows
from sfumato.mechanisms.dense import DenseMechanism, LeastVarianceScores
from sfumato.mechanisms.left_inverse import surely_independent
from sfumato.mechanisms.rounding import near_table, rounded_table

__all__ = ["TableResponse"]

_LARGEST_MOVE = 1e-3
_FULL_WORD = 32  # shorter words are for examination, and are coarse by nature
_LARGEST_COUNT = 2**32
_SUMS_TO_ONE = 1e-6
_BELOW_ZERO = 1e-9
_NOTHING = 2.0**-40  # a report that nobody sends more often is left out


class TableResponse(DenseMechanism):
    """A channel written out: ``integers[x][y]`` of the ``2^word_bits`` words send report y for symbol x.

    The constructor takes the integers as they are and checks no promise: ``certify`` does. ``of`` makes them
    from fractions and ``near`` from floats, rounded so that the context is kept exactly.

    A ``crowd`` is a distribution in whole numbers, one for each symbol: scores are of least variance if people are
    distributed like it. Without one, all symbols are equally likely. It is no matter of privacy, and the estimate is
    unbiased whatever it is.

    Guarantees: every row sums to 1; made by ``of`` or ``near``, every pair keeps its promise.
    Cost per report: one word, as many comparisons as a report has bits. Error: that of the least-variance unbiased
    estimate where people are like the crowd. Reference: the rounding is Sfumato's own, see the proof page.
    Proof: docs/proofs/table.md.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> context = PrivacyMatrix([[0, 1], [2, 0]])
    >>> TableResponse.of(context, [["0.6", "0.4"], ["0.3", "0.7"]]).matrix().round(6)
    array([[0.6, 0.4],
           [0.3, 0.7]])
    """

    kind: ClassVar[str] = "table"

    def __init__(
        self,
        context: Context,
        integers: Sequence[Sequence[int]],
        *,
        word_bits: int = 64,
        crowd: Sequence[int] | None = None,
    ) -> None:
        super().__init__(context)
        if len(integers) != context.size:
            raise ContextMismatch(
                f"a table must have a row per symbol, {context.size}; found {len(integers)}."
            )
        self._drawn = IntegerChannel(integers, word_bits)
        self.word_bits, self.outputs = word_bits, self._drawn.outputs
        self.crowd = _checked_crowd(crowd, context.size)

    @classmethod
    def of(
        cls,
        context: Context,
        Q: Sequence[Sequence[object]],
        *,
        crowd: Sequence[int] | None = None,
        word_bits: int = 64,
    ) -> Self:
        """A table near the stochastic matrix Q (fractions or decimals) that keeps ``context`` exactly."""
        rows = stochastic_rows(Q)
        made = cls(
            context, rounded_table(rows, context, word_bits), word_bits=word_bits, crowd=crowd
        )
        return made._demand_near(np.array([[float(q) for q in row] for row in rows]))

    @classmethod
    def near(
        cls,
        context: Context,
        Q: ArrayLike,
        *,
        crowd: Sequence[int] | None = None,
        word_bits: int = 64,
    ) -> Self:
        """A table near a matrix of floats that a solver found; it keeps ``context`` exactly.

        Q should keep the context up to some 10⁻⁹, in its rows' sums and in its columns' ratios: entries within 10⁻⁸
        of where a promise is used up are taken to be meant there. Reports that hardly anybody sends are left out.

        >>> from sfumato.contexts import Uniform
        >>> odds = np.e + 1e-9 * np.array([[0, 1, -2], [2, 0, 1], [-1, 1, 0]])
        >>> table = TableResponse.near(Uniform(3, 1), np.where(np.eye(3), odds, 1) / (np.e + 2))
        >>> table.matrix().round(6)
        array([[0.576117, 0.211942, 0.211942],
               [0.211942, 0.576117, 0.211942],
               [0.211942, 0.211942, 0.576117]])
        """
        wanted = _nearly_stochastic(Q, context.size)
        made = cls(
            context, near_table(wanted, context, word_bits), word_bits=word_bits, crowd=crowd
        )
        return made._demand_near(wanted)

    def _demand_near(self, wanted: Floats) -> Self:
        moved = float(np.abs(self.matrix() - wanted).max())
        if self.word_bits >= _FULL_WORD and moved > _LARGEST_MOVE:
            raise ContextMismatch(
                f"Q does not keep the context: an entry would have to move by {moved:.2g}. Pass one that keeps it."
            )
        return self

    def record(self) -> Json:
        """The integers as plain data, the crowd among them if there is one."""
        rows = [list(map(str, row)) for row in self._drawn.rows]
        record: dict[str, Json] = {"kind": self.kind, "word_bits": self.word_bits, "rows": rows}
        if self.crowd is not None:
            record["crowd"] = [str(count) for count in self.crowd]
        return record

    @classmethod
    def of_record(cls, record: Fields, context: Context) -> Self:
        """Return the table with the integers of its record."""
        names: tuple[str, ...] = ("kind", "word_bits", "rows")
        if "crowd" in record:
            names += ("crowd",)
        fields = require_fields(record, "mechanism", names)
        word_bits = require_word_bits(fields["word_bits"])
        rows = [[parse_count(entry) for entry in row] for row in fields["rows"]]
        crowd = None
        if "crowd" in fields:
            crowd = [parse_count(entry) for entry in fields["crowd"]]
        return cls(context, rows, word_bits=word_bits, crowd=crowd)

    def at_word(self, word_bits: int) -> Self:
        """The same table over another word, rounded anew."""
        rows = self._drawn.rows
        if word_bits != self.word_bits:
            exact = [[Fraction(entry, self.denominator) for entry in row] for row in rows]
            rows = rounded_table(exact, self.context, word_bits)
        if word_bits < self.word_bits and not surely_independent(rows):
            raise NothingToLearn(
                f"a word of {word_bits} bits is too short to tell the symbols of this table apart."
            )
        return type(self)(self.context, rows, word_bits=word_bits, crowd=self.crowd)

    def _respond(self, symbols: Symbols, words: Words) -> Words:
        return self._drawn.choose(symbols.astype(np.uint64), words[:, 0])

    def integer_row(self, x: int) -> list[int]:
        """Return the row of x."""
        return list(self._drawn.rows[x])

    def ideal_row(self, x: int) -> Floats:
        """The table is its own formula."""
        return np.array([entry / self.denominator for entry in self._drawn.rows[x]])

    @cached_property
    def scores(self) -> LeastVarianceScores:
        """What undoes the channel."""
        return LeastVarianceScores(self, self.crowd)


def _checked_crowd(crowd: Sequence[int] | None, size: int) -> tuple[int, ...] | None:
    """The crowd in lowest terms and not uniform, or ``None``: one distribution is written in one way."""
    if crowd is None:
        return None
    counts = list(crowd)
    whole = all(
        isinstance(count, int | np.integer) and not isinstance(count, bool) for count in counts
    )
    if (
        len(counts) != size
        or not whole
        or not all(1 <= count <= _LARGEST_COUNT for count in counts)
    ):
        raise InvalidContext(
            f"crowd must hold a whole number from 1 to 2^32 for each of the {size} symbols."
        )
    common = gcd(*(int(count) for count in counts))
    if common > 1:
        raise InvalidContext(
            f"crowd must be in lowest terms; all its numbers are multiples of {common}. Divide by it."
        )
    return None if len(set(counts)) == 1 else tuple(int(count) for count in counts)


def _nearly_stochastic(Q: ArrayLike, size: int) -> Floats:
    """Q as floats that are not negative, without the reports that hardly anybody sends."""
    floats = np.array(Q, dtype=np.float64)
    if (
        floats.ndim != 2
        or len(floats) != size
        or not np.isfinite(floats).all()
        or (floats < -_BELOW_ZERO).any()
    ):
        raise InvalidContext(
            f"Q must be a matrix of probabilities with a row for each of the {size} symbols."
        )
    off = np.abs(floats.sum(axis=1) - 1)
    if off.max() > _SUMS_TO_ONE:
        x = int(off.argmax())
        raise InvalidContext(
            f"Q must have rows that add up to 1 within {_SUMS_TO_ONE:g}; row {x} is off by {off[x]:.2g}."
        )
    return np.maximum(floats[:, floats.max(axis=0) >= _NOTHING], 0.0)
