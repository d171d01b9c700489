"""Block-structured response: the block in clear, a code inside it."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.codes import ClearCode, Code, CodeFamily, HadamardCode
from sfumato.contexts import Blocks, Context
from sfumato.errors import ContextMismatch
from sfumato.foundation.arrays import Booleans, Floats, Symbols, Words
from sfumato.foundation.canonical import Json
from sfumato.mechanisms.code_batches import Stack, stacked
from sfumato.mechanisms.mechanism import Mechanism, checked_vector, demand_outputs, people_count
from sfumato.mechanisms.reach import Reach
from sfumato.mechanisms.row_class import RowClass
from sfumato.mechanisms.scores import (
    GroupScores,
    corrected_scores,
    exact_group_scores,
    leftover_share,
    simple_scores,
)
from sfumato.randomness.odds import Epsilon
from sfumato.tally import Tally

__all__ = ["BlockResponse"]


class BlockResponse(Mechanism):
    """Sends the block as it is and hides the symbol among the block's others (the paper, section 6.1).

    For x in block j, with the code's sets S_x and ``Z_j = r e + K_j − r``::

        Q((j, y)|x) = e/Z_j  if y ∈ S_x,   1/Z_j  otherwise        (Hadamard: 2e/(K_j(e+1)), 2/(K_j(e+1)))

    Report ``offset_j + y`` stands for (j, y); block j owns K_j reports, blocks in order of first label.

    Guarantees: for x, x2 in one block and any y the log-ratio is at most ε; across blocks nothing is
    promised; every row sums to 1; a block of one symbol sends the block alone; at most 2k outputs with
    the Hadamard code. The shares of blocks are observed without noise.
    A block may have its own ε. Cost per report: one word. Error: at most that of the paper's own estimator,
    ``n·Var(p̂_x) = c² p(X_j) − p_x²`` summed over a block, ``c = (e+1)/(e−1)``.
    Reference: Acharya et al. (2020), section 6.1 and Proposition 5.
    Proof: docs/proofs/blocks.md.

    >>> context = Blocks([0, 0, 0, 1, 2, 2], epsilon=1)
    >>> BlockResponse(context).outputs
    9
    """

    kind: ClassVar[str] = "blocks"

    def __init__(
        self, context: Blocks, code: CodeFamily = HadamardCode, *, word_bits: int = 64
    ) -> None:
        if not isinstance(context, Blocks):
            raise ContextMismatch(
                "a block response keeps a Blocks context; mechanism_for picks the frame that fits."
            )
        if context.sizes.size > 1 and context.exact_across != np.inf:
            raise ContextMismatch(
                "a block response shows the block; a promise across blocks needs a GroupResponse."
            )
        self._frame(
            context,
            context.block_of,
            context.rank,
            context.sizes,
            context.exact_epsilons,
            code,
            word_bits,
        )

    def _frame(
        self,
        context: Context,
        block_of: Symbols,
        rank: Symbols,
        sizes: NDArray[np.int64],
        epsilons: Sequence[Epsilon],
        family: CodeFamily,
        word_bits: int,
    ) -> None:
        super().__init__(context)
        self._family, self.word_bits = family, word_bits
        self._block_of, self._sizes = block_of, sizes
        self._codes, self._code_of_block = _codes_for(sizes, epsilons, family, word_bits)
        lengths = np.array([code.outputs for code in self._codes])[self._code_of_block]
        self._offsets = np.concatenate([[0], np.cumsum(lengths)])
        self.outputs = demand_outputs(int(self._offsets[-1]))
        self._point = rank.astype(np.uint64)
        self._first_output = self._offsets[block_of].astype(np.uint64)
        self._code_of = self._code_of_block[block_of].astype(np.min_scalar_type(len(self._codes)))

    def record(self) -> Json:
        """The integers of the channel as plain data."""
        return {
            "kind": self.kind,
            "codes": [code.record() for code in self._codes],
            "code_of_block": self._code_of_block.tolist(),
        }

    def at_word(self, word_bits: int) -> Self:
        """The same mechanism over shorter words."""
        return type(self)(self.context, self._family, word_bits=word_bits)  # type: ignore[arg-type]

    # --- sampling -----------------------------------------------------------------------------------

    def _respond(self, symbols: Symbols, words: Words) -> Words:
        word = words[:, 0]
        if self._sizes.size == 1:  # ranks in the only block are the symbols themselves
            return self._codes[0].encode(symbols.view(np.uint64), word)
        point = self._point.take(symbols)
        if len(self._codes) == 1:
            return self._codes[0].encode(point, word) + self._first_output.take(symbols)
        # People are sorted by code, so that each code answers its people in one go.
        code_of = self._code_of[symbols]
        order = np.argsort(code_of, kind="stable")
        ends = np.cumsum(np.bincount(code_of, minlength=len(self._codes)))
        inside = np.empty(symbols.size, dtype=np.uint64)
        for code, people in zip(self._codes, np.split(order, ends[:-1]), strict=True):
            inside[people] = code.encode(point[people], word[people])
        return inside + self._first_output[symbols]

    # --- the channel --------------------------------------------------------------------------------

    def _code_at(self, x: int) -> tuple[Code, int, Booleans]:
        """The code of x's block, its first report, and which of its outputs lie in S_x."""
        j = int(self._block_of[x])
        code = self._codes[self._code_of_block[j]]
        return code, int(self._offsets[j]), code.favoured(int(self._point[x]))

    def levels(self, x: int) -> tuple[list[int], NDArray[np.intp]]:
        """``high`` on S_x, ``low`` on the block's other reports, the leftover words on its first."""
        code, first, favoured = self._code_at(x)
        which = np.zeros(self.outputs, dtype=np.intp)
        own = which[first : first + code.outputs]
        own[:] = favoured
        own += 1
        at_first = [0, code.low, code.high][which[first]] + code.leftover
        which[first] = 3
        return [0, code.low, code.high, at_first], which

    def row_classes(self) -> tuple[RowClass, ...]:
        """One class per code: rows differ only in which outputs they favour."""
        return tuple(
            RowClass.of_levels(
                code,
                self._offsets[self._block_of[symbols]],
                symbols,
                code.high,
                code.low,
                code.leftover,
                0,
            )
            for number, code in enumerate(self._codes)
            for symbols in [np.flatnonzero(self._code_of == number)]
        )

    def ideal_row(self, x: int) -> Floats:
        """The paper's formula."""
        code, first, favoured = self._code_at(x)
        high, low = code.ideal_levels()
        row = np.zeros(self.outputs)
        row[first : first + code.outputs] = np.where(favoured, high, low)
        return row

    def forward(self, p: ArrayLike) -> Floats:
        """``q(y) = Σ_x p_x Q(y|x)``, one transform per code."""
        distribution, q = checked_vector(p, self.inputs, "p"), np.zeros(self.outputs)
        for stack in self._stacks:
            code, inside = stack.code, stack.by_point(distribution)
            share = inside.sum(axis=-1, keepdims=True)
            levels = code.low * share + (code.high - code.low) * code.spread(inside)
            q[stack.reports] = levels / code.total
            q[stack.first_reports] += float(leftover_share(code)) * share[:, 0]
        return q

    def adjoint(self, v: ArrayLike) -> Floats:
        """``Σ_y Q(y|x) v_y``, one transform per code."""
        values, means = checked_vector(v, self.outputs, "v"), np.zeros(self.inputs)
        for stack in self._stacks:
            code, V = stack.code, values[stack.reports]
            levels = code.low * V.sum(axis=-1, keepdims=True) + (
                code.high - code.low
            ) * code.gather(V)
            stack.fill(means, levels / code.total + float(leftover_share(code)) * V[:, :1])
        return means

    # --- undoing it ---------------------------------------------------------------------------------

    def observed_shares(self, tally: Tally) -> tuple[Symbols, Floats]:
        """Every block's share is observed as it is."""
        f = self._frequencies(tally)
        return self._block_of, np.add.reduceat(f, self._offsets[:-1])

    def exact_scores(self, y: int) -> list[Fraction]:
        """Scores are 0 outside the block that report y names."""
        j = int(np.searchsorted(self._offsets, y, side="right")) - 1
        code = self._codes[self._code_of_block[j]]
        inside = exact_group_scores(
            code,
            int(self._sizes[j]),
            y - int(self._offsets[j]),
            rise=code.rise,
            leftover=leftover_share(code),
            total=Fraction(1),
        )
        column = [Fraction(0)] * self.inputs
        for x, score in zip(np.flatnonzero(self._block_of == j).tolist(), inside, strict=True):
            column[x] = score
        return column

    def mean_scores(self, frequencies: ArrayLike) -> Floats:
        """The unbiased estimate, one transform per code."""
        return self._mean(self._corrected, frequencies)

    def second_moments(self, frequencies: ArrayLike) -> Floats:
        """``Σ_y f(y) A[x, y]²``, three transforms per code."""
        return self._second_moments(self._corrected, frequencies)

    def simple(self, tally: Tally) -> Floats:
        """The paper's own estimator (its equation for p̂_x in section 6.1), without total correction."""
        return self._mean(self._simple, self._frequencies(tally))

    def simple_variances(self, p: ArrayLike, n: int) -> Floats:
        """The exact variance of ``simple``; with the Hadamard code ``(c² p(X_j) − p_x²)/n``."""
        moments = self._second_moments(self._simple, self.forward(p))
        return (moments - np.asarray(p, dtype=np.float64) ** 2) / people_count(n)

    def total_scores(self, weights: ArrayLike) -> Floats:
        """``Σ_x weights_x A[x, y]``, one transform per code."""
        w, scores = checked_vector(weights, self.inputs, "weights"), np.zeros(self.outputs)
        for stack, corrected in zip(self._stacks, self._corrected, strict=True):
            scores[stack.reports] = corrected.totals(stack.by_point(w))
        return scores

    def squared_scores(self) -> Floats:
        """``Σ_x A[x, y]²``."""
        squares = np.zeros(self.outputs)
        for stack, corrected in zip(self._stacks, self._corrected, strict=True):
            squares[stack.reports] = corrected.squares()
        return squares

    @property
    def leverage(self) -> float:
        """The largest score of a block; what a forged report adds to a block's share is 1."""
        return max(corrected.largest() for corrected in self._corrected)

    @cached_property
    def reach(self) -> Reach:
        """The extremes inside each block; reports of another block score 0."""
        highest, lowest = np.zeros(self.inputs), np.zeros(self.inputs)
        for stack, corrected in zip(self._stacks, self._corrected, strict=True):
            for bound, found in zip((highest, lowest), corrected.extremes_of_points(), strict=True):
                stack.fill(bound, found)
        if self._sizes.size > 1:
            highest, lowest = np.maximum(highest, 0.0), np.minimum(lowest, 0.0)
        return Reach(
            highest, lowest, max(float(corrected.sizes().max()) for corrected in self._corrected)
        )

    def _mean(self, scores: Sequence[GroupScores], frequencies: ArrayLike) -> Floats:
        f, means = checked_vector(frequencies, self.outputs, "frequencies"), np.zeros(self.inputs)
        for stack, score in zip(self._stacks, scores, strict=True):
            stack.fill(means, score.mean(f[stack.reports]))
        return means

    def _second_moments(self, scores: Sequence[GroupScores], frequencies: ArrayLike) -> Floats:
        f, moments = checked_vector(frequencies, self.outputs, "frequencies"), np.zeros(self.inputs)
        for stack, score in zip(self._stacks, scores, strict=True):
            stack.fill(moments, score.second_moments(f[stack.reports]))
        return moments

    @cached_property
    def _stacks(self) -> list[Stack]:
        """The blocks, code by code; made when first needed, since a client never needs them."""
        point = self._point.astype(np.int64)
        return stacked(self._codes, self._code_of_block, self._offsets[:-1], self._block_of, point)

    @cached_property
    def _corrected(self) -> list[GroupScores]:
        return [
            corrected_scores(
                stack.code, stack.sizes, rise=stack.code.rise, leftover=leftover_share(stack.code)
            )
            for stack in self._stacks
        ]

    @cached_property
    def _simple(self) -> list[GroupScores]:
        return [simple_scores(stack.code, stack.sizes) for stack in self._stacks]


def _codes_for(
    sizes: NDArray[np.int64], epsilons: Sequence[Epsilon], family: CodeFamily, word_bits: int
) -> tuple[list[Code], NDArray[np.int64]]:
    """The distinct codes of the blocks, and which one each block uses."""
    codes: dict[str, tuple[int, Code]] = {}
    number_of: dict[tuple[int, Epsilon], int] = {}
    wanted = list(zip(sizes.tolist(), epsilons, strict=True))
    for size, epsilon in sorted(set(wanted)):
        clear = size == 1 or isinstance(epsilon, float)
        code = ClearCode(size, word_bits=word_bits) if clear else family(size, epsilon, word_bits)
        number_of[size, epsilon], _ = codes.setdefault(repr(code.record()), (len(codes), code))
    by_block = np.array([number_of[block] for block in wanted], dtype=np.int64)
    return [code for _, code in codes.values()], by_block
