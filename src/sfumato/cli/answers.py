"""Options for commands that read a table of answers, and what they print about its rows."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sfumato.cli.console import notify
from sfumato.cli.options import parse_label, split_labels

if TYPE_CHECKING:
    from sfumato.domains import Domain, Label
    from sfumato.survey import AnswerColumns, Survey
    from sfumato.tables import RowCounter

_ANSWERS_HELP = (
    "Answers: CSV, Parquet, Feather, JSON lines, Excel, SPSS or Stata; - for standard input."
)

AnswersFile = Annotated[str, typer.Argument(metavar="ANSWERS", help=_ANSWERS_HELP)]
AnswersFiles = Annotated[list[str], typer.Argument(metavar="ANSWERS…", help=_ANSWERS_HELP)]
Column = Annotated[
    str | None, typer.Option(help="Column with the answers. Default: from the survey file.")
]
Latitude = Annotated[
    str | None, typer.Option(help="Column with latitudes, for grid and H3 surveys.")
]
Longitude = Annotated[str | None, typer.Option(help="Column with longitudes.")]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="refuse|skip|LABEL",
        help=(
            "What to do with rows without an answer: refuse the table, leave them out, or count "
            "them as a label. Default: from the survey file, or the label for other answers if "
            "there is one, else refuse."
        ),
    ),
]
MissingCodes = Annotated[
    str | None,
    typer.Option(
        metavar="CODES",
        help="Codes that mean that there is no answer, such as NA,-99. Write --missing-codes=-99.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(metavar="CHARACTER", help="Character between the cells of a CSV file, or tab."),
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Sheet of an Excel workbook. Default: the first one."),
]
TableFile = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="FILE.toml",
        help="Survey file whose [table] section says how to read the answers.",
    ),
]


class AnswerOptions(NamedTuple):
    """The options that say how to read a table of answers. ``None``: as the survey file says."""

    column: str | None
    latitude: str | None
    longitude: str | None
    missing: str | None
    missing_codes: str | None
    delimiter: str | None
    sheet: str | None
    table: str | None

    def columns_for(self, survey: "Survey") -> "AnswerColumns":
        """Return the columns to read for a survey; reject columns that do not fit it."""
        columns = survey.description.table
        if self.table is not None:
            columns = _read_table_section(self.table)
        if (self.column, self.latitude, self.longitude) != (None, None, None):
            columns = replace(
                columns, value=self.column, latitude=self.latitude, longitude=self.longitude
            )
        if self.missing is not None:
            columns = replace(columns, missing=parse_missing(self.missing, survey.context.domain))
        columns = self.with_formats(columns)
        columns.check(survey.context.domain)
        return columns


    def with_formats(self, columns: "AnswerColumns") -> "AnswerColumns":
        """Return columns with the missing codes, the delimiter and the sheet of the options."""
        if self.missing_codes is not None:
            columns = replace(columns, missing_codes=tuple(split_labels(self.missing_codes)))
        if self.delimiter is not None:
            columns = replace(columns, delimiter=self.delimiter)
        if self.sheet is not None:
            columns = replace(columns, sheet=self.sheet)
        return columns


def parse_missing(missing: str, domain: "Domain") -> "Label":
    """Return the value of ``--missing`` as it would be in a survey file."""
    from sfumato.survey import REFUSE, SKIP

    return missing if missing in (REFUSE, SKIP) else parse_label(missing, domain)


def _read_table_section(path: str) -> "AnswerColumns":
    from sfumato.survey.toml.file import read_survey_toml

    return read_survey_toml(Path(path)).table


def notify_rows(counter: "RowCounter") -> None:
    """Print what became of the rows.

    Print to standard error: the counts must not end up in a file of reports.
    """
    notify(counter.describe())
    warning = counter.warning()
    if warning:
        notify(f"Warning: {warning}")
