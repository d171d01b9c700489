"""`sfumato init`: write a survey file, from a template or from a column of answers."""

import sys
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.answers import AnswerOptions, Delimiter, MissingCodes, Sheet, describe_columns_of
from sfumato.cli.column_labels import ColumnRequest, answer_columns, read_labels
from sfumato.cli.console import say
from sfumato.cli.context_choice import ContextChoice, ContextOptions, choose_context
from sfumato.cli.label_notes import print_notes
from sfumato.cli.options import check_output_paths
from sfumato.cli.predicted_error import require_useful
from sfumato.cli.survey_text import TEMPLATES, About, fill_template, survey_text
from sfumato.errors import InvalidArgument, InvalidSetting

if TYPE_CHECKING:
    from sfumato.survey import AnswerColumns
    from sfumato.tables.proposed_domain import ProposedDomain


def init(
    output: Annotated[
        str, typer.Argument(metavar="SURVEY", help="Survey file to write.")
    ] = "survey.toml",
    template: Annotated[
        str | None,
        typer.Option(
            autocompletion=lambda: list(TEMPLATES), help=f"One of {', '.join(TEMPLATES)}."
        ),
    ] = None,
    answers: Annotated[
        str | None, typer.Option("--from", help="Data file whose answers become the labels.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Column with the answers.")] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Sensitive labels, separated by commas. Put a label with a comma in double quotes. "
                "You may use the option several times."
            )
        ),
    ] = None,
    sensitive_share: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help=(
                "About which share of people have a sensitive label, such as 0.1. The survey file "
                "is public: take common knowledge or a guess, not the share in your data."
            ),
        ),
    ] = None,
    blocks: Annotated[
        str | None, typer.Option(help="Column with the block of each answer.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="Labels in your order, separated by commas. Default: all answers."),
    ] = None,
    bins: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="For numbers: cut points such as 18,30,45,60, or a number of bins such as 10.",
        ),
    ] = None,
    date: Annotated[
        str | None,
        typer.Option(
            metavar="day|weekday|hour|month",
            help="For dates: the part that is asked.",
            autocompletion=lambda: ["day", "weekday", "hour", "month"],
        ),
    ] = None,
    date_format: Annotated[
        str | None, typer.Option(help="Format of dates in text, such as %d.%m.%Y. Default: ISO.")
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="refuse|skip|LABEL",
            autocompletion=lambda: ["refuse", "skip"],
            help=(
                "What to do with rows without an answer: refuse the table, leave them out, or "
                "count them as a label. Default: a label 'no answer', if there are such rows."
            ),
        ),
    ] = None,
    missing_codes: MissingCodes = None,
    other: Annotated[
        str | None, typer.Option(help="Label for answers that are not among the labels.")
    ] = None,
    allow_other: Annotated[
        bool,
        typer.Option("--allow-other", help="Accept that most answers count as the --other label."),
    ] = False,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    epsilon: Annotated[
        str, typer.Option(help="The ε of the promise: smaller values protect answers better.")
    ] = "1.0",
    title: Annotated[str | None, typer.Option(help="The question, as people read it.")] = None,
    contact: Annotated[str | None, typer.Option(help="Contact for questions.")] = None,
    minimum_reports: Annotated[
        int | None, typer.Option(min=0, help="Smallest number of reports for a result.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    force_labels: Annotated[
        bool,
        typer.Option("--force-labels", help="Accept more labels than can give a useful result."),
    ] = False,
) -> None:
    """Write a survey file, from a template or from a column of answers.

    With --from, also prints the expected error for each kind of promise. The file remembers how to
    read the table, so privatize needs no further options.

    Examples:
      sfumato init --template yes-no survey.toml

      sfumato init --from answers.csv --column place --sensitive clinic,bar survey.toml

      sfumato init --from answers.csv --column street --blocks city survey.toml

      sfumato init --from people.xlsx --column age --bins 18,30,45,60 survey.toml

      sfumato init --from visits.csv --delimiter ';' --column day --date weekday survey.toml

    """
    path = Path(output)
    _check_output(path, force=force)
    if template is not None and answers is None:
        context_options = (sensitive, sensitive_share, blocks)
        column_options = (column, *context_options, labels, bins, date, date_format)
        cell_options = (missing, missing_codes, other, allow_other, delimiter, sheet)
        _reject_table_options(*column_options, *cell_options)
        about = About(unique_name(path), title or "", contact or "", minimum_reports or 0)
        text = fill_template(template, epsilon, about)
        next_step = f"Next: edit it, then run sfumato verify {quote(output)}"
    elif template is None and answers is not None:
        columns = answer_columns(column, date, date_format)
        formats = AnswerOptions(missing_codes=missing_codes, delimiter=delimiter, sheet=sheet)
        columns = replace(formats.with_formats(columns), allow_other=allow_other)
        _require_column(answers, columns)
        request = ColumnRequest(answers, columns, labels, bins, missing, other, force_labels)
        options = ContextOptions(epsilon, sensitive, sensitive_share, blocks)
        proposal, choice = _choose_labels_and_context(request, options, path.name)
        about = _ask_about(unique_name(path), title, contact, minimum_reports)
        text = survey_text(about, choice, proposal.columns)
        next_step = f"Next: sfumato privatize {quote(output)} {quote(answers)} -o reports.parquet"
    else:
        raise InvalidArgument(
            f"pass either --template (one of {', '.join(TEMPLATES)}) or --from with a data file."
        )
    _write_survey(text, path)
    say(f"Wrote {output}. {next_step}")


