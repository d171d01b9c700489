"""Moments of scores: what intervals need to know of how the reports speak about each symbol.

The unbiased estimate of symbol x is a mean of scores ``A[x, Y]`` over n reports. Two moments give its standard error.
The third tells how lopsided the scores are: a symbol that is sent in clear scores 1/β on a few reports and 0 on all
others, and its estimate is then no more normal than a small count is.

Every mean here is one fast transform, like those of ``Mechanism.second_moments``.
"""

from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import BlockResponse, GroupResponse, Mechanism, UnionResponse
from sfumato.mechanisms.mechanism import LARGEST_TABLE
from sfumato.mechanisms.scores import GroupScores

__all__ = ["ScoreMoments", "moments_of_scores", "score_moments"]


@dataclass(frozen=True, eq=False)
class ScoreMoments:
    """For each symbol (or total) ``Σ_y f(y) A^i`` for i = 1, 2, 3, and bounds on the scores of a single report."""

    first: Floats
    second: Floats
    third: Floats
    lowest: Floats
    highest: Floats

    def of(self, symbols: slice | NDArray[np.intp]) -> "ScoreMoments":
        """The moments of some symbols."""
        columns = (self.first, self.second, self.third, self.lowest, self.highest)
        return ScoreMoments(*(column[symbols] for column in columns))

    def with_report(self, score: Floats, reports: Floats) -> "ScoreMoments":
        """The moments if there were one more report, with this score."""
        n = reports
        first, second, third = (
            (n * moment + score**i) / (n + 1)
            for i, moment in ((1, self.first), (2, self.second), (3, self.third))
        )
        return ScoreMoments(first, second, third, self.lowest, self.highest)

    def given(self, share: Floats) -> "ScoreMoments":
        """The moments among a share of the reports, all others having score 0."""
        return ScoreMoments(
            self.first / share, self.second / share, self.third / share, self.lowest, self.highest
        )


def moments_of_scores(scores: Floats, frequencies: Floats) -> ScoreMoments:
    """The moments of one total, from its scores report by report.

    >>> moments_of_scores(np.array([0.0, 2.0]), np.array([0.75, 0.25])).second
    array([1.])
    """
    first, second, third = (np.array([frequencies @ scores**i]) for i in (1, 2, 3))
    return ScoreMoments(first, second, third, np.array([scores.min()]), np.array([scores.max()]))


@singledispatch
def score_moments(mechanism: Mechanism, frequencies: Floats) -> ScoreMoments:
    """The moments of every symbol's scores, for ``frequencies`` of reports.

    Written out where the scores fit. A mechanism that is larger, and of no kind known here, is taken to have scores
    without a preferred side.
    """
    if mechanism.inputs * mechanism.outputs <= LARGEST_TABLE:
        A = mechanism.scores()
        return ScoreMoments(
            A @ frequencies, A**2 @ frequencies, A**3 @ frequencies, A.min(axis=1), A.max(axis=1)
        )
    m, M = mechanism.mean_scores(frequencies), mechanism.second_moments(frequencies)
    reach = np.full(m.shape, mechanism.leverage)
    return ScoreMoments(m, M, 3 * m * M - 2 * m**3, -reach, reach)


@score_moments.register
def _of_blocks(mechanism: BlockResponse, frequencies: Floats) -> ScoreMoments:
    """Scores are 0 on the reports of other blocks."""
    third, lowest, highest = (np.empty(mechanism.inputs) for _ in range(3))
    one_block = mechanism._offsets.size == 2
    for stack, scores in zip(mechanism._stacks, mechanism._corrected, strict=True):
        low, high = _extremes(scores)
        elsewhere = np.nan if one_block else 0.0
        stack.fill(third, _third_moments(scores, frequencies[stack.reports]))
        stack.fill(lowest, np.fmin(low, elsewhere))
        stack.fill(highest, np.fmax(high, elsewhere))
    first, second = mechanism.mean_scores(frequencies), mechanism.second_moments(frequencies)
    return ScoreMoments(first, second, third, lowest, highest)


@score_moments.register
def _of_groups(mechanism: GroupResponse, frequencies: Floats) -> ScoreMoments:
    """A report of another group, or of a symbol in clear, has a score of its own; a symbol in clear has two scores."""
    f, free, coded = frequencies, mechanism._free, mechanism._coded
    third, lowest, highest = (np.empty(mechanism.inputs) for _ in range(3))
    third[free] = f[coded:] / float(mechanism._beta) ** 3
    highest[free], lowest[free] = float(1 / mechanism._beta), 0.0
    alone = mechanism._first.size == 1 and free.size == 0
    for part in mechanism._corrected:
        inside = f[part.stack.reports]
        others = f.sum() - inside.sum(axis=-1, keepdims=True)
        low, high = _extremes(part.inside)
        elsewhere = np.nan if alone else part.outside
        part.stack.fill(third, _third_moments(part.inside, inside) + others * part.outside**3)
        part.stack.fill(lowest, np.fmin(low, elsewhere))
        part.stack.fill(highest, np.fmax(high, elsewhere))
    return ScoreMoments(
        mechanism.mean_scores(f), mechanism.second_moments(f), third, lowest, highest
    )


@score_moments.register
def _of_unions(mechanism: UnionResponse, frequencies: Floats) -> ScoreMoments:
    """Part by part; scores are 0 on the reports of other parts."""
    columns = np.empty((5, mechanism.inputs))
    offsets = mechanism.offsets.tolist()
    for j, (part, symbols) in enumerate(zip(mechanism.parts, mechanism.symbols, strict=True)):
        found = score_moments(part, frequencies[offsets[j] : offsets[j + 1]])
        low, high = (
            (found.lowest, found.highest) if len(mechanism.parts) == 1 else _with_zero(found)
        )
        columns[:, symbols] = found.first, found.second, found.third, low, high
    return ScoreMoments(*columns)


def _with_zero(found: ScoreMoments) -> tuple[Floats, Floats]:
    return np.minimum(found.lowest, 0.0), np.maximum(found.highest, 0.0)


def _extremes(scores: GroupScores) -> tuple[Floats, Floats]:
    """The least and the largest score of each symbol over the group's own reports (bounds, attained in most codes)."""
    top, bottom = scores.core.extremes(scores.used.astype(np.float64))
    low = (scores.offsets + bottom).min(axis=-1, keepdims=True)
    high = (scores.offsets + top).max(axis=-1, keepdims=True)
    return low + scores.shifts, high + scores.shifts


def _third_moments(scores: GroupScores, f: Floats) -> Floats:
    """``Σ_y f(y) (core(x, y) + g(y) + h(x))³``, by expanding the cube around h."""
    g, h, core = scores.offsets, scores.shifts, scores.core
    # Σ f (core + g)^i for i = 0 … 3, a polynomial in h with binomial coefficients.
    zeroth = f.sum(axis=-1, keepdims=True)
    first = core.mean(f) + (f * g).sum(axis=-1, keepdims=True)
    second = core.second_moments(f) + 2 * core.mean(f * g) + (f * g**2).sum(axis=-1, keepdims=True)
    third = core.moments(f, 3) + 3 * core.second_moments(f * g) + 3 * core.mean(f * g**2)
    third = third + (f * g**3).sum(axis=-1, keepdims=True)
    return third + 3 * h * second + 3 * h**2 * first + h**3 * zeroth
