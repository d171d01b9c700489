"""Choose what to test: an event for each promise, and the promises most likely to be broken.

The events S that best distinguish x from x2 are the upper level sets of the likelihood ratio,
``{y : Q(y|x)/Q(y|x2) ≥ t}`` (Neyman and Pearson, 1933). If t is large, S is the single report with
the largest ratio; if t is 1, S contains all reports that favour x. One part of the samples is used
to estimate the ratio of each report, and another to choose the best t. If the same samples were
used for both, rare reports would look informative by chance.

This module does not use the samples of the test.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.black_box import Counts, Histogram, table_of_counts
from sfumato.auditing.bounds import cautious_log_ratio, standard_errors_above
from sfumato.contexts import Context
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats, Symbols

MAX_REPORTS = 4096
"""The maximum number of different reports to judge individually: the most frequent ones."""

_SUBTRACTED_ERRORS = 4.0  # standard errors to subtract from ratios before comparing them
_MIN_REPORT_COUNT = 5  # a report's ratio is unreliable unless some symbol produced it this often


@dataclass(frozen=True)
class PromisedPair:
    """An ordered pair of symbols with a finite promise.

    ``rows`` are the positions of x and x2 among the audited symbols.
    """

    x: int
    x2: int
    rows: tuple[int, int]
    promised: float


@dataclass(frozen=True, eq=False)
class Event:
    """A set of reports, as columns of the table of counts, with the most informative first.

    ``hits`` are the numbers of times that x and x2 produced one of these reports in the samples
    from which the event was chosen, with one half added to each count.
    """

    columns: NDArray[np.intp]
    hits: tuple[float, float]

    def suspicion(self, promised: float) -> float:
        """Return by how many standard errors the promise seems to be broken, before any test."""
        return float(standard_errors_above(*self.hits, promised))


@dataclass(frozen=True, eq=False)
class Choice:
    """The events and suspects chosen from the first two parts of the samples.

    They are tested on fresh samples. ``events`` has one event for each pair. The columns of an
    event are indices into ``reports``; one more column stands for all other reports. ``suspicions``
    contains, for each pair, the number of standard errors by which its promise seems to be broken.
    ``suspects`` are the indices of the pairs with the largest suspicions. ``counts`` is the table
    of counts from the second part. ``rare_share`` is the share of reports that were too rare to
    judge individually, for the symbol with the most of them.
    """

    reports: list[Hashable]
    events: list[Event]
    suspicions: Floats
    suspects: Symbols
    counts: Counts
    rare_share: float

    @property
    def samples_per_symbol(self) -> int:
        """The number of samples for each symbol in ``counts``."""
        return int(self.counts[0].sum())


def pairs_with_promise(context: Context, symbols: Symbols) -> list[PromisedPair]:
    """Return all ordered pairs of the given symbols that have a finite promise.

    Promises implied through a third symbol are included, even if that symbol is not audited, unless
    the context is too large to compute them.
    """
    try:
        closure = context.closure()
    except InvalidContext:  # too large for a matrix, so audit only the direct promises
        closure = context
    E = closure.epsilon(symbols[:, None], symbols[None, :])
    is_promised = np.isfinite(E) & ~np.eye(symbols.size, dtype=bool)
    pairs = []
    for i, j in np.argwhere(is_promised).tolist():
        x = int(symbols[i])
        x2 = int(symbols[j])
        pairs.append(PromisedPair(x, x2, (i, j), float(E[i, j])))
    return pairs


def choose_events(
    pairs: Sequence[PromisedPair],
    ordering_histograms: Sequence[Histogram],
    choosing_histograms: Sequence[Histogram],
    suspect_count: int,
) -> Choice:
    """Choose events and suspects, based on each symbol's reports in two parts of the samples."""
    reports = frequent_reports(ordering_histograms)
    ordering_counts = table_of_counts(ordering_histograms, reports)
    choosing_counts = table_of_counts(choosing_histograms, reports)
    events = []
    suspicions = np.empty(len(pairs))
    for i, pair in enumerate(pairs):
        row, row2 = pair.rows
        event = choose_event(
            (ordering_counts[row], ordering_counts[row2]),
            (choosing_counts[row], choosing_counts[row2]),
        )
        events.append(event)
        suspicions[i] = event.suspicion(pair.promised)
    suspects = np.argsort(-suspicions, kind="stable")[:suspect_count]
    rare_share = _rare_share(ordering_counts, choosing_counts)
    return Choice(reports, events, suspicions, suspects, choosing_counts, rare_share)


def frequent_reports(histograms: Sequence[Histogram]) -> list[Hashable]:
    """Return the reports to judge individually: the most frequent of those seen at least twice.

    All others are judged together. Reports that were seen only once belong with those that have not
    been seen yet: how many there are predicts how many new ones will arrive (Good, 1953).
    """
    total_counts: Histogram = Histogram()
    for histogram in histograms:
        total_counts.update(histogram)
    return [report for report, count in total_counts.most_common(MAX_REPORTS) if count > 1]


def choose_event(
    ordering_counts: tuple[Counts, Counts], choosing_counts: tuple[Counts, Counts]
) -> Event:
    """Return the event with the largest ratio of ``choosing_counts``, by a cautious estimate.

    The candidates are the upper level sets of the ratio of ``ordering_counts``. Each argument is a
    pair of rows: the counts of all reports under x and under x2, from equally many samples. One
    half is added to all counts, so that reports that x2 never produced are ordered by how often x
    produced them. Reports that neither symbol produced are left out.
    """
    ratios = (ordering_counts[0] + 0.5) / (ordering_counts[1] + 0.5)
    columns = np.argsort(-ratios, kind="stable")
    was_sent = np.sum([*ordering_counts, *choosing_counts], axis=0) > 0
    columns = columns[was_sent[columns]]
    a = np.cumsum(choosing_counts[0][columns], dtype=np.float64) + 0.5
    b = np.cumsum(choosing_counts[1][columns], dtype=np.float64) + 0.5
    # Skip the set of all reports, whose ratio is 1.
    log_ratios = cautious_log_ratio(a, b, _SUBTRACTED_ERRORS)[: max(columns.size - 1, 1)]
    best_index = int(np.argmax(log_ratios))
    hits = (float(a[best_index]), float(b[best_index]))
    return Event(columns[: best_index + 1], hits)


def _rare_share(ordering_counts: Counts, choosing_counts: Counts) -> float:
    """Return the largest share, over all symbols, of reports that no symbol produced often.

    The last column combines many different reports, so it counts as rare.
    """
    is_frequent = ordering_counts[:, :-1].max(axis=0, initial=0) >= _MIN_REPORT_COUNT
    frequent_counts = choosing_counts[:, :-1][:, is_frequent].sum(axis=1)
    return float((1 - frequent_counts / choosing_counts.sum(axis=1)).max())
