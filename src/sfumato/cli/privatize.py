"""`sfumato privatize`: turn answers into private reports."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.answers import (
    AnswerOptions,
    AnswersFiles,
    Column,
    Delimiter,
    Latitude,
    Longitude,
    Missing,
    MissingCodes,
    Sheet,
    TableFile,
    notify_rows,
)
from sfumato.cli.console import say, show_row_count
from sfumato.cli.options import (
    SurveyFile,
    Workers,
    check_output_paths,
    choose_worker_count,
    require_distinct_files,
)
from sfumato.foundation.formatting import plural

if TYPE_CHECKING:
    from sfumato.foundation.arrays import Reports


def privatize(
    survey: SurveyFile,
    answers: AnswersFiles,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help=(
                "Output file: .csv or .parquet for reports, .json for a tally; "
                "- for reports on standard output."
            ),
        ),
    ],
    column: Column = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    missing: Missing = None,
    missing_codes: MissingCodes = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    table: TableFile = None,
    workers: Workers = 0,
) -> None:
    """Randomize each answer to keep the survey's promise. There is no seed.

    A .json output contains only a tally: reports are counted as they are drawn, not stored.
    Prints what became of all rows: answers, empty cells, and answers that are not in the domain.

    Examples:
      sfumato privatize survey.toml answers.csv --column place -o reports.parquet

      sfumato privatize survey.toml trips.parquet --latitude lat --longitude lon -o reports.parquet

      sfumato privatize survey.toml day-*.parquet --column place -o tally.json

      cat answers.csv | sfumato privatize survey.toml - --column place -o - > reports.csv

    """
    from sfumato.engines import privatize_files, tally_files
    from sfumato.survey import Survey
    from sfumato.tables import RowCounter, write_tally

    check_output_paths(None if output == "-" else output, inputs=[survey, *answers])
    require_distinct_files(answers)
    answer_options = AnswerOptions(
        column, latitude, longitude, missing, missing_codes, delimiter, sheet, table
    )
    loaded_survey = Survey.load(survey)
    loaded_survey.certify()
    columns = answer_options.columns_for(loaded_survey, answers[0])
    counter = RowCounter(loaded_survey.context.domain, columns)
    worker_count = choose_worker_count(workers, answers)
    short_fingerprint = f"{loaded_survey.fingerprint[:12]}…"
    with show_row_count("privatizing") as on_progress:
        options: dict[str, Any] = {
            "counter": counter,
            "workers": worker_count,
            "on_progress": on_progress,
        }
        if output.endswith(".json"):
            tally = tally_files(loaded_survey, answers, columns, **options)
            write_tally(output, tally, loaded_survey)
            summary = f"Tally of {plural(tally.reports, 'report')}"
        else:
            reports = privatize_files(loaded_survey, answers, columns, **options)
            report_count = _write_reports(reports, output, loaded_survey.fingerprint)
            summary = plural(report_count, "report")
    notify_rows(counter)
    if output != "-":
        say(f"{summary} for survey {short_fingerprint} written to {output}.")


def _write_reports(reports: Iterable["Reports"], output: str, fingerprint: str) -> int:
    """Write reports to a file or to standard output, and return their number."""
    from sfumato.tables import report_writer

    report_count = 0
    with report_writer(output, fingerprint) as writer:
        for batch in reports:
            writer.write(batch)
            report_count += batch.size
    return report_count
