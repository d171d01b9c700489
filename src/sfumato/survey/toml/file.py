"""Read TOML survey files. Each error message names the field and says how to fix it."""

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from sfumato.designer import mechanism_for
from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.errors import InvalidSurvey, NoClosedForm, SfumatoError
from sfumato.foundation.formatting import printable
from sfumato.mechanisms import Mechanism
from sfumato.survey.description import Description
from sfumato.survey.question import DEFAULT_QUESTION, Question
from sfumato.survey.toml.companion_files import read_columns
from sfumato.survey.toml.context import EXPECTED_IN_CONTEXT, ContextFields, read_context
from sfumato.survey.toml.schema import (
    DomainFields,
    MechanismFields,
    RepeatFields,
    Section,
    describe_error,
    require_only,
    require_section,
    require_value,
)

_ABOUT_FIELDS = ("title", "text", "contact", "minimum_reports", "opens", "closes")


class QuestionFields(Section):
    """``[[question]]``: a question with a name. It replaces ``[domain]`` and ``[context]``."""

    name: str
    domain: DomainFields
    context: ContextFields


class FileFields(Section):
    """The top-level fields of a survey file."""

    name: str
    title: str = ""
    text: str = ""
    contact: str = ""
    minimum_reports: int = 0
    opens: str = ""
    closes: str = ""
    repeat: Literal["once"] | RepeatFields = "once"
    edition: Literal[1, 2] = 1
    domain: DomainFields | None = None
    context: ContextFields | None = None
    question: list[QuestionFields] | None = None
    mechanism: MechanismFields = MechanismFields()


@dataclass(frozen=True)
class FileDescription(Description):
    """The description in a survey file, with its options for the mechanism."""

    mechanism_fields: MechanismFields

    @cached_property
    def mechanism(self) -> Mechanism:
        """The closed-form mechanism for the context, chosen on first use."""
        fields = self.mechanism_fields
        options: dict[str, Any] = {"code": fields.code, "max_bits": fields.max_bits}
        if fields.sensitive_share is not None:
            options["sensitive_share"] = _parse_share(fields.sensitive_share)
        with _prefix_errors("mechanism"):
            return mechanism_for(self.context, **options)


def parse_survey_toml(raw: bytes, folder: Path) -> FileDescription:
    """Read a survey file. Paths in it are relative to ``folder``."""
    try:
        # Keep decimals as typed, so 0.1 is exactly one tenth.
        data = tomllib.loads(raw.decode("utf-8-sig"), parse_float=_parse_decimal)
    except UnicodeDecodeError:
        raise InvalidSurvey("a survey file must be UTF-8 text.") from None
    except tomllib.TOMLDecodeError as problem:
        raise InvalidSurvey(f"the survey file is not valid TOML: {problem}.") from None
    except (RecursionError, ValueError, ArithmeticError):
        raise InvalidSurvey(
            "the survey file is not valid TOML: it is nested too deeply, or a number is too long."
        ) from None
    try:
        file = FileFields.model_validate(data)
    except ValidationError as problem:
        messages = [
            printable(describe_error(error, EXPECTED_IN_CONTEXT)) for error in problem.errors()
        ]
        distinct_messages = dict.fromkeys(messages)
        raise InvalidSurvey("\n".join(distinct_messages)) from None
    return _describe(file, folder)


def _parse_decimal(text: str) -> Decimal | str:
    """Return a number exactly as typed.

    If it is not a valid ``Decimal``, return its text, which validation then rejects.
    """
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def _describe(file: FileFields, folder: Path) -> FileDescription:
    question = _read_question(_require_question(file), folder)
    about = {name: getattr(file, name) for name in _ABOUT_FIELDS}
    about["repeat"] = file.repeat if isinstance(file.repeat, str) else file.repeat.model_dump()
    return FileDescription(file.name, (question,), about, file.edition, file.mechanism)


def _require_question(file: FileFields) -> QuestionFields:
    """Return the question, which ``[domain]`` and ``[context]`` or ``[[question]]`` describe."""
    if file.question is None:
        domain = require_section(file.domain, "domain")
        context = require_section(file.context, "context")
        return QuestionFields(name=DEFAULT_QUESTION, domain=domain, context=context)
    if file.edition == 1:
        raise InvalidSurvey("question is a field of edition 2. Add edition = 2 to the file.")
    if file.domain is not None or file.context is not None:
        raise InvalidSurvey(
            "a file with question has no domain or context of its own. Move them into the question."
        )
    if len(file.question) != 1:
        raise InvalidSurvey(
            f"question must occur exactly once in this version; got {len(file.question)}."
        )
    return file.question[0]


def _read_question(fields: QuestionFields, folder: Path) -> Question:
    table = _read_label_table(fields.domain, folder)
    with _prefix_errors("domain"):
        domain = _read_domain(fields.domain, table)
    with _prefix_errors("context"):
        context = read_context(fields.context, domain, table, folder)
    return Question(fields.name, context)


def _parse_share(value: Any) -> float:  # noqa: ANN401
    try:
        share = float(value)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise InvalidSurvey(f"mechanism.sensitive_share must be a number from 0 to 1; got {value}.")
    return share


@contextmanager
def _prefix_errors(section: str) -> Iterator[None]:
    """Prefix error messages with the name of the section."""
    try:
        yield
    except (InvalidSurvey, NoClosedForm):
        raise
    except SfumatoError as problem:
        raise InvalidSurvey(f"{section}: {problem}") from problem


# --- domain ---------------------------------------------------------------------------------------


def _read_domain(fields: DomainFields, table: Mapping[str, Sequence[str]]) -> Domain:
    if fields.kind == "labels":
        require_only(fields, "domain", ("labels", "file", "other"))
        if (fields.labels is None) == (fields.file is None):
            raise InvalidSurvey("domain needs either labels or file, not both.")
        labels = table["label"] if fields.labels is None else fields.labels
        return Domain(labels, other=fields.other)
    if fields.kind == "range":
        require_only(fields, "domain", ("size", "start"))
        size = require_value(fields.size, "domain.size", "an integer, the number of symbols")
        return IntegerDomain(size, start=fields.start)
    edges = ("south", "north", "west", "east")
    if fields.kind == "grid":
        require_only(fields, "domain", (*edges, "step", "other"))
        values = [_require_degrees(fields, name) for name in (*edges, "step")]
        return GridDomain(*values, other=fields.other)
    require_only(fields, "domain", (*edges, "resolution", "file", "other"))
    if fields.file is not None:
        return H3Domain(table["label"], other=fields.other)
    bounds: dict[str, float] = {}
    for edge in edges:
        try:
            bounds[edge] = float(_require_degrees(fields, edge))
        except ValueError:
            raise InvalidSurvey(f"domain.{edge} must be a number of degrees; got text.") from None
    resolution = require_value(
        fields.resolution, "domain.resolution", "an integer from 0 to 15, unless you set file"
    )
    return H3Domain.box(resolution, other=fields.other, **bounds)


def _require_degrees(fields: DomainFields, name: str) -> Any:  # noqa: ANN401
    return require_value(getattr(fields, name), f"domain.{name}", "a number of degrees")


def _read_label_table(fields: DomainFields, folder: Path) -> Mapping[str, Sequence[str]]:
    """Read the columns of the labels file, including ``label``; return {} if there is no file."""
    if fields.file is None:
        return {}
    table = read_columns(folder / fields.file, "domain.file")
    if "label" not in table:
        raise InvalidSurvey(
            f"domain.file: {fields.file} must have a column named label; "
            f"its columns are {', '.join(table)}."
        )
    return table
