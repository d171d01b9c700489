"""`sfumato send`: privatize answers and deliver the reports to an aggregator."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

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
    notify_rows,
)
from sfumato.cli.console import notify, say, show_bar, show_row_count
from sfumato.cli.options import Json, SurveyFile, check_output_paths
from sfumato.errors import DamagedState, InvalidArgument, SfumatoError

if TYPE_CHECKING:
    from threading import Event

    from sfumato.client.http import AggregatorClient
    from sfumato.client.outbox import Outbox
    from sfumato.survey import AnswerColumns, Survey

_MAX_CONCURRENT_REQUESTS = 4


def send(
    survey: SurveyFile,
    answers: AnswersFile,
    to: Annotated[
        str,
        typer.Option(
            metavar="URL", help="URL of the aggregator, e.g. https://surveys.example.org."
        ),
    ],
    column: Column = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    missing: Missing = None,
    missing_codes: MissingCodes = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    table: TableFile = None,
    outbox: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help=(
                "File for undelivered reports. Default: next to the answers. "
                "Required if the answers come from standard input."
            ),
        ),
    ] = None,
    batch_size: Annotated[
        int, typer.Option(min=1, max=65_536, help="Reports per request.")
    ] = 10_000,
    key: Annotated[
        str | None,
        typer.Option(
            envvar="SFUMATO_KEY",
            metavar="KEY",
            help=(
                "Sender's key from the aggregator's operator. Better in the environment, because "
                "other users of this computer can see options."
            ),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Randomize each answer once, locally, and deliver each report to an aggregator exactly once.

    First checks that the aggregator has the survey. Then writes all reports to the outbox before
    sending any. If a run fails or is stopped, run the same command again: it continues from the
    outbox. No answer is randomized again, and no report is counted twice. Afterwards, the outbox
    remains as a record of what was sent; delete it to send the same answers again.

    Without a sender's key, an aggregator accepts only small uploads, usually of a single report
    (--batch-size 1).

    Examples:
      sfumato send survey.toml answers.csv --column place --to https://surveys.example.org

      sfumato send survey.toml trips.parquet --latitude lat --longitude lon --to URL --json

      cat answers.csv | sfumato send survey.toml - --column place --to URL --outbox a.outbox

    """
    from pathlib import Path
    from threading import Event

    from sfumato.batches import UploadRules
    from sfumato.client.http import AggregatorClient
    from sfumato.client.outbox import Outbox
    from sfumato.survey import Survey

    if answers == "-" and outbox is None:
        raise InvalidArgument(
            "standard input cannot be read twice. Pass a file for the reports with --outbox."
        )
    options = AnswerOptions(
        column, latitude, longitude, missing, missing_codes, delimiter, sheet, table
    )
    loaded_survey = Survey.load(survey)
    loaded_survey.certify()
    outbox_path = outbox or f"{answers}.{loaded_survey.fingerprint[:12]}.outbox"
    check_output_paths(outbox_path, inputs=[survey, answers])
    stop = Event()
    aggregator = AggregatorClient(to, pause=stop.wait, key=key)
    if not Path(outbox_path).exists():
        columns = options.columns_for(loaded_survey, answers)
        _require_survey(loaded_survey, aggregator)
        _write_reports(loaded_survey, answers, columns, outbox_path, aggregator.url, batch_size)
    open_outbox = Outbox(outbox_path, UploadRules.from_survey(loaded_survey), aggregator.url)
    resume_hint = (
        f"The reports are kept in {outbox_path}. Run the same command again; no report is counted "
        "twice."
    )
    try:
        _deliver(open_outbox, aggregator, stop)
    except DamagedState:  # the message already says what to do
        raise
    except SfumatoError as problem:
        raise _with_hint(problem, resume_hint) from None
    except KeyboardInterrupt:
        notify(f"sfumato: stopped. {resume_hint}")
        raise
    finally:
        open_outbox.close()
    open_outbox.finish()
    if as_json:
        result = {
            "survey": loaded_survey.fingerprint,
            "to": aggregator.url,
            "reports": open_outbox.report_count,
            "batches": open_outbox.batch_count,
        }
        say(json.dumps(result))
        return
    short_fingerprint = f"{loaded_survey.fingerprint[:12]}…"
    say(
        f"{open_outbox.report_count:,} reports for survey {short_fingerprint} counted by "
        f"{aggregator.url}."
    )


def _with_hint(problem: SfumatoError, hint: str) -> SfumatoError:
    """Append a hint to an error's message, and return the error."""
    problem.args = (f"{problem} {hint}",)
    return problem


def _require_survey(survey: "Survey", aggregator: "AggregatorClient") -> None:
    """Check that the aggregator has the survey, before any report is drawn.

    Reports are bound to one aggregator, so a mistyped URL must be detected first.
    """
    try:
        aggregator.fetch_survey(survey.fingerprint)
    except SfumatoError as problem:
        hint = f"Nothing was randomized. Is {aggregator.url} the right aggregator?"
        raise _with_hint(problem, hint) from None


def _write_reports(
    survey: "Survey", answers: str, columns: "AnswerColumns", outbox: str, url: str, batch_size: int
) -> None:
    """Randomize the answers, and write the reports to a new outbox."""
    from sfumato.batches import UploadRules
    from sfumato.client.outbox import write_outbox
    from sfumato.engines import privatize_files
    from sfumato.tables import RowCounter

    counter = RowCounter(survey.context.domain, columns)
    with show_row_count("privatizing") as on_progress:
        reports = privatize_files(
            survey, [answers], columns, counter=counter, on_progress=on_progress
        )
        write_outbox(outbox, UploadRules.from_survey(survey), url, reports, batch_size=batch_size)
    notify_rows(counter)


def _deliver(outbox: "Outbox", aggregator: "AggregatorClient", stop: "Event") -> None:
    """Deliver all batches, a few at a time; stop at the first failure."""
    from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

    from sfumato.client.http import Receipt

    delivered_count = 0
    pending: set[Future[Receipt]] = set()

    def wait_for_pending(max_pending: int) -> None:
        """Wait until at most ``max_pending`` batches are pending."""
        nonlocal delivered_count, pending
        while len(pending) > max_pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            delivered_count += sum(future.result().reports for future in done)
            on_progress(delivered_count)

    with (
        show_bar("sending", outbox.report_count) as on_progress,
        ThreadPoolExecutor(_MAX_CONCURRENT_REQUESTS) as pool,
    ):
        try:
            for batch in outbox.batches():
                pending.add(pool.submit(aggregator.deliver, batch, arrow=True))
                wait_for_pending(2 * _MAX_CONCURRENT_REQUESTS - 1)
            wait_for_pending(0)
        except BaseException:
            # End all pauses between retries. Batches in flight can be resent safely.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
