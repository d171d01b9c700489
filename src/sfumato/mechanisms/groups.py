"""Group response: groups of symbols that take cover in each other's reports, and symbols that owe nothing."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import exp
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.codes import ClearCode, Code, CodeFamily, HadamardCode
from sfumato.contexts import Context, GroupedContext, ranks_within
from sfumato.errors import ContextMismatch
from sfumato.foundation.arrays import Booleans, Floats, Symbols, Words
from sfumato.foundation.canonical import Json
from sfumato.mechanisms.code_batches import Stack, stacked
from sfumato.mechanisms.group_levels import GroupLevels, GroupShape, group_levels
from sfumato.mechanisms.mechanism import Mechanism, checked_vector, demand_outputs, people_count
from sfumato.mechanisms.reach import Reach
from sfumato.mechanisms.row_class import RowClass
from sfumato.mechanisms.scores import (
    GroupScores,
    MembershipCore,
    corrected_scores,
    demand_balanced,
    exact_group_scores,
)
from sfumato.randomness.thresholds import two_level_index
from sfumato.tally import Tally

__all__ = ["GroupResponse"]


class GroupResponse(Mechanism):
    """A promise inside each group, another from it to everybody else: tiers, two levels of blocks, high-low.

    Group j has a code of b outputs, sets S_x of r outputs, f = r/b; ``A = e^ε_out``, ``B = e^{ε_out − ε_in}``::

        Q((j, y)|x) = v_j/b · ( A  for x in j, y ∈ S_x;   B  for x in j, y ∉ S_x;   1  for x elsewhere )
        x that owes nothing: its own report with probability β

        g_j = f A + (1 − f) B − 1,   β = 1/(1 + Σ 1/g_j),   v_j = β/g_j

    Reports 0.. are those of the groups' codes, groups in order of their first labels, then one for each symbol that
    owes nothing, in domain order.

    Guarantees: inside group j every log-ratio is at most ε_in, from j to anybody at most ε_out; every row sums to 1;
    a group of one symbol has one report. Needs ``ε_in ≤ ε_out + ε_out'`` for any two groups, which a closed
    context has. Cost per report: one word.
    Error: the least possible, or up to a third more, where ε_in ≥ 1; up to 1.8 times it for small ε, where
    ``mechanism_for`` prefers other frames.
    Reference: Acharya et al. (2020), section 5.1 is the case of one group with ε_in = ε_out.
    Proof: docs/proofs/groups.md.

    >>> from sfumato.contexts import Tiers
    >>> mechanism = GroupResponse(Tiers(["high", "high", "low", "none"], {"high": 1, "low": 2, "none": "inf"}))
    >>> mechanism.outputs, mechanism.matrix().round(3).tolist()[3]
    (6, [0.125, 0.125, 0.125, 0.125, 0.067, 0.431])
    """

    kind: ClassVar[str] = "groups"

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
        owing, group_of = _owing(groups)
        families = [code] * len(owing) if callable(code) else list(code)
        if len(families) != len(owing):
            raise ContextMismatch(
                f"give one code for all groups, or one for each of the {len(owing)} that owe something."
            )
        kinds: dict[object, tuple[int, Code]] = {}
        kind_of_group = [
            _kind(kinds, family, int(groups.sizes[g]), groups.effective_promises(g), word_bits)
            for g, family in zip(owing, families, strict=True)
        ]
        codes = [made for _, made in kinds.values()]
        shapes = _shapes(groups, owing, codes, kind_of_group)
        clear, levels = group_levels(shapes, word_bits)
        self._families, self._shapes = code, shapes
        self._frame(
            context,
            group_of,
            codes,
            levels,
            np.array(kind_of_group, dtype=np.int64),
            clear,
            word_bits,
        )

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
        """The mechanism that a record describes, with the integers it was published with."""
        if context.groups is None:
            raise ContextMismatch("a group response keeps a context of groups.")
        owing, group_of = _owing(context.groups)
        sizes = context.groups.sizes[owing]
        if len(code_of_group) != len(owing) or len(levels) != len(codes):
            raise ContextMismatch(
                f"every one of the {len(owing)} groups needs a code, and every code its levels."
            )
        for g, kind in enumerate(code_of_group):
            if sizes[g] > codes[kind].points or (
                sizes[g] < codes[kind].points and not codes[kind].balanced
            ):
                raise ContextMismatch(
                    "a code does not fit the number of symbols of a group that uses it."
                )
        first_uses = list(dict.fromkeys(code_of_group))
        if first_uses != list(range(len(codes))):
            raise ContextMismatch(
                "the codes of a group response must be numbered in the order of the groups that use them."
            )
        if (
            clear < 1
            or clear >> word_bits > 1
            or any(not 0 <= level.cover < 1 << word_bits for level in levels)
        ):
            raise ContextMismatch(f"the words of a group response must add up to 2^{word_bits}.")
        for code, level in zip(codes, levels, strict=True):
            b, r = code.outputs, code.raised
            if (
                r * level.high + (b - r) * level.low != clear + b * level.cover
                or level.low >= level.high
            ):
                raise ContextMismatch(
                    "the levels of a group must put `clear` more words on its code than its cover does."
                )
        covered = sum(codes[kind].outputs * levels[kind].cover for kind in code_of_group)
        if covered + clear > 1 << word_bits or (not codes and clear != 1 << word_bits):
            raise ContextMismatch(f"the words of a group response must add up to 2^{word_bits}.")
        made = cls.__new__(cls)
        made._families = [codes[kind].family for kind in code_of_group]
        made._shapes = _shapes(context.groups, owing, codes, code_of_group)
        made._frame(
            context,
            group_of,
            codes,
            levels,
            np.array(code_of_group, dtype=np.int64),
            clear,
            word_bits,
        )
        return made

    def _frame(
        self,
        context: Context,
        group_of: Symbols,
        codes: list[Code],
        levels: list[GroupLevels],
        kind_of_group: NDArray[np.int64],
        clear: int,
        word_bits: int,
    ) -> None:
        super().__init__(context)
        self.word_bits = word_bits
        self._codes, self._levels, self._kind_of_group, self._clear = (
            codes,
            levels,
            kind_of_group,
            clear,
        )
        self._group_of = group_of
        self._free = np.flatnonzero(group_of < 0)
        lengths = np.array([code.outputs for code in codes], dtype=np.int64)[kind_of_group]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self._first, self._coded = offsets[:-1], int(offsets[-1])
        self._first_word = self._first.astype(np.uint64)
        self.outputs = demand_outputs(self._coded + self._free.size)
        self._point = np.where(group_of >= 0, ranks_within(group_of + 1), 0)
        self._own_report = np.zeros(self.inputs, dtype=np.uint64)
        self._own_report[self._free] = np.arange(self._coded, self.outputs)
        # Words 0.. say cover, group after group; `clear` words follow; the rest are left over.
        covers = [codes[kind].outputs * levels[kind].cover for kind in kind_of_group.tolist()]
        starts = np.concatenate([[0], np.cumsum(np.array(covers, dtype=object))])
        self._covered = int(starts[-1])
        self._leftover = self.denominator - self._covered - clear
        self._starts = starts[:-1].astype(np.uint64)
        self._cover_words = np.array(covers, dtype=np.uint64)
        self._cover_levels = np.array([max(level.cover, 1) for level in levels], dtype=np.uint64)[
            kind_of_group
        ]

    def record(self) -> Json:
        """The integers of the channel as plain data."""
        return {
            "kind": self.kind,
            "codes": [code.record() for code in self._codes],
            "levels": [
                {"high": str(level.high), "low": str(level.low), "cover": str(level.cover)}
                for level in self._levels
            ],
            "code_of_group": self._kind_of_group.tolist(),
            "clear": str(self._clear),
            "word_bits": self.word_bits,
        }

    def at_word(self, word_bits: int) -> Self:
        """The same mechanism over shorter words."""
        return type(self)(self.context, self._families, word_bits=word_bits)

    # --- sampling -----------------------------------------------------------------------------------

    def _respond(self, symbols: Symbols, words: Words) -> Words:
        """A word of cover for another group says what it says for everybody; any other word is the symbol's own."""
        word, group = words[:, 0], self._group_of.take(symbols)
        own = self._own_report.take(symbols)
        if not self._starts.size:
            return own
        in_cover = word < np.uint64(self._covered)
        covering, cover = self._cover_of(word)
        in_own_cover = in_cover & (covering == group)
        inside = self._inside(symbols, group, self._position(word, group, in_own_cover))
        answer = np.where(group >= 0, inside, own)
        answer = np.where(in_cover & ~in_own_cover, cover, answer)
        left_over = word > np.uint64(self.denominator - self._leftover - 1)
        if left_over.any():  # hardly ever in 64 bits, and never a matter of the symbol
            answer[left_over] = 0
        return answer

    def _cover_of(self, word: Words) -> tuple[Symbols, Words]:
        """The group that a word of cover speaks for, and the report that it says; of other words, anything.

        Where groups are of one kind, all covers are equally long, and so there is nothing to look up.
        """
        if len(self._codes) == 1:
            report = word // self._cover_levels[0]
            return (report // np.uint64(self._codes[0].outputs)).view(np.int64), report
        covering = np.searchsorted(self._starts, word, side="right") - 1
        within = (word - self._starts[covering]) // self._cover_levels[covering]
        return covering, within + self._first_word[covering]

    def _position(self, word: Words, group: Symbols, in_own_cover: Booleans) -> Words:
        """A member counts the words of its own group's cover, then the clear ones; a single group has no others."""
        if self._starts.size == 1:
            return word
        if len(self._codes) == 1:
            length = self._cover_words[0]
            start = group.view(np.uint64) * length
            return word - np.where(in_own_cover, start, np.uint64(self._covered) - length)
        before = word - np.uint64(self._covered) + self._cover_words[group]
        return np.where(in_own_cover, word - self._starts[group], before)

    def _inside(self, symbols: Symbols, group: Symbols, position: Words) -> Words:
        """The report of a member of a group for a position among its own words.

        What strangers to a group and leftover words find here is never looked at.
        """
        point = self._point.take(symbols).view(np.uint64)
        if len(self._codes) == 1:
            return self._member_report(0, point, position) + group.view(np.uint64) * np.uint64(
                self._codes[0].outputs
            )
        kind, answers = self._kind_of_group[group], np.empty(symbols.size, dtype=np.uint64)
        for number in range(len(self._codes)):
            people = np.flatnonzero(kind == number)
            answers[people] = self._member_report(number, point[people], position[people])
        return answers + self._first_word[group]

    def _member_report(self, kind: int, point: Words, position: Words) -> Words:
        code, level = self._codes[kind], self._levels[kind]
        index = two_level_index(position, code.raised, level.high, level.low)
        return code.place(point, index)

    # --- the channel --------------------------------------------------------------------------------

    @property
    def _beta(self) -> Fraction:
        """β: how much likelier a member is to send a report of its group than anybody else."""
        return Fraction(self._clear, self.denominator)

    @cached_property
    def _cover_row(self) -> tuple[list[int], NDArray[np.intp]]:
        """What everybody puts on the reports of groups that are not theirs, in compact form."""
        which = np.zeros(self.outputs, dtype=np.intp)
        which[: self._coded] = np.repeat(self._kind_of_group, self._lengths) + 1
        return [0, *(level.cover for level in self._levels)], which

    @property
    def _lengths(self) -> NDArray[np.int64]:
        return np.array([code.outputs for code in self._codes], dtype=np.int64)[self._kind_of_group]

    def levels(self, x: int) -> tuple[list[int], NDArray[np.intp]]:
        """The cover, but for the symbol's own group or its own report; leftover words are on report 0."""
        values, cover = self._cover_row
        which, g = cover.copy(), int(self._group_of[x])
        if g < 0:
            values = [*values, self._clear]
            which[int(self._own_report[x])] = len(values) - 1
        else:
            code, level = self._codes[self._kind_of_group[g]], self._levels[self._kind_of_group[g]]
            values = [*values, level.low, level.high]
            own = slice(int(self._first[g]), int(self._first[g]) + code.outputs)
            which[own] = len(values) - 2 + code.favoured(int(self._point[x]))
        values = [*values, values[which[0]] + self._leftover]
        which[0] = len(values) - 1
        return values, which

    def row_classes(self) -> tuple[RowClass, ...]:
        """One class for each kind of group, the first group by itself (leftover words are on its first report)."""
        group, claims = self._group_of, [RowClass.in_clear(self._free, self._clear)]
        for number, (code, level) in enumerate(zip(self._codes, self._levels, strict=True)):
            members = (group >= 0) & (self._kind_of_group[group] == number)
            first_group, others = (
                np.flatnonzero(members & (group == 0)),
                np.flatnonzero(members & (group > 0)),
            )
            for symbols, leftover in ((first_group, self._leftover), (others, 0)):
                first = self._first[group[symbols]]
                claims.append(
                    RowClass.of_levels(
                        code, first, symbols, level.high, level.low, leftover, level.cover
                    )
                )
        return tuple(claim for claim in claims if claim.symbols.size)

    def ideal_row(self, x: int) -> Floats:
        """The formula of the class."""
        beta, levels = self._ideal
        row, g = np.zeros(self.outputs), int(self._group_of[x])
        row[: self._coded] = np.repeat(
            np.array([cover for _, _, cover in levels])[self._kind_of_group], self._lengths
        )
        if g < 0:
            row[int(self._own_report[x])] = beta
        else:
            code, (high, low, _) = (
                self._codes[self._kind_of_group[g]],
                levels[self._kind_of_group[g]],
            )
            own = slice(int(self._first[g]), int(self._first[g]) + code.outputs)
            row[own] = np.where(code.favoured(int(self._point[x])), high, low)
        return row

    @property
    def _ideal(self) -> tuple[float, list[tuple[float, float, float]]]:
        """β, and (high, low, cover) of each kind of group by the formula, in floats."""
        gains = [float(shape.gain) for shape in self._shapes]
        beta = 1 / (1 + sum(shape.count / g for shape, g in zip(self._shapes, gains, strict=True)))
        levels = []
        for shape, g in zip(self._shapes, gains, strict=True):
            cover = beta / g / shape.outputs
            levels.append(
                (cover * exp(shape.outward), cover * exp(shape.outward - shape.inside), cover)
            )
        return beta, levels

    def forward(self, p: ArrayLike) -> Floats:
        """``q(y) = Σ_x p_x Q(y|x)``, one transform per code."""
        distribution = checked_vector(p, self.inputs, "p")
        q, total, N = np.empty(self.outputs), distribution.sum(), self.denominator
        for stack, level in zip(self._stacks, self._levels, strict=True):
            inside = stack.by_point(distribution)
            share = inside.sum(axis=-1, keepdims=True)
            raised = (level.high - level.low) / N * stack.code.spread(inside)
            q[stack.reports] = level.cover / N * (total - share) + level.low / N * share + raised
        q[self._coded :] = float(self._beta) * distribution[self._free]
        q[:1] += self._leftover / N * total
        return q

    def adjoint(self, v: ArrayLike) -> Floats:
        """``Σ_y Q(y|x) v_y``, one transform per code."""
        values, N = checked_vector(v, self.outputs, "v"), self.denominator
        sums = [values[stack.reports].sum(axis=-1, keepdims=True) for stack in self._stacks]
        cover = sum(
            level.cover / N * float(each.sum())
            for level, each in zip(self._levels, sums, strict=True)
        )
        cover += self._leftover / N * float(values[0])
        means = np.full(self.inputs, cover)
        means[self._free] += float(self._beta) * values[self._coded :]
        for stack, level, each in zip(self._stacks, self._levels, sums, strict=True):
            raised = (level.high - level.low) / N * stack.code.gather(values[stack.reports])
            stack.fill(means, cover + (level.low - level.cover) / N * each + raised)
        return means

    # --- undoing it ---------------------------------------------------------------------------------

    def _cover_share(self, g: int) -> Fraction:
        """v_j: how often somebody outside group j sends one of its reports."""
        kind = self._kind_of_group[g]
        words = self._codes[kind].outputs * self._levels[kind].cover + (
            self._leftover if g == 0 else 0
        )
        return Fraction(words, self.denominator)

    def exact_scores(self, y: int) -> list[Fraction]:
        """A report of group j says ``(1 − v_j)/β`` of j's total and ``−v_l/β`` of any other group's total."""
        here = int(np.searchsorted(self._first, y, side="right")) - 1 if y < self._coded else -1
        column = [Fraction(0)] * self.inputs
        for g in range(self._first.size):
            kind, v = self._kind_of_group[g], self._cover_share(g)
            members = np.flatnonzero(self._group_of == g)
            level = self._levels[kind]
            scores = exact_group_scores(
                self._codes[kind],
                members.size,
                y - int(self._first[g]) if g == here else None,
                rise=Fraction(level.high - level.low, self.denominator),
                leftover=Fraction(self._leftover if g == 0 else 0, self.denominator),
                total=((g == here) - v) / self._beta,
            )
            for x, score in zip(members.tolist(), scores, strict=True):
                column[x] = score
        if y >= self._coded:
            column[int(self._free[y - self._coded])] = 1 / self._beta
        return column

    def mean_scores(self, frequencies: ArrayLike) -> Floats:
        """The unbiased estimate, one transform per code."""
        return self._mean(self._corrected, frequencies)

    def second_moments(self, frequencies: ArrayLike) -> Floats:
        """``Σ_y f(y) A[x, y]²``, three transforms per code."""
        return self._second_moments(self._corrected, frequencies)

    def simple(self, tally: Tally) -> Floats:
        """The estimator without total correction; for high-low, the paper's own (section 5.1)."""
        return self._mean(self._simple, self._frequencies(tally))

    def simple_variances(self, p: ArrayLike, n: int) -> Floats:
        """The exact variance of ``simple``."""
        moments = self._second_moments(self._simple, self.forward(p))
        return (moments - np.asarray(p, dtype=np.float64) ** 2) / people_count(n)

    def total_scores(self, weights: ArrayLike) -> Floats:
        """``Σ_x weights_x A[x, y]``, one transform per code."""
        w = checked_vector(weights, self.inputs, "weights")
        scores, everywhere = np.zeros(self.outputs), 0.0
        for part in self._corrected:
            by_point = part.stack.by_point(w)
            outside = (by_point * part.outside).sum(axis=-1, keepdims=True)
            scores[part.stack.reports] = part.inside.totals(by_point) - outside
            everywhere += float(outside.sum())
        scores[self._coded :] = w[self._free] / float(self._beta)
        return scores + everywhere

    def squared_scores(self) -> Floats:
        """``Σ_x A[x, y]²``."""
        squares, everywhere = np.zeros(self.outputs), 0.0
        for part in self._corrected:
            outside = (part.inside.used * part.outside**2).sum(axis=-1, keepdims=True)
            squares[part.stack.reports] = part.inside.squares() - outside
            everywhere += float(outside.sum())
        squares[self._coded :] = float(1 / self._beta**2)
        return squares + everywhere

    @property
    def leverage(self) -> float:
        """The largest score: inside a group, of an own report, or of a stranger's report against a group."""
        candidates = [part.inside.largest() for part in self._corrected]
        if self._free.size:
            candidates.append(float(1 / self._beta))
        if self._first.size > 1 or self._free.size:
            candidates += [
                float(np.abs(part.inside.used * part.outside).max(initial=0.0))
                for part in self._corrected
            ]
        return max(candidates)

    @cached_property
    def reach(self) -> Reach:
        """The extremes inside each group, and a stranger's report against it; of a free symbol its own, and 0."""
        highest = np.full(self.inputs, float(1 / self._beta))
        lowest = np.full(self.inputs, 0.0 if self.outputs > 1 else float(1 / self._beta))
        strangers = self._first.size > 1 or self._free.size > 0
        outside = [
            np.abs(part.inside.used * part.outside).sum(axis=-1, keepdims=True)
            for part in self._corrected
        ]
        everywhere = sum(float(each.sum()) for each in outside)
        heaviest = float(1 / self._beta) + everywhere if self._free.size else 0.0
        for part, own in zip(self._corrected, outside, strict=True):
            high, low = part.inside.extremes_of_points()
            if strangers:
                high, low = np.maximum(high, part.outside), np.minimum(low, part.outside)
            part.stack.fill(highest, high)
            part.stack.fill(lowest, low)
            heaviest = max(heaviest, float((part.inside.sizes() - own).max()) + everywhere)
        return Reach(highest, lowest, heaviest)

    def _mean(self, parts: Sequence["_Part"], frequencies: ArrayLike) -> Floats:
        f = checked_vector(frequencies, self.outputs, "frequencies")
        means = np.empty(self.inputs)
        for part in parts:
            inside = f[part.stack.reports]
            elsewhere = f.sum() - inside.sum(axis=-1, keepdims=True)
            part.stack.fill(means, part.inside.mean(inside) + elsewhere * part.outside)
        means[self._free] = f[self._coded :] / float(self._beta)
        return means

    def _second_moments(self, parts: Sequence["_Part"], frequencies: ArrayLike) -> Floats:
        f = checked_vector(frequencies, self.outputs, "frequencies")
        moments = np.empty(self.inputs)
        for part in parts:
            inside = f[part.stack.reports]
            elsewhere = f.sum() - inside.sum(axis=-1, keepdims=True)
            part.stack.fill(
                moments, part.inside.second_moments(inside) + elsewhere * part.outside**2
            )
        moments[self._free] = f[self._coded :] / float(self._beta**2)
        return moments

    @cached_property
    def _stacks(self) -> list[Stack]:
        """The groups, kind by kind; made when first needed, since a client never needs them."""
        return stacked(self._codes, self._kind_of_group, self._first, self._group_of, self._point)

    @cached_property
    def _corrected(self) -> list["_Part"]:
        return [
            self._corrected_part(stack, level)
            for stack, level in zip(self._stacks, self._levels, strict=True)
        ]

    def _corrected_part(self, stack: Stack, level: GroupLevels) -> "_Part":
        v, leftover = self._shares(stack)
        beta = float(self._beta)
        rise = Fraction(level.high - level.low, self.denominator)
        inside = corrected_scores(
            stack.code, stack.sizes, rise=rise, leftover=leftover, totals=(1 - v) / beta
        )
        return _Part(stack, inside, inside.shifts - v / beta / stack.sizes[:, None])

    @cached_property
    def _simple(self) -> list["_Part"]:
        return [
            self._simple_part(stack, level)
            for stack, level in zip(self._stacks, self._levels, strict=True)
        ]

    def _simple_part(self, stack: Stack, level: GroupLevels) -> "_Part":
        """``G ([y ∈ S_x] − P(S_x | a stranger) − τ(y) h)``, h what another member of the group adds to that."""
        code, N, beta = stack.code, self.denominator, float(self._beta)
        demand_balanced(code)
        v, leftover = self._shares(stack)
        G = float(N / ((code.raised - code.shared) * (level.high - level.low)))
        h = float(
            (
                code.shared * level.high
                + (code.raised - code.shared) * level.low
                - code.raised * level.cover
            )
            / N
        )
        cover = code.raised * level.cover / N
        at_zero = code.contains(np.arange(code.points, dtype=np.uint64), np.uint64(0))
        shifts = -G * leftover * at_zero
        used = np.arange(code.points) < stack.sizes[:, None]
        offsets = np.broadcast_to(
            -G * (cover + h * (1 - v) / beta), (stack.sizes.size, code.outputs)
        )
        inside = GroupScores(MembershipCore(code, G), used, offsets, shifts)
        return _Part(stack, inside, shifts - G * (cover - h * v / beta))

    def _shares(self, stack: Stack) -> tuple[Floats, Floats]:
        """``v_j`` and the leftover share, a column over the groups of a stack."""
        v = np.array([float(self._cover_share(g)) for g in stack.groups.tolist()])
        leftover = np.where(stack.groups == 0, self._leftover / self.denominator, 0.0)
        return v[:, None], leftover[:, None]


class _Part:
    """The scores of one stack: for reports of the own group, and for all others."""

    def __init__(self, stack: Stack, inside: GroupScores, outside: Floats) -> None:
        self.stack, self.inside, self.outside = stack, inside, outside


def _owing(groups: GroupedContext) -> tuple[list[int], Symbols]:
    """The groups that owe a promise to anybody, and each symbol's place among them (−1: owes nothing)."""
    owing = groups.owing_groups
    shown = set(range(len(groups.outward))) - set(owing)
    if any(isinstance(groups.inside[g], Fraction) and groups.sizes[g] > 1 for g in shown):
        raise ContextMismatch(
            "a group response hides groups from each other; a group that shows itself but hides its symbols is a "
            "block, and one that is alone a plain response: use mechanism_for, or sf.union."
        )
    number = np.full(len(groups.outward), -1, dtype=np.int64)
    number[owing] = np.arange(len(owing))
    return owing, number[groups.group_of]


def _kind(
    kinds: dict[object, tuple[int, Code]],
    family: CodeFamily,
    size: int,
    promised: tuple[Fraction, Fraction],
    word_bits: int,
) -> int:
    """The number of the kind of group: groups of equal size, promises and family are made once."""
    key = (id(family), size, promised)
    if key not in kinds:
        code = (
            family(size, promised[0], word_bits) if size > 1 else ClearCode(1, word_bits=word_bits)
        )
        kinds[key] = (len(kinds), code)
    return kinds[key][0]


def _shapes(
    groups: GroupedContext, owing: list[int], codes: list[Code], kind_of_group: list[int]
) -> list[GroupShape]:
    """The shape of each kind of group, from the first group of that kind."""
    counts = Counter(kind_of_group)
    first = {kind: g for g, kind in reversed(list(enumerate(kind_of_group)))}
    return [
        GroupShape(
            code.outputs, code.raised, *groups.effective_promises(owing[first[kind]]), counts[kind]
        )
        for kind, code in enumerate(codes)
    ]
