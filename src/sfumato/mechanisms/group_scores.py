"""Scores of the group response."""

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sfumato.foundation.arrays import Floats, Symbols
from sfumato.mechanisms.code_scores import (
    BatchScores,
    MembershipKernel,
    batch_scores,
    exact_group_scores,
    require_balanced,
    zero_in_sets,
)
from sfumato.mechanisms.coded_scores import CodeBatch, CodedScores, Part
from sfumato.mechanisms.group_levels import GroupLevels

if TYPE_CHECKING:
    from sfumato.mechanisms.mechanism import Mechanism

__all__ = ["GroupScores"]


class GroupScores(CodedScores):
    """The scores of groups that cover for each other.

    Let v_j be the probability that a symbol outside group j sends one of its reports. A report of
    group j says ``(1 − v_j)/β`` about j's total and ``−v_l/β`` about the total of any other group.

    ``levels`` are the integers of each batch's code, ``beta`` is β, and ``leftover`` the share of
    leftover words, which give report 0 for every symbol.
    """

    def __init__(
        self,
        mechanism: "Mechanism",
        batches: list[CodeBatch],
        levels: list[GroupLevels],
        *,
        free: Symbols,
        beta: Fraction,
        leftover: Fraction,
    ) -> None:
        super().__init__(mechanism, batches, free, beta)
        self._levels = levels
        self._leftover = leftover

    def _leftover_of(self, group: int) -> Fraction:
        """Return the share of leftover words on the reports of a group."""
        return self._leftover if group == 0 else Fraction(0)

    def _cover_share(self, batch: CodeBatch, group: int) -> Fraction:
        """Return v_j."""
        words = batch.code.outputs * self._levels[batch.number].cover
        cover = Fraction(words, self.mechanism.denominator)
        return cover + self._leftover_of(group)

    def _shares(self, batch: CodeBatch) -> tuple[Floats, Floats]:
        """Return v_j and the share of leftover words, a column over the groups of a batch."""
        groups = batch.groups.tolist()
        v = np.array([self._cover_share(batch, g) for g in groups], dtype=np.float64)
        leftover = np.array([self._leftover_of(g) for g in groups], dtype=np.float64)
        return v[:, None], leftover[:, None]

    def _build_part(self, batch: CodeBatch) -> Part:
        v, leftover = self._shares(batch)
        beta = float(self._beta)
        inside = batch_scores(
            batch.code,
            batch.sizes,
            rise=self._rise(batch),
            leftover=leftover,
            totals=(1 - v) / beta,
        )
        return Part(batch, inside, inside.shifts - v / beta / batch.sizes[:, None])

    def _rise(self, batch: CodeBatch) -> Fraction:
        level = self._levels[batch.number]
        return Fraction(level.high - level.low, self.mechanism.denominator)

    def _build_paper_part(self, batch: CodeBatch) -> Part:
        """``G ([y ∈ S_x] − P(S_x | a stranger) − τ(y) h)``.

        h is how much likelier a member of the group other than x is to hit S_x than a stranger.
        """
        code = batch.code
        level = self._levels[batch.number]
        require_balanced(code)
        N = self.mechanism.denominator
        beta = float(self._beta)
        v, leftover = self._shares(batch)
        own = code.raised - code.shared  # the outputs of S_x that another point does not share
        G = float(N / (own * (level.high - level.low)))
        member_words = code.shared * level.high + own * level.low
        h = float((member_words - code.raised * level.cover) / N)
        cover = code.raised * level.cover / N
        shifts = -G * leftover * zero_in_sets(code)
        used = np.arange(code.points) < batch.sizes[:, None]
        offsets = -G * (cover + h * (1 - v) / beta)
        offsets = np.broadcast_to(offsets, (batch.sizes.size, code.outputs))
        inside = BatchScores(MembershipKernel(code, G), used, offsets, shifts)
        return Part(batch, inside, shifts - G * (cover - h * v / beta))

    def _exact_scores(self, batch: CodeBatch, row: int, output: int | None) -> list[Fraction]:
        group = int(batch.groups[row])
        is_own = output is not None
        return exact_group_scores(
            batch.code,
            int(batch.sizes[row]),
            output,
            rise=self._rise(batch),
            leftover=self._leftover_of(group),
            total=(is_own - self._cover_share(batch, group)) / self._beta,
        )
