"""`sfumato privatize`: answers in, reports out."""

from typing import Annotated

import typer

from sfumato.cli.console import say
from sfumato.cli.options import (
    AnswersFiles,
    Column,
    Latitude,
    Longitude,
    SurveyFile,
    Workers,
    check_outputs,
    demand_distinct,
    worker_count,
)

__all__ = ["privatize"]


def privatize(
    survey: SurveyFile,
    answers: AnswersFiles,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Where reports go: .csv or .parquet; - for a pipe. Or .json: their tally alone.",
        ),
    ],
    column: Column = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    workers: Workers = 0,
) -> None:
    """Randomise each answer so that the survey's promise holds. There is no seed: reports are private.

    To a .json file goes the tally alone: reports are counted as they are made, and kept nowhere.

    Examples:
      sfumato privatize survey.toml answers.csv --column place -o reports.parquet

      sfumato privatize survey.toml trips.parquet --latitude lat --longitude lon -o reports.parquet

      sfumato privatize survey.toml day-*.parquet --column place -o tally.json

      cat answers.csv | sfumato privatize survey.toml - --column place -o - > reports.csv

    """
    from sfumato.cli.progress import row_counter
    from sfumato.engines import privatize_files, tally_files
    from sfumato.survey import Survey
    from sfumato.tables import AnswerColumns, report_writer, write_tally

    check_outputs(None if output == "-" else output, inputs=[survey, *answers])
    demand_distinct(answers)
    asked = Survey.load(survey)
    asked.certify()
    columns = AnswerColumns(column, latitude, longitude)
    columns.check(asked.context.domain)
    cores = worker_count(workers, answers)
    with row_counter("privatising") as on_progress:
        if output.endswith(".json"):
            tally = tally_files(asked, answers, columns, workers=cores, on_progress=on_progress)
            write_tally(output, tally)
            say(
                f"The tally of {tally.reports:,} reports of survey {asked.fingerprint[:12]}… is in {output}."
            )
            return
        people = 0
        with report_writer(output, asked.fingerprint) as writer:
            for reports in privatize_files(
                asked, answers, columns, workers=cores, on_progress=on_progress
            ):
                writer.write(reports)
                people += reports.size
    if output != "-":
        say(f"{people:,} reports of survey {asked.fingerprint[:12]}… written to {output}.")