def _reject_table_options(*options: object) -> None:
    if any(options):
        raise InvalidArgument(
            "--column, --sensitive, --blocks and the other options for a table require --from. "
            "To adapt a template, edit the file that it creates."
        )


def _require_column(path: str, columns: "AnswerColumns") -> None:
    if columns.value is None:
        raise InvalidArgument(
            "--from requires --column, the column with the answers"
            f"{describe_columns_of(path, columns)}"
        )


def _choose_labels_and_context(
    request: ColumnRequest, options: ContextOptions, file_name: str
) -> tuple["ProposedDomain", ContextChoice]:
    """Read the column, choose labels and a context for it, and print what they mean."""
    proposal, summary = read_labels(request)
    choice = choose_context(request, proposal, summary, options, file_name)
    print_notes(request, proposal, summary)
    if not request.force_labels:
        require_useful(choice.people_needed, proposal)
    return proposal, choice


def _check_output(path: Path, *, force: bool) -> None:
    from sfumato.survey.content import has_resolved_name, has_table_name

    check_output_paths(str(path))
    if has_resolved_name(path):
        raise InvalidSetting(
            f"{path.name} would be read as a resolved survey. Choose a different extension."
        )
    if has_table_name(path):
        raise InvalidSetting(
            f"{path.name} would be read as a table. Choose a name that ends in .toml."
        )
    if path.exists() and not force:
        raise InvalidSetting(f"{path} already exists. Choose a different name, or pass --force.")


def unique_name(path: Path) -> str:
    """Return the file's name without its extension, plus a random suffix.

    Two surveys with the same name and promise would accept each other's reports.
    """
    import secrets

    return f"{path.stem[:80]}-{secrets.token_hex(3)}"


def _write_survey(text: str, path: Path) -> None:
    """Write a survey file. Reject text that Sfumato could not read back as one."""
    from sfumato.foundation.files import write_atomically
    from sfumato.survey import Survey
    from sfumato.survey.content import require_toml
    from sfumato.survey.toml.file import parse_survey_toml

    content = text.encode("utf-8")
    require_toml(content, path)
    description = parse_survey_toml(content, path.parent)
    Survey.from_description(description, description.mechanism)
    write_atomically(path, content)


def _ask_about(
    name: str, title: str | None, contact: str | None, minimum_reports: int | None
) -> About:
    """Return what the survey shows to people. On a terminal, ask for what is not given."""
    if sys.stdin.isatty():
        if title is None:
            title = typer.prompt("The question, as people will read it", default="")
        if contact is None:
            contact = typer.prompt("Contact for questions", default="")
        if minimum_reports is None:
            minimum_reports = typer.prompt(
                "Smallest number of reports for a result", default=0, type=int
            )
    return About(name, title or "", contact or "", minimum_reports or 0)
