"""Samples of a black box: reports of a symbol, counted as they come and not kept."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from sfumato.errors import NotEnoughReports, ReportRejected
from sfumato.foundation.arrays import Symbols

__all__ = ["ANY_OTHER", "Histogram", "counted", "table"]

Histogram = Counter[Hashable]
"""How often each report was sent."""


class _AnyOther:
    """Stands for all reports that are not listed, where an event is shown. No client can send it."""

    def __repr__(self) -> str:
        return "(any other)"


ANY_OTHER = _AnyOther()


def table(histograms: Sequence[Histogram], reports: Sequence[Hashable]) -> Symbols:
    """Counts as a matrix: a row for each symbol, a column for each of these reports, and a last one for any other.

    So no report is lost: a row adds up to the samples of its symbol. What is never sent twice is counted at the end.
    """
    listed = np.array(
        [[found[report] for report in reports] for found in histograms], dtype=np.int64
    )
    totals = np.array([found.total() for found in histograms])
    return np.column_stack([listed, totals - listed.sum(axis=1)])


def counted(reports: Any, size: int) -> Histogram:  # noqa: ANN401 - whatever a stranger's code returns
    """How often each report occurs among ``size`` of them. Reports that Python takes for equal are one report.

    >>> sorted(counted(["no", "yes", "no"], 3).items())
    [('no', 2), ('yes', 1)]
    """
    found = _listed(reports)
    if len(found) != size:
        raise NotEnoughReports(
            f"randomize was asked for {size} reports of a symbol, and returned {len(found)}."
        )
    if isinstance(found, np.ndarray):
        return _gathered(*_distinct(found))
    try:
        by_report = Counter(found)
    except TypeError:
        raise ReportRejected(
            "reports must be hashable, so that they can be counted: numbers, text, bytes or tuples of them, or an "
            "array with a row for each report."
        ) from None
    return _gathered(by_report.keys(), by_report.values())


def _listed(reports: Any) -> Sequence[Any] | np.ndarray[Any, Any]:  # noqa: ANN401
    """Reports in a row; text by itself is one report, not many. Rows of objects become tuples."""
    if isinstance(reports, np.ndarray) and reports.ndim:
        return reports if reports.dtype != object else _rows(reports)
    if isinstance(reports, Iterable) and not isinstance(reports, str | bytes | np.ndarray):
        return reports if isinstance(reports, Sequence) else list(reports)
    raise ReportRejected(
        f"randomize must return an array or a list of reports; found {type(reports).__name__}."
    )


def _distinct(reports: np.ndarray[Any, Any]) -> tuple[Sequence[Hashable], Iterable[int]]:
    """Numbers by value; rows of numbers, such as vectors of bits, as tuples."""
    values, counts = np.unique(reports, axis=0, return_counts=True)
    return _rows(values), counts.tolist()


def _rows(reports: np.ndarray[Any, Any]) -> list[Any]:
    if reports.ndim == 1:
        return list(reports.tolist())
    return [
        tuple(row) for row in reports.reshape(len(reports), math.prod(reports.shape[1:])).tolist()
    ]


def _gathered(reports: Iterable[Hashable], counts: Iterable[int]) -> Histogram:
    found: Histogram = Counter()
    for report, count in zip(reports, counts, strict=True):
        found[_settled(report)] += count
    return found


def _settled(report: Hashable) -> Hashable:
    """The report, with one NaN for all: none equals another, so that no two would be counted together."""
    if isinstance(report, tuple):
        return tuple(map(_settled, report))
    return math.nan if isinstance(report, Number) and report != report else report
