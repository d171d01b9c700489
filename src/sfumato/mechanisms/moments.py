"""Moments of scores: what intervals need to know about the scores of each symbol.

The unbiased estimate of symbol x is a mean of scores ``A[x, Y]`` over n reports. Two moments give
its standard error. The third tells how lopsided the scores are: a symbol that is sent in clear
scores 1/β on a few reports and 0 on all others, so its estimate is no more normal than a small
count is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import Floats
from sfumato.mechanisms.scores import Scores

__all__ = ["ScoreMoments"]


@dataclass(frozen=True, eq=False)
class ScoreMoments:
    """``Σ_y f(y) A^i`` for i = 1, 2, 3, and the extremes of A, for each symbol or total."""

    first: Floats
    second: Floats
    third: Floats
    lowest: Floats
    highest: Floats

    @classmethod
    def of_symbols(cls, scores: Scores, frequencies: Floats) -> "ScoreMoments":
        """Return the moments of every symbol, for these frequencies of reports."""
        return cls(
            scores.mean(frequencies),
            scores.moments(frequencies, 2),
            scores.moments(frequencies, 3),
            scores.reach.lowest,
            scores.reach.highest,
        )

    @classmethod
    def of_total(cls, totals: Floats, frequencies: Floats) -> "ScoreMoments":
        """Return the moments of one total, from its scores report by report.

        >>> ScoreMoments.of_total(np.array([0.0, 2.0]), np.array([0.75, 0.25])).second
        array([1.])
        """
        return cls(
            np.array([frequencies @ totals]),
            np.array([frequencies @ totals**2]),
            np.array([frequencies @ totals**3]),
            np.array([totals.min()]),
            np.array([totals.max()]),
        )

    def of(self, symbols: slice | NDArray[np.intp]) -> "ScoreMoments":
        """Return the moments of some symbols."""
        return ScoreMoments(
            self.first[symbols],
            self.second[symbols],
            self.third[symbols],
            self.lowest[symbols],
            self.highest[symbols],
        )

    def with_report(self, score: Floats, reports: Floats) -> "ScoreMoments":
        """Return the moments with one more report, of this score, after ``reports`` reports."""
        n = reports
        return ScoreMoments(
            (n * self.first + score) / (n + 1),
            (n * self.second + score**2) / (n + 1),
            (n * self.third + score**3) / (n + 1),
            self.lowest,
            self.highest,
        )

    def among(self, share: Floats) -> "ScoreMoments":
        """Return the moments among a share of the reports; all others must have score 0."""
        return ScoreMoments(
            self.first / share, self.second / share, self.third / share, self.lowest, self.highest
        )
