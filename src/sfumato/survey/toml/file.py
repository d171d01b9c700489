"""The survey file: TOML that a person writes. Every message names the field and says what would be right."""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sfumato.contexts import Context
from sfumato.designer import mechanism_for
from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.errors import InvalidSurvey, NoClosedForm, SfumatoError
from sfumato.foundation.printable import printable
from sfumato.mechanisms import Mechanism
from sfumato.survey.description import Description
from sfumato.survey.toml.companion_files import read_columns
from sfumato.survey.toml.context import context_of_section
from sfumato.survey.toml.schema import (
    DomainFields,
    FileFields,
    MechanismFields,
    error_text,
    require_only,
    require_value,
)

__all__ = ["Described", "read_toml"]


@dataclass(frozen=True)
class Described(Description):
    """What a survey file describes, and what it wishes of the mechanism."""

    wishes: MechanismFields

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism on the shelf that fits, or ``NoClosedForm``. Chosen on first use."""
        return _within("mechanism", lambda: _mechanism(self.wishes, self.context))


def read_toml(raw: bytes, folder: Path) -> Described:
    """Read a survey file; ``folder`` is where the files that it names are."""
    try:
        # Decimals stay as they were typed: 0.1 is one tenth.
        data = tomllib.loads(raw.decode("utf-8-sig"), parse_float=_decimal)
    except UnicodeDecodeError:
        raise InvalidSurvey("a survey file must be text in UTF-8.") from None
    except tomllib.TOMLDecodeError as problem:
        raise InvalidSurvey(f"the survey file is not TOML: {problem}.") from None
    except (RecursionError, ValueError, ArithmeticError):
        raise InvalidSurvey(
            "the survey file is not TOML that can be read: it is nested too deeply, or a number is too long."
        ) from None
    try:
        file = FileFields.model_validate(data)
    except ValidationError as problem:
        mistakes = dict.fromkeys(printable(error_text(error)) for error in problem.errors())
        raise InvalidSurvey("\n".join(mistakes)) from None
    return _describe(file, folder)


def _decimal(text: str) -> Decimal | str:
    """A number as it was typed; one that no decimal can hold stays text, for its field to refuse."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def _describe(file: FileFields, folder: Path) -> Described:
    table = _label_table(file.domain, folder)
    domain = _within("domain", lambda: _domain(file.domain, table))
    context = _within("context", lambda: context_of_section(file.context, domain, table, folder))
    repeat = file.repeat if isinstance(file.repeat, str) else file.repeat.model_dump()
    about = {
        name: getattr(file, name)
        for name in ("title", "text", "contact", "minimum_reports", "opens", "closes")
    }
    return Described(file.name, context, {**about, "repeat": repeat}, file.mechanism)


def _mechanism(given: MechanismFields, context: Context) -> Mechanism:
    chosen: dict[str, Any] = {"code": given.code, "max_bits": given.max_bits}
    if given.sensitive_share is not None:
        chosen["sensitive_share"] = _share(given.sensitive_share, "mechanism.sensitive_share")
    return mechanism_for(context, **chosen)


def _share(value: Any, name: str) -> float:  # noqa: ANN401
    try:
        share = float(value)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise InvalidSurvey(f"{name} must be a number from 0 to 1; found {value}.")
    return share


# --- domain ----------------------------------------------------------------------------------------------------------


def _domain(given: DomainFields, table: Mapping[str, Sequence[str]]) -> Domain:
    if given.kind == "labels":
        require_only(given, "domain", ("labels", "file", "other"))
        if (given.labels is None) == (given.file is None):
            raise InvalidSurvey("domain needs either labels or file, not both.")
        return Domain(table["label"] if given.labels is None else given.labels, other=given.other)
    if given.kind == "range":
        require_only(given, "domain", ("size", "start"))
        return IntegerDomain(
            require_value(given.size, "domain.size", "a whole number of symbols"), start=given.start
        )
    edges = ("south", "north", "west", "east")
    if given.kind == "grid":
        require_only(given, "domain", (*edges, "step", "other"))
        values = [
            require_value(getattr(given, edge), f"domain.{edge}", "degrees")
            for edge in (*edges, "step")
        ]
        return GridDomain(*values, other=given.other)
    require_only(given, "domain", (*edges, "resolution", "file", "other"))
    if given.file is not None:
        return H3Domain(table["label"], other=given.other)
    box = {edge: _degrees(getattr(given, edge), f"domain.{edge}") for edge in edges}
    resolution = require_value(
        given.resolution, "domain.resolution", "0 to 15, or file = a list of cells"
    )
    return H3Domain.box(resolution, other=given.other, **box)


def _degrees(value: Any, name: str) -> float:  # noqa: ANN401
    try:
        return float(require_value(value, name, "degrees"))
    except ValueError:
        raise InvalidSurvey(f"{name} must be a number of degrees; found text.") from None


def _label_table(given: DomainFields, folder: Path) -> Mapping[str, Sequence[str]]:
    """The columns of the labels file, if there is one: label, and whatever else it holds."""
    if given.file is None:
        return {}
    table = read_columns(folder / given.file, "domain.file")
    if "label" not in table:
        raise InvalidSurvey(
            f"domain.file: {given.file} must have a column named label; found {sorted(table)}."
        )
    return table


def _within(section: str, make: Any) -> Any:  # noqa: ANN401
    """Errors of the rooms below, with the section of the file in front."""
    try:
        return make()
    except (InvalidSurvey, NoClosedForm):
        raise
    except SfumatoError as problem:
        raise InvalidSurvey(f"{section}: {problem}") from problem
