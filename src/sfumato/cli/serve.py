"""`sfumato serve`: run an aggregator."""

import os
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.advice import warn_about_missing_fields
from sfumato.cli.browser import open_in_background, secret_redirect
from sfumato.cli.console import notify
from sfumato.errors import MissingExtra
from sfumato.foundation.installation import install_hint

if TYPE_CHECKING:
    from sfumato.aggregator import Store

_METRICS_FOLDERS = ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir")
"""Variables that make prometheus_client keep metrics in a folder. If an operator has set one for
other programs, ``/metrics`` would add up theirs, and those of earlier runs. Workers get a folder of
their own."""


def serve(
    surveys: Annotated[
        list[str] | None,
        typer.Argument(metavar="SURVEY", help="Surveys to serve: TOML, or resolved (JSON)."),
    ] = None,
    store: Annotated[
        str,
        typer.Option(help="Database: sqlite:///FILE or postgresql://USER@HOST/DATABASE."),
    ] = "sqlite:///sfumato.db",
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for all interfaces.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8750,
    requests_per_minute: Annotated[
        int,
        typer.Option(min=0, help="Maximum requests per client per minute; 0 for no limit."),
    ] = 6000,
    reports_per_upload: Annotated[
        int,
        typer.Option(
            min=1,
            max=65_536,
            help="Maximum reports in an upload without a key; each counts as a request.",
        ),
    ] = 1,
    proxy: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Reverse proxy whose X-Forwarded-For header to trust."
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that receive reports (Linux only).")
    ] = 1,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Replace the analyst token and print the new one.")
    ] = False,
    open_dashboard: Annotated[
        bool, typer.Option("--open", help="Open the dashboard in a web browser.")
    ] = False,
) -> None:
    """Run an aggregator: receive reports, count them and serve results to analysts.

    Serves the given surveys and all surveys already in the store. The first run prints a new token
    for analysts; only its hash is stored.

    Examples:
      sfumato serve survey.toml --open

      sfumato serve survey.toml --store postgresql://sfumato@localhost/reports --host 0.0.0.0

      sfumato serve --store sqlite:////var/lib/sfumato/reports.db --proxy 127.0.0.1

    """
    for name in _METRICS_FOLDERS:
        os.environ.pop(name, None)
    try:
        from sfumato import aggregator
    except ImportError as problem:
        raise MissingExtra(
            f"the aggregator needs {problem.name}: {install_hint('server')}"
        ) from None
    aggregator.limit_arenas()
    with ExitStack() as stack:
        # Bind the address first: an aggregator that cannot start must not show a token.
        if workers == 1:
            sockets = [aggregator.listen(host, port)]
        else:
            sockets = aggregator.listen_together(host, port, workers)
        for listening_socket in sockets:
            stack.enter_context(listening_socket)
        open_store = stack.enter_context(closing(aggregator.Store.open(store)))
        _register_surveys(open_store, surveys or [])
        token = _show_new_token(open_store, new_token=new_token)

        def show_address(address: str) -> None:
            notify(f"Sfumato is listening on {address}")
            url = _dashboard_url(address, token)
            if token is not None:
                notify(f"Dashboard for analysts, with the token: {url}")
            if open_dashboard:
                open_in_background(stack.enter_context(secret_redirect(url)))

        if workers > 1:
            setup = aggregator.WorkerSetup(
                store, workers, requests_per_minute, reports_per_upload, proxy
            )
            open_store.close()  # each worker opens its own
            aggregator.run_workers(sockets, setup, show_address)
            return
        settings = aggregator.Settings(
            requests_per_minute=requests_per_minute,
            reports_per_upload=reports_per_upload,
            connections=aggregator.ConnectionLimits.for_this_process(),
        )
        app = aggregator.create_app(open_store, settings)
        aggregator.shorten_switch_interval()
        aggregator.run_server(app, sockets[0], show_address, proxy=proxy)


def _register_surveys(store: "Store", paths: list[str]) -> None:
    from sfumato.survey import Survey

    loaded_surveys = [Survey.load(path) for path in paths]
    for survey in loaded_surveys:
        survey.certify()  # check all surveys before registering any
    for survey, path in zip(loaded_surveys, paths, strict=True):
        store.register(survey)
        notify(f"survey {survey.name}: {survey.fingerprint}")
        warn_about_missing_fields(survey, path)


def _dashboard_url(address: str, token: str | None) -> str:
    """Return the dashboard's URL. Browsers never send the fragment, which contains the token."""
    # A browser cannot connect to an address that stands for all interfaces.
    local_address = address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    return f"{local_address}/" if token is None else f"{local_address}/#token={token}"


def _show_new_token(store: "Store", *, new_token: bool) -> str | None:
    """Create and print an analyst token if the store has no token, or if ``new_token`` is true.

    Return the token if it is new; otherwise, only its hash is known.
    """
    from sfumato.aggregator import Token

    token = Token(store)
    if token.exists and not new_token:
        return None
    text = token.create()
    notify(f"Analyst token (not shown again): {text}")
    return text
