"""When a survey is open and how often it asks, in plain words."""

from datetime import UTC, datetime

from sfumato.foundation.formatting import format_count
from sfumato.survey import Survey

__all__ = ["different_answers", "often_text", "open_text"]

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def open_text(survey: Survey) -> str:
    """From when to when answers are taken; a time without a zone is UTC, and a date is its first moment."""
    opens, closes = (_moment(str(survey.description.about[name])) for name in ("opens", "closes"))
    if opens and closes:
        return f"from {opens} to {closes}"
    if opens:
        return f"from {opens} on"
    return f"until {closes}" if closes else "no dates are set"


def often_text(survey: Survey) -> str:
    """How often a device answers."""
    repeat = survey.description.about["repeat"]
    if repeat == "once":
        return "once: the first answer stands"
    distinct = different_answers(survey)
    limit = (
        "the first answer stands"
        if distinct == 1
        else f"at most {format_count(distinct)} different answers"
    )
    return f"every {repeat['every']}, {limit}"


def different_answers(survey: Survey) -> int:
    """How many different answers of one person can count; each costs the promise once more."""
    repeat = survey.description.about["repeat"]
    return 1 if repeat == "once" else int(repeat["distinct"])


def _moment(text: str) -> str:
    """A date or time as people write it.

    >>> _moment("2026-11-30T18:00+01:00"), _moment("2026-11-30")
    ('30 November 2026, 18:00 UTC+01:00', '30 November 2026, 00:00 UTC')
    """
    if not text:
        return ""
    time = datetime.fromisoformat(text)
    zone = (time if time.tzinfo else time.replace(tzinfo=UTC)).tzname()
    return f"{time.day} {_MONTHS[time.month - 1]} {time.year}, {time:%H:%M} {zone}"
