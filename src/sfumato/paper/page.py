"""All experiments on one page: the finding, the picture, the table and the command to repeat it."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.foundation.formatting import format_cell
from sfumato.pages.markup import (
    Html,
    fill,
    fill_each,
    join,
    list_items,
    offline_document,
)
from sfumato.paper.experiment import ExperimentResult

__all__ = ["NotRun", "PageSection", "paper_page"]

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
_PAPER = (
    "Acharya, Bonawitz, Kairouz, Ramage and Sun: Context-Aware Local Differential Privacy. "
    "International Conference on Machine Learning, 2020."
)
_LEAD = (
    "Every figure and table of the paper, measured on real reports, next to the best scheme here."
)


@dataclass(frozen=True)
class NotRun:
    """An experiment whose dependencies are missing, and how to install them."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class PageSection:
    """An experiment on the page, and the command that runs it alone."""

    result: ExperimentResult | NotRun
    command: str


def paper_page(sections: Sequence[PageSection]) -> str:
    """Return the whole page as HTML, pictures included. It links to nothing outside itself."""
    template = '<p class="lead">$lead</p>\n<p class="note">$paper</p>'
    parts = [_contents(sections)]
    parts += map(_section, sections)
    return offline_document(
        "The paper's figures, and what became of them",
        kicker="Sfumato paper",
        opening=fill(template, lead=_LEAD, paper=_PAPER),
        sections=join(parts, "\n"),
        css=_STYLE,
    )


def _contents(sections: Sequence[PageSection]) -> Html:
    items = []
    for section in sections:
        result = section.result
        item = fill(
            '<li><a href="#$name">$heading</a></li>', name=result.name, heading=_heading(result)
        )
        items.append(item)
    contents = (
        '<section aria-labelledby="contents"><h2 id="contents">Contents</h2>\n'
        "<nav><ol>$items</ol></nav>\n</section>"
    )
    return fill(contents, items=join(items))


def _heading(result: ExperimentResult | NotRun) -> str:
    if isinstance(result, NotRun):
        return f"Not run: {result.name}"
    return result.title


def _section(section: PageSection) -> Html:
    template = (
        '<section aria-labelledby="$name"><h2 id="$name">$heading</h2>\n$content\n'
        '<p class="note">To repeat it: <code>$command</code></p>\n</section>'
    )
    return fill(
        template,
        name=section.result.name,
        heading=_heading(section.result),
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
