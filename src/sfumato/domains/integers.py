"""Domains of consecutive integers, which do not need to store their labels."""

from collections.abc import Iterable, Sequence

import numpy as np

from sfumato.domains.domain import Domain, Label, require_column, unknown_value_error
from sfumato.domains.layout import Line
from sfumato.errors import InvalidContext, InvalidSymbols
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.canonical import Json, require_fields
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.numpy_values import require_unmasked

__all__ = ["IntegerDomain"]

_MAX_SIZE = 2**31
_REMEDY = "or widen the domain's range (start and size)"  # a range has no `other` label


class IntegerDomain(Domain):
    """The integers ``start … start + size − 1``, in order.

    >>> ages = IntegerDomain(100, start=18)
    >>> ages.symbols([18, 20, 117])
    array([ 0,  2, 99])
    """

    kind = "range"

    @shows_call("sf.IntegerDomain(100, start=18)")
    def __init__(self, size: int, *, start: int = 0) -> None:
        if isinstance(size, bool) or not isinstance(size, int | np.integer):
            raise InvalidContext(
                f"the size of a domain must be an integer; got {type(size).__name__}."
            )
        if not 1 <= size <= _MAX_SIZE:
            raise InvalidContext(f"a domain must have 1 to 2^31 symbols; got {size}.")
        if isinstance(start, bool) or not isinstance(start, int | np.integer) or abs(start) > 2**52:
            raise InvalidContext("start must be an integer between −2^52 and 2^52.")
        self._range = range(int(start), int(start) + int(size))
        self._other = None

    @property
    def labels(self) -> Sequence[Label]:
        """The integers, as a range."""
        return self._range

    @property
    def size(self) -> int:
        """The number of symbols, k."""
        return len(self._range)

    @property
    def layout(self) -> Line:
        """A line."""
        return Line(self.size)

    @property
    def cells(self) -> Symbols:
        """All symbols."""
        return np.arange(self.size)

    def symbols(self, values: Iterable[object]) -> Symbols:
        """Return the symbols for integers in the range; raise ``UnknownValue`` for other values."""
        require_unmasked(values, "values", InvalidSymbols)
        require_column(values)
        array = values if isinstance(values, np.ndarray) else np.array(list(values), dtype=object)
        is_known = np.zeros(array.shape, dtype=np.bool_)
        if array.dtype.kind == "O":
            is_known = np.array([self._contains(value) for value in array], dtype=np.bool_)
        elif array.dtype.kind in "iu":
            is_known = (array >= self._range.start) & (array < self._range.stop)
        if not is_known.all():
            raise unknown_value_error(np.flatnonzero(~is_known), array.size, _REMEDY)
        symbols: Symbols = array.astype(np.int64) - self._range.start
        return symbols

    def find_label(self, value: object) -> int:
        """Return the symbol for a value, or −1 if it is not in the range."""
        if not self._contains(value):
            return -1
        return int(value) - self._range.start  # type: ignore[call-overload]

    def _find_label(self, label: Label) -> int | None:
        symbol = self.find(label)
        return None if symbol < 0 else symbol

    def _label_noun(self) -> str:
        return f"one of the integers {self._range.start} … {self._range.stop - 1}"

    def _suggestion(self, label: object) -> str:
        """Return nothing: the message already names the first and the last integer."""
        return ""

    def _contains(self, value: object) -> bool:
        """Return whether a value is an integer in the range. Booleans do not count as integers."""
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            return False
        return int(value) in self._range

    def to_record(self) -> Json:
        """Return the domain as JSON-compatible data, for fingerprints and files."""
        return {"kind": self.kind, "size": self.size, "start": self._range.start}

    @classmethod
    def from_record(cls, record: object) -> "IntegerDomain":
        """Return the integer domain stored in a record."""
        fields = require_fields(record, "domain", ("kind", "size", "start"))
        return IntegerDomain(fields["size"], start=fields["start"])

    def __repr__(self) -> str:
        return f"IntegerDomain({self.size}, start={self._range.start})"
