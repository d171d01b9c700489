"""Numbers in the cells of a table, for bins."""

import math
import re
from decimal import Decimal

import numpy as np

__all__ = ["AMBIGUOUS", "DECIMAL", "cell_number", "decimal_style"]

AMBIGUOUS = "ambiguous"
"""The style of 1.500, which may mean one and a half or fifteen hundred."""

DECIMAL = "decimal"
"""The style of 1.5 and 0.500, whose point can only be a decimal point."""

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")


def cell_number(cell: object) -> float | None:
    """Return the number in a cell, or ``None`` if it does not contain a finite one.

    >>> [cell_number(cell) for cell in ("2.5", " 7 ", 3, "inf", "1_000", True)]
    [2.5, 7.0, 3.0, None, None, None]
    """
    if isinstance(cell, str):
        text = cell.strip()
        number = float(text) if _NUMBER.fullmatch(text) else math.nan
    elif isinstance(cell, bool | np.bool_):
        return None
    elif isinstance(cell, np.floating):
        number = float(str(cell))  # a 32-bit 0.7 is just below 0.7
    elif isinstance(cell, int | float | Decimal | np.integer):
        number = _as_float(cell)
    else:
        return None
    return number if math.isfinite(number) else None


def _as_float(number: int | float | Decimal | np.integer) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer too large for a float
        return math.inf


def decimal_style(cell: object) -> str | None:
    """Return how a number in text uses its point, or ``None`` if it has none.

    >>> [decimal_style(cell) for cell in ("1.500", "1.5", "0.500", "1500.000", "1500", 1.5)]
    ['ambiguous', 'decimal', 'decimal', 'decimal', None, None]
    """
    if not isinstance(cell, str) or "." not in cell:
        return None
    return AMBIGUOUS if _THOUSANDS.fullmatch(cell.strip()) else DECIMAL
