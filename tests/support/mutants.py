"""Mechanisms with one planted fault each, all of which the exam must detect.

Most of the faults come from published libraries. `MUTANTS` lists the mechanisms by the name of the
check that must notice the fault first.
"""

from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.codes import CyclicCode, CyclicDesign, HadamardCode, RandomizedCode
from sfumato.contexts import Blocks, HighLow, PrivacyMatrix, Tiers, Uniform
from sfumato.mechanisms import (
    BinaryResponse,
    BlockResponse,
    GroupResponse,
    HighLowResponse,
    PlainResponse,
    Reach,
)
from sfumato.mechanisms.blocks import BlockScores
from sfumato.mechanisms.code_scores import exact_group_scores
from sfumato.mechanisms.coded import GroupScores
from sfumato.randomness import SystemWords
from sfumato.tally import Tally

one = np.uint64(1)
zero = np.uint64(0)

# --- codes whose kernel is not their table --------------------------------------------------------


class OffByOneRow(HadamardCode):
    """Row x of the Hadamard matrix instead of row x+1: an error in the paper."""

    def encode(self, point, word):
        return super().encode(np.maximum(point, one) - one, word)

    def output_at(self, point, index):
        return super().output_at(np.maximum(point, one) - one, index)


class FlippedTwice(HadamardCode):
    """A wrong sign is flipped and flipped back: every output is uniform."""

    def encode(self, point, word):
        return word & np.uint64(self.outputs - 1)


class InvertedCoin(HadamardCode):
    """The sign that should be rare is the common one."""

    def encode(self, point, word):
        return super().encode(point, word) ^ (point + one & (~(point + one) + one))


class LastBitNotRandomised(HadamardCode):
    """The lowest bit of the output is always 0."""

    def encode(self, point, word):
        return super().encode(point, word) & ~one


class ThresholdOffByOne(HadamardCode):
    """``<`` instead of ``<=``: the coin is wrong for one value of the word."""

    def encode(self, point, word):
        edge = (word >> np.uint64(self._log_outputs)) == np.uint64(self._threshold)
        return super().encode(point, np.where(edge, word - np.uint64(self.outputs), word))


class ComplementOfTheWrongPoint(RandomizedCode):
    """A false answer is any point but x−1, instead of any point but x."""

    def encode(self, point, word):
        answer = super().encode(point, word)
        lying = (word >= np.uint64(self.high)) & (
            word <= np.uint64(self.denominator - self.leftover - 1)
        )
        return np.where(lying, (answer + one) % np.uint64(self.outputs), answer)


class LeftoverToTheTruth(RandomizedCode):
    """The leftover words report x itself."""

    def encode(self, point, word):
        return np.where(
            word <= np.uint64(self.denominator - self.leftover - 1),
            super().encode(point, word),
            point,
        )


class LeftoverEdge(RandomizedCode):
    """``<`` instead of ``<=`` at the last word that is not left over."""

    def encode(self, point, word):
        last = word == np.uint64(self.denominator - self.leftover - 1)
        return np.where(last, zero, super().encode(point, word))


class FaultyAtFullWords(HadamardCode):
    """Correct for short words, wrong at 64 bits: only the statistical check can see it."""

    def encode(self, point, word):
        answer = super().encode(point, word)
        if self.word_bits < 64:
            return answer
        return np.where(word >> np.uint64(57) == zero, point & np.uint64(self.outputs - 1), answer)


# --- codes whose table is not the promise ---------------------------------------------------------


class OneUnitTooMuch(HadamardCode):
    """Odds one unit above the maximum."""

    def __init__(self, points, epsilon, word_bits=64):
        super().__init__(points, epsilon, word_bits)
        self._threshold += 1
        self.high += 2
        self.low -= 2


class OddsOnePerCentHigh(RandomizedCode):
    """e^ε too large by 1 %."""

    def __init__(self, points, epsilon, word_bits=64):
        super().__init__(points, epsilon + Fraction(1, 100), word_bits)


class OddsOnePerCentLow(RandomizedCode):
    """e^ε too small by 1 %: private, but not the mechanism of the formula."""

    def __init__(self, points, epsilon, word_bits=64):
        super().__init__(points, epsilon - Fraction(1, 100), word_bits)
        self._epsilon = float(epsilon)


class RecordWithoutWord(HadamardCode):
    """A record that is the same for different word sizes."""

    def to_record(self):
        return {"kind": self.kind, "points": self.points}


# --- frames ---------------------------------------------------------------------------------------


class BlocksOverlap(BlockResponse):
    """Every block's reports start at 0."""

    def _respond(self, symbols, words):
        return super()._respond(symbols, words) - self._first_report_of[symbols]


class FreeSymbolsNeverTakeCover(HighLowResponse):
    """Symbols that are not sensitive always report themselves, so they give no cover."""

    def _respond(self, symbols, words):
        free = self._group_of[symbols] < 0
        return np.where(free, self._own_report[symbols], super()._respond(symbols, words))


