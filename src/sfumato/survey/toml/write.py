"""Write a survey as TOML.

The text is parsed again before it is returned: a file that describes a different survey must never
appear.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from sfumato.designer.choose import CODES
from sfumato.domains import Domain
from sfumato.errors import InvalidSurvey, SfumatoError
from sfumato.foundation.canonical import canonical_bytes
from sfumato.mechanisms import Mechanism
from sfumato.survey.description import ABOUT_FIELDS, Description
from sfumato.survey.promise import about_record, promise_record
from sfumato.survey.question import DEFAULT_QUESTION
from sfumato.survey.toml.context import write_context
from sfumato.survey.toml.file import FileDescription, parse_survey_toml
from sfumato.survey.toml.schema import no_toml_form, toml_number
from sfumato.survey.toml.table import write_table

__all__ = ["toml_value", "write_survey_toml"]

# tomli_w writes every item of an array on a line of its own. Text never contains line ends, because
# they are escaped, so the pattern cannot match inside of text.
_ARRAY = re.compile(r"\[\n(?P<items>(?:[ ]+[^ \[\]\n][^\[\]\n]*,\n)+)[ ]*\]")
_MAX_ARRAY_LENGTH = 80


def write_survey_toml(
    description: Description, mechanism: Mechanism, sections: Mapping[str, Mapping[str, Any]]
) -> bytes:
    """Return a survey file with the same fingerprints and the same ``[table]`` as the survey.

    ``sections`` are the sections ``[domain]`` and ``[mechanism]`` of the file that the survey was
    read from, if there is one. Without them, the fields are found by trial. Raise ``InvalidSurvey``
    if TOML cannot describe the survey.
    """
    data = _file_fields(description, sections.get("domain", {}))
    _require_same_texts(description, _parse_fields(data))
    promise = canonical_bytes(promise_record(description, mechanism))
    options = sections.get("mechanism", {})
    for candidate in _candidate_options(mechanism, description.edition, options):
        content = _dump(_add_mechanism(data, candidate))
        if _parse_promise(content) == promise:
            return content
    raise no_toml_form(
        "this survey's promise and mechanism: no [mechanism] section leads to the same integers. "
        "Perhaps the mechanism was designed"
    )


def toml_value(value: object) -> str:
    """Return a value as TOML.

    >>> toml_value(["a", 1, True])
    '["a", 1, true]'
    """
    return _dump({"value": value}).decode("utf-8").removeprefix("value = ").removesuffix("\n")


def _require_same_texts(description: Description, parsed_description: Description) -> None:
    """Raise an error if the file would show other texts, or read a table in another way."""
    parsed_about = about_record(parsed_description)
    for name, value in about_record(description).items():
        if parsed_about[name] != value:
            raise no_toml_form(f"this {name}")
    if parsed_description.table != description.table:
        raise no_toml_form("how this survey reads a table")


def _add_mechanism(data: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Add the section ``[mechanism]``, unless it is empty. The section ``[table]`` stays last."""
    fields = dict(data)
    table = fields.pop("table", None)
    if options:
        fields["mechanism"] = options
    if table:
        fields["table"] = table
    return fields


def _candidate_options(
    mechanism: Mechanism, edition: int, options: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield the fields of ``[mechanism]`` that may lead to the mechanism, the likeliest first."""
    yield options
    codes: list[dict[str, Any]] = [{}]
    if edition >= 2:
        codes.append({"worst_case_margin": 0})
    codes += [{"code": code} for code in CODES]
    yield from codes
    for code in codes:
        yield {**code, "max_bits": mechanism.bits}


def _dump(data: Mapping[str, Any]) -> bytes:
    text = tomli_w.dumps(data)
    return _ARRAY.sub(_join_short_array, text).encode("utf-8")


def _join_short_array(match: re.Match[str]) -> str:
    """Return an array on one line if it is short; otherwise, return it unchanged."""
    items = [line.strip().removesuffix(",") for line in match["items"].split("\n")[:-1]]
    line = f"[{', '.join(items)}]"
    return line if len(line) <= _MAX_ARRAY_LENGTH else match.group()


def _parse(content: bytes) -> FileDescription:
    # The file refers to no other files, so the folder does not matter.
    return parse_survey_toml(content, Path())


def _parse_fields(data: Mapping[str, Any]) -> FileDescription:
    """Return the description in a survey file with these fields."""
    try:
        return _parse(_dump(data))
    except SfumatoError as problem:
        raise InvalidSurvey(
            f"TOML cannot describe this survey: {problem} Save the survey as .json instead."
        ) from problem


def _parse_promise(content: bytes) -> bytes:
    """Return what a survey file promises, as canonical JSON; nothing if it has no mechanism."""
    description = _parse(content)
    try:
        return canonical_bytes(promise_record(description, description.mechanism))
    except SfumatoError:
        return b""


# --- the fields of the file -----------------------------------------------------------------------


def _file_fields(description: Description, domain_section: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": description.name, "edition": description.edition}
    for name in ABOUT_FIELDS:
        if description.about[name]:
            fields[name] = description.about[name]
    if description.about["reports_per_upload"] is not None:
        fields["reports_per_upload"] = description.about["reports_per_upload"]
    if description.every:
        fields["repeat"] = dict(description.about["repeat"])
    (question,) = description.questions
    sections = {
        "domain": domain_section or _domain_fields(question.context.domain),
        "context": write_context(question.context),
    }
    if question.name == DEFAULT_QUESTION:
        fields.update(sections)
    else:
        fields["question"] = [{"name": question.name, **sections}]
    table = write_table(description.table)
    if table:
        fields["table"] = table
    return fields


def _domain_fields(domain: Domain) -> dict[str, Any]:
    """Return the fields of ``[domain]``, which are those of the record without empty ones."""
    record: Any = domain.to_record()
    if "cells" in record:
        raise no_toml_form("H3 cells without a file that lists them")
    fields = {name: value for name, value in record.items() if value is not None}
    for name in ("south", "north", "west", "east", "step"):
        if name in fields:
            fields[name] = toml_number(fields[name])
    return fields
