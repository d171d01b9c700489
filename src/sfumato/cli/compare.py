"""`sfumato compare`: the survey's mechanism beside classical ones, on data that one already has."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sfumato.cli.console import say
from sfumato.cli.options import AnswersFile, Column, Decoder, Json, Latitude, Longitude

if TYPE_CHECKING:
    from sfumato.contexts import Context
    from sfumato.mechanisms import Mechanism
    from sfumato.simulation.population import Population

__all__ = ["compare"]

_FEW = 10
Tell = Callable[[str], None]


def compare(
    answers: AnswersFile,
    survey: Annotated[
        str | None, typer.Option(metavar="SURVEY", help="A survey file, for its promise.")
    ] = None,
    column: Column = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="Without a survey: one ε for all pairs of the column's distinct values."),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="How often the data are randomised anew.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="How many runs at a time.")] = 2,
    decoder: Decoder = "auto",
    as_json: Json = False,
) -> None:
    """Compare with k-RR, Hadamard response, OUE and OLH on data you already have. NOT PRIVATE.

    Error, bits per report and what one fake report can do, all for the same promise: classical mechanisms know one
    ε for all pairs of labels, so they take the smallest of the survey.

    Examples:
      sfumato compare answers.csv --column place --epsilon 1

      sfumato compare answers.csv --survey survey.toml --column place --runs 50

      sfumato compare trips.parquet --survey survey.toml --latitude lat --longitude lon --json

    """
    from sfumato.cli.progress import line_shown
    from sfumato.errors import InvalidSurvey
    from sfumato.estimation.decoders import decoder_named
    from sfumato.simulation import Draws
    from sfumato.simulation import compare as compared

    chosen, draws = (
        decoder_named(decoder),
        Draws(runs, seed, workers),
    )  # refused before any data are read
    if (survey is None) == (epsilon is None):
        raise InvalidSurvey(
            "pass either --survey with a survey file, or --epsilon for a column without one."
        )
    with line_shown("comparing") as tell:
        if survey is not None:
            asked = _of_survey(survey, answers, column, latitude, longitude, tell)
        else:
            asked = _of_column(str(epsilon), answers, column, latitude, longitude, tell)
        found = compared(
            asked.context,
            asked.crowd.counts,
            mechanism=asked.mechanism,
            decoder=chosen,
            draws=draws,
            on_progress=tell,
        )
    if as_json:
        say(
            json.dumps(
                {"survey": asked.survey, "left_out": asked.crowd.left_out, **found.in_json()}
            )
        )
        return
    say("\n".join([repr(found), *asked.notes]))


class _Asked(NamedTuple):
    """A promise, who keeps it, and the people who are there."""

    context: "Context"
    mechanism: "Mechanism | None"
    crowd: "Population"
    survey: str | None
    notes: list[str]


def _of_survey(
    survey: str,
    answers: str,
    column: str | None,
    latitude: str | None,
    longitude: str | None,
    tell: Tell,
) -> _Asked:
    from sfumato.simulation.population import survey_population
    from sfumato.survey import Survey
    from sfumato.tables import AnswerColumns

    asked = Survey.load(survey)
    columns = AnswerColumns(column, latitude, longitude)
    crowd = survey_population(
        answers, columns, asked.context.domain, on_progress=lambda rows: tell(f"{rows:,} rows")
    )
    return _Asked(asked.context, asked.mechanism, crowd, asked.fingerprint, [])


def _of_column(
    epsilon: str,
    answers: str,
    column: str | None,
    latitude: str | None,
    longitude: str | None,
    tell: Tell,
) -> _Asked:
    from sfumato.contexts import Uniform
    from sfumato.errors import InvalidTable
    from sfumato.simulation.population import column_population

    Uniform(2, epsilon)  # refuses what is no ε before any data are read
    if column is None or (latitude, longitude) != (None, None):
        raise InvalidTable(
            "without a survey, name the --column of answers. Positions need a survey with a grid."
        )
    crowd = column_population(answers, column, on_progress=lambda rows: tell(f"{rows:,} rows"))
    return _Asked(Uniform(crowd.domain, epsilon), None, crowd, None, _column_notes(crowd))


def _column_notes(crowd: "Population") -> list[str]:
    """What a reader should know of labels that were taken from the answers."""
    rare = int((crowd.counts < _FEW).sum())
    notes = [
        "",
        f"The labels are the column's {crowd.domain.size:,} distinct values, sorted. A survey makes its labels public.",
    ]
    if rare:
        notes.append(
            f"{rare:,} of them are held by fewer than {_FEW} people: think of an `other` label."
        )
    if crowd.left_out:
        notes.append(f"{crowd.left_out:,} rows without an answer were left out.")
    return notes
