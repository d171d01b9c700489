"""Query a black box that answers symbols with reports, and count what it sends.

A client may change with time, say by a public cohort that differs every day, and keep its promise
at every moment. Queried for all samples of one symbol first and for the next symbol later, it would
look as if its reports told the two apart. So symbols come in random order, in *blocks* of many
symbols each. A change from one block to the next then affects all symbols alike.

Inside a block, a box that accepts one symbol at a time gets them in random order too. A box that
accepts a symbol and a count is called once for each symbol of the block, in random order.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from numbers import Number
from typing import Any, Protocol

import numpy as np

from sfumato.contexts import Context
from sfumato.errors import ContextMismatch, InvalidArgument, NotEnoughReports, ReportRejected
from sfumato.foundation.arrays import Symbols
from sfumato.mechanisms import Mechanism
from sfumato.randomness import WordSource
from sfumato.survey import Survey

ReportList = Any
"""An array or a sequence of reports, as returned by the audited code."""

Randomizer = Callable[[int, int], ReportList]
"""``randomize(symbol, count)`` returns ``count`` independent, hashable reports of the symbol."""

Histogram = Counter[Hashable]
"""How often each report was sent."""

_RUN = 128  # average number of reports per call of a function: fewer would cost more than they help
_BLOCK = 2**14  # symbols per call of a box that accepts many


class BlackBox(Protocol):
    """A source of reports that is queried a block of symbols at a time."""

    def block_size(self, symbols: int) -> int:
        """Return how many reports a block should have, if it has ``symbols`` different symbols."""

    def sample(
        self, symbols: Symbols, sizes: Symbols, source: WordSource
    ) -> Iterator[tuple[int, ReportList]]:
        """Yield each symbol with its reports, ``sizes[i]`` of them for ``symbols[i]``.

        The order of the queries is drawn from ``source``.
        """


class CountBox:
    """A black box over a function of a symbol and a count."""

    def __init__(self, randomize: Randomizer) -> None:
        self._randomize = randomize

    def block_size(self, symbols: int) -> int:
        """Return a size so small that little can change within a block."""
        return _RUN * symbols

    def sample(
        self, symbols: Symbols, sizes: Symbols, source: WordSource
    ) -> Iterator[tuple[int, ReportList]]:
        """Call the function once for each symbol."""
        for row in _shuffle(np.flatnonzero(sizes), source).tolist():
            symbol = int(symbols[row])
            yield symbol, self._randomize(symbol, int(sizes[row]))


class BatchBox:
    """A black box over a function that returns one report for each of many symbols, in order.

    It is a ``Randomizer`` too.
    """

    def __init__(self, randomize: Callable[[Symbols], ReportList]) -> None:
        self._randomize = randomize

    def __call__(self, symbol: int, count: int) -> ReportList:
        """Return ``count`` reports of one symbol."""
        return self._randomize(np.full(count, symbol))

    def block_size(self, symbols: int) -> int:
        """Return how many symbols fit into one call."""
        return _BLOCK

    def sample(
        self, symbols: Symbols, sizes: Symbols, source: WordSource
    ) -> Iterator[tuple[int, ReportList]]:
        """Call the function once, with all symbols of the block in random order."""
        queries = _shuffle(np.repeat(symbols, sizes), source)
        reports = self._randomize(queries)
        for symbol in symbols.tolist():
            places = np.flatnonzero(queries == symbol)
            if isinstance(reports, np.ndarray):
                yield symbol, reports[places]
            else:
                yield symbol, [reports[place] for place in places.tolist()]


def black_box(audited: object, context: Context | None) -> tuple[BlackBox, Context]:
    """Return a box to query, and the promise to test.

    A mechanism or a survey is queried through ``privatize`` alone.
    """
    if isinstance(audited, Survey | Mechanism):
        promise = audited.context if context is None else context
        if promise.size != audited.context.size:
            raise ContextMismatch(
                f"the context has {promise.size} symbols, but the audited randomizer has "
                f"{audited.context.size}."
            )
        mechanism = audited.mechanism if isinstance(audited, Survey) else audited
        return BatchBox(mechanism.privatize), promise
    if not callable(audited):
        raise InvalidArgument(
            "randomize must be a function of a symbol and a count, a mechanism or a survey; "
            f"got {type(audited).__name__}."
        )
    if context is None:
        raise InvalidArgument("a bare function has no privacy context. Pass context=.")
    return audited if isinstance(audited, BatchBox) else CountBox(audited), context


def _shuffle(symbols: Symbols, source: WordSource) -> Symbols:
    words = source.take(symbols.size, 1)[:, 0]
    return symbols[np.argsort(words, kind="stable")]


# --- counts of reports ----------------------------------------------------------------------------


class _AnyOther:
    """Stands for all reports that are not listed, in events shown to people.

    No client can send it.
    """

    def __repr__(self) -> str:
        return "(any other)"


ANY_OTHER = _AnyOther()


def count_table(histograms: Sequence[Histogram], reports: Sequence[Hashable]) -> Symbols:
    """Return a matrix of counts: a row for each symbol, a column for each of ``reports``.

    A last column counts all other reports, so that each row adds up to the samples of its symbol.
    """
    table = np.empty((len(histograms), len(reports) + 1), dtype=np.int64)
    for row, histogram in enumerate(histograms):
        listed = [histogram[report] for report in reports]
        table[row, :-1] = listed
        table[row, -1] = histogram.total() - sum(listed)
    return table


def count_reports(reports: ReportList, size: int) -> Histogram:
    """Count how often each of ``size`` reports occurs. Reports that are equal in Python are one.

    >>> sorted(count_reports(["no", "yes", "no"], 3).items())
    [('no', 2), ('yes', 1)]
    """
    rows = _report_rows(reports)
    if len(rows) != size:
        raise NotEnoughReports(
            f"randomize must return {size} reports of a symbol; it returned {len(rows)}."
        )
    if isinstance(rows, np.ndarray):
        values, counts = np.unique(rows, axis=0, return_counts=True)
        return _merge_nans(zip(_as_tuples(values), counts.tolist(), strict=True))
    try:
        by_report = Counter(rows)
    except TypeError:
        raise ReportRejected(
            "reports must be hashable so that they can be counted: numbers, text, bytes or tuples "
            "of them, or an array with a row for each report."
        ) from None
    return _merge_nans(by_report.items())


def _report_rows(reports: ReportList) -> Sequence[Any] | np.ndarray[Any, Any]:
    """Return the reports one after another; a string on its own is one report, not many."""
    if isinstance(reports, np.ndarray) and reports.ndim:
        return _as_tuples(reports) if reports.dtype == object else reports
    if isinstance(reports, Iterable) and not isinstance(reports, str | bytes | np.ndarray):
        return reports if isinstance(reports, Sequence) else list(reports)
    raise ReportRejected(
        f"randomize must return an array or a list of reports; got {type(reports).__name__}."
    )


def _as_tuples(reports: np.ndarray[Any, Any]) -> list[Any]:
    """Return numbers as they are, and rows of numbers, such as vectors of bits, as tuples."""
    if reports.ndim == 1:
        return list(reports.tolist())
    rows = reports.reshape(len(reports), math.prod(reports.shape[1:]))
    return list(map(tuple, rows.tolist()))


def _merge_nans(counts: Iterable[tuple[Hashable, int]]) -> Histogram:
    """Count all NaNs together: no NaN equals another, so each would be a report of its own."""
    histogram: Histogram = Counter()
    for report, count in counts:
        histogram[_with_one_nan(report)] += count
    return histogram


def _with_one_nan(report: Hashable) -> Hashable:
    if isinstance(report, tuple):
        return tuple(map(_with_one_nan, report))
    is_nan = isinstance(report, Number) and report != report
    return math.nan if is_nan else report
