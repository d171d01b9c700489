"""What all experiments share: how to run them, how to save their results, and a page of them all.

Nothing here is private: people are drawn from a seed, so that you can repeat the figures.
"""

import base64
import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import InvalidArgument
from sfumato.foundation.files import write_atomically
from sfumato.foundation.formatting import format_cell
from sfumato.pages.markup import Html, fill, fill_each, join, list_items, offline_document
from sfumato.pages.pictures import require_matplotlib
from sfumato.simulation import Spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Cell",
    "ExperimentResult",
    "NotRun",
    "PageSection",
    "RunOptions",
    "paper_page",
    "population_sizes",
    "spread_cells",
]

Cell = str | int | float | None
"""An entry of a table."""

_UNDATED = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}

_STYLE = """
.picture { margin: 1rem 0; padding: .6rem; background: #fff; border: 1px solid var(--line);
  border-radius: 6px; }
.picture img { display: block; width: 100%; height: auto; }
.wide { overflow: auto; max-height: 32rem; margin: 0 0 1rem; }
.wide table { font-size: .84rem; }
.wide td { white-space: nowrap; }
.wide th, .wide td { padding: .3rem .5rem; }
.wide th { position: sticky; top: 0; vertical-align: bottom; background: var(--panel); }
@media print { .wide { max-height: none; overflow: visible; } }
nav li { margin: .3rem 0; }
a { color: var(--accent); }
"""
_OPENING = Html(
    '<p class="lead">Every figure and table of the paper, measured on real reports, next to the '
    'best scheme here.</p>\n<p class="note">Acharya, Bonawitz, Kairouz, Ramage and Sun: '
    "Context-Aware Local Differential Privacy. International Conference on Machine Learning, "
    "2020.</p>"
)


@dataclass(frozen=True)
class RunOptions:
    """How to run an experiment.

    ``runs``: the number of repetitions; ``None`` for as many as in the paper. ``quick``: fewer and
    smaller runs. ``on_progress``: called with a line of text now and then.
    """

    runs: int | None = None
    seed: int = 0
    quick: bool = False
    on_progress: Callable[[str], None] = lambda line: None

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise InvalidArgument(f"runs must be at least 1; got {self.runs}.")

    def repetitions(self, full: int, quick: int) -> int:
        """Return ``runs`` if given, otherwise one of these two."""
        if self.runs is not None:
            return self.runs
        return quick if self.quick else full


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """The table and the picture of an experiment, and the text that goes with them.

    ``columns`` and ``rows``: the table, for the terminal and for CSV. ``data``: the same and more,
    for JSON. ``figure``: a function that draws the picture. ``notes``: what you must know to judge
    the figures.
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
        """Return whether each column contains only numbers."""
        numeric = []
        for column in range(len(self.columns)):
            cells = [row[column] for row in self.rows]
            numeric.append(all(isinstance(cell, int | float | None) for cell in cells))
        return numeric

    def save(self, folder: Path) -> list[Path]:
        """Write the result as PNG, PDF, CSV and JSON files, and return their paths.

        All are ready before the first is written: if one fails, there are none.
        """
        contents = {
            "png": self.picture("png"),
            "pdf": self.picture("pdf"),
            "csv": self._csv(),
            "json": f"{json.dumps(self.data, indent=2, allow_nan=False)}\n".encode(),
        }
        paths = []
        for kind, content in contents.items():
            path = folder / f"{self.name}.{kind}"
            write_atomically(path, content)
            paths.append(path)
        return paths

    def picture(self, kind: str) -> bytes:
        """Return the picture as "png", "pdf" or "svg". The same result gives the same bytes."""
        require_matplotlib()
        import matplotlib as mpl

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


def population_sizes(people: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes in increasing order, without duplicates.

    >>> population_sizes([4000, 1000])
    (1000, 4000)
    """
    sizes = tuple(sorted(set(people)))
    if not sizes or sizes[0] < 1:
        raise InvalidArgument("people must be a list of positive integers.")
    return sizes


def spread_cells(spread: Spread) -> tuple[Cell, Cell]:
    """Return the mean and the standard error, to five decimals.

    >>> spread_cells(Spread.from_figures([1.0, 2.0]))
    (1.5, 0.5)
    """
    error = spread.standard_error
    return round(spread.mean, 5), None if error is None else round(error, 5)


# --- all results on one page ----------------------------------------------------------------------


@dataclass(frozen=True)
class NotRun:
    """An experiment that did not run because a package is missing, and how to install it."""

    name: str
    reason: str

    @property
    def title(self) -> str:
        """The heading on the page."""
        return f"Not run: {self.name}"


@dataclass(frozen=True, eq=False)
class PageSection:
    """An experiment on the page, and the command that runs it alone."""

    result: ExperimentResult | NotRun
    command: str


def paper_page(sections: Sequence[PageSection]) -> str:
    """Return the page as HTML, pictures included. It links to nothing outside itself."""
    parts = [_contents(sections)]
    parts += map(_section, sections)
    return offline_document(
        "The paper's figures, and what became of them",
        kicker="Sfumato paper",
        opening=_OPENING,
        sections=join(parts, "\n"),
        css=_STYLE,
    )


def _contents(sections: Sequence[PageSection]) -> Html:
    results = [section.result for section in sections]
    items = fill_each(
        '<li><a href="#$name">$title</a></li>',
        name=[result.name for result in results],
        title=[result.title for result in results],
    )
    contents = (
        '<section aria-labelledby="contents"><h2 id="contents">Contents</h2>\n'
        "<nav><ol>$items</ol></nav>\n</section>"
    )
    return fill(contents, items=items)


def _section(section: PageSection) -> Html:
    template = (
        '<section aria-labelledby="$name"><h2 id="$name">$title</h2>\n$content\n'
        '<p class="note">To repeat it: <code>$command</code></p>\n</section>'
    )
    return fill(
        template,
        name=section.result.name,
        title=section.result.title,
        content=_content(section.result),
        command=section.command,
    )


def _content(result: ExperimentResult | NotRun) -> Html:
    if isinstance(result, NotRun):
        return fill('<p class="caution">$reason</p>', reason=result.reason)
    encoded = base64.b64encode(result.picture("png")).decode("ascii")
    image = '<figure class="picture"><img alt="$summary" src="$address"></figure>'
    address = f"data:image/png;base64,{encoded}"
    parts = [
        fill("<p>$summary</p>", summary=result.summary),
        fill(image, summary=result.summary, address=address),
        _table(result),
    ]
    if result.notes:
        notes = list_items(result.notes)
        parts.append(fill('<ul class="note">$items</ul>', items=notes))
    return join(parts, "\n")


def _table(result: ExperimentResult) -> Html:
    classes = [Html(' class="number"' if numeric else "") for numeric in result.numeric_columns()]
    heads = fill_each('<th scope="col"$mark>$title</th>', mark=classes, title=result.columns)
    rows = []
    for row in result.rows:
        cells = fill_each("<td$mark>$text</td>", mark=classes, text=map(format_cell, row))
        rows.append(fill("<tr>$cells</tr>", cells=cells))
    table = (
        '<div class="wide" tabindex="0"><table><thead><tr>$heads</tr></thead>'
        "<tbody>$rows</tbody></table></div>"
    )
    return fill(table, heads=heads, rows=join(rows))
