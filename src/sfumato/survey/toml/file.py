"""Read TOML survey files.

Each error message names the file, the line and the field, and says how to fix it.
"""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from sfumato.designer import mechanism_for
from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.errors import InvalidSurvey, NoClosedForm, SfumatoError
from sfumato.foundation.formatting import printable
from sfumato.mechanisms import Mechanism
from sfumato.survey.answer_columns import AnswerColumns
from sfumato.survey.content import require_toml
from sfumato.survey.description import (
    ABOUT_FIELDS,
    WORST_CASE_MARGINS,
    Description,
    require_about,
)
from sfumato.survey.question import DEFAULT_QUESTION, Question, require_name
from sfumato.survey.resolved import read_survey_file
from sfumato.survey.toml.companion_files import read_columns
from sfumato.survey.toml.context import (
    CONTEXT_FIELDS_BY_KIND,
    ContextFields,
    read_context,
)
from sfumato.survey.toml.problems import FieldProblem, describe_problems
from sfumato.survey.toml.schema import (
    DOMAIN_FIELDS_BY_KIND,
    DomainFields,
    MechanismFields,
    RepeatFields,
    Section,
    require_only,
    require_value,
)
from sfumato.survey.toml.source import SurveySource
from sfumato.survey.toml.table import TableFields, read_table

_QUESTION_EXAMPLE = """[[question]]
name = "place"
[question.domain]
kind = "labels"
labels = ["park", "café", "clinic"]
[question.context]
kind = "uniform"
epsilon = 1.0
"""


class QuestionFields(Section):
    """``[[question]]``: a question with a name. It replaces ``[domain]`` and ``[context]``."""

    name: str = Field(
        description="The name of the question, one line of at most 100 printable characters. "
        f"Without `[[question]]`, the name is `{DEFAULT_QUESTION}`.",
        examples=[_QUESTION_EXAMPLE],
    )
    domain: DomainFields = Field(
        description="The possible answers, with the keys of `[domain]`.",
        examples=[_QUESTION_EXAMPLE],
    )
    context: ContextFields = Field(
        description="The promise, with the keys of `[context]`.",
        examples=[_QUESTION_EXAMPLE],
    )


class FileFields(Section):
    """The top-level fields of a survey file."""

    name: str = Field(
        description="The name of the survey, one line of at most 100 printable characters. Give "
        "every survey its own name: two surveys with the same name and promise accept each "
        "other's reports.",
        examples=['name = "lunch-2026"\n'],
    )
    title: str = Field(
        default="",
        description="The question, as people read it.",
        examples=['title = "Did you eat out today?"\n'],
    )
    text: str = Field(
        default="",
        description="What else people should know, such as why you ask.",
        examples=['text = "The city plans more benches in parks."\n'],
    )
    contact: str = Field(
        default="",
        description="The contact for questions about the survey.",
        examples=['contact = "survey@example.org"\n'],
    )
    minimum_reports: int = Field(
        default=0,
        description="The smallest number of reports for an estimate. With fewer reports, there is "
        "no result.",
        examples=["minimum_reports = 1000\n"],
    )
    opens: str = Field(
        default="",
        description="The time (ISO 8601, in UTC unless it names a zone) from which the aggregator "
        "accepts reports. A date means the start of that day. Without it, the survey is open from "
        "the start.",
        examples=['opens = "2026-11-01"\n'],
    )
    closes: str = Field(
        default="",
        description="The time (ISO 8601, in UTC unless it names a zone) from which the aggregator "
        "rejects reports. A date means the start of that day. Without it, the survey stays open.",
        examples=['closes = "2026-11-30T18:00Z"\n'],
    )
    repeat: Literal["once"] | RepeatFields = Field(
        default="once",
        description="How often a device reports: once, or once in every period.",
        examples=['repeat = "once"\n'],
    )
    reports_per_upload: int | None = Field(
        default=None,
        description="How many reports an upload may contain without a sender's key, from 1 to "
        "65,536. Without it, the aggregator decides, and accepts one.",
        examples=["reports_per_upload = 50\n"],
    )
    edition: Literal[1, 2] = Field(
        default=1,
        description="The edition of the file, which fixes its defaults and the format of its data.",
        examples=["edition = 2\n"],
    )
    domain: DomainFields | None = Field(
        default=None,
        description="The possible answers. Required without `[[question]]`.",
        examples=['[domain]\nkind = "range"\nsize = 10\n'],
    )
    context: ContextFields | None = Field(
        default=None,
        description="The promise. Required without `[[question]]`.",
        examples=['[context]\nkind = "uniform"\nepsilon = 1.0\n'],
    )
    question: list[QuestionFields] | None = Field(
        default=None,
        description="A question with a name, instead of `[domain]` and `[context]`. In this "
        "version, a survey has exactly one question.",
        examples=[_QUESTION_EXAMPLE],
    )
    mechanism: MechanismFields = Field(
        default=MechanismFields(),
        description="How answers are randomized. Without this section, Sfumato chooses the "
        "closed-form mechanism with the smallest worst-case error.",
        examples=['[domain]\nkind = "range"\nsize = 10\n[mechanism]\ncode = "cyclic"\n'],
    )
    table: TableFields = Field(
        default=TableFields(),
        description="How the commands read a table of answers. This section stays with the file: "
        "it is not part of the survey, and no device sees it.",
        examples=['[table]\ncolumn = "place"\n'],
    )


