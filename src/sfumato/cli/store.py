"""`sfumato store`: look at an aggregator's store, leave out floods, and manage bulk senders.

The commands open the store itself, so they need no token, and work while aggregators run.
"""

import json
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import notify, say
from sfumato.cli.help import HelpCommand, HelpGroup
from sfumato.cli.options import Json
from sfumato.errors import InvalidArgument, MissingExtra
from sfumato.foundation.installation import install_hint

if TYPE_CHECKING:
    from sfumato.aggregator import Store
    from sfumato.aggregator.catalogue import DaySummary

StoreUrl = Annotated[
    str,
    typer.Option("--store", help="Database: sqlite:///FILE or postgresql://USER@HOST/DATABASE."),
]
SurveyName = Annotated[
    str,
    typer.Argument(metavar="SURVEY", help="A survey file, or at least 8 digits of a fingerprint."),
]
SenderName = Annotated[str, typer.Argument(metavar="SENDER", help="The name of a bulk sender.")]
DayOption = Annotated[
    str | None, typer.Option("--day", metavar="DATE", help="A day (UTC), such as 2026-11-15.")
]
SenderOption = Annotated[
    str | None, typer.Option("--sender", metavar="SENDER", help="The name of a bulk sender.")
]

_DEFAULT_STORE = "sqlite:///sfumato.db"
_MIN_DIGITS = 8

