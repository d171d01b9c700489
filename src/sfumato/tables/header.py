"""Whether the first line of a table is a header.

A table without a header has people's answers in its first line. So errors show column names only if
the first line looks like a header.
"""

import re
from collections.abc import Sequence

from sfumato.tables.column_names import describe_columns, same_column

__all__ = ["describe_header", "looks_like_header"]

_MAX_NAME_LENGTH = 60
_MIN_TEXT_ROWS = 10

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
    known = same_column(columns, missing_column)
    if known is not None:
        return f"; did you mean {known!r}?"
    plural = "s" if len(columns) > 1 else ""
    return (
        f" among its {len(columns)} column{plural}. "
        f"The first {place} must be a header with their names."
    )


def looks_like_header(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first line contains column names rather than a person's answers.

    Names are short texts, and no name occurs as a value of its own column. In addition, the rows
    must show that the first line differs from them: a column contains only numbers or dates, or
    there are enough rows to see repeated answers.
    """
    if len(columns) < 2 or not all(map(_may_be_name, columns)):
        return False
    values_of_column: list[list[str]] = [[] for _ in columns]
    for row in rows:
        for values, cell in zip(values_of_column, row, strict=False):
            if cell.strip():
                values.append(cell.strip())
    for column, values in zip(columns, values_of_column, strict=True):
        if column.strip() in values:
            return False
    return any(map(_differs_from_names, values_of_column))


def _may_be_name(cell: str) -> bool:
    text = cell.strip()
    return 0 < len(text) <= _MAX_NAME_LENGTH and not _is_number_or_date(text)


def _differs_from_names(values: Sequence[str]) -> bool:
    """Whether values cannot be taken for column names: numbers, dates, or repeated texts."""
    if not values:
        return False
    is_repetitive = len(values) >= _MIN_TEXT_ROWS and 2 * len(set(values)) <= len(values)
    return is_repetitive or all(map(_is_number_or_date, values))


def _is_number_or_date(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) or _DATE.fullmatch(text))
