"""Print for people and for pipes, and show progress on a terminal.

The texts of a survey come from its author. ``say`` and ``warn`` escape control characters, but keep
line ends, since commands print several lines. Pass the texts of a survey through ``printable``
first, so that a title cannot start a line of its own.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from sfumato.foundation.formatting import format_gap, printable_lines

if TYPE_CHECKING:
    from sfumato.designer import Round


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


# --- progress: nothing is shown if standard error is not a terminal -------------------------------


@contextmanager
def count_rows(task: str) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of rows read so far."""
    with _status(task) as show:
        yield lambda rows: show(f"{rows:,} rows")


@contextmanager
def count_rounds(task: str) -> Iterator[Callable[["Round"], None]]:
    """Yield a function to call after each round of a search."""
    with _status(f"{task} (Ctrl-C takes the best so far)") as show:
        yield lambda done: show(_round_text(done))


@contextmanager
def show_status(task: str) -> Iterator[Callable[[str], None]]:
    """Yield a function to call with a line of text; the last one is shown."""
    from rich.markup import escape

    with _status(task) as show:
        yield lambda line: show(escape(line))


@contextmanager
def show_bar(task: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with how much of ``total`` is done."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task(task, total=total)
        yield lambda done: progress.update(bar, completed=done)


def _round_text(done: "Round") -> str:
    part = (
        f"part {done.component_number} of {done.component_count}, "
        if done.component_count > 1
        else ""
    )
    kind = "certified" if done.certified else "estimated"
    gap = f"gap {format_gap(done.gap)} ({kind})"
    return f"{part}round {done.round_number}, risk {done.risk:.5g}, {gap}, {done.seconds:.0f} s"


@contextmanager
def _status(task: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a line after ``task``."""
    if not sys.stderr.isatty():
        yield lambda line: None
        return
    from rich.console import Console

    with Console(stderr=True).status(task) as status:
        yield lambda line: status.update(f"{task}: {line}")
