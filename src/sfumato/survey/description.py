"""A survey without its mechanism: the question and the promise, before a mechanism is chosen."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sfumato.contexts import Context
from sfumato.domains.domain import require_label
from sfumato.errors import InvalidContext, InvalidSurvey
from sfumato.foundation.canonical import Json
from sfumato.foundation.formatting import printable

_PERIODS = ("day", "week", "month", "year")
_TEXTS = ("title", "text", "contact", "opens", "closes")
_MAX_DISTINCT = 10_000
_MAX_LABELS_SHOWN = 30
_MAX_NAME_LENGTH = 100


@dataclass(frozen=True)
class Description:
    """Everything about a survey that you can check before designing it.

    ``about`` holds the other arguments of ``Survey``: title, text, contact, minimum_reports, opens,
    closes, repeat. Those you leave out get their defaults.
    """

    name: str
    context: Context
    about: Mapping[str, Any]

    def __post_init__(self) -> None:
        about = {**dict.fromkeys(_TEXTS, ""), "minimum_reports": 0, "repeat": "once", **self.about}
        for name in _TEXTS:
            if not _is_utf8_text(about[name]):
                raise InvalidSurvey(
                    "title, text, contact, opens and closes must be text that UTF-8 can encode."
                )
        for name in ("opens", "closes"):
            _require_time(about[name], name)
        _require_minimum(about["minimum_reports"])
        about["repeat"] = _require_repeat(about["repeat"])
        object.__setattr__(self, "name", _require_name(self.name))
        object.__setattr__(self, "about", about)


def disclosure_text(context: Context) -> str:
    """Say in plain words what reports may show; empty if every pair of answers has a promise."""
    exposed = context.unprotected_symbols()
    if exposed.size and exposed.size == context.size:
        return "Every answer is sent as it is."
    sentences: list[str] = []
    if exposed.size:
        labels: list[str] = []
        for symbol in exposed[:_MAX_LABELS_SHOWN].tolist():
            # A label is its author's text: escape what would move a cursor or reverse a line.
            labels.append(printable(str(context.domain.labels[symbol])))
        listing = ", ".join(labels)
        if exposed.size > _MAX_LABELS_SHOWN:
            listing += f" and {exposed.size - _MAX_LABELS_SHOWN:,} more"
        sentences.append(f"These answers are sent as they are: {listing}.")
    if context.has_partly_protected_symbols:
        sentences.append("A report may show to which group of answers yours belongs.")
    return " ".join(sentences)


def _require_name(name: object) -> str:
    try:
        label = require_label(name, "name")
    except InvalidContext as problem:
        raise InvalidSurvey(str(problem)) from None
    is_line = isinstance(label, str) and label.isprintable() and label == label.strip()
    if not is_line or len(str(label)) > _MAX_NAME_LENGTH:
        raise InvalidSurvey(
            "name must be a line of at most 100 printable characters, unique per question."
        )
    return str(label)


def _require_minimum(number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**53:
        raise InvalidSurvey("minimum_reports must be a non-negative integer below 2^53.")


def _require_time(text: str, name: str) -> None:
    try:
        datetime.fromisoformat(text or "2000-01-01")
    except ValueError:
        raise InvalidSurvey(
            f"{name} must be a date or time such as 2026-11-30 or 2026-11-30T18:00Z."
        ) from None


def _is_utf8_text(text: object) -> bool:
    if not isinstance(text, str):
        return False
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _require_repeat(repeat: object) -> Json:
    """Return ``repeat`` as plain data: "once", or how often and how many distinct answers."""
    if repeat == "once":
        return "once"
    if isinstance(repeat, Mapping) and set(repeat) == {"every", "distinct"}:
        every = repeat["every"]
        distinct = repeat["distinct"]
        is_integer = isinstance(distinct, int) and not isinstance(distinct, bool)
        if every in _PERIODS and is_integer and 1 <= distinct <= _MAX_DISTINCT:
            return {"every": str(every), "distinct": distinct}
    periods = ", ".join(_PERIODS)
    raise InvalidSurvey(
        f'repeat must be "once", or {{ every = one of {periods}, distinct = a positive integer }}.'
    )
