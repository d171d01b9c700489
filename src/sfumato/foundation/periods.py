"""Periods of a repeated survey: days, weeks, months and years, in UTC, with names as in ISO 8601.

Names of later periods sort later as text. Weeks begin on Monday, and the first week of a year
contains its first Thursday.
"""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

__all__ = ["PERIODS", "period_name", "period_start", "recent_period"]

PERIODS = ("day", "week", "month", "year")
"""The lengths of periods, as in ``repeat = { every = "week", … }``."""

_MAX_PERIODS_LATE = 8
_MAX_DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}
_ISO_PREFIX_LENGTH = {"day": 10, "month": 7, "year": 4}
_NAME_LENGTH = {"day": 10, "week": 8, "month": 7, "year": 4}


def period_name(every: str, moment: datetime) -> str:
    """Return the name of the day, week, month or year that contains ``moment``, in UTC.

    >>> period_name("week", datetime(2027, 1, 1, tzinfo=UTC))
    '2026-W53'
    >>> period_name("month", datetime(2027, 1, 1, tzinfo=UTC))
    '2027-01'
    """
    return _name(every, moment.astimezone(UTC).date())


@lru_cache(maxsize=1024)  # nearly all uploads name one of a few periods
def period_start(every: str, name: str) -> date:
    """Return the first day of a period. Raise ``ValueError`` unless ``name`` is its exact name.

    >>> period_start("week", "2026-W53")
    datetime.date(2026, 12, 28)
    """
    if len(name) != _NAME_LENGTH[every] or not name.isascii():
        raise ValueError(f"not the name of a {every}")
    if every == "week":
        start = date.fromisocalendar(int(name[:4]), int(name[6:]), 1)
    else:
        start = date.fromisoformat(name + "0000-01-01"[len(name) :])
    if _name(every, start) != name:
        raise ValueError(f"not the name of a {every}")
    return start


def recent_period(every: str, name: str, now: datetime) -> bool:
    """Whether ``name`` is a period that began at most a day after ``now``, or not long before.

    A device may deliver late, and its clock may be wrong. But a sender who invents periods must not
    be able to create cells without limit, so only the last 8 periods count as recent.

    >>> recent_period("week", "2026-W46", datetime(2026, 11, 18, tzinfo=UTC))
    True
    >>> recent_period("week", "2031-W46", datetime(2026, 11, 18, tzinfo=UTC))
    False
    """
    return _is_recent(every, name, now.astimezone(UTC).date())


@lru_cache(maxsize=1024)
def _is_recent(every: str, name: str, today: date) -> bool:
    try:
        start = period_start(every, name)
    except ValueError:
        return False
    max_age = timedelta(days=_MAX_PERIODS_LATE * _MAX_DAYS[every])
    return today - max_age <= start <= today + timedelta(days=1)


def _name(every: str, day: date) -> str:
    if every == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04d}-W{week:02d}"
    return day.isoformat()[: _ISO_PREFIX_LENGTH[every]]
