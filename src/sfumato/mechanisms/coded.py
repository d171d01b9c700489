"""Mechanisms that encode groups of symbols, with scores computed by fast transforms.

"The paper" is Acharya et al. (2020).
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.codes import Code
from sfumato.foundation.arrays import Booleans, Floats, PerPerson, Symbols, Words
from sfumato.mechanisms.code_scores import (
    BatchScores,
    MembershipKernel,
    batch_scores,
    exact_group_scores,
    require_balanced,
    row_sums,
    zero_in_sets,
)
from sfumato.mechanisms.group_levels import GroupLevels
from sfumato.mechanisms.mechanism import Mechanism, require_max_outputs
from sfumato.mechanisms.scores import Reach, Scores, float_vector, require_people
from sfumato.tally import Tally

__all__ = [
    "CodeBatch",
    "CodedMechanism",
    "CodedScores",
    "GroupScores",
    "ScorePart",
    "indices_by_value",
    "respond_by_index",
]

Index = Any
"""An index into an array, such as an array of integers or a slice."""


@dataclass(frozen=True)
class CodeBatch:
    """The groups that share the code at ``code_index``, which one transform can process together.

    ``groups``, ``sizes`` and ``first_reports`` contain each group's index, size and first report.
    ``reports`` selects the groups' reports, as a table of shape ``(groups, outputs of the code)``.
    ``symbols`` selects their symbols. For each symbol, ``rows`` contains the row of its group in
    the batch, and ``points`` its point in the code.
    """

    code_index: int
    code: Code
    groups: NDArray[np.int64]
    sizes: NDArray[np.int64]
    first_reports: NDArray[np.int64]
    reports: Index
    symbols: Index
    rows: Index
    points: Index

    def arrange_by_point(self, values: Floats) -> Floats:
        """Return the symbols' values as a ``(groups, points)`` table, with 0 for unused points."""
        table = np.zeros((self.sizes.size, self.code.points))
        table[self.rows, self.points] = values[self.symbols]
        return table

    def fill(self, values: Floats, table: Floats) -> None:
        """Copy a ``(groups, points)`` table into the symbols' entries of ``values``."""
        values[self.symbols] = table[self.rows, self.points]

    def members(self, row: int) -> list[int]:
        """Return the symbols of the group in the given row of the batch."""
        if isinstance(self.symbols, slice):
            return list(range(self.symbols.start, self.symbols.stop))
        return self.symbols[self.rows == row].tolist()


