"""So many people are needed, whatever the mechanism: Lemma 13 of Acharya, Canonne and Tyagi with its constants.

Let the signs Z of a hard family be fair coins. An estimate with a mean total variation of at most a, for every member,
tells much about them: at least ``I`` bits. A report tells at most ``χ²(Q|P)`` bits. So ``n ≥ I/χ²``.
Derivation: docs/bounds.md.
"""

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

from sfumato.contexts import Context
from sfumato.mechanisms import Mechanism
from sfumato.planning.chi_square import chi_square
from sfumato.planning.hard_families import HardFamily, families_of
from sfumato.planning.upper_bounds import checked_error

__all__ = ["bits_told", "lower_bound_people", "lower_bound_people_for", "people_needed"]

_WIDTHS = (
    2.5,
    3,
    3.5,
    4,
    4.5,
    5,
    6,
    7,
    8,
    9,
    10,
    12,
    16,
)  # distances, in errors, at which a family is tried
_STEPS = 100  # of a ternary search: each shortens the interval by a third


def bits_told(family: HardFamily, error: float) -> float:
    """The bits that an estimate with a mean total variation of at most ``error`` tells about the signs, at least.

    Read the estimate as signs. With w_i the separations, e_i the chance that sign i is wrong and h the binary
    entropy, ``Σ_i w_i e_i ≤ a``, and the bits are at least the least ``Σ_i (1 − h(e_i))`` under this; by duality

        max over λ ≥ 0 of   Σ_i (1 − log₂(1 + 2^{−λ w_i})) − λ a

    For d equal separations that is ``d (1 − h(a/(d w)))``. Every λ gives a valid bound.

    >>> from sfumato import Uniform
    >>> from sfumato.planning.hard_families import block_family
    >>> round(bits_told(block_family(Uniform(8, 1)).at("0.4"), 0.1), 4)  # 4 (1 − h(1/4))
    0.7549
    """
    return _bits(_counted(family), checked_error(error))


def people_needed(family: HardFamily, error: float, chi: Fraction) -> int:
    """``n ≥ I/χ²``: the people needed for ``error`` on the family, if a report has that χ² on it."""
    return _people(bits_told(family, error), float(chi))


def lower_bound_people(context: Context, error: float) -> int:
    """With fewer people, no mechanism and no estimate has a mean total variation of ``error`` for every p.

    Every family of the context is tried, at several distances, with the χ² that privacy allows. It grows as the
    paper's sample complexity does. Its constant is far from the best: mechanisms need hundreds of times as many.

    >>> from sfumato import Uniform
    >>> lower_bound_people(Uniform(1000, 1), 0.05)
    1380824
    """
    return _most(context, error, lambda family: family.limit)


def lower_bound_people_for(mechanism: Mechanism, error: float) -> int:
    """With fewer people, no estimate from this mechanism's reports has a mean total variation of ``error`` for every p.

    As ``lower_bound_people``, with the χ² that the mechanism has; for up to 64 symbols.

    >>> from sfumato import PlainResponse, Uniform
    >>> mechanism = PlainResponse(Uniform(20, 1))
    >>> lower_bound_people_for(mechanism, 0.01) >= lower_bound_people(mechanism.context, 0.01)
    True
    """
    return _most(mechanism.context, error, lambda family: chi_square(mechanism, family))


def _most(context: Context, error: float, chi_of: Callable[[HardFamily], Fraction]) -> int:
    """The largest number of people that any family asks for, at any of the distances; χ² grows as their square."""
    a, most = checked_error(error), 1
    for family in families_of(context):
        counts, chi, widest = _counted(family), float(chi_of(family)), float(family.distance)
        for ratio in {min(width * a / widest, 1.0) for width in _WIDTHS}:
            bits = _bits({w * ratio: count for w, count in counts.items()}, a)
            most = max(most, _people(bits, chi * ratio**2))
    return most


def _people(bits: float, chi: float) -> int:
    """``I/χ²``, rounded up, but not for the last digits of a float."""
    return max(1, math.ceil(bits / chi * (1 - 1e-9))) if chi else 1


def _counted(family: HardFamily) -> dict[float, int]:
    """How many signs have each separation."""
    return dict(Counter(map(float, family.separations)))


def _bits(counts: dict[float, int], a: float) -> float:
    """The bound of ``bits_told`` at the best λ."""
    if 2 * a >= math.fsum(w * count for w, count in counts.items()):
        return 0.0

    def bound(rate: float) -> float:
        told = (count * (1 - math.log2(1 + 2 ** (-rate * w))) for w, count in counts.items())
        return math.fsum(told) - rate * a

    # Each term of the sum is at most 1, so beyond d/a the bound is negative.
    return max(0.0, bound(_peak(bound, sum(counts.values()) / a)))


def _peak(concave: Callable[[float], float], high: float) -> float:
    """Where a concave function on [0, high] is largest, or nearly."""
    low = 0.0
    for _ in range(_STEPS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if concave(left) < concave(right):
            low = left
        else:
            high = right
    return (low + high) / 2
