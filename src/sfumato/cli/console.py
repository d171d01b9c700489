"""Print for people and for pipes, without the control characters of untrusted text.

The texts of a survey come from its author. ``say`` and ``warn`` escape control characters, but keep
line ends, since commands print several lines. Pass the texts of a survey through ``printable``
first, so that a title cannot start a line of its own.
"""

import sys

import typer

from sfumato.foundation.formatting import printable, printable_lines

__all__ = ["printable", "say", "say_data", "warn"]


def say(text: str) -> None:
    """Print text or JSON to standard output."""
    typer.echo(printable_lines(text))


def warn(text: str) -> None:
    """Print text to standard error."""
    typer.echo(printable_lines(text), err=True)


def say_data(text: str) -> None:
    """Print a table to standard output: as it is to a pipe, and escaped to a terminal.

    A table is data, and must read back what it was written from, as a file does.
    """
    shown = printable_lines(text) if sys.stdout.isatty() else text
    typer.echo(shown.encode("utf-8"), nl=False)
