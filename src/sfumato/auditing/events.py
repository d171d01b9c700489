"""The events that an audit tests, one for each ordered pair of symbols.

Of all events S that a report may fall into, those that tell x from x2 best are the upper sets of the likelihood ratio,
``{y : Q(y|x)/Q(y|x2) ≥ t}`` (Neyman and Pearson, 1933): the single report with the largest ratio, if t is large enough,
and all that speak for x at all, if it is 1. Which report has which ratio is learnt from one part of the samples; which
t is best, from another. If both came from the same part, rare reports would look telling by chance.

Nothing in this file sees the samples of the test.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.arcsine import errors_above, lower_log_ratio
from sfumato.auditing.sampling import Histogram
from sfumato.foundation.arrays import Symbols

__all__ = ["MOST_REPORTS", "Event", "chosen_event", "frequent_reports"]

MOST_REPORTS = 4096
"""At most so many reports are looked at one by one, those that were seen most often."""

_CAUTION = 4.0  # standard errors by which a noisy ratio must beat one that is known well


@dataclass(frozen=True, eq=False)
class Event:
    """A set of reports, as columns of the table of counts, the most telling first.

    ``hits`` says how often x and x2 sent one of them in the part that the event was chosen on, half a count added.
    """

    columns: NDArray[np.intp]
    hits: tuple[float, float]

    def suspicion(self, promised: float) -> float:
        """By how many standard errors the promise seems to be broken. It has not been tested."""
        return float(errors_above(*self.hits, promised))


def frequent_reports(histograms: Sequence[Histogram]) -> list[Hashable]:
    """The reports that are looked at one by one: those that were seen twice, at most the 4,096 most frequent of them.

    All others are looked at together. How many were seen once says how many more will come that were never seen (Good,
    1953), so that this crowd is counted fairly from the start.
    """
    total: Histogram = Histogram()
    for counted in histograms:
        total.update(counted)
    return [report for report, count in total.most_common(MOST_REPORTS) if count > 1]


def chosen_event(ordering: tuple[Symbols, Symbols], choosing: tuple[Symbols, Symbols]) -> Event:
    """The upper set of the ratio, as ``ordering`` has it, that shows most on ``choosing``.

    Each is a pair of rows: the counts under x and under x2, from equally many samples. Half a count is added on both
    sides, so that a report that x2 never sent comes early, and the earlier the more often x sent it. Reports that
    neither of them ever sent are left out.
    """
    ratio = (ordering[0] + 0.5) / (ordering[1] + 0.5)
    columns = np.argsort(-ratio, kind="stable")
    columns = columns[np.sum([*ordering, *choosing], axis=0)[columns] > 0]
    a, b = (np.cumsum(row[columns], dtype=np.float64) + 0.5 for row in choosing)
    # The set of all reports has ratio 1 and shows nothing.
    shown = lower_log_ratio(a, b, _CAUTION)[: max(columns.size - 1, 1)]
    best = int(np.argmax(shown))
    return Event(columns[: best + 1], (float(a[best]), float(b[best])))
