"""HTML templates, and the document structure that all pages share.

Values are escaped when they are inserted into a template, unless they are ``Html``.
"""

import base64
from collections.abc import Iterable
from functools import cache
from html import escape
from importlib.metadata import version
from importlib.resources import files
from string import Template

from sfumato.charts import DARK, LIGHT, Chart, css_variables
from sfumato.charts.palette import FIXED


class Html(str):
    """Markup that is inserted into a page as is. All other text is escaped."""

    __slots__ = ()


EMPTY = Html("")
"""No markup, for an omitted part of a page."""

STATIC_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""Content security policy that forbids scripts and all external resources."""


# --- templates ------------------------------------------------------------------------------------


@cache
def read_asset(path: str) -> str:
    """Return the text of a template, style sheet or script in this package."""
    return files("sfumato.pages").joinpath(path).read_text(encoding="utf-8")


def render(path: str, /, **values: object) -> Html:
    """Fill the template in the file ``path``, ignoring the file's final line break."""
    return fill(read_asset(path).removesuffix("\n"), **values)


def fill(template: str, /, **values: object) -> Html:
    """Return the template with each ``$name`` replaced by its value, escaped if it is not ``Html``.

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
    """Join pieces of markup. The separator is not escaped."""
    return Html(separator.join(parts))


# --- elements -------------------------------------------------------------------------------------


def lead_paragraph(text: str) -> Html:
    """Return an introductory paragraph, or no markup if the text is empty."""
    return fill('<p class="lead" dir="auto">$text</p>', text=text) if text else EMPTY


def list_items(sentences: Iterable[str]) -> Html:
    """Return an ``<li>`` for each sentence."""
    return fill_each("<li>$text</li>", text=sentences)


def fact_rows(facts: Iterable[tuple[str, str]]) -> Html:
    """Return a table row for each pair of a name and a value."""
    row = '<tr><th scope="row">$name</th><td>$value</td></tr>'
    return join(fill(row, name=name, value=value) for name, value in facts)


def chart_html(chart: Chart) -> Html:
    """Return a chart for a page: one layout for desktops and one for phones."""
    return Html(chart.to_html())


def chart_link(chart: Chart, name: str, text: str = "Download the chart") -> Html:
    """Return a link that holds the chart as an SVG file, in colours for light paper."""
    svg = chart.to_svg(palette=FIXED).encode("utf-8")
    data = base64.b64encode(svg).decode("ascii")
    return fill(
        '<a download="$name.svg" href="data:image/svg+xml;base64,$data">$text</a>',
        name=name,
        data=data,
        text=text,
    )


def number_row(name: str, numbers: Iterable[str], css_class: str = "") -> Html:
    """Return a table row: a name, followed by numbers."""
    class_attribute = fill(' class="$name"', name=css_class) if css_class else EMPTY
    cells = fill_each('<td class="number">$number</td>', number=numbers)
    row = '<tr$class_attribute><th scope="row" dir="auto">$name</th>$cells</tr>'
    return fill(row, class_attribute=class_attribute, name=name, cells=cells)


# --- complete pages -------------------------------------------------------------------------------


def document(
    title: str, *, kicker: str, head: Html, body: Html, opening: Html = EMPTY, heading: str = ""
) -> str:
    """Return a complete page.

    ``kicker`` is the small line above the heading, and ``opening`` follows the heading. ``head``
    contains the styles, scripts and policy. The heading defaults to the title.
    """
    mark = read_asset("mark.svg").strip()
    icon = f"data:image/svg+xml;base64,{base64.b64encode(mark.encode()).decode()}"
    return render(
        "document.html",
        title=title,
        icon=icon,
        mark=Html(mark),
        heading=heading or title,
        kicker=kicker,
        head=head,
        opening=opening,
        body=body,
    )


@cache
def page_style() -> str:
    """Return the style sheet that all pages share, with the colours of the charts."""
    return (
        f":root {{ {css_variables(LIGHT)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {css_variables(DARK)} }} }}\n"
        + read_asset("style.css")
    )


def offline_document(
    title: str,
    *,
    kicker: str,
    opening: Html,
    sections: Html,
    css: str = "",
    policy: str = STATIC_POLICY,
    scripts: Html = EMPTY,
) -> str:
    """Return a self-contained page, including its styles and scripts.

    The default policy prevents the browser from running scripts and from loading other files.
    ``css`` is added to the style sheet that all pages share.
    """
    sfumato_version = version("sfumato")
    style = Html(page_style() + css)
    head = render("offline_head.html", policy=Html(policy), version=sfumato_version, style=style)
    body = render("offline_body.html", sections=sections, version=sfumato_version, scripts=scripts)
    return document(title, kicker=kicker, head=head, body=body, opening=opening)
