"""Families of distributions that are hard to tell apart through a private channel: what lower bounds rest on.

A family has a centre p_0 and d directions. Each sign vector z in {−1, +1}^d gives a distribution

    p_z = p_0 + Σ_i z_i γ_i (1_{plus_i} − 1_{minus_i})

All numbers are exact fractions. A family is built as wide as it can be, and drawn closer with ``at(distance)``.
Derivations: docs/bounds.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sfumato.contexts import Blocks, Context, HighLow, Uniform
from sfumato.errors import InvalidContext, InvalidSymbols, NoClosedForm
from sfumato.foundation.arrays import Symbols
from sfumato.randomness import Epsilon, exact_number, exp_bounds

__all__ = [
    "HardFamily",
    "block_family",
    "families_of",
    "free_family",
    "high_low_family",
    "sensitive_family",
]


@dataclass(frozen=True)
class HardFamily:
    """A centre, directions and steps; and how much privacy lets a report say about the signs.

    ``separations``: an estimate p̂ can be read as signs ẑ so that ``TV(p̂, p_z) ≥ Σ_i separation_i [ẑ_i ≠ z_i]``.
    ``limit``: no mechanism that keeps the context has a larger χ² on the family (``sfumato.planning.chi_square``).
    ``paper_limit``: the same as the paper has it, its constants corrected; ``inf`` where it says nothing.
    """

    distance: Fraction
    centre: tuple[Fraction, ...]
    plus: Symbols
    minus: Symbols
    steps: tuple[Fraction, ...]
    separations: tuple[Fraction, ...]
    limit: Fraction
    paper_limit: Fraction | float

    @property
    def dimension(self) -> int:
        """The number of signs, d."""
        return len(self.steps)

    def at(self, distance: object) -> "HardFamily":
        """The family drawn closer to its centre: α is ``distance``, at most what it is now."""
        alpha = exact_number(distance, "distance")
        if not 0 < alpha <= self.distance:
            raise InvalidContext(
                f"distance must be above 0 and at most {float(self.distance):.4g}, or a probability would be negative; "
                f"found {float(alpha):.4g}."
            )
        ratio = Fraction(alpha) / self.distance
        return replace(
            self,
            distance=Fraction(alpha),
            steps=_scaled(self.steps, ratio),
            separations=_scaled(self.separations, ratio),
            limit=self.limit * ratio**2,
            paper_limit=self.paper_limit * ratio**2,
        )

    def signs(self, number: int) -> Symbols:
        """The sign vector of a number in 0 … 2^d − 1, bit by bit: to go through a family, or to draw from it."""
        if not 0 <= number < 1 << self.dimension:
            raise InvalidSymbols(
                f"a family of {self.dimension} signs has members 0 … 2^{self.dimension} − 1."
            )
        return np.array([1 - 2 * (number >> i & 1) for i in range(self.dimension)], dtype=np.int64)

    def member(self, signs: Sequence[int] | Symbols) -> list[Fraction]:
        """p_z, exactly."""
        z = np.asarray(signs)
        if z.shape != (self.dimension,) or not np.isin(z, (-1, 1)).all():
            raise InvalidSymbols(
                f"signs must be {self.dimension} entries, each −1 or 1; found shape {z.shape}."
            )
        p = list(self.centre)
        for sign, step, up, down in zip(
            z.tolist(), self.steps, self.plus.tolist(), self.minus.tolist(), strict=True
        ):
            p[up] += sign * step
            p[down] -= sign * step
        return p


def high_low_family(context: HighLow) -> HardFamily:
    """The paper's family for high-low contexts: each of the t free symbols moves against the first sensitive one.

        p_z(first sensitive) = 1/k − α Σ_i z_i/t,     p_z(free i) = 1/k + α z_i/t

    (The paper prints a plus in the first; the sum would not be 1.) Every member is at least α/2 from uniform in
    total variation. α is at most 1/k. The limit is Claim 1 of the paper with the best constant for one sensitive
    symbol, which Mangat's response meets:

        χ² ≤ (k α²/t) (η + η²/(1 + t/e)),     η = 1 − 1/e

    >>> family = high_low_family(HighLow(4, [0], 1)).at("0.1")
    >>> [str(entry) for entry in family.member([1, -1, 1])]
    ['13/60', '17/60', '13/60', '17/60']
    """
    k, s = context.size, context.sensitive.size
    t = k - s
    if s == 0 or t == 0:
        raise InvalidContext(f"this family needs sensitive and free symbols; found {s} and {t}.")
    alpha, shrink = Fraction(1, k), _inverse_odds(context.exact_inside)
    eta = 1 - shrink
    return HardFamily(
        distance=alpha,
        centre=(Fraction(1, k),) * k,
        plus=np.flatnonzero(~context.is_sensitive),
        minus=np.full(t, context.sensitive[0]),
        steps=(alpha / t,) * t,
        separations=(alpha / (2 * t),) * t,
        limit=k * alpha**2 / t * (eta + eta**2 / (1 + t * shrink)),
        paper_limit=k * alpha**2 / t**2 * (1 / shrink - 1 + eta * (k - 1)) if shrink else math.inf,
    )


def block_family(context: Uniform | Blocks) -> HardFamily:
    """The paper's family for blocks: inside every block symbols move in pairs, one up and one down.

        p_z = 1/k ± z_i 2 k_j α/Σ k_j²      on the i-th pair of block j

    In a block of odd size the last symbol stays, and k_j here counts those that move. Every member has total
    variation α from uniform. The paper's limit is ``χ² ≤ 2kα²(e − 1)²/Σ k_j²``, by the block inequality and with the
    constant put right. The best one is, for even sizes and e ≤ 3, ``χ² ≤ 8kα²/(c² Σ k_j²)``.

    >>> family = block_family(Blocks([0, 0, 1, 1, 1, 1], 1)).at("0.1")
    >>> [str(entry) for entry in family.member([1, 1, -1])]
    ['14/75', '11/75', '31/150', '19/150', '19/150', '31/150']
    """
    if isinstance(context, Uniform):
        return _pairs(context.size, [(np.arange(context.size), context.exact_inside)])
    blocks = np.split(np.argsort(context.block_of, kind="stable"), np.cumsum(context.sizes)[:-1])
    return _pairs(context.size, list(zip(blocks, context.exact_epsilons, strict=True)))


def sensitive_family(context: HighLow) -> HardFamily:
    """Everybody is sensitive: the block family on the sensitive symbols, among which a context is plain ε-LDP.

    >>> sensitive_family(HighLow(5, [0, 1, 2, 3], 1)).dimension
    2
    """
    return _pairs(context.size, [(context.sensitive, context.exact_inside)])


def free_family(context: HighLow) -> HardFamily:
    """Nobody is sensitive, and still everybody must give cover: the t free symbols move in pairs among themselves.

        p_z = 1/t ± z_i 2α/t   on the i-th pair,     0 on sensitive symbols      (t even)

    Every free row lies above a sensitive one over e. Only the rest of it, ``η = 1 − 1/e``, can tell free symbols
    apart: ``χ² ≤ 4α²η``. Not in the paper; unlike the paper's family it is there for every α up to ½.

    >>> family = free_family(HighLow(5, [4], 1)).at("0.1")
    >>> bool(family.limit >= 0.04 * (1 - math.exp(-1)))
    True
    """
    free = np.flatnonzero(~context.is_sensitive)
    family = _pairs(context.size, [(free, math.inf)])
    eta = 1 - (_inverse_odds(context.exact_inside) if context.sensitive.size else 0)
    limit = family.steps[0] ** 2 * free.size * 2 * family.dimension * eta
    return replace(family, limit=limit, paper_limit=math.inf)


def families_of(context: Context) -> tuple[HardFamily, ...]:
    """The families that speak about a context, as wide as they can be; none if no two symbols share a promise.

    >>> [family.dimension for family in families_of(HighLow(10, [0, 1, 2, 3], 1))]
    [6, 2, 3]
    """
    if isinstance(context, Uniform | Blocks):
        largest = context.size if isinstance(context, Uniform) else int(context.sizes.max())
        return (block_family(context),) if largest > 1 else ()
    if not isinstance(context, HighLow):
        raise NoClosedForm(
            f"hard families are known for Uniform, HighLow and Blocks; found {type(context).__name__}."
        )
    s = context.sensitive.size
    t = context.size - s
    wanted = ((high_low_family, s and t), (sensitive_family, s > 1), (free_family, t > 1))
    return tuple(build(context) for build, exists in wanted if exists)


def _pairs(size: int, groups: Sequence[tuple[Symbols, Epsilon]]) -> HardFamily:
    """Pairs inside groups of symbols, around the uniform distribution on all of them: γ_j = 2 m_j α/Σ m_j².

    m_j symbols of group j move, all but the last of an odd group. One report of group j adds at most ``gain_j`` times
    what it says of the group's total, so ``χ² ≤ k Σ_j γ_j² gain_j k_j``.
    """
    groups = [(symbols, epsilon) for symbols, epsilon in groups if symbols.size]
    k = sum(symbols.size for symbols, _ in groups)
    moving = [symbols.size // 2 * 2 for symbols, _ in groups]
    if not any(moving):
        raise InvalidContext(
            "this family needs two symbols in one group; every group has a single one."
        )
    squares = sum(m * m for m in moving)
    alpha = Fraction(squares, 2 * k * max(moving))
    steps = [2 * m * alpha / squares for m in moving]
    centre = [Fraction(0)] * size
    for symbols, _ in groups:
        for x in symbols.tolist():
            centre[x] = Fraction(1, k)
    each = tuple(step for step, m in zip(steps, moving, strict=True) for _ in range(m // 2))
    limits = [
        step**2 * _gain(symbols.size, epsilon) * symbols.size
        for step, (symbols, epsilon) in zip(steps, groups, strict=True)
    ]
    largest = max((epsilon for _, epsilon in groups), default=math.inf)
    shrink = _inverse_odds(largest)
    return HardFamily(
        distance=alpha,
        centre=tuple(centre),
        plus=np.concatenate(
            [symbols[:m:2] for (symbols, _), m in zip(groups, moving, strict=True)]
        ),
        minus=np.concatenate(
            [symbols[1:m:2] for (symbols, _), m in zip(groups, moving, strict=True)]
        ),
        steps=each,
        separations=each,
        limit=k * sum(limits, Fraction(0)),
        paper_limit=2 * k * alpha**2 * (1 / shrink - 1) ** 2 / squares if shrink else math.inf,
    )


def _gain(size: int, epsilon: Epsilon) -> Fraction:
    """The largest ``Σ_i (v_up − v_down)²/(Σ_x v_x)²`` over vectors v of k_j entries with ratios of at most e.

    It is met by ``a`` pairs (e, 1) and ones elsewhere: ``a (e − 1)²/(k_j + a (e − 1))²``, best next to
    ``a = k_j/(e − 1)``.
    """
    pairs, shrink = size // 2, _inverse_odds(epsilon)
    if pairs == 0:
        return Fraction(0)
    if shrink == 0:
        return Fraction(1)
    rise = 1 / shrink - 1
    best = {min(max(math.floor(size / rise) + i, 1), pairs) for i in (0, 1)}
    return max(a * rise**2 / (size + a * rise) ** 2 for a in best)


def _inverse_odds(epsilon: Epsilon) -> Fraction:
    """``1/e^ε``, a little too small if anything: limits only grow by it. 0 at ε = inf."""
    return 1 / exp_bounds(epsilon)[1] if isinstance(epsilon, Fraction) else Fraction(0)


def _scaled(numbers: tuple[Fraction, ...], ratio: Fraction) -> tuple[Fraction, ...]:
    """Each number times the ratio; equal ones are multiplied once, for families of many directions."""
    scaled = {number: number * ratio for number in set(numbers)}
    return tuple(scaled[number] for number in numbers)
