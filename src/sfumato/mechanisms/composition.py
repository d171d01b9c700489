"""Composition: a mechanism followed by a channel, or by a second answer from the same person."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from sfumato.errors import ContextMismatch
from sfumato.foundation.arrays import Floats, KernelWords, PerPerson, Symbols
from sfumato.foundation.canonical import Json, decimal_text
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.elementwise import look_up
from sfumato.mechanisms.channel import IntegerChannel, format_rows, parse_stochastic_rows
from sfumato.mechanisms.coded import respond_by_index
from sfumato.mechanisms.dense import DenseMechanism, DenseScores, MinimumVarianceScores
from sfumato.mechanisms.mechanism import Mechanism, require_max_outputs
from sfumato.randomness import WORDS_PER_POSITION

__all__ = ["ComposedResponse", "ProcessedResponse", "compose"]

_MIN_NOISE = 1e-12  # less noise than this is only rounding error


class ProcessedResponse(DenseMechanism):
    """A mechanism followed by a channel W that never sees the symbol: post-processing.

    ``Q'(z|x) = Σ_y Q(y|x) W(z|y)`` satisfies every context that Q satisfies.

    Guarantees: for every pair of symbols x and x2,
    ``Σ_y Q(y|x) W(z|y) ≤ e^{E[x, x2]} Σ_y Q(y|x2) W(z|y)``, because every term satisfies this
    inequality. The guarantee holds for the rounded W that reports are drawn from, however much it
    differs from the W that you pass.
    Cost per report: two words, one for the mechanism and one for W.
    Error: that of the minimum-variance unbiased estimate at the uniform distribution.
    Reference: Acharya et al. (2020), Proposition 1.
    Proof: docs/proofs/processed.md.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> PlainResponse(Uniform(2, 1)).then([[1, 0], ["0.5", "0.5"], [0, 1], [0, 1]]).outputs
    2
    """

    kind: ClassVar[str] = "processed"
    words = 2

    def __init__(self, mechanism: Mechanism, W: Sequence[Sequence[object]]) -> None:
        super().__init__(mechanism.context)
        rows = parse_stochastic_rows(W, "W")
        if len(rows) != mechanism.outputs:
            raise ContextMismatch(
                f"W must have {mechanism.outputs} rows, one per report; got {len(rows)}."
            )
        if isinstance(mechanism, ProcessedResponse):  # merge two consecutive channels
            product = np.array(mechanism._W, dtype=object) @ np.array(rows, dtype=object)
            rows = product.tolist()
            mechanism = mechanism._mechanism
        if mechanism.words > 1:
            raise ContextMismatch("a channel can only follow a mechanism that uses one word.")
        self._mechanism: Mechanism = mechanism
        self._W: list[list[Fraction]] = rows
        self.word_bits = mechanism.word_bits
        self._integer_W = IntegerChannel.from_fractions(rows, self.word_bits)
        self.outputs = self._integer_W.outputs

    def to_record(self) -> Json:
        """Return both channels as JSON-compatible data."""
        return {
            "kind": self.kind,
            "mechanism": self._mechanism.to_record(),
            "word_bits": self.word_bits,
            "then": format_rows(self._integer_W.rows),
            "wanted": [list(map(decimal_text, row)) for row in self._W],
        }

    def with_word_bits(self, word_bits: int) -> Self:
        """Return the same mechanism with words of ``word_bits`` bits."""
        return type(self)(self._mechanism.with_word_bits(word_bits), self._W)

    def _respond(self, symbols: PerPerson, words: KernelWords) -> PerPerson:
        unprocessed = self._mechanism._respond(symbols, words[:1])
        return self._integer_W.choose(unprocessed, words[1])

    def integer_row(self, x: int) -> list[int]:
        """Return the row of x in the product of the two channels' integer matrices."""
        row = np.array(self._mechanism.integer_row(x), dtype=object)
        W = np.array(self._integer_W.rows, dtype=object)
        return (row @ W).tolist()

    def ideal_row(self, x: int) -> Floats:
        """Return the mechanism's row from its formula, times W before rounding."""
        return self._mechanism.ideal_row(x) @ np.array(self._W, dtype=np.float64)

    @cached_property
    def scores(self) -> MinimumVarianceScores:
        """The scores that undo the channel on average."""
        return MinimumVarianceScores(self)


