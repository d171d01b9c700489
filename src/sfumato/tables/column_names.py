"""Descriptions of a table's columns, for errors about a column that is missing."""

import difflib
from collections.abc import Sequence

from sfumato.foundation.formatting import printable

__all__ = ["describe_columns", "nearest_column", "same_column"]

_MAX_LISTED_COLUMNS = 20
_MAX_NAME_LENGTH = 60


def describe_columns(columns: Sequence[str], missing_column: str) -> str:
    """Return the rest of an error about a missing column: the nearest name, and the others."""
    if not columns:
        return "."
    names = [_short_name(column) for column in columns[:_MAX_LISTED_COLUMNS]]
    more = len(columns) - len(names)
    column_list = ", ".join(names) + (f" and {more} more" if more else "")
    nearest = nearest_column(columns, missing_column)
    if nearest is None:
        return f"; its columns are {column_list}."
    return f"; did you mean {nearest!r}? Its columns are {column_list}."


def nearest_column(columns: Sequence[str], missing_column: str) -> str | None:
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


def _short_name(column: str) -> str:
    name = printable(column)
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[:_MAX_NAME_LENGTH]}…"
