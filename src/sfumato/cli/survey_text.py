"""The text of new survey files: templates, and files for a column of answers."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.cli.context_choice import ContextChoice
    from sfumato.survey import AnswerColumns

__all__ = ["TEMPLATES", "About", "fill_template", "survey_text"]


@dataclass(frozen=True)
class Template:
    """A question with sections of a survey file, to be edited."""

    title: str
    sections: str


TEMPLATES = {
    "yes-no": Template(
        "Have you ever …?",
        """
[domain]
kind = "labels"
labels = ["no", "yes"]

[context]
kind = "high-low"                  # only "yes" needs protection
epsilon = 1.0
sensitive = ["yes"]
""",
    ),
    "labels": Template(
        "Where did you have lunch?",
        """
[domain]
kind = "labels"
labels = ["park", "café", "clinic", "bar", "office"]
other = "somewhere else"           # replaces unknown values; without it, they are rejected

[context]
kind = "high-low"                  # uniform | high-low | tiers | blocks | metric | matrix
epsilon = 1.0
sensitive = ["clinic", "bar"]
""",
    ),
    "grid": Template(
        "Where do people check in?",
        """
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
    ),
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


def fill_template(name: str, epsilon: str, about: About) -> str:
    """Return the text of a survey file from a template. ``epsilon`` is the ε as typed."""
    from sfumato.foundation.canonical import decimal_text
    from sfumato.randomness import positive_epsilon
    from sfumato.survey.toml.schema import toml_number
    from sfumato.survey.toml.write import toml_value

    if name not in TEMPLATES:
        raise InvalidArgument(f"template must be one of {', '.join(TEMPLATES)}; got {name!r}.")
    template = TEMPLATES[name]
    number = toml_value(toml_number(decimal_text(positive_epsilon(epsilon))))
    sections = template.sections.replace("epsilon = 1.0", f"epsilon = {number}")
    return _header(replace(about, title=about.title or template.title)) + sections


def survey_text(about: About, choice: "ContextChoice", columns: "AnswerColumns") -> str:
    """Return the text of a survey file for a column of answers."""
    from sfumato.survey import DEFAULT_QUESTION, Description, Question
    from sfumato.survey.toml.write import write_survey_toml

    question = Question(DEFAULT_QUESTION, choice.context)
    description = Description(about.name, (question,), {}, 2, columns)
    options = {"mechanism": choice.mechanism_options}
    content = write_survey_toml(description, choice.mechanism, options)
    _, _, sections = content.decode("utf-8").partition("\n[domain]")
    comment = "# how to read your table; no device sees this"
    sections = sections.replace("\n[table]\n", f"\n[table]  {comment}\n")
    return f"{_header(about)}\n[domain]{sections}"


def _header(about: About) -> str:
    """Return the fields before the first section. Empty ones are there to be filled in."""
    from sfumato.survey.toml.write import toml_value

    return (
        f"name = {toml_value(about.name)}  # unique per question\n"
        "edition = 2\n"
        f"title = {toml_value(about.title)}  # the question, as people read it\n"
        f"contact = {toml_value(about.contact)}  # contact for questions\n"
        f"minimum_reports = {about.minimum_reports}  # with fewer reports, there is no result\n"
    )
