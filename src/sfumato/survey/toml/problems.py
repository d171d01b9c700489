"""Describe the problems that pydantic finds in a survey file, in terms of the file."""

import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Union, get_args, get_origin

from pydantic import ValidationError

from sfumato.survey.toml.context import CONTEXT_FIELDS_BY_KIND, EXPECTED_IN_CONTEXT
from sfumato.survey.toml.schema import DOMAIN_FIELDS_BY_KIND, EXPECTED_IN_FILE, Section

__all__ = ["FieldProblem", "describe_problems"]

# What a field must be, for each type of pydantic error.
_EXPECTED_BY_ERROR = {
    "int_type": "an integer",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "value_error": "a number",
}
_EXPECTED_BY_FIELD = {**EXPECTED_IN_FILE, **EXPECTED_IN_CONTEXT}
_FIELDS_BY_KIND: Mapping[str, Mapping[str, Sequence[str]]] = {
    "domain": DOMAIN_FIELDS_BY_KIND,
    "context": CONTEXT_FIELDS_BY_KIND,
}
_TYPE_NAMES = {
    str: "text",
    bool: "true or false",
    int: "an integer",
    Decimal: "a decimal number",
    list: "a list",
    dict: "a table",
}
_MIN_SIMILARITY = 0.7  # of a suggestion, from 0 to 1


@dataclass(frozen=True)
class FieldProblem:
    """A message, and the path of the field it is about."""

    path: tuple[str | int, ...]
    message: str


@dataclass(frozen=True)
class _Place:
    """The names that lead to a field, and the class of the section that contains it."""

    names: tuple[str, ...]
    section: type[Section]

    @property
    def field(self) -> str:
        return ".".join(self.names)


def describe_problems(
    error: ValidationError, model: type[Section], data: Mapping[str, Any]
) -> list[FieldProblem]:
    """Describe each error in ``data``, a survey file with the fields of ``model``."""
    errors: list[tuple[_Place, Any]] = []
    for details in error.errors():
        errors.append((_find_place(details["loc"], model), details))
    problems: dict[str, FieldProblem] = {}
    for place, details in errors:
        if isinstance(details["input"], dict) and _has_errors_inside(place, errors):
            # The table fits one of the types that the field accepts, apart from those errors.
            continue
        message = _describe(place, details, model, data)
        problems.setdefault(message, FieldProblem(details["loc"], message))
    return list(problems.values())


def _has_errors_inside(place: _Place, errors: Sequence[tuple[_Place, Any]]) -> bool:
    depth = len(place.names)
    for other, _ in errors:
        if len(other.names) > depth and other.names[:depth] == place.names:
            return True
    return False


def _find_place(location: Sequence[str | int], model: type[Section]) -> _Place:
    """Find the field at pydantic's location.

    A location also contains positions in lists and pydantic's names for alternative types.
    """
    names: list[str] = []
    owner = model
    section: type[Section] | None = model
    alternatives: Mapping[str, type[Section]] = {}
    for part in location:
        if isinstance(part, int):
            continue
        if part in alternatives:
            section = alternatives[part]
        elif section is not None:
            names.append(part)
            owner = section
            section, alternatives = _sections_of(section, part)
    return _Place(tuple(names), owner)


def _sections_of(
    section: type[Section], name: str
) -> tuple[type[Section] | None, Mapping[str, type[Section]]]:
    """Return the section in a field, or the sections that are alternatives to other types."""
    if name not in section.model_fields:
        return None, {}
    annotation: Any = section.model_fields[name].annotation
    choices = [annotation]
    if get_origin(annotation) in (Union, types.UnionType):
        choices = [choice for choice in get_args(annotation) if choice is not types.NoneType]
    if len(choices) == 1 and get_origin(choices[0]) is list:
        choices = list(get_args(choices[0]))
    sections = [choice for choice in choices if isinstance(choice, type)]
    sections = [choice for choice in sections if issubclass(choice, Section)]
    if len(choices) == 1 and sections:
        return sections[0], {}
    return None, {choice.__name__: choice for choice in sections}


def _describe(place: _Place, details: Any, model: type[Section], data: Mapping[str, Any]) -> str:  # noqa: ANN401
    error_type = details["type"]
    if error_type == "missing":
        return f"{place.field} is missing."
    if error_type == "extra_forbidden":
        hint = _spelling_hint(place, model, data)
        return f"{place.field} is not a field of a survey file. {hint}"
    if error_type == "literal_error" and place.field not in _EXPECTED_BY_FIELD:
        expected = details["ctx"]["expected"]
        message = f"{place.field} must be one of {expected}; got {details['input']!r}."
        matches = get_close_matches(str(details["input"]), re.findall("'([^']*)'", expected), 1)
        return f"{message} Did you mean {matches[0]!r}?" if matches else message
    expected = _EXPECTED_BY_FIELD.get(place.field.removeprefix("question."))
    if expected is None:
        expected = _EXPECTED_BY_ERROR.get(error_type, "of a different type")
    return f"{place.field} must be {expected}; got {_type_name(details['input'])}."


def _type_name(value: object) -> str:
    for python_type, name in _TYPE_NAMES.items():
        if isinstance(value, python_type):
            return name
    return "an unsupported type"


# --- unknown fields -------------------------------------------------------------------------------


def _spelling_hint(place: _Place, model: type[Section], data: Mapping[str, Any]) -> str:
    """Say which field was probably meant, or where the field belongs, or which fields there are."""
    name = place.names[-1]
    home = _section_with(name, model)
    if home == "":
        return f"Move {name} to the top of the file, before the first section."
    if home is not None:
        return f"Move {name} to the section [{home}]."
    matches = get_close_matches(name.lower(), place.section.model_fields, 1, _MIN_SIMILARITY)
    if matches:
        return f"Did you mean {matches[0]}?"
    field_names = ", ".join(_fields_of_kind(place, data))
    return f"Allowed fields: {field_names}."


def _section_with(name: str, model: type[Section]) -> str | None:
    """Return the section that has a field of this name; "" if the field is outside of sections."""
    if name in model.model_fields:
        return ""
    for section_name in model.model_fields:
        section, _ = _sections_of(model, section_name)
        if section is not None and name in section.model_fields:
            return section_name
    return None


def _fields_of_kind(place: _Place, data: Mapping[str, Any]) -> Sequence[str]:
    """Return the fields of a section, or only those for its kind if that is known."""
    section_names = place.names[:-1]
    value: Any = data
    for name in section_names:
        value = value.get(name) if isinstance(value, Mapping) else None
    kind = value.get("kind") if isinstance(value, Mapping) else None
    fields_by_kind = _FIELDS_BY_KIND.get(section_names[-1] if section_names else "", {})
    if isinstance(kind, str) and kind in fields_by_kind:
        return ("kind", *fields_by_kind[kind])
    return list(place.section.model_fields)
