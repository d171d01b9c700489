"""The fields of a survey file, and error messages for invalid fields."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from sfumato.errors import InvalidSurvey

TextOrInteger = str | int


def _require_number(value: object) -> object:
    """Reject a value that cannot be a number. The code that uses the number checks its range."""
    if isinstance(value, bool) or not isinstance(value, Decimal | int | str):
        raise ValueError("a number")  # noqa: TRY004 - pydantic handles only ValueError
    return value


Number = Annotated[Any, BeforeValidator(_require_number)]


class Section(BaseModel):
    """A TOML table in the survey file. Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


_S = TypeVar("_S", bound=Section)


class DomainFields(Section):
    """The fields of ``[domain]``. ``kind`` determines which of the others apply."""

    kind: Literal["labels", "range", "grid", "h3"]
    labels: list[TextOrInteger] | None = None
    file: str | None = None
    other: TextOrInteger | None = None
    size: int | None = None
    start: int = 0
    south: Number | None = None
    north: Number | None = None
    west: Number | None = None
    east: Number | None = None
    step: Number | None = None
    resolution: int | None = None


class MechanismFields(Section):
    """The fields of ``[mechanism]``."""

    code: Literal["best", "hadamard", "randomized", "cyclic"] = "best"
    max_bits: int | None = None
    sensitive_share: Number | None = None


class RepeatFields(Section):
    """The fields of ``repeat``, if it is not "once"."""

    every: str
    distinct: int


# What a field must be, for each type of pydantic error.
_EXPECTED_BY_ERROR = {
    "int_type": "an integer",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "value_error": "a number",
}
# What a field must be, for fields that accept several types.
_EXPECTED_BY_FIELD = {
    "domain.labels": "a list of text or integers",
    "repeat": '"once", or { every = "week", distinct = 3 }',
}
# How many parts of a location name a field. The parts after them are pydantic's alternatives.
_DEPTH = {"domain": 2, "context": 2, "mechanism": 2, "question": 2}
_TYPE_NAMES = {
    str: "text",
    bool: "true or false",
    int: "an integer",
    Decimal: "a decimal number",
    list: "a list",
    dict: "a table",
}


def describe_error(error: Any, expected_in_context: Mapping[str, str]) -> str:  # noqa: ANN401
    """Describe a pydantic error in terms of the survey file."""
    # After the field's name, the location contains pydantic's names for alternative types.
    names = [part for part in error["loc"] if isinstance(part, str)]
    depth = _DEPTH.get(names[0], 1)
    if names[0] == "question" and names[1:2] in (["domain"], ["context"]):
        depth = 3
    field = ".".join(names[:depth])
    error_type = error["type"]
    if error_type == "missing":
        return f"repeat.{names[-1]} is missing." if field == "repeat" else f"{field} is missing."
    if error_type == "extra_forbidden":
        return f"{field} is not a field of a survey file. Check its spelling."
    if error_type == "literal_error" and field != "repeat":
        return f"{field} must be one of {error['ctx']['expected']}; got {error['input']!r}."
    expected_by_field = {**_EXPECTED_BY_FIELD, **expected_in_context}
    expected = expected_by_field.get(field) or _EXPECTED_BY_ERROR.get(
        error_type, "of a different type"
    )
    return f"{field} must be {expected}; got {_type_name(error['input'])}."


def _type_name(value: object) -> str:
    for python_type, name in _TYPE_NAMES.items():
        if isinstance(value, python_type):
            return name
    return "an unsupported type"


def require_value(value: Any, name: str, expected: str) -> Any:  # noqa: ANN401
    """Return ``value``; if it is missing, raise an error that says what to write."""
    if value is None:
        raise InvalidSurvey(f"{name} is missing: it must be {expected}.")
    return value


def require_section(section: _S | None, name: str) -> _S:
    """Return a section of the file; raise an error if it is missing."""
    if section is None:
        raise InvalidSurvey(f"{name} is missing.")
    return section


def require_only(section: Section, name: str, allowed: Sequence[str]) -> None:
    """Reject fields that are not ``allowed`` for the kind of a section."""
    kind = getattr(section, "kind", "")
    disallowed = sorted(section.model_fields_set - {"kind", *allowed})
    if disallowed:
        raise InvalidSurvey(
            f"{name}.{disallowed[0]} does not apply to kind = {kind!r}; "
            f"allowed fields: {', '.join(allowed)}."
        )
