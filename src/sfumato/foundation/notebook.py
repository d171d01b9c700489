"""HTML for notebooks: short tables of facts and of rows. All text is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

__all__ = ["facts_html", "table_html"]

_ALIGN_LEFT = 'style="text-align:left"'


def facts_html(title: str, facts: Mapping[str, str], note: str = "") -> str:
    """Return a title, a note, and a table with one row for each fact.

    >>> facts_html("Tally", {"reports": "1 < 2"})
    '<p><b>Tally</b></p><table><tbody><tr><th scope="row" style="text-align:left">reports</th><td
    style="text-align:left">1 &lt; 2</td></tr></tbody></table>'
    """
    rows = ""
    for name, text in facts.items():
        rows += f'<tr><th scope="row" {_ALIGN_LEFT}>{escape(name)}</th>'
        rows += f"<td {_ALIGN_LEFT}>{escape(text)}</td></tr>"
    return f"{_title_html(title, note)}<table><tbody>{rows}</tbody></table>"


def table_html(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]], note: str = ""
) -> str:
    """Return a title, a note, and a table. The first cell of a row is its heading."""
    headers = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = ""
    for name, *cells in rows:
        body += f'<tr><th scope="row" {_ALIGN_LEFT}>{escape(name)}</th>'
        body += "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    table = f"<table><thead><tr>{headers}</tr></thead><tbody>{body}</tbody></table>"
    return _title_html(title, note) + table


def _title_html(title: str, note: str) -> str:
    return f"<p><b>{escape(title)}</b>{escape(f' {note}' if note else '')}</p>"
