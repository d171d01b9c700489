"""`sfumato privatize`: turn answers into private reports."""

from typing import Annotated

import typer

from sfumato.cli.console import say, show_row_count
from sfumato.cli.options import (
    AnswersFiles,
    Column,
    Latitude,
    Longitude,
    SurveyFile,
    Workers,
    check_output_paths,
    choose_worker_count,
    require_distinct_files,
)


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
    workers: Workers = 0,
) -> None:
    """Randomize each answer to keep the survey's promise. There is no seed.

    A .json output contains only a tally: reports are counted as they are drawn, not stored.

    Examples:
      sfumato privatize survey.toml answers.csv --column place -o reports.parquet

      sfumato privatize survey.toml trips.parquet --latitude lat --longitude lon -o reports.parquet

      sfumato privatize survey.toml day-*.parquet --column place -o tally.json

      cat answers.csv | sfumato privatize survey.toml - --column place -o - > reports.csv

    """
    from sfumato.engines import privatize_files, tally_files
    from sfumato.survey import Survey
    from sfumato.tables import AnswerColumns, report_writer, write_tally

    check_output_paths(None if output == "-" else output, inputs=[survey, *answers])
    require_distinct_files(answers)
    loaded_survey = Survey.load(survey)
    loaded_survey.certify()
    columns = AnswerColumns(column, latitude, longitude)
    columns.check(loaded_survey.context.domain)
    worker_count = choose_worker_count(workers, answers)
    short_fingerprint = f"{loaded_survey.fingerprint[:12]}…"
    with show_row_count("privatizing") as on_progress:
        if output.endswith(".json"):
            tally = tally_files(
                loaded_survey, answers, columns, workers=worker_count, on_progress=on_progress
            )
            write_tally(output, tally, loaded_survey)
            say(
                f"Tally of {tally.reports:,} reports for survey {short_fingerprint} "
                f"written to {output}."
            )
            return
        report_count = 0
        with report_writer(output, loaded_survey.fingerprint) as writer:
            for reports in privatize_files(
                loaded_survey, answers, columns, workers=worker_count, on_progress=on_progress
            ):
                writer.write(reports)
                report_count += reports.size
    if output != "-":
        say(f"{report_count:,} reports for survey {short_fingerprint} written to {output}.")
