"""All experiments on one page: what was found, the picture, the table, and how to have it again."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sfumato.pages.document import sheet
from sfumato.paper.experiment import Cell, Outcome

__all__ = ["NotRun", "Part", "cell_text", "paper_page"]

_STYLE = """
.picture { margin: 1rem 0; padding: .6rem; background: #fff; border: 1px solid var(--line); border-radius: 6px; }
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
    "Acharya, Bonawitz, Kairouz, Ramage and Sun: Context-Aware Local Differential Privacy. International Conference on "
    "Machine Learning, 2020."
)


@dataclass(frozen=True)
class NotRun:
    """An experiment that something was missing for, and what to do."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class Part:
    """An experiment on the page, and the command that runs it alone."""

    found: Outcome | NotRun
    command: str


def paper_page(parts: Sequence[Part]) -> str:
    """The whole page as HTML, pictures included; nothing in it points outside."""
    return sheet(
        "The paper's figures, and what became of them",
        kicker="Sfumato paper",
        opening='<p class="lead">Every figure and table of the paper on real reports, beside the best that is known '
        f'here.</p>\n<p class="note">{escape(_PAPER)}</p>',
        body="\n".join((_contents(parts), *map(_section, parts))),
        style=_STYLE,
    )


def cell_text(cell: Cell) -> str:
    """An entry of a table as it is shown: four digits, thousands apart, a dash for nothing.

    >>> [cell_text(cell) for cell in (43750, 0.12345678, None, "park")]
    ['43,750', '0.1235', '–', 'park']
    """
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def _contents(parts: Sequence[Part]) -> str:
    items = "".join(
        f'<li><a href="#{escape(part.found.name)}">{_heading(part.found)}</a></li>'
        for part in parts
    )
    return f'<section aria-labelledby="contents"><h2 id="contents">Contents</h2>\n<nav><ol>{items}</ol></nav>\n</section>'


def _heading(found: Outcome | NotRun) -> str:
    return escape(f"Not run: {found.name}" if isinstance(found, NotRun) else found.title)


def _section(part: Part) -> str:
    found, name = part.found, escape(part.found.name)
    inside = (
        f'<p class="caution">{escape(found.reason)}</p>'
        if isinstance(found, NotRun)
        else _shown(found)
    )
    again = f'<p class="note">Again, or alone: <code>{escape(part.command)}</code></p>'
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{_heading(found)}</h2>\n{inside}\n{again}\n</section>'


def _shown(outcome: Outcome) -> str:
    picture = f"data:image/png;base64,{base64.b64encode(outcome.picture('png')).decode('ascii')}"
    notes = "".join(f"<li>{escape(note)}</li>" for note in outcome.notes)
    return (
        f"<p>{escape(outcome.summary)}</p>\n"
        f'<figure class="picture"><img alt="{escape(outcome.summary)}" src="{picture}"></figure>\n'
        f"{_table(outcome)}\n" + (f'<ul class="note">{notes}</ul>' if notes else "")
    )


def _table(outcome: Outcome) -> str:
    numeric = [
        all(isinstance(row[at], int | float | None) for row in outcome.rows)
        for at in range(len(outcome.columns))
    ]
    marks = [' class="number"' if each else "" for each in numeric]
    head = "".join(
        f'<th scope="col"{mark}>{escape(title)}</th>'
        for title, mark in zip(outcome.columns, marks, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{m}>{escape(cell_text(c))}</td>" for c, m in zip(row, marks, strict=True))
        + "</tr>"
        for row in outcome.rows
    )
    return f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
