"""A survey without its mechanism: what is asked and promised, before anything is chosen that keeps the promise."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sfumato.contexts import Context
from sfumato.domains.domain import require_label
from sfumato.errors import InvalidContext, InvalidSurvey
from sfumato.foundation.canonical import Json

__all__ = ["Description"]

_PERIODS = ("day", "week", "month", "year")
_TEXTS = ("title", "text", "contact", "opens", "closes")


@dataclass(frozen=True)
class Description:
    """A name, a context, and what people should know: all of a survey that can be checked before it is designed.

    ``about`` holds what else a ``Survey`` is made with: title, text, contact, minimum_reports, opens, closes, repeat.
    """

    name: str
    context: Context
    about: Mapping[str, Any]

    def __post_init__(self) -> None:
        about = {**dict.fromkeys(_TEXTS, ""), "minimum_reports": 0, "repeat": "once", **self.about}
        if any(not isinstance(about[name], str) or not _is_utf8(about[name]) for name in _TEXTS):
            raise InvalidSurvey(
                "title, text, contact, opens and closes must be text that UTF-8 can hold."
            )
        for name in ("opens", "closes"):
            _check_time(about[name], name)
        _check_minimum(about["minimum_reports"])
        about["repeat"] = _checked_repeat(about["repeat"])
        object.__setattr__(self, "name", _checked_name(self.name))
        object.__setattr__(self, "about", about)


def _checked_name(name: object) -> str:
    try:
        label = require_label(name, "name")
    except InvalidContext as problem:
        raise InvalidSurvey(str(problem)) from None
    if (
        not isinstance(label, str)
        or len(label) > 100
        or not label.isprintable()
        or label != label.strip()
    ):
        raise InvalidSurvey(
            "name must be a line of at most 100 printable characters, unique per question."
        )
    return label


def _check_minimum(number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**53:
        raise InvalidSurvey("minimum_reports must be a whole number of at least 0, below 2^53.")


def _check_time(text: str, name: str) -> None:
    try:
        datetime.fromisoformat(text or "2000-01-01")
    except ValueError:
        raise InvalidSurvey(
            f"{name} must be a date or time such as 2026-11-30 or 2026-11-30T18:00Z."
        ) from None


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _checked_repeat(repeat: object) -> Json:
    if repeat == "once":
        return "once"
    if (
        isinstance(repeat, Mapping)
        and set(repeat) == {"every", "distinct"}
        and repeat["every"] in _PERIODS
    ):
        distinct = repeat["distinct"]
        if isinstance(distinct, int) and not isinstance(distinct, bool) and 1 <= distinct <= 10_000:
            return {"every": str(repeat["every"]), "distinct": distinct}
    raise InvalidSurvey(
        f'repeat must be "once", or {{ every = one of {", ".join(_PERIODS)}, distinct = a whole number from 1 on }}.'
    )
