"""Mechanisms defined by a table of integers, and the optimal mechanism for two symbols."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts import Context
from sfumato.errors import ContextMismatch, InvalidContext, NothingToLearn
from sfumato.foundation.arrays import Booleans, Floats, KernelWords, PerPerson
from sfumato.foundation.canonical import (
    Fields,
    Json,
    parse_count,
    require_fields,
    require_word_bits,
)
from sfumato.foundation.elementwise import look_up
from sfumato.foundation.formatting import (
    format_epsilon,
    format_number,
    format_odds_factor,
    printable,
)
from sfumato.foundation.inputs import MatrixLike
from sfumato.foundation.numpy_values import require_unmasked
from sfumato.mechanisms.channel import (
    IntegerChannel,
    format_rows,
    parse_rows,
    parse_stochastic_rows,
    round_solution,
    round_table,
)
from sfumato.mechanisms.dense import (
    DenseMechanism,
    DenseScores,
    MinimumVarianceScores,
    are_independent_mod_prime,
)
from sfumato.mechanisms.holder import require_context
from sfumato.randomness import binary_flips

__all__ = ["BinaryResponse", "TableResponse"]

_MAX_CHANGE = 1e-3  # the largest change to an entry that rounding may make
_MIN_PRECISE_BITS = 32  # shorter words, used only in tests, may change Q more than that
_MAX_WEIGHT = 2**32  # the largest weight of a symbol in a crowd
_SUM_TOLERANCE = 1e-6  # the largest error allowed in a row sum
_ZERO_TOLERANCE = 1e-9  # entries may be this far below 0
_MIN_PROBABILITY = 2.0**-40  # drop reports that are rarer than this for every symbol
_FRACTIONS_HINT = (
    "Pass fractions such as Fraction(1, 3). For floats, call sf.TableResponse.from_floats."
)


class TableResponse(DenseMechanism):
    """A table of integers: ``integers[x][y]`` words make symbol x produce report y.

    There are ``2^word_bits`` words in total. The constructor accepts any integers that form a
    channel and does not check the promise; ``certify`` does. ``from_fractions`` and ``from_floats``
    round a matrix to a table that satisfies the context exactly.

    A ``crowd`` describes the expected population: one integer weight for each symbol. Scores have
    the minimum variance if people are distributed like the crowd. If no crowd is given, all symbols
    are assumed equally likely. The crowd does not affect privacy, and the estimate is unbiased for
    every crowd.

    Guarantees: every row sums to 1; a table built by ``from_fractions`` or ``from_floats`` keeps
    every promise of its context.
    Cost per report: one word, and one comparison for each bit of the report. Error: that of the
    minimum-variance unbiased estimate for people distributed like the crowd.
    Reference: none; the rounding is specific to Sfumato (see the proof page).
    Proof: docs/proofs/table.md.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> context = PrivacyMatrix([[0, 1], [2, 0]])
    >>> TableResponse.from_fractions(context, [["0.6", "0.4"], ["0.3", "0.7"]]).matrix().round(6)
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
        require_context(context, "TableResponse(context, integers)")
        super().__init__(context)
        rows = _require_integers(integers)
        if len(rows) != context.size:
            raise ContextMismatch(
                f"a table must have {context.size} rows, one per symbol; got {len(rows)}."
            )
        self._integers = IntegerChannel(rows, word_bits)
        self.word_bits = word_bits
        self.outputs = self._integers.outputs
        self.crowd = _require_crowd(crowd, context.size)

    @classmethod
    def from_fractions(
        cls,
        context: Context,
        Q: MatrixLike,
        *,
        crowd: Sequence[int] | None = None,
        word_bits: int = 64,
    ) -> Self:
        """Return a table that satisfies ``context`` exactly and is close to the matrix Q.

        Q is a stochastic matrix of fractions or decimals, with one row per symbol. Raise
        ``ContextMismatch`` if it does not satisfy the context; the error names a pair of labels.
        """
        require_context(context, "TableResponse.from_fractions(context, Q)")
        rows = parse_stochastic_rows(Q, "Q", _FRACTIONS_HINT)
        if len(rows) != context.size:
            raise ContextMismatch(
                f"Q must have a row for each of the {context.size} symbols; got {len(rows)} rows."
            )
        floats = np.array(rows, dtype=np.float64)
        try:
            integers = round_table(rows, context, word_bits)
        except NothingToLearn:
            _require_promise(floats, context)
            raise
        table = cls(context, integers, word_bits=word_bits, crowd=crowd)
        table._require_close(floats)
        return table

    @classmethod
    def from_floats(
        cls,
        context: Context,
        Q: ArrayLike,
        *,
        crowd: Sequence[int] | None = None,
        word_bits: int = 64,
    ) -> Self:
        """Return a table that satisfies ``context`` exactly and is close to a solver's matrix Q.

        The row sums of Q, and the ratios within its columns, should be accurate to about 10⁻⁹.
        Entries within 10⁻⁸ of the limit that a promise sets are moved to the limit. Reports that
        are almost never sent are dropped.

        >>> from sfumato.contexts import Uniform
        >>> odds = np.e + 1e-9 * np.array([[0, 1, -2], [2, 0, 1], [-1, 1, 0]])
        >>> Q = np.where(np.eye(3), odds, 1) / (np.e + 2)
        >>> table = TableResponse.from_floats(Uniform(3, 1), Q)
        >>> table.matrix().round(6)
        array([[0.576117, 0.211942, 0.211942],
               [0.211942, 0.576117, 0.211942],
               [0.211942, 0.211942, 0.576117]])
        """
        require_context(context, "TableResponse.from_floats(context, Q)")
        solution = _clean_solution(Q, context.size)
        try:
            integers = round_solution(solution, context, word_bits)
        except NothingToLearn:
            _require_promise(solution, context)
            raise
        table = cls(context, integers, word_bits=word_bits, crowd=crowd)
        table._require_close(solution)
        return table

    def _require_close(self, Q: Floats) -> None:
        """Raise ``ContextMismatch`` if Q had to change too much to satisfy the context.

        Tables for short words are not checked.
        """
        change = float(np.abs(self.matrix() - Q).max())
        if self.word_bits >= _MIN_PRECISE_BITS and change > _MAX_CHANGE:
            _require_promise(Q, self.context)
            raise ContextMismatch(
                f"Q does not satisfy the context: an entry would have to change by {change:.2g}. "
                "Pass a matrix that satisfies it."
            )

    def to_record(self) -> Json:
        """Return the integers, and the crowd if there is one, as JSON-compatible data."""
        rows = format_rows(self._integers.rows)
        record: dict[str, Json] = {"kind": self.kind, "word_bits": self.word_bits, "rows": rows}
        if self.crowd is not None:
            record["crowd"] = list(map(str, self.crowd))
        return record

    @classmethod
    def from_record(cls, record: Fields, context: Context) -> Self:
        """Return the table stored in a record, for the given context."""
        field_names: tuple[str, ...] = ("kind", "word_bits", "rows")
        if "crowd" in record:
            field_names += ("crowd",)
        fields = require_fields(record, "mechanism", field_names)
        word_bits = require_word_bits(fields["word_bits"])
        rows = parse_rows(fields["rows"])
        crowd = None
        if "crowd" in fields:
            crowd = list(map(parse_count, fields["crowd"]))
        return cls(context, rows, word_bits=word_bits, crowd=crowd)

    def with_word_bits(self, word_bits: int) -> Self:
        """Return the same table rounded to words of a different length."""
        rows = self._integers.rows
        if word_bits != self.word_bits:
            exact_rows = list(map(self.exact_row, range(self.inputs)))
            rows = round_table(exact_rows, self.context, word_bits)
        if word_bits < self.word_bits and not are_independent_mod_prime(rows):
            raise NothingToLearn(
                f"{word_bits}-bit words are too short to tell the symbols of this table apart."
            )
        return type(self)(self.context, rows, word_bits=word_bits, crowd=self.crowd)

    def _respond(self, symbols: PerPerson, words: KernelWords) -> PerPerson:
        return self._integers.choose(symbols, words[0])

    def integer_row(self, x: int) -> list[int]:
        """Return, for each report, how many words make symbol x produce it."""
        return list(self._integers.rows[x])

    def ideal_row(self, x: int) -> Floats:
        """Return the row of x; a table has no separate formula."""
        return np.array([entry / self.denominator for entry in self._integers.rows[x]])

    @cached_property
    def scores(self) -> MinimumVarianceScores:
        """The scores that undo the channel on average."""
        return MinimumVarianceScores(self, self.crowd)