class CoverShiftedByOne(HighLowResponse):
    """Cover reports are shifted by one."""

    def _respond(self, symbols, words):
        answer = super()._respond(symbols, words)
        covered = np.uint64(self._code.outputs)
        covering = (self._group_of[symbols] < 0) & (answer < covered)
        return np.where(covering, np.minimum(answer + one, covered - one), answer)


class OwnCoverCountedTwice(GroupResponse):
    """A member takes cover in its own group's reports, as if it were not a member."""

    def _respond(self, symbols, words):
        word = words[0]
        outsider = np.full(symbols.size, self._free_symbols[0]).view(np.uint64)
        covered = word < np.uint64(self._cover_end)
        return np.where(
            covered, super()._respond(outsider, words), super()._respond(symbols, words)
        )


class OddsOfTheOtherGroup(GroupResponse):
    """The groups' levels are swapped: the strict group gets the odds of the lax one."""

    def _set_integers(self, group_of, integers):
        swapped = replace(integers, code_index_of_group=integers.code_index_of_group[::-1])
        super()._set_integers(group_of, swapped)


class TotalsForgotten(GroupScores):
    def exact_column(self, y):
        column = super().exact_column(y)
        members = np.flatnonzero(self.mechanism._group_of == 0)
        return [
            score + Fraction(1, members.size) * (x in members) for x, score in enumerate(column)
        ]


class GroupTotalsForgotten(GroupResponse):
    """Scores that assume a total of 1 for every group, as in blocks."""

    @cached_property
    def scores(self):
        scores = super().scores
        scores.__class__ = TotalsForgotten
        return scores


class TurnedTheOtherWay(CyclicCode):
    """``x + d`` instead of ``x − d``."""

    def output_at(self, point, index):
        steps, first = self._steps_and_first_outputs
        K = np.uint64(self.points)
        return first[index] + (point + K - steps[index]) % K


class CyclicDesignTurned(CyclicDesign):
    """The family of codes that turn the other way."""

    def __call__(self, points, epsilon, word_bits=64):
        code = super().__call__(points, epsilon, word_bits)
        code.__class__ = TurnedTheOtherWay
        return code


class KernelOfTheFirstBlock(CyclicCode):
    """All base blocks are decoded with the kernel of the first."""

    def exact_kernels(self):
        first, *_ = super().exact_kernels()
        return [first] * len(self.design.base)


class CyclicDesignMisread(CyclicDesign):
    """The family of codes that decode with one kernel."""

    def __call__(self, points, epsilon, word_bits=64):
        code = super().__call__(points, epsilon, word_bits)
        code.__class__ = KernelOfTheFirstBlock
        return code


class LeftoverForgotten(HighLowResponse):
    """The row omits its leftover words."""

    def compact_row(self, x):
        levels, which = super().compact_row(x)
        levels[which[0]] -= self._leftover
        return levels, which


class FlipsSwapped(BinaryResponse):
    """Each symbol flips with the other one's probability."""

    def __init__(self, context, *, word_bits=64):
        super().__init__(context, word_bits=word_bits)
        self._flips = self._flips[::-1]
        self._flip_array = self._flip_array[::-1]


class ForgedStructure(PlainResponse):
    """Claims smaller odds for its rows than they have."""

    def row_classes(self):
        return tuple(replace(claim, high=claim.low, leftover=0) for claim in super().row_classes())


class ForwardForgetsLeftover(PlainResponse):
    """``forward`` omits the leftover words."""

    def forward(self, p):
        q = super().forward(p)
        q[0] -= float(np.sum(p)) * self._codes[0].leftover / self._codes[0].denominator
        return q


def with_scores(kind):
    """Return a `scores` property of this class."""
    return cached_property(kind)


class WithoutLeftover(BlockScores):
    def _exact_scores(self, batch, row, output):
        code = batch.code
        return exact_group_scores(
            code,
            int(batch.sizes[row]),
            output,
            rise=code.rise,
            leftover=Fraction(0),
            total=Fraction(1),
        )


class ScoresForgetLeftover(PlainResponse):
    """Scores computed as if no words were left over."""

    scores = with_scores(WithoutLeftover)


class WithoutCorrection(BlockScores):
    def mean(self, frequencies):
        return self._moments_from(self._paper_score_parts, frequencies, 1)


class FastScoresForgetCorrection(BlockResponse):
    """The fast estimate is the paper's; the exact one is corrected."""

    scores = with_scores(WithoutCorrection)


class HalfLeverage(BlockScores):
    @property
    def leverage(self):
        return super().leverage / 2


class LeverageTooSmall(PlainResponse):
    """Reports half of the leverage of a forged report."""

    scores = with_scores(HalfLeverage)


class HalfReach(BlockScores):
    def _compute_reach(self):
        reach = super()._compute_reach()
        return Reach(reach.highest / 2, reach.lowest / 2, reach.max_absolute_sum)


class ReachTooSmall(PlainResponse):
    """Reports half of the effect of a forged report on one symbol."""

    scores = with_scores(HalfReach)


class HalfWeight(BlockScores):
    def _compute_reach(self):
        reach = super()._compute_reach()
        return replace(reach, max_absolute_sum=reach.max_absolute_sum / 2)


