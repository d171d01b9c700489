"""Union response: the block in clear, any mechanism inside it."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.contexts import ContextUnion
from sfumato.errors import ContextMismatch
from sfumato.foundation.arrays import Floats, Symbols, Words
from sfumato.foundation.canonical import Json
from sfumato.mechanisms.mechanism import Mechanism, checked_vector, demand_outputs
from sfumato.mechanisms.reach import Reach
from sfumato.mechanisms.table import TableResponse
from sfumato.tally import Tally

__all__ = ["UnionResponse", "holds_table"]


class UnionResponse(Mechanism):
    """Sends the block as it is, and answers inside it by the mechanism of the block's own context.

    ``Q((j, y)|x) = Q_j(y|x)`` for x in block j. Report ``offset_j + y`` stands for (j, y), blocks in order of first
    label; block j owns as many reports as its mechanism.

    Guarantees: inside block j whatever Q_j promises; across blocks nothing; every row sums to 1. The shares of
    blocks are observed without noise.
    Cost per report: the words of the most demanding part. Error: ``Σ_j [p_j R_j + p_j(1 − p_j)‖θ_j‖²]``, with θ_j the
    distribution inside block j, p_j the block's share and R_j its part's risk at θ_j.
    Reference: Acharya et al. (2020), section 6.1, is the case of equal promises inside all blocks.
    Proof: docs/proofs/union.md.

    >>> from sfumato.contexts import HighLow, Uniform, union
    >>> from sfumato.mechanisms import HighLowResponse, PlainResponse
    >>> context = union([Uniform(["bus", "tram"], 1), HighLow(["park", "clinic"], ["clinic"], 2)])
    >>> parts = [PlainResponse(context.parts[0]), HighLowResponse(context.parts[1])]
    >>> UnionResponse(context, parts).outputs
    7
    """

    kind: ClassVar[str] = "union"

    def __init__(self, context: ContextUnion, parts: Sequence[Mechanism]) -> None:
        if not isinstance(context, ContextUnion):
            raise ContextMismatch(
                "a union response keeps a union of contexts; make one with sf.union."
            )
        if [part.context for part in parts] != list(context.parts):
            raise ContextMismatch(
                "a union response needs one mechanism for each part, and for the very context of it."
            )
        if len({part.word_bits for part in parts}) != 1:
            raise ContextMismatch("the parts of a union response must read words of one length.")
        super().__init__(context)
        self.parts = tuple(parts)
        self.words = max(part.words for part in parts)
        self.word_bits = parts[0].word_bits
        self._offsets = np.concatenate([[0], np.cumsum([part.outputs for part in parts])]).astype(
            np.int64
        )
        self.outputs = demand_outputs(int(self._offsets[-1]))
        self._block_of, self._rank = context.block_of, context.rank
        order = np.argsort(self._block_of, kind="stable")
        self.symbols = np.split(order, np.cumsum(context.sizes)[:-1])

    @property
    def context(self) -> ContextUnion:
        """The promise that the mechanism keeps."""
        assert isinstance(self._context, ContextUnion)  # noqa: S101 - for the type checker: made so
        return self._context

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The first report of each part, and the number of all."""
        return self._offsets

    def record(self) -> Json:
        """The parts as plain data."""
        return {"kind": self.kind, "parts": [part.record() for part in self.parts]}

    def at_word(self, word_bits: int) -> Self:
        """The same mechanism over shorter words."""
        return type(self)(self.context, [part.at_word(word_bits) for part in self.parts])

    # --- sampling -----------------------------------------------------------------------------------

    def _respond(self, symbols: Symbols, words: Words) -> Words:
        """People are sorted by block, so that each part answers its people in one go."""
        block = self._block_of[symbols]
        order = np.argsort(block, kind="stable")
        ends = np.cumsum(np.bincount(block, minlength=len(self.parts)))
        reports = np.empty(symbols.size, dtype=np.uint64)
        for part, offset, people in zip(
            self.parts, self._offsets[:-1], np.split(order, ends[:-1]), strict=True
        ):
            if people.size:
                inside = part._respond(self._rank[symbols[people]], words[people, : part.words])
                reports[people] = inside.astype(np.uint64) + np.uint64(offset)
        return reports

    # --- the channel --------------------------------------------------------------------------------

    def levels(self, x: int) -> tuple[list[int], NDArray[np.intp]]:
        """The part's row, and 0 on the reports of other blocks; a part of fewer words ignores the others."""
        part, own = self.parts[self._block_of[x]], self._range(int(self._block_of[x]))
        ignored = 1 << (self.word_bits * (self.words - part.words))
        values, inside = part.levels(int(self._rank[x]))
        which = np.zeros(self.outputs, dtype=np.intp)
        which[own] = inside + 1
        return [0, *(value * ignored for value in values)], which

    def ideal_row(self, x: int) -> Floats:
        """The part's formula."""
        row = np.zeros(self.outputs)
        row[self._range(int(self._block_of[x]))] = self.parts[self._block_of[x]].ideal_row(
            int(self._rank[x])
        )
        return row

    def forward(self, p: ArrayLike) -> Floats:
        """The parts' distributions of reports, side by side."""
        return self._on_reports(
            lambda part, values: part.forward(values), checked_vector(p, self.inputs, "p")
        )

    def adjoint(self, v: ArrayLike) -> Floats:
        """The parts' means, block by block."""
        return self._on_symbols(
            lambda part, values: part.adjoint(values), checked_vector(v, self.outputs, "v")
        )

    def _range(self, j: int) -> slice:
        return slice(int(self._offsets[j]), int(self._offsets[j + 1]))

    def _on_reports(
        self, apply: Callable[[Mechanism, Floats], Floats], by_symbol: Floats
    ) -> Floats:
        return np.concatenate(
            [
                apply(part, by_symbol[symbols])
                for part, symbols in zip(self.parts, self.symbols, strict=True)
            ]
        )

    def _on_symbols(
        self, apply: Callable[[Mechanism, Floats], Floats], by_report: Floats
    ) -> Floats:
        found = np.empty(self.inputs)
        for j, (part, symbols) in enumerate(zip(self.parts, self.symbols, strict=True)):
            found[symbols] = apply(part, by_report[self._range(j)])
        return found

    # --- undoing it ---------------------------------------------------------------------------------

    def observed_shares(self, tally: Tally) -> tuple[Symbols, Floats]:
        """Every block's share is observed as it is, and in it whatever its part observes."""
        f = self._frequencies(tally)
        group_of, shares = np.empty(self.inputs, dtype=np.int64), [np.empty(0)]
        for j, (part, symbols) in enumerate(zip(self.parts, self.symbols, strict=True)):
            counts, groups_before = (
                tally.counts[self._range(j)],
                sum(share.size for share in shares),
            )
            if counts.any():
                inside, observed = part.observed_shares(Tally(counts, part.fingerprint))
            else:
                inside, observed = np.zeros(symbols.size, dtype=np.int64), np.zeros(1)
            group_of[symbols] = inside + groups_before
            shares.append(observed * f[self._range(j)].sum())
        return group_of, np.concatenate(shares)

    def exact_scores(self, y: int) -> list[Fraction]:
        """Scores are 0 outside the block that report y names."""
        j = int(np.searchsorted(self._offsets, y, side="right")) - 1
        column = [Fraction(0)] * self.inputs
        scores = self.parts[j].exact_scores(y - int(self._offsets[j]))
        for x, score in zip(self.symbols[j].tolist(), scores, strict=True):
            column[x] = score
        return column

    def mean_scores(self, frequencies: ArrayLike) -> Floats:
        """The parts' unbiased estimates."""
        f = checked_vector(frequencies, self.outputs, "frequencies")
        return self._on_symbols(lambda part, values: part.mean_scores(values), f)

    def total_scores(self, weights: ArrayLike) -> Floats:
        """``Σ_x weights_x A[x, y]``, part by part."""
        w = checked_vector(weights, self.inputs, "weights")
        return self._on_reports(lambda part, values: part.total_scores(values), w)

    def second_moments(self, frequencies: ArrayLike) -> Floats:
        """``Σ_y f(y) A[x, y]²``, part by part."""
        f = checked_vector(frequencies, self.outputs, "frequencies")
        return self._on_symbols(lambda part, values: part.second_moments(values), f)

    def squared_scores(self) -> Floats:
        """``Σ_x A[x, y]²``, part by part."""
        return np.concatenate([part.squared_scores() for part in self.parts])

    @property
    def leverage(self) -> float:
        """The largest score of any part."""
        return max(part.leverage for part in self.parts)

    @cached_property
    def reach(self) -> Reach:
        """The parts' own; reports of another block score 0."""
        highest, lowest = np.empty(self.inputs), np.empty(self.inputs)
        elsewhere = 0.0 if len(self.parts) > 1 else np.nan
        for part, symbols in zip(self.parts, self.symbols, strict=True):
            highest[symbols] = np.fmax(part.reach.highest, elsewhere)
            lowest[symbols] = np.fmin(part.reach.lowest, elsewhere)
        return Reach(highest, lowest, max(part.reach.heaviest for part in self.parts))


def holds_table(mechanism: object) -> bool:
    """Whether a mechanism, or a part of it, is written out as a table."""
    parts = mechanism.parts if isinstance(mechanism, UnionResponse) else (mechanism,)
    return any(isinstance(part, TableResponse) for part in parts)
