"""`sfumato plan`: how many people a survey needs, or how far off it will be."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import say
from sfumato.cli.options import DECODERS, Json, SurveyFile, check_outputs

if TYPE_CHECKING:
    from sfumato.domains import Domain
    from sfumato.planning import Plan
    from sfumato.survey import Survey

__all__ = ["plan"]

_LADDER = (1_000, 10_000, 100_000, 1_000_000)


def plan(
    survey: SurveyFile,
    people: Annotated[
        int | None, typer.Option(min=1, help="How many people: how far off will it be?")
    ] = None,
    error: Annotated[
        float | None, typer.Option(help="How far off it may be: how many people?")
    ] = None,
    measure: Annotated[
        str, typer.Option(help="What the error is of: tv, symbol, total or l2.")
    ] = "tv",
    labels: Annotated[
        str | None, typer.Option(help="For total: the labels to add up, with commas between.")
    ] = None,
    distribution: Annotated[
        str,
        typer.Option(
            help="worst, uniform, or a CSV file with columns label and share, frequency or count."
        ),
    ] = "worst",
    confidence: Annotated[
        float, typer.Option(help="With which probability the error holds.")
    ] = 0.95,
    html: Annotated[
        str | None, typer.Option(help="Write a page: one HTML file that works offline.")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(help="Write a picture (PNG): error against people.")
    ] = None,
    decoder: Annotated[
        str,
        typer.Option(
            metavar="|".join(DECODERS),
            help=(
                "Whose decoded picture is predicted, for a given distribution. Not auto, the default of the other "
                "commands, since that takes tens of seconds to predict on a large map."
            ),
        ),
    ] = "projection",
    as_json: Json = False,
) -> None:
    """Say how many people an error needs, or how far off so many people leave it. Exit code 1 if it cannot be done.

    With neither, a table from a thousand people to a million. With both, whether these people are enough.

    Examples:
      sfumato plan survey.toml --error 0.05

      sfumato plan survey.toml --people 100000 --distribution last-year.csv --html plan.html

      sfumato plan survey.toml --error 0.01 --measure total --labels clinic,bar --json

    """
    from sfumato.cli.labelled import labelled_shares
    from sfumato.planning import plan as planned
    from sfumato.survey import Survey

    read = [] if distribution in ("worst", "uniform") else [distribution]
    check_outputs(html, plot, inputs=[survey, *read])
    asked = Survey.load(survey)
    domain = asked.context.domain
    made = planned(
        asked.context,
        error=error,
        people=_LADDER[0] if people is None and error is None else people,
        measure=measure,
        confidence=confidence,
        distribution=labelled_shares(read[0], "distribution", domain) if read else distribution,
        labels=None if labels is None else _labels(labels, domain),
        decoder=decoder,
        mechanism=asked.mechanism,
    )
    steps = (
        [made] if people is not None or error is not None else [made, *map(made.at, _LADDER[1:])]
    )
    _write(asked, steps[-1], html, plot)
    say(json.dumps(_in_json(asked, steps)) if as_json else _in_text(steps))
    if not made.feasible:
        raise typer.Exit(1)


def _in_json(asked: "Survey", steps: "list[Plan]") -> dict[str, object]:
    """One plan; or, when neither people nor error were given, a list of plans."""
    named = {"survey": asked.fingerprint}
    if len(steps) == 1:
        return {**named, **steps[0].in_json()}
    return {**named, "plans": [step.in_json() for step in steps]}


def _in_text(steps: "list[Plan]") -> str:
    """The plan; a ladder of plans as a table of errors, a column per mechanism, and the last plan in full."""
    if len(steps) == 1:
        return repr(steps[0])
    rows = [row for row in steps[0].rows if row.available]
    lines = [["people", *(row.title for row in rows)]]
    for step in steps:
        found = [row.figures for row in step.rows if row.available]
        lines.append(
            [
                f"{step.people:,}",
                *("–" if figures is None else f"{figures.error:.3g}" for figures in found),
            ]
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    table = [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]
    return "\n".join(["How far off, for so many people:", "", *table, "", repr(steps[-1])])


def _write(asked: "Survey", made: "Plan", html: str | None, plot: str | None) -> None:
    """Both files are made before either is written."""
    from sfumato.foundation.files import write_atomically

    page, picture = "", b""
    if html is not None:
        from sfumato.pages import plan_page

        page = plan_page(made, title=asked.title)
    if plot is not None:
        from sfumato.pages import plan_png

        picture = plan_png(made)
    if html is not None:
        write_atomically(html, page.encode("utf-8"))
    if plot is not None:
        write_atomically(plot, picture)


def _labels(text: str, domain: "Domain") -> list[str | int]:
    """Labels with commas between; a label that holds a comma stands in quotation marks, as in CSV."""
    import csv

    from sfumato.cli.labelled import label_of

    return [
        label_of(cell.strip(), domain) for cell in next(csv.reader([text], skipinitialspace=True))
    ]
