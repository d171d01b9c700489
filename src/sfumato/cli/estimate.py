"""`sfumato estimate`: estimate the distribution of answers from reports."""

import json
import shutil
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.browser import OpenPage, open_page, require_page
from sfumato.cli.console import notify, print_csv, say, show_row_count, show_status
from sfumato.cli.options import (
    Decoder,
    Json,
    SurveyFile,
    check_output_paths,
    read_values,
    require_distinct_files,
    write_outputs,
)
from sfumato.cli.share_table import format_shares
from sfumato.errors import InvalidArgument
from sfumato.foundation.formatting import plural

if TYPE_CHECKING:
    from sfumato.estimation import Estimate
    from sfumato.survey import Survey

_DISTRUST_ADVICE = (
    "The reports may be forged, or come from a broken client. Do not rely on this estimate."
)


def estimate(
    survey: SurveyFile,
    reports: Annotated[
        list[str],
        typer.Argument(
            metavar="REPORTS",
            help="Report files (CSV, Parquet) or tallies (.json); - for standard input.",
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Table of the estimate: .csv, .parquet or .xlsx; - for CSV on standard output.",
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(help="Output file for a self-contained HTML report page."),
    ] = None,
    png: Annotated[str | None, typer.Option(help="PNG file for a chart of the estimate.")] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Show a chart in the terminal.")] = False,
    decoder: Decoder = "auto",
    covariate: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.csv",
            help=(
                "Public numbers that may correlate with the shares, for auto and empirical-bayes: "
                "CSV with a label column and exactly one other column."
            ),
        ),
    ] = None,
    opens_page: OpenPage = False,
    as_json: Json = False,
) -> None:
    """Count reports and estimate the distribution of answers, with 95% confidence intervals.

    Warns if the reports cannot have come from the survey's mechanism.

    Examples:
      sfumato estimate survey.toml reports.parquet --plot

      sfumato estimate survey.toml monday.parquet tuesday.csv -o estimate.xlsx --html report.html

      sfumato estimate survey.toml north.json south.json --html report.html

      sfumato estimate survey.toml reports.parquet --covariate population.csv --json

    """
    from sfumato.estimation.decoders import get_decoder
    from sfumato.estimation.model_summary import decoder_with_models
    from sfumato.survey import RESULT_COLUMNS, Survey, result_rows, results_as_json
    from sfumato.tables import count_files, formula_note, table_bytes, table_csv

    to_stdout = output == "-"
    _check_output(output, as_json=as_json)
    require_page(html, opens_page=opens_page)
    inputs = [survey, *reports]
    if covariate is not None:
        inputs.append(covariate)
    check_output_paths(None if to_stdout else output, html, png, inputs=inputs)
    require_distinct_files(reports)
    chosen_decoder = get_decoder(decoder)
    if covariate is not None and not hasattr(chosen_decoder, "covariate"):
        raise InvalidArgument(
            f"the decoder {decoder} does not use a covariate. Omit --covariate, or choose auto or "
            "empirical-bayes."
        )
    loaded_survey = Survey.load(survey)
    covariate_values = None
    if covariate is not None:
        covariate_values = read_values(covariate, "covariate", loaded_survey.context.domain)
    with show_row_count("counting"):
        tally = count_files(reports, loaded_survey)
    with show_status("decoding"):  # a minute or more for a million integers
        result = loaded_survey.estimate(tally, decoder=chosen_decoder, covariate=covariate_values)
    fit = result.fit_result
    rows = result_rows(result)
    # Compute everything before writing anything, because each output may fail.
    write_outputs(
        (html, lambda: _html_bytes(loaded_survey, result)),
        (png, lambda: result.plot().to_png()),
        (None if to_stdout else output, lambda: table_bytes(str(output), RESULT_COLUMNS, rows)),
    )
    if html is not None and opens_page:
        open_page(html)
    if to_stdout:
        print_csv(table_csv(RESULT_COLUMNS, rows))
    elif as_json:
        say(json.dumps(results_as_json(loaded_survey, result)))
    else:
        columns = loaded_survey.description.table
        table = format_shares(result, loaded_survey.context.domain, columns)
        decoder_text = decoder_with_models(result.decoder, result.model_summary)
        say(f"{plural(result.reports, 'report')}. {fit.verdict}")
        say(f"Decoder: {decoder_text}.\n\n{table}")
        if plot:
            say(f"\n{result.plot().to_text(shutil.get_terminal_size().columns)}")
    note = formula_note(result.labels)
    if note and output is not None and (to_stdout or output.endswith(".csv")):
        notify(f"Note: {note}")
    if not fit.is_possible:
        notify(f"Warning: {fit.verdict} {_DISTRUST_ADVICE}")


def _check_output(output: str | None, *, as_json: bool) -> None:
    from sfumato.tables import require_table_path

    if output is None:
        return
    if output == "-":
        if as_json:
            raise InvalidArgument(
                "standard output can contain CSV (--output -) or JSON (--json), not both."
            )
    else:
        require_table_path(output)


def _html_bytes(survey: "Survey", result: "Estimate") -> bytes:
    from sfumato.pages import report_page

    return report_page(survey, result, survey.certify()).encode("utf-8")
