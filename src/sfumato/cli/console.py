"""What commands print. A survey's texts are its author's, so no control character of theirs reaches the terminal.

``say`` keeps the line ends that a command writes. Pass what comes out of a survey through ``printable`` first, so that
a title cannot start a line of its own.
"""

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
    """Print a table on standard output, escaped like all text: a pipe may end in a log.

    A file that you name with ``-o`` holds every label as it is.
    """
    typer.echo(printable_lines(text).encode("utf-8"), nl=False)
