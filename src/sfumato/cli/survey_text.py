"""The text of new survey files: templates, and files for a column of answers."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.domains import Domain, Label
    from sfumato.survey import AnswerColumns

__all__ = ["TEMPLATES", "About", "ContextText", "fill_template", "survey_text"]

TEMPLATES = {
    "yes-no": """name = "my-survey"                 # unique per question
edition = 2
title = "Have you ever …?"
contact = ""                       # contact for questions
minimum_reports = 0                # with fewer reports, there is no result

[domain]
kind = "labels"
labels = ["no", "yes"]

[context]
kind = "high-low"                  # only "yes" needs protection
epsilon = 1.0
sensitive = ["yes"]
""",
    "labels": """name = "my-survey"                 # unique per question
edition = 2
title = "Where did you have lunch?"
contact = ""                       # contact for questions
minimum_reports = 0                # with fewer reports, there is no result

[domain]
kind = "labels"
labels = ["park", "café", "clinic", "bar", "office"]
other = "somewhere else"           # replaces unknown values; without it, they are rejected

[context]
kind = "high-low"                  # uniform | high-low | tiers | blocks | metric | matrix
epsilon = 1.0
sensitive = ["clinic", "bar"]
""",
    "grid": """name = "my-survey"                 # unique per question
edition = 2
title = "Where do people check in?"
contact = ""                       # contact for questions
minimum_reports = 0                # with fewer reports, there is no result

[domain]
kind = "grid"
south = 25.0
north = 50.0
west = -130.0
east = -60.0
step = 0.2

[context]
kind = "blocks"                    # hide the cell, not the tile
epsilon = 1.0
rows = 25
columns = 70
""",
}


@dataclass(frozen=True)
class About:
    """What a survey shows to people: its name, title and contact.

    ``minimum_reports`` is the smallest number of reports for a result.
    """

    name: str
    title: str = ""
    contact: str = ""
    minimum_reports: int = 0


@dataclass(frozen=True)
class ContextText:
    """The context section of a survey file: its kind, its ε as typed, and its other fields.

    ``sensitive_share`` is the share for the mechanism section, as typed, or "".
    """

    kind: str
    epsilon: str
    fields: Mapping[str, Sequence["Label"]]
    sensitive_share: str = ""


def fill_template(template: str, epsilon: str, about: About) -> str:
    """Return the text of a template for a survey."""
    if template not in TEMPLATES:
        raise InvalidArgument(f"template must be one of {', '.join(TEMPLATES)}; got {template!r}.")
    text = TEMPLATES[template]
    text = text.replace("epsilon = 1.0", f"epsilon = {_format_number(epsilon)}")
    text = text.replace('"my-survey"', _format_value(about.name))
    if about.title:
        text = re.sub("title = .*", lambda _: f"title = {_format_value(about.title)}", text)
    text = text.replace('contact = ""', f"contact = {_format_value(about.contact)}")
    return text.replace("minimum_reports = 0", f"minimum_reports = {about.minimum_reports}")


def survey_text(
    about: About, domain: "Domain", columns: "AnswerColumns", context: ContextText
) -> str:
    """Return the text of a survey file for a column of answers."""
    from sfumato.survey.toml.table import write_table

    lines = [
        f"name = {_format_value(about.name)}  # unique per question",
        "edition = 2",
        f"title = {_format_value(about.title)}  # the question, as people read it",
        f"contact = {_format_value(about.contact)}  # contact for questions",
        f"minimum_reports = {about.minimum_reports}  # with fewer reports, there is no result",
        "",
        "[domain]",
        'kind = "labels"',
        f"labels = {_format_value(domain.labels)}",
    ]
    if domain.other is not None:
        lines.append(f"other = {_format_value(domain.other)}")
    lines += [
        "",
        "[context]",
        f'kind = "{context.kind}"',
        f"epsilon = {_format_number(context.epsilon)}",
    ]
    for name, labels in context.fields.items():
        lines.append(f"{name} = {_format_value(labels)}")
    if context.sensitive_share:
        share = _format_number(context.sensitive_share)
        lines += ["", "[mechanism]", f"sensitive_share = {share}"]
    lines += ["", "[table]  # how to read your table; no device sees this"]
    for name, value in write_table(columns).items():
        lines.append(f"{name} = {_format_value(value)}")
    return "\n".join(lines) + "\n"


def _format_number(number: str) -> str:
    """Format a number for TOML, as a string if it is not a valid TOML number."""
    is_toml_number = re.fullmatch(r"[0-9]|[1-9][0-9]+|([0-9]|[1-9][0-9]+)\.[0-9]+", number)
    return number if is_toml_number else _format_value(number)


def _format_value(value: object) -> str:
    """Format text, a number or a sequence as TOML.

    A TOML string is a JSON string in which DEL is escaped too.
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_format_value, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)