def _require_promise(Q: Floats, context: Context) -> None:
    """Raise ``ContextMismatch`` if Q clearly breaks the context, and name the worst case."""
    worst_excess = _SUM_TOLERANCE
    worst_case = None
    E = context.matrix()
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(Q)
        for x in range(context.size):
            # log Q(y|x) − log Q(y|x2) − E[x, x2]; NaN where both are 0, or nothing is promised
            excess = np.nan_to_num(logs[x] - logs - E[x, :, None], nan=-np.inf, posinf=np.inf)
            if excess.max() > worst_excess:
                worst_excess = float(excess.max())
                x2, y = np.unravel_index(int(excess.argmax()), excess.shape)
                worst_case = (x, int(x2), int(y))
    if worst_case is not None:
        raise ContextMismatch(_broken_promise_text(Q, context, *worst_case))


def _broken_promise_text(Q: Floats, context: Context, x: int, x2: int, y: int) -> str:
    label = printable(repr(context.domain.labels[x]))
    label2 = printable(repr(context.domain.labels[x2]))
    epsilon = float(context.exact_epsilon(x, x2))
    limit = f"ε = {format_epsilon(epsilon)} allows at most {format_odds_factor(epsilon)} times"
    if Q[x2, y] > 0:
        ratio = format_number(Q[x, y] / Q[x2, y])
        comparison = f"is {ratio} times as likely for {label} as for {label2}; {limit}"
    else:
        comparison = f"is sent for {label} but never for {label2}, so it reveals the difference"
    return (
        f"Q does not satisfy the context: report {y} {comparison}. Pass a matrix that satisfies "
        "the context, or a context with a larger ε for this pair."
    )


