"""Convert answers to symbols, and store reports with the fingerprint of their survey."""

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.domains.grid import coordinates, split_positions
from sfumato.errors import InvalidSymbols
from sfumato.foundation.arrays import Arrow, Booleans, Floats, Symbols
from sfumato.foundation.formatting import format_count, plural
from sfumato.foundation.notebook import facts_html
from sfumato.foundation.whole_numbers import WHOLE_FLOAT_LIMIT, WHOLE_NUMBER, ZERO_DECIMALS
from sfumato.survey.answer_columns import AnswerColumns
from sfumato.survey.cell_lookup import MISSING, UNKNOWN, CellLookup, describe_cell
from sfumato.survey.cell_number import cell_number
from sfumato.survey.row_counts import RowCounts, RowRules

__all__ = ["AnswerBatch", "AnswerReader", "ReportBatch", "as_wall_clock", "cells_in"]

_TWO_COLUMNS = (
    "positions need two columns: pass pairs (latitude, longitude), such as "
    'frame[["lat", "lon"]].to_numpy().'
)
_MAX_DESCRIBED_CELLS = 1000  # unknown cells to look at in each batch


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
        return f"ReportBatch({plural(len(self), 'report')}, fingerprint={self.fingerprint[:12]}…)"

    def _repr_html_(self) -> str:
        """Return the number of reports and the fingerprint as HTML, for notebooks."""
        facts = {"reports": format_count(len(self)), "fingerprint": self.fingerprint}
        return facts_html("ReportBatch", facts)


@dataclass(frozen=True, eq=False, repr=False)
class AnswerBatch:
    """The symbol of each row, with −1 for rows that are skipped or refused, and the counts."""

    symbol_of_row: Symbols
    counts: RowCounts

    @property
    def symbols(self) -> Symbols:
        """The symbols of the rows that have one, in order."""
        if not self.counts.missing and not self.counts.unknown:
            return self.symbol_of_row
        return self.symbol_of_row[self.symbol_of_row >= 0]


