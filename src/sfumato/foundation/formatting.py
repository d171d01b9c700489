"""Format numbers and untrusted text for people: on pages, in plans and on the command line.

Bounds are rounded up, so no text overstates a promise.
"""

import math
import unicodedata
from collections.abc import Sequence

_MAX_EXPONENT = 600.0  # above this ε, e^ε is written as a power of ten

_FLOAT_ERROR = 1e-9  # ignore an excess this small when rounding up

_MAX_LABEL_LENGTH = 40  # in a sentence

# Unicode categories: C contains control, format (including bidirectional), surrogate, private-use
# and unassigned characters; Zl and Zp contain the line and paragraph separators.
_UNSAFE_CATEGORIES = ("C", "Zl", "Zp")


def format_count(number: int) -> str:
    """Format an integer with thousands separators.

    >>> format_count(43750)
    '43,750'
    """
    return f"{number:,}"


def plural(count: int, noun: str) -> str:
    """Return a count and its noun, with an ``s`` unless the count is one.

    >>> plural(1, "report"), plural(2000, "report")
    ('1 report', '2,000 reports')
    """
    ending = "" if count == 1 else "s"
    return f"{format_count(count)} {noun}{ending}"


def format_number(number: float | None, digits: int = 3) -> str:
    """Format a number with ``digits`` significant digits. From 1,000 up, round to an integer.

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
    return f"{number:.{digits}g}"


def format_cell(cell: float | str | None) -> str:
    """Format a table cell: text unchanged, numbers with four significant digits.

    >>> [format_cell(cell) for cell in (43750, 0.12345678, None, "park")]
    ['43,750', '0.1235', '–', 'park']
    """
    return cell if isinstance(cell, str) else format_number(cell, digits=4)


def align_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a table as lines of text with right-aligned columns.

    >>> align_table([("people", "error"), ("1,000", "0.2")])
    ['people  error', ' 1,000    0.2']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.rjust, row, widths)) for row in rows]


def format_factor(number: float | None) -> str:
    """Format a factor, such as "1.5 ×".

    >>> format_factor(1.5), format_factor(None)
    ('1.5 ×', '–')
    """
    if number is None:
        return "–"
    return f"{format_number(number)} ×"


def format_percent(share: float) -> str:
    """Format a share as a percentage with up to ten significant digits.

    >>> format_percent(0.95)
    '95%'
    """
    return f"{100 * share:.10g}%"


def format_share(share: float, places: int) -> str:
    """Format a share as a percentage with ``places`` decimal places.

    A share that rounds to zero has no minus sign.

    >>> format_share(0.12345, 1), format_share(-0.000001, 2)
    ('12.3%', '0.00%')
    """
    text = f"{100 * share:.{places}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return f"{text}%"


def format_gap(gap: float) -> str:
    """Format the relative gap between a risk and its lower bound as a percentage.

    >>> format_gap(0.0312), format_gap(3e-9), format_gap(40.0), format_gap(math.inf)
    ('3.12%', 'below 0.0001%', '4,000%', 'unknown')
    """
    if not math.isfinite(gap):
        return "unknown"
    if gap < 1e-6:
        return "below 0.0001%"
    percent = 100 * gap
    return f"{percent:.3g}%" if gap < 1 else f"{percent:,.0f}%"


def format_upper_bound(bound: float, digits: int = 3) -> str:
    """Format a bound with ``digits`` significant digits, never rounded down.

    >>> format_upper_bound(0.03221), format_upper_bound(0.03221, digits=2)
    ('0.0323', '0.033')
    >>> format_upper_bound(12345)
    '12,400'
    """
    if bound <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(bound)) + 1 - digits)
    return f"{math.ceil(bound / unit - _FLOAT_ERROR) * unit:,.10g}"


def format_epsilon(epsilon: float) -> str:
    """Format an ε with up to four significant digits, marked ``≈`` if it was rounded.

    >>> format_epsilon(1.0), format_epsilon(0.6931471805599453), format_epsilon(math.inf)
    ('1', '≈ 0.6931', '∞')
    """
    if math.isinf(epsilon):
        return "∞"
    text = f"{epsilon:.4g}"
    return text if float(text) == epsilon else f"≈ {text}"


def format_odds_factor(epsilon: float) -> str:
    """Format e^ε, the largest factor by which a report can change the odds.

    The factor is rounded up to about three significant digits.

    >>> [format_odds_factor(epsilon) for epsilon in (1.0, 0.001, 0.0, 40.0)]
    ['2.72', '1.0011', '1', '2.36 × 10^17']
    >>> format_odds_factor(1000.0)  # too large for a float
    '10^435'
    """
    if epsilon > _MAX_EXPONENT:
        return f"10^{math.ceil(epsilon / math.log(10))}"
    factor = math.exp(epsilon)
    if factor == 1:
        return "1"
    exponent = math.floor(math.log10(factor))
    if exponent >= 6:
        mantissa = math.ceil(factor / 10 ** (exponent - 2) - _FLOAT_ERROR) / 100
        return f"{mantissa:g} × 10^{exponent}"
    places = 2 - exponent
    if factor < 2:  # show two significant digits of the excess over 1
        places = 1 - math.floor(math.log10(factor - 1))
    rounded = math.ceil(factor * 10.0**places - _FLOAT_ERROR) / 10.0**places
    if places <= 0:
        return f"{rounded:,.0f}"
    return f"{rounded:.{places}f}".rstrip("0").rstrip(".")


# --- untrusted text for a terminal: it must not move the cursor, or hide or reverse a line --------


def printable(text: str) -> str:
    r"""Return ``text`` on one line, with every control or format character escaped.

    >>> print(printable("Lunch\nCertified: \x1b[8mε = 0.1"))
    Lunch\nCertified: \x1b[8mε = 0.1
    """
    return "".join(map(_escape, text))


def shorten(text: str, width: int) -> str:
    """Cut out the middle of a text that is longer than ``width``.

    >>> shorten("a very long label", 9)
    'a ve…abel'
    """
    if len(text) <= width:
        return text
    tail_width = (width - 1) // 2
    head_width = width - 1 - tail_width
    return f"{text[:head_width]}…{text[len(text) - tail_width :]}"


def format_label(label: str | int) -> str:
    """Format a label for a sentence: quoted, on one line, and shortened if it is very long.

    >>> format_label("café"), format_label(42)
    ('“café”', '42')
    """
    if isinstance(label, int):
        return str(label)
    return f"“{shorten(printable(label), _MAX_LABEL_LENGTH)}”"


def printable_lines(text: str) -> str:
    """Return ``text`` with every control or format character escaped, except newlines."""
    return "\n".join(map(printable, text.split("\n")))


def _escape(character: str) -> str:
    if unicodedata.category(character).startswith(_UNSAFE_CATEGORIES):
        return character.encode("unicode_escape").decode("ascii")
    return character
