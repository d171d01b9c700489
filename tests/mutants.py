"""Faults, planted one at a time. Most were found in published libraries; each must be caught by the exam.

Every entry of ``MUTANTS`` is a mechanism with one fault and the name of the check that must notice it first.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from sfumato.codes import HadamardCode, RandomizedCode
from sfumato.contexts import Blocks, HighLow, PrivacyMatrix, Uniform
from sfumato.mechanisms import BinaryResponse, BlockResponse, HighLowResponse, PlainResponse
from sfumato.mechanisms.scores import exact_group_scores
from sfumato.randomness.words import SystemWords
from sfumato.tally import Tally

one = np.uint64(1)
zero = np.uint64(0)

# --- codes whose kernel is not their table ----------------------------------------------------------


class OffByOneRow(HadamardCode):
    """Row x of the Hadamard matrix instead of row x+1: the paper's slip."""

    def encode(self, point, word):
        return super().encode(np.maximum(point, one) - one, word)


class FlippedTwice(HadamardCode):
    """A wrong sign is flipped and flipped back: every output is uniform."""

    def encode(self, point, word):
        return word & np.uint64(self.outputs - 1)


class InvertedCoin(HadamardCode):
    """The sign that should be rare is the frequent one."""

    def encode(self, point, word):
        return super().encode(point, word) ^ (point + one & (~(point + one) + one))


class LastBitNotRandomised(HadamardCode):
    """The lowest bit of the output is left at 0."""

    def encode(self, point, word):
        return super().encode(point, word) & ~one


class ThresholdOffByOne(HadamardCode):
    """``<`` where ``<=`` was meant: the coin lands on the wrong side for one word in the word."""

    def encode(self, point, word):
        edge = (word >> np.uint64(self._log_outputs)) == np.uint64(self._threshold)
        return super().encode(point, np.where(edge, word - np.uint64(self.outputs), word))


class ComplementOfTheWrongPoint(RandomizedCode):
    """A lie is any point but x−1, instead of any point but x."""

    def encode(self, point, word):
        answer = super().encode(point, word)
        lying = (word >= np.uint64(self.high)) & (word <= np.uint64(self.total - self.leftover - 1))
        return np.where(lying, (answer + one) % np.uint64(self.outputs), answer)


class LeftoverToTheTruth(RandomizedCode):
    """The leftover words say x itself."""

    def encode(self, point, word):
        return np.where(word <= np.uint64(self.total - self.leftover - 1), super().encode(point, word), point)


class LeftoverEdge(RandomizedCode):
    """``<`` for ``<=`` at the last word that is not left over."""

    def encode(self, point, word):
        last = word == np.uint64(self.total - self.leftover - 1)
        return np.where(last, zero, super().encode(point, word))


class FaultyAtFullWords(HadamardCode):
    """Right at every short word, wrong at 64 bits: only the statistical net can see it."""

    def encode(self, point, word):
        answer = super().encode(point, word)
        if self.word_bits < 64:
            return answer
        return np.where(word >> np.uint64(57) == zero, point & np.uint64(self.outputs - 1), answer)


# --- codes whose table is not the promise -----------------------------------------------------------


class OneUnitTooMuch(HadamardCode):
    """Odds one unit above the largest permitted."""

    def __init__(self, points, epsilon, word_bits=64):
        super().__init__(points, epsilon, word_bits)
        self._threshold += 1
        self.high, self.low = self.high + 2, self.low - 2


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
    """A record that does not tell two realisations apart."""

    def record(self):
        return {"kind": self.kind, "points": self.points}


# --- frames -----------------------------------------------------------------------------------------


class BlocksOverlap(BlockResponse):
    """Every block reports from 0 on."""

    def _respond(self, symbols, words):
        return super()._respond(symbols, words) - self._first_output[symbols]


class FreeSymbolsNeverTakeCover(HighLowResponse):
    """Symbols that are not sensitive always answer in clear: they leave the sensitive ones alone."""

    def _uncoded(self, symbols, word):
        return self._own_report[symbols]


class CoverShiftedByOne(HighLowResponse):
    """Cover answers start at output 1 and wrap."""

    def _uncoded(self, symbols, word):
        answer = super()._uncoded(symbols, word)
        covered = np.uint64(self._code.outputs)
        return np.where(answer < covered, np.minimum(answer + one, covered - one), answer)


class LeftoverForgotten(HighLowResponse):
    """The row forgets its leftover words."""

    def levels(self, x):
        levels, which = super().levels(x)
        levels[which[0]] -= self._code.leftover
        return levels, which


