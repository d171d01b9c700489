"""Block-structured response, and its case of a single block, the plain response."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.codes import ClearCode, Code, CodeFamily, HadamardCode, RecordedCodes
from sfumato.contexts import Context
from sfumato.errors import ContextMismatch, InvalidSurvey
from sfumato.foundation.arrays import Booleans, Floats, Symbols, Words
from sfumato.foundation.canonical import Fields, Json, require_fields, require_index
from sfumato.mechanisms.code_scores import (
    batch_scores,
    exact_code_scores,
    leftover_share,
    paper_block_scores,
    zero_in_sets,
)
from sfumato.mechanisms.coded_scores import CodeBatch, CodedScores, Part, code_batches
from sfumato.mechanisms.mechanism import CompactRow, Mechanism, require_outputs
from sfumato.mechanisms.row_class import RowClass
from sfumato.mechanisms.scores import Hits, float_vector
from sfumato.randomness import Epsilon
from sfumato.tally import Tally

__all__ = ["BlockResponse", "PlainResponse"]


class BlockResponse(Mechanism):
    """Sends the block as it is and hides the symbol in its block (the paper, section 6.1).

    For x in block j, with the code's sets S_x and ``Z_j = r e + K_j − r``::

        Q((j, y)|x) = e/Z_j  if y ∈ S_x,   1/Z_j  otherwise
        (Hadamard: 2e/(K_j(e+1)) and 2/(K_j(e+1)))

    Report ``offset_j + y`` stands for (j, y); block j owns K_j reports, blocks in order of first
    label.

    Guarantees: for x, x2 in one block and any y the log-ratio is at most ε; across blocks nothing
    is promised; every row sums to 1; a block of one symbol sends the block alone; at most 2k
    outputs with the Hadamard code. The shares of blocks are observed without noise.
    A block may have its own ε. Cost per report: one word. Error: at most that of the paper's own
    estimator, ``n·Var(p̂_x) = c² p(X_j) − p_x²`` summed over a block, ``c = (e+1)/(e−1)``.
    Reference: Acharya et al. (2020), section 6.1 and Proposition 5.
    Proof: docs/proofs/blocks.md.

    >>> from sfumato.contexts import Blocks
    >>> context = Blocks([0, 0, 0, 1, 2, 2], epsilon=1)
    >>> BlockResponse(context).outputs
    9
    """

    kind: ClassVar[str] = "blocks"

    def __init__(
        self, context: Context, code: CodeFamily = HadamardCode, *, word_bits: int = 64
    ) -> None:
        blocks = context.as_blocks
        if blocks is None:
            raise ContextMismatch(
                "a block response keeps a Blocks context; mechanism_for picks the frame that fits."
            )
        if not blocks.shows_groups and blocks.sizes.size > 1:
            raise ContextMismatch(
                "a block response shows the block; a promise across blocks needs a GroupResponse."
            )
        super().__init__(context)
        self._set_blocks(blocks.block_of, blocks.rank)
        self._set_codes(blocks.sizes, blocks.exact_epsilons, code, word_bits)

    def _set_blocks(self, block_of: Symbols, rank: Symbols) -> None:
        """Keep the block of each symbol, and its rank in the block."""
        self._block_of = block_of
        self._point = rank.astype(np.uint64)

    def _set_codes(
        self,
        sizes: NDArray[np.int64],
        epsilons: Sequence[Epsilon],
        family: CodeFamily,
        word_bits: int,
    ) -> None:
        """Make the codes of the blocks, of these sizes and ε, and lay out their reports."""
        self._sizes = sizes
        self._family = family
        self.word_bits = word_bits
        self._codes, self._code_of_block = _block_codes(sizes, epsilons, family, word_bits)
        lengths = np.array([code.outputs for code in self._codes])[self._code_of_block]
        self._offsets = np.concatenate([[0], np.cumsum(lengths)])
        self.outputs = require_outputs(int(self._offsets[-1]))
        self._first_output = self._offsets[self._block_of].astype(np.uint64)
        code_of = self._code_of_block[self._block_of]
        self._code_of = code_of.astype(np.min_scalar_type(len(self._codes)))

    def record(self) -> Json:
        """Return the integers of the channel as plain data."""
        return {
            "kind": self.kind,
            "codes": [code.record() for code in self._codes],
            "code_of_block": self._code_of_block.tolist(),
        }

    @classmethod
    def of_record(cls, record: Fields, context: Context) -> Self:
        """Return the mechanism with the integers of its record."""
        fields = require_fields(record, "mechanism", ("kind", "codes", "code_of_block"))
        blocks = cls._blocks_of(context)
        if not fields["codes"]:
            raise InvalidSurvey("mechanism.codes must contain at least one code.")
        numbers = fields["code_of_block"]
        if len(numbers) != len(blocks):
            raise InvalidSurvey(
                f"mechanism.code_of_block must have an entry per block, {len(blocks)}."
            )
        codes = RecordedCodes()
        for (size, epsilon), number in zip(blocks, numbers, strict=True):
            if (size, epsilon) not in codes:
                which = require_index(number, len(fields["codes"]), "mechanism.code_of_block")
                codes.read(fields["codes"][which], size, epsilon)
        if not codes.fit:
            raise InvalidSurvey(f"mechanism of kind {cls.kind!r} does not fit the context.")
        return cls(context, codes, word_bits=codes.word_bits)

    @classmethod
    def _blocks_of(cls, context: Context) -> list[tuple[int, Epsilon]]:
        """Return the size and the ε of each block. Refuse a context of another kind."""
        blocks = context.as_blocks
        if blocks is None:
            raise InvalidSurvey("a mechanism of kind 'blocks' must keep a context of blocks.")
        return list(zip(blocks.sizes.tolist(), blocks.exact_epsilons, strict=True))

    def at_word(self, word_bits: int) -> Self:
        """Return the same mechanism over shorter words."""
        return type(self)(self.context, self._family, word_bits=word_bits)

    def _respond(self, symbols: Symbols, words: Words) -> Words:
        word = words[:, 0]
        if self._sizes.size == 1:  # ranks in the only block are the symbols themselves
            return self._codes[0].encode(symbols.view(np.uint64), word)
        point = self._point.take(symbols)
        if len(self._codes) == 1:
            return self._codes[0].encode(point, word) + self._first_output.take(symbols)
        # Sort people by code, so that each code answers its people in one go.
        code_of = self._code_of[symbols]
        order = np.argsort(code_of, kind="stable")
        ends = np.cumsum(np.bincount(code_of, minlength=len(self._codes)))
        inside = np.empty(symbols.size, dtype=np.uint64)
        for code, people in zip(self._codes, np.split(order, ends[:-1]), strict=True):
            inside[people] = code.encode(point[people], word[people])
        return inside + self._first_output[symbols]

    # --- the channel -----------------------------------------------------------------------------

    def _code_at(self, x: int) -> tuple[Code, int, Booleans]:
        """Return the code of x's block, its first report, and which of its outputs are in S_x."""
        j = int(self._block_of[x])
        code = self._codes[self._code_of_block[j]]
        return code, int(self._offsets[j]), code.favours(int(self._point[x]))

    def compact_row(self, x: int) -> CompactRow:
        """``high`` on S_x, ``low`` on the block's other reports, leftover words on its first."""
        code, first, favoured = self._code_at(x)
        which = np.zeros(self.outputs, dtype=np.intp)
        own = which[first : first + code.outputs]
        own[:] = favoured
        own += 1
        levels = [0, code.low, code.high]
        levels.append(levels[which[first]] + code.leftover)
        which[first] = 3
        return levels, which

    def row_classes(self) -> tuple[RowClass, ...]:
        """One class per code: rows differ only in which outputs they favour."""
        classes = []
        for number, code in enumerate(self._codes):
            symbols = np.flatnonzero(self._code_of == number)
            first = self._offsets[self._block_of[symbols]]
            claim = RowClass.of_levels(
                code, first, symbols, code.high, code.low, code.leftover, cover=0
            )
            classes.append(claim)
        return tuple(classes)

    def ideal_row(self, x: int) -> Floats:
        """The paper's formula."""
        code, first, favoured = self._code_at(x)
        high, low = code.ideal_levels()
        row = np.zeros(self.outputs)
        row[first : first + code.outputs] = np.where(favoured, high, low)
        return row

    def forward(self, p: ArrayLike) -> Floats:
        """Return ``q(y) = Σ_x p_x Q(y|x)``, by one transform per code."""
        distribution = float_vector(p, self.inputs, "p")
        q = np.zeros(self.outputs)
        for batch in self._batches:
            code = batch.code
            inside = batch.by_point(distribution)
            share = inside.sum(axis=-1, keepdims=True)
            words = code.low * share + (code.high - code.low) * code.spread(inside)
            q[batch.reports] = words / code.total
            q[batch.first_reports] += float(leftover_share(code)) * share[:, 0]
        return q

    def adjoint(self, v: ArrayLike) -> Floats:
        """Return ``Σ_y Q(y|x) v_y``, by one transform per code."""
        values = float_vector(v, self.outputs, "v")
        means = np.zeros(self.inputs)
        for batch in self._batches:
            code = batch.code
            V = values[batch.reports]
            V_sum = V.sum(axis=-1, keepdims=True)
            words = code.low * V_sum + (code.high - code.low) * code.gather(V)
            batch.fill(means, words / code.total + float(leftover_share(code)) * V[:, :1])
        return means

    @cached_property
    def _batches(self) -> list[CodeBatch]:
        """The blocks, code by code. Built when first needed: a client never needs them."""
        point = self._point.astype(np.int64)
        return code_batches(
            self._codes, self._code_of_block, self._offsets[:-1], self._block_of, point
        )

    @cached_property
    def scores(self) -> "BlockScores":
        """What undoes the channel."""
        return BlockScores(self)


