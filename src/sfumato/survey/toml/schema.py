"""The fields of a survey file, and what is said of them when they are wrong."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from sfumato.errors import InvalidSurvey

__all__ = [
    "ColumnFields",
    "ContextFields",
    "DomainFields",
    "FileFields",
    "MechanismFields",
    "Number",
    "Section",
    "Text",
    "error_text",
]

Number = Annotated[Any, BeforeValidator(lambda value: _number(value))]
Text = str | int


def _number(value: object) -> object:
    """Keep numbers as they were typed; the code that uses them checks their range."""
    if isinstance(value, bool) or not isinstance(value, Decimal | int | str):
        raise ValueError("a number")  # noqa: TRY004 - what the schema library turns into a message
    return value


class Section(BaseModel):
    """A table of the file: no other fields than these."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


class DomainFields(Section):
    """``[domain]``: which of them mean something depends on the kind."""

    kind: Literal["labels", "range", "grid", "h3"]
    labels: list[Text] | None = None
    file: str | None = None
    other: Text | None = None
    size: int | None = None
    start: int = 0
    south: Number | None = None
    north: Number | None = None
    west: Number | None = None
    east: Number | None = None
    step: Number | None = None
    resolution: int | None = None


class ColumnFields(Section):
    """A column of the labels file, named instead of a list."""

    column: str


class ContextFields(Section):
    """``[context]``: which of them mean something depends on the kind."""

    kind: Literal["uniform", "high-low", "blocks", "tiers", "metric", "matrix"]
    epsilon: dict[str, Number] | list[Number] | Number | None = None
    epsilons: dict[str, Number] | list[Number] | None = None
    across: Number | None = None
    sensitive: list[Text] | ColumnFields | None = None
    rows: int | None = None
    columns: int | None = None
    parents: int | None = None
    nearest: str | None = None
    column: str | None = None
    block_of: list[Text] | dict[str, Text] | None = None
    tier_of: list[Text] | dict[str, Text] | None = None
    distances: list[list[Number]] | str | None = None
    matrix: list[list[Number]] | str | None = None


class MechanismFields(Section):
    """``[mechanism]``."""

    code: Literal["best", "hadamard", "randomized", "cyclic"] = "best"
    max_bits: int | None = None
    sensitive_share: Number | None = None


class RepeatFields(Section):
    """``repeat``, where it is not "once"."""

    every: str
    distinct: int


class FileFields(Section):
    """The whole file."""

    name: str
    title: str = ""
    text: str = ""
    contact: str = ""
    minimum_reports: int = 0
    opens: str = ""
    closes: str = ""
    repeat: Literal["once"] | RepeatFields = "once"
    domain: DomainFields
    context: ContextFields
    mechanism: MechanismFields = MechanismFields()


_WANTED = {
    "int_type": "a whole number",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "value_error": "a number",
}
_FOUND = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    Decimal: "a decimal number",
    list: "a list",
    dict: "a table",
}


_UNIONS = {
    "context.epsilon": "a number, or for blocks a table from block to number, or a list of numbers",
    "context.epsilons": "a table from tier to number, or a list of numbers in the order of tiers",
    "context.sensitive": 'a list of labels, or { column = "…" }',
    "context.block_of": "a list of blocks in the order of labels, or a table from label to block",
    "context.tier_of": "a list of tiers in the order of labels, or a table from label to tier",
    "context.distances": "rows of numbers, or the name of a CSV file",
    "context.matrix": "rows of numbers, or the name of a CSV file",
    "domain.labels": "a list of text or whole numbers",
    "repeat": '"once", or { every = "week", distinct = 3 }',
}


def error_text(error: Any) -> str:  # noqa: ANN401
    """A message of the schema in the words of the file."""
    # What follows the field of the file are the schema's own alternatives.
    names = [part for part in error["loc"] if isinstance(part, str)]
    field = ".".join(names[:2] if names[0] in ("domain", "context", "mechanism") else names[:1])
    kind = error["type"]
    if kind == "missing":
        return f"repeat.{names[-1]} is missing." if field == "repeat" else f"{field} is missing."
    if kind == "extra_forbidden":
        return f"{field} is not a field of a survey file; check its spelling."
    if kind == "literal_error" and field != "repeat":
        return f"{field} must be one of {error['ctx']['expected']}; found {error['input']!r}."
    wanted = _UNIONS.get(field) or _WANTED.get(kind)
    actual = next(
        (words for of, words in _FOUND.items() if isinstance(error["input"], of)), "something else"
    )
    return f"{field} must be {wanted or 'something else'}; found {actual}."


def require_value(value: Any, name: str, wanted: str) -> Any:  # noqa: ANN401
    """The value of a field that must be there; ``wanted`` says what to write."""
    if value is None:
        raise InvalidSurvey(f"{name} is missing: write {wanted}.")
    return value


def require_only(section: Section, name: str, allowed: Sequence[str]) -> None:
    """Refuse fields that mean nothing for the kind of this section."""
    kind = getattr(section, "kind", "")
    strange = sorted(section.model_fields_set - {"kind", *allowed})
    if strange:
        raise InvalidSurvey(
            f"{name}.{strange[0]} means nothing for kind = {kind!r}; allowed: {', '.join(allowed)}."
        )
