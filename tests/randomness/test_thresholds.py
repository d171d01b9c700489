"""Integer odds over a fixed word: the guarantees of the docstrings, exactly, over a grid."""

import itertools
import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise

import pytest

from sfumato.errors import NothingToLearn
from sfumato.randomness import binary_flips, coin_threshold, two_levels, within_odds

DIGITS = Context(prec=200)
DECIMALS = [
    "0.01",
    "0.1",
    "0.25",
    "0.5",
    "1",
    "1.5",
    "2",
    "3",
    "4",
    "8",
    "11.5",
    "20",
    "39.9",
    "40",
]
EPSILONS = [Fraction(text) for text in DECIMALS]
WORD_BITS = [8, 9, 12, 16, 24, 31, 32, 48, 53, 63, 64]
SHAPES = [
    (2, 1),
    (3, 1),
    (4, 1),
    (4, 2),
    (7, 3),
    (16, 8),
    (100, 1),
    (100, 27),
    (256, 128),
    (5, 4),
    (3, 3),
]
INFINITE = math.inf


@cache
def _naive_exp(epsilon: Fraction) -> Fraction:
    decimal = DIGITS.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return Fraction(DIGITS.exp(decimal))


def _naive_candidates(
    outputs: int, raised: int, epsilon: Fraction, word_bits: int
) -> list[tuple[int, int]]:
    """Return both roundings of 2^B/Z, with e to 200 digits, if their levels differ."""
    total = 2**word_bits
    others = outputs - raised
    e = _naive_exp(epsilon)
    exact = total / (raised * e + others)
    down = math.floor(exact)
    up = math.ceil(exact)
    pairs = [(math.floor(e * down), down), ((total - others * up) // raised, up)]
    return [(high, low) for high, low in pairs if high > low > 0]


# --- two levels -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("outputs", "raised"), SHAPES)
def test_two_levels_keep_their_guarantees_with_most_contrast(outputs, raised):
    for word_bits, epsilon in itertools.product(WORD_BITS, EPSILONS):
        candidates = _naive_candidates(outputs, raised, epsilon, word_bits)
        if not candidates:
            with pytest.raises(NothingToLearn, match="larger ε or a smaller domain"):
                two_levels(outputs, raised, epsilon, word_bits)
            continue
        levels = two_levels(outputs, raised, epsilon, word_bits)
        assert 0 < levels.low < levels.high
        assert within_odds(levels.high, levels.low, epsilon)
        assert levels.leftover >= 0
        words = raised * levels.high + (outputs - raised) * levels.low
        assert words + levels.leftover == 2**word_bits
        assert levels.high - levels.low == max(high - low for high, low in candidates), epsilon


@pytest.mark.parametrize(("outputs", "raised"), SHAPES)
def test_high_level_is_the_largest_that_fits(outputs, raised):
    for epsilon in EPSILONS:
        levels = two_levels(outputs, raised, epsilon, 64)
        fits = raised * (levels.high + 1) + (outputs - raised) * levels.low <= 2**64
        assert not (fits and within_odds(levels.high + 1, levels.low, epsilon))


@pytest.mark.parametrize(("outputs", "raised"), SHAPES)
def test_two_levels_leave_few_words_over(outputs, raised):
    """Fewer than Z = r·e + K − r, plus a word per raised output for rounding ``high``."""
    for epsilon in EPSILONS:
        weight = raised * _naive_exp(epsilon) + outputs - raised
        assert two_levels(outputs, raised, epsilon, 64).leftover < weight + raised


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**12), Fraction(1, 10**18)])
def test_epsilon_too_small_for_the_word_raises(epsilon):
    with pytest.raises(NothingToLearn):
        two_levels(4, 1, epsilon, 32)


def test_domain_too_large_for_the_word_raises():
    with pytest.raises(NothingToLearn):
        two_levels(300, 1, Fraction(1), 8)


# --- one coin -------------------------------------------------------------------------------------


TOTALS = [2**bits for bits in WORD_BITS] + [3, 5, 1000, 2**53 + 1, 2**64 - 1]


