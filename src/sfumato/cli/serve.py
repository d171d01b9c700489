"""`sfumato serve`: run an aggregator."""

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import notify
from sfumato.errors import MissingExtra

if TYPE_CHECKING:
    from sfumato.aggregator import Store


def serve(
    surveys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SURVEY]…", help="Surveys to serve: TOML, or resolved (JSON)."),
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
    proxy: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Reverse proxy whose X-Forwarded-For header to trust."
        ),
    ] = None,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Replace the analyst token and print the new one.")
    ] = False,
) -> None:
    """Run an aggregator: receive reports, count them and serve results to analysts.

    Serves the given surveys and all surveys already in the store. The first run prints a new token
    for analysts; only its hash is stored.

    Examples:
      sfumato serve survey.toml

      sfumato serve survey.toml --store postgresql://sfumato@localhost/reports --host 0.0.0.0

      sfumato serve --store sqlite:////var/lib/sfumato/reports.db --proxy 127.0.0.1

    """
    try:
        import uvicorn

        from sfumato import aggregator
    except ImportError as problem:
        raise MissingExtra(
            f"the aggregator needs {problem.name}: pip install 'sfumato[server]'"
        ) from None
    # Bind the address first: an aggregator that cannot start must not show a token.
    with (
        aggregator.listen(host, port) as socket,
        closing(aggregator.Store.open(store)) as open_store,
    ):
        _register_surveys(open_store, surveys or [])
        _show_new_token(open_store, new_token=new_token)
        settings = aggregator.Settings(requests_per_minute=requests_per_minute)
        config = uvicorn.Config(
            aggregator.create_app(open_store, settings),
            log_level="warning",
            access_log=False,  # do not log the addresses of participants
            server_header=False,
            proxy_headers=proxy is not None,
            forwarded_allow_ips=proxy,
            timeout_graceful_shutdown=10,
        )
        aggregator.shorten_switch_interval()
        aggregator.run_server(
            config, socket, lambda address: notify(f"Sfumato is listening on {address}")
        )


def _register_surveys(store: "Store", paths: list[str]) -> None:
    from sfumato.survey import Survey

    loaded_surveys = [Survey.load(path) for path in paths]
    for survey in loaded_surveys:
        survey.certify()  # check all surveys before registering any
    for survey in loaded_surveys:
        store.register(survey)
        notify(f"survey {survey.name}: {survey.fingerprint}")


def _show_new_token(store: "Store", *, new_token: bool) -> None:
    """Create and print an analyst token if the store has no token, or if ``new_token`` is true."""
    from sfumato.aggregator import Token

    token = Token(store)
    if new_token or not token.exists:
        notify(f"Analyst token (shown only once): {token.create()}")
