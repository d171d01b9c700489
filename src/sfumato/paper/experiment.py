"""What every experiment of the paper has in common: how it is asked for, and what becomes of its result.

Nothing here is private: people are drawn from a distribution by a seed, so that anybody can repeat the figures.
"""

import csv
import hashlib
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import InvalidContext, MissingExtra
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.files import write_atomically
from sfumato.randomness import words_from

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Cell", "ExperimentResult", "Measured", "RunOptions", "drawn_people"]

Cell = str | int | float | None
"""An entry of a table."""


@dataclass(frozen=True)
class RunOptions:
    """How an experiment is run: ``runs`` repetitions (``None``: as many as the paper), a seed, and whether quickly.

    ``on_progress`` is called with a line of text now and then, for people who wait.
    """

    runs: int | None = None
    seed: int = 0
    quick: bool = False
    on_progress: Callable[[str], None] = lambda line: None

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise InvalidContext(f"runs must be at least 1; found {self.runs}.")

    def repetitions(self, full: int, quick: int) -> int:
        """How often to repeat: as asked for, or else so often in a full and in a quick run."""
        return self.runs if self.runs is not None else quick if self.quick else full


@dataclass(frozen=True)
class Measured:
    """The mean of several runs, and its standard error; ``nan`` for a single run."""

    mean: float
    standard_error: float

    @classmethod
    def of(cls, values: Sequence[float] | Floats) -> "Measured":
        """The mean of these.

        >>> Measured.of([1.0, 2.0, 3.0])
        Measured(mean=2.0, standard_error=0.5773502691896258)
        """
        found = np.asarray(values, dtype=np.float64)
        error = float(found.std(ddof=1) / math.sqrt(found.size)) if found.size > 1 else math.nan
        return cls(float(found.mean()), error)

    def in_json(self) -> dict[str, float | None]:
        """Both numbers; no standard error for a single run."""
        return {
            "mean": self.mean,
            "standard_error": None if math.isnan(self.standard_error) else self.standard_error,
        }

    def in_cells(self) -> tuple[Cell, Cell]:
        """Both numbers for a table, to five decimals; an empty cell for the standard error of a single run."""
        error = None if math.isnan(self.standard_error) else round(self.standard_error, 5)
        return round(self.mean, 5), error

    def __str__(self) -> str:
        return (
            f"{self.mean:.4f}"
            if math.isnan(self.standard_error)
            else f"{self.mean:.4f} ± {self.standard_error:.4f}"
        )


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """What an experiment found: a table, a picture, and the words that belong to them.

    ``columns`` and ``rows`` are the table as it is printed and written as CSV; ``data`` the same and more for machines;
    ``figure`` draws the picture when it is called; ``notes`` say what a reader must know to judge the figures.
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
            numeric.append(all(isinstance(row[column], int | float | None) for row in self.rows))
        return numeric

    def save(self, folder: Path) -> list[Path]:
        """Write ``name.png``, ``.pdf``, ``.csv`` and ``.json`` into the folder; all are made before any is written."""
        files = {
            "png": self.picture("png"),
            "pdf": self.picture("pdf"),
            "csv": self._csv(),
            "json": self._json(),
        }
        paths = [folder / f"{self.name}.{kind}" for kind in files]
        for path, content in zip(paths, files.values(), strict=True):
            write_atomically(path, content)
        return paths

    def picture(self, kind: str) -> bytes:
        """The picture as "png", "pdf" or "svg"; the same result gives the same bytes."""
        try:
            import matplotlib as mpl
        except ImportError:
            raise MissingExtra("pictures need matplotlib: pip install 'sfumato[charts]'") from None
        file = io.BytesIO()
        undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind, {})
        with mpl.rc_context(
            {"svg.fonttype": "none", "svg.hashsalt": "sfumato", "pdf.fonttype": 42}
        ):
            self.figure().savefig(file, format=kind, dpi=160, metadata=undated)
        return file.getvalue()

    def _csv(self) -> bytes:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return file.getvalue().encode("utf-8")

    def _json(self) -> bytes:
        return (json.dumps(self.data, indent=2, allow_nan=False) + "\n").encode("utf-8")


def drawn_people(p: Floats, people: int, name: str, run: int, seed: int) -> Symbols:
    """The symbols of people drawn from p; another experiment, run or seed draws others.

    >>> drawn_people(np.array([0.0, 1.0]), 3, "example", run=0, seed=0).tolist()
    [1, 1, 1]
    """
    key = hashlib.sha256(f"sfumato/paper/{name}/{seed}/{run}".encode()).digest()
    words = words_from(key, 0, (people + 1) // 2).ravel()[:people]
    at = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    ends = np.cumsum(p)
    return np.minimum(np.searchsorted(ends / ends[-1], at, side="right"), p.size - 1)
