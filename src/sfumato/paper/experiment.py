"""What all experiments share: how they are run, and what becomes of their results.

Nothing here is private: people are drawn from a seed, so that you can repeat the figures.
"""

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import InvalidArgument, MissingExtra
from sfumato.foundation.files import write_atomically
from sfumato.simulation import Spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Cell", "ExperimentResult", "RunOptions", "population_sizes", "spread_cells"]

Cell = str | int | float | None
"""An entry of a table."""

_UNDATED = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}


@dataclass(frozen=True)
class RunOptions:
    """How to run an experiment.

    ``runs``: how many repetitions; ``None`` for as many as the paper has. ``quick``: fewer and
    smaller runs. ``on_progress``: called with a line of text now and then, for people who wait.
    """

    runs: int | None = None
    seed: int = 0
    quick: bool = False
    on_progress: Callable[[str], None] = lambda line: None

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise InvalidArgument(f"runs must be at least 1; got {self.runs}.")

    def repetitions(self, full: int, quick: int) -> int:
        """Return how often to repeat: ``runs`` if given, else one of these two."""
        if self.runs is not None:
            return self.runs
        return quick if self.quick else full


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """A table, a picture, and the words that belong to them.

    ``columns`` and ``rows``: the table as it is printed and written as CSV. ``data``: the same and
    more for machines. ``figure``: a function that draws the picture. ``notes``: what you must know
    to judge the figures.
    """

    name: str
    title: str
    summary: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    data: object
    figure: "Callable[[], Figure]"
    notes: tuple[str, ...] = ()

    def numeric_columns(self) -> list[bool]:
        """Say for each column whether it has nothing but numbers."""
        numeric = []
        for column in range(len(self.columns)):
            cells = [row[column] for row in self.rows]
            numeric.append(all(isinstance(cell, int | float | None) for cell in cells))
        return numeric

    def save(self, folder: Path) -> list[Path]:
        """Write ``name.png``, ``.pdf``, ``.csv`` and ``.json``, or none of them if one fails."""
        contents = {
            "png": self.picture("png"),
            "pdf": self.picture("pdf"),
            "csv": self._csv(),
            "json": self._json(),
        }
        paths = []
        for kind, content in contents.items():
            path = folder / f"{self.name}.{kind}"
            write_atomically(path, content)
            paths.append(path)
        return paths

    def picture(self, kind: str) -> bytes:
        """Return the picture as "png", "pdf" or "svg". The same result gives the same bytes."""
        try:
            import matplotlib as mpl
        except ImportError:
            raise MissingExtra("pictures need matplotlib: pip install 'sfumato[charts]'") from None
        file = io.BytesIO()
        metadata = _UNDATED.get(kind, {})
        settings = {"svg.fonttype": "none", "svg.hashsalt": "sfumato", "pdf.fonttype": 42}
        with mpl.rc_context(settings):  # type: ignore[arg-type]
            self.figure().savefig(file, format=kind, dpi=160, metadata=metadata)
        return file.getvalue()

    def _csv(self) -> bytes:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return file.getvalue().encode("utf-8")

    def _json(self) -> bytes:
        text = json.dumps(self.data, indent=2, allow_nan=False)
        return f"{text}\n".encode()


def population_sizes(people: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes in increasing order, without duplicates.

    >>> population_sizes([4000, 1000])
    (1000, 4000)
    """
    sizes = tuple(sorted(set(people)))
    if not sizes or sizes[0] < 1:
        raise InvalidArgument("people must be a list of whole numbers of at least 1.")
    return sizes


def spread_cells(spread: Spread) -> tuple[Cell, Cell]:
    """Return mean and standard error for a table, to five decimals.

    >>> spread_cells(Spread.of([1.0, 2.0]))
    (1.5, 0.5)
    """
    mean = round(spread.mean, 5)
    if spread.standard_error is None:
        return mean, None
    return mean, round(spread.standard_error, 5)
