"""`sfumato simulate`: try a survey on data you already have."""

import json
from typing import TYPE_CHECKING

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
    Decoder,
    Json,
    Runs,
    Seed,
    SurveyFile,
    Workers,
    choose_worker_count,
    require_distinct_files,
)
from sfumato.foundation.decoder_table import DECODER_TABLE
from sfumato.foundation.formatting import format_number, plural

if TYPE_CHECKING:
    from sfumato.simulation import Simulation


def simulate(
    survey: SurveyFile,
    answers: AnswersFiles,
    column: Column = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    missing: Missing = None,
    missing_codes: MissingCodes = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    table: TableFile = None,
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
    from sfumato.tables import RowCounter

    require_distinct_files(answers)
    options = AnswerOptions(
        column, latitude, longitude, missing, missing_codes, delimiter, sheet, table
    )
    loaded_survey = Survey.load(survey)
    columns = options.columns_for(loaded_survey, answers[0])
    counter = RowCounter(loaded_survey.context.domain, columns)
    with show_row_count("simulating") as on_progress:
        result = simulate_files(
            loaded_survey,
            answers,
            columns,
            runs=runs,
            seed=seed,
            decoder=decoder,
            counter=counter,
            workers=choose_worker_count(workers, answers),
            on_progress=on_progress,
        )
    if as_json:
        say(json.dumps({**result.to_dict(), "rows": counter.to_dict()}))
        return
    notify_rows(counter)
    say(_result_sentence(result))


def _result_sentence(result: "Simulation") -> str:
    """State the error as the share of people whom the estimate counts under a wrong label."""
    share = format_number(100 * result.error.mean)
    runs = plural(result.errors.size, "run")
    spread = ""
    if result.error.standard_error is not None:
        spread = f"± {format_number(100 * result.error.standard_error, 2)}%, "
    return (
        f"With {result.people:,} people, the estimate misplaces {share}% of them on average "
        f"({spread}{runs}). Decoder: {result.decoder} ({DECODER_TABLE[result.decoder].help})."
    )
