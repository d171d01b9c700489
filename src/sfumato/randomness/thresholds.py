"""Turn words into choices, with integer odds that are rounded towards more privacy.

A channel over words of ``B`` bits assigns a whole number of the ``2^B`` words to each output. Where
the formula has odds of ``e^ε : 1``, the integers satisfy ``high ≤ e^ε · low`` exactly, so rounding
can only strengthen the promise. Nothing in this module sees a private value.
"""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import NothingToLearn
from sfumato.foundation.arrays import PerPerson
from sfumato.foundation.elementwise import larger, smaller
from sfumato.randomness.odds import exp_bounds, within_odds

__all__ = ["TwoLevels", "binary_flips", "coin_threshold", "two_level_index", "two_levels"]

_MAX_EPSILON = Fraction(100)  # no two word counts have odds this large: e^100 > 2^144


@dataclass(frozen=True)
class TwoLevels:
    """The number of words for each output: ``high`` for a raised output, ``low`` for any other.

    The ``leftover`` words map to one of the outputs. The numbers satisfy
    ``0 < low < high ≤ e^ε · low`` and ``raised·high + (outputs − raised)·low + leftover = 2^B``.
    """

    high: int
    low: int
    leftover: int


def two_levels(outputs: int, raised: int, epsilon: Fraction, word_bits: int) -> TwoLevels:
    """Return a row that gives ``raised`` of its outputs odds of almost ``e^ε`` over the others.

    Let ``Z = raised·e^ε + outputs − raised``. There are two ways to round ``low = 2^B/Z``, and both
    keep the promise. If low is rounded down, ``high = ⌊e^ε · low⌋``, which gives better odds but up
    to Z leftover words. If low is rounded up, the raised outputs share all remaining words, so
    ``high ≤ 2^B e^ε/Z ≤ e^ε · low`` and there are fewer than ``raised`` leftover words. The result
    is the row with the larger difference ``high − low``.

    >>> two_levels(4, 1, Fraction(1), 12)
    TwoLevels(high=1946, low=716, leftover=2)
    """
    total = 1 << word_bits
    other_count = outputs - raised
    below, above = exp_bounds(epsilon)
    low_down = int(total / (raised * above + other_count))
    low_up = _ceil(total / (raised * below + other_count))
    candidates = [
        (int(below * low_down), low_down),
        ((total - other_count * low_up) // raised, low_up),
    ]
    high, low = max(candidates, key=lambda levels: (levels[1] > 0, levels[0] - levels[1]))
    if high <= low:
        raise _too_short_error(outputs, epsilon, word_bits)
    return TwoLevels(high, low, total - raised * high - other_count * low)


def two_level_index(word: PerPerson, raised: int, high: int, low: int) -> PerPerson:
    """Return the output for each word.

    The first ``raised`` outputs have ``high`` words each; the others have ``low`` words each.

    >>> [two_level_index(word, 2, 3, 1) for word in range(8)]
    [0, 0, 0, 1, 1, 1, 2, 3]
    """
    if raised * high == 2**64:  # `end` would overflow, and no word is beyond it
        return word & 0 if raised == 1 else word // high
    end = raised * high
    index = smaller(word, end)
    index //= high  # equals `raised` for all words beyond `end`
    other_index = larger(word, end)
    other_index -= end
    other_index //= max(low, 1)  # 0 for all words before `end`
    index += other_index
    return index


def coin_threshold(total: int, epsilon: Fraction) -> int:
    """Return how many of ``total`` words mean heads: the largest ``t ≤ e^ε · (total − t)``.

    >>> coin_threshold(1 << 12, Fraction(1))
    2994
    """
    below, _ = exp_bounds(epsilon)
    t = int(total * below / (1 + below))
    if 2 * t <= total:
        raise _too_short_error(2, epsilon, total.bit_length() - 1)
    return t


def binary_flips(a: Fraction | float, b: Fraction | float, word_bits: int) -> tuple[int, int]:
    """Return the number of words for which symbol 0 reports 1, and for which symbol 1 reports 0.

    They are ``n01 = ⌈N (e^a − 1)/(e^{a+b} − 1)⌉`` and ``n10 = ⌈N (e^b − 1)/(e^{a+b} − 1)⌉``, with
    a = E[0,1] > 0, b = E[1,0] > 0 and N = 2^B (Theorem 2 of Acharya et al., 2020). Both are
    increased together until the ratios of the two rows satisfy the promise exactly.

    >>> binary_flips(Fraction(1), Fraction(1), 12)
    (1102, 1102)
    """
    total = 1 << word_bits
    a = a if isinstance(a, float) else min(a, _MAX_EPSILON)
    b = b if isinstance(b, float) else min(b, _MAX_EPSILON)
    n01 = _flips(total, a, b)
    n10 = _flips(total, b, a)
    while not (within_odds(total - n01, n10, a) and within_odds(total - n10, n01, b)):
        n01 += 1
        n10 += 1
    if n01 + n10 >= total:
        raise _too_short_error(2, min(a, b), word_bits)
    return n01, n10


def _flips(total: int, a: Fraction | float, b: Fraction | float) -> int:
    """Return ``⌈N (e^a − 1)/(e^{a+b} − 1)⌉``, from an upper bound on the fraction."""
    if isinstance(b, float):
        return 0  # the other symbol has no promise, so this one need not flip
    if isinstance(a, float):
        return _ceil(total / exp_bounds(b)[0])
    return _ceil(total * (exp_bounds(a)[1] - 1) / (exp_bounds(a + b)[0] - 1))


def _ceil(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)


def _too_short_error(outputs: int, epsilon: Fraction | float, word_bits: int) -> NothingToLearn:
    return NothingToLearn(
        f"{word_bits}-bit words cannot represent the odds of {outputs} outputs at "
        f"ε = {float(epsilon):g}: a report would carry no information. Use a larger ε or a smaller "
        "domain."
    )
