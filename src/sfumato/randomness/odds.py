"""Exact values of ε, and rational bounds on e^ε.

An ε is a ``Fraction`` or ``math.inf``. A float stands for the decimal it prints as: ``0.1`` is
exactly one tenth. ``e^ε`` is irrational for every rational ε ≠ 0, so it is only ever bounded.
Probabilities are computed from the bound that gives more privacy. Checks refine the bounds until
they decide the comparison.
"""

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real

import numpy as np

from sfumato.errors import InvalidContext
from sfumato.foundation.numpy_values import require_unmasked, unwrap_scalar

__all__ = [
    "LARGEST_EPSILON",
    "Epsilon",
    "epsilon_of_odds",
    "exact_number",
    "exp_bounds",
    "float_above",
    "float_below",
    "positive_epsilon",
    "within_odds",
]

Epsilon = Fraction | float
"""An exact ε: a ``Fraction``, or ``math.inf`` (the only float allowed)."""

LARGEST_EPSILON = 40
"""The largest finite ε that a context can promise. Above it, 64-bit words are too short."""

_MIN_NUMBER = Fraction(1, 10**18)  # the smallest positive number; its inverse is the largest
_MAX_CHARACTERS = 64
_START_BITS = 128  # the initial precision of bounds on e^ε


def exact_number(value: object, name: str) -> Epsilon:
    """Return ``value`` as an exact, non-negative number, or ``inf``.

    A float of any width is read as the decimal it prints as, and text as a decimal or a fraction
    ``p/q``. ``name`` is used in error messages.

    >>> exact_number(0.1, "epsilon"), exact_number("0.25", "epsilon")
    (Fraction(1, 10), Fraction(1, 4))
    >>> exact_number(np.float32(0.1), "epsilon")
    Fraction(1, 10)
    """
    require_unmasked(value, name)
    value = unwrap_scalar(value)
    if isinstance(value, bool) or not isinstance(value, Real | Decimal | str):
        raise InvalidContext(
            f"{name} must be a number; got {type(value).__name__}. Pass e.g. 1.0 or '1.0'."
        )
    if isinstance(value, Rational):
        exact = Fraction(int(value.numerator), int(value.denominator))
        _require_in_range(exact, name)
        return exact
    if isinstance(value, str) and "/" in value and len(value) <= _MAX_CHARACTERS:
        return _parse_fraction(value, name)
    prints_itself = isinstance(value, str | Decimal | np.floating)
    text = str(value) if prints_itself else str(float(value))
    try:
        decimal = Decimal(text) if len(text) <= _MAX_CHARACTERS else None
    except InvalidOperation:
        decimal = None
    if decimal is None:
        raise InvalidContext(
            f"{name} must be a decimal number or a fraction p/q of at most {_MAX_CHARACTERS} "
            "characters, or inf."
        )
    if decimal.is_nan():
        raise InvalidContext(
            f"{name} must be a number; got NaN. Pass inf where nothing is promised."
        )
    if decimal == Decimal("Infinity"):
        return math.inf
    if decimal == Decimal("-Infinity"):
        raise InvalidContext(f"{name} must not be negative. Pass a positive number, or inf.")
    # Avoid converting numbers far out of range: the fraction would be enormous.
    is_in_range = abs(decimal.adjusted()) < 30 or not decimal
    exact = Fraction(decimal) if is_in_range else Fraction(10) ** 30
    _require_in_range(-exact if decimal < 0 < exact else exact, name)
    return exact


def positive_epsilon(value: object, name: str = "epsilon") -> Epsilon:
    """Return ``value`` as an exact ε that a context can promise: in (0, 40], or ``inf``.

    >>> positive_epsilon(1.5)
    Fraction(3, 2)
    """
    exact = exact_number(value, name)
    if exact == 0:
        raise InvalidContext(f"{name} must be above 0; at 0, nothing can be learned.")
    if LARGEST_EPSILON < exact < math.inf:
        raise InvalidContext(
            f"{name} must be at most {LARGEST_EPSILON}, or inf; got {float(exact):g}, which is "
            "too large for probabilities over 64-bit words. Use inf (no promise) or a smaller ε."
        )
    return exact


def float_below(epsilon: Epsilon) -> float:
    """Return the largest float that, read as the decimal it prints as, is at most ``epsilon``.

    >>> float_below(Fraction(3, 10)), float_below(Fraction(2, 3)), float_below(math.inf)
    (0.3, 0.6666666666666666, inf)
    """
    candidate = float(epsilon)
    while candidate < math.inf and Fraction(repr(candidate)) > epsilon:
        candidate = math.nextafter(candidate, 0)
    return candidate


