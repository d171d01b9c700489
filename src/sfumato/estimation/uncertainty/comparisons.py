"""Differences between two estimates, and rankings within one, from simultaneous intervals.

Each of the k intervals has level ``1 − (1 − level)/k`` (Bonferroni), so all of them hold with
probability at least ``level``. If they all hold, every statement here is correct.

*Differences.* The interval for a difference between two shares is that of Donner and Zou (2012):

    low  = p̂₂ − p̂₁ − √( (p̂₂ − low₂)² + (high₁ − p̂₁)² )
    high = p̂₂ − p̂₁ + √( (high₂ − p̂₂)² + (p̂₁ − low₁)² )

*Rankings.* A symbol is certainly among the top m if at most m − 1 other symbols can be more
frequent. It is possibly among the top m if at most m − 1 other symbols must be more frequent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.domains import Label
from sfumato.estimation.estimate_table import MAX_SYMBOLS_SHOWN, arrow_labels
from sfumato.estimation.uncertainty.intervals import Bounds
from sfumato.foundation.arrays import Arrow, Floats
from sfumato.foundation.frames import ArrowTable
from sfumato.foundation.notebook import facts_html, table_html

__all__ = ["DECREASED", "INCONCLUSIVE", "INCREASED", "Difference", "TopSymbols"]

INCREASED = "increased"
DECREASED = "decreased"
INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, eq=False, repr=False)
class Difference(ArrowTable):
    """The second estimate minus the first, symbol by symbol.

    All intervals from ``low`` to ``high`` hold simultaneously with probability at least ``level``.
    """

    labels: Sequence[Label]
    differences: Floats
    low: Floats
    high: Floats
    level: float

    @classmethod
    def from_intervals(
        cls,
        labels: Sequence[Label],
        before: Floats,
        before_bounds: Bounds,
        after: Floats,
        after_bounds: Bounds,
        level: float,
    ) -> "Difference":
        """Compare two independent estimates. Their intervals must not be clipped to [0, 1]."""
        before_low, before_high = before_bounds
        after_low, after_high = after_bounds
        change = after - before
        lower_margin = np.hypot(after - after_low, before_high - before)
        upper_margin = np.hypot(after_high - after, before - before_low)
        return cls(labels, change, change - lower_margin, change + upper_margin, level)

    @property
    def verdicts(self) -> NDArray[np.str_]:
        """The verdict on each symbol: ``increased``, ``decreased`` or ``inconclusive``."""
        decreased_or_inconclusive = np.where(self.high < 0, DECREASED, INCONCLUSIVE)
        return np.where(self.low > 0, INCREASED, decreased_or_inconclusive)

    @property
    def changed(self) -> list[Label]:
        """The labels whose share changed, sorted by decreasing size of the estimated change."""
        changed_mask = (self.low > 0) | (self.high < 0)
        order = np.argsort(-np.abs(self.differences), kind="stable")
        return list(_select(self.labels, order[changed_mask[order]]))

    def __repr__(self) -> str:
        increased_count = int((self.low > 0).sum())
        decreased_count = int((self.high < 0).sum())
        inconclusive_count = len(self.labels) - increased_count - decreased_count
        return (
            f"Difference({increased_count} increased, {decreased_count} decreased, "
            f"{inconclusive_count} inconclusive; simultaneous level {self.level:.4g})"
        )

    def to_arrow(self) -> Arrow:
        """Return a ``pyarrow.Table`` with the columns label, difference, low, high and verdict."""
        import pyarrow as pa

        columns = {
            "label": arrow_labels(self.labels),
            "difference": self.differences,
            "low": self.low,
            "high": self.high,
            "verdict": self.verdicts.tolist(),
        }
        return pa.table(columns)

    def _repr_html_(self) -> str:
        """Return the largest differences as an HTML table, for notebooks."""
        order = np.argsort(-np.abs(self.differences), kind="stable")[:MAX_SYMBOLS_SHOWN]
        verdicts = self.verdicts
        rows = []
        for x in order.tolist():
            figures = (self.differences[x], self.low[x], self.high[x])
            cells = [f"{figure:+.4f}" for figure in figures]
            rows.append([str(self.labels[x]), *cells, str(verdicts[x])])
        note = f"with simultaneous intervals at level {self.level:.4g}"
        if len(self.labels) > len(rows):
            note += f"; the {len(rows)} largest of {len(self.labels):,}"
        header = ["label", "difference", "low", "high", "verdict"]
        return table_html("Difference", header, rows, note)


@dataclass(frozen=True, repr=False)
class TopSymbols(ArrowTable):
    """The labels that are certainly among the ``size`` most frequent, and those that possibly are.

    ``possibly`` includes ``certainly``. Both are sorted by decreasing unbiased estimate. With
    probability at least ``level``, every label in ``certainly`` is among the most frequent, and
    every label that is among the most frequent is in ``possibly``.
    """

    size: int
    certainly: tuple[Label, ...]
    possibly: tuple[Label, ...]
    level: float

    def to_arrow(self) -> Arrow:
        """Return a ``pyarrow.Table`` with a row for each label in ``possibly``.

        The columns are label and certainly.
        """
        import pyarrow as pa

        certainly = set(self.certainly)
        columns = {
            "label": arrow_labels(self.possibly),
            "certainly": [label in certainly for label in self.possibly],
        }
        return pa.table(columns)

    def __repr__(self) -> str:
        certainly = _labels_text(self.certainly)
        possibly = _labels_text(self.possibly)
        return (
            f"TopSymbols(size={self.size}, certainly={certainly}, possibly={possibly}, "
            f"level={self.level:.4g})"
        )

    def _repr_html_(self) -> str:
        """Return the labels as HTML, for notebooks."""
        facts = {
            "certainly": ", ".join(map(str, self.certainly[:MAX_SYMBOLS_SHOWN])) or "–",
            "possibly": ", ".join(map(str, self.possibly[:MAX_SYMBOLS_SHOWN])) or "–",
        }
        note = f"of size {self.size}, at level {self.level:.4g}"
        return facts_html("TopSymbols", facts, note)

    @classmethod
    def from_intervals(
        cls, labels: Sequence[Label], unbiased: Floats, bounds: Bounds, size: int, level: float
    ) -> "TopSymbols":
        """Rank symbols using simultaneous intervals.

        >>> low = np.array([0.5, 0.2, 0.1])
        >>> high = np.array([0.6, 0.4, 0.3])
        >>> TopSymbols.from_intervals("abc", low, (low, high), 1, 0.95)
        TopSymbols(size=1, certainly=('a',), possibly=('a',), level=0.95)
        >>> TopSymbols.from_intervals("abc", low, (low, high), 2, 0.95).certainly
        ('a',)
        """
        low, high = bounds
        k = low.size
        counts_itself = high > low  # the search below counts such a symbol as above itself
        possibly_above_counts = k - np.searchsorted(np.sort(high), low, side="right")
        possibly_above_counts = possibly_above_counts - counts_itself
        certainly_above_counts = k - np.searchsorted(np.sort(low), high, side="right")
        order = np.argsort(-unbiased, kind="stable")
        certainly = order[possibly_above_counts[order] < size]
        possibly = order[certainly_above_counts[order] < size]
        return cls(size, _select(labels, certainly), _select(labels, possibly), level)


def _labels_text(labels: Sequence[Label]) -> str:
    """Return the first labels as a tuple in text."""
    shown = [repr(label) for label in labels[:MAX_SYMBOLS_SHOWN]]
    if len(labels) > MAX_SYMBOLS_SHOWN:
        shown.append("…")
    return f"({', '.join(shown)}{',' if len(shown) == 1 else ''})"


def _select(labels: Sequence[Label], symbols: NDArray[np.intp]) -> tuple[Label, ...]:
    return tuple(labels[x] for x in symbols.tolist())
