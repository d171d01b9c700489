"""Dates and times in the cells of a table, as on the wall clock.

A cell may contain only a part of a date: a month, a day or a time. The other parts are not guessed.
"""

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time
from typing import Literal, NamedTuple, get_args

import numpy as np

from sfumato.errors import InvalidArgument

__all__ = ["DATE_PARTS", "DatePart", "date_part", "from_datetime64", "require_date_format"]

DatePart = Literal["day", "weekday", "hour", "month"]
"""The parts of a date that can be an answer."""

DATE_PARTS: tuple[DatePart, ...] = get_args(DatePart)

# Without a separator, an integer such as 20131231 would count as a date.
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-W[0-9]{2}-[0-9])([^0-9].+)?")
_MONTH = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}.*")
_CLOCK_TYPES = (datetime, time)
_CALENDAR_TYPES = (date, time)  # a datetime is a date
_SAMPLE = datetime(2021, 11, 18, 19, 42, 37, tzinfo=UTC)  # it differs from the default in all parts
_PARTS_IN_FORMAT = {
    "day": "the year, the month and the day",
    "weekday": "the year, the month and the day",
    "month": "the year and the month",
    "hour": "the hour, from 0 to 23 or with AM and PM",
}


class _Month(NamedTuple):
    """A month without a day."""

    year: int
    month: int


_Moment = date | time | _Month


def date_part(cell: object, part: DatePart, date_format: str | None) -> int | str | None:
    """Return a part of the date in a cell, or ``None`` if the cell does not contain it.

    Weekdays are numbers from 0 (Monday), hours are numbers from 0, and days and months are text.

    >>> date_part("2026-11-18", "weekday", None), date_part("2026-11-18", "hour", None)
    (2, None)
    >>> date_part("18.11.2026", "month", "%d.%m.%Y")
    '2026-11'
    """
    moment = _read_moment(cell, date_format)
    if moment is None:
        return None
    if part == "hour":
        return moment.hour if isinstance(moment, _CLOCK_TYPES) else None
    if isinstance(moment, time):
        return None
    if part == "month":
        return f"{moment.year:04}-{moment.month:02}"
    if isinstance(moment, _Month):
        return None
    return moment.weekday() if part == "weekday" else moment.isoformat()[:10]


def _read_moment(cell: object, date_format: str | None) -> _Moment | None:
    if isinstance(cell, str):
        return _parse_moment(cell.strip(), date_format)
    if isinstance(cell, _CALENDAR_TYPES):
        return cell
    if isinstance(cell, np.datetime64):
        return _read_moment(from_datetime64(cell), None)
    return None


def _parse_moment(text: str, date_format: str | None) -> _Moment | None:
    try:
        return _read_iso(text) if date_format is None else datetime.strptime(text, date_format)
    except ValueError:
        return None


def _read_iso(text: str) -> _Moment | None:
    """Return a date or time in ISO 8601; raise ``ValueError`` if there is no such date."""
    match = _DAY.fullmatch(text)
    if match is not None:
        return date.fromisoformat(text) if match[2] is None else datetime.fromisoformat(text)
    match = _MONTH.fullmatch(text)
    if match is not None:
        return _Month(int(match[1]), int(match[2]))
    return time.fromisoformat(text) if _TIME.fullmatch(text) else None


def from_datetime64(cell: np.datetime64) -> date | str | None:
    """Return a NumPy date or time as Python's: a date, a time, or a month as text.

    Return ``None`` for a year alone, and for a year that Python's dates do not have.
    """
    unit, _ = np.datetime_data(cell.dtype)
    if unit == "Y":
        return None
    if unit == "M":
        return str(cell)
    moment = cell.astype(f"datetime64[{'D' if unit in ('W', 'D') else 'us'}]").item()
    return moment if isinstance(moment, date) else None


def require_date_format(date_format: str, part: DatePart) -> None:
    """Reject a format that cannot be read, or that does not contain a part of the date.

    ``strptime`` fills in missing parts, so every date without a year would be a date of 1900.
    """
    sample = None
    with suppress(ValueError, re.error):  # an unknown code, or a code that occurs twice
        sample = datetime.strptime(_SAMPLE.strftime(date_format), date_format)
    if sample is None:
        raise InvalidArgument(
            f"date_format must be a format of strptime, such as %d.%m.%Y; got {date_format!r}."
        )
    essential_part = "day" if part == "weekday" else part  # another day may have the same weekday
    if date_part(sample, essential_part, None) != date_part(_SAMPLE, essential_part, None):
        raise InvalidArgument(
            f"the {part} of a date needs a date_format with {_PARTS_IN_FORMAT[part]}; got "
            f"{date_format!r}."
        )
