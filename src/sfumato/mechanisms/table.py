"""Table response: any channel that is small enough to be written out, in integers."""

from collections.abc import Sequence
from functools import cached_property
from math import gcd
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts import Context
from sfumato.errors import ContextMismatch, InvalidContext, NothingToLearn
from sfumato.foundation.arrays import Floats, Symbols, Words
from sfumato.foundation.canonical import (
    Fields,
    Json,
    parse_count,
    require_fields,
    require_word_bits,
)
from sfumato.mechanisms.channel import IntegerChannel, format_rows, parse_rows, stochastic_rows
from sfumato.mechanisms.dense import DenseMechanism, LeastVarianceScores
from sfumato.mechanisms.left_inverse import surely_independent
from sfumato.mechanisms.rounding import round_solution, round_table

__all__ = ["TableResponse"]

_MAX_MOVE = 1e-3  # of an entry, by rounding
_MIN_FULL_WORD = 32  # shorter words are for examination, and are coarse by nature
_MAX_COUNT = 2**32  # of a crowd
_SUM_TOLERANCE = 1e-6
_ZERO_TOLERANCE = 1e-9
_MIN_PROBABILITY = 2.0**-40  # reports that no symbol sends more often are left out


class TableResponse(DenseMechanism):
    """A channel written out: symbol x sends report y on ``integers[x][y]`` of the words.

    There are ``2^word_bits`` words. The constructor takes the integers as they are and checks no
    promise: ``certify`` does. ``of`` makes them from fractions and ``near`` from floats, rounded so
    that the context is kept exactly.

    A ``crowd`` is a distribution in integers, one for each symbol: scores are of least variance if
    people are distributed like it. Without one, all symbols are equally likely. It does not affect
    privacy, and the estimate is unbiased for every crowd.

    Guarantees: every row sums to 1; made by ``of`` or ``near``, every pair keeps its promise.
    Cost per report: one word, as many comparisons as a report has bits. Error: that of the
    least-variance unbiased estimate for people like the crowd. Reference: the rounding is
    Sfumato's own, see the proof page.
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
                f"a table must have a row per symbol, {context.size}; got {len(integers)}."
            )
        self._integers = IntegerChannel(integers, word_bits)
        self.word_bits = word_bits
        self.outputs = self._integers.outputs
        self.crowd = _require_crowd(crowd, context.size)

    @classmethod
    def of(
        cls,
        context: Context,
        Q: Sequence[Sequence[object]],
        *,
        crowd: Sequence[int] | None = None,
        word_bits: int = 64,
    ) -> Self:
        """Return a table near the stochastic matrix Q that keeps ``context`` exactly.

        Entries of Q are fractions or decimals.
        """
        rows = stochastic_rows(Q)
        integers = round_table(rows, context, word_bits)
        table = cls(context, integers, word_bits=word_bits, crowd=crowd)
        table._require_near(np.array(rows, dtype=np.float64))
        return table

    @classmethod
    def near(
        cls,
        context: Context,
        Q: ArrayLike,
        *,
        crowd: Sequence[int] | None = None,
        word_bits: int = 64,
    ) -> Self:
        """Return a table near a matrix of floats that a solver found; it keeps ``context`` exactly.

        Q should keep the context up to about 10⁻⁹, in the sums of its rows and in the ratios of
        its columns. Entries within 10⁻⁸ of where a promise is used up are taken to lie there.
        Reports that are hardly ever sent are left out.

        >>> from sfumato.contexts import Uniform
        >>> odds = np.e + 1e-9 * np.array([[0, 1, -2], [2, 0, 1], [-1, 1, 0]])
        >>> table = TableResponse.near(Uniform(3, 1), np.where(np.eye(3), odds, 1) / (np.e + 2))
        >>> table.matrix().round(6)
        array([[0.576117, 0.211942, 0.211942],
               [0.211942, 0.576117, 0.211942],
               [0.211942, 0.211942, 0.576117]])
        """
        solution = _require_nearly_stochastic(Q, context.size)
        integers = round_solution(solution, context, word_bits)
        table = cls(context, integers, word_bits=word_bits, crowd=crowd)
        table._require_near(solution)
        return table

    def _require_near(self, Q: Floats) -> None:
        """Refuse a Q that keeps the context only after large changes."""
        move = float(np.abs(self.matrix() - Q).max())
        if self.word_bits >= _MIN_FULL_WORD and move > _MAX_MOVE:
            raise ContextMismatch(
                f"Q does not keep the context: an entry would have to move by {move:.2g}. "
                "Pass a matrix that keeps it."
            )

    def record(self) -> Json:
        """Return the integers as plain data, with the crowd if there is one."""
        rows = format_rows(self._integers.rows)
        record: dict[str, Json] = {"kind": self.kind, "word_bits": self.word_bits, "rows": rows}
        if self.crowd is not None:
            record["crowd"] = list(map(str, self.crowd))
        return record

    @classmethod
    def of_record(cls, record: Fields, context: Context) -> Self:
        """Return the table with the integers of its record."""
        names: tuple[str, ...] = ("kind", "word_bits", "rows")
        if "crowd" in record:
            names += ("crowd",)
        fields = require_fields(record, "mechanism", names)
        word_bits = require_word_bits(fields["word_bits"])
        rows = parse_rows(fields["rows"])
        crowd = None
        if "crowd" in fields:
            crowd = list(map(parse_count, fields["crowd"]))
        return cls(context, rows, word_bits=word_bits, crowd=crowd)

    def at_word(self, word_bits: int) -> Self:
        """Return the same table rounded to another word."""
        rows = self._integers.rows
        if word_bits != self.word_bits:
            exact = [self.exact_row(x) for x in range(self.inputs)]
            rows = round_table(exact, self.context, word_bits)
        if word_bits < self.word_bits and not surely_independent(rows):
            raise NothingToLearn(
                f"a word of {word_bits} bits is too short to tell the symbols of this table apart."
            )
        return type(self)(self.context, rows, word_bits=word_bits, crowd=self.crowd)

    def _respond(self, symbols: Symbols, words: Words) -> Words:
        return self._integers.choose(symbols.astype(np.uint64), words[:, 0])

    def integer_row(self, x: int) -> list[int]:
        """Return the row of x."""
        return list(self._integers.rows[x])

    def ideal_row(self, x: int) -> Floats:
        """The table is its own formula."""
        return np.array([entry / self.denominator for entry in self._integers.rows[x]])

    @cached_property
    def scores(self) -> LeastVarianceScores:
        """What undoes the channel."""
        return LeastVarianceScores(self, self.crowd)


def _require_crowd(crowd: Sequence[int] | None, size: int) -> tuple[int, ...] | None:
    """Refuse an invalid crowd; return ``None`` for a uniform one.

    A crowd must be in lowest terms, so that a distribution is written in one way.
    """
    if crowd is None:
        return None
    counts = list(crowd)
    if len(counts) != size or not all(map(_is_crowd_count, counts)):
        raise InvalidContext(
            f"crowd must contain an integer from 1 to 2^32 for each of the {size} symbols."
        )
    common = gcd(*map(int, counts))
    if common > 1:
        raise InvalidContext(
            f"crowd must be in lowest terms; all its numbers are multiples of {common}. "
            "Divide by it."
        )
    if len(set(counts)) == 1:
        return None
    return tuple(map(int, counts))


def _is_crowd_count(count: object) -> bool:
    if isinstance(count, bool) or not isinstance(count, int | np.integer):
        return False
    return 1 <= int(count) <= _MAX_COUNT


def _require_nearly_stochastic(Q: ArrayLike, size: int) -> Floats:
    """Return Q without negative entries and without reports that are hardly ever sent."""
    floats = np.array(Q, dtype=np.float64)
    is_matrix = floats.ndim == 2 and len(floats) == size and np.isfinite(floats).all()
    if not is_matrix or (floats < -_ZERO_TOLERANCE).any():
        raise InvalidContext(
            f"Q must be a matrix of probabilities with a row for each of the {size} symbols."
        )
    off = np.abs(floats.sum(axis=1) - 1)
    if off.max() > _SUM_TOLERANCE:
        x = int(off.argmax())
        raise InvalidContext(
            f"rows of Q must add up to 1 within {_SUM_TOLERANCE:g}; row {x} is off by {off[x]:.2g}."
        )
    frequent = floats.max(axis=0) >= _MIN_PROBABILITY
    return np.maximum(floats[:, frequent], 0.0)
