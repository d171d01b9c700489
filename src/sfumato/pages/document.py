"""The HTML frame of every page."""

from importlib.metadata import version

from sfumato.pages.markup import EMPTY, Html, read_asset, render

__all__ = ["STATIC_POLICY", "document", "offline_document"]

STATIC_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Forbids scripts and everything that is not part of the page itself."""


def document(
    title: str, *, kicker: str, head: Html, body: Html, opening: Html = EMPTY, heading: str = ""
) -> str:
    """Return a whole page.

    ``kicker`` is the small line above the heading, and ``opening`` follows below it. ``head`` holds
    the styles, scripts and policy. The heading is the title unless ``heading`` says otherwise.
    """
    return render(
        "document.html",
        title=title,
        heading=heading or title,
        kicker=kicker,
        head=head,
        opening=opening,
        body=body,
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
    """Return a page in a single file, styles and scripts included.

    It links to nothing outside itself, and its policy forbids the browser to load anything.
    ``css`` adds to the style that all pages share.
    """
    sfumato = version("sfumato")
    style = Html(read_asset("style.css") + css)
    head = render("offline_head.html", policy=Html(policy), version=sfumato, style=style)
    body = render("offline_body.html", sections=sections, version=sfumato, scripts=scripts)
    return document(title, kicker=kicker, head=head, body=body, opening=opening)