class ComposedResponse(DenseMechanism):
    """A response with two answers, where the first report selects the second mechanism.

    ``Q(y1, y2|x) = Q1(y1|x) · Q2^{y1}(y2|x)`` satisfies E1 + E2.

    ``second`` is a mechanism, or a function that maps the first report to a mechanism. All second
    mechanisms must have the same context. Report ``y1 · K2 + y2`` represents the pair (y1, y2),
    where K2 is the largest number of outputs of any second mechanism.

    Guarantees: for every pair of symbols, the log-ratio is at most E1 + E2; every row sums to 1.
    Cost per report: the words of both mechanisms. Error: that of a weighted mean of both estimates;
    the weights depend on their risks.
    Reference: Acharya et al. (2020), Proposition 2.
    Proof: docs/proofs/composed.md.
    """

    kind: ClassVar[str] = "composed"

    def __init__(self, first: Mechanism, second: Mechanism | Callable[[int], Mechanism]) -> None:
        self._first = first
        if isinstance(second, Mechanism):
            self._second_mechanisms = [second] * first.outputs
        else:
            self._second_mechanisms = [second(y1) for y1 in range(first.outputs)]
        second_context = self._second_mechanisms[0].context
        for mechanism in self._second_mechanisms:
            if mechanism.context != second_context or mechanism.word_bits != first.word_bits:
                raise ContextMismatch(
                    "all mechanisms must use the same word length, and all second mechanisms must "
                    "have the same context."
                )
        super().__init__(first.context + second_context)
        self.words = first.words + max(mechanism.words for mechanism in self._second_mechanisms)
        if self.words > WORDS_PER_POSITION:
            raise ContextMismatch(
                f"two answers can use at most {WORDS_PER_POSITION} words in total; these use "
                f"{self.words}."
            )
        self.word_bits = first.word_bits
        self._max_second_outputs = max(mechanism.outputs for mechanism in self._second_mechanisms)
        self.outputs = require_max_outputs(first.outputs * self._max_second_outputs)

    def to_record(self) -> Json:
        """Return the first and second mechanisms as JSON-compatible data."""
        second_records: list[Json] = []
        for mechanism in self._distinct_mechanisms:
            second_records.append(
                {"context": mechanism.context.to_record(), "mechanism": mechanism.to_record()}
            )
        return {
            "kind": self.kind,
            "first": self._first.to_record(),
            "seconds": second_records,
            "second_of": list(self._second_index_of),
        }

    @cached_property
    def _distinct_mechanisms(self) -> list[Mechanism]:
        """The distinct second mechanisms, in the order of the first reports that select them."""
        return list({id(mechanism): mechanism for mechanism in self._second_mechanisms}.values())

    @cached_property
    def _second_index_of(self) -> list[int]:
        """For each first report, the index of its second mechanism in ``_distinct_mechanisms``."""
        return [self._distinct_mechanisms.index(mechanism) for mechanism in self._second_mechanisms]

    @cached_property
    def _second_indices(self) -> Symbols:
        """``_second_index_of`` as an array, for the kernel."""
        return np.array(self._second_index_of)

    def with_word_bits(self, word_bits: int) -> Self:
        """Return the same composition with shorter words."""
        shortened = [mechanism.with_word_bits(word_bits) for mechanism in self._distinct_mechanisms]
        return type(self)(
            self._first.with_word_bits(word_bits), lambda y1: shortened[self._second_index_of[y1]]
        )

    def _respond(self, symbols: PerPerson, words: KernelWords) -> PerPerson:
        y1 = self._first._respond(symbols, words[: self._first.words])
        second_words = words[self._first.words :]
        second_index = look_up(self._second_indices, y1)
        second_count = len(self._distinct_mechanisms)
        y2 = respond_by_index(
            self._respond_second, second_count, second_index, symbols, second_words
        )
        return y1 * self._max_second_outputs + y2

    def _respond_second(self, i: int, symbols: PerPerson, words: KernelWords) -> PerPerson:
        """Return the reports of a second mechanism."""
        return self._distinct_mechanisms[i]._respond(symbols, words)

    def integer_row(self, x: int) -> list[int]:
        """Return the product of both mechanisms' rows, with 0 for pairs that cannot occur."""
        counts: list[int] = []
        for n1, second in zip(self._first.integer_row(x), self._second_mechanisms, strict=True):
            row = second.integer_row(x)
            counts += [n1 * n2 for n2 in row]
            counts += [0] * (self._max_second_outputs - len(row))
        return counts

    def ideal_row(self, x: int) -> Floats:
        """Return the product of both mechanisms' rows, computed from their formulas."""
        rows = []
        for second in self._second_mechanisms:
            rows.append(np.pad(second.ideal_row(x), (0, self._max_second_outputs - second.outputs)))
        return (self._first.ideal_row(x)[:, None] * np.array(rows)).ravel()

    @cached_property
    def scores(self) -> "ComposedScores":
        """The scores that undo the channel on average."""
        return ComposedScores(self)


