"""Fill HTML templates. Everything that goes into a page is escaped here, and only here."""

from collections.abc import Iterable
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

__all__ = [
    "EMPTY",
    "Html",
    "fact_rows",
    "fill",
    "fill_each",
    "join",
    "list_items",
    "number_row",
    "read_asset",
    "render",
]


class Html(str):
    """Markup: goes into a page as it is. Any other text is escaped on its way in."""

    __slots__ = ()


EMPTY = Html("")
"""No markup, for a part of a page that is left out."""


@cache
def read_asset(path: str) -> str:
    """Read a template, style or script; ``path`` is relative to this package."""
    return files("sfumato.pages").joinpath(path).read_text(encoding="utf-8")


def render(path: str, /, **values: object) -> Html:
    """Fill the template in the file ``path``, whose last line break is dropped."""
    return fill(read_asset(path).removesuffix("\n"), **values)


def fill(template: str, /, **values: object) -> Html:
    """Replace each ``$name`` in the template by its value, escaped unless it is ``Html``.

    >>> fill("<b>$name</b> $mark", name="Q & A", mark=Html("<hr>"))
    '<b>Q &amp; A</b> <hr>'
    """
    markup = {}
    for name, value in values.items():
        markup[name] = value if isinstance(value, Html) else escape(str(value))
    return Html(Template(template).substitute(markup))


def fill_each(template: str, /, **columns: Iterable[object]) -> Html:
    """Fill the template once for each row of the columns, and join the results.

    >>> fill_each("<li>$text</li>", text=["1 < 2", Html("<b>bold</b>")])
    '<li>1 &lt; 2</li><li><b>bold</b></li>'
    """
    rows = zip(*columns.values(), strict=True)
    return join(fill(template, **dict(zip(columns, row, strict=True))) for row in rows)


def join(parts: Iterable[Html], separator: str = "") -> Html:
    """Join pieces of markup."""
    return Html(separator.join(parts))


def list_items(sentences: Iterable[str]) -> Html:
    """Return an ``<li>`` for each sentence."""
    return fill_each("<li>$text</li>", text=sentences)


def fact_rows(facts: Iterable[tuple[str, str]]) -> Html:
    """Return a table row for each pair of a name and a value."""
    row = '<tr><th scope="row">$name</th><td>$value</td></tr>'
    return join(fill(row, name=name, value=value) for name, value in facts)


def number_row(name: str, numbers: Iterable[str], style: str = "") -> Html:
    """Return a table row of numbers; ``style`` is the class of the row."""
    mark = fill(' class="$style"', style=style) if style else EMPTY
    cells = fill_each('<td class="number">$number</td>', number=numbers)
    row = '<tr$mark><th scope="row" dir="auto">$name</th>$cells</tr>'
    return fill(row, mark=mark, name=name, cells=cells)
