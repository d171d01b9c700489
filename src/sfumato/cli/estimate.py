"""`sfumato estimate`: reports in, the distribution with error bars out."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.options import Decoder, Json, SurveyFile

if TYPE_CHECKING:
    from sfumato.estimation import Estimate
    from sfumato.survey import Survey

__all__ = ["estimate"]


def estimate(
    survey: SurveyFile,
    reports: Annotated[
        list[str], typer.Argument(metavar="REPORTS…", help="Report files, CSV or Parquet; - for a pipe.")
    ],
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write the estimate as CSV.")] = None,
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
    from sfumato.survey import Survey
    from sfumato.tables import report_batches

    asked = Survey.load(survey)
    with row_counter("counting"):
        tally = asked.tally(batch for path in reports for batch in report_batches(path, asked.fingerprint))
    found = asked.estimate(tally, decoder=decoder)
    if output is not None:
        _write_csv(found, output)
    if html is not None:
        _write_page(asked, found, html)
    if png is not None:
        _write_picture(asked, found, png)
    typer.echo(json.dumps(_in_json(asked, found), ensure_ascii=False) if as_json else repr(found))


def _rows(found: "Estimate") -> list[tuple[object, float, float, float, float]]:
    low, high = found.interval(0.95)
    columns = (found.frequencies, found.unbiased, low, high)
    return list(zip(found.labels, *(column.tolist() for column in columns), strict=True))


def _in_json(asked: "Survey", found: "Estimate") -> dict[str, object]:
    names = ("label", "frequency", "unbiased", "low", "high")
    symbols = [dict(zip(names, row, strict=True)) for row in _rows(found)]
    return {"survey": asked.fingerprint, "reports": found.reports, "decoder": found.decoder, "symbols": symbols}


def _write_csv(found: "Estimate", path: str) -> None:
    import csv
    import io

    from sfumato.files import whole_file

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["label", "frequency", "unbiased", "low", "high"])
    writer.writerows(_rows(found))
    with whole_file(path) as file:
        file.write(text.getvalue().encode("utf-8"))


def _write_page(asked: "Survey", found: "Estimate", path: str) -> None:
    from sfumato.files import whole_file
    from sfumato.pages.report import report_page

    page = report_page(asked, found, asked.certify())
    with whole_file(path) as file:
        file.write(page.encode("utf-8"))


def _write_picture(asked: "Survey", found: "Estimate", path: str) -> None:
    from sfumato.domains import GridDomain
    from sfumato.pages.charts import save_png

    domain = asked.context.domain
    save_png(found, path, grid=domain if isinstance(domain, GridDomain) else None)
