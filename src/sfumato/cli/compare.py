"""`sfumato compare`: compare a survey with classical mechanisms on data you already have."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sfumato.cli.advice import MIN_PEOPLE_PER_LABEL
from sfumato.cli.answers import (
    AnswerOptions,
    AnswersFile,
    Column,
    Delimiter,
    Latitude,
    Longitude,
    Missing,
    MissingCodes,
    Sheet,
    TableFile,
    describe_columns_of,
    notify_warning,
    require_few_numbers,
)
from sfumato.cli.browser import OpenPage, open_page, require_page
from sfumato.cli.console import notify, say, show_row_count, show_status
from sfumato.cli.options import (
    Decoder,
    Json,
    Runs,
    Seed,
    check_output_paths,
    write_outputs,
)
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.contexts import Context
    from sfumato.mechanisms import Mechanism
    from sfumato.simulation import Comparison, Population


def compare(
    answers: AnswersFile,
    survey: Annotated[
        str | None, typer.Option(metavar="SURVEY", help="Survey file with the promise to compare.")
    ] = None,
    column: Column = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    missing: Missing = None,
    missing_codes: MissingCodes = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    table: TableFile = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="Instead of a survey: one ε for all pairs of values in the column."),
    ] = None,
    runs: Runs = 10,
    seed: Seed = 0,
    workers: Annotated[int, typer.Option(min=1, help="Number of parallel runs.")] = 2,
    decoder: Decoder = "auto",
    html: Annotated[str | None, typer.Option(help="Output file for an HTML page.")] = None,
    opens_page: OpenPage = False,
    as_json: Json = False,
) -> None:
    """Compare a survey with k-RR, Hadamard response, OUE and OLH on data you have. NOT PRIVATE.

    Shows the error, the bits per report and the effect of one fake report, all for the same
    promise. Classical mechanisms have one ε for all pairs of labels, so they use the survey's
    smallest ε.

    Examples:
      sfumato compare answers.csv --column place --epsilon 1

      sfumato compare answers.csv --survey survey.toml --column place --runs 50 --html page.html

      sfumato compare trips.parquet --survey survey.toml --latitude lat --longitude lon --json

    """
    from sfumato.estimation.decoders import get_decoder
    from sfumato.simulation import Draws
    from sfumato.simulation import compare as run_comparison

    # Reject bad arguments before reading any data.
    require_page(html, opens_page=opens_page)
    check_output_paths(html, inputs=[answers] if survey is None else [answers, survey])
    chosen_decoder = get_decoder(decoder)
    draws = Draws(runs, seed, workers)
    options = AnswerOptions(
        column, latitude, longitude, missing, missing_codes, delimiter, sheet, table
    )
    with show_row_count("reading") as on_rows:
        if survey is not None and epsilon is None:
            comparison_input = _input_from_survey(survey, answers, options, on_rows)
        elif survey is None and epsilon is not None:
            comparison_input = _input_from_column(epsilon, answers, options, on_rows)
        else:
            raise InvalidArgument(
                "pass either --survey with a survey file, or --epsilon to compare without one."
            )
    if not as_json:
        notify(comparison_input.population.description)
    with show_status("comparing") as on_progress:
        result = run_comparison(
            comparison_input.context,
            comparison_input.population.counts,
            mechanism=comparison_input.mechanism,
            decoder=chosen_decoder,
            draws=draws,
            on_progress=on_progress,
        )
    write_outputs((html, lambda: _html_bytes(result)))
    if html is not None and opens_page:
        open_page(html)
    if as_json:
        input_fields = {
            "survey": comparison_input.survey_fingerprint,
            "left_out": comparison_input.population.rows_without_answer,
        }
        say(json.dumps({**input_fields, **result.to_dict()}))
    else:
        say("\n".join([repr(result), *comparison_input.notes]))


def _html_bytes(result: "Comparison") -> bytes:
    from sfumato.pages import comparison_page

    return comparison_page(result).encode("utf-8")


class _ComparisonInput(NamedTuple):
    """The input of a comparison: a promise, a mechanism that keeps it, and the people to simulate.

    If ``mechanism`` is ``None``, the default mechanism is used. ``survey_fingerprint`` is ``None``
    if there is no survey. ``notes`` contains lines to print after the result.
    """

    context: "Context"
    mechanism: "Mechanism | None"
    population: "Population"
    survey_fingerprint: str | None
    notes: list[str]


def _input_from_survey(
    survey: str, answers: str, options: AnswerOptions, on_rows: Callable[[int], None]
) -> _ComparisonInput:
    from sfumato.simulation import survey_population
    from sfumato.survey import Survey
    from sfumato.tables import RowCounter

    loaded_survey = Survey.load(survey)
    domain = loaded_survey.context.domain
    columns = options.columns_for(loaded_survey, answers)
    counter = RowCounter(domain, columns)
    population = survey_population(answers, columns, domain, counter=counter, on_progress=on_rows)
    notify_warning(counter)
    return _ComparisonInput(
        loaded_survey.context, loaded_survey.mechanism, population, loaded_survey.fingerprint, []
    )


def _input_from_column(
    epsilon: str, answers: str, options: AnswerOptions, on_rows: Callable[[int], None]
) -> _ComparisonInput:
    from sfumato.contexts import Uniform
    from sfumato.simulation import column_population
    from sfumato.survey import AnswerColumns
    from sfumato.tables import summarize_column

    Uniform(2, epsilon)  # rejects an invalid ε before any data is read
    if (options.latitude, options.longitude, options.table) != (None, None, None):
        raise InvalidArgument("--latitude, --longitude and --table require --survey.")
    columns = options.with_formats(AnswerColumns(options.column, missing=options.missing))
    if options.column is None:
        raise InvalidArgument(
            "without a survey, pass --column, the column with the answers"
            f"{describe_columns_of(answers, columns)}"
        )
    summary = summarize_column(answers, columns, on_progress=on_rows)
    require_few_numbers(
        summary, "Make a survey with ranges (sfumato init --bins), and pass it as --survey."
    )
    population = column_population(summary, columns)
    context = Uniform(population.domain, epsilon)
    return _ComparisonInput(context, None, population, None, _column_notes(population))


def _column_notes(population: "Population") -> list[str]:
    """Return notes about labels that were taken from a column of answers."""
    notes = [
        "",
        f"The labels are the column's {population.domain.size:,} distinct values, sorted. "
        "A survey makes its labels public.",
    ]
    rare_count = int((population.counts < MIN_PEOPLE_PER_LABEL).sum())
    if rare_count:
        verb = "was" if rare_count == 1 else "were"
        notes.append(
            f"{rare_count:,} of them {verb} given by fewer than {MIN_PEOPLE_PER_LABEL} people: "
            "consider an `other` label."
        )
    return notes
