"""Progress, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["row_counter"]


@contextmanager
def row_counter(what: str) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of rows done so far; shows them on a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield lambda rows: status.update(f"{what}: {rows:,} rows")