class CodedMechanism(Mechanism):
    """A mechanism that divides symbols into groups and encodes each group with a code.

    The reports of the groups come first, group by group, one for each output of the group's code.
    A symbol in no group is *free* and has its own report. The reports of free symbols come last, in
    symbol order.
    """

    _code_families: Any  # one code family for all groups, or a list with a family for each group
    _beta = Fraction(1)  # the probability that a free symbol produces its own report

    def _set_groups(
        self,
        codes: list[Code],
        code_index_of_group: NDArray[np.int64],
        group_of: Symbols,
        point_of: Symbols,
    ) -> None:
        """Set the codes, and assign report numbers to groups and free symbols.

        ``code_index_of_group`` contains the index of each group's code. ``group_of`` contains the
        group of each symbol (−1 for a free symbol), and ``point_of`` its point in the group's code.
        """
        self._codes = codes
        self._code_index_of_group = code_index_of_group
        self._group_of = group_of
        self._point_of = point_of
        self._point_words: Words = point_of.view(np.uint64)
        # The index of each symbol's code; len(codes) for free symbols.
        code_index_of = np.append(code_index_of_group, len(codes))[group_of]
        self._code_index_of = code_index_of.astype(np.min_scalar_type(len(codes)))
        output_counts = np.array([code.outputs for code in codes], dtype=np.int64)
        # The number of reports of each group.
        self._report_counts = output_counts[code_index_of_group]
        # The first report of each group.
        self._group_starts = np.cumsum(self._report_counts) - self._report_counts
        self._coded_outputs = int(self._report_counts.sum())
        self._free_symbols = np.flatnonzero(group_of < 0)
        self.outputs = require_max_outputs(self._coded_outputs + self._free_symbols.size)

    def with_word_bits(self, word_bits: int) -> Self:
        """Return the same mechanism with words of ``word_bits`` bits."""
        cls: Any = type(self)
        return cls(self.context, self._code_families, word_bits=word_bits)

    def _locate(self, x: int) -> tuple[int, slice, Booleans]:
        """Return the index of x's code, the reports of x's group, and a mask of those in S_x."""
        g = int(self._group_of[x])
        code_index = int(self._code_index_of_group[g])
        start = int(self._group_starts[g])
        code = self._codes[code_index]
        favoured = code.membership(int(self._point_of[x]))
        return code_index, slice(start, start + code.outputs), favoured

    @cached_property
    def _batches(self) -> list[CodeBatch]:
        """One batch of groups for each code. Built on first use: a client never needs batches."""
        sizes = np.bincount(self._group_of[self._group_of >= 0], minlength=self._group_starts.size)
        row_of_group = np.zeros(self._group_starts.size, dtype=np.int64)
        batches = []
        for code_index, symbols in enumerate(self._symbols_by_code()):
            code = self._codes[code_index]
            groups = np.flatnonzero(self._code_index_of_group == code_index)
            row_of_group[groups] = np.arange(groups.size)
            first_reports = self._group_starts[groups]
            points = self._point_of[symbols]
            reports: Index
            layout: tuple[Index, Index, Index]  # symbols, rows, points
            if groups.size == 1 and _are_consecutive(symbols, points):
                # Use slices to avoid copying large arrays.
                start = int(first_reports[0])
                reports = (None, slice(start, start + code.outputs))
                symbol_slice = slice(int(symbols[0]), int(symbols[0]) + symbols.size)
                layout = (symbol_slice, 0, slice(0, symbols.size))
            else:
                reports = first_reports[:, None] + np.arange(code.outputs)
                layout = (symbols, row_of_group[self._group_of[symbols]], points)
            batches.append(
                CodeBatch(code_index, code, groups, sizes[groups], first_reports, reports, *layout)
            )
        return batches

    def _symbols_by_code(self) -> list[Symbols]:
        return indices_by_value(self._code_index_of, len(self._codes))


def _are_consecutive(symbols: Symbols, points: NDArray[np.int64]) -> bool:
    """Return whether the symbols are consecutive and their points are 0, 1, 2 and so on."""
    in_sequence = symbols[-1] - symbols[0] == symbols.size - 1
    return bool(in_sequence and (points == np.arange(symbols.size)).all())


def indices_by_value(numbers: NDArray[np.integer], value_count: int) -> list[Symbols]:
    """Return, for each value below ``value_count``, the indices where ``numbers`` has that value.

    >>> indices_by_value(np.array([1, 0, 1, 2]), 2)
    [array([1]), array([0, 2])]
    """
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=value_count))
    return np.split(order, ends[:value_count])[:-1]


def respond_by_index(
    respond: Callable[[int, PerPerson, Any], PerPerson],
    count: int,
    index: PerPerson,
    symbols: PerPerson,
    words: Any,  # noqa: ANN401 - one word for each person, or all of them
) -> PerPerson:
    """Return ``respond(index, symbols, words)`` for people whose indices are below ``count``.

    Where the index is ``count``, return any number.
    """
    if isinstance(index, int):
        return respond(min(index, count - 1), symbols, words)
    reports = np.empty(index.size, dtype=np.uint64)
    for i, people in enumerate(indices_by_value(index, count)):
        if people.size:
            reports[people] = respond(i, symbols.take(people), words.take(people, axis=-1))
    return reports


@dataclass(frozen=True)
class ScorePart:
    """One batch's scores: ``inside`` for reports of the symbol's group, ``outside`` for others."""

    batch: CodeBatch
    inside: BatchScores
    outside: Floats


