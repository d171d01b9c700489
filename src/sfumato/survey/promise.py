"""The two formats of a resolved survey as records: what is promised, and what is shown.

Format 1 has one context. Format 2 has a list of questions, each with its own context, and room for
what a survey will be able to ask for: a cap over all answers, public columns, rotation, cohorts,
other ways to collect reports, and texts in several languages. A field that this version cannot act
on must have its neutral value; a survey with any other value is rejected, because a promise that is
only partly understood must not be relied on. ``docs/format.md`` specifies every field.
"""

from collections.abc import Mapping
from typing import Any

from sfumato.contexts import context_from_record
from sfumato.errors import InvalidSurvey
from sfumato.foundation.canonical import Fields, Json, canonical_bytes, require_fields
from sfumato.mechanisms import Mechanism, mechanism_from_record
from sfumato.survey.description import ABOUT_FIELDS, EDITIONS, Description
from sfumato.survey.question import DEFAULT_QUESTION, Question
from sfumato.survey.resolved import require_buildable_codes, require_buildable_context

__all__ = ["about_record", "parse_survey_record", "promise_record"]

_SHARED_FIELDS = ("format", "name", "mechanism", "mechanism_context", "repeat")

# Fields of format 2 that this version cannot act on, with the only values that it accepts.
_NEUTRAL_PROMISE: Mapping[str, Json] = {
    "cap": None,
    "cohorts": 1,
    "collection": "plain",
    "invitations": None,
    "learn": None,
    "public": [],
}
_NEUTRAL_QUESTION: Mapping[str, Json] = {"missing": None}
_NEUTRAL_ABOUT: Mapping[str, Json] = {"texts": {}}


# --- write ----------------------------------------------------------------------------------------


def promise_record(description: Description, mechanism: Mechanism) -> dict[str, Json]:
    """Return what the survey promises, in the format of its edition."""
    mechanism_context = None
    if mechanism.context != description.context:
        mechanism_context = mechanism.context.to_record()
    record: dict[str, Json] = {
        "format": description.edition,
        "name": description.name,
        "mechanism": mechanism.to_record(),
        "mechanism_context": mechanism_context,
        "repeat": description.about["repeat"],
    }
    if description.edition == 1:
        return {**record, "context": description.context.to_record()}
    questions = list(map(_question_record, description.questions))
    return {**_NEUTRAL_PROMISE, **record, "questions": questions}


def about_record(description: Description) -> dict[str, Json]:
    """Return what the survey shows to people, in the format of its edition."""
    record: dict[str, Json] = {name: description.about[name] for name in ABOUT_FIELDS}
    if description.edition == 1:
        return record
    return {**_NEUTRAL_ABOUT, **record, "uploads": description.about["reports_per_upload"]}


def _question_record(question: Question) -> Json:
    return {**_NEUTRAL_QUESTION, "context": question.context.to_record(), "name": question.name}


# --- read -----------------------------------------------------------------------------------------


def parse_survey_record(data: object) -> tuple[Description, Mechanism]:
    """Build the description and the mechanism in a resolved survey of either format."""
    fields = require_fields(data, "a resolved survey", ("promise", "about"))
    version = _format_of(fields["promise"])
    read = _read_format_1 if version == 1 else _read_format_2
    questions, promise, about = read(fields["promise"], fields["about"])
    require_buildable_context(promise["mechanism_context"])
    for _, context in questions:
        require_buildable_context(context)
        require_buildable_codes(promise["mechanism"], context)
    values = {name: about[name] for name in ABOUT_FIELDS}
    values["repeat"] = promise["repeat"]
    values["reports_per_upload"] = about.get("uploads")
    description = Description(
        promise["name"],
        tuple(Question(name, context_from_record(context)) for name, context in questions),
        values,
        edition=version,
    )
    mechanism_context = description.context
    if promise["mechanism_context"] is not None:
        mechanism_context = context_from_record(promise["mechanism_context"])
    return description, mechanism_from_record(promise["mechanism"], mechanism_context)


def _format_of(promise: object) -> int:
    version = promise.get("format") if isinstance(promise, Mapping) else None
    if type(version) is not int or version not in EDITIONS:
        raise InvalidSurvey(
            "promise.format must be 1 or 2; this version reads no other. Upgrade Sfumato."
        )
    return version


# The name and the context record of each question, the promise, and what is shown.
_Parts = tuple[list[tuple[str, Any]], Fields, Fields]


def _read_format_1(promise: object, about: object) -> _Parts:
    promise_fields = require_fields(promise, "promise", (*_SHARED_FIELDS, "context"))
    questions = [(DEFAULT_QUESTION, promise_fields["context"])]
    return questions, promise_fields, require_fields(about, "about", ABOUT_FIELDS)


def _read_format_2(promise: object, about: object) -> _Parts:
    names = (*_SHARED_FIELDS, "questions", *_NEUTRAL_PROMISE)
    promise_fields = require_fields(promise, "promise", names)
    _require_neutral(promise_fields, "promise", _NEUTRAL_PROMISE)
    questions = []
    for record in _require_one_item(promise_fields["questions"], "promise.questions"):
        fields = require_fields(record, "a question", ("name", "context", *_NEUTRAL_QUESTION))
        _require_neutral(fields, "question", _NEUTRAL_QUESTION)
        questions.append((fields["name"], fields["context"]))
    about_fields = require_fields(about, "about", (*ABOUT_FIELDS, "uploads", *_NEUTRAL_ABOUT))
    _require_neutral(about_fields, "about", _NEUTRAL_ABOUT)
    return questions, promise_fields, about_fields


def _require_one_item(items: object, name: str) -> list[Any]:
    if not isinstance(items, list) or len(items) != 1:
        raise InvalidSurvey(
            f"{name} must be a list with one item: this version supports one question per survey. "
            "Upgrade Sfumato."
        )
    return items


def _require_neutral(fields: Fields, name: str, neutral: Mapping[str, Json]) -> None:
    """Reject a field that asks for something that this version cannot do."""
    for field, value in neutral.items():
        if canonical_bytes(fields[field]) != canonical_bytes(value):
            raise InvalidSurvey(
                f"{name}.{field} asks for something that this version does not support; it must "
                f"be {canonical_bytes(value).decode()}. Upgrade Sfumato."
            )