class AnswerReader:
    """Converts columns of answers to symbols, and counts what becomes of each row.

    Check ``rules`` against the counts of the whole table when all of it has been read, so that an
    error gives the counts of the whole table.

    >>> reader = AnswerReader(Domain(["park", "bar"]), AnswerColumns(missing="skip"))
    >>> batch = reader.read(["park", None, "bar"])
    >>> batch.symbols, batch.counts.missing
    (array([0, 1]), 1)
    """

    def __init__(self, domain: Domain, columns: AnswerColumns) -> None:
        self.domain = domain
        self.rules = RowRules(domain, columns)
        self._lookup = CellLookup(domain, columns)
        has_cell_rules = columns.missing_codes or columns.bins or columns.date is not None
        self._has_plain_integers = isinstance(domain, IntegerDomain) and not has_cell_rules
        self._missing_codes = columns.missing_codes
        self._cached_values: Any = None
        self._cached_codes: Symbols = np.empty(0, dtype=np.int64)

    def read(self, answers: Any) -> AnswerBatch:  # noqa: ANN401 - any column
        """Read answers.

        ``answers`` is a list, a NumPy array, or an Arrow, pandas or polars column (anything with
        the Arrow PyCapsule interface). Positions on a grid are (latitude, longitude) pairs.
        """
        if isinstance(self.domain, GridDomain):
            return self.read_positions(*split_positions(_require_pairs(answers)))
        column = _arrow_column(answers)
        if column is not None:
            return self.read_column(column)
        cells = list(_require_sequence(answers))
        codes = np.fromiter(self._find_all(cells), dtype=np.int64, count=len(cells))
        return self._apply_rules(codes, lambda index: cells[index])

    def read_column(self, column: Arrow) -> AnswerBatch:
        """Read an Arrow column."""
        import pyarrow as pa

        if isinstance(self.domain, GridDomain):
            raise InvalidSymbols(_TWO_COLUMNS)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        symbols = [np.empty(0, dtype=np.int64)]
        counts = RowCounts()
        for chunk in chunks:
            batch = self._read_chunk(chunk)
            symbols.append(batch.symbol_of_row)
            counts += batch.counts
        return AnswerBatch(np.concatenate(symbols), counts)

    def read_positions(self, latitudes: ArrayLike, longitudes: ArrayLike) -> AnswerBatch:
        """Read positions in degrees."""
        if not isinstance(self.domain, GridDomain | H3Domain):
            raise InvalidSymbols("positions need a grid or H3 domain.")
        latitude = coordinates(latitudes)
        longitude = coordinates(longitudes)
        codes = self.domain.cells_at(latitude, longitude)
        codes[self._is_missing(latitude) | self._is_missing(longitude)] = MISSING
        return self._apply_rules(codes)

    def _is_missing(self, degrees: Floats) -> Booleans:
        is_missing = np.isnan(degrees)
        if self._missing_codes:
            is_missing |= np.isin(degrees, _numbers_in(self._missing_codes))
        return is_missing

    def _find_all(self, cells: list[Any]) -> Iterator[int]:
        """Yield the code of each cell, looking up each distinct text once."""
        code_of_text: dict[str, int] = {}
        for cell in cells:
            if type(cell) is not str:
                yield self._lookup.find(cell)
                continue
            code = code_of_text.get(cell)
            if code is None:
                code = self._lookup.find(cell)
                code_of_text[cell] = code
            yield code

    def _read_chunk(self, chunk: Arrow) -> AnswerBatch:
        """Read an Arrow array. Arrow's errors may contain answers, so they are replaced."""
        import pyarrow as pa

        if _is_interval(chunk.type):
            raise InvalidSymbols("answers must be text, but they are intervals. Use astype(str).")
        with suppress(pa.ArrowException, ValueError, OverflowError):
            if self._has_plain_integers and _is_plain(chunk.type):
                codes = self._find_integers(chunk)
            else:
                codes = self._find_distinct(chunk)
            return self._apply_rules(codes, lambda index: chunk[index].as_py())
        raise InvalidSymbols("answers must be a column of UTF-8 text, numbers or dates.")

    def _find_distinct(self, chunk: Arrow) -> Symbols:
        """Return the codes of an array, looking up each distinct value once.

        The codes for the last dictionary are cached, because batches often share a dictionary.
        """
        import pyarrow as pa

        is_dictionary = pa.types.is_dictionary(chunk.type)
        column = chunk if is_dictionary else as_wall_clock(chunk).dictionary_encode()
        values = column.dictionary
        if self._cached_values is None or not values.equals(self._cached_values):
            codes = [self._lookup.find(value) for value in cells_in(values)]
            self._cached_values = values
            self._cached_codes = np.array([*codes, MISSING], dtype=np.int64)
        # Widen the indices first: the index for missing values may not fit in a narrow type.
        indices = column.indices.cast("int64").fill_null(self._cached_codes.size - 1)
        return self._cached_codes[indices.to_numpy(zero_copy_only=False)]

    def _find_integers(self, chunk: Arrow) -> Symbols:
        """Return the codes of an array in a range of integers, without looking up each value."""
        import pyarrow as pa
        import pyarrow.compute as pc

        is_missing = chunk.is_null(nan_is_null=True)
        numbers = chunk
        if _is_text(chunk.type):
            texts = chunk.cast(pa.string())
            is_missing = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(texts), ""), True)
            numbers = _parse_integers(texts)
        elif pa.types.is_floating(chunk.type):
            numbers = _whole_numbers(chunk)
        is_number = numbers.is_valid().to_numpy(zero_copy_only=False)
        values = numbers.fill_null(0).to_numpy(zero_copy_only=False)
        labels = self.domain.labels
        first = int(labels[0])
        is_known = is_number & (values >= first) & (values <= int(labels[-1]))
        codes = np.where(is_known, values.astype(np.int64) - first, UNKNOWN)
        codes[is_missing.to_numpy(zero_copy_only=False)] = MISSING
        return codes

    def _apply_rules(
        self,
        codes: Symbols,
        cell_at: Any = None,  # noqa: ANN401 - a function from an index to a cell
    ) -> AnswerBatch:
        """Replace the codes of missing and unknown cells, and count these cells."""
        decimal_styles = self._lookup.decimal_styles
        if _are_symbols(codes):
            return AnswerBatch(codes, RowCounts(codes.size, decimal_styles=decimal_styles))
        missing_rows = np.flatnonzero(codes == MISSING)
        unknown_rows = np.flatnonzero(codes == UNKNOWN)
        kinds: set[str] = set()
        if cell_at is not None:
            for index in unknown_rows[:_MAX_DESCRIBED_CELLS].tolist():
                kinds.add(describe_cell(cell_at(index)))
        counts = RowCounts(
            codes.size,
            int(missing_rows.size),
            int(unknown_rows.size),
            int(missing_rows[0]) if missing_rows.size else None,
            int(unknown_rows[0]) if unknown_rows.size else None,
            frozenset(kinds),
            decimal_styles,
        )
        missing_symbol = self.rules.missing_symbol
        symbols = codes.copy()
        symbols[missing_rows] = UNKNOWN if missing_symbol is None else missing_symbol
        if self.rules.other_symbol is not None:
            symbols[unknown_rows] = self.rules.other_symbol
        return AnswerBatch(symbols, counts)


