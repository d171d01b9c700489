"""Scores of mechanisms whose symbols answer through codes, computed by fast transforms."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.codes import Code
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.mechanisms.code_scores import BatchScores
from sfumato.mechanisms.reach import Reach
from sfumato.mechanisms.scores import Scores, float_vector, people_count
from sfumato.tally import Tally

if TYPE_CHECKING:
    from sfumato.mechanisms.mechanism import Mechanism

__all__ = ["CodeBatch", "CodedScores", "Part", "code_batches"]

Index = Any
"""What picks entries of an array: numbers, or a slice if they are consecutive."""


@dataclass(frozen=True)
class CodeBatch:
    """The groups that share code ``number``, so that one transform serves them all.

    ``reports`` picks the reports of the groups, as a table ``(groups, outputs of the code)``.
    ``symbols`` picks their symbols; ``rows`` and ``points`` hold the row of each symbol's group in
    the batch and its point in the code.
    """

    number: int
    code: Code
    groups: NDArray[np.int64]
    sizes: NDArray[np.int64]
    first_reports: NDArray[np.int64]
    reports: Index
    symbols: Index
    rows: Index
    points: Index

    def by_point(self, values: Floats) -> Floats:
        """Lay out values of symbols as ``(groups, points)``, 0 on unused points."""
        table = np.zeros((self.sizes.size, self.code.points))
        table[self.rows, self.points] = values[self.symbols]
        return table

    def fill(self, values: Floats, table: Floats) -> None:
        """Write the entries of a ``(groups, points)`` table to their symbols in ``values``."""
        values[self.symbols] = table[self.rows, self.points]

    def members(self, row: int) -> list[int]:
        """Return the symbols of the group in a row of the batch."""
        if isinstance(self.symbols, slice):
            return list(range(self.symbols.start, self.symbols.stop))
        return self.symbols[self.rows == row].tolist()


def code_batches(
    codes: list[Code],
    code_of_group: NDArray[np.int64],
    first_of_group: NDArray[np.int64],
    group_of: Symbols,
    point_of: Symbols,
) -> list[CodeBatch]:
    """Return one batch for each code. Symbols with group −1 are in no batch.

    The arrays hold the code and the first report of each group, and the group and the point of
    each symbol.
    """
    sizes = np.bincount(group_of[group_of >= 0], minlength=code_of_group.size)
    code_of = np.append(code_of_group, -1)[group_of]  # the entry at −1 is for symbols in no group
    row_of_group = np.zeros(code_of_group.size, dtype=np.int64)
    batches = []
    for number, code in enumerate(codes):
        groups = np.flatnonzero(code_of_group == number)
        row_of_group[groups] = np.arange(groups.size)
        symbols = np.flatnonzero(code_of == number)
        first = first_of_group[groups]
        points = point_of[symbols]
        reports: Index
        where: tuple[Index, Index, Index]
        if groups.size == 1 and _are_consecutive(symbols, points):
            # Slices, so that nothing large is copied.
            reports = (None, slice(int(first[0]), int(first[0]) + code.outputs))
            own = slice(int(symbols[0]), int(symbols[0]) + symbols.size)
            where = (own, 0, slice(0, symbols.size))
        else:
            reports = first[:, None] + np.arange(code.outputs)
            where = (symbols, row_of_group[group_of[symbols]], points)
        batches.append(CodeBatch(number, code, groups, sizes[groups], first, reports, *where))
    return batches


def _are_consecutive(symbols: Symbols, points: NDArray[np.int64]) -> bool:
    in_sequence = symbols[-1] - symbols[0] == symbols.size - 1
    return bool(in_sequence and (points == np.arange(symbols.size)).all())


@dataclass(frozen=True)
class Part:
    """The scores of one batch: for reports of the own group, and for all other reports."""

    batch: CodeBatch
    inside: BatchScores
    outside: Floats


class CodedScores(Scores):
    """Scores by one transform per code.

    Symbols are in groups that answer through codes, or *free*: a free symbol has a report of its
    own, with score ``1/β``, and score 0 on all other reports. The reports of free symbols are the
    last ones, in the order of their symbols.
    """

    def __init__(
        self, mechanism: "Mechanism", batches: list[CodeBatch], free: Symbols, beta: Fraction
    ) -> None:
        super().__init__(mechanism)
        self._batches = batches
        self._free = free
        self._beta = beta
        self._coded_outputs = mechanism.outputs - free.size

    @cached_property
    def _parts(self) -> list[Part]:
        return [self._build_part(batch) for batch in self._batches]

    @abstractmethod
    def _build_part(self, batch: CodeBatch) -> Part:
        """Compute the scores with total correction."""

    @cached_property
    def _paper_parts(self) -> list[Part]:
        return [self._build_paper_part(batch) for batch in self._batches]

    @abstractmethod
    def _build_paper_part(self, batch: CodeBatch) -> Part:
        """Compute the paper's scores. Refuse a code that is not balanced."""

    def exact(self, y: int) -> list[Fraction]:
        """Return ``A[·, y]`` exactly, group by group."""
        column = [Fraction(0)] * self.mechanism.inputs
        for batch in self._batches:
            for row, first in enumerate(batch.first_reports.tolist()):
                output = y - first if first <= y < first + batch.code.outputs else None
                scores = self._exact_scores(batch, row, output)
                for x, score in zip(batch.members(row), scores, strict=True):
                    column[x] = score
        if y >= self._coded_outputs:
            column[int(self._free[y - self._coded_outputs])] = 1 / self._beta
        return column

    @abstractmethod
    def _exact_scores(self, batch: CodeBatch, row: int, output: int | None) -> list[Fraction]:
        """Return the scores of one group for an output of its code, or for another report."""

    # --- sums ------------------------------------------------------------------------------------

    def moments(self, frequencies: ArrayLike, power: int) -> Floats:
        """Return ``Σ_y f(y) A[x, y]^power``, by one transform per code and power."""
        return self._moments_of(self._parts, frequencies, power)

    def _moments_of(self, parts: list[Part], frequencies: ArrayLike, power: int) -> Floats:
        f = float_vector(frequencies, self.mechanism.outputs, "frequencies")
        moments = np.empty(self.mechanism.inputs)
        for part in parts:
            own = f[part.batch.reports]
            others = f.sum() - own.sum(axis=-1, keepdims=True)
            table = part.inside.moments(own, power)
            table += others * part.outside**power
            part.batch.fill(moments, table)
        moments[self._free] = f[self._coded_outputs :] / float(self._beta**power)
        return moments

    def totals(self, weights: ArrayLike) -> Floats:
        """Return ``Σ_x weights_x A[x, y]``, by one transform per code."""
        w = float_vector(weights, self.mechanism.inputs, "weights")
        totals = np.zeros(self.mechanism.outputs)
        everywhere = 0.0
        for part in self._parts:
            by_point = part.batch.by_point(w)
            outside = (by_point * part.outside).sum(axis=-1, keepdims=True)
            totals[part.batch.reports] = part.inside.totals(by_point) - outside
            everywhere += float(outside.sum())
        totals[self._coded_outputs :] = w[self._free] / float(self._beta)
        return totals + everywhere

    def squares(self) -> Floats:
        """Return ``Σ_x A[x, y]²``, by three transforms per code."""
        squares = np.zeros(self.mechanism.outputs)
        everywhere = 0.0
        for part in self._parts:
            outside = (part.inside.used * part.outside**2).sum(axis=-1, keepdims=True)
            squares[part.batch.reports] = part.inside.squares() - outside
            everywhere += float(outside.sum())
        squares[self._coded_outputs :] = float(1 / self._beta**2)
        return squares + everywhere

    # --- extremes --------------------------------------------------------------------------------

    def _reach(self) -> Reach:
        """The extremes in each group and for other groups' reports; free symbols have two scores.

        The sum of absolute scores may be too large by the leftover words' share.
        """
        own_report = float(1 / self._beta)
        highest = np.full(self.mechanism.inputs, own_report)
        lowest = np.full(self.mechanism.inputs, 0.0 if self.mechanism.outputs > 1 else own_report)
        groups = 0
        everywhere = 0.0
        outside = []
        for part in self._parts:
            sums = np.abs(part.inside.used * part.outside).sum(axis=-1, keepdims=True)
            outside.append(sums)
            everywhere += float(sums.sum())
            groups += part.batch.groups.size
        has_others = groups > 1 or self._free.size > 0
        heaviest = own_report + everywhere if self._free.size else 0.0
        for part, own in zip(self._parts, outside, strict=True):
            high, low = part.inside.extremes()
            if has_others:
                high = np.maximum(high, part.outside)
                low = np.minimum(low, part.outside)
            part.batch.fill(highest, high)
            part.batch.fill(lowest, low)
            sums = part.inside.absolute_sums() - own
            heaviest = max(heaviest, float(sums.max()) + everywhere)
        return Reach(highest, lowest, heaviest)

    # --- the paper's own estimator ---------------------------------------------------------------

    def paper_estimate(self, tally: Tally) -> Floats:
        """Return the paper's own estimate (sections 5.1 and 6.1), without total correction."""
        return self._moments_of(self._paper_parts, self._frequencies(tally), 1)

    def paper_variances(self, p: ArrayLike, n: int) -> Floats:
        """Return the exact variance of ``paper_estimate``."""
        second = self._moments_of(self._paper_parts, self.mechanism.forward(p), 2)
        return (second - np.asarray(p, dtype=np.float64) ** 2) / people_count(n)