class ComposedScores(DenseScores):
    """Weighted means of the two reports' scores, unbiased because both scores are unbiased."""

    mechanism: ComposedResponse

    def exact_column(self, y: int) -> list[Fraction]:
        """Return ``α A1[·, y1] + (1 − α) A2[·, y2]``."""
        y1, y2 = divmod(y, self.mechanism._max_second_outputs)
        second = self.mechanism._second_mechanisms[y1]
        if y2 >= second.outputs:  # padding: this report cannot occur
            return [Fraction(0)] * self.mechanism.inputs
        A1 = self.mechanism._first.scores.exact_column(y1)
        A2 = second.scores.exact_column(y2)
        alpha = self._first_weight
        return [alpha * a1 + (1 - alpha) * a2 for a1, a2 in zip(A1, A2, strict=True)]

    @cached_property
    def _first_weight(self) -> Fraction:
        """α = (R2 − T)/((R1 − T) + (R2 − T)), the best weight at uniform p for risks R1 and R2.

        R2 is the risk of the second mechanism for the case that the first report is 0. Both reports
        come from the same person, so the two estimates share the sampling risk T = 1 − 1/k. Only
        the noise of the mechanisms is independent.
        """
        k = self.mechanism.inputs
        p = np.full(k, 1 / k)
        sampling_risk = 1 - 1 / k
        first_noise = max(self.mechanism._first.scores.risk(p) - sampling_risk, 0.0)
        second_noise = max(self.mechanism._second_mechanisms[0].scores.risk(p) - sampling_risk, 0.0)
        total_noise = first_noise + second_noise
        if total_noise <= _MIN_NOISE:
            return Fraction(1, 2)
        return Fraction(second_noise / total_noise).limit_denominator(1000)


@shows_call("sf.compose(first_mechanism, second_mechanism)")
def compose(first: Mechanism, second: Mechanism | Callable[[int], Mechanism]) -> ComposedResponse:
    """Return a mechanism that answers twice; ``second`` may be a function of the first report.

    The mechanism promises the sum of the two contexts, and ``certify`` checks this like any other
    promise. A violation is detected even if only one value of the first report leads to it.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import BinaryResponse
    >>> twice = compose(BinaryResponse(Uniform(2, 1)), BinaryResponse(Uniform(2, 0.5)))
    >>> twice.outputs, round(float(twice.context.matrix()[0, 1]), 6)
    (4, 1.5)
    """
    return ComposedResponse(first, second)
