"""Group response: groups of symbols that cover for each other, and symbols without a promise.

High-low response is the special case of a single group, the sensitive symbols.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import exp
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.codes import ClearCode, Code, CodeFamily, HadamardCode, RecordedCodes
from sfumato.contexts import Context, ranks_within
from sfumato.errors import ContextMismatch, InvalidSurvey
from sfumato.foundation.arrays import Booleans, Floats, KernelWords, PerPerson, Symbols, Words
from sfumato.foundation.canonical import Fields, Json, require_fields
from sfumato.foundation.elementwise import index_of_range, look_up, select, zero_where
from sfumato.mechanisms.code_scores import row_sums
from sfumato.mechanisms.coded import CodedMechanism, GroupScores, respond_by_index
from sfumato.mechanisms.group_levels import (
    GroupIntegers,
    GroupLevels,
    GroupShape,
    assign_codes,
    find_levels,
    find_protected_groups,
    find_shapes,
)
from sfumato.mechanisms.holder import require_context
from sfumato.mechanisms.mechanism import CompactRow, Mechanism
from sfumato.mechanisms.row_class import RowClass
from sfumato.mechanisms.scores import float_vector
from sfumato.randomness import two_level_index

__all__ = ["GroupResponse", "HighLowResponse"]

_EXAMPLE = "sf.HighLow(labels, sensitive=labels[:1], epsilon=1)"  # of a context for both


class GroupResponse(CodedMechanism):
    """A response with one promise inside each group and another from the group to other symbols.

    Use it for tiers, blocks with a promise across them, and high-low contexts. Group j has a code
    with b outputs, of which each symbol x favours a set S_x of r outputs. With f = r/b,
    ``A = e^ε_out`` and ``B = e^{ε_out − ε_in}``::

        Q((j, y)|x) = v_j/b · ( A  for x in j, y ∈ S_x;
                                B  for x in j, y ∉ S_x;
                                1  for x not in j )
        x without a promise: its own report with probability β

        g_j = f A + (1 − f) B − 1,   β = 1/(1 + Σ 1/g_j),   v_j = β/g_j

    The reports of the groups come first, with groups in the order of their first labels. They are
    followed by one report for each symbol without a promise, in domain order.

    Guarantees: every log-ratio is at most ε_in inside group j, and at most ε_out from j to any
    other symbol; every row sums to 1; a group with one symbol has one report. Requires
    ``ε_in ≤ ε_out + ε_out'`` for any two groups, which holds in every closed context.
    Cost per report: one word.
    Error: at most a third above the smallest possible error if ε_in ≥ 1; for small ε, where
    ``mechanism_for`` prefers other mechanisms, at most 1.8 times the smallest possible error.
    Reference: Acharya et al. (2020), section 5.1, for one group with ε_in = ε_out.
    Proof: docs/proofs/groups.md.

    >>> from sfumato.contexts import Tiers
    >>> tiers = Tiers(["high", "high", "low", "none"], {"high": 1, "low": 2, "none": "inf"})
    >>> mechanism = GroupResponse(tiers)
    >>> mechanism.outputs, mechanism.matrix().round(3).tolist()[3]
    (6, [0.125, 0.125, 0.125, 0.125, 0.067, 0.431])
    """

    kind: ClassVar[str] = "groups"

    _shapes: list[GroupShape]

    def __init__(
        self,
        context: Context,
        code: CodeFamily | Sequence[CodeFamily] = HadamardCode,
        *,
        word_bits: int = 64,
    ) -> None:
        require_context(context, "GroupResponse(context)", _EXAMPLE)
        groups = context.groups
        if groups is None:
            raise ContextMismatch(
                "a group response needs a context of groups: Tiers, HighLow, or Blocks with "
                "`across`. Use mechanism_for to choose a mechanism."
            )
        protected, group_of = find_protected_groups(groups)
        families = [code] * len(protected) if callable(code) else list(code)
        if len(families) != len(protected):
            raise ContextMismatch(
                "code must be one code for all groups, or one for each of the "
                f"{len(protected)} groups with a promise."
            )
        codes, code_index_of_group = assign_codes(groups, protected, families, word_bits)
        self._code_families = code
        self._shapes = find_shapes(groups, protected, codes, code_index_of_group)
        clear_words, levels = find_levels(self._shapes, word_bits)
        super().__init__(context)
        integers = GroupIntegers(codes, levels, code_index_of_group, clear_words, word_bits)
        self._set_integers(group_of, integers)

    @classmethod
    def from_integers(cls, context: Context, integers: GroupIntegers) -> Self:
        """Return the mechanism with the given integers, e.g. those of a published survey."""
        if context.groups is None:
            raise ContextMismatch("a group response needs a context of groups.")
        protected, group_of = find_protected_groups(context.groups)
        integers.require_fitting_codes(context.groups.sizes[protected].tolist())
        integers.require_valid_sums()
        codes = integers.codes
        mechanism = cls.__new__(cls)
        mechanism._code_families = [
            codes[code_index].family for code_index in integers.code_index_of_group
        ]
        mechanism._shapes = find_shapes(
            context.groups, protected, codes, integers.code_index_of_group
        )
        Mechanism.__init__(mechanism, context)
        mechanism._set_integers(group_of, integers)
        return mechanism

    def _set_integers(self, group_of: Symbols, integers: GroupIntegers) -> None:
        """Set the channel's integers, and assign its reports and words.

        ``group_of`` contains the group of each symbol, or −1 for a symbol without a promise.
        """
        self._integers = integers
        self.word_bits = integers.word_bits
        self._levels = integers.levels
        self._clear_words = integers.clear_words
        self._beta = Fraction(self._clear_words, self.denominator)
        code_index_of_group = np.array(integers.code_index_of_group, dtype=np.int64)
        point_of = np.where(group_of >= 0, ranks_within(group_of + 1), 0)
        self._set_groups(integers.codes, code_index_of_group, group_of, point_of)
        self._group_count = len(code_index_of_group)
        # The kernel counts free symbols as one more group, which has an entry in its tables.
        kernel_groups = np.where(group_of >= 0, group_of, self._group_count)
        self._group_words: Words = kernel_groups.astype(np.uint64)
        self._group_start_words: Words = np.append(self._group_starts, 0).astype(np.uint64)
        self._own_report = np.zeros(self.inputs, dtype=np.uint64)
        self._own_report[self._free_symbols] = np.arange(self._coded_outputs, self.outputs)
        self._assign_words()

    def _assign_words(self) -> None:
        """Order the words: first the groups' cover words, then clear words, then leftover words."""
        cover_words = self._integers.cover_words
        ends = np.cumsum(np.array([0, *cover_words], dtype=object))
        self._cover_starts: Words = ends.astype(np.uint64)
        self._cover_end = int(ends[-1])
        self._leftover = self.denominator - self._cover_end - self._clear_words
        self._cover_words: Words = np.array([*cover_words, 0], dtype=np.uint64)
        cover_levels = [max(self._levels[i].cover, 1) for i in self._code_index_of_group.tolist()]
        self._cover_levels: Words = np.array([*cover_levels, 1], dtype=np.uint64)
        self._first_cover_level = int(self._cover_levels[0])

    def to_record(self) -> Json:
        """Return the channel's integers as JSON-compatible data."""
        return {"kind": self.kind, **self._integers.to_record()}

    @classmethod
    def from_record(cls, record: Fields, context: Context) -> Self:
        """Return the mechanism stored in a record, for the given context."""
        if context.groups is None:
            raise InvalidSurvey("a mechanism of kind 'groups' needs a context of groups.")
        return cls.from_integers(context, GroupIntegers.from_record(record, context.groups))

    # --- randomising -----------------------------------------------------------------------------

    def _respond(self, symbols: PerPerson, words: KernelWords) -> PerPerson:
        """Return one report per symbol.

        A group's cover words give the same report for every symbol outside the group. Leftover
        words give report 0. For all other words, the report depends on the symbol.
        """
        word = words[0]
        group = look_up(self._group_words, symbols)
        own_reports = look_up(self._own_report, symbols)
        if self._group_count == 0:
            return own_reports
        is_cover = word < self._cover_end
        covered_group, cover_reports = self._decode_cover_words(word)
        is_own_cover = is_cover & (covered_group == group)
        positions = self._word_positions(word, group, is_own_cover)
        member_reports = self._member_reports(symbols, group, positions)
        is_member = group < self._group_count
        reports = select(is_member, member_reports, own_reports)
        is_other_cover = is_cover ^ is_own_cover
        reports = select(is_other_cover, cover_reports, reports)
        # Leftover words are rare at 64 bits, and independent of the symbol.
        is_leftover = word > self.denominator - self._leftover - 1
        return zero_where(is_leftover, reports)

    def _decode_cover_words(self, word: PerPerson) -> tuple[PerPerson, PerPerson]:
        """Return each cover word's group and report. Entries for other words are undefined.

        With a single code, all groups have the same number of cover words, so no lookup is needed.
        """
        if len(self._codes) == 1:
            report = word // self._first_cover_level
            return report // self._codes[0].outputs, report
        group = index_of_range(self._cover_starts, word)
        output = (word - look_up(self._cover_starts, group)) // look_up(self._cover_levels, group)
        return group, output + look_up(self._group_start_words, group)

    def _word_positions(
        self, word: PerPerson, group: PerPerson, is_own_cover: bool | Booleans
    ) -> PerPerson:
        """Return each word's position in the group's cover words followed by the clear words.

        Entries for all other words are undefined.
        """
        if self._group_count == 1:  # with a single group, no other group has cover words
            return word
        if len(self._codes) == 1:
            cover_words = self._first_cover_level * self._codes[0].outputs
            return word - select(is_own_cover, group * cover_words, self._cover_end - cover_words)
        cover_position = word - look_up(self._cover_starts, group)
        clear_position = word - self._cover_end + look_up(self._cover_words, group)
        return select(is_own_cover, cover_position, clear_position)

    def _member_reports(
        self, symbols: PerPerson, group: PerPerson, position: PerPerson
    ) -> PerPerson:
        """Return each member's report for the word at a position from ``_word_positions``.

        Entries for free symbols and for leftover words are undefined.
        """
        point = look_up(self._point_words, symbols)
        if len(self._codes) == 1:
            first_report = group * self._codes[0].outputs
            return self._member_outputs(0, point, position) + first_report
        code_index = look_up(self._code_index_of, symbols)
        output = respond_by_index(
            self._member_outputs, len(self._codes), code_index, point, position
        )
        return output + look_up(self._group_start_words, group)

    def _member_outputs(self, code_index: int, point: PerPerson, position: PerPerson) -> PerPerson:
        """Return the output of the code for each point and word position."""
        code = self._codes[code_index]
        level = self._levels[code_index]
        index = two_level_index(position, code.raised, level.high, level.low)
        return code.output_at(point, index)

    # --- the channel -----------------------------------------------------------------------------

    @cached_property
    def _cover_row(self) -> NDArray[np.intp]:
        """For each report, the level index of symbols outside the report's group."""
        row = np.zeros(self.outputs, dtype=np.intp)
        row[: self._coded_outputs] = np.repeat(
            3 * self._code_index_of_group + 2, self._report_counts
        )
        return row

    def _level_row(self, x: int) -> NDArray[np.intp]:
        """Return the level index of symbol x for each report.

        Level 0 is 0 words, and level 1 is the number of clear words. Levels 3i + 2 to 3i + 4 are
        the cover, low and high levels of code i.
        """
        row = self._cover_row.copy()
        if self._group_of[x] < 0:
            row[int(self._own_report[x])] = 1
        else:
            code_index, group_reports, favoured = self._locate(x)
            row[group_reports] = 3 * code_index + 3 + favoured
        return row

    def compact_row(self, x: int) -> CompactRow:
        """Return the row of x as levels and indices. Report 0 also gets the leftover words."""
        levels = [0, self._clear_words]
        for level in self._levels:
            levels += [level.cover, level.low, level.high]
        level_indices = self._level_row(x)
        levels.append(levels[level_indices[0]] + self._leftover)
        level_indices[0] = len(levels) - 1
        return levels, level_indices

    def row_classes(self) -> tuple[RowClass, ...]:
        """Return one class for free symbols, one for the first group, and one per code.

        The first group is separate because the leftover words map to its first report, so the
        classes of codes contain only the symbols of other groups. Empty classes are omitted.
        """
        classes = [
            RowClass(
                self._free_symbols, np.zeros_like(self._free_symbols), own_words=self._clear_words
            )
        ]
        for code_index, members in enumerate(self._symbols_by_code()):
            code = self._codes[code_index]
            level = self._levels[code_index]
            group = self._group_of[members]
            first_members = members[group == 0]
            other_members = members[group > 0]
            for symbols, leftover in ((first_members, self._leftover), (other_members, 0)):
                claim = RowClass(
                    symbols,
                    self._group_starts[self._group_of[symbols]],
                    code.outputs,
                    code.raised,
                    level.high,
                    level.low,
                    leftover,
                    level.cover,
                )
                classes.append(claim)
        return tuple(claim for claim in classes if claim.symbols.size)

    def ideal_row(self, x: int) -> Floats:
        """Return the row of x from the formula in the class docstring."""
        return np.array(self._ideal_levels())[self._level_row(x)]

    def _ideal_levels(self) -> list[float]:
        """Return the levels from the formula: 0, β, then each code's cover, low and high levels."""
        inverse_gains = sum(shape.group_count / float(shape.gain) for shape in self._shapes)
        beta = 1 / (1 + inverse_gains)
        levels = [0.0, beta]
        for shape in self._shapes:
            cover = beta / float(shape.gain) / shape.outputs
            low = cover * exp(shape.epsilon_out - shape.epsilon_in)
            high = cover * exp(shape.epsilon_out)
            levels += [cover, low, high]
        return levels

    def forward(self, p: ArrayLike) -> Floats:
        """Return ``q(y) = Σ_x p_x Q(y|x)``, with one transform per code."""
        distribution = float_vector(p, self.inputs, "p")
        q = np.empty(self.outputs)
        total = distribution.sum()
        N = self.denominator
        for batch, level in zip(self._batches, self._levels, strict=True):
            by_point = batch.arrange_by_point(distribution)
            group_shares = row_sums(by_point)
            q[batch.reports] = (
                level.cover / N * (total - group_shares)
                + level.low / N * group_shares
                + (level.high - level.low) / N * batch.code.spread(by_point)
            )
        q[self._coded_outputs :] = float(self._beta) * distribution[self._free_symbols]
        q[:1] += self._leftover / N * total
        return q

    def adjoint(self, v: ArrayLike) -> Floats:
        """Return ``Σ_y Q(y|x) v_y``, with one transform per code."""
        values = float_vector(v, self.outputs, "v")
        N = self.denominator
        sums = [row_sums(values[batch.reports]) for batch in self._batches]
        cover_mean = 0.0
        for level, group_sums in zip(self._levels, sums, strict=True):
            cover_mean += level.cover / N * float(group_sums.sum())
        cover_mean += self._leftover / N * float(values[0])
        means = np.full(self.inputs, cover_mean)
        means[self._free_symbols] += float(self._beta) * values[self._coded_outputs :]
        for batch, level, group_sums in zip(self._batches, self._levels, sums, strict=True):
            extra = (level.high - level.low) / N * batch.code.gather(values[batch.reports])
            batch.fill(means, cover_mean + (level.low - level.cover) / N * group_sums + extra)
        return means

    @cached_property
    def scores(self) -> GroupScores:
        """The scores that undo the channel on average."""
        return GroupScores(self, self._levels, Fraction(self._leftover, self.denominator))


