"""Row classes: the claims that a certificate relies on, as data that anyone can verify."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import Symbols
from sfumato.foundation.canonical import Json

__all__ = ["RowClass"]


@dataclass(frozen=True)
class RowClass:
    """A claim about the rows of a set of symbols. A row maps ``2^B`` words to reports.

    The *range* of ``symbols[i]`` is the ``outputs`` consecutive reports that start with
    ``first_reports[i]``. ``high`` words map to each of ``raised`` reports in the range, and ``low``
    words to each of the others; ``leftover`` additional words map to the first report. For symbols
    with a different range, ``cover`` words map to each report in this range instead, and the same
    leftover words to the first report unless ``cover`` is 0. If ``own_words`` is not 0, that many
    words map to one report outside all ranges. No words map to any other report.

    By default the range is empty, and a row contains only cover words and its own report.
    """

    symbols: Symbols
    first_reports: NDArray[np.int64]
    outputs: int = 0
    raised: int = 0
    high: int = 0
    low: int = 0
    leftover: int = 0
    cover: int = 0
    own_words: int = 0

    @property
    def words_in_range(self) -> int:
        """The number of words that a row of this class maps to its range."""
        return self.raised * self.high + (self.outputs - self.raised) * self.low + self.leftover

    @property
    def cover_words(self) -> int:
        """The number of words that a row with a different range maps to a range of this class."""
        return self.outputs * self.cover + (self.leftover if self.cover else 0)

    def is_consistent(self, outputs: int) -> bool:
        """Return whether the claim's numbers are consistent, given ``outputs`` reports in all."""
        if self.outputs and self.high <= 0:
            return False
        if not (0 <= self.low <= self.high and 0 <= self.cover <= self.high):
            return False
        if not (0 <= self.raised <= self.outputs and self.leftover >= 0 and self.own_words >= 0):
            return False
        return (
            int(self.first_reports.min()) >= 0
            and int(self.first_reports.max()) + self.outputs <= outputs
        )

    def matches(
        self,
        levels: list[int],
        level_indices: NDArray[np.intp],
        first_report: int,
        exceptions: NDArray[np.intp],
    ) -> bool:
        """Return whether a compact row matches the claim.

        The row's range starts at ``first_report``. ``exceptions`` contains the reports where the
        row differs from the cover.
        """
        counts = _count_levels(levels, level_indices[first_report : first_report + self.outputs])
        if self.outputs:  # remove the leftover words from the first report
            first_level = levels[level_indices[first_report]]
            counts[first_level] -= 1
            counts[first_level - self.leftover] += 1
        claimed_counts = Counter({self.low: self.outputs - self.raised})
        claimed_counts[self.high] += self.raised
        range_end = first_report + self.outputs
        outside = exceptions[(exceptions < first_report) | (exceptions >= range_end)]
        words_outside = [levels[i] for i in level_indices[outside].tolist()]
        claimed_outside = [self.own_words] if self.own_words else []
        return +counts == +claimed_counts and words_outside == claimed_outside

    def to_record(self) -> Json:
        """Return the claim as JSON-compatible data, without the list of symbols."""
        return {
            "rows": int(self.symbols.size),
            "outputs": self.outputs,
            "raised": self.raised,
            "high": str(self.high),
            "low": str(self.low),
            "leftover": str(self.leftover),
            "cover": str(self.cover),
            "own": str(self.own_words),
        }


def _count_levels(levels: list[int], level_indices: NDArray[np.intp]) -> Counter[int]:
    """Count the entries at each level, merging equal levels."""
    counts: Counter[int] = Counter()
    entry_counts = np.bincount(level_indices, minlength=len(levels)).tolist()
    for level, entry_count in zip(levels, entry_counts, strict=True):
        counts[level] += entry_count
    return counts
