"""`sfumato send`: privatise answers and deliver the reports to an aggregator."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import notify, say, show_bar, show_row_count
from sfumato.cli.options import (
    AnswersFile,
    Column,
    Json,
    Latitude,
    Longitude,
    SurveyFile,
    check_output_paths,
)
from sfumato.errors import DamagedState, InvalidArgument, SfumatoError

if TYPE_CHECKING:
    from threading import Event

    from sfumato.client.http import AggregatorClient
    from sfumato.client.outbox import Outbox
    from sfumato.survey import Survey
    from sfumato.tables import AnswerColumns

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
    outbox: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File for undelivered reports. Default: next to the answers. Required with -.",
        ),
    ] = None,
    batch_size: Annotated[
        int, typer.Option(min=1, max=65_536, help="Reports per request.")
    ] = 10_000,
    as_json: Json = False,
) -> None:
    """Randomise each answer once, locally, and deliver each report to an aggregator exactly once.

    First checks that the aggregator has the survey. Then writes all reports to the outbox before it
    sends any. If a run fails or is stopped, run the same command again: it continues from the
    outbox, randomises nothing again and counts nothing twice. Afterwards, the outbox remains as a
    record of what was sent; delete it to send the same answers again.

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
    from sfumato.tables import AnswerColumns

    if answers == "-" and outbox is None:
        raise InvalidArgument(
            "standard input cannot be read twice: use --outbox to name a file for the reports."
        )
    loaded_survey = Survey.load(survey)
    loaded_survey.certify()
    path = outbox or f"{answers}.{loaded_survey.fingerprint[:12]}.outbox"
    check_output_paths(path, inputs=[survey, answers])
    stop = Event()
    aggregator = AggregatorClient(to, pause=stop.wait)
    if not Path(path).exists():
        _require_survey(loaded_survey, aggregator)
        columns = AnswerColumns(column, latitude, longitude)
        _privatize(loaded_survey, answers, columns, path, aggregator.url, batch_size)
    queue = Outbox(path, UploadRules.from_survey(loaded_survey), aggregator.url)
    hint = f"The reports are kept in {path}. Run the same command again; each is counted only once."
    try:
        _deliver(queue, aggregator, stop)
    except DamagedState:  # the outbox is damaged; the message says what to do
        raise
    except SfumatoError as problem:
        raise _with_hint(problem, hint) from None
    except KeyboardInterrupt:
        notify(f"sfumato: stopped. {hint}")
        raise
    finally:
        queue.close()
    queue.finish()
    if as_json:
        result = {
            "survey": loaded_survey.fingerprint,
            "to": aggregator.url,
            "reports": queue.report_count,
            "batches": queue.batch_count,
        }
        say(json.dumps(result))
        return
    name = f"{loaded_survey.fingerprint[:12]}…"
    say(f"{queue.report_count:,} reports for survey {name} counted by {aggregator.url}.")


def _with_hint(problem: SfumatoError, hint: str) -> SfumatoError:
    """Append a hint to the message of an error, and return the error."""
    problem.args = (f"{problem} {hint}",)
    return problem


def _require_survey(survey: "Survey", aggregator: "AggregatorClient") -> None:
    """Reject a mistyped URL before reports are drawn, because they are bound to one aggregator."""
    try:
        aggregator.fetch_survey(survey.fingerprint)
    except SfumatoError as problem:
        hint = f"Nothing was randomised. Is {aggregator.url} the right aggregator?"
        raise _with_hint(problem, hint) from None


def _privatize(
    survey: "Survey", answers: str, columns: "AnswerColumns", outbox: str, url: str, batch_size: int
) -> None:
    from sfumato.batches import UploadRules
    from sfumato.client.outbox import write_outbox
    from sfumato.tables import answer_batches

    domain = survey.context.domain
    with show_row_count("privatising") as on_progress:
        batches = answer_batches(answers, columns, domain, on_progress=on_progress)
        reports = map(survey.mechanism.privatize, batches)
        write_outbox(outbox, UploadRules.from_survey(survey), url, reports, batch_size=batch_size)


def _deliver(outbox: "Outbox", aggregator: "AggregatorClient", stop: "Event") -> None:
    """Deliver all batches, a few at a time and in any order; stop at the first failure."""
    from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

    from sfumato.client.http import Receipt

    total = 0
    pending: set[Future[Receipt]] = set()

    def wait_for_pending(max_pending: int) -> None:
        """Wait until at most ``max_pending`` batches are pending."""
        nonlocal total, pending
        while len(pending) > max_pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            total += sum(future.result().reports for future in done)
            on_progress(total)

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