class PlainResponse(BlockResponse):
    """A code over the whole domain: the block-structured response of a single block.

    With ``HadamardCode`` it is Hadamard response, with ``RandomizedCode`` k-ary randomized
    response::

        Q(y|x) = e/Z  if y ∈ S_x,   1/Z  otherwise,   Z = r e + K − r

    Guarantees: for any x, x2, y the log-ratio is at most ε; every row sums to 1; a single symbol,
    or any symbol at ε = inf, is sent as it is.
    Cost per report: one word. Error: that of the code. Reference: Acharya, Sun, Zhang (2019).
    Proof: docs/proofs/plain.md.

    >>> from sfumato.contexts import Uniform
    >>> mechanism = PlainResponse(Uniform(3, 1.0))
    >>> mechanism.matrix().round(3)
    array([[0.366, 0.134, 0.366, 0.134],
           [0.366, 0.366, 0.134, 0.134],
           [0.366, 0.134, 0.134, 0.366]])
    """

    kind: ClassVar[str] = "plain"

    def __init__(
        self, context: Context, code: CodeFamily = HadamardCode, *, word_bits: int = 64
    ) -> None:
        if context.uniform_epsilon is None:
            raise ContextMismatch(
                "a plain response keeps a Uniform context; mechanism_for picks the frame that fits."
            )
        Mechanism.__init__(self, context)
        k = context.size
        self._set_blocks(np.zeros(k, dtype=np.int64), np.arange(k))
        self._set_codes(np.array([k]), [context.uniform_epsilon], code, word_bits)

    @classmethod
    def _blocks_of(cls, context: Context) -> list[tuple[int, Epsilon]]:
        if context.uniform_epsilon is None:
            raise InvalidSurvey("a mechanism of kind 'plain' must keep a uniform context.")
        return [(context.size, context.uniform_epsilon)]


