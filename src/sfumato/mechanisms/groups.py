"""Group response: groups of symbols that cover for each other, and symbols that owe nothing."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import exp, inf
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.codes import (
    ClearCode,
    Code,
    CodeFamily,
    HadamardCode,
    code_of_record,
)
from sfumato.contexts import Context, GroupedContext, ranks_within
from sfumato.errors import ContextMismatch, InvalidSurvey
from sfumato.foundation.arrays import Booleans, Floats, Symbols, Words
from sfumato.foundation.canonical import (
    Fields,
    Json,
    parse_count,
    require_fields,
    require_index,
    require_word_bits,
)
from sfumato.mechanisms.coded_scores import CodeBatch, code_batches
from sfumato.mechanisms.group_levels import (
    GroupLevels,
    GroupShape,
    group_levels,
    require_fitting_codes,
    require_full_words,
)
from sfumato.mechanisms.group_scores import GroupScores
from sfumato.mechanisms.mechanism import CompactRow, Mechanism, require_outputs
from sfumato.mechanisms.row_class import RowClass
from sfumato.mechanisms.scores import float_vector
from sfumato.randomness import two_level_index

__all__ = ["GroupResponse"]


class GroupResponse(Mechanism):
    """Keeps one promise inside each group and another from it to everyone else.

    Use it for tiers, two levels of blocks, and high-low contexts. Group j has a code of b outputs
    and sets S_x of r outputs, f = r/b; ``A = e^ε_out``, ``B = e^{ε_out − ε_in}``::

        Q((j, y)|x) = v_j/b · ( A  for x in j, y ∈ S_x;
                                B  for x in j, y ∉ S_x;
                                1  for x elsewhere )
        x that owes nothing: its own report with probability β

        g_j = f A + (1 − f) B − 1,   β = 1/(1 + Σ 1/g_j),   v_j = β/g_j

    The first reports are those of the groups' codes, groups in order of their first labels. Then
    comes one report for each symbol that owes nothing, in domain order.

    Guarantees: inside group j every log-ratio is at most ε_in, from j to any other symbol at most
    ε_out; every row sums to 1; a group of one symbol has one report. Needs
    ``ε_in ≤ ε_out + ε_out'`` for any two groups, which a closed context has. Cost per report: one
    word.
    Error: the least possible, or up to a third more, where ε_in ≥ 1; up to 1.8 times it for small
    ε, where ``mechanism_for`` prefers other frames.
    Reference: Acharya et al. (2020), section 5.1 is the case of one group with ε_in = ε_out.
    Proof: docs/proofs/groups.md.

    >>> from sfumato.contexts import Tiers
    >>> tiers = Tiers(["high", "high", "low", "none"], {"high": 1, "low": 2, "none": "inf"})
    >>> mechanism = GroupResponse(tiers)
    >>> mechanism.outputs, mechanism.matrix().round(3).tolist()[3]
    (6, [0.125, 0.125, 0.125, 0.125, 0.067, 0.431])
    """

    kind: ClassVar[str] = "groups"

    _families: CodeFamily | Sequence[CodeFamily]
    _shapes: list[GroupShape]

    def __init__(
        self,
        context: Context,
        code: CodeFamily | Sequence[CodeFamily] = HadamardCode,
        *,
        word_bits: int = 64,
    ) -> None:
        groups = context.groups
        if groups is None:
            raise ContextMismatch(
                "a group response keeps a context of groups (Tiers, Blocks with across, HighLow); "
                "mechanism_for picks the frame that fits."
            )
        owing, group_of = _owing_groups(groups)
        families = [code] * len(owing) if callable(code) else list(code)
        if len(families) != len(owing):
            raise ContextMismatch(
                "pass one code for all groups, or one for each of the "
                f"{len(owing)} groups that owe something."
            )
        codes, code_of_group = _group_codes(groups, owing, families, word_bits)
        self._families = code
        self._shapes = _shapes(groups, owing, codes, code_of_group)
        clear, levels = group_levels(self._shapes, word_bits)
        super().__init__(context)
        self._set_integers(group_of, codes, levels, code_of_group, clear, word_bits)

    @classmethod
    def of_integers(
        cls,
        context: Context,
        codes: list[Code],
        levels: list[GroupLevels],
        code_of_group: list[int],
        clear: int,
        word_bits: int,
    ) -> Self:
        """Return the mechanism with the integers that it was published with."""
        if context.groups is None:
            raise ContextMismatch("a group response keeps a context of groups.")
        owing, group_of = _owing_groups(context.groups)
        require_fitting_codes(context.groups.sizes[owing].tolist(), codes, levels, code_of_group)
        require_full_words(codes, levels, code_of_group, clear, word_bits)
        mechanism = cls.__new__(cls)
        mechanism._families = [codes[number].family for number in code_of_group]
        mechanism._shapes = _shapes(context.groups, owing, codes, code_of_group)
        Mechanism.__init__(mechanism, context)
        mechanism._set_integers(group_of, codes, levels, code_of_group, clear, word_bits)
        return mechanism

    def _set_integers(
        self,
        group_of: Symbols,
        codes: list[Code],
        levels: list[GroupLevels],
        code_of_group: list[int],
        clear: int,
        word_bits: int,
    ) -> None:
        """Keep the channel's integers, and lay out its reports and words.

        ``group_of`` is the group of each symbol, −1 for a symbol that owes nothing;
        ``code_of_group`` the number of each group's code and levels; ``clear`` the number of words
        that a symbol has to itself.
        """
        self.word_bits = word_bits
        self._codes = codes
        self._levels = levels
        self._code_of_group = np.array(code_of_group, dtype=np.int64)
        self._clear = clear
        self._group_of = group_of
        self._point = np.where(group_of >= 0, ranks_within(group_of + 1), 0)
        self._lay_out_reports()
        self._lay_out_words()

    def _lay_out_reports(self) -> None:
        lengths = np.array([code.outputs for code in self._codes], dtype=np.int64)
        self._lengths = lengths[self._code_of_group]  # the number of reports of each group
        offsets = np.concatenate([[0], np.cumsum(self._lengths)]).astype(np.int64)
        self._first = offsets[:-1]  # the first report of each group
        self._first_word = self._first.astype(np.uint64)
        self._coded = int(offsets[-1])  # the number of reports of all groups
        self._free = np.flatnonzero(self._group_of < 0)
        self.outputs = require_outputs(self._coded + self._free.size)
        self._own_report = np.zeros(self.inputs, dtype=np.uint64)
        self._own_report[self._free] = np.arange(self._coded, self.outputs)

    def _lay_out_words(self) -> None:
        """Cover words come first, group after group, then the clear ones, then the leftover."""
        covers = []
        for number in self._code_of_group.tolist():
            covers.append(self._codes[number].outputs * self._levels[number].cover)
        starts = np.concatenate([[0], np.cumsum(np.array(covers, dtype=object))])
        self._starts = starts[:-1].astype(np.uint64)
        self._covered = int(starts[-1])
        self._leftover = self.denominator - self._covered - self._clear
        self._cover_words = np.array(covers, dtype=np.uint64)
        cover_levels = [max(level.cover, 1) for level in self._levels]
        self._cover_levels = np.array(cover_levels, dtype=np.uint64)[self._code_of_group]

    def record(self) -> Json:
        """Return the integers of the channel as plain data."""
        return {
            "kind": self.kind,
            "codes": [code.record() for code in self._codes],
            "levels": [level.record() for level in self._levels],
            "code_of_group": self._code_of_group.tolist(),
            "clear": str(self._clear),
            "word_bits": self.word_bits,
        }

    @classmethod
    def of_record(cls, record: Fields, context: Context) -> Self:
        """Return the mechanism with the integers of its record."""
        names = ("kind", "codes", "levels", "code_of_group", "clear", "word_bits")
        fields = require_fields(record, "mechanism", names)
        groups = context.groups
        if groups is None:
            raise InvalidSurvey("a mechanism of kind 'groups' must keep a context of groups.")
        for name in ("codes", "levels", "code_of_group"):
            if not isinstance(fields[name], list):
                raise InvalidSurvey(f"mechanism.{name} must be a list.")
        levels = [GroupLevels.of_record(level) for level in fields["levels"]]
        code_of_group = []
        for number in fields["code_of_group"]:
            limit = len(fields["codes"])
            code_of_group.append(require_index(number, limit, "mechanism.code_of_group"))
        epsilon_of_code = {}
        for number, g in zip(code_of_group, groups.owing_groups, strict=False):
            epsilon_of_code[number] = groups.inside[g]
        codes = []
        for number, code in enumerate(fields["codes"]):
            codes.append(code_of_record(code, epsilon_of_code.get(number, inf)))
        word_bits = require_word_bits(fields["word_bits"])
        clear = parse_count(fields["clear"])
        return cls.of_integers(context, codes, levels, code_of_group, clear, word_bits)

    def at_word(self, word_bits: int) -> Self:
        """Return the same mechanism over shorter words."""
        return type(self)(self.context, self._families, word_bits=word_bits)

    # --- randomising -----------------------------------------------------------------------------

    def _respond(self, symbols: Symbols, words: Words) -> Words:
        """Answer each word.

        Cover words of other groups give the same report for every symbol; all other words depend
        on the symbol.
        """
        word = words[:, 0]
        group = self._group_of.take(symbols)
        own = self._own_report.take(symbols)
        if not self._starts.size:
            return own
        in_cover = word < np.uint64(self._covered)
        covering, cover = self._cover_reports(word)
        in_own_cover = in_cover & (covering == group)
        inside = self._inside_reports(symbols, group, self._positions(word, group, in_own_cover))
        reports = np.where(group >= 0, inside, own)
        reports = np.where(in_cover & ~in_own_cover, cover, reports)
        is_leftover = word > np.uint64(self.denominator - self._leftover - 1)
        if is_leftover.any():  # rare at 64 bits, and independent of the symbol
            reports[is_leftover] = 0
        return reports

    def _cover_reports(self, word: Words) -> tuple[Symbols, Words]:
        """Return the group and the report of each cover word; other words give anything.

        With a single code all covers are equally long, and there is nothing to look up.
        """
        if len(self._codes) == 1:
            report = word // self._cover_levels[0]
            return (report // np.uint64(self._codes[0].outputs)).view(np.int64), report
        covering = np.searchsorted(self._starts, word, side="right") - 1
        within = (word - self._starts[covering]) // self._cover_levels[covering]
        return covering, within + self._first_word[covering]

    def _positions(self, word: Words, group: Symbols, in_own_cover: Booleans) -> Words:
        """Number the words of a member: its own group's cover first, then the clear ones."""
        if self._starts.size == 1:  # a single group has no other words
            return word
        if len(self._codes) == 1:
            length = self._cover_words[0]
            start = group.view(np.uint64) * length
            return word - np.where(in_own_cover, start, np.uint64(self._covered) - length)
        among_clear = word - np.uint64(self._covered) + self._cover_words[group]
        return np.where(in_own_cover, word - self._starts[group], among_clear)

    def _inside_reports(self, symbols: Symbols, group: Symbols, position: Words) -> Words:
        """Return the report of a member for a position among its own words.

        Entries for other symbols and for leftover words are never used.
        """
        point = self._point.take(symbols).view(np.uint64)
        if len(self._codes) == 1:
            first = group.view(np.uint64) * np.uint64(self._codes[0].outputs)
            return self._member_reports(0, point, position) + first
        code_of = self._code_of_group[group]
        reports = np.empty(symbols.size, dtype=np.uint64)
        for number in range(len(self._codes)):
            people = np.flatnonzero(code_of == number)
            reports[people] = self._member_reports(number, point[people], position[people])
        return reports + self._first_word[group]

    def _member_reports(self, number: int, point: Words, position: Words) -> Words:
        code = self._codes[number]
        level = self._levels[number]
        index = two_level_index(position, code.raised, level.high, level.low)
        return code.place(point, index)

    # --- the channel -----------------------------------------------------------------------------

    @property
    def _beta(self) -> Fraction:
        """β: how much likelier a member is to send a report of its group than anyone else."""
        return Fraction(self._clear, self.denominator)

    @cached_property
    def _cover_row(self) -> CompactRow:
        """What everyone puts on the reports of groups that are not theirs."""
        which = np.zeros(self.outputs, dtype=np.intp)
        which[: self._coded] = np.repeat(self._code_of_group, self._lengths) + 1
        return [0, *(level.cover for level in self._levels)], which

    def _own_range(self, g: int) -> slice:
        """Return the reports of group g."""
        return slice(int(self._first[g]), int(self._first[g] + self._lengths[g]))

    def compact_row(self, x: int) -> CompactRow:
        """The cover, except in the symbol's own group; leftover words are on report 0."""
        cover_levels, cover_which = self._cover_row
        levels = cover_levels.copy()
        which = cover_which.copy()
        g = int(self._group_of[x])
        if g < 0:
            which[int(self._own_report[x])] = len(levels)
            levels.append(self._clear)
        else:
            number = self._code_of_group[g]
            favoured = self._codes[number].favours(int(self._point[x]))
            which[self._own_range(g)] = len(levels) + favoured
            levels += [self._levels[number].low, self._levels[number].high]
        levels.append(levels[which[0]] + self._leftover)
        which[0] = len(levels) - 1
        return levels, which

    def row_classes(self) -> tuple[RowClass, ...]:
        """One class per code; the first group apart, with the leftover words on its report 0."""
        group = self._group_of
        classes = [RowClass.in_clear(self._free, self._clear)]
        for number, (code, level) in enumerate(zip(self._codes, self._levels, strict=True)):
            members = (group >= 0) & (self._code_of_group[group] == number)
            in_first = np.flatnonzero(members & (group == 0))
            in_others = np.flatnonzero(members & (group > 0))
            for symbols, leftover in ((in_first, self._leftover), (in_others, 0)):
                first = self._first[group[symbols]]
                claim = RowClass.of_levels(
                    code, first, symbols, level.high, level.low, leftover, level.cover
                )
                classes.append(claim)
        return tuple(claim for claim in classes if claim.symbols.size)

    def ideal_row(self, x: int) -> Floats:
        """The formula of the class."""
        beta, levels = self._ideal_levels()
        row = np.zeros(self.outputs)
        covers = np.array([cover for _, _, cover in levels])
        row[: self._coded] = np.repeat(covers[self._code_of_group], self._lengths)
        g = int(self._group_of[x])
        if g < 0:
            row[int(self._own_report[x])] = beta
        else:
            number = self._code_of_group[g]
            high, low, _ = levels[number]
            favoured = self._codes[number].favours(int(self._point[x]))
            row[self._own_range(g)] = np.where(favoured, high, low)
        return row

    def _ideal_levels(self) -> tuple[float, list[tuple[float, float, float]]]:
        """Return β, and (high, low, cover) for each code, by the formula."""
        gains = [float(shape.gain) for shape in self._shapes]
        inverse_gains = [s.count / g for s, g in zip(self._shapes, gains, strict=True)]
        beta = 1 / (1 + sum(inverse_gains))
        levels = []
        for shape, gain in zip(self._shapes, gains, strict=True):
            cover = beta / gain / shape.outputs
            high = cover * exp(shape.outward)
            low = cover * exp(shape.outward - shape.inside)
            levels.append((high, low, cover))
        return beta, levels

    def forward(self, p: ArrayLike) -> Floats:
        """Return ``q(y) = Σ_x p_x Q(y|x)``, by one transform per code."""
        distribution = float_vector(p, self.inputs, "p")
        q = np.empty(self.outputs)
        total = distribution.sum()
        N = self.denominator
        for batch, level in zip(self._batches, self._levels, strict=True):
            inside = batch.by_point(distribution)
            share = inside.sum(axis=-1, keepdims=True)
            raised = (level.high - level.low) / N * batch.code.spread(inside)
            q[batch.reports] = level.cover / N * (total - share) + level.low / N * share + raised
        q[self._coded :] = float(self._beta) * distribution[self._free]
        q[:1] += self._leftover / N * total
        return q

    def adjoint(self, v: ArrayLike) -> Floats:
        """Return ``Σ_y Q(y|x) v_y``, by one transform per code."""
        values = float_vector(v, self.outputs, "v")
        N = self.denominator
        sums = [values[batch.reports].sum(axis=-1, keepdims=True) for batch in self._batches]
        cover = 0.0
        for level, group_sums in zip(self._levels, sums, strict=True):
            cover += level.cover / N * float(group_sums.sum())
        cover += self._leftover / N * float(values[0])
        means = np.full(self.inputs, cover)
        means[self._free] += float(self._beta) * values[self._coded :]
        for batch, level, group_sums in zip(self._batches, self._levels, sums, strict=True):
            raised = (level.high - level.low) / N * batch.code.gather(values[batch.reports])
            batch.fill(means, cover + (level.low - level.cover) / N * group_sums + raised)
        return means

    @cached_property
    def _batches(self) -> list[CodeBatch]:
        """The groups, code by code. Built when first needed: a client never needs them."""
        return code_batches(
            self._codes, self._code_of_group, self._first, self._group_of, self._point
        )

    @cached_property
    def scores(self) -> GroupScores:
        """What undoes the channel."""
        return GroupScores(
            self,
            self._batches,
            self._levels,
            free=self._free,
            beta=self._beta,
            leftover=Fraction(self._leftover, self.denominator),
        )