def _are_symbols(codes: Symbols) -> bool:
    """Return whether no code stands for a missing or unknown cell."""
    if codes.size == 1:  # NumPy takes much longer for a single answer
        return codes.item() >= 0
    return codes.size == 0 or bool(codes.min() >= 0)


def _numbers_in(texts: Iterable[str]) -> Floats:
    """Return the texts that are numbers, as numbers."""
    numbers = map(cell_number, texts)
    return np.array([number for number in numbers if number is not None], dtype=np.float64)


def _require_pairs(answers: Any) -> Iterable[Any]:  # noqa: ANN401 - any value
    if _is_arrow(answers):
        raise InvalidSymbols(_TWO_COLUMNS)
    return _require_sequence(answers)


def _require_sequence(answers: Any) -> Iterable[Any]:  # noqa: ANN401 - any value
    if isinstance(answers, list | tuple):
        return answers
    is_single = isinstance(answers, str | bytes) or not isinstance(answers, Iterable)
    if is_single or isinstance(answers, Mapping | Set):
        raise InvalidSymbols("answers must be a list or a column of values, one per person.")
    return answers


def _is_arrow(answers: Any) -> bool:  # noqa: ANN401 - any value
    return hasattr(answers, "__arrow_c_stream__") or hasattr(answers, "__arrow_c_array__")


def _arrow_column(answers: Any) -> Arrow | None:  # noqa: ANN401 - any value
    """Return answers as an Arrow column, or ``None`` if they must be looked up one by one."""
    if isinstance(answers, np.ndarray):
        return _column_from_numpy(answers)
    if not _is_arrow(answers):
        return None
    import pyarrow as pa

    if isinstance(answers, pa.Array | pa.ChunkedArray):
        return answers
    if not hasattr(answers, "__arrow_c_stream__"):
        return _arrow_array(answers)
    column = None
    with suppress(*_conversion_errors()):
        column = pa.chunked_array(answers)
    if column is not None:
        return _require_one_column(column)
    if str(getattr(answers, "dtype", "")) == "object":  # a pandas column of several types
        return None
    raise InvalidSymbols(
        "answers must be a column of text, numbers or dates. Convert it, for example with "
        "astype(str)."
    )


