"""Answers: people's values, from wherever data people keep them, as symbols of a domain."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from sfumato.arrays import Symbols
from sfumato.domains import Domain, GridDomain
from sfumato.domains.domain import unknown_value
from sfumato.errors import InvalidSymbols

__all__ = ["symbols_of", "symbols_of_column"]


def symbols_of(domain: Domain, answers: Any) -> Symbols:  # noqa: ANN401 - anything that holds a column
    """The symbols of answers: a list, a NumPy array, or a column of Arrow, pandas or polars (PyCapsule interface).

    Positions (for grids) are pairs (latitude, longitude).
    """
    if hasattr(answers, "__arrow_c_stream__") or hasattr(answers, "__arrow_c_array__"):
        return symbols_of_column(domain, _arrow_column(answers))
    if isinstance(answers, str | bytes) or not isinstance(answers, Iterable):
        raise InvalidSymbols("answers must be a list or a column of values, one per person.")
    return domain.symbols(answers)


def symbols_of_column(domain: Domain, column: Any) -> Symbols:  # noqa: ANN401 - pyarrow is not typed
    """The symbols of an Arrow column; each distinct value is looked up once. Missing values are unknown."""
    import pyarrow as pa

    if isinstance(domain, GridDomain):
        raise InvalidSymbols("positions are two columns: pass latitudes and longitudes to the domain's symbols_at.")
    parts = [np.empty(0, dtype=np.int64)]
    done = 0
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        try:
            coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise InvalidSymbols("answers must be a column of text or whole numbers.") from None
        parts.append(_coded_symbols(domain, coded.dictionary.to_pylist(), coded.indices, done, len(column)))
        done += len(chunk)
    return np.concatenate(parts)


def _coded_symbols(domain: Domain, values: list[object], indices: Any, before: int, people: int) -> Symbols:  # noqa: ANN401
    """Symbols of dictionary-encoded values; errors give positions in the whole column."""
    of_value = np.full(len(values) + 1, -1, dtype=np.int64)
    for i, value in enumerate(values):
        of_value[i] = domain.find(value)
    of_value[-1] = domain.find(None)
    # Widened first: a narrow index type may have no room for the code of missing values.
    codes = indices.cast("int64").fill_null(len(values)).to_numpy(zero_copy_only=False)
    symbols = of_value[codes]
    if (symbols < 0).any():
        raise unknown_value(before + np.flatnonzero(symbols < 0), people)
    return symbols


def _arrow_column(answers: Any) -> Any:  # noqa: ANN401
    import pyarrow as pa

    if isinstance(answers, pa.Array | pa.ChunkedArray):
        return answers
    if hasattr(answers, "__arrow_c_stream__"):
        column = pa.chunked_array(answers)
        if pa.types.is_struct(column.type):
            raise InvalidSymbols("answers must be one column; found a table. Pick a column.")
        return column
    return pa.array(answers)
