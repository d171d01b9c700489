"""Answers: people's values, from wherever data people keep them, as symbols of a domain."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from sfumato.domains import Domain, GridDomain
from sfumato.domains.domain import unknown_value
from sfumato.errors import InvalidSymbols
from sfumato.foundation.arrays import Arrow, Symbols

__all__ = ["Lookup", "symbols_of", "symbols_of_column"]


def symbols_of(domain: Domain, answers: Any) -> Symbols:  # noqa: ANN401 - anything that holds a column
    """The symbols of answers: a list, a NumPy array, or a column of Arrow, pandas or polars (PyCapsule interface).

    Positions (for grids) are pairs (latitude, longitude).
    """
    if hasattr(answers, "__arrow_c_stream__") or hasattr(answers, "__arrow_c_array__"):
        return symbols_of_column(_arrow_column(answers), Lookup(domain))
    if isinstance(answers, str | bytes) or not isinstance(answers, Iterable):
        raise InvalidSymbols("answers must be a list or a column of values, one per person.")
    return domain.symbols(answers)


class Lookup:
    """The symbols of distinct values, kept until others come: one dictionary often serves many batches of a file."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._values: Any = None
        self._symbols: Symbols = np.empty(0, dtype=np.int64)

    def symbols(self, values: Arrow) -> Symbols:
        """The symbol of each value of an Arrow array, −1 where there is none; and one more, for missing values."""
        if self._values is None or not values.equals(self._values):
            found = [self.domain.find(value) for value in (*values.to_pylist(), None)]
            self._values, self._symbols = values, np.array(found, dtype=np.int64)
        return self._symbols


def symbols_of_column(column: Arrow, lookup: Lookup) -> Symbols:
    """The symbols of an Arrow column; each distinct value is looked up once. Missing values are unknown."""
    import pyarrow as pa

    if isinstance(lookup.domain, GridDomain):
        raise InvalidSymbols(
            "positions are two columns: pass latitudes and longitudes to the domain's symbols_at."
        )
    parts = [np.empty(0, dtype=np.int64)]
    done = 0
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        parts.append(_coded_symbols(*_coded(chunk, lookup), done, len(column)))
        done += len(chunk)
    return np.concatenate(parts)


def _coded(chunk: Arrow, lookup: Lookup) -> tuple[Symbols, Arrow]:
    """The symbols of distinct values, and which of them each person has.

    Errors on the way quote values or hold them, so ours is raised when they are gone.
    """
    import pyarrow as pa

    with suppress(pa.ArrowException, ValueError, OverflowError):
        coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        # Widened: a narrow index type may have no room for the code of missing values.
        return lookup.symbols(coded.dictionary), coded.indices.cast("int64")
    raise InvalidSymbols("answers must be a column of text (in UTF-8) or whole numbers.")


def _coded_symbols(of_value: Symbols, indices: Arrow, before: int, people: int) -> Symbols:
    """Symbols of dictionary-encoded values; errors give positions in the whole column."""
    codes = indices.fill_null(of_value.size - 1).to_numpy(zero_copy_only=False)
    symbols = of_value[codes]
    if (symbols < 0).any():
        raise unknown_value(before + np.flatnonzero(symbols < 0), people)
    return symbols


def _arrow_column(answers: Any) -> Arrow:  # noqa: ANN401 - any column
    import pyarrow as pa

    if isinstance(answers, pa.Array | pa.ChunkedArray):
        return answers
    if hasattr(answers, "__arrow_c_stream__"):
        column = pa.chunked_array(answers)
        if pa.types.is_struct(column.type):
            raise InvalidSymbols("answers must be one column; found a table. Pick a column.")
        return column
    return pa.array(answers)