app = typer.Typer(cls=HelpGroup, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def main() -> None:
    """Look at an aggregator's store, leave out a flood, and manage bulk senders.

    The commands open the store itself, so they need no token. Aggregators may be running.

    Examples:
      sfumato store days survey.toml

      sfumato store leave-out survey.toml --day 2026-11-15

      sfumato store add-sender survey.toml north

    """


@app.command(cls=HelpCommand)
def days(survey: SurveyName, store: StoreUrl = _DEFAULT_STORE, as_json: Json = False) -> None:
    """Show what arrived on each day from each sender, so that you can see a flood.

    A fit below 0.001 means that honest devices rarely send such reports. The largest shift is how
    far a share could have moved if all of these reports were fake.

    Examples:
      sfumato store days survey.toml

    """
    with closing(_open(store)) as open_store:
        summaries = _summarize(open_store, _find_fingerprint(open_store, survey))
    if as_json:
        say(json.dumps([_day_fields(summary) for summary in summaries]))
        return
    say(f"{'day':<10}  {'sender':<16}  {'reports':>12}  {'fit':>7}  {'shift':>7}  in the results")
    for summary in summaries:
        say(_format_day(summary))


@app.command("leave-out", cls=HelpCommand)
def leave_out(
    survey: SurveyName,
    day: DayOption = None,
    sender: SenderOption = None,
    store: StoreUrl = _DEFAULT_STORE,
) -> None:
    """Leave a day or a bulk sender out of the results. Nothing is deleted.

    Examples:
      sfumato store leave-out survey.toml --day 2026-11-15

      sfumato store leave-out survey.toml --sender north

    """
    _require_choice(day, sender)
    parsed_day = _parse_day(day)
    with closing(_open(store)) as open_store:
        fingerprint = _find_fingerprint(open_store, survey)
        if sender is not None:
            open_store.leave_out_sender(fingerprint, sender)
        if parsed_day is not None:
            open_store.leave_out_day(fingerprint, parsed_day)
            _warn_of_empty_day(open_store, fingerprint, parsed_day)
        _show_omissions(open_store, fingerprint)


@app.command(cls=HelpCommand)
def include(
    survey: SurveyName,
    day: DayOption = None,
    sender: SenderOption = None,
    store: StoreUrl = _DEFAULT_STORE,
) -> None:
    """Include a day or a bulk sender in the results again.

    Examples:
      sfumato store include survey.toml --day 2026-11-15

    """
    _require_choice(day, sender)
    parsed_day = _parse_day(day)
    with closing(_open(store)) as open_store:
        fingerprint = _find_fingerprint(open_store, survey)
        if sender is not None:
            open_store.include_sender(fingerprint, sender)
        if parsed_day is not None:
            open_store.include_day(fingerprint, parsed_day)
        _show_omissions(open_store, fingerprint)


@app.command("add-sender", cls=HelpCommand)
def add_sender(survey: SurveyName, sender: SenderName, store: StoreUrl = _DEFAULT_STORE) -> None:
    """Issue a key for a bulk sender. If the sender has a key, the new one replaces it.

    The key is printed to standard output, once; only its hash is stored.

    Examples:
      sfumato store add-sender survey.toml north > north.key

    """
    with closing(_open(store)) as open_store:
        key = open_store.add_sender(_find_fingerprint(open_store, survey), sender)
    notify(f"key for {sender} (not shown again; send it as SFUMATO_KEY with `sfumato send`):")
    say(key)


@app.command(cls=HelpCommand)
def senders(survey: SurveyName, store: StoreUrl = _DEFAULT_STORE, as_json: Json = False) -> None:
    """List the bulk senders of a survey.

    Examples:
      sfumato store senders survey.toml

    """
    with closing(_open(store)) as open_store:
        listed = open_store.list_senders(_find_fingerprint(open_store, survey))
    if as_json:
        say(json.dumps([{"name": item.name, "revoked": item.is_revoked} for item in listed]))
        return
    for item in listed:
        say(f"{item.name}{'  (revoked)' if item.is_revoked else ''}")
    if not listed:
        notify("This survey has no bulk senders. Add one with `sfumato store add-sender`.")


@app.command("revoke-sender", cls=HelpCommand)
def revoke_sender(survey: SurveyName, sender: SenderName, store: StoreUrl = _DEFAULT_STORE) -> None:
    """Revoke a bulk sender's key. What it sent stays in the results; see leave-out.

    Examples:
      sfumato store revoke-sender survey.toml north

    """
    with closing(_open(store)) as open_store:
        open_store.revoke_sender(_find_fingerprint(open_store, survey), sender)
    notify(f"The key of {sender} is revoked.")


def _open(url: str) -> "Store":
    try:
        from sfumato.aggregator import Store
    except ImportError as problem:
        raise MissingExtra(f"the store needs {problem.name}: {install_hint('server')}") from None
    file = url.removeprefix("sqlite:///")
    if file != url and not Path(file).exists():  # opening it would create an empty store
        raise InvalidArgument(f"there is no store at {file}. Pass --store, as you do to serve.")
    return Store.open_current(url)


def _find_fingerprint(store: "Store", survey: str) -> str:
    """Return the fingerprint of a survey in the store, given its file or its first digits."""
    from sfumato.survey import Survey

    prefix = Survey.load(survey).fingerprint if Path(survey).exists() else survey.lower()
    matches = [name for name in store.read_states() if name.startswith(prefix)]
    if len(prefix) < _MIN_DIGITS or len(matches) != 1:
        raise InvalidArgument(
            f"{survey} must be a survey file, or at least {_MIN_DIGITS} digits of the fingerprint "
            f"of one survey in the store. Matching surveys: {len(matches)}."
        )
    return matches[0]


def _summarize(store: "Store", fingerprint: str) -> "list[DaySummary]":
    from sfumato.aggregator.catalogue import Catalogue, Estimates
    from sfumato.aggregator.threads import StoreThreads

    entry = Catalogue(store).find(fingerprint)
    return [] if entry is None else Estimates(store, StoreThreads(store)).summarize_days_now(entry)


def _day_fields(summary: "DaySummary") -> dict[str, object]:
    """Return the fields under the names that the aggregator's HTTP interface uses."""
    return {
        "day": summary.day,
        "sender": summary.sender,
        "reports": summary.reports,
        "left_out": summary.is_left_out,
        "fit": summary.p_value,
        "largest_shift": summary.largest_shift,
    }


def _format_day(summary: "DaySummary") -> str:
    fit = "too few" if summary.p_value is None else f"{summary.p_value:.3f}"
    return (
        f"{summary.day:<10}  {summary.sender or 'anonymous':<16}  {summary.reports:>12,}  "
        f"{fit:>7}  {summary.largest_shift:>7.1%}  {'left out' if summary.is_left_out else 'yes'}"
    )


def _show_omissions(store: "Store", fingerprint: str) -> None:
    omissions = store.read_omissions(fingerprint)
    names = [*omissions.days, *(f"sender {name}" for name in omissions.senders)]
    if names:
        notify(f"The results leave out: {', '.join(names)}.")
    else:
        notify("The results leave out nothing.")


def _warn_of_empty_day(store: "Store", fingerprint: str, day: date) -> None:
    by_hour = store.read_status(fingerprint).by_hour
    if not any(hour.startswith(day.isoformat()) for hour, _ in by_hour):
        notify(f"Warning: no reports arrived on {day.isoformat()}.")


def _require_choice(day: str | None, sender: str | None) -> None:
    if day is None and sender is None:
        raise InvalidArgument("choose what to leave out or include: --day DATE or --sender SENDER.")


def _parse_day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidArgument("--day must be a date such as 2026-11-15.") from None