class WeighsTooLittle(PlainResponse):
    """Reports half of the effect of a forged report on all symbols together."""

    scores = with_scores(HalfWeight)


class WithoutMean(BlockScores):
    def variances(self, p, n):
        return self.moments(self.mechanism.forward(p), 2) / n


class VariancesForgetTheMean(BlockResponse):
    """``n Var = E[A²]``, without subtracting p²."""

    scores = with_scores(WithoutMean)


class LooksAtNeighbours(PlainResponse):
    """A single symbol gives another report than the same symbol in an array."""

    def _respond(self, symbols, words):
        answer = super()._respond(symbols, words)
        return (answer + 1) % self.outputs if isinstance(symbols, int) else answer


class RejectsWords(PlainResponse):
    """Symbol 0 draws another word: the number of words reveals the symbol."""

    def privatize(self, symbols, source=None):
        source = SystemWords() if source is None else source
        if (np.asarray(symbols) == 0).any():
            source.take(1)
        return super().privatize(symbols, source)


class CountsTwice(PlainResponse):
    """The first batch of a stream is counted twice."""

    def tally(self, reports):
        if isinstance(reports, np.ndarray):
            return super().tally(reports)
        batches = list(reports)
        return super().tally([batches[0], *batches])


class AnyTally(BlockScores):
    def _frequencies(self, tally):
        return super()._frequencies(replace(tally, fingerprint=self.mechanism.fingerprint))


class TakesAnyTally(PlainResponse):
    """The tally of another mechanism is accepted."""

    scores = with_scores(AnyTally)


class TallyLosesAReport(PlainResponse):
    """A tally is missing one report."""

    def tally(self, reports):
        tally = super().tally(reports)
        counts = np.array(tally.counts)
        counts[counts.argmax()] -= 1
        return Tally(counts, tally.fingerprint)


uniform = Uniform(5, 1)
asymmetric = PrivacyMatrix([[0, 0.5], [2, 0]])
blocks = Blocks([0, 0, 0, 1, 1, 2], 1)
high_low = HighLow(5, [0, 2, 3], 1)
uniform_7 = Uniform(7, 1)
tiers = Tiers([0, 0, 0, 1, 1, 2], [1, 2, "inf"])
two_groups = Tiers([0, 0, 0, 1, 1, 1], [1, 2])

MUTANTS = {
    "kernel_matches_integers": [
        PlainResponse(uniform, OffByOneRow),
        PlainResponse(uniform, FlippedTwice),
        PlainResponse(uniform, InvertedCoin),
        PlainResponse(uniform, LastBitNotRandomised),
        PlainResponse(uniform, ThresholdOffByOne),
        PlainResponse(uniform, ComplementOfTheWrongPoint),
        PlainResponse(uniform, LeftoverToTheTruth),
        PlainResponse(uniform, LeftoverEdge),
        BlockResponse(blocks, OffByOneRow),
        HighLowResponse(high_low, OffByOneRow),
        BlocksOverlap(blocks),
        FreeSymbolsNeverTakeCover(high_low),
        CoverShiftedByOne(high_low),
        OwnCoverCountedTwice(tiers, RandomizedCode),
        PlainResponse(uniform_7, CyclicDesignTurned(7, ((0, 1, 3),))),
    ],
    "keeps_its_context": [
        PlainResponse(uniform, OneUnitTooMuch),
        BlockResponse(blocks, OneUnitTooMuch),
        HighLowResponse(high_low, OneUnitTooMuch),
        PlainResponse(uniform, OddsOnePerCentHigh),
        FlipsSwapped(asymmetric),
        OddsOfTheOtherGroup(two_groups, RandomizedCode),
    ],
    "structure_is_as_claimed": [ForgedStructure(uniform)],
    "formula_is_met": [PlainResponse(uniform, OddsOnePerCentLow)],
    "rows_sum_to_one": [LeftoverForgotten(high_low, RandomizedCode)],
    "transforms_match_the_matrix": [ForwardForgetsLeftover(uniform, RandomizedCode)],
    "scores_undo_the_channel": [
        ScoresForgetLeftover(uniform, RandomizedCode),
        GroupTotalsForgotten(tiers, RandomizedCode),
        PlainResponse(uniform_7, CyclicDesignMisread(7, ((0, 1), (0, 2)))),
    ],
    "fast_scores_match_exact_ones": [
        FastScoresForgetCorrection(blocks),
        LeverageTooSmall(uniform),
        ReachTooSmall(uniform),
        WeighsTooLittle(uniform),
    ],
    "moments_match_the_scores": [VariancesForgetTheMean(blocks)],
    "reports_are_a_pure_function": [LooksAtNeighbours(uniform)],
    "words_do_not_depend_on_the_symbol": [RejectsWords(uniform)],
    "tallies_add_up": [CountsTwice(uniform), TakesAnyTally(uniform), TallyLosesAReport(uniform)],
    "records_are_canonical": [PlainResponse(uniform, RecordWithoutWord)],
    "sampler_matches_its_matrix": [PlainResponse(uniform, FaultyAtFullWords)],
}
