"""`sfumato estimate`: reports in, the distribution with error bars out."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import printable, say, say_data, warn
from sfumato.cli.options import Decoder, Json, SurveyFile, check_outputs, demand_distinct
from sfumato.errors import InvalidTable

if TYPE_CHECKING:
    from sfumato.domains import Domain
    from sfumato.estimation import Estimate, Fit
    from sfumato.foundation.arrays import Floats
    from sfumato.survey import Survey

__all__ = ["estimate"]

_SHOWN = 20  # symbols that a terminal is shown
_UNTRUSTED = (
    "A broken client, another version or a forger may have sent them: do not rely on this estimate."
)


def estimate(
    survey: SurveyFile,
    reports: Annotated[
        list[str],
        typer.Argument(
            metavar="REPORTS…",
            help="Report files, CSV or Parquet, or exported tallies (.json); - for a pipe.",
        ),
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the estimate: .csv; - for a pipe.")
    ] = None,
    html: Annotated[
        str | None, typer.Option(help="Write a report page: one HTML file that works offline.")
    ] = None,
    png: Annotated[str | None, typer.Option(help="Write a picture of the estimate.")] = None,
    decoder: Decoder = "auto",
    covariate: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.csv",
            help="Something public that may go with the shares, for auto or empirical-bayes: label and one number.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Count reports and estimate the distribution of answers: a decoded picture, and unbiased 95 % intervals.

    Warns where the reports cannot have come from the survey's mechanism.

    Examples:
      sfumato estimate survey.toml reports.parquet

      sfumato estimate survey.toml monday.parquet tuesday.csv -o estimate.csv --html report.html

      sfumato estimate survey.toml north.json south.json --html report.html

      sfumato estimate survey.toml reports.parquet --covariate population.csv --json

    """
    from sfumato.cli.progress import row_counter
    from sfumato.estimation.decoders import decoder_named
    from sfumato.foundation.files import write_atomically
    from sfumato.survey import Survey
    from sfumato.survey.results import results_of
    from sfumato.tables import count_files

    _check_call(output, as_json=as_json)
    beside = [] if covariate is None else [covariate]
    check_outputs(None if output == "-" else output, html, png, inputs=[survey, *reports, *beside])
    demand_distinct(reports)
    chosen = decoder_named(decoder)
    if covariate is not None and not hasattr(chosen, "covariate"):
        raise InvalidTable(
            f"the decoder {decoder} uses no covariate. Leave it out, or choose auto or empirical-bayes."
        )
    asked = Survey.load(survey)
    known = None if covariate is None else _covariate(covariate, asked.context.domain)
    with row_counter("counting"):
        tally = count_files(reports, asked)
    found = asked.estimate(tally, decoder=chosen, covariate=known)
    fit = found.quiet_fit
    page = (
        _page(asked, found) if html is not None else ""
    )  # made before anything is written: all files, or none
    if png is not None:
        _write_picture(asked, found, png)
    if output not in (None, "-"):
        write_atomically(str(output), _csv(found).encode("utf-8"))
    if html is not None:
        write_atomically(html, page.encode("utf-8"))
    if output == "-":
        say_data(_csv(found))
    else:
        say(json.dumps(results_of(asked, found)) if as_json else _in_text(found, fit))
    if not fit.possible:
        warn(f"sfumato: WARNING: {fit.verdict} {_UNTRUSTED}")


def _covariate(path: str, domain: "Domain") -> "Floats":
    """The covariate of a CSV file, in domain order: one finite number for every label."""
    from pathlib import Path

    import numpy as np

    from sfumato.cli.labelled import labelled_numbers
    from sfumato.survey.toml.companion_files import read_columns

    table = read_columns(Path(path), "covariate")
    columns = [name for name in table if name != "label"]
    if "label" not in table or len(columns) != 1:
        raise InvalidTable(
            f"{path} must have a column label and one other column, which holds the covariate."
        )
    symbols, numbers = labelled_numbers(table, columns[0], path, domain)
    if not np.isfinite(numbers).all():
        raise InvalidTable(f"the column {columns[0]} of {path} must hold finite numbers only.")
    if symbols.size < domain.size:
        absent = int(np.setdiff1d(np.arange(domain.size), symbols)[0])
        raise InvalidTable(
            f"{path} must give a number for each of the {domain.size} labels; {domain.size - symbols.size} are "
            f"missing, the first of them {domain.labels[absent]!r}."
        )
    values = np.empty(domain.size)
    values[symbols] = numbers
    return values


def _check_call(output: str | None, *, as_json: bool) -> None:
    if output == "-" and as_json:
        raise InvalidTable("choose one for the pipe: --output - (CSV) or --json.")
    if output not in (None, "-") and not str(output).endswith(".csv"):
        raise InvalidTable(
            "the output must end in .csv, or be - for a pipe. For a page or a picture: --html, --png."
        )


def _in_text(found: "Estimate", fit: "Fit") -> str:
    """Both readings side by side, under headings that keep them apart; of many symbols the most frequent."""
    from sfumato.pages import most_frequent
    from sfumato.survey.results import COLUMNS, rows_of

    rows, symbols = rows_of(found), len(found.labels)
    if symbols > _SHOWN:
        rows = [rows[int(x)] for x in most_frequent(found, _SHOWN)]
    names = [printable(str(row[0])) for row in rows]
    width = max(map(len, [*names, COLUMNS[0]]))
    lines = [
        f"{found.reports:,} reports. {fit.verdict}",
        "",
        f"{'':<{width}}  decoded picture    unbiased estimate",
        f"{'label':<{width}}  {found.decoder:>15}    and its 95 % interval",
    ]
    for name, (_, frequency, unbiased, low, high) in zip(names, rows, strict=True):
        lines.append(
            f"{name:<{width}}  {frequency:15.4f}    {unbiased:7.4f} ({low:.4f} to {high:.4f})"
        )
    if symbols > _SHOWN:
        lines.append(f"… the {_SHOWN} most frequent of {symbols:,}; -o FILE.csv writes all.")
    return "\n".join(lines)


def _csv(found: "Estimate") -> str:
    import csv
    import io

    from sfumato.survey.results import COLUMNS, rows_of

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows_of(found))
    return text.getvalue()


def _page(asked: "Survey", found: "Estimate") -> str:
    from sfumato.pages import report_page

    return report_page(asked, found, asked.certify())


def _write_picture(asked: "Survey", found: "Estimate", path: str) -> None:
    from sfumato.domains import GridDomain
    from sfumato.pages import save_png

    domain = asked.context.domain
    save_png(found, path, grid=domain if isinstance(domain, GridDomain) else None)
