"""Options for commands that read a table of answers, and what they print about its rows."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sfumato.cli.console import notify
from sfumato.cli.options import parse_label, split_labels
from sfumato.errors import InvalidArgument, InvalidTable

if TYPE_CHECKING:
    from sfumato.domains import Domain, Label
    from sfumato.survey import AnswerColumns, Survey
    from sfumato.tables import ColumnSummary, RowCounter

_MAX_NUMBER_LABELS = 200

_ANSWERS_HELP = (
    "Answers: CSV, Parquet, Feather, JSON lines, Excel, SPSS or Stata; - for standard input."
)

AnswersFile = Annotated[str, typer.Argument(metavar="ANSWERS", help=_ANSWERS_HELP)]
AnswersFiles = Annotated[list[str], typer.Argument(metavar="ANSWERS", help=_ANSWERS_HELP)]
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
        autocompletion=lambda: ["refuse", "skip"],
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

    column: str | None = None
    latitude: str | None = None
    longitude: str | None = None
    missing: str | None = None
    missing_codes: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    table: str | None = None

    def columns_for(self, survey: "Survey", path: str) -> "AnswerColumns":
        """Return the columns to read for a survey; reject columns that do not fit it.

        ``path`` is a file of answers. If no column is given, the error lists its columns.
        """
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
        if (columns.value, columns.latitude, columns.longitude) == (None, None, None):
            raise InvalidArgument(_column_request(survey) + describe_columns_of(path, columns))
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


def _column_request(survey: "Survey") -> str:
    from sfumato.domains import GridDomain, H3Domain

    domain = survey.context.domain
    if isinstance(domain, GridDomain):
        return "pass --latitude and --longitude, the columns with the positions"
    if isinstance(domain, H3Domain):
        return "pass --column, the column with the cells, or both --latitude and --longitude"
    return "pass --column, the column with the answers"


def describe_columns_of(path: str, columns: "AnswerColumns") -> str:
    """Return the end of an error about a missing option: the columns of a file.

    Names are listed only if the first line of the file looks like a header.
    """
    from sfumato.tables import open_table

    if not Path(path).is_file():  # a stream can be read only once
        return "."
    with open_table(path, delimiter=columns.delimiter, sheet=columns.sheet) as table:
        hint = table.describe_columns(table.columns, "")
    _, listed, names = hint.partition("; its columns are ")
    return f"; the columns of {Path(path).name} are {names}" if listed else "."


def require_few_numbers(summary: "ColumnSummary", remedy: str) -> None:
    """Reject a column of too many numbers for labels."""
    if summary.is_numeric and len(summary.counts) > _MAX_NUMBER_LABELS:
        raise InvalidTable(
            f"column {summary.name!r} contains numbers, {len(summary.counts):,} different ones: "
            f"too many for labels. {remedy}"
        )


def notify_rows(counter: "RowCounter") -> None:
    """Print what became of the rows.

    Print to standard error: the counts must not end up in a file of reports.
    """
    notify(counter.describe())
    notify_warning(counter)


def notify_warning(counter: "RowCounter") -> None:
    """Print a warning if many answers are not in the domain."""
    warning = counter.warning()
    if warning:
        notify(f"Warning: {warning}")
