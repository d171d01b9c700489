"""Print to terminals and pipes, and show progress on a terminal.

Text in a survey is untrusted. ``say`` and ``notify`` escape control characters, but keep newlines,
because a message may have several lines. Pass text from a survey through ``printable`` first, so
that it cannot start a new line.
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


def notify(text: str) -> None:
    """Print text to standard error."""
    typer.echo(printable_lines(text), err=True)


def print_csv(text: str) -> None:
    """Print CSV to standard output; escape control characters if it is a terminal.

    A pipe must carry exactly the data that a file would contain.
    """
    output = printable_lines(text) if sys.stdout.isatty() else text
    typer.echo(output.encode("utf-8"), nl=False)


# --- progress, shown only if standard error is a terminal -----------------------------------------


@contextmanager
def show_row_count(task: str) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of rows read so far."""
    with _status(task) as show:
        yield lambda rows: show(f"{rows:,} rows")


@contextmanager
def show_rounds(task: str) -> Iterator[Callable[["Round"], None]]:
    """Yield a function to call after each round of a search."""
    with _status(f"{task} (Ctrl-C stops the search and keeps the best result)") as show:
        yield lambda search_round: show(_describe_round(search_round))


@contextmanager
def show_status(task: str) -> Iterator[Callable[[str], None]]:
    """Yield a function to call with a line of text, which replaces the previous line."""
    from rich.markup import escape

    with _status(task) as show:
        yield lambda line: show(escape(line))


@contextmanager
def show_stage(task: str, number: int, total: int) -> Iterator[Callable[[str], None]]:
    """Show a bar for the stages of a task, and yield a function that shows a line of text."""
    if not sys.stderr.isatty():
        yield lambda line: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(f"{task} ({number} of {total})", markup=False),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=total, completed=number - 1)
        yield lambda line: progress.update(bar, description=line)


@contextmanager
def show_bar(task: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of items completed so far, out of ``total``."""
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


def _describe_round(search_round: "Round") -> str:
    gap_kind = "certified" if search_round.certified else "estimated"
    parts = [
        f"round {search_round.round_number}",
        f"risk {search_round.risk:.5g}",
        f"gap {format_gap(search_round.gap)} ({gap_kind})",
        f"{search_round.seconds:.0f} s",
    ]
    if search_round.component_count > 1:
        component_text = f"part {search_round.component_number} of {search_round.component_count}"
        parts.insert(0, component_text)
    return ", ".join(parts)


@contextmanager
def _status(task: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a line of text after ``task``."""
    if not sys.stderr.isatty():
        yield lambda line: None
        return
    from rich.console import Console

    with Console(stderr=True).status(task) as status:
        yield lambda line: status.update(f"{task}: {line}")
