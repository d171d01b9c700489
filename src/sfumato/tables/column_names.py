"""Descriptions of a table's columns, for errors about a column that is missing."""

import difflib
from collections.abc import Sequence

from sfumato.foundation.formatting import printable, shorten

__all__ = ["describe_columns", "same_column"]

_MAX_LISTED_COLUMNS = 20
_MAX_NAME_LENGTH = 60


def describe_columns(columns: Sequence[str], missing_column: str) -> str:
    """Return the rest of an error about a missing column: the nearest name, and the others."""
    named_columns = [column for column in columns if column.strip()]
    if not named_columns:
        return "."
    first_columns = named_columns[:_MAX_LISTED_COLUMNS]
    more = len(named_columns) - len(first_columns)
    names = ", ".join(shorten(printable(column), _MAX_NAME_LENGTH) for column in first_columns)
    column_list = f"{names} and {more} more" if more else names
    nearest = _nearest_column(named_columns, missing_column)
    if nearest is None:
        return f"; its columns are {column_list}."
    return f"; did you mean {nearest!r}? Its columns are {column_list}."


def _nearest_column(columns: Sequence[str], missing_column: str) -> str | None:
    """Return the column with the most similar name, or ``None`` if none is similar."""
    column_of_key = {_key(column): column for column in reversed(columns)}
    matches = difflib.get_close_matches(_key(missing_column), list(column_of_key), n=1)
    return column_of_key[matches[0]] if matches else None


def same_column(columns: Sequence[str], missing_column: str) -> str | None:
    """Return the column whose name differs only by case and surrounding spaces, if any."""
    for column in columns:
        if _key(column) == _key(missing_column):
            return column
    return None


def _key(column: str) -> str:
    return column.strip().casefold()
