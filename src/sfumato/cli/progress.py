"""Progress, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.designer import Round

__all__ = ["bar_shown", "line_shown", "round_counter", "row_counter"]


@contextmanager
def row_counter(what: str) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of rows done so far; shows them on a terminal, and nothing elsewhere."""
    with _status(what) as show:
        yield lambda rows: show(f"{rows:,} rows")


@contextmanager
def round_counter(what: str) -> Iterator[Callable[["Round"], None]]:
    """A function to call after each round of a search; shows what was reached on a terminal, and nothing elsewhere."""
    with _status(f"{what} (Ctrl-C takes the best so far)") as show:
        yield lambda done: show(_reached(done))


@contextmanager
def line_shown(what: str) -> Iterator[Callable[[str], None]]:
    """A function to call with a line now and then; shows the last one on a terminal, and nothing elsewhere."""
    from rich.markup import escape

    with _status(what) as show:
        yield lambda line: show(escape(line))


@contextmanager
def bar_shown(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function to call with how much of ``total`` is done; shows a bar on a terminal, and nothing elsewhere."""
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
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


def _reached(done: "Round") -> str:
    from sfumato.foundation.formatting import format_gap

    part = f"part {done.component} of {done.components}, " if done.components > 1 else ""
    kind = "certified" if done.certified else "estimated"
    return f"{part}round {done.number}, risk {done.risk:.5g}, gap {format_gap(done.gap)} ({kind}), {done.seconds:.0f} s"


@contextmanager
def _status(what: str) -> Iterator[Callable[[str], None]]:
    """A function that shows a line beside ``what``; nothing where nobody looks."""
    if not sys.stderr.isatty():
        yield lambda line: None
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield lambda line: status.update(f"{what}: {line}")
