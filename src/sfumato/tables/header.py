"""Whether the first line of a table is a header.

A table without a header has a person's answers in its first line. They may be rare, so it is not
enough that they do not recur. Errors show column names only if the first line is of a different
kind than the lines below it.
"""

import re
from collections.abc import Sequence

from sfumato.foundation.formatting import plural
from sfumato.tables.column_names import describe_columns, same_column

__all__ = ["describe_header", "looks_like_header"]

_MAX_NAME_LENGTH = 60
_MIN_CODE_ROWS = 5
_MISSING_TEXTS = {
    *("na", "n/a", "n.a.", "nan", "nil", "none", "null", "-", "--", ".", "..", "?"),
    *("unknown", "missing", "refused", "empty", "blank"),
}

_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"[-+]?[^\w\s]?\s?\d[\d.,'\s_]*([eE][-+]?\d+)?\s?\W?")
_DATE = re.compile(r"\d{1,4}[-/. ]\w{1,9}[-/. ]\d{1,4}([T ].*)?|\d{1,2}:\d{2}.*")


def describe_header(
    columns: Sequence[str], missing_column: str, rows: Sequence[Sequence[str]], place: str = "line"
) -> str:
    """Return the rest of an error about a missing column. ``rows`` are the first rows of the table.

    Show the names only if the first line looks like a header. A name that the caller knows, except
    for its case, may always be shown.
    """
    if looks_like_header(columns, rows):
        return describe_columns(columns, missing_column)
    same_name = same_column(columns, missing_column)
    if same_name is not None:
        return f"; did you mean {same_name!r}?"
    return (
        f" among its {plural(len(columns), 'column')}. "
        f"The first {place} must be a header with their names."
    )


def looks_like_header(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first line contains column names rather than a person's answers.

    Names are different short texts, and no name occurs as a value. In addition, one column must
    have values that its name cannot be: numbers, dates, or codes with digits such as P017. A column
    of texts shows nothing, because the first person may have given an answer that nobody else gave.
    """
    values_of_column: list[list[str]] = [[] for _ in columns]
    for row in rows:
        for values, cell in zip(values_of_column, row, strict=False):
            if cell.strip():
                values.append(cell.strip())
    names = []
    for column, values in zip(columns, values_of_column, strict=True):
        if column.strip() or values:  # delimiters at the end of a line make empty columns
            names.append(column.strip())
    if len(names) < 2 or not all(map(_may_be_name, names)):
        return False
    if len(set(names)) < len(names):  # the same answer to two questions, rather than two names
        return False
    if not all(set(values).isdisjoint(names) for values in values_of_column):
        return False
    return any(map(_shows_header, columns, values_of_column))


def _may_be_name(text: str) -> bool:
    is_short = 0 < len(text) <= _MAX_NAME_LENGTH
    return is_short and not _is_number_or_date(text) and text.casefold() not in _MISSING_TEXTS


def _shows_header(name: str, values: Sequence[str]) -> bool:
    """Whether values show that ``name``, which is no number, is not one of them."""
    if not values:
        return False
    if all(map(_is_number_or_date, values)):
        return True
    have_digits = all(map(_DIGIT.search, values))
    return len(values) >= _MIN_CODE_ROWS and have_digits and not _DIGIT.search(name)


def _is_number_or_date(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) or _DATE.fullmatch(text))
