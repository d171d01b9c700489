"""Convert answers to symbols, and store reports with the fingerprint of their survey."""

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
    """Reports, as integers, with the fingerprint of the survey that they answer."""

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


def to_symbols(domain: Domain, answers: Any) -> Symbols:  # noqa: ANN401 - any column
    """Convert answers to symbols.

    ``answers`` is a list, a NumPy array, or an Arrow, pandas or polars column (anything with the
    Arrow PyCapsule interface). Positions on a grid are (latitude, longitude) pairs.
    """
    if hasattr(answers, "__arrow_c_stream__") or hasattr(answers, "__arrow_c_array__"):
        return column_to_symbols(_arrow_column(answers), SymbolLookup(domain))
    if isinstance(answers, str | bytes) or not isinstance(answers, Iterable):
        raise InvalidSymbols("answers must be a list or a column of values, one per person.")
    return domain.symbols(answers)


class SymbolLookup:
    """Looks up the symbols for Arrow values.

    The symbols for the last Arrow dictionary are cached, because batches often share a dictionary.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._cached_values: Any = None
        self._cached_symbols: Symbols = np.empty(0, dtype=np.int64)

    def symbols(self, values: Arrow) -> Symbols:
        """Return the symbol for each value, followed by the symbol for a missing value.

        Values without a symbol map to −1.
        """
        if self._cached_values is None or not values.equals(self._cached_values):
            symbols = [self.domain.find(value) for value in (*values.to_pylist(), None)]
            self._cached_values = values
            self._cached_symbols = np.array(symbols, dtype=np.int64)
        return self._cached_symbols


def column_to_symbols(column: Arrow, lookup: SymbolLookup) -> Symbols:
    """Convert an Arrow column to symbols, looking up each distinct value once.

    A missing value is treated as unknown.
    """
    import pyarrow as pa

    if isinstance(lookup.domain, GridDomain):
        raise InvalidSymbols(
            "positions need two columns: pass latitudes and longitudes to the domain's symbols_at."
        )
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    symbol_arrays = [np.empty(0, dtype=np.int64)]
    offset = 0
    for chunk in chunks:
        symbols = _chunk_to_symbols(chunk, lookup)
        unknown_indices = np.flatnonzero(symbols < 0)
        if unknown_indices.size:
            raise unknown_value_error(offset + unknown_indices, len(column))
        symbol_arrays.append(symbols)
        offset += len(chunk)
    return np.concatenate(symbol_arrays)


def _chunk_to_symbols(chunk: Arrow, lookup: SymbolLookup) -> Symbols:
    """Convert one chunk to symbols; values without a symbol map to −1.

    Arrow's errors may contain people's values, so they are replaced with our own.
    """
    import pyarrow as pa

    with suppress(pa.ArrowException, ValueError, OverflowError):
        is_dictionary = pa.types.is_dictionary(chunk.type)
        encoded = chunk if is_dictionary else chunk.dictionary_encode()
        symbols = lookup.symbols(encoded.dictionary)
        # Widen the indices first: the index for missing values may not fit in a narrow type.
        indices = encoded.indices.cast("int64").fill_null(symbols.size - 1)
        return symbols[indices.to_numpy(zero_copy_only=False)]
    raise InvalidSymbols("answers must be a column of UTF-8 text or integers.")


def _arrow_column(answers: Any) -> Arrow:  # noqa: ANN401 - any column
    import pyarrow as pa

    if isinstance(answers, pa.Array | pa.ChunkedArray):
        return answers
    if not hasattr(answers, "__arrow_c_stream__"):
        return pa.array(answers)
    column = pa.chunked_array(answers)
    if pa.types.is_struct(column.type):
        raise InvalidSymbols("answers must be one column; got a table. Select a column.")
    return column
