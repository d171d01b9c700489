"""Code that all experiments share: their options, their results, and a page with all results.

"The paper" is Acharya et al. (2020). Nothing here protects privacy: all randomness comes from a
seed, so that the figures are reproducible.
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
from sfumato.paper.pictures import require_matplotlib
from sfumato.simulation import Spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Cell",
    "ExperimentResult",
    "PageSection",
    "RunOptions",
    "SkippedExperiment",
    "paper_page",
    "sort_sizes",
    "spread_cells",
]

Cell = str | int | float | None
"""An entry in a table."""

_NO_DATE_METADATA = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}

_STYLE = """
.picture { margin: 1rem 0; padding: .6rem; background: #fff; border: 1px solid var(--line);
  border-radius: 6px; }
.picture img { display: block; width: 100%; height: auto; }
.wide { overflow: auto; max-height: 32rem; margin: 0 0 1rem; }
.wide table { font-size: .84rem; }
.wide td { white-space: nowrap; }
.wide th, .wide td { padding: .3rem .5rem; }
.wide thead th { position: sticky; top: 0; vertical-align: bottom; background: var(--panel); }
@media (min-width: 640.02px) { .wide tbody th { font-weight: 400; } }
@media print { .wide { max-height: none; overflow: visible; } }
nav li { margin: .3rem 0; }
a { color: var(--accent); }
"""
_OPENING = Html(
    '<p class="lead">Every figure and table of the paper, measured on simulated reports '
    "and compared with Sfumato's best scheme.</p>\n"
    '<p class="note">Acharya, Bonawitz, Kairouz, Ramage and Sun: '
    "Context-Aware Local Differential Privacy. International Conference on Machine Learning, "
    "2020.</p>"
)


@dataclass(frozen=True)
class RunOptions:
    """How to run an experiment.

    ``runs``: the number of repetitions; by default, as many as in the paper, or fewer if ``quick``
    is true. ``quick``: use fewer and smaller runs. ``on_progress``: called periodically with a line
    of progress text.
    """

    runs: int | None = None
    seed: int = 0
    quick: bool = False
    on_progress: Callable[[str], None] = lambda line: None

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise InvalidArgument(f"runs must be at least 1; got {self.runs}.")

    def run_count(self, full: int, quick: int) -> int:
        """Return ``self.runs``; by default, return ``quick`` if ``self.quick``, else ``full``."""
        if self.runs is not None:
            return self.runs
        return quick if self.quick else full


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """The table and figure of an experiment, and the text that goes with them.

    ``columns`` and ``rows``: the table, for the terminal and CSV. ``data``: the same data and more,
    for JSON. ``draw_figure``: a function that draws the figure. ``notes``: what you need to know to
    interpret the numbers.
    """

    name: str
    title: str
    summary: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    data: object
    draw_figure: "Callable[[], Figure]"
    notes: tuple[str, ...] = ()

    def numeric_columns(self) -> list[bool]:
        """Return, for each column, whether it contains only numbers or empty cells."""
        is_numeric = []
        for index in range(len(self.columns)):
            cells = [row[index] for row in self.rows]
            is_numeric.append(all(isinstance(cell, int | float | None) for cell in cells))
        return is_numeric

    def save(self, folder: Path) -> list[Path]:
        """Write the result as PNG, PDF, CSV and JSON files, and return their paths.

        All contents are generated before the first file is written, so a failure to draw the figure
        leaves no files behind.
        """
        contents = {
            "png": self.render_figure("png"),
            "pdf": self.render_figure("pdf"),
            "csv": self._to_csv(),
            "json": f"{json.dumps(self.data, indent=2, allow_nan=False)}\n".encode(),
        }
        paths = []
        for extension, content in contents.items():
            path = folder / f"{self.name}.{extension}"
            write_atomically(path, content)
            paths.append(path)
        return paths

    def render_figure(self, file_format: str) -> bytes:
        """Return the contents of a "png", "pdf" or "svg" file; equal results give equal bytes."""
        require_matplotlib()
        import matplotlib as mpl

        buffer = io.BytesIO()
        metadata = _NO_DATE_METADATA.get(file_format, {})
        settings = {"svg.fonttype": "none", "svg.hashsalt": "sfumato", "pdf.fonttype": 42}
        with mpl.rc_context(settings):  # type: ignore[arg-type]
            self.draw_figure().savefig(buffer, format=file_format, dpi=160, metadata=metadata)
        return buffer.getvalue()

    def _to_csv(self) -> bytes:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return buffer.getvalue().encode("utf-8")


def sort_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return population sizes in increasing order, without duplicates.

    Raise ``InvalidArgument`` if the list is empty, or if a size is not positive.

    >>> sort_sizes([4000, 1000])
    (1000, 4000)
    """
    increasing = tuple(sorted(set(sizes)))
    if not increasing or increasing[0] < 1:
        raise InvalidArgument("sizes must be a non-empty list of positive integers.")
    return increasing


