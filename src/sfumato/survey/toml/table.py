"""Read the ``[table]`` section of a survey file: how commands read a table of answers."""

from typing import Any, Literal

from pydantic import Field

from sfumato.errors import InvalidSurvey
from sfumato.survey.answer_columns import AnswerColumns
from sfumato.survey.toml.schema import Number, Section, TextOrInteger

_AGES_EXAMPLE = """[domain]
kind = "labels"
labels = ["under 18", "18 to 64", "65 and over"]
[table]
column = "age"
bins = [18, 65]
"""


class TableFields(Section):
    """``[table]``: how the commands read a table of answers. It is not part of the survey."""

    column: str | None = Field(
        default=None,
        description="The column with the answers. The option `--column` overrides it.",
        examples=['[table]\ncolumn = "place"\n'],
    )
    latitude: str | None = Field(
        default=None,
        description="The column with latitudes, for `grid` and `h3` domains. Set it together with "
        "`longitude`.",
        examples=['[table]\nlatitude = "lat"\nlongitude = "lon"\n'],
    )
    longitude: str | None = Field(
        default=None,
        description="The column with longitudes, for `grid` and `h3` domains.",
        examples=['[table]\nlatitude = "lat"\nlongitude = "lon"\n'],
    )
    missing: TextOrInteger | None = Field(
        default=None,
        description='What to do with rows without an answer: `"refuse"` the table, `"skip"` these '
        "rows, or a label to count them as. Without it, they count as `domain.other`, and a table "
        "with such rows is refused if there is no `other`. The option `--missing` overrides it.",
        examples=[
            '[domain]\nkind = "labels"\nlabels = ["no", "yes", "no answer"]\n'
            '[table]\nmissing = "no answer"\n'
        ],
    )
    missing_codes: list[TextOrInteger] = Field(
        default=[],
        description="Codes in the table that mean that there is no answer.",
        examples=['[table]\nmissing = "skip"\nmissing_codes = ["NA", -99]\n'],
    )
    bins: list[Number] = Field(
        default=[],
        description="Cut points that turn numbers into intervals. The first labels of the domain "
        "are the intervals, in order: one below the first cut point, one from each cut point to "
        "just below the next, and one from the last cut point on.",
        examples=[_AGES_EXAMPLE],
    )
    date: Literal["day", "weekday", "hour", "month"] | None = Field(
        default=None,
        description="The part of a date that is the answer. For `weekday` and `hour`, the first 7 "
        "or 24 labels of the domain are the parts, from Monday or from midnight. For `day` and "
        "`month`, the labels look like 2026-11-18 and 2026-11.",
        examples=[
            '[domain]\nkind = "labels"\nlabels = ["2026-10", "2026-11"]\n'
            '[table]\ncolumn = "visit"\ndate = "month"\n'
        ],
    )
    date_format: str | None = Field(
        default=None,
        description="The format of dates in text, such as `%d.%m.%Y`. Without it, dates look like "
        "2026-11-18 or 2026-11-18T09:30.",
        examples=[
            '[domain]\nkind = "labels"\nlabels = ["2026-10", "2026-11"]\n'
            '[table]\ncolumn = "visit"\ndate = "month"\ndate_format = "%d.%m.%Y"\n'
        ],
    )
    delimiter: str | None = Field(
        default=None,
        description="The character between the cells of a CSV file; without it, a comma. The "
        "option `--delimiter` overrides it.",
        examples=['[table]\ndelimiter = ";"\n'],
    )
    sheet: str | None = Field(
        default=None,
        description="The sheet of an Excel workbook; without it, the first one. The option "
        "`--sheet` overrides it.",
        examples=['[table]\nsheet = "answers"\n'],
    )
    allow_other: bool = Field(
        default=False,
        description="Whether most answers may count as `domain.other`. Without it, a table in "
        "which more than half of the rows would count as `other` is refused, because its labels "
        "probably belong to another column.",
        examples=[
            '[domain]\nkind = "labels"\nlabels = ["park", "café"]\nother = "somewhere else"\n'
            '[table]\ncolumn = "place"\nallow_other = true\n'
        ],
    )


def read_table(fields: TableFields) -> AnswerColumns:
    """Return the columns that the fields describe."""
    try:
        bins = tuple(float(number) for number in fields.bins)
    except ValueError:
        raise InvalidSurvey("table.bins must be a list of numbers.") from None
    return AnswerColumns(
        fields.column,
        fields.latitude,
        fields.longitude,
        missing=fields.missing,
        missing_codes=tuple(map(str, fields.missing_codes)),
        bins=bins,
        date=fields.date,
        date_format=fields.date_format,
        delimiter=fields.delimiter,
        sheet=fields.sheet,
        allow_other=fields.allow_other,
    )


def write_table(columns: AnswerColumns) -> dict[str, Any]:
    """Return the fields of ``[table]`` that are not empty."""
    bins = [int(cut) if cut.is_integer() else cut for cut in columns.bins]
    fields: dict[str, Any] = {
        "column": columns.value,
        "latitude": columns.latitude,
        "longitude": columns.longitude,
        "missing": columns.missing,
        "missing_codes": list(columns.missing_codes),
        "bins": bins,
        "date": columns.date,
        "date_format": columns.date_format,
        "delimiter": columns.delimiter,
        "sheet": columns.sheet,
    }
    if columns.allow_other:
        fields["allow_other"] = True
    return {name: value for name, value in fields.items() if value not in (None, [])}
