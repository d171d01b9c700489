"""Union response, which reveals the block and uses any mechanism inside each block."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.contexts import Context, ContextUnion
from sfumato.errors import ContextMismatch, InvalidSurvey
from sfumato.foundation.arrays import Floats, KernelWords, PerPerson, Symbols, Words
from sfumato.foundation.canonical import Fields, Json, require_fields
from sfumato.foundation.elementwise import look_up
from sfumato.mechanisms.coded import respond_by_index
from sfumato.mechanisms.mechanism import CompactRow, Mechanism, require_max_outputs
from sfumato.mechanisms.scores import Hits, Reach, Scores, float_vector
from sfumato.mechanisms.table import TableResponse
from sfumato.tally import Tally

__all__ = ["UnionResponse", "contains_table"]


class UnionResponse(Mechanism):
    """A response that reveals the block, and hides the symbol with the block's own mechanism.

    ``Q((j, y)|x) = Q_j(y|x)`` for x in block j. Report ``offset_j + y`` represents (j, y); blocks
    are in the order of their first labels.

    Guarantees: the promise of Q_j inside block j; no promise across blocks; every row sums to 1.
    Block shares are observed without noise.
    Cost per report: the largest number of words that any block's mechanism needs. Error:
    ``Σ_j [p_j R_j + p_j(1 − p_j)‖θ_j‖²]``, where θ_j is the distribution inside block j, p_j is the
    block's share and R_j is the risk of Q_j at θ_j.
    Reference: Acharya et al. (2020), section 6.1, for equal promises inside all blocks.
    Proof: docs/proofs/union.md.

    >>> from sfumato.contexts import HighLow, Uniform, union
    >>> from sfumato.mechanisms import HighLowResponse, PlainResponse
    >>> visits = HighLow(["park", "clinic"], ["clinic"], 2)
    >>> context = union([Uniform(["bus", "tram"], 1), visits])
    >>> travel, visits = context.parts
    >>> UnionResponse(context, [PlainResponse(travel), HighLowResponse(visits)]).outputs
    7

    ``parts`` contains the mechanism of each block. ``symbols`` contains the symbols of each part.
    ``offsets`` contains the first report of each part, followed by the total number of reports.
    """

    kind: ClassVar[str] = "union"
    context: ContextUnion

    def __init__(self, context: ContextUnion, parts: Sequence[Mechanism]) -> None:
        if context.as_union is None:
            raise ContextMismatch(
                "a union response needs a union of contexts; create one with sf.union."
            )
        if [part.context for part in parts] != list(context.parts):
            raise ContextMismatch(
                "a union response needs one mechanism for each part, made for that part's context."
            )
        if len({part.word_bits for part in parts}) != 1:
            raise ContextMismatch(
                "the parts of a union response must use words of the same length."
            )
        super().__init__(context)
        self.parts = tuple(parts)
        self.words = max(part.words for part in parts)
        self.word_bits = parts[0].word_bits
        output_counts = [part.outputs for part in parts]
        self.offsets = np.concatenate([[0], np.cumsum(output_counts)]).astype(np.int64)
        self.outputs = require_max_outputs(int(self.offsets[-1]))
        self.symbols = context.members()
        self._rank_words: Words = context.rank.view(np.uint64)
        self._offset_words: Words = self.offsets.view(np.uint64)
        report_ranges = [slice(*bounds) for bounds in pairwise(self.offsets.tolist())]
        self._layout = list(zip(self.parts, self.symbols, report_ranges, strict=True))

    def to_record(self) -> Json:
        """Return the parts as JSON-compatible data."""
        return {"kind": self.kind, "parts": [part.to_record() for part in self.parts]}

    @classmethod
    def from_record(
        cls,
        record: Fields,
        context: Context,
        read_part: Callable[[object, Context], Mechanism],
    ) -> Self:
        """Return the mechanism stored in a record; ``read_part`` reads the record of a part."""
        fields = require_fields(record, "mechanism", ("kind", "parts"))
        records = fields["parts"]
        union = context.as_union
        if union is None or not isinstance(records, list):
            raise InvalidSurvey(
                "a mechanism of kind 'union' needs a union of contexts and must list its parts."
            )
        if len(records) != len(union.parts):
            raise InvalidSurvey(
                f"mechanism.parts must have {len(union.parts)} entries, one per block."
            )
        return cls(union, list(map(read_part, records, union.parts)))

    def with_word_bits(self, word_bits: int) -> Self:
        """Return the same mechanism with words of ``word_bits`` bits."""
        return type(self)(self.context, [part.with_word_bits(word_bits) for part in self.parts])

    def _respond(self, symbols: PerPerson, words: KernelWords) -> PerPerson:
        block = look_up(self.context.block_of, symbols)
        rank = look_up(self._rank_words, symbols)
        inside = respond_by_index(self._respond_inside, len(self.parts), block, rank, words)
        return inside + look_up(self._offset_words, block)

    def _respond_inside(self, j: int, rank: PerPerson, words: KernelWords) -> PerPerson:
        """Return the reports of part j, which ignores the words that it does not need."""
        return self.parts[j]._respond(rank, words)

    # --- the channel -----------------------------------------------------------------------------

    def _locate(self, x: int) -> tuple[Mechanism, int, slice]:
        """Return the part that contains x, the rank of x in that part, and the part's reports."""
        part, _, reports = self._layout[self.context.block_of[x]]
        return part, int(self.context.rank[x]), reports

    def compact_row(self, x: int) -> CompactRow:
        """Return the row of x in its part, with 0 on the reports of other blocks.

        A part that uses fewer words ignores the remaining words, so its counts are scaled up.
        """
        part, rank, reports = self._locate(x)
        factor = 1 << (self.word_bits * (self.words - part.words))
        levels, inside = part.compact_row(rank)
        level_indices = np.zeros(self.outputs, dtype=np.intp)
        level_indices[reports] = inside + 1
        return [0, *(level * factor for level in levels)], level_indices

    def ideal_row(self, x: int) -> Floats:
        """Return the row of x from its part's formula."""
        part, rank, reports = self._locate(x)
        row = np.zeros(self.outputs)
        row[reports] = part.ideal_row(rank)
        return row

    def forward(self, p: ArrayLike) -> Floats:
        """Return ``q(y) = Σ_x p_x Q(y|x)``, computed by the parts."""
        distribution = float_vector(p, self.inputs, "p")
        return self._map_to_reports(lambda part, values: part.forward(values), distribution)

    def adjoint(self, v: ArrayLike) -> Floats:
        """Return ``Σ_y Q(y|x) v_y``, computed by the parts."""
        values = float_vector(v, self.outputs, "v")
        return self._map_to_symbols(lambda part, part_values: part.adjoint(part_values), values)

    def _map_to_reports(
        self, apply: Callable[[Mechanism, Floats], Floats], by_symbol: Floats
    ) -> Floats:
        """Convert values by symbol to values by report, calling ``apply`` for each part."""
        by_report = np.empty(self.outputs)
        for part, symbols, reports in self._layout:
            by_report[reports] = apply(part, by_symbol[symbols])
        return by_report

    def _map_to_symbols(
        self, apply: Callable[[Mechanism, Floats], Floats], by_report: Floats
    ) -> Floats:
        """Convert values by report to values by symbol, calling ``apply`` for each part."""
        by_symbol = np.empty(self.inputs)
        for part, symbols, reports in self._layout:
            by_symbol[symbols] = apply(part, by_report[reports])
        return by_symbol

    @cached_property
    def scores(self) -> "UnionScores":
        """The scores that undo the channel on average."""
        return UnionScores(self)