def float_above(epsilon: Epsilon) -> float:
    """Return the smallest float that, read as the decimal it prints as, is at least ``epsilon``.

    >>> float_above(Fraction(3, 10)), float_above(Fraction(2, 3))
    (0.3, 0.6666666666666667)
    """
    candidate = float(epsilon)
    while candidate < math.inf and Fraction(repr(candidate)) < epsilon:
        candidate = math.nextafter(candidate, math.inf)
    return candidate


def exp_bounds(epsilon: Fraction, bits: int = _START_BITS) -> tuple[Fraction, Fraction]:
    """Return rationals ``low ≤ e^ε ≤ high`` with ``high − low`` about ``2^−bits``.

    The Taylor series is summed twice in integer arithmetic: once with the terms ``ε^i / i!``
    rounded down, and once with them rounded up. As soon as ``ε/(i+1) ≤ ½``, the remainder of the
    series is at most twice the next term.

    >>> low, high = exp_bounds(Fraction(1))
    >>> digits = Fraction(271828182845904523536028747135, 10**29)
    >>> digits < low < high < digits + Fraction(1, 10**29), high - low < Fraction(1, 2**120)
    (True, True)
    """
    if epsilon < 0:
        raise ValueError("exp_bounds needs ε ≥ 0.")
    return _exp_bounds(epsilon, bits)


@lru_cache(maxsize=4096)
def _exp_bounds(epsilon: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    p = epsilon.numerator
    q = epsilon.denominator
    # Rounding errors grow by a factor of at most e^ε < 4^ε.
    scale_bits = bits + 2 * int(epsilon) + 16
    low_term = high_term = low_sum = high_sum = 1 << scale_bits
    i = 0
    while not (2 * p <= q * (i + 1) and high_term <= 1):
        i += 1
        low_term = low_term * p // (q * i)
        high_term = -(-high_term * p // (q * i))
        low_sum += low_term
        high_sum += high_term
        if high_term == 0:
            break
    return Fraction(low_sum, 1 << scale_bits), Fraction(high_sum + 2 * high_term, 1 << scale_bits)


def within_odds(high: int, low: int, epsilon: Epsilon) -> bool:
    """Return whether ``high ≤ e^ε · low``, exactly, for integers ``high, low ≥ 0``.

    The bounds on e^ε are refined until they decide the comparison. This terminates because e^ε is
    irrational unless ε = 0.

    >>> within_odds(271828, 100000, Fraction(1)), within_odds(271829, 100000, Fraction(1))
    (True, False)
    """
    if isinstance(epsilon, float) or high <= low:
        return True
    if low == 0 or epsilon == 0:
        return False
    power = int(epsilon * Fraction(1442, 1000))  # e > 2^1.442, so e^ε is at least 2^power
    if power >= high.bit_length() or high <= low << power:
        return True
    bits = _START_BITS
    while True:
        below, above = exp_bounds(epsilon, bits)
        if high * below.denominator <= below.numerator * low:
            return True
        if high * above.denominator > above.numerator * low:
            return False
        bits *= 2


def epsilon_of_odds(high: int, low: int) -> float:
    """Return ``log(high/low)``, or 0 if it is negative, rounded up.

    The decimal that the result prints as is not too small either.

    >>> epsilon_of_odds(3, 1) >= math.log(3), epsilon_of_odds(5, 5), epsilon_of_odds(1, 0)
    (True, 0.0, inf)
    """
    if high <= low:
        return 0.0
    if low == 0:
        return math.inf
    # log1p is accurate for odds near 1, so the loop below needs at most a few dozen steps.
    fits_in_float = high < low << 900
    guess = (
        math.log1p(Fraction(high - low, low)) if fits_in_float else math.log(high) - math.log(low)
    )
    guess *= 1 - 2.0**-48
    while not within_odds(high, low, Fraction(repr(guess))):
        guess = math.nextafter(guess, math.inf)
    return guess


def _parse_fraction(text: str, name: str) -> Fraction:
    """Parse a fraction ``p/q`` of two non-negative integers."""
    p, _, q = text.partition("/")
    if not (p.isascii() and p.isdigit() and q.isascii() and q.isdigit() and int(q)):
        raise InvalidContext(f"{name} must be a decimal number, a fraction p/q, or inf.")
    exact = Fraction(int(p), int(q))
    _require_in_range(exact, name)
    return exact


def _require_in_range(number: Fraction, name: str) -> None:
    if number < 0:
        raise InvalidContext(f"{name} must not be negative. Pass a positive number, or inf.")
    if 0 < number < _MIN_NUMBER or number > 1 / _MIN_NUMBER:
        raise InvalidContext(f"{name} must be 0, inf, or between 1e-18 and 1e18.")
