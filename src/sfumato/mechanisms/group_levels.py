"""Integers for groups of symbols that take cover in each other's reports.

Group j has a code with b outputs, of which a symbol favours r, and two promises: ε_in inside the group, ε_out from
the group to everybody else. Of the N = 2^B words a member of the group puts ``high`` on each output it favours and
``low`` on each other one; everybody else puts ``cover`` on each of them, whatever group they are in. What a member
has more there than the others is the same for every group, ``clear``; a symbol that owes nothing puts it on a
report of its own:

    r·high + (b − r)·low − b·cover = clear,        Σ_j b_j·cover_j + clear + leftover = N

    high ≤ e^ε_in · low,   high ≤ e^ε_out · cover
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from sfumato.errors import NothingToLearn
from sfumato.foundation.canonical import Json
from sfumato.foundation.records import parse_count, require_fields
from sfumato.randomness.odds import exp_bounds

__all__ = ["GroupLevels", "GroupShape", "group_levels"]


@dataclass(frozen=True)
class GroupShape:
    """A code's (b, r) and a group's promises; ``count`` groups are alike."""

    outputs: int
    raised: int
    inside: Fraction
    outward: Fraction
    count: int = 1

    @property
    def odds(self) -> tuple[Fraction, Fraction]:
        """``A = e^ε_out``, never too large, and ``B = e^{ε_out − ε_in}``."""
        A, slack = exp_bounds(self.outward)[0], self.outward - self.inside
        return A, exp_bounds(slack)[0] if slack >= 0 else 1 / exp_bounds(-slack)[1]

    @property
    def gain(self) -> Fraction:
        """``g = f A + (1 − f) B − 1``, f = r/b: what a member has more on its code's outputs, in units of cover."""
        A, B = self.odds
        f = Fraction(self.raised, self.outputs)
        return f * A + (1 - f) * B - 1


@dataclass(frozen=True)
class GroupLevels:
    """The words of one group: on favoured outputs, on others of its code, and what everybody else puts there."""

    high: int
    low: int
    cover: int

    def record(self) -> Json:
        """Return the integers as plain data."""
        return {"high": str(self.high), "low": str(self.low), "cover": str(self.cover)}

    @classmethod
    def of_record(cls, record: object) -> "GroupLevels":
        """Read the integers."""
        fields = require_fields(record, "levels", ("high", "low", "cover"))
        high, low, cover = (parse_count(fields[name]) for name in ("high", "low", "cover"))
        return cls(high, low, cover)


def group_levels(shapes: Sequence[GroupShape], word_bits: int) -> tuple[int, list[GroupLevels]]:
    """``clear``, as large as it can be, and the levels of each shape of group.

    >>> group_levels([GroupShape(3, 1, Fraction(1), Fraction(2)), GroupShape(1, 1, Fraction(1), Fraction(1))], 12)
    (2170, [GroupLevels(high=1631, low=601, cover=221), GroupLevels(high=3433, low=1263, cover=1263)])
    """
    N = 1 << word_bits
    if not shapes:
        return N, []
    if any(shape.gain <= 0 for shape in shapes):
        raise NothingToLearn(
            "a promise across groups is too strong for the promise inside one: use a plain response."
        )
    beta = 1 / (1 + sum(shape.count / shape.gain for shape in shapes))
    # A multiple of every gcd(r, b), so that each group's equation has solutions.
    step = lcm(*(gcd(shape.raised, shape.outputs) for shape in shapes))
    clear = int(N * beta) // step * step
    while clear > 0:
        levels = [_levels(shape, clear) for shape in shapes]
        excess = (
            clear
            + sum(
                s.count * s.outputs * level.cover for s, level in zip(shapes, levels, strict=True)
            )
            - N
        )
        if excess <= 0 and all(level.high > level.cover and level.high > 0 for level in levels):
            _demand_contrast(shapes, levels, word_bits)
            return clear, levels
        clear -= max(1, int(excess * beta) // step) * step
    raise _too_short(word_bits)


def _levels(shape: GroupShape, clear: int) -> GroupLevels:
    """Levels that solve the group's equation exactly and keep both promises, whatever rounding does."""
    b, r = shape.outputs, shape.raised
    A, _ = shape.odds
    if b == r:  # one symbol: nothing to hide inside, and no output that it does not favour
        cover = _ceil(Fraction(clear, b) / (A - 1))
        return GroupLevels(clear // b + cover, cover, cover)
    high = int(clear * A / (b * shape.gain))
    least_low = _ceil(high / exp_bounds(shape.inside)[0])
    cover = max(_ceil(high / A), _ceil(Fraction((b - r) * least_low + r * high - clear, b)))
    # r·(high − cover) must equal clear modulo b − r. To lower high can only make odds smaller.
    g = gcd(r, b)
    modulus = (b - r) // g
    wanted = clear // g * pow(r // g, -1, modulus) if modulus > 1 else 0
    high -= (high - cover - wanted) % modulus
    low = (clear + b * cover - r * high) // (b - r)
    return GroupLevels(high, low, cover)


def _demand_contrast(
    shapes: Sequence[GroupShape], levels: Sequence[GroupLevels], word_bits: int
) -> None:
    if any(
        level.high <= level.low and shape.outputs > 1
        for shape, level in zip(shapes, levels, strict=True)
    ):
        raise _too_short(word_bits)


def _too_short(word_bits: int) -> NothingToLearn:
    return NothingToLearn(
        f"{word_bits}-bit words cannot hold the odds of these groups: a report would carry nothing. "
        "Use larger ε, or fewer and smaller groups."
    )


def _ceil(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)
