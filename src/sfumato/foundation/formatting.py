"""Format numbers for people: in plans, comparisons and on the command line."""

import math

__all__ = ["format_factor", "format_number", "format_percent", "format_upper_bound"]

_ROUNDING = 1e-9  # floating point may add this much to a number that is round


def format_number(number: float | None) -> str:
    """Return three significant digits, or a whole number from a thousand on.

    >>> format_number(0.012345), format_number(12345.6), format_number(math.inf)
    ('0.0123', '12,346', '∞')
    >>> format_number(None)
    '–'
    """
    if number is None:
        return "–"
    if math.isinf(number):
        return "∞"
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def format_factor(number: float | None) -> str:
    """Return a factor, such as "1.5 ×".

    >>> format_factor(1.5), format_factor(None)
    ('1.5 ×', '–')
    """
    if number is None:
        return "–"
    return f"{format_number(number)} ×"


def format_percent(share: float) -> str:
    """Return a share in per cent, with all its digits.

    >>> format_percent(0.95)
    '95 %'
    """
    return f"{100 * share:.10g} %"


def format_upper_bound(bound: float, digits: int = 3) -> str:
    """Return a bound with ``digits`` significant digits, never rounded down.

    >>> format_upper_bound(0.03221), format_upper_bound(0.03221, digits=2)
    ('0.0323', '0.033')
    >>> format_upper_bound(12345)
    '12,400'
    """
    if bound <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(bound)) + 1 - digits)
    return f"{math.ceil(bound / unit - _ROUNDING) * unit:,.10g}"
