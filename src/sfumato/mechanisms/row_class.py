"""Classes of rows: the premises of a certificate, as data that can be read and re-checked."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Symbols
from sfumato.canonical import Json
from sfumato.codes import Code

__all__ = ["RowClass"]


@dataclass(frozen=True)
class RowClass:
    """What is claimed of the row of every symbol in the class, in words of ``2^B``.

    Of the ``outputs`` reports from ``first[i]`` on, ``raised`` hold ``high`` and the others ``low``; the first
    of them holds ``leftover`` more; one report outside this range holds ``own`` (if not 0); all else is 0.
    """

    symbols: Symbols
    first: NDArray[np.int64]
    outputs: int
    raised: int
    high: int
    low: int
    leftover: int
    own: int

    @classmethod
    def of_code(cls, code: Code, first: NDArray[np.int64], symbols: Symbols, own: int = 0) -> "RowClass":
        """The rows that answer through a code, or (``own`` > 0) only take cover in its range."""
        raised, high = (0, code.low) if own else (code.raised, code.high)
        return cls(symbols, first, code.outputs, raised, high, code.low, code.leftover, own)

    def is_channel(self, denominator: int, outputs: int) -> bool:
        """Whether the claim can be true of rows, with ``high`` the highest: what the argument needs."""
        whole = self.raised * self.high + (self.outputs - self.raised) * self.low + self.leftover + self.own
        ordered = 0 <= self.low <= self.high and 0 <= self.raised <= self.outputs
        inside = int(self.first.min()) >= 0 and int(self.first.max()) + self.outputs <= outputs
        return whole == denominator and ordered and inside and self.leftover >= 0 and self.own >= 0

    def describes(self, levels: list[int], which: NDArray[np.intp], first: int) -> bool:
        """Whether a row in compact form is as claimed."""
        inside = np.zeros(which.size, dtype=np.bool_)
        inside[first : first + self.outputs] = True
        found, strangers = _counted(levels, which[inside]), _counted(levels, which[~inside])
        if self.outputs:  # take the leftover words back off the first report
            at_first = levels[which[first]]
            found[at_first] -= 1
            found[at_first - self.leftover] += 1
        wanted = Counter({self.low: self.outputs - self.raised})
        wanted[self.high] += self.raised
        del strangers[0]
        return +found == +wanted and strangers == Counter([self.own] if self.own else [])

    def record(self) -> Json:
        """The premise as plain data, without the list of symbols."""
        return {
            "rows": int(self.symbols.size),
            "outputs": self.outputs,
            "raised": self.raised,
            "high": str(self.high),
            "low": str(self.low),
            "leftover": str(self.leftover),
            "own": str(self.own),
        }


def _counted(levels: list[int], which: NDArray[np.intp]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for level, count in zip(levels, np.bincount(which, minlength=len(levels)).tolist(), strict=True):
        counts[level] += count
    return +counts
