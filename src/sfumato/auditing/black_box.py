"""Query a black box that returns reports of given symbols, and count the reports.

A client may change over time, for example with a public cohort that differs every day, and still
keep its promise at all times. If an audit drew all samples of one symbol before those of the next,
such a change would look like a difference between the symbols. So symbols are queried in *blocks*
that contain many symbols. A change between blocks then affects all symbols equally.

Inside a block, symbols are queried in random order. A box that accepts many symbols is called once
per block. A box that accepts a symbol and a count is called once for each symbol in the block.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.contexts import Context
from sfumato.errors import ContextMismatch, InvalidArgument, NotEnoughReports, ReportRejected
from sfumato.foundation.arrays import Symbols
from sfumato.mechanisms import Mechanism
from sfumato.randomness import WordSource
from sfumato.survey import Survey

ReturnedReports = Any
"""An array or another iterable of reports, as returned by the audited code."""

Randomizer = Callable[[int, int], ReturnedReports]
"""``randomize(symbol, count)`` returns ``count`` independent, hashable reports of the symbol."""

Histogram = Counter[Hashable]
"""The number of times each report was sent."""

Counts = NDArray[np.int64]
"""Numbers of reports."""

_REPORTS_PER_CALL = 128  # on average, for a function that accepts a symbol and a count
_SYMBOLS_PER_CALL = 2**14  # for a function that accepts many symbols


class PerSymbolBox:
    """A black box that wraps a function of one symbol and a count."""

    def __init__(self, randomize: Randomizer) -> None:
        self.randomize = randomize

    def block_size(self, symbol_count: int) -> int:
        """Return a block size small enough for the box to change little within a block."""
        return _REPORTS_PER_CALL * symbol_count

    def sample(
        self, symbols: Symbols, counts: Counts, source: WordSource
    ) -> Iterator[tuple[int, ReturnedReports]]:
        """Yield each symbol with ``counts[i]`` reports; call the function once for each symbol.

        ``source`` determines the order of the queries.
        """
        for index in _shuffle(np.flatnonzero(counts), source).tolist():
            symbol = int(symbols[index])
            yield symbol, self.randomize(symbol, int(counts[index]))


class BatchBox:
    """A black box that wraps a function of many symbols, which returns one report for each.

    The box can also be called, as a ``Randomizer``. ``restart``, if given, returns the first report
    of a randomizer that has just been started, for a symbol.
    """

    def __init__(
        self,
        randomize: Callable[[Symbols], ReturnedReports],
        restart: Callable[[int], Hashable] | None = None,
    ) -> None:
        self._randomize = randomize
        self.restart = restart

    def __call__(self, symbol: int, count: int) -> ReturnedReports:
        """Return ``count`` reports of one symbol."""
        return self._randomize(np.full(count, symbol))

    def block_size(self, symbol_count: int) -> int:
        """Return the number of symbols per call."""
        return _SYMBOLS_PER_CALL

    def sample(
        self, symbols: Symbols, counts: Counts, source: WordSource
    ) -> tuple[Symbols, ReturnedReports]:
        """Return the queries of a block, in random order, and their reports, from one call."""
        queries = _shuffle(np.repeat(symbols, counts), source)
        return queries, self._randomize(queries)


def split_by_symbol(
    symbols: Symbols, queries: Symbols, reports: ReturnedReports
) -> Iterator[tuple[int, ReturnedReports]]:
    """Yield each symbol with the reports of its queries."""
    for symbol in symbols.tolist():
        positions = np.flatnonzero(queries == symbol)
        if isinstance(reports, np.ndarray):
            yield symbol, reports[positions]
        else:
            yield symbol, [reports[position] for position in positions.tolist()]


def make_black_box(
    randomizer: object, context: Context | None
) -> tuple[PerSymbolBox | BatchBox, Context]:
    """Return a black box to query, and the promise to test.

    A mechanism is queried only through its ``privatize`` method, and a survey through that of its
    mechanism.
    """
    if isinstance(randomizer, Survey | Mechanism):
        promise = randomizer.context if context is None else context
        if promise.size != randomizer.context.size:
            raise ContextMismatch(
                f"the context has {promise.size} symbols, but the audited randomizer has "
                f"{randomizer.context.size}."
            )
        mechanism = randomizer.mechanism if isinstance(randomizer, Survey) else randomizer
        return BatchBox(mechanism.privatize), promise
    if not callable(randomizer):
        raise InvalidArgument(
            "the randomizer must be a mechanism, a survey, or a function of a symbol and a count; "
            f"got {type(randomizer).__name__}."
        )
    if context is None:
        raise InvalidArgument("a bare function has no privacy context. Pass context=.")
    return randomizer if isinstance(randomizer, BatchBox) else PerSymbolBox(randomizer), context


def _shuffle(values: Symbols, source: WordSource) -> Symbols:
    words = source.take(values.size, 1)[:, 0]
    return values[np.argsort(words, kind="stable")]


# --- count reports --------------------------------------------------------------------------------


class _AnyOther:
    """A placeholder for all reports that are not counted individually; no client can send it."""

    def __repr__(self) -> str:
        return "(any other)"


ANY_OTHER = _AnyOther()


def table_of_counts(histograms: Sequence[Histogram], reports: Sequence[Hashable]) -> Counts:
    """Return a matrix of counts: a row for each symbol, a column for each of ``reports``.

    The last column counts all other reports, so each row adds up to its symbol's sample count.
    """
    table = np.empty((len(histograms), len(reports) + 1), dtype=np.int64)
    for row, histogram in enumerate(histograms):
        listed_counts = [histogram[report] for report in reports]
        table[row, :-1] = listed_counts
        table[row, -1] = histogram.total() - sum(listed_counts)
    return table


def count_reports(reports: ReturnedReports, expected_count: int) -> Histogram:
    """Return how often each report occurs; there must be ``expected_count`` reports in total.

    Reports that compare equal are counted together. All NaNs count as the same report.

    >>> sorted(count_reports(["no", "yes", "no"], 3).items())
    [('no', 2), ('yes', 1)]
    """
    rows = _report_rows(reports)
    if len(rows) != expected_count:
        raise NotEnoughReports(
            f"randomize must return exactly {expected_count} reports for a symbol; it returned "
            f"{len(rows)}."
        )
    if isinstance(rows, np.ndarray):
        values, counts = np.unique(rows, axis=0, return_counts=True)
        return _merge_nans(zip(_as_hashables(values), counts.tolist(), strict=True))
    try:
        count_by_report = Counter(rows)
    except TypeError:
        raise ReportRejected(
            "reports must be hashable: numbers, text, bytes, tuples of these, or an array with one "
            "row per report."
        ) from None
    return _merge_nans(count_by_report.items())


def list_reports(reports: ReturnedReports, expected_count: int) -> list[Hashable]:
    """Return the reports in their order; there must be ``expected_count``.

    >>> list_reports(np.array([[1, 0], [0, 0]]), 2)
    [(1, 0), (0, 0)]
    """
    rows = _report_rows(reports)
    count_reports(rows, expected_count)
    listed = _as_hashables(rows) if isinstance(rows, np.ndarray) else rows
    return list(map(_normalize_nan, listed))


def _report_rows(reports: ReturnedReports) -> Sequence[Any] | np.ndarray[Any, Any]:
    """Return the reports as a sequence or array; reject text and objects that are not iterable."""
    if isinstance(reports, np.ndarray) and reports.ndim:
        return _as_hashables(reports) if reports.dtype == object else reports
    if isinstance(reports, Iterable) and not isinstance(reports, str | bytes | np.ndarray):
        return reports if isinstance(reports, Sequence) else list(reports)
    raise ReportRejected(
        f"randomize must return an array or a list of reports; got {type(reports).__name__}."
    )


def _as_hashables(reports: np.ndarray[Any, Any]) -> list[Any]:
    """Return the entries of a vector unchanged, and the rows of a matrix as tuples."""
    if reports.ndim == 1:
        return list(reports.tolist())
    rows = reports.reshape(len(reports), math.prod(reports.shape[1:]))
    return list(map(tuple, rows.tolist()))


def _merge_nans(counts: Iterable[tuple[Hashable, int]]) -> Histogram:
    """Return a histogram in which all NaNs are the same report, although they are not equal."""
    histogram: Histogram = Counter()
    for report, count in counts:
        histogram[_normalize_nan(report)] += count
    return histogram


def _normalize_nan(report: Hashable) -> Hashable:
    if isinstance(report, tuple):
        return tuple(map(_normalize_nan, report))
    is_nan = isinstance(report, Number) and report != report
    return math.nan if is_nan else report
