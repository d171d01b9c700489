"""Block response, and its special case with a single block, plain response."""

from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.codes import ClearCode, Code, CodeFamily, HadamardCode, RecordedCodes
from sfumato.contexts import Context, GroupedContext
from sfumato.errors import ContextMismatch, InvalidSurvey
from sfumato.foundation.arrays import Floats, KernelWords, PerPerson, Symbols
from sfumato.foundation.canonical import (
    Fields,
    Json,
    require_fields,
    require_index,
)
from sfumato.foundation.elementwise import look_up
from sfumato.mechanisms.code_scores import (
    batch_scores,
    exact_group_scores,
    leftover_share,
    paper_block_scores,
    row_sums,
    zero_in_sets,
)
from sfumato.mechanisms.coded import (
    CodeBatch,
    CodedMechanism,
    CodedScores,
    ScorePart,
    respond_by_index,
)
from sfumato.mechanisms.holder import require_context
from sfumato.mechanisms.mechanism import CompactRow
from sfumato.mechanisms.row_class import RowClass
from sfumato.mechanisms.scores import Hits, float_vector
from sfumato.randomness import Epsilon
from sfumato.tally import Tally

__all__ = ["BlockResponse", "PlainResponse"]


class BlockResponse(CodedMechanism):
    """A response that reveals a symbol's block and hides the symbol within the block.

    Here e stands for e^ε. The code of block j has K_j outputs, of which each symbol x favours a set
    S_x of r outputs. For x in block j, with ``Z_j = r e + K_j − r``::

        Q((j, y)|x) = e/Z_j  if y ∈ S_x,   1/Z_j  otherwise
        (Hadamard: 2e/(K_j(e+1)) and 2/(K_j(e+1)))

    Report ``offset_j + y`` represents (j, y); blocks are in the order of their first labels. Each
    block may have its own ε.

    Guarantees: for any two symbols in the same block and any y, the log-ratio is at most ε; there
    is no promise across blocks; every row sums to 1; a block with one symbol has one report; at
    most 2k outputs with the Hadamard code. Block shares are observed without noise.
    Cost per report: one word. Error: at most that of the estimator in the reference below,
    ``n·Var(p̂_x) = c² p(X_j) − p_x²`` summed over a block, where p(X_j) is the block's share and
    ``c = (e+1)/(e−1)``.
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
        require_context(
            context, "BlockResponse(context)", "sf.Blocks(block_of, epsilon=1, domain=labels)"
        )
        blocks = context.as_blocks
        if blocks is None:
            raise ContextMismatch(
                "a block response needs a Blocks context. Use mechanism_for to choose a mechanism."
            )
        if not blocks.may_reveal_groups and blocks.sizes.size > 1:
            raise ContextMismatch(
                "a block response reveals the block. For a promise across blocks, use a "
                "GroupResponse."
            )
        self._set_blocks(blocks, blocks.rank, code, word_bits)

    def _set_blocks(
        self, context: GroupedContext, rank: Symbols, family: CodeFamily, word_bits: int
    ) -> None:
        """Initialise the mechanism; ``rank`` contains each symbol's rank in its block."""
        super().__init__(context)
        self._code_families = family
        self.word_bits = word_bits
        codes, code_index_of_block = _choose_block_codes(context, family, word_bits)
        self._set_groups(codes, code_index_of_block, context.group_of, rank)
        self._first_report_of = self._group_starts[context.group_of].astype(np.uint64)

    def to_record(self) -> Json:
        """Return the channel's integers as JSON-compatible data."""
        return {
            "kind": self.kind,
            "codes": [code.to_record() for code in self._codes],
            "code_of_block": self._code_index_of_group.tolist(),
        }

    @classmethod
    def from_record(cls, record: Fields, context: Context) -> Self:
        """Return the mechanism stored in a record, for the given context."""
        fields = require_fields(record, "mechanism", ("kind", "codes", "code_of_block"))
        if not fields["codes"]:
            raise InvalidSurvey("mechanism.codes must contain at least one code.")
        blocks = cls._require_blocks(context)
        code_indices = fields["code_of_block"]
        if len(code_indices) != len(blocks):
            raise InvalidSurvey(
                f"mechanism.code_of_block must have {len(blocks)} entries, one per block."
            )
        codes = RecordedCodes()
        for (size, epsilon), code_index in zip(blocks, code_indices, strict=True):
            if (size, epsilon) not in codes:
                index = require_index(code_index, len(fields["codes"]), "mechanism.code_of_block")
                codes.read(fields["codes"][index], size, epsilon)
        if not codes.all_fit:
            raise InvalidSurvey(f"a mechanism of kind {cls.kind!r} does not fit the context.")
        return cls(context, codes, word_bits=codes.word_bits)

    @classmethod
    def _require_blocks(cls, context: Context) -> list[tuple[int, Epsilon]]:
        """Return the context's block sizes and ε; raise ``InvalidSurvey`` if it has no blocks."""
        if context.as_blocks is None:
            raise InvalidSurvey("a mechanism of kind 'blocks' needs a context of blocks.")
        return _sizes_and_epsilons(context.as_blocks)

    def _respond(self, symbols: PerPerson, words: KernelWords) -> PerPerson:
        word = words[0]
        if self._group_starts.size == 1:  # in a single block, ranks equal symbols
            return self._codes[0].encode(symbols, word)
        point = look_up(self._point_words, symbols)
        first_report = look_up(self._first_report_of, symbols)
        if len(self._codes) == 1:
            return self._codes[0].encode(point, word) + first_report
        code_index = look_up(self._code_index_of, symbols)
        output = respond_by_index(self._encode, len(self._codes), code_index, point, word)
        return output + first_report

    def _encode(self, code_index: int, point: PerPerson, word: PerPerson) -> PerPerson:
        """Return the output of the code for each point and word."""
        return self._codes[code_index].encode(point, word)

    # --- the channel -----------------------------------------------------------------------------

    def compact_row(self, x: int) -> CompactRow:
        """Return the row of x as levels and indices.

        ``high`` words map to each report in S_x, ``low`` words to each of the block's other
        reports, and the leftover words to the block's first report.
        """
        code_index, block_reports, favoured = self._locate(x)
        code = self._codes[code_index]
        level_indices = np.zeros(self.outputs, dtype=np.intp)
        level_indices[block_reports] = favoured + 1
        levels = [0, code.low, code.high]
        levels.append(levels[level_indices[block_reports.start]] + code.leftover)
        level_indices[block_reports.start] = 3
        return levels, level_indices

    def row_classes(self) -> tuple[RowClass, ...]:
        """Return one class per code: rows with the same code differ only in their block and S_x."""
        classes = []
        for code, symbols in zip(self._codes, self._symbols_by_code(), strict=True):
            claim = RowClass(
                symbols,
                self._group_starts[self._group_of[symbols]],
                code.outputs,
                code.raised,
                code.high,
                code.low,
                code.leftover,
            )
            classes.append(claim)
        return tuple(classes)

    def ideal_row(self, x: int) -> Floats:
        """Return the row of x from the formula in the class docstring."""
        code_index, block_reports, favoured = self._locate(x)
        high, low = self._codes[code_index].ideal_levels()
        row = np.zeros(self.outputs)
        row[block_reports] = np.where(favoured, high, low)
        return row

    def forward(self, p: ArrayLike) -> Floats:
        """Return ``q(y) = Σ_x p_x Q(y|x)``, with one transform per code."""
        distribution = float_vector(p, self.inputs, "p")
        q = np.zeros(self.outputs)
        for batch in self._batches:
            code = batch.code
            by_point = batch.arrange_by_point(distribution)
            block_shares = row_sums(by_point)
            mean_words = code.low * block_shares + (code.high - code.low) * code.spread(by_point)
            q[batch.reports] = mean_words / code.denominator
            q[batch.first_reports] += float(leftover_share(code)) * block_shares[:, 0]
        return q

    def adjoint(self, v: ArrayLike) -> Floats:
        """Return ``Σ_y Q(y|x) v_y``, with one transform per code."""
        values = float_vector(v, self.outputs, "v")
        means = np.zeros(self.inputs)
        for batch in self._batches:
            code = batch.code
            by_output = values[batch.reports]
            sums = code.low * row_sums(by_output) + (code.high - code.low) * code.gather(by_output)
            leftover_means = float(leftover_share(code)) * by_output[:, :1]
            batch.fill(means, sums / code.denominator + leftover_means)
        return means

    @cached_property
    def scores(self) -> "BlockScores":
        """The scores that undo the channel on average."""
        return BlockScores(self)


