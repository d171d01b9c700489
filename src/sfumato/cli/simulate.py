"""`sfumato simulate`: try a survey on data you already have."""

import json

from sfumato.cli.console import say, show_row_count
from sfumato.cli.options import (
    AnswersFiles,
    Column,
    Decoder,
    Json,
    Latitude,
    Longitude,
    Runs,
    Seed,
    SurveyFile,
    Workers,
    choose_worker_count,
    require_distinct_files,
)


def simulate(
    survey: SurveyFile,
    answers: AnswersFiles,
    column: Column = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    runs: Runs = 10,
    seed: Seed = 0,
    workers: Workers = 0,
    decoder: Decoder = "auto",
    as_json: Json = False,
) -> None:
    """Simulate the survey on data you already have, and measure its error. NOT PRIVATE.

    Examples:
      sfumato simulate survey.toml answers.csv --column place --runs 10 --seed 1

      sfumato simulate survey.toml trips.parquet --latitude lat --longitude lon --json

    """
    from sfumato.simulation import simulate_files
    from sfumato.survey import Survey
    from sfumato.tables import AnswerColumns

    require_distinct_files(answers)
    loaded_survey = Survey.load(survey)
    columns = AnswerColumns(column, latitude, longitude)
    with show_row_count("simulating") as on_progress:
        result = simulate_files(
            loaded_survey,
            answers,
            columns,
            runs=runs,
            seed=seed,
            decoder=decoder,
            workers=choose_worker_count(workers, answers),
            on_progress=on_progress,
        )
    if as_json:
        say(json.dumps(result.to_dict()))
        return
    say(f"{result.people:,} people, {runs} runs, {decoder}: total variation error {result.error}")