FIELDS_OF_EDITION_2 = frozenset(
    {"question", "reports_per_upload", "table", "mechanism.worst_case_margin"}
)
"""The fields that a file of edition 1 cannot have."""


@dataclass(frozen=True, kw_only=True)
class FileDescription(Description):
    """The description in a survey file, with the fields that the survey itself does not have."""

    domain_fields: DomainFields
    mechanism_fields: MechanismFields
    source: SurveySource

    @property
    def sections(self) -> dict[str, dict[str, Any]]:
        """The sections that cannot be derived from a survey, for saving it as TOML again.

        They are ``[mechanism]``, and ``[domain]`` for a box of H3 cells.
        """
        sections = {"mechanism": self.mechanism_fields.model_dump(exclude_defaults=True)}
        if self.domain_fields.kind == "h3" and self.domain_fields.file is None:
            sections["domain"] = self.domain_fields.model_dump(exclude_unset=True)
        return sections

    @cached_property
    def mechanism(self) -> Mechanism:
        """The closed-form mechanism for the context, chosen on first use."""
        fields = self.mechanism_fields
        options: dict[str, Any] = {"code": fields.code, "max_bits": fields.max_bits}
        if fields.sensitive_share is not None:
            with self.source.locate_errors():
                options["sensitive_share"] = _parse_share(fields.sensitive_share)
        margin = self._worst_case_margin()
        if margin is not None:
            options["worst_case_margin"] = margin
        with self.source.locate_errors(), _prefix_errors("mechanism"):
            return mechanism_for(self.context, **options)

    def _worst_case_margin(self) -> float | None:
        """Return the margin in the file or the edition's, or ``None`` if neither applies."""
        fields = self.mechanism_fields
        if "worst_case_margin" in fields.model_fields_set:
            with self.source.locate_errors():
                return _parse_margin(fields.worst_case_margin)
        margin = WORST_CASE_MARGINS[self.edition]
        has_fixed_choice = fields.code != "best" or fields.sensitive_share is not None
        return None if margin == 0 or has_fixed_choice else margin


def read_survey_toml(path: Path) -> FileDescription:
    """Read a survey file. Reject other files, such as tables and resolved surveys."""
    raw = read_survey_file(path)
    require_toml(raw, path)
    return parse_survey_toml(raw, path.parent, path.name)


def parse_survey_toml(raw: bytes, folder: Path, name: str = "the survey file") -> FileDescription:
    """Parse a survey file, which error messages call ``name``.

    Paths in the file are relative to ``folder``.
    """
    name = printable(name)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidSurvey(f"{name} is not a survey file: it must be UTF-8 text.") from None
    source = SurveySource(name, text)
    file = _validate(_parse_toml(text, name), source)
    with source.locate_errors():
        return _describe(file, folder, source)


def _parse_toml(text: str, name: str) -> dict[str, Any]:
    try:
        # Keep decimals as typed, so 0.1 is exactly one tenth.
        return tomllib.loads(text, parse_float=_parse_decimal)
    except tomllib.TOMLDecodeError as problem:
        raise InvalidSurvey(_describe_syntax_error(printable(str(problem)), name)) from None
    except (RecursionError, ValueError, ArithmeticError):
        raise InvalidSurvey(
            f"{name} is not valid TOML: it is nested too deeply, or a number is too long."
        ) from None


def _describe_syntax_error(reason: str, name: str) -> str:
    """Move the line in the reason that ``tomllib`` gives to the front."""
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", reason)
    if match is None:
        return f"{name} is not valid TOML: {reason}."
    return f"{name}, line {match[2]}: not valid TOML in column {match[3]}: {match[1]}."


def _validate(data: dict[str, Any], source: SurveySource) -> FileFields:
    problems: list[FieldProblem] = []
    if type(data.get("edition", 1)) is not int:  # pydantic would accept true and 1.0
        problems.append(FieldProblem(("edition",), "edition must be 1 or 2."))
        data = {**data, "edition": 1}
    try:
        file = FileFields.model_validate(data)
    except ValidationError as error:
        problems += describe_problems(error, FileFields, data)
    if problems:
        problems.sort(key=lambda each: source.line(each.path) or 0)
        messages = [source.locate(each.path, printable(each.message)) for each in problems]
        raise InvalidSurvey("\n".join(messages))
    return file