def _owing_groups(groups: GroupedContext) -> tuple[list[int], Symbols]:
    """Return the groups that owe a promise to anyone, and each symbol's place among them.

    The place of a symbol that owes nothing is −1.
    """
    owing = groups.owing_groups
    for g in set(range(len(groups.outward))) - set(owing):
        if isinstance(groups.inside[g], Fraction) and groups.sizes[g] > 1:
            raise ContextMismatch(
                "a group response hides groups from each other; a group that shows itself but "
                "hides its symbols is a block, and one that is alone a plain response: use "
                "mechanism_for, or sf.union."
            )
    place = np.full(len(groups.outward), -1, dtype=np.int64)
    place[owing] = np.arange(len(owing))
    return owing, place[groups.group_of]


def _group_codes(
    groups: GroupedContext, owing: list[int], families: Sequence[CodeFamily], word_bits: int
) -> tuple[list[Code], list[int]]:
    """Return the codes, and the number of each group's code.

    Groups of equal size, promises and family share a code.
    """
    codes: list[Code] = []
    numbers: dict[object, int] = {}
    code_of_group = []
    for g, family in zip(owing, families, strict=True):
        size = int(groups.sizes[g])
        promises = groups.effective_promises(g)
        key = (id(family), size, promises)
        if key not in numbers:
            numbers[key] = len(codes)
            if size > 1:
                codes.append(family(size, promises[0], word_bits))
            else:
                codes.append(ClearCode(1, word_bits=word_bits))
        code_of_group.append(numbers[key])
    return codes, code_of_group


def _shapes(
    groups: GroupedContext, owing: list[int], codes: list[Code], code_of_group: list[int]
) -> list[GroupShape]:
    """Return the shape of the groups of each code, from the first of them."""
    counts = Counter(code_of_group)
    shapes = []
    for number, code in enumerate(codes):
        inside, outward = groups.effective_promises(owing[code_of_group.index(number)])
        shapes.append(GroupShape(code.outputs, code.raised, inside, outward, counts[number]))
    return shapes
