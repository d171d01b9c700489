"""Periods: the day, week, month or year in which an answer is given, in UTC."""

from datetime import UTC, datetime

__all__ = ["period_of"]


def period_of(every: str, moment: datetime) -> str:
    """The name of a period; later periods have later names, as text.

    Weeks are those of ISO 8601: they begin on Monday, and the first one of a year holds its first Thursday.

    >>> period_of("week", datetime(2027, 1, 1, tzinfo=UTC)), period_of("month", datetime(2027, 1, 1, tzinfo=UTC))
    ('2026-W53', '2027-01')
    """
    day = moment.astimezone(UTC).date()
    if every == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04d}-W{week:02d}"
    return day.isoformat()[: {"day": 10, "month": 7, "year": 4}[every]]