def _parse_decimal(text: str) -> Decimal | str:
    """Return a number exactly as typed.

    If it is not a valid ``Decimal``, return its text, which validation then rejects.
    """
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def _describe(file: FileFields, folder: Path, source: SurveySource) -> FileDescription:
    about = {name: getattr(file, name) for name in ABOUT_FIELDS}
    about["repeat"] = file.repeat if isinstance(file.repeat, str) else file.repeat.model_dump()
    about["reports_per_upload"] = file.reports_per_upload
    problems: list[str] = []
    if file.edition == 1 and "worst_case_margin" in file.mechanism.model_fields_set:
        problems.append(str(_edition_error("mechanism.worst_case_margin", file)))
    if file.edition == 1 and file.reports_per_upload is not None:
        problems.append(str(_edition_error("reports_per_upload", file)))
    with _collect_errors(problems):
        require_name(file.name, "name")
    with _collect_errors(problems):
        require_about(about)
    with _collect_errors(problems):
        question_fields = _require_question(file)
        question = _read_question(question_fields, folder)
    with _collect_errors(problems):
        columns = _read_columns(file)
    if not problems:
        with _collect_errors(problems), _prefix_errors("table"):
            columns.check_rules(question.context.domain)
    if problems:
        raise InvalidSurvey("\n".join(problems))
    return FileDescription(
        file.name,
        (question,),
        about,
        file.edition,
        columns,
        domain_fields=question_fields.domain,
        mechanism_fields=file.mechanism,
        source=source,
    )


def _read_columns(file: FileFields) -> AnswerColumns:
    if file.edition == 1 and "table" in file.model_fields_set:
        raise _edition_error("table", file)
    return read_table(file.table)


def _edition_error(field: str, file: FileFields) -> InvalidSurvey:
    has_edition = "edition" in file.model_fields_set
    remedy = "Change edition = 1 to edition = 2" if has_edition else "Add edition = 2 to the file"
    return InvalidSurvey(
        f"{field} is a field of edition 2. {remedy}. This changes the survey's fingerprint, so "
        "do it only before you collect reports."
    )


@contextmanager
def _collect_errors(problems: list[str]) -> Iterator[None]:
    """Append the message of an error to ``problems``, so that all errors can be shown at once."""
    try:
        yield
    except InvalidSurvey as problem:
        problems.append(str(problem))


def _require_question(file: FileFields) -> QuestionFields:
    """Return the question, which ``[domain]`` and ``[context]`` or ``[[question]]`` describe."""
    if file.question is None:
        if file.domain is None or file.context is None:
            missing = [name for name in ("domain", "context") if getattr(file, name) is None]
            raise InvalidSurvey("\n".join(f"{name} is missing." for name in missing))
        return QuestionFields(name=DEFAULT_QUESTION, domain=file.domain, context=file.context)
    if file.edition == 1:
        raise _edition_error("question", file)
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
    problems: list[str] = []
    with _collect_errors(problems):
        require_name(fields.name, "question.name")
    with _collect_errors(problems), _prefix_errors("domain"):
        table = _read_label_table(fields.domain, folder)
        domain = _read_domain(fields.domain, table)
    if problems:
        # A context needs a domain, but its fields can be checked without one.
        with _collect_errors(problems):
            require_only(fields.context, "context", CONTEXT_FIELDS_BY_KIND[fields.context.kind])
        raise InvalidSurvey("\n".join(problems))
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


def _parse_margin(value: Any) -> float:  # noqa: ANN401
    try:
        margin = float(value)
    except ValueError:
        margin = math.nan
    if not 0 <= margin < math.inf:
        raise InvalidSurvey(
            f"mechanism.worst_case_margin must be a number of at least 0; got {value}."
        )
    return margin


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
    require_only(fields, "domain", DOMAIN_FIELDS_BY_KIND[fields.kind])
    if fields.kind == "labels":
        if (fields.labels is None) == (fields.file is None):
            raise InvalidSurvey("domain needs either labels or file, not both.")
        labels = table["label"] if fields.labels is None else fields.labels
        return Domain(labels, other=fields.other)
    if fields.kind == "range":
        size = require_value(fields.size, "domain.size", "an integer, the number of symbols")
        return IntegerDomain(size, start=fields.start)
    edges = ("south", "north", "west", "east")
    if fields.kind == "grid":
        values = [_require_degrees(fields, name) for name in (*edges, "step")]
        return GridDomain(*values, other=fields.other)
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
