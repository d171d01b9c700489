"""A survey without its mechanism: the question and the promise, before a mechanism is chosen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sfumato.contexts import Context
from sfumato.errors import InvalidSurvey
from sfumato.foundation.canonical import Json
from sfumato.foundation.formatting import printable
from sfumato.foundation.notebook import FieldsView
from sfumato.foundation.periods import PERIODS
from sfumato.survey.answer_columns import AnswerColumns
from sfumato.survey.question import DEFAULT_QUESTION, Question, require_name

EDITIONS = (1, 2)
"""The editions of surveys. An edition fixes the defaults and the format of a resolved survey."""

WORST_CASE_MARGINS: Mapping[int, float] = {1: 0.0, 2: 0.1}
"""For each edition, the default ``worst_case_margin`` of ``mechanism_for``. Never change the first:
surveys of edition 1 keep their mechanisms."""

ABOUT_FIELDS = ("title", "text", "contact", "minimum_reports", "opens", "closes")
"""The fields that are shown but not promised."""

MAX_BATCH_REPORTS = 65_536
"""The maximum number of reports in an upload."""

_TEXT_FIELDS = ("title", "text", "contact", "opens", "closes")
_MAX_DISTINCT_ANSWERS = 10_000
_MAX_LABELS_SHOWN = 30


@dataclass(frozen=True)
class Description(FieldsView):
    """The parts of a survey that can be checked before its mechanism is designed.

    ``about`` contains further arguments of ``Survey``: title, text, contact, minimum_reports,
    opens, closes, repeat and reports_per_upload. Missing arguments get their default values.
    ``table`` says how to read a table of answers; it is neither promised nor shown, and a resolved
    survey does not contain it.
    """

    name: str
    questions: tuple[Question, ...]
    about: Mapping[str, Any]
    edition: int
    table: AnswerColumns = field(default_factory=AnswerColumns)

    def __post_init__(self) -> None:
        about = require_about(self.about)
        object.__setattr__(self, "name", require_name(self.name, "name"))
        object.__setattr__(self, "about", about)
        self._require_edition()
        # Every client must read an answer as the survey's edition does.
        questions = tuple(question.for_edition(self.edition) for question in self.questions)
        object.__setattr__(self, "questions", questions)

    @property
    def context(self) -> Context:
        """The context that protects a person's answers."""
        (question,) = self.questions
        return question.context

    @property
    def every(self) -> str:
        """The length of a period, such as "week"; "" if people answer once."""
        repeat = self.about["repeat"]
        return "" if repeat == "once" else str(repeat["every"])

    def _require_edition(self) -> None:
        if type(self.edition) is not int or self.edition not in EDITIONS:
            raise InvalidSurvey(f"edition must be 1 or 2; got {self.edition!r}.")
        if len(self.questions) != 1:
            raise InvalidSurvey(
                f"a survey must have exactly one question; got {len(self.questions)}."
            )
        if self.edition == 1 and self.questions[0].name != DEFAULT_QUESTION:
            raise InvalidSurvey("a survey of edition 1 cannot name its question. Use edition 2.")
        if self.edition == 1 and self.about["reports_per_upload"] is not None:
            raise InvalidSurvey("reports_per_upload needs edition 2.")


def require_about(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the further arguments of ``Survey``, with defaults for missing ones.

    Raise ``InvalidSurvey`` if some are invalid, with one line for each problem.
    """
    about = {
        **dict.fromkeys(_TEXT_FIELDS, ""),
        "minimum_reports": 0,
        "repeat": "once",
        "reports_per_upload": None,
        **values,
    }
    if not all(_is_utf8_text(about[name]) for name in _TEXT_FIELDS):
        raise InvalidSurvey("title, text, contact, opens and closes must be valid UTF-8 text.")
    problems: list[str] = []
    for name, require in _REQUIREMENTS.items():
        try:
            about[name] = require(about[name], name)
        except InvalidSurvey as problem:
            problems.append(str(problem))
    if problems:
        raise InvalidSurvey("\n".join(problems))
    return about


def disclosure_text(context: Context) -> str:
    """Return a plain-language description of what reports may reveal.

    The description is empty if every pair of answers is protected, that is, if the context promises
    a finite ε for every pair.
    """
    unprotected = context.unprotected_symbols()
    if unprotected.size and unprotected.size == context.size:
        return "Every answer is sent as it is."
    sentences: list[str] = []
    if unprotected.size:
        labels: list[str] = []
        for symbol in unprotected[:_MAX_LABELS_SHOWN].tolist():
            # Labels are untrusted: escape characters that move the cursor or reverse text.
            labels.append(printable(str(context.domain.labels[symbol])))
        listing = ", ".join(labels)
        if unprotected.size > _MAX_LABELS_SHOWN:
            listing += f" and {unprotected.size - _MAX_LABELS_SHOWN:,} more"
        sentences.append(f"These answers are sent as they are: {listing}.")
    if context.has_partly_protected_symbols:
        sentences.append("A report may show which group of answers yours belongs to.")
    return " ".join(sentences)


def _require_minimum_reports(number: object, name: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**53:
        raise InvalidSurvey(f"{name} must be a non-negative integer below 2^53.")
    return number


def _require_reports_per_upload(number: object, name: str) -> int | None:
    if number is None:
        return None
    if type(number) is not int or not 1 <= number <= MAX_BATCH_REPORTS:
        raise InvalidSurvey(f"{name} must be an integer from 1 to {MAX_BATCH_REPORTS:,}.")
    return number


def _require_time(text: Any, name: str) -> str:  # noqa: ANN401
    try:
        datetime.fromisoformat(text or "2000-01-01")
    except ValueError:
        raise InvalidSurvey(
            f"{name} must be a date or time such as 2026-11-30 or 2026-11-30T18:00Z."
        ) from None
    return str(text)


def _is_utf8_text(text: object) -> bool:
    if not isinstance(text, str):
        return False
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _require_repeat(repeat: object, name: str) -> Json:
    """Return ``repeat`` as JSON data: "once", or a period and a number of distinct answers."""
    if repeat == "once":
        return "once"
    if isinstance(repeat, Mapping) and set(repeat) == {"every", "distinct"}:
        every = repeat["every"]
        distinct = repeat["distinct"]
        is_integer = isinstance(distinct, int) and not isinstance(distinct, bool)
        if every in PERIODS and is_integer and 1 <= distinct <= _MAX_DISTINCT_ANSWERS:
            return {"every": str(every), "distinct": distinct}
    periods = ", ".join(PERIODS)
    raise InvalidSurvey(
        f'{name} must be "once", or {{ every = one of {periods}, distinct = a positive integer }}.'
    )


_REQUIREMENTS: Mapping[str, Callable[[Any, str], Any]] = {
    "opens": _require_time,
    "closes": _require_time,
    "minimum_reports": _require_minimum_reports,
    "repeat": _require_repeat,
    "reports_per_upload": _require_reports_per_upload,
}
"""For each argument that is not just text, a function that returns its value if it is valid."""