class PlainResponse(BlockResponse):
    """A response that encodes the entire domain with one code: a block response with one block.

    With ``HadamardCode`` it is Hadamard response; with ``RandomizedCode`` it is k-ary randomized
    response. The code has K outputs, of which each symbol x favours a set S_x of r outputs. Here e
    stands for e^ε::

        Q(y|x) = e/Z  if y ∈ S_x,   1/Z  otherwise,   Z = r e + K − r

    Guarantees: for any x, x2 and y, the log-ratio is at most ε; every row sums to 1; a single
    symbol, or any symbol at ε = inf, is sent unchanged.
    Cost per report: one word. Error: that of the code. Reference: Acharya, Sun and Zhang (2019).
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
        require_context(context, "PlainResponse(context)")
        if context.uniform_epsilon is None or context.groups is None:
            raise ContextMismatch(
                "a plain response needs a Uniform context. Use mechanism_for to choose a mechanism."
            )
        self._set_blocks(context.groups, np.arange(context.size), code, word_bits)

    @classmethod
    def _require_blocks(cls, context: Context) -> list[tuple[int, Epsilon]]:
        if context.uniform_epsilon is None:
            raise InvalidSurvey("a mechanism of kind 'plain' needs a uniform context.")
        return [(context.size, context.uniform_epsilon)]


class BlockScores(CodedScores):
    """Scores for blocks. A report from another block scores 0, so block totals have no noise."""

    mechanism: BlockResponse

    def _build_part(self, batch: CodeBatch) -> ScorePart:
        code = batch.code
        leftover = leftover_share(code)
        inside = batch_scores(code, batch.sizes, rise=code.rise, leftover=leftover)
        return ScorePart(batch, inside, np.zeros((batch.sizes.size, 1)))

    def _build_paper_part(self, batch: CodeBatch) -> ScorePart:
        inside = paper_block_scores(batch.code, batch.sizes)
        return ScorePart(batch, inside, np.zeros((batch.sizes.size, 1)))

    def _exact_scores(self, batch: CodeBatch, row: int, output: int | None) -> list[Fraction]:
        size = int(batch.sizes[row])
        if output is None:
            return [Fraction(0)] * size
        code = batch.code
        leftover = leftover_share(code)
        return exact_group_scores(
            code, size, output, rise=code.rise, leftover=leftover, total=Fraction(1)
        )

    def observed_shares(self, tally: Tally) -> tuple[Symbols, Floats]:
        """Return each symbol's block, and each block's share, which is observed without noise."""
        f = self._frequencies(tally)
        return self.mechanism._group_of, np.add.reduceat(f, self.mechanism._group_starts)

    def hits(self, counts: NDArray[np.int64]) -> Hits:
        """Count, for each symbol x, the reports from its block that are in S_x.

        Only symbols in blocks with a balanced code are counted. In such a block, the reports of all
        other symbols are in S_x with the same probability. So the count is binomial, and its
        distribution does not depend on the shares of the other symbols.
        """
        hits = Hits.unknown(self.mechanism.inputs)
        for batch in self._batches:
            code = batch.code
            if not code.is_balanced:
                continue
            block_counts = counts[batch.reports].astype(np.float64)
            hit_counts = np.rint(code.gather(block_counts))
            trials = np.broadcast_to(row_sums(block_counts), hit_counts.shape)
            base = float(code.overlap) + float(leftover_share(code)) * zero_in_sets(code)
            batch.fill(hits.hits, hit_counts)
            batch.fill(hits.trials, trials)
            batch.fill(hits.base, np.broadcast_to(base, hit_counts.shape))
            hits.contrast[batch.symbols] = float(code.contrast)
            hits.known_mask[batch.symbols] = True
        return hits


def _choose_block_codes(
    context: GroupedContext, family: CodeFamily, word_bits: int
) -> tuple[list[Code], NDArray[np.int64]]:
    """Return the blocks' distinct codes, and the index of each block's code."""
    blocks = _sizes_and_epsilons(context)
    codes: list[Code] = []
    index_by_record: dict[str, int] = {}
    index_by_size_and_epsilon: dict[tuple[int, Epsilon], int] = {}
    for size, epsilon in sorted(set(blocks)):
        if size == 1 or isinstance(epsilon, float):
            code: Code = ClearCode(size, word_bits=word_bits)
        else:
            code = family(size, epsilon, word_bits)
        record = repr(code.to_record())
        if record not in index_by_record:
            index_by_record[record] = len(codes)
            codes.append(code)
        index_by_size_and_epsilon[size, epsilon] = index_by_record[record]
    return codes, np.array([index_by_size_and_epsilon[block] for block in blocks], dtype=np.int64)


def _sizes_and_epsilons(context: GroupedContext) -> list[tuple[int, Epsilon]]:
    """Return the size and the ε of each block."""
    return list(zip(context.sizes.tolist(), context.inside, strict=True))
