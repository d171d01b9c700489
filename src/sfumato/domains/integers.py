"""A domain of consecutive integers: a million symbols and no list of labels."""

from collections.abc import Iterable, Sequence

import numpy as np

from sfumato.domains.domain import Domain, Label, unknown_value
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.canonical import Json
from sfumato.foundation.records import require_fields

__all__ = ["IntegerDomain"]

_LARGEST = 2**31


class IntegerDomain(Domain):
    """The integers ``start … start + size − 1``, in order.

    >>> ages = IntegerDomain(100, start=18)
    >>> ages.symbols([18, 20, 117])
    array([ 0,  2, 99])
    """

    kind = "range"

    def __init__(self, size: int, *, start: int = 0) -> None:
        if isinstance(size, bool) or not isinstance(size, int | np.integer):
            raise InvalidContext(
                f"the size of a domain must be an integer; found {type(size).__name__}."
            )
        if not 1 <= size <= _LARGEST:
            raise InvalidContext(f"a domain has between 1 and 2^31 symbols; found {size}.")
        if isinstance(start, bool) or not isinstance(start, int | np.integer) or abs(start) > 2**52:
            raise InvalidContext("start must be an integer of at most 2^52 in absolute value.")
        self._range = range(int(start), int(start) + int(size))
        self._other = None

    @property
    def labels(self) -> Sequence[Label]:
        """The integers, as a range."""
        return self._range

    @property
    def size(self) -> int:
        """The number of symbols, k in the paper."""
        return len(self._range)

    def symbols(self, values: Iterable[object]) -> Symbols:
        """The symbols of integer values; anything else, floats included, is an ``UnknownValue``."""
        found = values if isinstance(values, np.ndarray) else np.array(list(values), dtype=object)
        if found.dtype.kind == "O":
            whole = [
                isinstance(value, int | np.integer)
                and not isinstance(value, bool)
                and int(value) in self._range
                for value in found
            ]
            good = np.array(whole, dtype=np.bool_)
        elif found.dtype.kind in "iu":
            good = (found >= self._range.start) & (found < self._range.stop)
        else:
            good = np.zeros(found.shape, dtype=np.bool_)
        if not good.all():
            raise unknown_value(np.flatnonzero(~good), found.size)
        symbols: Symbols = found.astype(np.int64) - self._range.start
        return symbols

    def find(self, value: object) -> int:
        """The symbol of one value, −1 if it is not in the range."""
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        return int(value) - self._range.start if whole and int(value) in self._range else -1  # type: ignore[call-overload]

    def label_symbols(self, labels: Iterable[Label], name: str) -> Symbols:
        """The symbols of integers that a *designer* wrote down."""
        symbols: list[int] = []
        for label in labels:
            if (
                isinstance(label, bool)
                or not isinstance(label, int | np.integer)
                or int(label) not in self._range
            ):
                raise InvalidContext(
                    f"{name} names {label!r}, which is not one of the integers "
                    f"{self._range.start} … {self._range.stop - 1}."
                )
            symbols.append(int(label) - self._range.start)
        return np.array(symbols, dtype=np.int64)

    def record(self) -> Json:
        """The domain as plain data, for fingerprints and files."""
        return {"kind": self.kind, "size": self.size, "start": self._range.start}

    @classmethod
    def of_record(cls, record: object) -> "IntegerDomain":
        """Read the record of a range of integers."""
        fields = require_fields(record, "domain", ("kind", "size", "start"))
        return IntegerDomain(fields["size"], start=fields["start"])

    def __repr__(self) -> str:
        return f"IntegerDomain({self.size}, start={self._range.start})"
