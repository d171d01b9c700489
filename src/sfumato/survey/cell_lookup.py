"""Find the symbol for a cell of a table.

Tables store the same answer in different ways: the age 65 may be 65, 65.0, "65" or "65.0". A cell
stands for the first of its spellings that is a label, the most literal first. Nothing is guessed:
a cell without such a label is unknown.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np

from sfumato.domains import Domain, Label
from sfumato.survey.answer_columns import AnswerColumns

__all__ = [
    "MISSING",
    "UNKNOWN",
    "CellLookup",
    "date_text",
    "describe_cell",
    "is_missing_cell",
    "spellings",
]

UNKNOWN = -1
"""The code for a cell that is not an answer."""

MISSING = -2
"""The code for a cell without an answer."""

# At most two zeros: "1.000" may also mean one thousand.
_WHOLE_NUMBER = re.compile(r"(-?[0-9]{1,16})(\.0{1,2})?")
_MISSING_TYPES = ("NAType", "NaTType")  # pandas' own markers
_MAX_EXACT_FLOAT = 2.0**53
_DATE_TEXTS = {"day": "%Y-%m-%d", "month": "%Y-%m"}


class CellLookup:
    """Finds the symbols for the cells of a table.

    >>> ages = CellLookup(Domain([18, 65], other="unknown"), AnswerColumns("age"))
    >>> [ages.find(cell) for cell in (65, 65.0, "65.0", "sixty-five", "", None)]
    [1, 1, 1, -1, -2, -2]
    """

    def __init__(self, domain: Domain, columns: AnswerColumns) -> None:
        self._domain = domain
        self._columns = columns
        self._missing_codes = frozenset(columns.missing_codes)
        self._find_answer: Callable[[Any], int] = self._find_label
        if columns.bins:
            self._find_answer = self._find_bin
        elif columns.date is not None:
            self._find_answer = self._find_date

    def find(self, cell: object) -> int:
        """Return the symbol for a cell, or ``MISSING`` or ``UNKNOWN``."""
        if is_missing_cell(cell):
            is_blank_label = isinstance(cell, str) and self._domain.find_label(cell) >= 0
            return self._domain.find_label(cell) if is_blank_label else MISSING
        if self._missing_codes and not self._missing_codes.isdisjoint(spellings(cell)):
            return MISSING
        return self._find_answer(cell)

    def _find_label(self, cell: object) -> int:
        for label in spellings(cell):
            symbol = self._domain.find_label(label)
            if symbol >= 0:
                return symbol
        return UNKNOWN

    def _find_bin(self, cell: object) -> int:
        number = _as_number(cell)
        if number is None:
            return self._find_label(cell)  # the column may already contain the intervals
        return bisect_right(self._columns.bins, number)

    def _find_date(self, cell: object) -> int:
        moment = _as_moment(cell, self._columns.date_format)
        if moment is None:
            return self._find_label(cell)
        if self._columns.date == "weekday":
            return moment.weekday()
        if self._columns.date == "hour":
            return moment.hour
        return self._domain.find_label(moment.strftime(_DATE_TEXTS[str(self._columns.date)]))


def date_text(cell: object, columns: AnswerColumns) -> str | None:
    """Return the day or month in a cell as a label, or ``None`` if it does not contain a date."""
    moment = _as_moment(cell, columns.date_format)
    return None if moment is None else moment.strftime(_DATE_TEXTS[str(columns.date)])


def is_missing_cell(cell: object) -> bool:
    """Return whether a cell is empty: nothing, blank text, or not a number."""
    if cell is None:
        return True
    if isinstance(cell, str):
        return not cell.strip()
    if isinstance(cell, float | np.floating):
        return math.isnan(cell)
    if isinstance(cell, Decimal):
        return cell.is_nan()
    return type(cell).__name__ in _MISSING_TYPES


def spellings(cell: object) -> list[Label]:
    """Return the labels that a cell may stand for, the most literal first.

    >>> spellings("65.0"), spellings(65.0), spellings(2.5), spellings(True)
    (['65.0', 65, '65'], [65, '65', '65.0'], ['2.5'], ['True', 'true', 'TRUE'])
    """
    if isinstance(cell, str):
        match = _WHOLE_NUMBER.fullmatch(cell)
        if match is None:
            return [cell]
        number = int(match[1])
        return [cell, number, str(number)]
    if isinstance(cell, bool | np.bool_):
        text = str(bool(cell))
        return [text, text.lower(), text.upper()]
    if isinstance(cell, int | np.integer):
        return [int(cell), str(int(cell))]
    if isinstance(cell, float | np.floating | Decimal):
        is_exact = -_MAX_EXACT_FLOAT < cell < _MAX_EXACT_FLOAT
        if is_exact and cell == int(cell):
            return [int(cell), str(int(cell)), str(cell)]
        return [str(cell)]
    if isinstance(cell, date | time):  # a datetime is a date
        return [cell.isoformat()]
    return []


def describe_cell(cell: object) -> str:
    """Describe what a cell looks like, for messages that must not contain the cell itself.

    >>> [describe_cell(cell) for cell in ("65.5", 65, "2026-11-18", "park", True)]
    ['decimal numbers', 'whole numbers', 'dates', 'text', 'true or false']
    """
    if isinstance(cell, bool | np.bool_):
        return "true or false"
    number = _as_number(cell)
    if number is not None:
        return "whole numbers" if _looks_whole(cell) else "decimal numbers"
    if _as_moment(cell, None) is not None:
        return "dates"
    return "text"


def _looks_whole(cell: object) -> bool:
    if isinstance(cell, str):
        return re.fullmatch(r"[+-]?[0-9]+", cell.strip()) is not None
    return isinstance(cell, int | np.integer)


def _as_number(cell: object) -> float | None:
    """Return the number in a cell, or ``None`` if it does not contain one."""
    if isinstance(cell, bool | np.bool_) or not isinstance(
        cell, str | int | float | Decimal | np.integer | np.floating
    ):
        return None
    if isinstance(cell, str) and "_" in cell:  # Python would read 1_000 as a number
        return None
    try:
        number = float(cell)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _as_moment(cell: object, date_format: str | None) -> datetime | None:
    """Return the date and time in a cell, as on the wall clock; ``None`` if it is not a date."""
    if isinstance(cell, datetime):
        return cell
    if isinstance(cell, date):
        return datetime.combine(cell, time())
    if isinstance(cell, np.datetime64):
        return _as_moment(cell.astype("datetime64[us]").item(), None)
    if not isinstance(cell, str):
        return None
    text = cell.strip()
    try:
        if date_format is not None:
            return datetime.strptime(text, date_format)
        # Without a separator, an integer such as 20131231 would count as a date.
        return datetime.fromisoformat(text) if "-" in text else None
    except ValueError:
        return None
