"""`sfumato estimate`: reports in, the distribution with error bars out."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.options import Decoder, Json, SurveyFile, check_outputs

if TYPE_CHECKING:
    from sfumato.estimation import Estimate
    from sfumato.survey import Survey

__all__ = ["estimate"]


def estimate(
    survey: SurveyFile,
    reports: Annotated[
        list[str], typer.Argument(metavar="REPORTS…", help="Report files, CSV or Parquet; - for a pipe.")
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the estimate: .csv; - for a pipe.")
    ] = None,
    html: Annotated[str | None, typer.Option(help="Write a report page: one HTML file that works offline.")] = None,
    png: Annotated[str | None, typer.Option(help="Write a picture of the estimate.")] = None,
    decoder: Decoder = "projection",
    as_json: Json = False,
) -> None:
    """Count reports and estimate the distribution of answers, with 95 % intervals.

    Examples:
      sfumato estimate survey.toml reports.parquet

      sfumato estimate survey.toml monday.parquet tuesday.csv -o estimate.csv --html report.html

      sfumato estimate survey.toml reports.parquet --json

    """
    from sfumato.cli.progress import row_counter
    from sfumato.estimation.decoders import decoder_named
    from sfumato.files import write_whole
    from sfumato.survey import Survey
    from sfumato.tables import report_batches

    _check_call(output, as_json=as_json)
    check_outputs(None if output == "-" else output, html, png, inputs=[survey, *reports])
    _demand_distinct(reports)
    decoder_named(decoder)
    asked = Survey.load(survey)
    with row_counter("counting"):
        tally = asked.tally(batch for path in reports for batch in report_batches(path, asked.fingerprint))
    found = asked.estimate(tally, decoder=decoder)
    page = _page(asked, found) if html is not None else ""  # made before anything is written: all files, or none
    if png is not None:
        _write_picture(asked, found, png)
    if output not in (None, "-"):
        write_whole(str(output), _csv(found).encode("utf-8"))
    if html is not None:
        write_whole(html, page.encode("utf-8"))
    if output == "-":
        typer.echo(_csv(found).encode("utf-8"), nl=False)
    else:
        typer.echo(json.dumps(_in_json(asked, found)) if as_json else repr(found))


def _demand_distinct(reports: list[str]) -> None:
    """A file that is named twice would be counted twice."""
    from pathlib import Path

    from sfumato.errors import InvalidTable

    named = [path if path == "-" else str(Path(path).resolve()) for path in reports]
    if len(set(named)) < len(named):
        raise InvalidTable("a report file is named twice, and would be counted twice. Name each once.")


def _check_call(output: str | None, *, as_json: bool) -> None:
    from sfumato.errors import InvalidTable

    if output == "-" and as_json:
        raise InvalidTable("choose one for the pipe: --output - (CSV) or --json.")
    if output not in (None, "-") and not str(output).endswith(".csv"):
        raise InvalidTable("the output must end in .csv, or be - for a pipe. For a page or a picture: --html, --png.")


def _rows(found: "Estimate") -> list[tuple[object, float, float, float, float]]:
    low, high = found.interval(0.95)
    columns = (found.frequencies, found.unbiased, low, high)
    return list(zip(found.labels, *(column.tolist() for column in columns), strict=True))


def _in_json(asked: "Survey", found: "Estimate") -> dict[str, object]:
    names = ("label", "frequency", "unbiased", "low", "high")
    symbols = [dict(zip(names, row, strict=True)) for row in _rows(found)]
    return {"survey": asked.fingerprint, "reports": found.reports, "decoder": found.decoder, "symbols": symbols}


def _csv(found: "Estimate") -> str:
    import csv
    import io

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["label", "frequency", "unbiased", "low", "high"])
    writer.writerows(_rows(found))
    return text.getvalue()


def _page(asked: "Survey", found: "Estimate") -> str:
    from sfumato.pages.report import report_page

    return report_page(asked, found, asked.certify())


def _write_picture(asked: "Survey", found: "Estimate", path: str) -> None:
    from sfumato.domains import GridDomain
    from sfumato.pages.charts import save_png

    domain = asked.context.domain
    save_png(found, path, grid=domain if isinstance(domain, GridDomain) else None)
