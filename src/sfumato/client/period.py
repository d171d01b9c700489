"""Periods: the day, week, month or year in which an answer is given, in UTC."""

from datetime import UTC, datetime

__all__ = ["period_of"]

_ISO_LENGTH = {"day": 10, "month": 7, "year": 4}


def period_of(every: str, moment: datetime) -> str:
    """Name the period of a moment; later periods have later names, as text.

    Weeks are those of ISO 8601: they begin on Monday, and the first week of a year contains its
    first Thursday.

    >>> period_of("week", datetime(2027, 1, 1, tzinfo=UTC))
    '2026-W53'
    >>> period_of("month", datetime(2027, 1, 1, tzinfo=UTC))
    '2027-01'
    """
    day = moment.astimezone(UTC).date()
    if every == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04d}-W{week:02d}"
    return day.isoformat()[: _ISO_LENGTH[every]]