class FlipsSwapped(BinaryResponse):
    """Each symbol flips with the other one's probability."""

    def __init__(self, context, *, word_bits=64):
        super().__init__(context, word_bits=word_bits)
        self._flips = self._flips[::-1]
        self._flips_of = self._flips_of[::-1]


class ForgedStructure(PlainResponse):
    """Claims gentler odds of its rows than they have."""

    def row_classes(self):
        return tuple(replace(claim, high=claim.low, leftover=0) for claim in super().row_classes())


class ForwardForgetsLeftover(PlainResponse):
    """``forward`` leaves the leftover words out."""

    def forward(self, p):
        q = super().forward(p)
        q[0] -= float(np.sum(p)) * self._codes[0].leftover / self._codes[0].total
        return q


class ScoresForgetLeftover(PlainResponse):
    """Scores made as if no words were left over."""

    def exact_scores(self, y):
        code = self._codes[0]
        without = type("Code", (), {**vars(code), "contains": code.contains, "total": code.total})()
        without.leftover, without.contrast = 0, code.contrast * Fraction(1001, 1000)
        return exact_group_scores(without, self.inputs, y, Fraction(1))


class FastScoresForgetCorrection(BlockResponse):
    """The fast estimate is the simple one, the exact one is corrected."""

    def mean_scores(self, frequencies):
        return self._mean([stack.simple for stack in self._stacks], frequencies)


class LeverageTooSmall(PlainResponse):
    """Half of what a forged report can do."""

    @property
    def leverage(self):
        return super().leverage / 2


class VariancesForgetTheMean(BlockResponse):
    """``n Var = E[A²]``, without taking off p²."""

    def variances(self, p, n):
        return self.second_moments(self.forward(p)) / n


class LooksAtNeighbours(PlainResponse):
    """A person alone is answered differently from a person in a crowd."""

    def _respond(self, symbols, words):
        answer = super()._respond(symbols, words)
        return answer if symbols.size > 1 else (answer + one) % np.uint64(self.outputs)


class RejectsWords(PlainResponse):
    """Symbol 0 draws again: the number of words tells the symbol."""

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


class TakesAnyTally(PlainResponse):
    """Another mechanism's tally is accepted."""

    def _frequencies(self, tally):
        return super()._frequencies(replace(tally, fingerprint=self.fingerprint))


class TallyLosesAReport(PlainResponse):
    """A batch of more than one report loses its last."""

    def tally(self, reports):
        tally = super().tally(reports)
        counts = np.array(tally.counts)
        counts[counts.argmax()] -= 1
        return Tally(counts, tally.fingerprint)


uniform = Uniform(5, 1)
asymmetric = PrivacyMatrix([[0, 0.5], [2, 0]])
blocks = Blocks([0, 0, 0, 1, 1, 2], 1)
high_low = HighLow(5, [0, 2, 3], 1)

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
    ],
    "keeps_its_context": [
        PlainResponse(uniform, OneUnitTooMuch),
        BlockResponse(blocks, OneUnitTooMuch),
        HighLowResponse(high_low, OneUnitTooMuch),
        PlainResponse(uniform, OddsOnePerCentHigh),
        FlipsSwapped(asymmetric),
    ],
    "structure_is_as_claimed": [ForgedStructure(uniform)],
    "formula_is_met": [PlainResponse(uniform, OddsOnePerCentLow)],
    "rows_sum_to_one": [LeftoverForgotten(high_low, RandomizedCode)],
    "transforms_match_the_matrix": [ForwardForgetsLeftover(uniform, RandomizedCode)],
    "scores_undo_the_channel": [ScoresForgetLeftover(uniform, RandomizedCode)],
    "fast_scores_match_exact_ones": [FastScoresForgetCorrection(blocks), LeverageTooSmall(uniform)],
    "moments_match_the_scores": [VariancesForgetTheMean(blocks)],
    "reports_are_a_pure_function": [LooksAtNeighbours(uniform)],
    "words_do_not_depend_on_the_symbol": [RejectsWords(uniform)],
    "tallies_add_up": [CountsTwice(uniform), TakesAnyTally(uniform), TallyLosesAReport(uniform)],
    "records_are_canonical": [PlainResponse(uniform, RecordWithoutWord)],
    "sampler_matches_its_matrix": [PlainResponse(uniform, FaultyAtFullWords)],
}
