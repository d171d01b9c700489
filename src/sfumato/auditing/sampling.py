"""Samples of a black box: reports of a symbol, counted as they come and not kept."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from sfumato.arrays import Symbols
from sfumato.contexts import Context
from sfumato.errors import ContextMismatch, InvalidSymbols, NotEnoughReports, ReportRejected
from sfumato.mechanisms import Mechanism
from sfumato.survey import Survey

__all__ = ["Histogram", "Randomizer", "black_box", "histogram", "table"]

Randomizer = Callable[[int, int], Any]
"""``randomize(symbol, count)``: so many independent reports of a symbol, an array or a sequence of hashable things."""

Histogram = Counter[Hashable]
"""How often each report was sent."""

_CHUNK = 2**16  # reports that are held at a time


def black_box(audited: object, context: Context | None) -> tuple[Randomizer, Context]:
    """What is called, and what is promised: of a mechanism or a survey ``privatize`` is all that is looked at."""
    if isinstance(audited, Survey | Mechanism):
        promise = audited.context if context is None else context
        if promise.size != audited.context.size:
            raise ContextMismatch(
                f"the context has {promise.size} symbols, and what is audited has {audited.context.size}."
            )
        return _privatizer(audited.mechanism if isinstance(audited, Survey) else audited), promise
    if not callable(audited):
        raise InvalidSymbols(
            "randomize must be a function of a symbol and a count, a mechanism or a survey; "
            f"found {type(audited).__name__}."
        )
    if context is None:
        raise InvalidSymbols("a function promises nothing by itself: pass the context that it should keep.")
    return audited, context


def _privatizer(mechanism: Mechanism) -> Randomizer:
    return lambda symbol, count: mechanism.privatize(np.full(count, symbol))


def histogram(randomize: Randomizer, symbol: int, count: int, tick: Callable[[int], None]) -> Histogram:
    """The reports of ``count`` calls with one symbol, counted. ``tick`` hears how many were drawn."""
    found: Histogram = Counter()
    for start in range(0, count, _CHUNK):
        size = min(_CHUNK, count - start)
        found.update(_counted(randomize(symbol, size), size))
        tick(size)
    return found


def table(histograms: Iterable[Histogram], reports: Sequence[Hashable]) -> Symbols:
    """Counts as a matrix: a row for each symbol, a column for each of these reports; others are left out."""
    return np.array([[counted[report] for report in reports] for counted in histograms], dtype=np.int64)


def _counted(reports: Any, size: int) -> Histogram:  # noqa: ANN401 - whatever a stranger's code returns
    found = _listed(reports)
    if len(found) != size:
        raise NotEnoughReports(f"randomize was asked for {size} reports of a symbol, and returned {len(found)}.")
    if isinstance(found, np.ndarray) and found.dtype != object:
        return _counted_array(found)
    try:
        return Counter(found)
    except TypeError:
        raise ReportRejected(
            "reports must be hashable, so that they can be counted: numbers, text, bytes or tuples of them, or an "
            "array with a row for each report."
        ) from None


def _listed(reports: Any) -> Sequence[Any] | np.ndarray[Any, Any]:  # noqa: ANN401
    """Reports in a row; text by itself is one report, not many."""
    if isinstance(reports, np.ndarray) and reports.ndim:
        return reports
    if isinstance(reports, Iterable) and not isinstance(reports, str | bytes | np.ndarray):
        return reports if isinstance(reports, Sequence) else list(reports)
    raise ReportRejected(f"randomize must return an array or a list of reports; found {type(reports).__name__}.")


def _counted_array(reports: np.ndarray[Any, Any]) -> Histogram:
    """Numbers by value; rows of numbers, such as vectors of bits, as tuples."""
    values, counts = np.unique(reports, axis=0, return_counts=True)
    keys = values.tolist() if values.ndim == 1 else map(tuple, values.reshape(len(values), -1).tolist())
    return Counter(dict(zip(keys, counts.tolist(), strict=True)))
