"""HTML for notebooks: short tables of facts and of rows. All text is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape

from sfumato.foundation.formatting import format_count, format_number, shorten

__all__ = ["FieldsView", "facts_html", "fields_html", "table_html"]

_ALIGN_LEFT = 'style="text-align:left"'
_MAX_TEXT_LENGTH = 200  # of the value of a field


class FieldsView:
    """A base for small dataclasses: a notebook shows their fields as a table."""

    def _repr_html_(self) -> str:
        """Return the fields as HTML, for notebooks."""
        return fields_html(self)


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


def fields_html(instance: object) -> str:
    """Return the class of a dataclass instance and a table of its fields.

    Fields that the ``repr`` omits are omitted here, too. Arrays are summarized by their size.
    """
    if not is_dataclass(instance):
        raise TypeError(f"fields_html needs a dataclass; got {type(instance).__name__}.")
    facts = {}
    for field in fields(instance):
        if field.repr:
            facts[field.name.replace("_", " ")] = _format_value(getattr(instance, field.name))
    return facts_html(type(instance).__name__, facts)


def _format_value(value: object) -> str:
    """Format the value of a field on one line."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return format_count(value)
    if isinstance(value, float):
        return format_number(value, digits=4)
    if isinstance(value, tuple):
        return shorten(", ".join(map(_format_value, value)), _MAX_TEXT_LENGTH)
    size = getattr(value, "size", None)
    if isinstance(size, int) and hasattr(value, "dtype"):
        return f"{format_count(size)} numbers"
    return shorten(str(value), _MAX_TEXT_LENGTH)


def _title_html(title: str, note: str) -> str:
    return f"<p><b>{escape(title)}</b>{escape(f' {note}' if note else '')}</p>"