class HighLowResponse(GroupResponse):
    """A response that encodes sensitive symbols; other symbols are sent unchanged or act as cover.

    The code has K outputs, of which each sensitive symbol x favours a set S_x of r outputs. Here e
    stands for e^ε. With ``Z = r e + K − r`` and ``β = r(e−1)/Z``::

        x sensitive:      Q(y|x) = e/Z  if y ∈ S_x,   1/Z  otherwise,   y < K
        x not sensitive:  Q(y|x) = 1/Z  for y < K,    β  on x's own report,   0 elsewhere

    (Hadamard: ``2e/(K(e+1))``, ``2/(K(e+1))`` and ``β = (e−1)/(e+1)``.) Reports 0..K−1 are the
    code's outputs. They are followed by one report for each symbol that is not sensitive, in domain
    order. This is the group response for one group with ε_in = ε_out.

    Guarantees: for sensitive x, any x2 and any y, the log-ratio is at most ε; every row sums to 1;
    the response is the identity if no symbol is sensitive, and the plain response if all are; at
    most 2k outputs with the Hadamard code.
    Cost per report: one word. Error (Hadamard code, estimator in the reference below): with
    ``c = (e+1)/(e−1)``, ``n·Var`` is ``c²(p_A + 2p_B/(e+1)) − p_x²`` for sensitive x and
    ``c p_x − p_x²`` for the others, where p_A and p_B are the total shares of sensitive and other
    symbols.
    Reference: Acharya et al. (2020), section 5.1, with row x+1 of the Hadamard matrix for x.
    Proof: docs/proofs/high-low.md.

    >>> from sfumato.contexts import HighLow
    >>> mechanism = HighLowResponse(HighLow(["park", "clinic"], ["clinic"], epsilon=1))
    >>> mechanism.matrix().round(3)
    array([[0.269, 0.269, 0.462],
           [0.731, 0.269, 0.   ]])
    """

    kind: ClassVar[str] = "high-low"

    def __init__(
        self, context: Context, code: CodeFamily = HadamardCode, *, word_bits: int = 64
    ) -> None:
        require_context(context, "HighLowResponse(context)", _EXAMPLE)
        high_low = context.as_high_low
        if high_low is None:
            raise ContextMismatch(
                "a high-low response needs a HighLow context. "
                "Use mechanism_for to choose a mechanism."
            )
        self._code_families = code
        sensitive_count = high_low.sensitive.size
        epsilon = high_low.exact_inside
        if sensitive_count == 0 or isinstance(epsilon, float):
            self._code: Code = ClearCode(sensitive_count, word_bits=word_bits)
        else:
            self._code = code(sensitive_count, epsilon, word_bits)
        # The group uses the code's own levels, with the low level as its cover.
        high = self._code.high
        low = self._code.low
        codes = [self._code] if sensitive_count else []
        levels = [GroupLevels(high, low, low)] if sensitive_count else []
        Mechanism.__init__(self, context)
        group_of = np.where(high_low.is_sensitive, 0, -1)
        clear_words = self._code.raised * (high - low)
        integers = GroupIntegers(codes, levels, [0] * len(codes), clear_words, word_bits)
        self._set_integers(group_of, integers)

    def to_record(self) -> Json:
        """Return the channel's integers as JSON-compatible data."""
        return {"kind": self.kind, "codes": [self._code.to_record()]}

    @classmethod
    def from_record(cls, record: Fields, context: Context) -> Self:
        """Return the mechanism stored in a record, for the given context."""
        fields = require_fields(record, "mechanism", ("kind", "codes"))
        high_low = context.as_high_low
        if high_low is None:
            raise InvalidSurvey("a mechanism of kind 'high-low' needs a high-low context.")
        if not fields["codes"]:
            raise InvalidSurvey("mechanism.codes must contain at least one code.")
        codes = RecordedCodes()
        codes.read(fields["codes"][0], int(high_low.sensitive.size), high_low.exact_inside)
        if not codes.all_fit:
            raise InvalidSurvey("a mechanism of kind 'high-low' does not fit the context.")
        return cls(context, codes, word_bits=codes.word_bits)

    def _ideal_levels(self) -> list[float]:
        """Return the levels from the formula in the class docstring."""
        high, low = self._code.ideal_levels()
        return [0.0, self._code.raised * (high - low), low, low, high]
