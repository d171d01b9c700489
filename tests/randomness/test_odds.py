"""Exact ε and rational bounds on e^ε, against Python's decimal module at 200 digits."""

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from sfumato.errors import InvalidContext
from sfumato.randomness import (
    LARGEST_EPSILON,
    epsilon_of_odds,
    exact_number,
    exp_bounds,
    float_below,
    positive_epsilon,
    within_odds,
)

DIGITS = Context(prec=200)
DECIMALS = [
    "1e-18",
    "1e-15",
    "1e-9",
    "0.001",
    "0.01",
    "0.1",
    "0.5",
    "1",
    "2",
    "10",
    "39.999",
    "40",
    "79.9",
    "80",
]
EPSILONS = [Fraction(text) for text in DECIMALS]
EPSILONS += [Fraction(1, 3), Fraction(22, 7), Fraction(10**18 - 1, 10**18), Fraction(2, 10**18 + 1)]
MANY_EPSILONS = EPSILONS + [Fraction(7919 * i % 80_000 + 1, 1000) for i in range(200)]
# Terms of these are exact, so no rounding hides the remainder.
MANY_EPSILONS += [Fraction(1, 2**n) for n in range(1, 150)]


@cache
def _naive_exp(epsilon: Fraction) -> Fraction:
    """Return e^ε to about 200 digits."""
    decimal = DIGITS.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return Fraction(DIGITS.exp(decimal))


def _floor_of_odds(low: int, epsilon: Fraction) -> int:
    """Return ⌊e^ε · low⌋, and check that 200 digits are enough for it."""
    product = _naive_exp(epsilon) * low
    error = Fraction(1, 10**190)
    below = math.floor(product * (1 - error))
    above = math.floor(product * (1 + error))
    assert below == above
    return below


# --- bounds on e^ε --------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 64, 128, 512])
def test_exp_bounds_contain_the_exponential(bits):
    for epsilon in MANY_EPSILONS:
        low, high = exp_bounds(epsilon, bits)
        e = _naive_exp(epsilon)
        error = Fraction(1, 10**150)
        assert low < e * (1 + error), epsilon
        assert high > e * (1 - error), epsilon


@pytest.mark.parametrize("bits", [8, 64, 128, 512])
def test_exp_bounds_are_as_close_as_requested(bits):
    for epsilon in MANY_EPSILONS:
        low, high = exp_bounds(epsilon, bits)
        assert 0 < high - low <= Fraction(1, 2**bits), epsilon


def test_exp_bounds_nest_with_more_bits():
    for epsilon in MANY_EPSILONS:
        bounds = [exp_bounds(epsilon, bits) for bits in (32, 64, 65, 128, 256, 1024)]
        lows, highs = zip(*bounds, strict=True)
        assert list(lows) == sorted(lows), epsilon
        assert list(highs) == sorted(highs, reverse=True), epsilon


def test_exp_bounds_of_zero_are_exactly_one():
    assert exp_bounds(Fraction(0)) == (1, 1)


def test_exp_bounds_rejects_negative_exponents():
    with pytest.raises(ValueError, match="≥ 0"):
        exp_bounds(Fraction(-1, 10))


# --- comparing odds with e^ε ----------------------------------------------------------------------


@pytest.mark.parametrize("low", [1, 2, 7, 1000, 10**6 + 3, 2**32, 2**63, 2**64 - 1, 2**100 + 1])
def test_within_odds_distinguishes_adjacent_integers(low):
    for epsilon in MANY_EPSILONS:
        high = _floor_of_odds(low, epsilon)
        assert within_odds(high, low, epsilon), epsilon
        assert not within_odds(high + 1, low, epsilon), epsilon


