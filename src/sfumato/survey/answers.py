"""Turn answers into symbols, and keep reports together with their survey's fingerprint."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.domains import Domain, GridDomain
from sfumato.domains.domain import unknown_value_error
from sfumato.errors import InvalidSymbols
from sfumato.foundation.arrays import Arrow, Symbols


@dataclass(frozen=True, eq=False, repr=False)
class ReportBatch:
    """Reports as integers, with the fingerprint of the survey that they answer."""

    numbers: NDArray[np.uint32]
    fingerprint: str

    def __len__(self) -> int:
        return len(self.numbers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReportBatch):
            return NotImplemented
        return self.fingerprint == other.fingerprint and np.array_equal(self.numbers, other.numbers)

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.numbers.tobytes()))

    def __repr__(self) -> str:
        return f"ReportBatch({len(self)} reports, fingerprint={self.fingerprint[:12]}…)"


def symbols_of(domain: Domain, answers: Any) -> Symbols:  # noqa: ANN401 - any column
    """Return the symbols of answers.

    ``answers`` is a list, a NumPy array, or a column of Arrow, pandas or polars (by the PyCapsule
    interface). Positions on a grid are pairs (latitude, longitude).
    """
    if hasattr(answers, "__arrow_c_stream__") or hasattr(answers, "__arrow_c_array__"):
        return symbols_of_column(_arrow_column(answers), Lookup(domain))
    if isinstance(answers, str | bytes) or not isinstance(answers, Iterable):
        raise InvalidSymbols("answers must be a list or a column of values, one per person.")
    return domain.symbols(answers)


class Lookup:
    """A cache of the symbols of the last dictionary: batches of a file often share one."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._values: Any = None
        self._symbols: Symbols = np.empty(0, dtype=np.int64)

    def symbols(self, values: Arrow) -> Symbols:
        """Return the symbol of each value of an Arrow array, then that of a missing value.

        A value without a symbol gives −1.
        """
        if self._values is None or not values.equals(self._values):
            symbols = [self.domain.find(value) for value in (*values.to_pylist(), None)]
            self._values = values
            self._symbols = np.array(symbols, dtype=np.int64)
        return self._symbols


def symbols_of_column(column: Arrow, lookup: Lookup) -> Symbols:
    """Return the symbols of an Arrow column; look up each distinct value once.

    A missing value counts as unknown.
    """
    import pyarrow as pa

    if isinstance(lookup.domain, GridDomain):
        raise InvalidSymbols(
            "positions are two columns: pass latitudes and longitudes to the domain's symbols_at."
        )
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [np.empty(0, dtype=np.int64)]
    position = 0
    for chunk in chunks:
        symbols = _chunk_symbols(chunk, lookup)
        unknown = np.flatnonzero(symbols < 0)
        if unknown.size:
            raise unknown_value_error(position + unknown, len(column))
        parts.append(symbols)
        position += len(chunk)
    return np.concatenate(parts)


def _chunk_symbols(chunk: Arrow, lookup: Lookup) -> Symbols:
    """Return the symbols of one chunk, −1 where a value has none.

    Arrow's errors quote or contain values, so raise ours after they are gone.
    """
    import pyarrow as pa

    with suppress(pa.ArrowException, ValueError, OverflowError):
        is_dictionary = pa.types.is_dictionary(chunk.type)
        encoding = chunk if is_dictionary else chunk.dictionary_encode()
        symbols = lookup.symbols(encoding.dictionary)
        # Widen first: a narrow index type may have no room for the code of missing values.
        codes = encoding.indices.cast("int64").fill_null(symbols.size - 1)
        return symbols[codes.to_numpy(zero_copy_only=False)]
    raise InvalidSymbols("answers must be a column of UTF-8 text or integers.")


def _arrow_column(answers: Any) -> Arrow:  # noqa: ANN401 - any column
    import pyarrow as pa

    if isinstance(answers, pa.Array | pa.ChunkedArray):
        return answers
    if not hasattr(answers, "__arrow_c_stream__"):
        return pa.array(answers)
    column = pa.chunked_array(answers)
    if pa.types.is_struct(column.type):
        raise InvalidSymbols("answers must be one column; got a table. Pick a column.")
    return column
