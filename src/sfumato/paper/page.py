"""All experiments on one page: the finding, the picture, the table and the command to repeat it."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sfumato.foundation.formatting import format_cell
from sfumato.pages.document import sheet
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
    return sheet(
        "The paper's figures, and what became of them",
        kicker="Sfumato paper",
        opening=f'<p class="lead">{_LEAD}</p>\n<p class="note">{escape(_PAPER)}</p>',
        body="\n".join((_contents(sections), *map(_section, sections))),
        style=_STYLE,
    )


def _contents(sections: Sequence[PageSection]) -> str:
    items = []
    for section in sections:
        result = section.result
        items.append(f'<li><a href="#{escape(result.name)}">{_heading(result)}</a></li>')
    nav = f"<nav><ol>{''.join(items)}</ol></nav>"
    heading = '<h2 id="contents">Contents</h2>'
    return f'<section aria-labelledby="contents">{heading}\n{nav}\n</section>'


def _heading(result: ExperimentResult | NotRun) -> str:
    if isinstance(result, NotRun):
        return escape(f"Not run: {result.name}")
    return escape(result.title)


def _section(section: PageSection) -> str:
    result = section.result
    name = escape(result.name)
    heading = f'<h2 id="{name}">{_heading(result)}</h2>'
    content = _content(result)
    repeat = f'<p class="note">To repeat it: <code>{escape(section.command)}</code></p>'
    return f'<section aria-labelledby="{name}">{heading}\n{content}\n{repeat}\n</section>'


def _content(result: ExperimentResult | NotRun) -> str:
    if isinstance(result, NotRun):
        return f'<p class="caution">{escape(result.reason)}</p>'
    encoded = base64.b64encode(result.picture("png")).decode("ascii")
    summary = escape(result.summary)
    image = f'<img alt="{summary}" src="data:image/png;base64,{encoded}">'
    parts = [f"<p>{summary}</p>", f'<figure class="picture">{image}</figure>', _table(result)]
    if result.notes:
        notes = "".join(f"<li>{escape(note)}</li>" for note in result.notes)
        parts.append(f'<ul class="note">{notes}</ul>')
    return "\n".join(parts)


def _table(result: ExperimentResult) -> str:
    classes = [' class="number"' if numeric else "" for numeric in result.numeric_columns()]
    head = ""
    for title, mark in zip(result.columns, classes, strict=True):
        head += f'<th scope="col"{mark}>{escape(title)}</th>'
    body = ""
    for row in result.rows:
        cells = ""
        for cell, mark in zip(row, classes, strict=True):
            cells += f"<td{mark}>{escape(format_cell(cell))}</td>"
        body += f"<tr>{cells}</tr>"
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide" tabindex="0">{table}</div>'
