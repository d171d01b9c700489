"""The `sfumato` command. Sub-commands import what they need when they run, so that --help is quick."""

import typer

from sfumato.cli import demo

__all__ = ["app", "run"]

app = typer.Typer(
    name="sfumato",
    help="Context-aware local differential privacy: blur people's answers by degrees, recover the crowd.",
    no_args_is_help=True,
    # Local variables could hold a person's value: tracebacks never show them.
    pretty_exceptions_show_locals=False,
)


@app.callback()
def main() -> None:
    """Context-aware local differential privacy: blur people's answers by degrees, recover the crowd."""


app.command(name="demo")(demo.demo)


def run() -> None:
    """The entry point of the console script."""
    app()
