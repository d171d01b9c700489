"""`sfumato privatize`: answers in, reports out."""

from typing import Annotated

import typer

from sfumato.cli.options import AnswersFile, Column, Latitude, Longitude, SurveyFile, check_outputs

__all__ = ["privatize"]


def privatize(
    survey: SurveyFile,
    answers: AnswersFile,
    output: Annotated[str, typer.Option("--output", "-o", help="Where reports go: .csv or .parquet; - for a pipe.")],
    column: Column = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
) -> None:
    """Randomise each answer so that the survey's promise holds. There is no seed: reports are private.

    Examples:
      sfumato privatize survey.toml answers.csv --column place -o reports.parquet

      sfumato privatize survey.toml trips.parquet --latitude lat --longitude lon -o reports.parquet

      cat answers.csv | sfumato privatize survey.toml - --column place -o - > reports.csv

    """
    from sfumato.cli.progress import row_counter
    from sfumato.survey import Survey
    from sfumato.tables import AnswerColumns, answer_batches, report_writer

    check_outputs(None if output == "-" else output, inputs=[survey, answers])
    asked = Survey.load(survey)
    asked.certify()
    columns = AnswerColumns(column, latitude, longitude)
    people = 0
    with row_counter("privatising") as rows_done, report_writer(output, asked.fingerprint) as writer:
        for symbols in answer_batches(answers, columns, asked.context.domain, rows_done=rows_done):
            writer.write(asked.mechanism.privatize(symbols))
            people += symbols.size
    if output != "-":
        typer.echo(f"{people:,} reports of survey {asked.fingerprint[:12]}… written to {output}.")