@pytest.mark.parametrize("total", TOTALS)
def test_coin_threshold_is_the_largest_that_keeps_the_odds(total):
    for epsilon in EPSILONS:
        e = _naive_exp(epsilon)
        largest = math.floor(total * e / (1 + e))
        if 2 * largest <= total:
            with pytest.raises(NothingToLearn):
                coin_threshold(total, epsilon)
            continue
        t = coin_threshold(total, epsilon)
        assert within_odds(t, total - t, epsilon)
        assert not within_odds(t + 1, total - t - 1, epsilon)
        assert 2 * t > total


@pytest.mark.parametrize("total", [2**12, 2**64])
def test_coin_threshold_grows_with_epsilon(total):
    thresholds = [coin_threshold(total, epsilon) for epsilon in EPSILONS]
    assert all(t <= t2 for t, t2 in pairwise(thresholds))


# --- two symbols ----------------------------------------------------------------------------------


def _keeps(n01: int, n10: int, a: Fraction | float, b: Fraction | float, total: int) -> bool:
    """Return whether the rows [N − n01, n01] and [n10, N − n10] keep both promises."""
    row0 = [total - n01, n01]
    row1 = [n10, total - n10]
    forth = all(within_odds(q, q2, a) for q, q2 in zip(row0, row1, strict=True))
    return forth and all(within_odds(q2, q, b) for q, q2 in zip(row0, row1, strict=True))


@pytest.mark.parametrize("word_bits", WORD_BITS)
def test_binary_flips_keep_both_promises(word_bits):
    total = 2**word_bits
    for a in [*EPSILONS, INFINITE]:
        for b in [*EPSILONS, INFINITE]:
            try:
                n01, n10 = binary_flips(a, b, word_bits)
            except NothingToLearn:
                assert min(a, b) < Fraction(16 * 256, total)  # the word is too short for ε
                continue
            assert n01 >= 0
            assert n10 >= 0
            assert n01 + n10 < total
            assert _keeps(n01, n10, a, b, total), (a, b)


@pytest.mark.parametrize("word_bits", [12, 32, 64])
def test_fewer_binary_flips_break_a_promise(word_bits):
    total = 2**word_bits
    for a in EPSILONS:
        for b in [*EPSILONS, INFINITE]:
            n01, n10 = binary_flips(a, b, word_bits)
            assert not _keeps(n01 - 1, n10 - 1, a, b, total) if b != INFINITE else n01 == 0
            if b == INFINITE:
                assert not _keeps(0, n10 - 1, a, b, total)


@pytest.mark.parametrize("word_bits", [12, 32, 64])
def test_binary_flips_are_the_optimum_rounded_up(word_bits):
    for a in EPSILONS:
        for b in EPSILONS:
            n01, n10 = binary_flips(a, b, word_bits)
            both = _naive_exp(a + b) - 1
            ideal01 = 2**word_bits * (_naive_exp(a) - 1) / both
            ideal10 = 2**word_bits * (_naive_exp(b) - 1) / both
            assert math.ceil(ideal01) <= n01 <= math.ceil(ideal01) + 1
            assert math.ceil(ideal10) <= n10 <= math.ceil(ideal10) + 1


@pytest.mark.parametrize("b", EPSILONS)
@pytest.mark.parametrize("word_bits", [12, 64])
def test_one_infinite_promise_gives_mangats_response(b, word_bits):
    flips = math.ceil(2**word_bits / _naive_exp(b))
    assert binary_flips(INFINITE, b, word_bits) == (flips, 0)
    assert binary_flips(b, INFINITE, word_bits) == (0, flips)


def test_two_infinite_promises_give_the_identity():
    assert binary_flips(INFINITE, INFINITE, 64) == (0, 0)


def test_equal_promises_give_equal_flips():
    for epsilon in EPSILONS:
        n01, n10 = binary_flips(epsilon, epsilon, 64)
        assert n01 == n10


def test_binary_flips_raise_if_the_word_is_too_short():
    with pytest.raises(NothingToLearn, match="8-bit"):
        binary_flips(Fraction(1, 1000), Fraction(1, 1000), 8)
