"""Find the symbol for a cell of a table.

Tables store the same answer in different ways: the age 65 may be 65, 65.0, "65" or "65.0". A cell
stands for the first of its spellings that is a label, the most literal first. Nothing is guessed:
a cell without such a label is unknown.
"""

import re
from bisect import bisect_right
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from sfumato.domains import Domain, Label
from sfumato.foundation.missing_values import is_missing_cell
from sfumato.foundation.whole_numbers import WHOLE_FLOAT_LIMIT, is_whole, parse_whole
from sfumato.survey.answer_columns import AnswerColumns
from sfumato.survey.cell_date import date_part, from_datetime64
from sfumato.survey.cell_number import cell_number, decimal_style

__all__ = [
    "MISSING",
    "UNKNOWN",
    "CellLookup",
    "cell_text",
    "describe_cell",
    "is_boolean_cell",
    "spellings",
]

UNKNOWN = -1
"""The code for a cell that is not an answer."""

MISSING = -2
"""The code for a cell without an answer."""

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_LEADING_ZERO = re.compile(r"[+-]?0[0-9].*", re.DOTALL)

# Python and pandas write True, JSON writes true, and spreadsheets and R write TRUE.
_BOOLEAN_SPELLINGS = (("True", "true", "TRUE"), ("False", "false", "FALSE"))
_SPELLINGS_OF_BOOLEAN = {text: texts for texts in _BOOLEAN_SPELLINGS for text in texts}


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
        self._decimal_styles: set[str] = set()
        self._find_answer: Callable[[Any], int] = self._find_label
        if columns.bins:
            self._find_answer = self._find_bin
        elif columns.date is not None:
            self._find_answer = self._find_date

    @property
    def decimal_styles(self) -> frozenset[str]:
        """How the numbers that were put into bins so far use their point."""
        return frozenset(self._decimal_styles)

    def find(self, cell: object) -> int:
        """Return the symbol for a cell, or ``MISSING`` or ``UNKNOWN``."""
        if is_missing_cell(cell):
            is_blank_label = isinstance(cell, str) and self._domain.find_label(cell) >= 0
            return self._domain.find_label(cell) if is_blank_label else MISSING
        if self._missing_codes and not self._missing_codes.isdisjoint(spellings(cell)):
            return MISSING
        return self._find_answer(cell)

    def _find_label(self, cell: object) -> int:
        symbol = self._domain.find_label(cell)  # nearly all cells are labels as they are
        if symbol >= 0:
            return symbol
        for label in spellings(cell):
            symbol = self._domain.find_label(label)
            if symbol >= 0:
                return symbol
        return UNKNOWN

    def _find_bin(self, cell: object) -> int:
        number = cell_number(cell)
        if number is None:
            return self._find_label(cell)  # the column may already contain the intervals
        style = decimal_style(cell)
        if style is not None:
            self._decimal_styles.add(style)
        return bisect_right(self._columns.bins, number)

    def _find_date(self, cell: object) -> int:
        if self._columns.date is None:
            return UNKNOWN
        part = date_part(cell, self._columns.date, self._columns.date_format)
        if part is None:
            return self._find_label(cell)  # the column may already contain the parts
        return self._domain.find_label(part) if isinstance(part, str) else part


def spellings(cell: object) -> list[Label]:
    """Return the labels that a cell may stand for, the most literal first.

    >>> spellings("65.0"), spellings(65.0), spellings(2.5), spellings(True)
    (['65.0', 65, '65'], [65, '65', '65.0'], ['2.5'], ['True', 'true', 'TRUE'])
    >>> spellings("065"), spellings("true")
    (['065'], ['true', 'True', 'TRUE'])

    An integer from 2^53 on is text: no label can be such an integer.

    >>> spellings(2**53), spellings("9007199254740993.0")
    (['9007199254740992'], ['9007199254740993.0', '9007199254740993'])
    """
    if isinstance(cell, str):
        return [cell, *_other_spellings(cell)]
    if isinstance(cell, bool | np.bool_):
        return list(_SPELLINGS_OF_BOOLEAN[str(bool(cell))])
    if isinstance(cell, int | np.integer):
        return _whole_spellings(int(cell))
    if isinstance(cell, float | np.floating | Decimal):
        return [*_whole_spellings(int(cell)), str(cell)] if _is_whole(cell) else [str(cell)]
    if isinstance(cell, np.datetime64):
        return spellings(from_datetime64(cell))
    if isinstance(cell, date | time):  # a datetime is a date
        return [cell.isoformat()]
    return [str(cell)] if isinstance(cell, timedelta) else []


def _other_spellings(text: str) -> list[Label]:
    """Return what a text may stand for, apart from itself."""
    number = parse_whole(text)
    if number is not None:
        return [label for label in _whole_spellings(number) if label != text]
    return [other for other in _SPELLINGS_OF_BOOLEAN.get(text, ()) if other != text]


def _whole_spellings(number: int) -> list[Label]:
    return [number, str(number)] if abs(number) < WHOLE_FLOAT_LIMIT else [str(number)]


def is_boolean_cell(cell: object) -> bool:
    """Return whether a cell is true or false, or text that spells one of them."""
    return isinstance(cell, bool | np.bool_) or cell in _SPELLINGS_OF_BOOLEAN


def cell_text(cell: object) -> str:
    """Return the most literal text for a cell.

    >>> cell_text("01"), cell_text(1), cell_text(1.0), cell_text("1.0")
    ('01', '1', '1', '1.0')
    """
    return next(label for label in spellings(cell) if isinstance(label, str))


def describe_cell(cell: object) -> str:
    """Describe what a cell looks like, for messages that must not contain the cell itself.

    >>> [describe_cell(cell) for cell in ("65.5", "65.0", "065", "2026-11-18", "park", True)]
    ['decimal numbers', 'whole numbers', 'numbers with leading zeros', 'dates', 'text',
     'true or false']
    """
    if isinstance(cell, bool | np.bool_):
        return "true or false"
    if isinstance(cell, int | np.integer):
        return "whole numbers"
    if isinstance(cell, float | np.floating | Decimal):
        return "whole numbers" if _is_whole(cell) else "decimal numbers"
    if isinstance(cell, timedelta):
        return "durations"
    if isinstance(cell, str) and cell_number(cell) is not None:
        return _describe_number(cell.strip())
    if date_part(cell, "day", None) is not None:
        return "dates"
    return "text" if date_part(cell, "hour", None) is None else "times"


def _describe_number(text: str) -> str:
    if _LEADING_ZERO.fullmatch(text):
        return "numbers with leading zeros"
    is_whole_text = parse_whole(text) is not None or _WHOLE_NUMBER.fullmatch(text)
    return "whole numbers" if is_whole_text else "decimal numbers"


def _is_whole(number: float | np.floating[Any] | Decimal) -> bool:
    return is_whole(number if isinstance(number, Decimal) else float(number))