def _require_crowd(crowd: Sequence[int] | None, size: int) -> tuple[int, ...] | None:
    """Return the crowd, or ``None`` for equal weights; raise ``InvalidContext`` if it is invalid.

    A crowd must be in lowest terms, so each distribution has a unique representation.
    """
    if crowd is None:
        return None
    weights = list(crowd)
    if len(weights) != size or not all(map(_is_crowd_weight, weights)):
        raise InvalidContext(
            f"crowd must contain an integer from 1 to 2^32 for each of the {size} symbols."
        )
    divisor = gcd(*map(int, weights))
    if divisor > 1:
        raise InvalidContext(
            f"crowd must be in lowest terms, but all its numbers are multiples of {divisor}. "
            f"Divide them by {divisor}."
        )
    if len(set(weights)) == 1:
        return None
    return tuple(map(int, weights))


def _is_crowd_weight(weight: object) -> bool:
    if isinstance(weight, bool) or not isinstance(weight, int | np.integer):
        return False
    return 1 <= int(weight) <= _MAX_WEIGHT


def _clean_solution(Q: ArrayLike, size: int) -> Floats:
    """Return Q with negative entries set to 0, without reports that are almost never sent.

    Raise ``InvalidContext`` if Q is not nearly stochastic.
    """
    floats = _parse_floats(Q, size)
    _require_entries(np.isfinite(floats), floats, "must be a finite number")
    _require_entries(floats >= -_ZERO_TOLERANCE, floats, "must not be negative")
    errors = np.abs(floats.sum(axis=1) - 1)
    x = int(errors.argmax())
    if errors[x] > _SUM_TOLERANCE:
        raise InvalidContext(
            f"the rows of Q must add up to 1 within {_SUM_TOLERANCE:g}; "
            f"row {x} is off by {errors[x]:.2g}."
        )
    is_frequent = floats.max(axis=0) >= _MIN_PROBABILITY
    return np.maximum(floats[:, is_frequent], 0.0)


def _parse_floats(Q: ArrayLike, size: int) -> Floats:
    """Return Q as an array; raise ``InvalidContext`` unless it has a row for each symbol."""
    require_unmasked(Q, "Q")
    try:
        floats = np.array(Q, dtype=np.float64)
    except (ValueError, TypeError):
        raise InvalidContext(
            "Q must be a matrix: rows of numbers, all of the same length. Pass e.g. a NumPy array."
        ) from None
    if floats.ndim != 2:
        raise InvalidContext(f"Q must be a matrix of probabilities; got shape {floats.shape}.")
    if len(floats) != size:
        raise InvalidContext(
            f"Q must be a matrix with a row for each of the {size} symbols; got {len(floats)} rows."
        )
    return floats


def _require_entries(is_valid: Booleans, floats: Floats, requirement: str) -> None:
    """Raise ``InvalidContext`` if an entry is invalid, and name the first such entry."""
    if not is_valid.all():
        x, y = np.argwhere(~is_valid)[0].tolist()
        raise InvalidContext(
            f"every entry of Q {requirement}; entry [{x}, {y}] is {floats[x, y]:g}. Pass a matrix "
            "of probabilities."
        )


def _require_integers(integers: object) -> list[list[int]]:
    """Return a table as rows of Python integers; raise ``InvalidContext`` for other entries."""
    require_unmasked(integers, "a table")
    rows = integers.tolist() if isinstance(integers, np.ndarray) else integers
    if not _is_sequence(rows) or not all(map(_is_sequence, rows)):
        raise InvalidContext("a table must be a matrix: a list of rows, each a list of integers.")
    types = {type(entry) for row in rows for entry in row}
    for entry_type in types:
        if not issubclass(entry_type, int | np.integer) or entry_type is bool:
            raise InvalidContext(
                f"a table must contain integers, the numbers of words; got {entry_type.__name__}. "
                "For probabilities, call sf.TableResponse.from_floats(context, Q)."
            )
    return [[int(entry) for entry in row] for row in rows]


