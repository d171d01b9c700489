"""Values that stand for a missing answer."""

from decimal import Decimal

import numpy as np

_TYPES_WITH_NAN = (float, np.floating, np.datetime64, np.timedelta64)
# The markers of pandas and of NumPy's masked arrays; do not import these modules for them.
_MISSING_TYPES = ("NAType", "NaTType", "MaskedConstant")


def is_missing_value(value: object) -> bool:
    """Return whether a value is missing: ``None``, empty text, NaN, NaT, NA, or a masked entry.

    >>> [is_missing_value(value) for value in (None, "", float("nan"), np.datetime64("NaT"), " ")]
    [True, True, True, True, False]
    """
    if value is None or isinstance(value, str):
        return not value
    if isinstance(value, _TYPES_WITH_NAN):
        return bool(value != value)
    if isinstance(value, Decimal):
        return value.is_nan()
    return type(value).__name__ in _MISSING_TYPES


def is_missing_cell(cell: object) -> bool:
    """Return whether a cell of a table is missing: a missing value, or blank text."""
    return cell.isspace() or not cell if isinstance(cell, str) else is_missing_value(cell)
