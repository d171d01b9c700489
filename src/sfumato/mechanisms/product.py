"""Product response: one answer about the block, and another about the symbol."""

from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from sfumato.codes import CodeFamily, RandomizedCode, RecordedCodes
from sfumato.contexts import Blocks, Context, Uniform
from sfumato.errors import ContextMismatch, InvalidContext, InvalidSurvey
from sfumato.foundation.arrays import Booleans, Floats, KernelWords, PerPerson, Words
from sfumato.foundation.canonical import (
    Fields,
    Json,
    require_fields,
)
from sfumato.foundation.elementwise import look_up
from sfumato.mechanisms.blocks import PlainResponse
from sfumato.mechanisms.coded import indices_by_value
from sfumato.mechanisms.dense import DenseMechanism, DenseScores
from sfumato.mechanisms.holder import require_context
from sfumato.mechanisms.scores import MAX_MATRIX_ENTRIES

__all__ = ["ProductResponse"]

_EXAMPLE = "sf.Blocks(block_of, epsilon=0.5, across=1, domain=labels)"  # of a context for it
_MAX_DENOMINATOR = 10**6  # round weights to short fractions, which keeps exact scores short


class ProductResponse(DenseMechanism):
    """A response for blocks with one promise inside them and another across; best at small ε.

    ``Q(J, T|x) = Q1(J|block of x) · Q2(T|x)``. Q1 encodes the block at ``ε_across − ε_in``, and Q2
    encodes the symbol at ``ε_in``, the smallest ε inside a block. Report ``J · K2 + T`` represents
    the pair (J, T), where K2 is the number of outputs of Q2.

    Guarantees: two symbols in the same block share a row of Q1, so their log-ratio is at most ε_in;
    for symbols in different blocks, the log-ratio is at most ``(ε_across − ε_in) + ε_in``; every
    row sums to 1.
    Cost per report: two words. Error: below that of the group response if both ε are small
    (ε_in < 1).
    Estimates: each answer about the symbol is weighted according to the answer about the block.
    Block totals combine both answers and are adjusted to add up to 1. Then the estimates are
    adjusted to add up to their block's total.
    Reference: Acharya et al. (2020), Proposition 2.
    Proof: docs/proofs/product.md.

    >>> mechanism = ProductResponse(Blocks([0, 0, 0, 1, 1, 1], 0.5, across=1))
    >>> mechanism.outputs, mechanism.words
    (12, 2)
    """

    kind: ClassVar[str] = "product"
    words = 2

    def __init__(
        self, context: Blocks, code: CodeFamily = RandomizedCode, *, word_bits: int = 64
    ) -> None:
        require_context(context, "ProductResponse(context)", _EXAMPLE)
        block_epsilon, symbol_epsilon = self.epsilons(context)
        super().__init__(context)
        self._family = code
        self.word_bits = word_bits
        block_context = Uniform(int(context.sizes.size), block_epsilon)
        symbol_context = Uniform(context.size, symbol_epsilon)
        self._block_response = PlainResponse(block_context, code, word_bits=word_bits)
        self._symbol_response = PlainResponse(symbol_context, code, word_bits=word_bits)
        self.outputs = self._block_response.outputs * self._symbol_response.outputs
        if self.outputs * self.inputs > MAX_MATRIX_ENTRIES:
            raise InvalidContext(
                f"the matrix of a product response can have at most {MAX_MATRIX_ENTRIES} entries; "
                f"this one would have {self.inputs} × {self.outputs}. Use a GroupResponse."
            )
        self._block_of = context.block_of
        self._block_words: Words = self._block_of.view(np.uint64)

    @staticmethod
    def epsilons(context: Blocks) -> tuple[Fraction, Fraction]:
        """Return the ε of the answer about the block and of the answer about the symbol.

        Raise ``ContextMismatch`` if a product response does not fit the context.
        """
        if (
            context.as_blocks is None
            or context.sizes.size < 2
            or not isinstance(context.exact_across, Fraction)
        ):
            raise ContextMismatch(
                "a product response needs a Blocks context with two or more blocks and a finite ε "
                "across them. Use mechanism_for to choose a mechanism."
            )
        smallest_inside = context.exact_across
        for epsilon, size in zip(context.exact_epsilons, context.sizes.tolist(), strict=True):
            if size > 1 and isinstance(epsilon, Fraction):
                smallest_inside = min(smallest_inside, epsilon)
        if smallest_inside == context.exact_across:
            raise ContextMismatch(
                "a product response needs a smaller ε inside blocks than across them."
            )
        return context.exact_across - smallest_inside, smallest_inside

    def to_record(self) -> Json:
        """Return the two codes as JSON-compatible data."""
        codes = self._block_response._codes + self._symbol_response._codes
        return {"kind": self.kind, "codes": [code.to_record() for code in codes]}

    @classmethod
    def from_record(cls, record: Fields, context: Context) -> Self:
        """Return the mechanism stored in a record, for the given context."""
        fields = require_fields(record, "mechanism", ("kind", "codes"))
        records = fields["codes"]
        blocks = context.as_blocks
        if blocks is None or not isinstance(records, list) or len(records) != 2:
            raise InvalidSurvey(
                "a mechanism of kind 'product' needs two codes and a Blocks context."
            )
        block_epsilon, symbol_epsilon = cls.epsilons(blocks)
        codes = RecordedCodes()
        codes.read(records[0], int(blocks.sizes.size), block_epsilon)
        codes.read(records[1], blocks.size, symbol_epsilon)
        if not codes.all_fit:
            raise InvalidSurvey("a mechanism of kind 'product' does not fit the context.")
        return cls(blocks, codes, word_bits=codes.word_bits)

    def with_word_bits(self, word_bits: int) -> Self:
        """Return the same mechanism with words of ``word_bits`` bits."""
        return type(self)(self.context, self._family, word_bits=word_bits)  # type: ignore[arg-type]

    def _respond(self, symbols: PerPerson, words: KernelWords) -> PerPerson:
        block = look_up(self._block_words, symbols)
        J = self._block_response._respond(block, words[:1])
        T = self._symbol_response._respond(symbols, words[1:])
        return J * self._symbol_response.outputs + T

    def integer_row(self, x: int) -> list[int]:
        """Return the product of the block's row and the symbol's row."""
        block_row = self._block_response.integer_row(int(self._block_of[x]))
        symbol_row = self._symbol_response.integer_row(x)
        return [a * b for a in block_row for b in symbol_row]

    def ideal_row(self, x: int) -> Floats:
        """Return the product of the block's row and the symbol's row, from their formulas."""
        block_row = self._block_response.ideal_row(int(self._block_of[x]))
        return np.outer(block_row, self._symbol_response.ideal_row(x)).ravel()

    @cached_property
    def scores(self) -> "ProductScores":
        """The scores that undo the channel on average."""
        return ProductScores(self)