def spread_cells(spread: Spread) -> tuple[Cell, Cell]:
    """Return the mean and the standard error, if any, rounded to five decimals.

    >>> spread_cells(Spread.from_figures([1.0, 2.0]))
    (1.5, 0.5)
    """
    standard_error = spread.standard_error
    if standard_error is not None:
        standard_error = round(standard_error, 5)
    return round(spread.mean, 5), standard_error


# --- all results on one page ----------------------------------------------------------------------


@dataclass(frozen=True)
class SkippedExperiment:
    """An experiment that did not run because a package is missing.

    ``reason``: which package is missing, and how to install it.
    """

    name: str
    reason: str

    @property
    def title(self) -> str:
        """The heading on the page."""
        return f"Not run: {self.name}"


@dataclass(frozen=True, eq=False)
class PageSection:
    """An experiment on the page, and the command that runs only this experiment."""

    result: ExperimentResult | SkippedExperiment
    command: str


def paper_page(sections: Sequence[PageSection]) -> str:
    """Return all experiments as a self-contained HTML page."""
    parts = [_render_contents(sections)]
    parts += map(_render_section, sections)
    return offline_document(
        "The paper's figures, reproduced",
        kicker="Sfumato paper",
        opening=_OPENING,
        sections=join(parts, "\n"),
        css=_STYLE,
    )


def _render_contents(sections: Sequence[PageSection]) -> Html:
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


def _render_section(section: PageSection) -> Html:
    template = (
        '<section aria-labelledby="$name"><h2 id="$name">$title</h2>\n$content\n'
        '<p class="note">To reproduce this: <code>$command</code></p>\n</section>'
    )
    return fill(
        template,
        name=section.result.name,
        title=section.result.title,
        content=_render_result(section.result),
        command=section.command,
    )


def _render_result(result: ExperimentResult | SkippedExperiment) -> Html:
    if isinstance(result, SkippedExperiment):
        return fill('<p class="caution">$reason</p>', reason=result.reason)
    encoded = base64.b64encode(result.render_figure("png")).decode("ascii")
    image = '<figure class="picture"><img alt="$summary" src="$url"></figure>'
    url = f"data:image/png;base64,{encoded}"
    parts = [
        fill("<p>$summary</p>", summary=result.summary),
        fill(image, summary=result.summary, url=url),
        _render_table(result),
    ]
    if result.notes:
        notes = list_items(result.notes)
        parts.append(fill('<ul class="note">$items</ul>', items=notes))
    return join(parts, "\n")


def _render_table(result: ExperimentResult) -> Html:
    class_attributes = []
    for is_numeric in result.numeric_columns():
        class_attributes.append(Html(' class="number"' if is_numeric else ""))
    heading = '<th scope="col"$class_attribute>$title</th>'
    headings = fill_each(heading, class_attribute=class_attributes, title=result.columns)
    cell = '<td$class_attribute data-name="$title">$text</td>'
    rows = []
    for row in result.rows:
        first, *others = map(format_cell, row)
        cells = fill_each(
            cell, class_attribute=class_attributes[1:], title=result.columns[1:], text=others
        )
        heading_cell = fill(
            '<th scope="row"$class_attribute>$text</th>',
            class_attribute=class_attributes[0],
            text=first,
        )
        rows.append(fill("<tr>$heading$cells</tr>", heading=heading_cell, cells=cells))
    table = (
        '<div class="wide" tabindex="0"><table class="cards"><thead><tr>$headings</tr></thead>'
        "<tbody>$rows</tbody></table></div>"
    )
    return fill(table, headings=headings, rows=join(rows))