class UnionScores(Scores):
    """The scores of the parts. A report from another part scores 0."""

    mechanism: UnionResponse

    def exact_column(self, y: int) -> list[Fraction]:
        """Return the scores of report y, which are 0 outside the part that y belongs to."""
        union = self.mechanism
        j = int(np.searchsorted(union.offsets, y, side="right")) - 1
        part, symbols, reports = union._layout[j]
        column = [Fraction(0)] * union.inputs
        scores = part.scores.exact_column(y - reports.start)
        for x, score in zip(symbols.tolist(), scores, strict=True):
            column[x] = score
        return column

    def moments(self, frequencies: ArrayLike, power: int) -> Floats:
        """Return ``Σ_y f(y) A[x, y]^power``, part by part."""
        f = float_vector(frequencies, self.mechanism.outputs, "frequencies")
        return self.mechanism._map_to_symbols(
            lambda part, part_f: part.scores.moments(part_f, power), f
        )

    def totals(self, weights: ArrayLike) -> Floats:
        """Return ``Σ_x weights_x A[x, y]``, part by part."""
        w = float_vector(weights, self.mechanism.inputs, "weights")
        return self.mechanism._map_to_reports(lambda part, part_w: part.scores.totals(part_w), w)

    def squares(self) -> Floats:
        """Return ``Σ_x A[x, y]²``, part by part."""
        return np.concatenate([part.scores.squares() for part in self.mechanism.parts])

    def _compute_reach(self) -> Reach:
        union = self.mechanism
        highest = np.empty(union.inputs)
        lowest = np.empty(union.inputs)
        for part, symbols, _ in union._layout:
            highest[symbols] = part.scores.reach.highest
            lowest[symbols] = part.scores.reach.lowest
        if len(union.parts) > 1:
            highest = np.maximum(highest, 0.0)
            lowest = np.minimum(lowest, 0.0)
        max_absolute_sum = max(part.scores.reach.max_absolute_sum for part in union.parts)
        return Reach(highest, lowest, max_absolute_sum)

    def observed_shares(self, tally: Tally) -> tuple[Symbols, Floats]:
        """Return each symbol's group, and each group's share of all reports.

        The groups of each part are those whose shares the part observes without noise.
        """
        f = self._frequencies(tally)
        union = self.mechanism
        group_of = np.empty(union.inputs, dtype=np.int64)
        shares = np.empty(0)
        for part, symbols, reports in union._layout:
            counts = tally.counts[reports]
            inside = np.zeros(symbols.size, dtype=np.int64)
            observed = np.zeros(1)
            if counts.any():
                inside, observed = part.scores.observed_shares(Tally(counts, part.fingerprint))
            group_of[symbols] = inside + shares.size
            shares = np.concatenate([shares, observed * f[reports].sum()])
        return group_of, shares

    def hits(self, counts: NDArray[np.int64]) -> Hits:
        """Return the parts' binomial counts."""
        union = self.mechanism
        hits = Hits.unknown(union.inputs)
        for part, symbols, reports in union._layout:
            hits.fill(symbols, part.scores.hits(counts[reports]))
        return hits


def contains_table(mechanism: object) -> bool:
    """Return whether a mechanism, or one of its parts, is a ``TableResponse``."""
    parts = mechanism.parts if isinstance(mechanism, UnionResponse) else (mechanism,)
    return any(isinstance(part, TableResponse) for part in parts)
