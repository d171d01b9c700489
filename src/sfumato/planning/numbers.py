"""Numbers as plans write them."""

import math

__all__ = ["percent", "short", "times"]


def short(number: float | None) -> str:
    """Three digits; whole numbers from a thousand on.

    >>> short(0.012345), short(12345.6), short(math.inf), short(None)
    ('0.0123', '12,346', '∞', '–')
    """
    if number is None:
        return "–"
    if math.isinf(number):
        return "∞"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def times(number: float | None) -> str:
    """A factor.

    >>> times(1.5), times(None)
    ('1.5 ×', '–')
    """
    return "–" if number is None else f"{short(number)} ×"


def percent(share: float) -> str:
    """A share in per cent, in all its digits.

    >>> percent(0.95)
    '95 %'
    """
    return f"{100 * share:.10g} %"
