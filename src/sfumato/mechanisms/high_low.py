"""High-low response: a code for the sensitive symbols, in which the others take cover for them."""

from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.arrays import Booleans, Floats, Symbols, Words
from sfumato.canonical import Json
from sfumato.codes import ClearCode, Code, CodeFamily, HadamardCode
from sfumato.contexts import HighLow
from sfumato.errors import ContextMismatch
from sfumato.mechanisms.mechanism import Mechanism, checked_vector, demand_outputs, people_count
from sfumato.mechanisms.row_class import RowClass
from sfumato.mechanisms.scores import (
    GroupScores,
    corrected_scores,
    exact_group_scores,
    leftover_share,
    simple_scores,
)
from sfumato.tally import Tally

__all__ = ["HighLowResponse"]


class HighLowResponse(Mechanism):
    """Sensitive symbols answer through a code; the others answer in clear, or vanish in the code's range.

    With the code's K outputs, sets S_x of r outputs, ``Z = r e + K − r`` and ``β = r(e−1)/Z``::

        x sensitive:      Q(y|x) = e/Z  if y ∈ S_x,   1/Z  otherwise,   y < K
        x not sensitive:  Q(y|x) = 1/Z  for y < K,    β  on x's own report,   0 elsewhere

    (Hadamard: ``2e/(K(e+1))``, ``2/(K(e+1))`` and ``β = (e−1)/(e+1)``.) Reports 0..K−1 are the code's,
    then one for each symbol that is not sensitive, in domain order.

    Guarantees: for sensitive x, any x2 and any y the log-ratio is at most ε; every row sums to 1; without
    sensitive symbols it is the identity, with nothing else it is the plain response; at most 2k outputs
    with the Hadamard code.
    Cost per report: one word. Error (Hadamard, the paper's own estimator): for sensitive x
    ``n·Var = c²(p_A + 2p_B/(e+1)) − p_x²``, for the others ``c p_x − p_x²``, ``c = (e+1)/(e−1)``.
    Reference: Acharya et al. (2020), section 5.1, with row x+1 of the Hadamard matrix.
    Proof: docs/proofs/high-low.md.

    >>> mechanism = HighLowResponse(HighLow(["park", "clinic"], ["clinic"], epsilon=1))
    >>> mechanism.matrix().round(3)
    array([[0.269, 0.269, 0.462],
           [0.731, 0.269, 0.   ]])
    """

    kind: ClassVar[str] = "high-low"

    def __init__(self, context: HighLow, code: CodeFamily = HadamardCode, *, word_bits: int = 64) -> None:
        if not isinstance(context, HighLow):
            raise ContextMismatch(
                "a high-low response keeps a HighLow context; mechanism_for picks the frame that fits."
            )
        super().__init__(context)
        self._family, self.word_bits = code, word_bits
        self._sensitive = context.sensitive
        self._free = np.flatnonzero(~context.is_sensitive)
        s, epsilon = self._sensitive.size, context.exact_inside
        clear = s == 0 or isinstance(epsilon, float)
        self._code: Code = ClearCode(s, word_bits=word_bits) if clear else code(s, epsilon, word_bits)
        self.outputs = demand_outputs(self._code.outputs + self._free.size)
        self._is_sensitive = context.is_sensitive
        self._point = np.zeros(self.inputs, dtype=np.uint64)
        self._point[self._sensitive] = np.arange(s)
        self._own_report = np.zeros(self.inputs, dtype=np.uint64)
        self._own_report[self._free] = np.arange(self._code.outputs, self.outputs)

    def record(self) -> Json:
        """The integers of the channel as plain data."""
        return {"kind": self.kind, "codes": [self._code.record()]}

    def at_word(self, word_bits: int) -> Self:
        """The same mechanism over shorter words."""
        return type(self)(self.context, self._family, word_bits=word_bits)  # type: ignore[arg-type]

    # --- sampling -----------------------------------------------------------------------------------

    def _respond(self, symbols: Symbols, words: Words) -> Words:
        """Both answers are computed for everybody, so that the work does not depend on the symbol."""
        word = words[:, 0]
        coded = self._code.encode(self._point[symbols], word)
        return np.where(self._is_sensitive[symbols], coded, self._uncoded(symbols, word))

    def _uncoded(self, symbols: Symbols, word: Words) -> Words:
        """``low`` words to each output of the code, the rest to the own report, leftover words to 0."""
        code = self._code
        covered = code.outputs * code.low  # of 2^B words; at most (1 − β) 2^B, so it fits a word
        last = np.uint64(code.total - code.leftover - 1)
        cover = word // np.uint64(max(code.low, 1))
        answer = np.where(word < np.uint64(covered), cover, self._own_report[symbols])
        return np.where(word <= last, answer, np.uint64(0))

    # --- the channel --------------------------------------------------------------------------------

    @property
    def _clear_words(self) -> int:
        """r(high − low): the words on which a symbol that is not sensitive sends its own report."""
        return self._code.raised * (self._code.high - self._code.low)

    @property
    def _beta(self) -> Fraction:
        return Fraction(self._clear_words, self._code.total)

    def levels(self, x: int) -> tuple[list[int], NDArray[np.intp]]:
        """The row in words, from the same integers as the sampler's."""
        code = self._code
        values = [0, code.low, code.high, self._clear_words]
        which = np.zeros(self.outputs, dtype=np.intp)
        which[: code.outputs] = 1
        if self._is_sensitive[x]:
            which[: code.outputs][self._favoured(x)] = 2
        else:
            which[int(self._own_report[x])] = 3
        at_first = values[which[0]] + code.leftover
        which[0] = 4
        return [*values, at_first], which

    def row_classes(self) -> tuple[RowClass, ...]:
        """Sensitive rows, and the others: low throughout the code's range and the rest on their own report."""
        free = self._free
        return (
            RowClass.of_code(self._code, np.zeros_like(self._sensitive), self._sensitive),
            RowClass.of_code(self._code, np.zeros_like(free), free, own=self._clear_words),
        )

    def ideal_row(self, x: int) -> Floats:
        """The paper's formula."""
        code, (high, low) = self._code, self._code.ideal_levels()
        row = np.zeros(self.outputs)
        if self._is_sensitive[x]:
            row[: code.outputs] = np.where(self._favoured(x), high, low)
        else:
            row[: code.outputs] = low
            row[int(self._own_report[x])] = code.raised * (high - low)
        return row

    def _favoured(self, x: int) -> Booleans:
        return self._code.contains(self._point[x], np.arange(self._code.outputs, dtype=np.uint64))

    def forward(self, p: ArrayLike) -> Floats:
        """``q(y) = Σ_x p_x Q(y|x)``, by one transform."""
        distribution = checked_vector(p, self.inputs, "p")
        code, total = self._code, distribution.sum()
        inside = code.spread(self._by_point(distribution))[0]
        coded = (code.low * total + (code.high - code.low) * inside) / code.total
        coded[:1] += float(leftover_share(code)) * total
        return np.concatenate([coded, float(self._beta) * distribution[self._free]])

    def adjoint(self, v: ArrayLike) -> Floats:
        """``Σ_y Q(y|x) v_y``, by one transform."""
        coded, own = self._split(v, "v")
        code, means = self._code, np.empty(self.inputs)
        cover = code.low / code.total * coded.sum() + float(leftover_share(code)) * coded[:1].sum()
        raised = (code.high - code.low) / code.total * code.gather(coded)
        means[self._sensitive] = cover + raised[: self._sensitive.size]
        means[self._free] = cover + float(self._beta) * own
        return means

    # --- undoing it ---------------------------------------------------------------------------------

    def exact_scores(self, y: int) -> list[Fraction]:
        """A report in the code's range says "perhaps sensitive"; an own report says "not sensitive"."""
        in_code = y < self._code.outputs
        total = Fraction(1) if in_code else 1 - 1 / self._beta
        inside = exact_group_scores(self._code, self._sensitive.size, y if in_code else None, total)
        column = [Fraction(0)] * self.inputs
        for x, score in zip(self._sensitive.tolist(), inside, strict=True):
            column[x] = score
        if not in_code:
            column[int(self._free[y - self._code.outputs])] = 1 / self._beta
        return column

    def mean_scores(self, frequencies: ArrayLike) -> Floats:
        """The unbiased estimate, by one transform."""
        return self._mean(self._corrected, self._corrected_own, frequencies)

    def second_moments(self, frequencies: ArrayLike) -> Floats:
        """``Σ_y f(y) A[x, y]²``, by two transforms."""
        return self._second_moments(self._corrected, self._corrected_own, frequencies)

    def simple(self, tally: Tally) -> Floats:
        """The paper's own estimators (section 5.1), without total correction."""
        return self._mean(self._simple, self._simple_own, self._frequencies(tally))

    def simple_variances(self, p: ArrayLike, n: int) -> Floats:
        """The exact variance of ``simple``; the class gives its closed form for the Hadamard code."""
        moments = self._second_moments(self._simple, self._simple_own, self.forward(p))
        return (moments - np.asarray(p, dtype=np.float64) ** 2) / people_count(n)

    def total_scores(self, weights: ArrayLike) -> Floats:
        """``Σ_x weights_x A[x, y]``, by one transform."""
        w = checked_vector(weights, self.inputs, "weights")
        coded = self._corrected.totals(self._by_point(w))[0]
        sensitive = float(w[self._sensitive] @ self._corrected_own)
        return np.concatenate([coded, sensitive + w[self._free] / float(self._beta)])

    def squared_scores(self) -> Floats:
        """``Σ_x A[x, y]²``."""
        own = float(self._corrected_own @ self._corrected_own) + float(1 / self._beta**2)
        return np.concatenate([self._corrected.squares()[0], np.full(self._free.size, own)])

    @property
    def leverage(self) -> float:
        """The largest score: inside the code, of an own report for its symbol, or against the sensitive."""
        candidates = [self._corrected.largest()]
        if self._free.size:
            candidates += [float(1 / self._beta), float(np.abs(self._corrected_own).max(initial=0.0))]
        return max(candidates)

    def _mean(self, scores: GroupScores, own_scores: Floats, frequencies: ArrayLike) -> Floats:
        coded, own = self._split(frequencies, "frequencies")
        means = np.empty(self.inputs)
        inside = scores.mean(coded[None, :])[0, : self._sensitive.size]
        means[self._sensitive] = inside + own.sum() * own_scores
        means[self._free] = own / float(self._beta)
        return means

    def _second_moments(self, scores: GroupScores, own_scores: Floats, frequencies: ArrayLike) -> Floats:
        coded, own = self._split(frequencies, "frequencies")
        moments = np.empty(self.inputs)
        inside = scores.second_moments(coded[None, :])[0, : self._sensitive.size]
        moments[self._sensitive] = inside + own.sum() * own_scores**2
        moments[self._free] = own / float(self._beta**2)
        return moments

    @cached_property
    def _corrected(self) -> GroupScores:
        return corrected_scores(self._code, [self._sensitive.size])

    @cached_property
    def _corrected_own(self) -> Floats:
        """The scores of sensitive symbols for an own report: it says 1 − 1/β of the sensitive total."""
        scores = exact_group_scores(self._code, self._sensitive.size, None, 1 - 1 / self._beta)
        return np.array([float(score) for score in scores])

    @cached_property
    def _simple(self) -> GroupScores:
        return simple_scores(self._code, [self._sensitive.size])

    @cached_property
    def _simple_own(self) -> Floats:
        """``(I_x − q + λ(high − low)/(2^B β))/Δ``: the paper subtracts its estimate of the sensitive total."""
        code = self._code
        constant = (code.shared / code.raised - code.overlap) / code.contrast
        return float(constant) + self._simple.shifts[: self._sensitive.size]

    def _by_point(self, values: Floats) -> Floats:
        table = np.zeros((1, self._code.points))
        table[0, : self._sensitive.size] = values[self._sensitive]
        return table

    def _split(self, values: ArrayLike, name: str) -> tuple[Floats, Floats]:
        array = checked_vector(values, self.outputs, name)
        return array[: self._code.outputs], array[self._code.outputs :]
