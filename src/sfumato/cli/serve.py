"""`sfumato serve`: the aggregator, left running."""

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import warn
from sfumato.errors import MissingExtra

if TYPE_CHECKING:
    from sfumato.aggregator import Store

__all__ = ["serve"]


def serve(
    surveys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SURVEY]…", help="Surveys to open: TOML files, or resolved ones (JSON)."
        ),
    ] = None,
    store: Annotated[
        str,
        typer.Option(
            help="Where counts are kept: sqlite:///FILE or postgresql://USER@HOST/DATABASE."
        ),
    ] = "sqlite:///sfumato.db",
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 for all.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 8750,
    requests_per_minute: Annotated[
        int,
        typer.Option(
            min=0, help="How many requests one client may make in a minute; 0 for any number."
        ),
    ] = 6000,
    proxy: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="The reverse proxy whose X-Forwarded-For is believed."
        ),
    ] = None,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Replace the analysts' token, and print it.")
    ] = False,
) -> None:
    """Receive reports, count them, answer analysts. Surveys that the store holds are served too.

    At the first start a token for analysts is made and printed; only its hash is kept.

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
    # The address first: a token is not shown by an aggregator that cannot start.
    with aggregator.listen(host, port) as socket, closing(aggregator.Store.open(store)) as opened:
        _register(opened, surveys or [])
        _show_token(opened, new_token=new_token)
        settings = aggregator.Settings(requests_per_minute=requests_per_minute)
        config = uvicorn.Config(
            aggregator.create_app(opened, settings),
            log_level="warning",
            access_log=False,  # addresses of people who answered are nobody's business
            server_header=False,
            proxy_headers=proxy is not None,
            forwarded_allow_ips=proxy,
            timeout_graceful_shutdown=10,
        )
        aggregator.shorten_switch_interval()
        aggregator.run_server(config, socket, lambda address: warn(f"Sfumato listens on {address}"))


def _register(store: "Store", paths: list[str]) -> None:
    from sfumato.survey import Survey

    loaded = [Survey.load(path) for path in paths]
    for survey in loaded:
        survey.certify()  # all of them, before any is opened
    for survey in loaded:
        store.register(survey)
        warn(f"survey {survey.name}: {survey.fingerprint}")


def _show_token(store: "Store", *, new_token: bool) -> None:
    from sfumato.aggregator import Token

    token = Token(store)
    if new_token or not token.exists:
        warn(f"The analysts' token, shown this once: {token.make()}")
