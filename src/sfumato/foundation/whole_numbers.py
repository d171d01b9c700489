"""Whole numbers in tables: text such as 65 or 65.0, and floats such as 65.0.

A number with a leading zero is a code, such as a postcode: 01234 and 1234 are different answers.
"""

import re
from decimal import Decimal

WHOLE_FLOAT_LIMIT = 2.0**53
"""Floats below it, in absolute value, determine an integer."""

WHOLE_NUMBER = r"-?(0|[1-9][0-9]{0,15})"
"""A regular expression for whole numbers of at most 16 digits, for Python and for Arrow."""

ZERO_DECIMALS = r"\.0{1,2}"
"""A regular expression for decimals without a value. "1.000" may also mean one thousand."""

_WHOLE_TEXT = re.compile(rf"({WHOLE_NUMBER})({ZERO_DECIMALS})?")


def parse_whole(text: str) -> int | None:
    """Return the whole number that a text spells, or ``None``.

    >>> [parse_whole(text) for text in ("65", "-1.0", "065", "1.000", "٣")]
    [65, -1, None, None, None]
    """
    match = _WHOLE_TEXT.fullmatch(text)
    return None if match is None else int(match[1])


def is_whole(number: float | Decimal) -> bool:
    """Return whether a float or decimal is a whole number that it determines exactly.

    >>> is_whole(65.0), is_whole(65.5), is_whole(2.0**53), is_whole(float("inf"))
    (True, False, False, False)
    """
    is_exact = -WHOLE_FLOAT_LIMIT < number < WHOLE_FLOAT_LIMIT
    return is_exact and number == int(number)
