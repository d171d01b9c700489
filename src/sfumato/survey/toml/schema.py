"""The fields of a survey file, and checks for them.

Each field has a description and an example, from which ``tools/survey_file_reference.py`` builds
``docs/survey-file.md``. An example lists only what matters: the tool adds a name, an edition, and
the sections ``[domain]`` and ``[context]`` if they are missing.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from sfumato.errors import InvalidSurvey
from sfumato.survey.description import WORST_CASE_MARGINS

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


_GRID_EXAMPLE = """[domain]
kind = "grid"
south = 47.0
north = 48.0
west = 8.0
east = 9.0
step = 0.5
"""
_H3_EXAMPLE = """[domain]
kind = "h3"
south = 47.3
north = 47.5
west = 8.4
east = 8.6
resolution = 6
"""


class DomainFields(Section):
    """The fields of ``[domain]``. ``kind`` determines which of the others apply."""

    kind: Literal["labels", "range", "grid", "h3"] = Field(
        description="What people answer: one of some labels, an integer in a range, a cell of a "
        "grid of latitudes and longitudes, or a cell of the H3 grid.",
        examples=['[domain]\nkind = "labels"\nlabels = ["no", "yes"]\n'],
    )
    labels: list[TextOrInteger] | None = Field(
        default=None,
        description="The possible answers, in order, each once. Set either `labels` or `file`.",
        examples=['[domain]\nkind = "labels"\nlabels = ["park", "café", "clinic"]\n'],
    )
    file: str | None = Field(
        default=None,
        description="The name of a CSV file whose column `label` contains the possible answers. "
        "The path is relative to the survey file. A file that ends in `.gz` is decompressed.",
        examples=['[domain]\nkind = "labels"\nfile = "places.csv"\n'],
    )
    other: TextOrInteger | None = Field(
        default=None,
        description="The label that replaces missing answers and answers outside the domain. It "
        "is added after the other labels unless it is one of them. Without it, such answers are "
        "rejected.",
        examples=[
            '[domain]\nkind = "labels"\nlabels = ["park", "café", "clinic"]\n'
            'other = "somewhere else"\n'
        ],
    )
    size: int | None = Field(
        default=None,
        description="The number of integers in the range. Required for `range`.",
        examples=['[domain]\nkind = "range"\nsize = 10\n'],
    )
    start: int = Field(
        default=0,
        description="The first integer in the range.",
        examples=['[domain]\nkind = "range"\nsize = 10\nstart = 1\n'],
    )
    south: Number | None = Field(
        default=None,
        description="The southern edge, in degrees of latitude. Required for `grid`, and for `h3` "
        "without `file`.",
        examples=[_GRID_EXAMPLE],
    )
    north: Number | None = Field(
        default=None,
        description="The northern edge, in degrees of latitude. Required for `grid`, and for `h3` "
        "without `file`.",
        examples=[_GRID_EXAMPLE],
    )
    west: Number | None = Field(
        default=None,
        description="The western edge, in degrees of longitude. Required for `grid`, and for `h3` "
        "without `file`.",
        examples=[_GRID_EXAMPLE],
    )
    east: Number | None = Field(
        default=None,
        description="The eastern edge, in degrees of longitude. Required for `grid`, and for `h3` "
        "without `file`.",
        examples=[_GRID_EXAMPLE],
    )
    step: Number | None = Field(
        default=None,
        description="The height and width of a cell, in degrees. It must divide the distances "
        "between opposite edges evenly. Required for `grid`.",
        examples=[_GRID_EXAMPLE],
    )
    resolution: int | None = Field(
        default=None,
        description="The resolution of the H3 cells, from 0 (about 4 million km²) to 15 (about a "
        "square metre). Required for `h3` without `file`.",
        examples=[_H3_EXAMPLE],
    )


_EDGES = ("south", "north", "west", "east")

DOMAIN_FIELDS_BY_KIND: Mapping[str, Sequence[str]] = {
    "labels": ("labels", "file", "other"),
    "range": ("size", "start"),
    "grid": (*_EDGES, "step", "other"),
    "h3": (*_EDGES, "resolution", "file", "other"),
}
"""For each kind of domain, the fields that apply."""


class MechanismFields(Section):
    """The fields of ``[mechanism]``."""

    code: Literal["best", "hadamard", "randomized", "cyclic"] = Field(
        default="best",
        description="The code that the mechanism is built on. `best` takes the one with the "
        "smallest worst-case error; `hadamard` is the code of the paper.",
        examples=[
            '[domain]\nkind = "range"\nsize = 10\n[mechanism]\ncode = "hadamard"\n',
        ],
    )
    max_bits: int | None = Field(
        default=None,
        description="The largest size of a report, in bits. Without it, the size has no limit.",
        examples=['[domain]\nkind = "range"\nsize = 10\n[mechanism]\nmax_bits = 4\n'],
    )
    sensitive_share: Number | None = Field(
        default=None,
        description="A guess at the share of people with a sensitive answer, from 0 to 1. It "
        "makes the error small for that share, instead of in the worst case. Only for `high-low` "
        "contexts.",
        examples=[
            '[domain]\nkind = "labels"\nlabels = ["park", "café", "clinic"]\n'
            '[context]\nkind = "high-low"\nepsilon = 1.0\nsensitive = ["clinic"]\n'
            "[mechanism]\nsensitive_share = 0.1\n"
        ],
    )
    worst_case_margin: Number = Field(
        default=WORST_CASE_MARGINS[2],
        description="By how much the worst-case risk may exceed the smallest one: 0.1 is 10 %. In "
        "return, the error is smaller in an ordinary crowd, which is spread evenly over all "
        "answers. Only for `high-low` contexts without `code` and `sensitive_share`; others ignore "
        "the default. Edition 1 has no margin.",
        examples=[
            '[domain]\nkind = "range"\nsize = 1000\n'
            '[context]\nkind = "high-low"\nepsilon = 1.0\nsensitive = [0, 1, 2, 3, 4]\n'
            "[mechanism]\nworst_case_margin = 0\n"
        ],
    )


class RepeatFields(Section):
    """The fields of ``repeat``, if it is not "once"."""

    every: str = Field(
        description="How often a device may report: once in each `day`, `week`, `month` or "
        "`year`, in UTC.",
        examples=['repeat = { every = "week", distinct = 3 }\n'],
    )
    distinct: int = Field(
        description="How many different answers a device may report in all, from 1 to 10,000. The "
        "loss of privacy is at most that many times the promise.",
        examples=['repeat = { every = "month", distinct = 1 }\n'],
    )


EXPECTED_IN_FILE = {
    "domain.labels": "a list of text or integers",
    "table.missing": '"refuse", "skip" or a label',
    "table.missing_codes": "a list of text or integers",
    "table.bins": "a list of numbers",
    "table.allow_other": "true or false",
    "repeat": '"once", or { every = "week", distinct = 3 }',
}
"""For each field that accepts several types, what it must be."""


def toml_number(text: str) -> Decimal | str:
    """Return an exact number as TOML: a decimal, or text if it is a fraction p/q or inf."""
    return text if text == "inf" or "/" in text else Decimal(text)


def no_toml_form(what: str) -> InvalidSurvey:
    """Return the error for a survey that cannot be saved as TOML because of ``what`` it has."""
    return InvalidSurvey(
        f"a survey file in TOML cannot describe {what}. Save the survey as .json instead."
    )


def require_value(value: Any, name: str, expected: str) -> Any:  # noqa: ANN401
    """Return ``value``; if it is missing, raise an error that says what to write."""
    if value is None:
        raise InvalidSurvey(f"{name} is missing: it must be {expected}.")
    return value


def require_only(section: Section, name: str, allowed: Sequence[str]) -> None:
    """Reject fields that are not ``allowed`` for the kind of a section."""
    kind = getattr(section, "kind", "")
    messages = []
    for field in sorted(section.model_fields_set - {"kind", *allowed}):
        messages.append(
            f"{name}.{field} does not apply to kind = {kind!r}; "
            f"allowed fields: {', '.join(allowed)}."
        )
    if messages:
        raise InvalidSurvey("\n".join(messages))
