"""`sfumato simulate`: how well it would work on data that one already has."""

import json
from typing import Annotated

import typer

from sfumato.cli.console import say
from sfumato.cli.options import (
    AnswersFiles,
    Column,
    Decoder,
    Json,
    Latitude,
    Longitude,
    SurveyFile,
    Workers,
    demand_distinct,
    worker_count,
)

__all__ = ["simulate"]


def simulate(
    survey: SurveyFile,
    answers: AnswersFiles,
    column: Column = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    runs: Annotated[int, typer.Option(min=1, help="How often the data are randomised anew.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 0,
    workers: Workers = 0,
    decoder: Decoder = "auto",
    as_json: Json = False,
) -> None:
    """Privatise and estimate data you already have, repeatedly, and compare with the truth. NOT PRIVATE.

    Examples:
      sfumato simulate survey.toml answers.csv --column place --runs 10 --seed 1

      sfumato simulate survey.toml trips.parquet --latitude lat --longitude lon --json

    """
    from sfumato.cli.progress import row_counter
    from sfumato.simulation import simulate_files
    from sfumato.survey import Survey
    from sfumato.tables import AnswerColumns

    demand_distinct(answers)
    asked = Survey.load(survey)
    columns = AnswerColumns(column, latitude, longitude)
    with row_counter("simulating") as on_progress:
        result = simulate_files(
            asked,
            answers,
            columns,
            runs=runs,
            seed=seed,
            decoder=decoder,
            workers=worker_count(workers, answers),
            on_progress=on_progress,
        )
    if as_json:
        say(json.dumps(result.in_json()))
        return
    say(f"{result.people:,} people, {runs} runs, {decoder}: total variation error {result.error}")
