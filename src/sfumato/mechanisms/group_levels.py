"""Codes and integers for groups of symbols that cover for each other.

Group j has a code with b outputs, of which each symbol favours r, and two promises: ε_in inside
the group, and ε_out from the group to all other symbols. Every symbol maps each of the N = 2^B
words to a report. For a member of the group, ``high`` words map to each output it favours, and
``low`` words to each of the group's other outputs. For all other symbols, ``cover`` words map to
each of the group's outputs. So ``clear`` more words map to the group's outputs for a member than
for any other symbol; ``clear`` is the same for every group. For a symbol without a promise,
``clear`` words map to its own report. The ``leftover`` words map to report 0 for every symbol.
These numbers satisfy

    r·high + (b − r)·low − b·cover = clear,        Σ_j b_j·cover_j + clear + leftover = N

    high ≤ e^ε_in · low,   high ≤ e^ε_out · cover
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, inf, lcm

import numpy as np

from sfumato.codes import ClearCode, Code, CodeFamily, code_from_record
from sfumato.contexts import GroupedContext
from sfumato.errors import ContextMismatch, InvalidSurvey, NothingToLearn
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.canonical import (
    Fields,
    Json,
    parse_count,
    require_fields,
    require_index,
    require_word_bits,
)
from sfumato.randomness import exp_bounds

__all__ = [
    "GroupIntegers",
    "GroupLevels",
    "GroupShape",
    "assign_codes",
    "find_levels",
    "find_protected_groups",
    "find_shapes",
]


@dataclass(frozen=True)
class GroupShape:
    """The parameters b (``outputs``) and r (``raised``) of a group's code, and the group's two ε.

    ``group_count`` is the number of groups with this shape.
    """

    outputs: int
    raised: int
    epsilon_in: Fraction
    epsilon_out: Fraction
    group_count: int = 1

    @property
    def odds(self) -> tuple[Fraction, Fraction]:
        """``A = e^ε_out`` and ``B = e^{ε_out − ε_in}``, rounded down."""
        A = exp_bounds(self.epsilon_out)[0]
        difference = self.epsilon_out - self.epsilon_in
        if difference >= 0:
            return A, exp_bounds(difference)[0]
        return A, 1 / exp_bounds(-difference)[1]

    @property
    def gain(self) -> Fraction:
        """``g = f A + (1 − f) B − 1``, with f = r/b.

        Without rounding, this is the ratio of ``clear`` to ``b·cover``, the group's cover words.
        """
        A, B = self.odds
        f = Fraction(self.raised, self.outputs)
        return f * A + (1 - f) * B - 1


@dataclass(frozen=True)
class GroupLevels:
    """The number of words that map to each output of a group's code.

    For a member of the group, the number is ``high`` for outputs that the member favours and
    ``low`` for the others. For all other symbols, it is ``cover`` for every output.
    """

    high: int
    low: int
    cover: int

    def to_record(self) -> Json:
        """Return the integers as JSON-compatible data."""
        return {"high": str(self.high), "low": str(self.low), "cover": str(self.cover)}

    @classmethod
    def from_record(cls, record: object) -> "GroupLevels":
        """Return the levels stored in a record."""
        fields = require_fields(record, "levels", ("high", "low", "cover"))
        high = parse_count(fields["high"])
        low = parse_count(fields["low"])
        cover = parse_count(fields["cover"])
        return cls(high, low, cover)


@dataclass(frozen=True)
class GroupIntegers:
    """The integers of a group response.

    For each group, ``code_index_of_group`` contains the index of its code in ``codes``, which is
    also the index of its levels in ``levels``. ``clear_words`` is the number of words that are
    neither cover words nor leftover words.
    """

    codes: list[Code]
    levels: list[GroupLevels]
    code_index_of_group: list[int]
    clear_words: int
    word_bits: int

    @property
    def cover_words(self) -> list[int]:
        """The number of cover words for each group."""
        return [self.codes[i].outputs * self.levels[i].cover for i in self.code_index_of_group]

    def to_record(self) -> dict[str, Json]:
        """Return the integers as JSON-compatible data."""
        return {
            "codes": [code.to_record() for code in self.codes],
            "levels": [level.to_record() for level in self.levels],
            "code_of_group": list(self.code_index_of_group),
            "clear": str(self.clear_words),
            "word_bits": self.word_bits,
        }

    @classmethod
    def from_record(cls, record: Fields, groups: GroupedContext) -> "GroupIntegers":
        """Return the integers stored in a record, for the given groups."""
        field_names = ("kind", "codes", "levels", "code_of_group", "clear", "word_bits")
        fields = require_fields(record, "mechanism", field_names)
        for name in ("codes", "levels", "code_of_group"):
            if not isinstance(fields[name], list):
                raise InvalidSurvey(f"mechanism.{name} must be a list.")
        levels = [GroupLevels.from_record(level) for level in fields["levels"]]
        code_count = len(fields["codes"])
        code_index_of_group = []
        for index in fields["code_of_group"]:
            code_index_of_group.append(require_index(index, code_count, "mechanism.code_of_group"))
        epsilon_by_index = {}
        for index, g in zip(code_index_of_group, groups.protected_groups, strict=False):
            epsilon_by_index[index] = groups.inside[g]
        codes = []
        for index, code_record in enumerate(fields["codes"]):
            codes.append(code_from_record(code_record, epsilon_by_index.get(index, inf)))
        word_bits = require_word_bits(fields["word_bits"])
        return cls(codes, levels, code_index_of_group, parse_count(fields["clear"]), word_bits)

    def require_fitting_codes(self, sizes: list[int]) -> None:
        """Raise ``ContextMismatch`` unless the codes fit groups of these sizes.

        The codes must also be listed in the order in which the groups use them.
        """
        if len(self.code_index_of_group) != len(sizes) or len(self.levels) != len(self.codes):
            raise ContextMismatch(
                f"each of the {len(sizes)} groups must have a code, and each code must have levels."
            )
        for size, index in zip(sizes, self.code_index_of_group, strict=True):
            if not self.codes[index].can_serve(size):
                raise ContextMismatch("a code does not fit the size of a group that uses it.")
        in_order_of_use = list(dict.fromkeys(self.code_index_of_group))
        if in_order_of_use != list(range(len(self.codes))):
            raise ContextMismatch(
                "a group response must list its codes in the order in which its groups use them."
            )

    def require_valid_sums(self) -> None:
        """Raise ``ContextMismatch`` unless the integers satisfy the equations in this module."""
        total = 1 << self.word_bits
        word_count_error = ContextMismatch(
            "the word counts of a group response must be in range and add up to "
            f"2^{self.word_bits}."
        )
        covers_fit = all(0 <= level.cover < total for level in self.levels)
        if not 1 <= self.clear_words < 2 * total or not covers_fit:
            raise word_count_error
        for code, level in zip(self.codes, self.levels, strict=True):
            b = code.outputs
            r = code.raised
            member_words = r * level.high + (b - r) * level.low
            if member_words != self.clear_words + b * level.cover or level.low >= level.high:
                raise ContextMismatch(
                    "a group's `low` must be below its `high`, and exactly `clear` more words must "
                    "map to its outputs for its members than for other symbols."
                )
        word_count = sum(self.cover_words) + self.clear_words
        if word_count > total or (not self.codes and word_count != total):
            raise word_count_error


def find_protected_groups(groups: GroupedContext) -> tuple[list[int], Symbols]:
    """Return the protected groups, and the index of each symbol's group among them.

    A group is protected if it must be hard to tell apart from other groups. The index is −1 for a
    symbol without a promise. Raise ``ContextMismatch`` if the symbols inside a group that is not
    protected must be hard to tell apart.
    """
    protected = groups.protected_groups
    for g in set(range(len(groups.outward))) - set(protected):
        if isinstance(groups.inside[g], Fraction) and groups.sizes[g] > 1:
            raise ContextMismatch(
                "a group response hides groups from each other. For a group that may be revealed "
                "while its symbols stay hidden, use a block response; for a single group, use a "
                "plain response. mechanism_for chooses a mechanism; sf.union combines contexts."
            )
    index_of_group = np.full(len(groups.outward), -1, dtype=np.int64)
    index_of_group[protected] = np.arange(len(protected))
    return protected, index_of_group[groups.group_of]


def assign_codes(
    groups: GroupedContext, protected: list[int], families: Sequence[CodeFamily], word_bits: int
) -> tuple[list[Code], list[int]]:
    """Return the codes, and the index of each protected group's code.

    Groups with the same size, promises and family share a code.
    """
    codes: list[Code] = []
    index_by_key: dict[object, int] = {}
    code_index_of_group = []
    for g, family in zip(protected, families, strict=True):
        size = int(groups.sizes[g])
        promises = groups.effective_promises(g)
        key = (id(family), size, promises)
        if key not in index_by_key:
            index_by_key[key] = len(codes)
            if size > 1:
                codes.append(family(size, promises[0], word_bits))
            else:
                codes.append(ClearCode(1, word_bits=word_bits))
        code_index_of_group.append(index_by_key[key])
    return codes, code_index_of_group


def find_shapes(
    groups: GroupedContext, protected: list[int], codes: list[Code], code_index_of_group: list[int]
) -> list[GroupShape]:
    """Return, for each code, the shape of the groups that use it."""
    counts = Counter(code_index_of_group)
    shapes = []
    for index, code in enumerate(codes):
        inside, outward = groups.effective_promises(protected[code_index_of_group.index(index)])
        shapes.append(GroupShape(code.outputs, code.raised, inside, outward, counts[index]))
    return shapes


def find_levels(shapes: Sequence[GroupShape], word_bits: int) -> tuple[int, list[GroupLevels]]:
    """Return the number of clear words, and the levels for each shape.

    Start from the ideal number of clear words, and decrease it until levels exist for all shapes.

    >>> shapes = [
    ...     GroupShape(3, 1, Fraction(1), Fraction(2)),
    ...     GroupShape(1, 1, Fraction(1), Fraction(1)),
    ... ]
    >>> clear, levels = find_levels(shapes, 12)
    >>> clear
    2170
    >>> levels[0]
    GroupLevels(high=1631, low=601, cover=221)
    """
    N = 1 << word_bits
    if not shapes:
        return N, []
    if any(shape.gain <= 0 for shape in shapes):
        raise NothingToLearn(
            "the promise across groups is too strong compared with the promise inside a group. Use "
            "a plain response instead."
        )
    beta = 1 / (1 + sum(shape.group_count / shape.gain for shape in shapes))
    # Unless clear is a multiple of every gcd(r, b), a group's equation has no solution.
    step = lcm(*(gcd(shape.raised, shape.outputs) for shape in shapes))
    clear = int(N * beta) // step * step
    while clear > 0:
        levels = [_solve_levels(shape, clear) for shape in shapes]
        excess = clear - N
        for shape, level in zip(shapes, levels, strict=True):
            excess += shape.group_count * shape.outputs * level.cover
        if excess <= 0 and all(level.high > max(level.cover, 0) for level in levels):
            _require_contrast(shapes, levels, word_bits)
            return clear, levels
        clear -= max(1, int(excess * beta) // step) * step
    raise _words_too_short_error(word_bits)


def _solve_levels(shape: GroupShape, clear: int) -> GroupLevels:
    """Return levels that satisfy the group's equation exactly and keep both of its promises."""
    b = shape.outputs
    r = shape.raised
    A, _ = shape.odds
    if b == r:  # a single symbol favours every output, and its group has no pair to protect
        cover = _ceil(Fraction(clear, b) / (A - 1))
        return GroupLevels(clear // b + cover, cover, cover)
    high = int(clear * A / (b * shape.gain))
    min_low = _ceil(high / exp_bounds(shape.epsilon_in)[0])
    cover_for_low = Fraction((b - r) * min_low + r * high - clear, b)
    cover = max(_ceil(high / A), _ceil(cover_for_low))
    # r·(high − cover) must equal clear modulo b − r. Lowering high can only reduce the odds.
    g = gcd(r, b)
    modulus = (b - r) // g
    residue = clear // g * pow(r // g, -1, modulus) if modulus > 1 else 0
    high -= (high - cover - residue) % modulus
    low = (clear + b * cover - r * high) // (b - r)
    return GroupLevels(high, low, cover)


def _require_contrast(
    shapes: Sequence[GroupShape], levels: Sequence[GroupLevels], word_bits: int
) -> None:
    """Raise ``NothingToLearn`` if rounding leaves a group's ``high`` no larger than its ``low``."""
    for shape, level in zip(shapes, levels, strict=True):
        if level.high <= level.low and shape.outputs > 1:
            raise _words_too_short_error(word_bits)


def _words_too_short_error(word_bits: int) -> NothingToLearn:
    return NothingToLearn(
        f"{word_bits}-bit words cannot represent the odds of these groups: a report would carry no "
        "information. Use a larger ε, or fewer or smaller groups."
    )


def _ceil(fraction: Fraction) -> int:
    return -(-fraction.numerator // fraction.denominator)
