"""Convert answers to symbols, and store reports with the fingerprint of their survey."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.domains.grid import coordinates, split_positions
from sfumato.errors import InvalidSymbols
from sfumato.foundation.arrays import Arrow, Symbols
from sfumato.foundation.formatting import format_count, plural
from sfumato.foundation.notebook import facts_html
from sfumato.survey.answer_columns import AnswerColumns
from sfumato.survey.cell_lookup import MISSING, UNKNOWN, CellLookup, describe_cell
from sfumato.survey.row_counts import RowCounts, RowRules

__all__ = ["AnswerBatch", "AnswerReader", "ReportBatch", "as_wall_clock"]

_INTEGER_PATTERN = r"^-?[0-9]{1,16}$"
_MAX_DESCRIBED_CELLS = 1000  # unknown cells to look at in each batch
_MAX_WHOLE_FLOAT = 2.0**53  # larger floats do not determine an integer
_INTERVAL_TYPES = ("pandas.interval",)


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
        has_symbol = self.symbol_of_row >= 0
        return self.symbol_of_row if has_symbol.all() else self.symbol_of_row[has_symbol]


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
        self._has_plain_integers = isinstance(domain, IntegerDomain) and not columns.missing_codes
        self._cached_values: Any = None
        self._cached_codes: Symbols = np.empty(0, dtype=np.int64)

    def read(self, answers: Any) -> AnswerBatch:  # noqa: ANN401 - any column
        """Read answers.

        ``answers`` is a list, a NumPy array, or an Arrow, pandas or polars column (anything with
        the Arrow PyCapsule interface). Positions on a grid are (latitude, longitude) pairs.
        """
        if hasattr(answers, "__arrow_c_stream__") or hasattr(answers, "__arrow_c_array__"):
            return self.read_column(_arrow_column(answers))
        if isinstance(answers, str | bytes) or not isinstance(answers, Iterable):
            raise InvalidSymbols("answers must be a list or a column of values, one per person.")
        if isinstance(self.domain, GridDomain):
            return self.read_positions(*split_positions(answers))
        if isinstance(answers, np.ndarray) and answers.dtype.kind in "iuf":
            return self.read_column(_arrow_array(answers))
        cells = list(answers)
        codes = np.fromiter(self._find_all(cells), dtype=np.int64, count=len(cells))
        return self._apply_rules(codes, lambda index: cells[index])

    def read_column(self, column: Arrow) -> AnswerBatch:
        """Read an Arrow column."""
        import pyarrow as pa

        if isinstance(self.domain, GridDomain):
            raise InvalidSymbols(
                "positions need two columns: pass latitudes and longitudes to the domain's "
                "symbols_at."
            )
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
        codes[np.isnan(latitude) | np.isnan(longitude)] = MISSING
        return self._apply_rules(codes)

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
        encoded = chunk if is_dictionary else as_wall_clock(chunk).dictionary_encode()
        values = encoded.dictionary
        if self._cached_values is None or not values.equals(self._cached_values):
            codes = [self._lookup.find(value) for value in values.to_pylist()]
            self._cached_values = values
            self._cached_codes = np.array([*codes, MISSING], dtype=np.int64)
        # Widen the indices first: the index for missing values may not fit in a narrow type.
        indices = encoded.indices.cast("int64").fill_null(self._cached_codes.size - 1)
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
        if codes.size == 0 or codes.min() >= 0:
            return AnswerBatch(codes, RowCounts(codes.size))
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
        )
        missing_symbol = self.rules.missing_symbol
        symbols = codes.copy()
        symbols[missing_rows] = UNKNOWN if missing_symbol is None else missing_symbol
        if self.rules.other_symbol is not None:
            symbols[unknown_rows] = self.rules.other_symbol
        return AnswerBatch(symbols, counts)


def _arrow_column(answers: Any) -> Arrow:  # noqa: ANN401 - any column
    import pyarrow as pa

    if isinstance(answers, pa.Array | pa.ChunkedArray):
        return answers
    if not hasattr(answers, "__arrow_c_stream__"):
        return _arrow_array(answers)
    column = None
    with suppress(pa.ArrowException, TypeError, ValueError):  # the error may quote an answer
        column = pa.chunked_array(answers)
    if column is None:
        raise InvalidSymbols(
            "answers must be a column of text, numbers or dates. Convert it, for example with "
            "astype(str)."
        )
    if pa.types.is_struct(column.type):
        raise InvalidSymbols("answers must be one column; got a table. Select a column.")
    return column


def _arrow_array(answers: Any) -> Arrow:  # noqa: ANN401 - any column
    import pyarrow as pa

    with suppress(pa.ArrowException, TypeError, ValueError):  # the error may quote an answer
        return pa.array(answers)
    raise InvalidSymbols("answers must be a column of text, numbers or dates.")


def _is_interval(type_: Arrow) -> bool:
    """Whether a column holds pandas intervals, as ``pandas.cut`` makes them."""
    import pyarrow as pa

    value_type = type_.value_type if pa.types.is_dictionary(type_) else type_
    is_extension = getattr(value_type, "extension_name", "") in _INTERVAL_TYPES
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

    if not pa.types.is_timestamp(chunk.type):
        return chunk
    local = chunk if chunk.type.tz is None else pc.local_timestamp(chunk)
    return local.cast(pa.timestamp("us"), safe=False)  # Python has no nanoseconds


def _whole_numbers(numbers: Arrow) -> Arrow:
    """Return floats as integers; those that are not whole numbers become null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    doubles = numbers.cast(pa.float64())
    is_whole = pc.equal(doubles, pc.floor(doubles))
    is_small = pc.less(pc.abs(doubles), _MAX_WHOLE_FLOAT)
    is_integer = pc.fill_null(pc.and_(is_whole, is_small), False)
    return pc.if_else(is_integer, doubles, None).cast(pa.int64())


def _parse_integers(texts: Arrow) -> Arrow:
    """Parse whole numbers of at most 16 digits, such as 65 or 65.0. Anything else becomes null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # At most two zeros: "1.000" may also mean one thousand.
    digits = pc.replace_substring_regex(texts, r"\.0{1,2}$", "")
    matches = pc.match_substring_regex(digits, _INTEGER_PATTERN)
    is_integer = pc.fill_null(matches, False)
    return pc.if_else(is_integer, digits, None).cast(pa.int64())
