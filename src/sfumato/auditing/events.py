"""Choose what an audit tests: an event for each promise, and the promises that look broken.

Of all events S that a report may fall into, those that tell x from x2 best are the upper sets of
the likelihood ratio, ``{y : Q(y|x)/Q(y|x2) ≥ t}`` (Neyman and Pearson, 1933): if t is large, the
single report with the largest ratio; if t is 1, all reports that favour x. One part of the samples
estimates the ratio of each report, another chooses the best t. If both came from the same part,
rare reports would look telling by chance.

Nothing in this file sees the samples of the test.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.black_box import Histogram, count_table
from sfumato.auditing.bounds import errors_above, lower_log_ratio
from sfumato.contexts import Context
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats, Symbols

MAX_REPORTS = 4096
"""The most reports that are judged one by one: the most frequent ones."""

_CAUTION = 4.0  # standard errors by which a noisy ratio must exceed a precise one
_MIN_SIGHTINGS = 5  # a report that no symbol sent this often has no reliable ratio


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
    """A set of reports, as columns of the table of counts, the most telling first.

    ``hits`` is how often x and x2 sent one of them in the part that the event was chosen on, plus
    half a count each.
    """

    columns: NDArray[np.intp]
    hits: tuple[float, float]

    def suspicion(self, promised: float) -> float:
        """Return by how many standard errors the promise seems broken, before any test."""
        return float(errors_above(*self.hits, promised))


@dataclass(frozen=True, eq=False)
class Choice:
    """What the first two parts of the samples suggest, for a test on fresh samples.

    ``events`` has one event for each pair: columns of ``reports``, and one more that stands for all
    other reports. ``suspicions`` are the standard errors by which each promise seemed broken, and
    ``suspects`` the positions of the pairs that looked worst. ``counts`` is the table they were
    chosen on. ``rare`` is the share of reports that were too rare to judge one by one, for the
    symbol that has most of them.
    """

    reports: list[Hashable]
    events: list[Event]
    suspicions: Floats
    suspects: Symbols
    counts: Symbols
    rare: float

    @property
    def size(self) -> int:
        """How many samples of each symbol this was chosen on."""
        return int(self.counts[0].sum())


def pairs_with_promise(context: Context, symbols: Symbols) -> list[PromisedPair]:
    """Return all ordered pairs of these symbols with a finite promise.

    That includes what follows by way of a third symbol, even if that one is not audited.
    """
    try:
        closed = context.closure()
    except InvalidContext:  # too large for a matrix: audit the context as it is
        closed = context
    E = closed.epsilon(symbols[:, None], symbols[None, :])
    is_promised = np.isfinite(E) & ~np.eye(symbols.size, dtype=bool)
    pairs = []
    for i, j in np.argwhere(is_promised).tolist():
        x = int(symbols[i])
        x2 = int(symbols[j])
        pairs.append(PromisedPair(x, x2, (i, j), float(E[i, j])))
    return pairs


def choose(
    pairs: Sequence[PromisedPair],
    ordering: Sequence[Histogram],
    choosing: Sequence[Histogram],
    suspects: int,
) -> Choice:
    """Choose events and suspects from the reports of each symbol in two parts of the samples."""
    reports = frequent_reports(ordering)
    first = count_table(ordering, reports)
    second = count_table(choosing, reports)
    events = []
    suspicions = np.empty(len(pairs))
    for i, pair in enumerate(pairs):
        x, x2 = pair.rows
        event = choose_event((first[x], first[x2]), (second[x], second[x2]))
        events.append(event)
        suspicions[i] = event.suspicion(pair.promised)
    worst = np.argsort(-suspicions, kind="stable")[:suspects]
    return Choice(reports, events, suspicions, worst, second, _rare_share(first, second))


def frequent_reports(histograms: Sequence[Histogram]) -> list[Hashable]:
    """Return the reports to judge one by one: the most frequent of those seen at least twice.

    All others are judged together. How many reports were seen once predicts how many will come
    that were never seen (Good, 1953), so these others are counted fairly from the start.
    """
    total: Histogram = Histogram()
    for histogram in histograms:
        total.update(histogram)
    return [report for report, count in total.most_common(MAX_REPORTS) if count > 1]


def choose_event(ordering: tuple[Symbols, Symbols], choosing: tuple[Symbols, Symbols]) -> Event:
    """Return the upper set of the ratio on ``ordering`` that shows most on ``choosing``.

    Each is a pair of rows: the counts under x and under x2, from equally many samples. Half a count
    is added to both, so a report that x2 never sent comes early, and the earlier the more often x
    sent it. Reports that neither of them ever sent are left out.
    """
    ratio = (ordering[0] + 0.5) / (ordering[1] + 0.5)
    columns = np.argsort(-ratio, kind="stable")
    was_sent = np.sum([*ordering, *choosing], axis=0) > 0
    columns = columns[was_sent[columns]]
    a = np.cumsum(choosing[0][columns], dtype=np.float64) + 0.5
    b = np.cumsum(choosing[1][columns], dtype=np.float64) + 0.5
    # The set of all reports has ratio 1 and shows nothing.
    shown = lower_log_ratio(a, b, _CAUTION)[: max(columns.size - 1, 1)]
    best = int(np.argmax(shown))
    hits = (float(a[best]), float(b[best]))
    return Event(columns[: best + 1], hits)


def _rare_share(ordering: Symbols, choosing: Symbols) -> float:
    """Return the largest share, over the symbols, of reports that no symbol had sent often.

    The last column stands for many different reports, so it counts as rare.
    """
    is_frequent = ordering[:, :-1].max(axis=0, initial=0) >= _MIN_SIGHTINGS
    frequent = choosing[:, :-1][:, is_frequent].sum(axis=1)
    return float((1 - frequent / choosing.sum(axis=1)).max())
