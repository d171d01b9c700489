"""`sfumato plan`: compute how many people a survey needs, or how large its error will be."""

import json
from typing import TYPE_CHECKING, Annotated, cast

import typer

from sfumato.cli.browser import OpenPage, open_page, require_page
from sfumato.cli.console import notify, say, show_status
from sfumato.cli.options import (
    Json,
    SurveyFile,
    check_output_paths,
    parse_label,
    read_shares,
    split_labels,
    write_outputs,
)
from sfumato.foundation.decoder_table import DECODER_TABLE, DecoderName
from sfumato.foundation.formatting import align_table

if TYPE_CHECKING:
    from sfumato.foundation.arrays import Floats
    from sfumato.planning import Plan
    from sfumato.planning.target import Measure
    from sfumato.survey import Survey

_DEFAULT_DECODER = "auto"
_PEOPLE_COUNTS = (1_000, 10_000, 100_000, 1_000_000)


def plan(
    survey: SurveyFile,
    people: Annotated[
        int | None, typer.Option(min=1, help="Number of people, to compute the error.")
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(help="Largest acceptable error, to compute the number of people."),
    ] = None,
    measure: Annotated[
        str, typer.Option(help="How to measure the error: tv, symbol, total or l2.")
    ] = "tv",
    labels: Annotated[
        str | None,
        typer.Option(help="For --measure total: the labels to sum, separated by commas."),
    ] = None,
    distribution: Annotated[
        str,
        typer.Option(
            help=(
                "Distribution to assume: worst, uniform, or a CSV file with columns label and "
                "share, frequency or count."
            )
        ),
    ] = "worst",
    confidence: Annotated[
        float, typer.Option(help="Probability that the error stays within the predicted value.")
    ] = 0.95,
    html: Annotated[
        str | None, typer.Option(help="Output file for a self-contained HTML page.")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(help="PNG file for a plot of error against number of people.")
    ] = None,
    decoder: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(DECODER_TABLE),
            autocompletion=lambda: list(DECODER_TABLE),
            help=(
                "Decoder whose error to predict, if a distribution is given. Default: auto, as in "
                "other commands."
            ),
        ),
    ] = None,
    opens_page: OpenPage = False,
    as_json: Json = False,
) -> None:
    """Compute how many people a given error requires, or the error for a given number of people.

    With neither option, prints a table for 1,000 to 1,000,000 people. With both, checks whether
    that many people are enough. Exits 1 if they are not, or if no number of people is.

    Examples:
      sfumato plan survey.toml --error 0.05

      sfumato plan survey.toml --people 100000 --distribution last-year.csv --html plan.html

      sfumato plan survey.toml --error 0.01 --measure total --labels clinic,bar --json

    """
    from sfumato import pages
    from sfumato.planning import plan as make_plan
    from sfumato.survey import Survey

    require_page(html, opens_page=opens_page)
    has_distribution_file = distribution not in ("worst", "uniform")
    inputs = [survey, distribution] if has_distribution_file else [survey]
    check_output_paths(html, plot, inputs=inputs)
    loaded_survey = Survey.load(survey)
    domain = loaded_survey.context.domain
    labels_to_sum = None
    if labels is not None:
        labels_to_sum = [parse_label(label.strip(), domain) for label in split_labels(labels)]
    is_table_requested = people is None and error is None
    shares: str | Floats = distribution
    if has_distribution_file:
        shares = read_shares(distribution, "distribution", domain)
    with show_status("predicting the error") as show:
        first_plan = make_plan(
            loaded_survey.context,
            error=error,
            people=_PEOPLE_COUNTS[0] if is_table_requested else people,
            measure=cast("Measure", measure),  # plan() itself rejects unknown names
            confidence=confidence,
            distribution=shares,
            labels=labels_to_sum,
            decoder=cast("DecoderName", decoder or _DEFAULT_DECODER),
            mechanism=loaded_survey.mechanism,
            on_progress=lambda tally_count: show(f"{tally_count:,} tallies drawn and decoded"),
        )
        plans = [first_plan]
        if is_table_requested:
            plans += map(first_plan.at, _PEOPLE_COUNTS[1:])
    last_plan = plans[-1]
    if decoder not in (None, "unbiased") and last_plan.decoder is None:
        notify(
            f"sfumato: the decoder {decoder} is not used: this plan is for the unbiased estimate. "
            "To predict a decoder's error, pass --distribution and --measure tv or l2."
        )
    write_outputs(
        (html, lambda: pages.plan_page(last_plan, title=loaded_survey.title).encode("utf-8")),
        (plot, lambda: pages.plan_png(last_plan)),
    )
    say(json.dumps(_to_dict(loaded_survey, plans)) if as_json else _to_text(plans))
    if html is not None and opens_page:
        open_page(html)
    if not first_plan.is_feasible:
        raise typer.Exit(1)


def _to_dict(survey: "Survey", plans: "list[Plan]") -> dict[str, object]:
    """Return one plan as JSON data, or several if neither --people nor --error was given."""
    if len(plans) == 1:
        return {"survey": survey.fingerprint, **plans[0].to_dict()}
    return {"survey": survey.fingerprint, "plans": [plan.to_dict() for plan in plans]}


def _to_text(plans: "list[Plan]") -> str:
    """Return one plan in full, or a table of errors followed by the last plan in full."""
    if len(plans) == 1:
        return repr(plans[0])
    titles = [row.title for row in plans[0].rows if row.is_available]
    table_rows = [["people", *titles]]
    for plan in plans:
        cells = [f"{plan.people:,}"]
        for row in plan.rows:
            if row.is_available:
                cells.append("–" if row.figures is None else f"{row.figures.error:.3g}")
        table_rows.append(cells)
    table = align_table(table_rows)
    return "\n".join(["Error by number of people:", "", *table, "", repr(plans[-1])])
