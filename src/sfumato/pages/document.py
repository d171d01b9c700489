"""The frame of a small page: one HTML file without scripts, to be sent to whoever must decide."""

from html import escape
from importlib.metadata import version
from importlib.resources import files

__all__ = ["PAPER_POLICY", "sheet"]

PAPER_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""No scripts, and nothing from anywhere: the page is as good as paper."""


def sheet(title: str, *, kicker: str, opening: str, body: str, style: str = "") -> str:
    """The whole page. ``opening`` and ``body`` are HTML: what stands below the title, and the sections.

    Nothing in the frame points outside, and its policy forbids the browser to load anything.
    """
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{PAPER_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{files("sfumato.pages.report").joinpath("report.css").read_text(encoding="utf-8")}{style}</style>
</head>
<body>
<header>
<p class="kicker">{escape(kicker)}</p>
<h1 dir="auto">{escape(title)}</h1>
{opening}
</header>
<main>
{body}
</main>
<footer><p>Made with Sfumato {escape(version("sfumato"))}. This file needs no network and asks for none.</p></footer>
</body>
</html>
"""
