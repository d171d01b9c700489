"""`sfumato send`: answers in, reports out to an aggregator."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import say, warn
from sfumato.cli.options import (
    AnswersFile,
    Column,
    Json,
    Latitude,
    Longitude,
    SurveyFile,
    check_outputs,
)
from sfumato.errors import DamagedState, InvalidTable, SfumatoError

if TYPE_CHECKING:
    from threading import Event

    from sfumato.client.http import AggregatorClient
    from sfumato.client.outbox import Outbox
    from sfumato.survey import Survey
    from sfumato.tables import AnswerColumns

__all__ = ["send"]

_IN_FLIGHT = 4


def send(
    survey: SurveyFile,
    answers: AnswersFile,
    to: Annotated[
        str, typer.Option(metavar="URL", help="The aggregator, e.g. https://surveys.example.org.")
    ],
    column: Column = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    outbox: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where reports wait; beside the answers unless given. A pipe needs one.",
        ),
    ] = None,
    batch_size: Annotated[
        int, typer.Option(min=1, max=65_536, help="How many reports travel together.")
    ] = 10_000,
    as_json: Json = False,
) -> None:
    """Randomise each answer on this side, once, and have an aggregator count the reports, once.

    The aggregator is asked for the survey first. Then all reports are written to the outbox before one is sent. If a
    run fails or is stopped, run the same command again: it goes on from the outbox, randomises nothing anew and counts
    nobody twice. In the end the outbox becomes a record that says what was sent; remove it to send the same answers
    again.

    Examples:
      sfumato send survey.toml answers.csv --column place --to https://surveys.example.org

      sfumato send survey.toml trips.parquet --latitude lat --longitude lon --to http://127.0.0.1:8750 --json

      cat answers.csv | sfumato send survey.toml - --column place --to http://127.0.0.1:8750 --outbox monday.outbox

    """
    from pathlib import Path
    from threading import Event

    from sfumato.client.http import AggregatorClient
    from sfumato.client.outbox import Outbox
    from sfumato.survey import Survey
    from sfumato.tables import AnswerColumns

    if answers == "-" and outbox is None:
        raise InvalidTable(
            "answers from a pipe cannot be read twice: name a file for them with --outbox."
        )
    asked = Survey.load(survey)
    asked.certify()
    waiting = outbox or f"{answers}.{asked.fingerprint[:12]}.outbox"
    check_outputs(waiting, inputs=[survey, answers])
    stop = Event()
    aggregator = AggregatorClient(to, pause=stop.wait)
    if not Path(waiting).exists():
        _ask_for(asked, aggregator)
        _privatize(
            asked,
            answers,
            AnswerColumns(column, latitude, longitude),
            waiting,
            aggregator.url,
            batch_size,
        )
    filled = Outbox(waiting, asked.fingerprint, aggregator.url)
    try:
        _deliver(filled, aggregator, stop)
    except DamagedState:  # of the outbox itself: the message says what to do
        raise
    except SfumatoError as problem:
        raise _saying(problem, _waits(waiting)) from None
    except KeyboardInterrupt:
        warn(f"sfumato: stopped. {_waits(waiting)}")
        raise
    finally:
        filled.close()
    filled.finish()
    result = {
        "survey": asked.fingerprint,
        "to": aggregator.url,
        "reports": filled.reports,
        "batches": filled.size,
    }
    said = f"{filled.reports:,} reports of survey {asked.fingerprint[:12]}… counted by {aggregator.url}."
    say(json.dumps(result) if as_json else said)


def _waits(outbox: str) -> str:
    return f"The reports wait in {outbox}: run the same command again, and each is counted once."


def _saying(problem: SfumatoError, more: str) -> SfumatoError:
    """The same error, with a sentence more."""
    problem.args = (f"{problem} {more}",)
    return problem


def _ask_for(asked: "Survey", aggregator: "AggregatorClient") -> None:
    """Refuse a mistyped URL while it costs nothing: reports are bound to one aggregator once they are made."""
    try:
        aggregator.survey(asked.fingerprint)
    except SfumatoError as problem:
        raise _saying(
            problem, f"Nothing was randomised. Is {aggregator.url} the right aggregator?"
        ) from None


def _privatize(
    asked: "Survey", answers: str, columns: "AnswerColumns", outbox: str, url: str, batch_size: int
) -> None:
    from sfumato.cli.progress import row_counter
    from sfumato.client.outbox import write_outbox
    from sfumato.tables import answer_batches

    with row_counter("privatising") as on_progress:
        symbols = answer_batches(answers, columns, asked.context.domain, on_progress=on_progress)
        reports = (asked.mechanism.privatize(some) for some in symbols)
        write_outbox(outbox, asked.fingerprint, url, reports, batch_size=batch_size)


def _deliver(filled: "Outbox", aggregator: "AggregatorClient", stop: "Event") -> None:
    """Have every batch counted, a few at a time and in any order; the first that fails stops the others."""
    from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

    from sfumato.cli.progress import bar_shown
    from sfumato.client.http import Receipt

    def settled(flying: set[Future[Receipt]]) -> tuple[int, set[Future[Receipt]]]:
        done, others = wait(flying, return_when=FIRST_COMPLETED)
        return sum(receipt.result().reports for receipt in done), others

    counted, flying = 0, set[Future[Receipt]]()
    with bar_shown("sending", filled.reports) as show, ThreadPoolExecutor(_IN_FLIGHT) as pool:
        try:
            for batch in filled.batches():
                flying.add(pool.submit(aggregator.deliver, batch, arrow=True))
                while len(flying) >= 2 * _IN_FLIGHT:
                    more, flying = settled(flying)
                    counted += more
                    show(counted)
            while flying:
                more, flying = settled(flying)
                counted += more
                show(counted)
        except BaseException:
            stop.set()  # nobody pauses any longer; what is on its way is counted or not, and can be sent again
            pool.shutdown(wait=False, cancel_futures=True)
            raise