class ProductScores(DenseScores):
    """The scores ``w_j(J) A2[x, T]``, shifted equally within a block to add up to its total.

    A1 and A2 are the scores of the answers about the block and about the symbol. The block's total
    is a weighted mean of A1 and of the sum of ``w_j(J) A2[x, T]`` over the block's symbols, plus a
    correction that makes all totals add up to 1.
    """

    mechanism: ProductResponse

    def __init__(self, mechanism: ProductResponse) -> None:
        super().__init__(mechanism)
        self._block_response = mechanism._block_response
        self._symbol_response = mechanism._symbol_response
        self._block_of = mechanism._block_of
        self._members = indices_by_value(self._block_of, self._block_response.inputs)

    def exact_column(self, y: int) -> list[Fraction]:
        """Return the scores of report y."""
        J, T = divmod(y, self._symbol_response.outputs)
        A1 = self._block_response.scores.exact_column(J)
        A2 = self._symbol_response.scores.exact_column(T)
        weights = []
        sums = []
        totals = []
        for j, members in enumerate(self._members):
            outside_weight, inside_weight = self._answer_weights[j]
            w = inside_weight if self._favours_block[j, J] else outside_weight
            block_sum = w * sum(A2[x] for x in members.tolist())
            mu = self._mixing_weights[j]
            weights.append(w)
            sums.append(block_sum)
            totals.append(mu * block_sum + (1 - mu) * A1[j])
        correction = (1 - sum(totals, Fraction(0))) / len(totals)  # totals must add up to 1
        column = [Fraction(0)] * self.mechanism.inputs
        for j, members in enumerate(self._members):
            shift = (totals[j] + correction - sums[j]) / members.size
            for x in members.tolist():
                column[x] = weights[j] * A2[x] + shift
        return column

    @cached_property
    def _A(self) -> Floats:
        """The scores of all reports, as floats."""
        weighted, sums, A1 = self._score_terms
        mu = np.array(self._mixing_weights, dtype=np.float64)[:, None, None]
        totals = mu * sums + (1 - mu) * A1[:, :, None]
        totals += (1 - totals.sum(axis=0)) / len(self._members)
        sizes = np.array([members.size for members in self._members])[:, None, None]
        A = weighted + ((totals - sums) / sizes)[self._block_of]
        return A.reshape(self.mechanism.inputs, self.mechanism.outputs)

    @cached_property
    def _score_terms(self) -> tuple[Floats, Floats, Floats]:
        """``w_j(J) A2[x, T]`` over (x, J, T), its block sums over (j, J, T), and ``A1[j, J]``."""
        A1 = self._block_response.scores.matrix()
        A2 = self._symbol_response.scores.matrix()
        outside, inside = np.array(self._answer_weights, dtype=np.float64).T
        w = np.where(self._favours_block, inside[:, None], outside[:, None])
        weighted = w[self._block_of][:, :, None] * A2[:, None, :]
        block_sums = np.array([A2[members].sum(axis=0) for members in self._members])
        sums = w[:, :, None] * block_sums[:, None, :]
        return weighted, sums, A1

    @cached_property
    def _favours_block(self) -> Booleans:
        """A mask over (j, J) of the pairs with ``J ∈ S_j``."""
        code = self._block_response._codes[0]
        return np.array([code.membership(j) for j in range(len(self._members))])

    @cached_property
    def _answer_weights(self) -> list[tuple[Fraction, Fraction]]:
        """``w_j`` for J outside S_j and for J inside it.

        The weights have mean 1 for members of j and minimise the noise if all symbols are equally
        likely. Let h be the probability that J ∈ S_j for a member of j, and P the same probability
        for a random person. Then the best weights inside and outside S_j are proportional to h/P
        and (1 − h)/(1 − P).
        """
        code = self._block_response._codes[0]
        q = float(code.overlap)
        weights = []
        for j, members in enumerate(self._members):
            row = np.array(self._block_response.integer_row(j), dtype=object)
            h = Fraction(int(row[self._favours_block[j]].sum()), code.denominator)
            P = q + members.size / self.mechanism.inputs * float(code.contrast)
            inside_ratio = float(h) / P
            outside_ratio = (1 - float(h)) / (1 - P)
            mean_ratio = float(h) * inside_ratio + (1 - float(h)) * outside_ratio
            inside = Fraction(inside_ratio / mean_ratio).limit_denominator(_MAX_DENOMINATOR)
            weights.append(((1 - inside * h) / (1 - h), inside))
        return weights

    @cached_property
    def _mixing_weights(self) -> list[Fraction]:
        """μ_j, the weight that the sum over the block's symbols has in the block's total.

        These weights minimise the variance if all symbols are equally likely.
        """
        _, sums, A1 = self._score_terms
        k = self.mechanism.inputs
        q = self.mechanism.forward(np.full(k, 1 / k)).reshape(sums.shape[1:])
        weights = []
        for by_symbols, by_block in zip(sums, A1, strict=True):
            a = by_symbols - (q * by_symbols).sum()
            b = np.broadcast_to(by_block[:, None], by_symbols.shape)
            b = b - (q * b).sum()
            difference_variance = float((q * (a - b) ** 2).sum())
            mu = 0.0
            if difference_variance > 0:
                mu = float((q * b * (b - a)).sum()) / difference_variance
            weights.append(Fraction(mu).limit_denominator(_MAX_DENOMINATOR))
        return weights