def _column_from_numpy(answers: NDArray[Any]) -> Arrow | None:
    if answers.ndim != 1:
        raise InvalidSymbols(
            f"answers must be one column; got an array with {answers.ndim} dimensions."
        )
    if answers.dtype.kind not in "iuf":
        return None
    return _arrow_array(answers.astype(answers.dtype.newbyteorder("="), copy=False))


def _conversion_errors() -> tuple[type[Exception], ...]:
    """Return what Arrow and pandas raise for a column they cannot convert; it may quote answers."""
    import pyarrow as pa

    return pa.ArrowException, OverflowError, TypeError, ValueError


def _require_one_column(column: Arrow) -> Arrow:
    import pyarrow as pa

    if pa.types.is_struct(column.type):
        raise InvalidSymbols("answers must be one column; got a table. Select a column.")
    return column


def _arrow_array(answers: Any) -> Arrow:  # noqa: ANN401 - any column
    import pyarrow as pa

    with suppress(*_conversion_errors()):
        return pa.array(answers)
    raise InvalidSymbols("answers must be a column of text, numbers or dates.")


def _is_interval(type_: Arrow) -> bool:
    """Whether a column holds pandas intervals, as ``pandas.cut`` makes them."""
    import pyarrow as pa

    value_type = type_.value_type if pa.types.is_dictionary(type_) else type_
    is_extension = getattr(value_type, "extension_name", "") == "pandas.interval"
    return bool(is_extension or pa.types.is_struct(value_type))


def _is_text(type_: Arrow) -> bool:
    import pyarrow as pa

    is_string = pa.types.is_string(type_) or pa.types.is_large_string(type_)
    return bool(is_string or pa.types.is_string_view(type_))


def _is_plain(type_: Arrow) -> bool:
    """Whether an array holds text or numbers that are not dictionary-encoded."""
    import pyarrow as pa

    return bool(_is_text(type_) or pa.types.is_integer(type_) or pa.types.is_floating(type_))


def as_wall_clock(chunk: Arrow) -> Arrow:
    """Return times as on the wall clock of their own time zone; other arrays are unchanged."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # Python has no nanoseconds.
    if pa.types.is_duration(chunk.type):
        return chunk.cast(pa.duration("us"), safe=False)
    if pa.types.is_time64(chunk.type):
        return chunk.cast(pa.time64("us"), safe=False)
    if not pa.types.is_timestamp(chunk.type):
        return chunk
    local = chunk if chunk.type.tz is None else pc.local_timestamp(chunk)
    return local.cast(pa.timestamp("us"), safe=False)


def cells_in(values: Arrow) -> list[Any]:
    """Return the values of an Arrow array as cells.

    Narrow floats stay narrow, because a 32-bit 0.1 has more digits as a Python float.
    """
    import pyarrow as pa

    if pa.types.is_float32(values.type) or pa.types.is_float16(values.type):
        return list(values.to_numpy(zero_copy_only=False))
    return list(values.to_pylist())


def _whole_numbers(numbers: Arrow) -> Arrow:
    """Return floats as integers; those that are not whole numbers become null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    doubles = numbers.cast(pa.float64())
    is_whole = pc.equal(doubles, pc.floor(doubles))
    is_small = pc.less(pc.abs(doubles), WHOLE_FLOAT_LIMIT)
    is_integer = pc.fill_null(pc.and_(is_whole, is_small), False)
    return pc.if_else(is_integer, doubles, None).cast(pa.int64())


def _parse_integers(texts: Arrow) -> Arrow:
    """Parse whole numbers of at most 16 digits, such as 65 or 65.0. Anything else becomes null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    digits = pc.replace_substring_regex(texts, f"{ZERO_DECIMALS}$", "")
    matches = pc.match_substring_regex(digits, f"^{WHOLE_NUMBER}$")
    is_integer = pc.fill_null(matches, False)
    return pc.if_else(is_integer, digits, None).cast(pa.int64())
