"""What commands print. A survey's texts are its author's, so no control character of theirs reaches the terminal.

``say`` keeps the line ends that a command writes. Pass what comes out of a survey through ``printable`` first, so that
a title cannot start a line of its own.
"""

import sys

import typer

from sfumato.foundation.printable import printable, printable_lines

__all__ = ["printable", "say", "say_data", "warn"]


def say(text: str) -> None:
    """Print lines for people, or JSON, on standard output."""
    typer.echo(printable_lines(text))


def warn(text: str) -> None:
    """Print lines for people on standard error."""
    typer.echo(printable_lines(text), err=True)


def say_data(text: str) -> None:
    """Print a table as it is, for a pipe; on a terminal it is shown as lines for people are."""
    shown = printable_lines(text) if sys.stdout.isatty() else text
    typer.echo(shown.encode("utf-8"), nl=False)