def _is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)


class BinaryResponse(DenseMechanism):
    """The optimal mechanism for two symbols.

    Post-processing turns it into any other mechanism that satisfies the same context.

    With ``a = E[0, 1]``, ``b = E[1, 0]``, ``D = 1 − e^{−(a+b)}``::

        Q = 1/D · [[ 1 − e^{−b},            e^{−b}(1 − e^{−a}) ],
                   [ e^{−a}(1 − e^{−b}),    1 − e^{−a}         ]]

    ``a = b`` gives Warner's randomized response (1965), ``a = inf`` gives Mangat's (1994) with
    p = e^{−b}, and ``a = b = inf`` gives the identity.

    Guarantees: for both reports, the two log-ratios of the rows are at most a and b; every row sums
    to 1; no mechanism has a higher utility, if utility obeys the data-processing inequality.
    Cost per report: one word, one comparison.
    Error: ``n·Var(p̂_1) = q(1−q)/(1 − Q(1|0) − Q(0|1))²``, where q is the probability of report 1.
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
        require_context(context, "BinaryResponse(context)", 'sf.Uniform(["no", "yes"], 1)')
        if context.size != 2:
            raise ContextMismatch(
                f"a binary response needs a context with two symbols; this one has {context.size}."
            )
        super().__init__(context)
        self.word_bits = word_bits
        self._a = context.exact_epsilon(0, 1)
        self._b = context.exact_epsilon(1, 0)
        if 0 in (self._a, self._b):
            raise NothingToLearn(
                "this context leaves nothing to learn: an entry of 0 makes the two rows of every "
                "mechanism equal. Use positive entries."
            )

    def _set_flips(self, zero_to_one: int, one_to_zero: int) -> None:
        """Set the number of words for which each symbol reports the other symbol."""
        self._flips = (zero_to_one, one_to_zero)
        self._flip_array = np.array(self._flips, dtype=np.uint64)

    def to_record(self) -> Json:
        """Return the channel's integers as JSON-compatible data."""
        rows = format_rows([self.integer_row(0), self.integer_row(1)])
        return {"kind": self.kind, "word_bits": self.word_bits, "rows": rows}

    @classmethod
    def from_record(cls, record: Fields, context: Context) -> Self:
        """Return the mechanism stored in a record, for the given context."""
        fields = require_fields(record, "mechanism", ("kind", "word_bits", "rows"))
        word_bits = require_word_bits(fields["word_bits"])
        rows = parse_rows(fields["rows"])
        mechanism = cls.__new__(cls)
        mechanism._set_context(context, word_bits)
        IntegerChannel(rows, word_bits)  # raises InvalidContext if the rows are not a channel
        total = mechanism.denominator
        is_binary = len(rows) == 2 and len(rows[0]) == 2
        if not is_binary or rows[0][1] + rows[1][0] >= total:
            raise ContextMismatch(
                "a binary response must have two rows of two entries and flip less than half of "
                "the time on average."
            )
        mechanism._set_flips(rows[0][1], rows[1][0])
        return mechanism

    def with_word_bits(self, word_bits: int) -> Self:
        """Return the same mechanism with words of ``word_bits`` bits."""
        return type(self)(self.context, word_bits=word_bits)

    def _respond(self, symbols: PerPerson, words: KernelWords) -> PerPerson:
        """Report the other symbol for the lowest words, and the true symbol for all others."""
        is_flipped = words[0] < look_up(self._flip_array, symbols)
        return symbols ^ is_flipped

    def integer_row(self, x: int) -> list[int]:
        """Return, for each report, how many words make symbol x produce it."""
        flips = self._flips[x]
        row = [flips, flips]
        row[x] = self.denominator - flips
        return row

    def ideal_row(self, x: int) -> Floats:
        """Return the row of x from the formula, in a form that is valid for infinite a and b."""
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
        """The scores that undo the channel on average."""
        return BinaryScores(self)


class BinaryScores(DenseScores):
    """The scores of a binary response: the inverse of its channel matrix."""

    mechanism: BinaryResponse

    def exact_column(self, y: int) -> list[Fraction]:
        """Return the scores of report y.

        ``p̂_1 = (f(1) − Q(1|0)) / (1 − Q(1|0) − Q(0|1))`` and ``p̂_0 = 1 − p̂_1``.
        """
        n01, n10 = self.mechanism._flips
        N = self.mechanism.denominator
        score_of_one = Fraction(y * N - n01, N - n01 - n10)
        return [1 - score_of_one, score_of_one]