class CodedScores(Scores):
    """Scores computed with one transform per code.

    A free symbol has a score of ``1/β`` on its own report and 0 on all others.
    """

    mechanism: CodedMechanism

    def __init__(self, mechanism: CodedMechanism) -> None:
        super().__init__(mechanism)
        self._batches = mechanism._batches
        self._free_symbols = mechanism._free_symbols
        self._beta = mechanism._beta
        self._coded_outputs = mechanism._coded_outputs

    @cached_property
    def _score_parts(self) -> list[ScorePart]:
        return [self._build_part(batch) for batch in self._batches]

    @abstractmethod
    def _build_part(self, batch: CodeBatch) -> ScorePart:
        """Return the batch's corrected scores."""

    @cached_property
    def _paper_score_parts(self) -> list[ScorePart]:
        return [self._build_paper_part(batch) for batch in self._batches]

    @abstractmethod
    def _build_paper_part(self, batch: CodeBatch) -> ScorePart:
        """Return the paper's scores; raise ``ContextMismatch`` if the code is not balanced."""

    def exact_column(self, y: int) -> list[Fraction]:
        """Return ``A[·, y]`` exactly, group by group."""
        column = [Fraction(0)] * self.mechanism.inputs
        for batch in self._batches:
            for row, first_report in enumerate(batch.first_reports.tolist()):
                is_group_report = first_report <= y < first_report + batch.code.outputs
                output = y - first_report if is_group_report else None
                scores = self._exact_scores(batch, row, output)
                for x, score in zip(batch.members(row), scores, strict=True):
                    column[x] = score
        if y >= self._coded_outputs:
            column[int(self._free_symbols[y - self._coded_outputs])] = 1 / self._beta
        return column

    @abstractmethod
    def _exact_scores(self, batch: CodeBatch, row: int, output: int | None) -> list[Fraction]:
        """Return one group's scores for an output of its code; ``None`` means any other report."""

    # --- sums ------------------------------------------------------------------------------------

    def moments(self, frequencies: ArrayLike, power: int) -> Floats:
        """Return ``Σ_y f(y) A[x, y]^power``, with one transform per code and power."""
        return self._moments_from(self._score_parts, frequencies, power)

    def _moments_from(self, parts: list[ScorePart], frequencies: ArrayLike, power: int) -> Floats:
        f = float_vector(frequencies, self.mechanism.outputs, "frequencies")
        moments = np.empty(self.mechanism.inputs)
        for part in parts:
            group_frequencies = f[part.batch.reports]
            other_frequency = f.sum() - row_sums(group_frequencies)
            table = part.inside.moments(group_frequencies, power)
            table += other_frequency * part.outside**power
            part.batch.fill(moments, table)
        moments[self._free_symbols] = f[self._coded_outputs :] / float(self._beta**power)
        return moments

    def totals(self, weights: ArrayLike) -> Floats:
        """Return ``Σ_x weights_x A[x, y]``, with one transform per code."""
        w = float_vector(weights, self.mechanism.inputs, "weights")
        totals = np.zeros(self.mechanism.outputs)
        outside_total = 0.0
        for part in self._score_parts:
            by_point = part.batch.arrange_by_point(w)
            outside = row_sums(by_point * part.outside)
            totals[part.batch.reports] = part.inside.totals(by_point) - outside
            outside_total += float(outside.sum())
        totals[self._coded_outputs :] = w[self._free_symbols] / float(self._beta)
        return totals + outside_total

    def squares(self) -> Floats:
        """Return ``Σ_x A[x, y]²``, with three transforms per code."""
        squares = np.zeros(self.mechanism.outputs)
        outside_total = 0.0
        for part in self._score_parts:
            outside = row_sums(part.inside.used * part.outside**2)
            squares[part.batch.reports] = part.inside.squares() - outside
            outside_total += float(outside.sum())
        squares[self._coded_outputs :] = float(1 / self._beta**2)
        return squares + outside_total

    # --- extremes --------------------------------------------------------------------------------

    def _compute_reach(self) -> Reach:
        """Return the extremes of each symbol's scores over all reports.

        A free symbol has only two distinct scores. The largest sum of absolute scores is an upper
        bound, which is exact if there are no leftover words.
        """
        free_score = float(1 / self._beta)
        highest = np.full(self.mechanism.inputs, free_score)
        lowest = np.full(self.mechanism.inputs, 0.0 if self.mechanism.outputs > 1 else free_score)
        outside_total = 0.0
        outside_sums = []
        for part in self._score_parts:
            sums = row_sums(np.abs(part.inside.used * part.outside))
            outside_sums.append(sums)
            outside_total += float(sums.sum())
        has_other_reports = self.mechanism._group_starts.size > 1 or self._free_symbols.size > 0
        max_absolute_sum = free_score + outside_total if self._free_symbols.size else 0.0
        for part, batch_outside_sums in zip(self._score_parts, outside_sums, strict=True):
            high, low = part.inside.extremes()
            if has_other_reports:
                high = np.maximum(high, part.outside)
                low = np.minimum(low, part.outside)
            part.batch.fill(highest, high)
            part.batch.fill(lowest, low)
            sums = part.inside.absolute_sums() - batch_outside_sums
            max_absolute_sum = max(max_absolute_sum, float(sums.max()) + outside_total)
        return Reach(highest, lowest, max_absolute_sum)

    # --- the paper's estimator -------------------------------------------------------------------

    def paper_estimate(self, tally: Tally) -> Floats:
        """Return the paper's estimate (sections 5.1 and 6.1), without the correction."""
        return self._moments_from(self._paper_score_parts, self._frequencies(tally), 1)

    def paper_variances(self, p: ArrayLike, n: int) -> Floats:
        """Return the exact variances of ``paper_estimate`` for ``n`` people drawn from p."""
        second_moments = self._moments_from(self._paper_score_parts, self.mechanism.forward(p), 2)
        return (second_moments - np.asarray(p, dtype=np.float64) ** 2) / require_people(n)