class BlockScores(CodedScores):
    """The scores of blocks: 0 on the reports of other blocks, so that block totals are exact."""

    mechanism: BlockResponse

    def __init__(self, mechanism: BlockResponse) -> None:
        super().__init__(mechanism, mechanism._batches, np.empty(0, dtype=np.int64), Fraction(1))

    def _build_part(self, batch: CodeBatch) -> Part:
        code = batch.code
        leftover = leftover_share(code)
        inside = batch_scores(code, batch.sizes, rise=code.rise, leftover=leftover)
        return Part(batch, inside, np.zeros((batch.sizes.size, 1)))

    def _build_paper_part(self, batch: CodeBatch) -> Part:
        inside = paper_block_scores(batch.code, batch.sizes)
        return Part(batch, inside, np.zeros((batch.sizes.size, 1)))

    def _exact_scores(self, batch: CodeBatch, row: int, output: int | None) -> list[Fraction]:
        size = int(batch.sizes[row])
        if output is None:
            return [Fraction(0)] * size
        return exact_code_scores(batch.code, size, output)

    def observed_shares(self, tally: Tally) -> tuple[Symbols, Floats]:
        """Every block's share is observed as it is."""
        f = self._frequencies(tally)
        blocks = self.mechanism
        return blocks._block_of, np.add.reduceat(f, blocks._offsets[:-1])

    def hits(self, counts: NDArray[np.int64]) -> Hits:
        """Reports in S_x among those of x's block, if the code is balanced.

        Everyone else in the block then hits S_x with the same probability, so the number of hits
        is binomial and independent of what the others hold.
        """
        hits = Hits.none(self.mechanism.inputs)
        for batch in self._batches:
            code = batch.code
            if not code.is_balanced:
                continue
            block_counts = counts[batch.reports].astype(np.float64)
            inside = np.rint(code.gather(block_counts))
            trials = np.broadcast_to(block_counts.sum(axis=-1, keepdims=True), inside.shape)
            base = float(code.overlap) + float(leftover_share(code)) * zero_in_sets(code)
            batch.fill(hits.hits, inside)
            batch.fill(hits.trials, trials)
            batch.fill(hits.base, np.broadcast_to(base, inside.shape))
            hits.contrast[batch.symbols] = float(code.contrast)
            hits.known[batch.symbols] = True
        return hits


def _block_codes(
    sizes: NDArray[np.int64], epsilons: Sequence[Epsilon], family: CodeFamily, word_bits: int
) -> tuple[list[Code], NDArray[np.int64]]:
    """Return the distinct codes of the blocks, and which one each block uses."""
    blocks = list(zip(sizes.tolist(), epsilons, strict=True))
    codes: list[Code] = []
    number_by_record: dict[str, int] = {}
    number_by_block: dict[tuple[int, Epsilon], int] = {}
    for size, epsilon in sorted(set(blocks)):
        if size == 1 or isinstance(epsilon, float):
            code: Code = ClearCode(size, word_bits=word_bits)
        else:
            code = family(size, epsilon, word_bits)
        text = repr(code.record())
        if text not in number_by_record:
            number_by_record[text] = len(codes)
            codes.append(code)
        number_by_block[size, epsilon] = number_by_record[text]
    return codes, np.array([number_by_block[block] for block in blocks], dtype=np.int64)
