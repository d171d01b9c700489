"""Numbers as people read them. Bounds are rounded up, so that no page promises more than the context does."""

import math

__all__ = ["count_text", "epsilon_text", "factor_text", "percent_text"]

_LARGEST_EXPONENT = 600.0
_HAIR = 1e-9  # what floating point may add to a number that is round


def count_text(number: int) -> str:
    """A whole number with its thousands apart.

    >>> count_text(43750)
    '43,750'
    """
    return f"{number:,}"


def epsilon_text(epsilon: float) -> str:
    """An ε in at most four digits, ``≈`` where that is not all of it.

    >>> epsilon_text(1.0), epsilon_text(0.6931471805599453), epsilon_text(math.inf)
    ('1', '≈ 0.6931', '∞')
    """
    if math.isinf(epsilon):
        return "∞"
    short = f"{epsilon:.4g}"
    return short if float(short) == epsilon else f"≈ {short}"


def factor_text(epsilon: float) -> str:
    """``e^ε``, rounded up to about three digits: the most by which odds can be multiplied.

    >>> factor_text(1.0), factor_text(0.001), factor_text(0.0), factor_text(40.0)
    ('2.72', '1.0011', '1', '2.36 × 10^17')
    >>> factor_text(1000.0)  # more than a float can hold
    '10^435'
    """
    if epsilon > _LARGEST_EXPONENT:
        return f"10^{math.ceil(epsilon / math.log(10))}"
    factor = math.exp(epsilon)
    if factor == 1:
        return "1"
    exponent = math.floor(math.log10(factor))
    if exponent >= 6:
        return f"{math.ceil(factor / 10 ** (exponent - 2) - _HAIR) / 100:g} × 10^{exponent}"
    places = (1 - math.floor(math.log10(factor - 1))) if factor < 2 else 2 - exponent
    rounded = math.ceil(factor * 10.0**places - _HAIR) / 10.0**places
    return (
        f"{rounded:.{max(places, 0)}f}".rstrip("0").rstrip(".") if places > 0 else f"{rounded:,.0f}"
    )


def percent_text(share: float, places: int) -> str:
    r"""A share in per cent; a value that rounds to nothing has no sign.

    >>> percent_text(0.12345, 1), percent_text(-0.000001, 2)
    ('12.3\xa0%', '0.00\xa0%')
    """
    text = f"{100 * share:.{places}f}"
    return f"{text.lstrip('-') if float(text) == 0 else text}\u00a0%"