class GroupScores(CodedScores):
    """Scores for groups of symbols that cover for each other.

    Let v_j be the probability that a symbol outside group j produces one of j's reports. A report
    of group j adds ``(1 − v_j)/β`` to j's total; any other report adds ``−v_j/β``.

    ``levels`` contains the levels of each code, and ``leftover`` is the share of leftover words,
    which map to report 0 for every symbol.
    """

    def __init__(
        self, mechanism: CodedMechanism, levels: list[GroupLevels], leftover: Fraction
    ) -> None:
        super().__init__(mechanism)
        self._levels = levels
        self._leftover = leftover

    def _cover_share(self, batch: CodeBatch) -> Fraction:
        """Return v_j without the leftover words' contribution."""
        words = batch.code.outputs * self._levels[batch.code_index].cover
        return Fraction(words, self.mechanism.denominator)

    def _outside_shares(self, batch: CodeBatch) -> tuple[Floats, Floats]:
        """Return v_j and the share of leftover words, as columns over the groups of a batch."""
        leftover = np.where(batch.groups == 0, float(self._leftover), 0.0)
        v = float(self._cover_share(batch)) + leftover
        return v[:, None], leftover[:, None]

    def _build_part(self, batch: CodeBatch) -> ScorePart:
        v, leftover = self._outside_shares(batch)
        beta = float(self._beta)
        inside = batch_scores(
            batch.code,
            batch.sizes,
            rise=self._rise(batch),
            leftover=leftover,
            totals=(1 - v) / beta,
        )
        return ScorePart(batch, inside, inside.shifts - v / beta / batch.sizes[:, None])

    def _rise(self, batch: CodeBatch) -> Fraction:
        level = self._levels[batch.code_index]
        return Fraction(level.high - level.low, self.mechanism.denominator)

    def _build_paper_part(self, batch: CodeBatch) -> ScorePart:
        """Return the scores ``G ([y ∈ S_x] − P(S_x | outside the group) − τ(y) h)``.

        h is the probability that another member of x's group produces a report in S_x, minus the
        probability that a symbol outside the group does. G makes the scores unbiased.
        """
        code = batch.code
        level = self._levels[batch.code_index]
        require_balanced(code)
        N = self.mechanism.denominator
        beta = float(self._beta)
        v, leftover = self._outside_shares(batch)
        unshared = code.raised - code.shared  # how many outputs of S_x another point does not share
        G = float(N / (unshared * (level.high - level.low)))
        member_words = code.shared * level.high + unshared * level.low
        h = float((member_words - code.raised * level.cover) / N)
        cover_share = code.raised * level.cover / N
        shifts = -G * leftover * zero_in_sets(code)
        used = np.arange(code.points) < batch.sizes[:, None]
        offsets = -G * (cover_share + h * (1 - v) / beta)
        offsets = np.broadcast_to(offsets, (batch.sizes.size, code.outputs))
        inside = BatchScores(MembershipKernel(code, G), used, offsets, shifts)
        return ScorePart(batch, inside, shifts - G * (cover_share - h * v / beta))

    def _exact_scores(self, batch: CodeBatch, row: int, output: int | None) -> list[Fraction]:
        leftover = self._leftover if batch.groups[row] == 0 else Fraction(0)
        v = self._cover_share(batch) + leftover
        is_group_report = output is not None
        return exact_group_scores(
            batch.code,
            int(batch.sizes[row]),
            output,
            rise=self._rise(batch),
            leftover=leftover,
            total=(is_group_report - v) / self._beta,
        )
