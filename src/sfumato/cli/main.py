"""The `sfumato` command. Sub-commands import what they need when they run, so that --help is quick."""

import io
import sys

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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show ε still gets the rest
    app()