def test_within_odds_decides_convergents_of_e():
    """e = [2; 1, 2, 1, 1, 4, 1, 1, 6, …]: convergents lie on both sides of e in turn."""
    quotients = [2] + [2 * (i // 3 + 1) if i % 3 == 1 else 1 for i in range(400)]
    p = 1
    q = 0
    p_before = 0
    q_before = 1
    for i, quotient in enumerate(quotients):
        p, p_before = quotient * p + p_before, p
        q, q_before = quotient * q + q_before, q
        assert within_odds(p, q, Fraction(1)) == (i % 2 == 0), i
    assert q.bit_length() > 1000  # far beyond the bits that the comparison starts with


@pytest.mark.parametrize(
    ("high", "low", "epsilon", "kept"),
    [
        (0, 0, Fraction(1), True),
        (0, 5, Fraction(1), True),
        (1, 0, Fraction(40), False),
        (1, 0, math.inf, True),
        (5, 5, Fraction(0), True),
        (6, 5, Fraction(0), False),
        (4, 5, Fraction(0), True),
        (2**64, 1, math.inf, True),
    ],
)
def test_within_odds_at_the_extremes(high, low, epsilon, kept):
    assert within_odds(high, low, epsilon) is kept


# --- from odds back to ε --------------------------------------------------------------------------


ODDS = [
    (3, 1),
    (2, 1),
    (271828, 100000),
    (1001, 1000),
    (10**18 + 1, 10**18),
    (10**9 + 1, 10**9),
    (2**63 + 1, 2**63),
    (10**300 + 1, 10**300),
    (10**320 + 1, 10**320),
    (2**64, 1),
    (2**64 - 1, 2**64 - 2),
    (2**500, 3),
    (2**2000, 1),
]


@pytest.mark.parametrize(("high", "low"), ODDS, ids=range(len(ODDS)))
def test_epsilon_of_odds_is_the_least_sufficient_float(high, low):
    reported = epsilon_of_odds(high, low)
    assert within_odds(high, low, Fraction(repr(reported)))
    assert not within_odds(high, low, Fraction(repr(math.nextafter(reported, 0))))


def test_epsilon_of_odds_near_one_is_positive():
    assert epsilon_of_odds(10**400 + 1, 10**400) == math.ulp(0.0)


@pytest.mark.parametrize(
    ("high", "low", "epsilon"),
    [(5, 5, 0.0), (4, 5, 0.0), (0, 0, 0.0), (0, 9, 0.0), (1, 0, math.inf)],
)
def test_epsilon_of_odds_at_the_extremes(high, low, epsilon):
    assert epsilon_of_odds(high, low) == epsilon


# --- reading an ε ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (1e-18, Fraction(1, 10**18)),
        (0.30000000000000004, Fraction("0.30000000000000004")),
        ("0.1", Fraction(1, 10)),
        (" 1.5 ", Fraction(3, 2)),
        ("1e-3", Fraction(1, 1000)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float64(2.5), Fraction(5, 2)),
        (np.int64(2), Fraction(2)),
        (np.uint8(3), Fraction(3)),
        (40, Fraction(40)),
    ],
)
def test_exact_number_reads_numbers_as_typed(value, exact):
    for read in (exact_number(value, "epsilon"), positive_epsilon(value)):
        assert read == exact
        assert type(read) is Fraction
        assert type(read.numerator) is int  # a NumPy integer inside would overflow later


@pytest.mark.parametrize(
    "value",
    [math.inf, "inf", "Infinity", Decimal("inf"), np.inf, np.float64(np.inf)],
    ids=lambda value: repr(value),
)
def test_exact_number_reads_infinity(value):
    assert exact_number(value, "epsilon") == math.inf
    assert positive_epsilon(value) == math.inf


def test_zero_is_not_a_positive_epsilon():
    assert exact_number(0, "epsilon") == exact_number("-0.0", "epsilon") == 0
    with pytest.raises(InvalidContext, match="above 0"):
        positive_epsilon(0.0)


BAD = {
    "True": True,
    "NumPy's True": np.True_,
    "None": None,
    "NaN": math.nan,
    "NaN as text": "nan",
    "signalling NaN": Decimal("sNaN"),
    "NumPy's NaN": np.float64("nan"),
    "negative": -1,
    "negative float": -0.5,
    "negative text": "-1",
    "minus infinity": -math.inf,
    "words": "abc",
    "empty text": "",
    "1e-30": 1e-30,
    "1e-30 as text": "1e-30",
    "1e19": 1e19,
    "an endless exponent": "1e999999999999999999999",
    "long text": "1" * 65,
    "very long text": "0." + "1" * 100_000,
    "a long decimal": Decimal("0." + "1" * 70),
    "a list": [1.0],
    "a tuple": (1,),
    "an array": np.array([1.0]),
    "a complex number": 1j,
    "bytes": b"1.0",
    "a type": float,
    "a tiny fraction": Fraction(1, 10**19),
    "a huge integer": 10**1_000_001,
}


@pytest.mark.parametrize("value", BAD.values(), ids=BAD.keys())
def test_invalid_numbers_raise_with_their_name(value):
    with pytest.raises(InvalidContext) as caught:
        exact_number(value, "the third epsilon")
    assert "the third epsilon" in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "value", [41, 40.000001, "1e3", Fraction(40) + Fraction(1, 10**18), 10**18]
)
def test_epsilon_above_forty_raises_with_advice(value):
    assert LARGEST_EPSILON == 40
    assert exact_number(value, "epsilon") > 40
    with pytest.raises(InvalidContext, match="Use inf"):
        positive_epsilon(value)


# --- floats that round a promise down -------------------------------------------------------------


def test_float_below_is_the_largest_such_float():
    fractions = [(3, 10), (1, 3), (2, 3), (1, 10**18), (40, 1), (22, 7)]
    fractions += [(i, 997) for i in range(1, 200)]
    for fraction in fractions:
        epsilon = Fraction(*fraction)
        below = float_below(epsilon)
        assert exact_number(below, "epsilon") <= epsilon, fraction
        assert exact_number(math.nextafter(below, math.inf), "epsilon") > epsilon, fraction


def test_float_below_at_the_extremes():
    assert float_below(Fraction(0)) == 0.0
    assert float_below(math.inf) == math.inf
