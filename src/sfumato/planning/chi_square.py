"""How far apart a mechanism keeps the members of a hard family, exactly; and what covers what.

Lemma 13 of Acharya, Canonne and Tyagi (2019) turns χ² into a number of people: ``sfumato.planning.fewest_people``.
"""

from fractions import Fraction

from sfumato.errors import ContextMismatch, InvalidContext
from sfumato.mechanisms import Mechanism
from sfumato.planning.hard_families import HardFamily
from sfumato.randomness import exp_bounds

__all__ = ["LARGEST_EXACT", "chi_square", "uncovered"]

LARGEST_EXACT = 64
"""χ² is worked out up to this many symbols."""


def chi_square(mechanism: Mechanism, family: HardFamily) -> Fraction:
    """``χ²(Q|P)``: the mean over z of the χ² distance of the reports under p_z from those under the centre.

        χ²(Q|P) = E_z Σ_y (q_z(y) − q_0(y))²/q_0(y) = Σ_i γ_i² Σ_y (Q(y|plus_i) − Q(y|minus_i))²/q_0(y)

    Signs are independent with mean 0, so the mixed terms vanish, and no member need be visited. The integers of the
    sampler go in, a fraction comes out. A mechanism that keeps the context of the family stays within
    ``family.limit``.

    >>> from sfumato import HighLow, HighLowResponse, RandomizedCode
    >>> from sfumato.planning.hard_families import high_low_family
    >>> context = HighLow(4, [0], 1)
    >>> family = high_low_family(context)
    >>> chi = chi_square(HighLowResponse(context, RandomizedCode), family)
    >>> chi <= family.limit, float(chi / family.limit)
    (True, 1.0)
    """
    k = mechanism.inputs
    if k != len(family.centre):
        raise ContextMismatch(
            f"the family is over {len(family.centre)} symbols, the mechanism over {k}."
        )
    if k > LARGEST_EXACT:
        raise InvalidContext(
            f"χ² is worked out up to {LARGEST_EXACT} symbols; this mechanism has {k}."
        )
    rows = [mechanism.integer_row(x) for x in range(k)]
    scale = _common_denominator(family.centre)
    weights = [int(entry * scale) for entry in family.centre]
    pairs = list(zip(family.steps, family.plus.tolist(), family.minus.tolist(), strict=True))
    total = Fraction(0)
    for y in range(mechanism.outputs):
        q = sum(weight * row[y] for weight, row in zip(weights, rows, strict=True))
        if q:
            moved = sum(step**2 * (rows[up][y] - rows[down][y]) ** 2 for step, up, down in pairs)
            total += moved * scale / q
    return total / mechanism.denominator


def uncovered(mechanism: Mechanism, x: int, x2: int) -> Fraction:
    """By how much the subset lemma fails for x and x2, at the worst set of reports; 0 where it holds for all sets.

    The lemma (in the proof of Claim 1): ``Q(M|x2) ≤ 1 − (1 − Q(M|x))/e`` for every set M of reports, e = exp(E[x, x2]).
    The worst M holds the reports on which row x2 lies above row x over e, so what is missing is
    ``Σ_y max(Q(y|x)/e − Q(y|x2), 0)``: the part of x's cover that x2 does not give.

    >>> from sfumato import PlainResponse, Uniform
    >>> uncovered(PlainResponse(Uniform(3, 1)), 0, 1)
    Fraction(0, 1)
    """
    epsilon = mechanism.context.exact_epsilon(x, x2)
    if not isinstance(epsilon, Fraction):
        return Fraction(0)
    shrink = 1 / exp_bounds(epsilon)[1]
    covered = zip(mechanism.integer_row(x), mechanism.integer_row(x2), strict=True)
    missing = sum(
        (max(shrink * first - second, Fraction(0)) for first, second in covered), Fraction(0)
    )
    return missing / mechanism.denominator


def _common_denominator(numbers: tuple[Fraction, ...]) -> int:
    return max(
        number.denominator for number in numbers
    )  # a centre has one positive entry, repeated, and zeros
