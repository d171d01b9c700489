"""Row classes: the premises of a certificate, as data that anyone can re-check."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import Symbols
from sfumato.foundation.canonical import Json

__all__ = ["RowClass"]


@dataclass(frozen=True)
class RowClass:
    """A claim about the row of every symbol in the class, in words out of ``2^B``.

    The ``outputs`` reports from ``first[i]`` on are the *range* of symbol i. Of these, ``raised``
    have ``high`` words and the others ``low``; the first has ``leftover`` more. Rows of symbols
    with another range have ``cover`` there instead, with the same leftover if ``cover`` is not 0.
    One report outside all ranges has ``own`` words (if not 0); all others have none.

    By default there is no range, and the row consists of cover and the symbol's own report.
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
    def words(self) -> int:
        """How many words a row has in its range."""
        return self.raised * self.high + (self.outputs - self.raised) * self.low + self.leftover

    @property
    def cover_words(self) -> int:
        """How many words any other row has there."""
        return self.outputs * self.cover + (self.leftover if self.cover else 0)

    def is_sound(self, outputs: int) -> bool:
        """Return whether the claim can be true of rows, with ``high`` the highest entry."""
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
        self, levels: list[int], which: NDArray[np.intp], first: int, exceptions: NDArray[np.intp]
    ) -> bool:
        """Return whether a compact row is as claimed.

        ``exceptions`` are the reports where it differs from the cover.
        """
        counts = _count_levels(levels, which[first : first + self.outputs])
        if self.outputs:  # take the leftover words back off the first report
            at_first = levels[which[first]]
            counts[at_first] -= 1
            counts[at_first - self.leftover] += 1
        claim = Counter({self.low: self.outputs - self.raised})
        claim[self.high] += self.raised
        is_outside = (exceptions < first) | (exceptions >= first + self.outputs)
        outside = exceptions[is_outside]
        own = [levels[i] for i in which[outside].tolist()]
        return +counts == +claim and own == ([self.own_words] if self.own_words else [])

    def to_record(self) -> Json:
        """Return the premise as plain data, without the list of symbols."""
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


def _count_levels(levels: list[int], which: NDArray[np.intp]) -> Counter[int]:
    """Count the entries at each level; two levels may be equal."""
    counts: Counter[int] = Counter()
    numbers = np.bincount(which, minlength=len(levels)).tolist()
    for level, number in zip(levels, numbers, strict=True):
        counts[level] += number
    return counts
