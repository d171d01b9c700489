"""`sfumato simulate`: how well it would work on data that one already has."""

import json
import math
from typing import Annotated

import typer

from sfumato.cli.options import AnswersFile, Column, Decoder, Json, Latitude, Longitude, SurveyFile

__all__ = ["simulate"]


def simulate(
    survey: SurveyFile,
    answers: AnswersFile,
    column: Column = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    runs: Annotated[int, typer.Option(min=1, help="How often the data are randomised anew.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="How many runs at a time.")] = 2,
    decoder: Decoder = "auto",
    as_json: Json = False,
) -> None:
    """Privatise and estimate data you already have, repeatedly, and compare with the truth. NOT PRIVATE.

    Examples:
      sfumato simulate survey.toml answers.csv --column place --runs 10 --seed 1

      sfumato simulate survey.toml trips.parquet --latitude lat --longitude lon --json

    """
    from sfumato.cli.progress import row_counter
    from sfumato.simulation import simulate as simulated
    from sfumato.survey import Survey
    from sfumato.tables import AnswerColumns, answer_batches

    asked = Survey.load(survey)
    columns = AnswerColumns(column, latitude, longitude)
    with row_counter("simulating") as rows_done:
        batches = answer_batches(answers, columns, asked.context.domain, rows_done=rows_done)
        result = simulated(asked, batches, runs=runs, seed=seed, decoder=decoder, workers=workers)
    if as_json:
        typer.echo(json.dumps(result.in_json()))
        return
    spread = "" if math.isnan(result.standard_error) else f" ± {result.standard_error:.4f}"
    typer.echo(f"{result.people:,} people, {runs} runs, {decoder}: total variation error {result.mean:.4f}{spread}")
