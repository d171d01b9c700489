"""The report page: one self-contained HTML file that works offline and can be sent to whoever asked."""

import base64
import json
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING

from sfumato.errors import WrongSurvey
from sfumato.estimation import Estimate
from sfumato.foundation.canonical import fingerprint
from sfumato.pages.label.page import label_page
from sfumato.pages.report.figures import estimate_figures, plotly_source, promise_figures, written
from sfumato.pages.report.sections import (
    certificate_section,
    cite_section,
    estimate_section,
    fakes_section,
    map_section,
    promise_section,
    summary,
    table_section,
)
from sfumato.pages.style import DARK
from sfumato.promises import Certificate
from sfumato.survey import Survey

if TYPE_CHECKING:
    from plotly.graph_objects import Figure  # type: ignore[import-untyped]

__all__ = ["report_page"]

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)


def report_page(
    survey: Survey, estimate: Estimate, certificate: Certificate, *, title: str | None = None
) -> str:
    """The whole page as HTML: what is promised to whom, what was learned, and how far to trust it.

    Nothing in it points outside, and its own policy forbids the browser to load anything. The certificate must be
    of this survey's mechanism and context, the estimate of this survey; ``WrongSurvey`` otherwise.
    """
    _check(survey, estimate, certificate)
    heading = title or survey.title
    figures = promise_figures(survey) | estimate_figures(survey, estimate)
    parts = (
        f'<header><p class="kicker">Sfumato report</p><h1 dir="auto">{escape(heading)}</h1>',
        summary(survey, estimate),
        "</header><main>",
        promise_section(survey),
        _label_link(survey, certificate),
        estimate_section(survey, estimate),
        map_section(survey, estimate) if "map" in figures else "",
        table_section(estimate),
        certificate_section(survey, certificate),
        fakes_section(survey, estimate),
        cite_section(survey, estimate, heading),
        "</main>",
        f"<footer><p>Made with Sfumato {escape(version('sfumato'))}. This file needs no network and asks for none.</p>",
        "</footer>",
    )
    return _document(heading, "\n".join(parts), figures)


def _label_link(survey: Survey, certificate: Certificate) -> str:
    """The privacy label, inside the page: there is no address that it could be fetched from."""
    label = base64.b64encode(label_page(survey, certificate).encode("utf-8")).decode("ascii")
    link = f'<a download="privacy-label.html" href="data:text/html;charset=utf-8;base64,{label}">privacy label</a>'
    return f'<p class="note">For the people who were asked: the {link} of this survey, one page in plain words.</p>'


# --- the frame ------------------------------------------------------------------------------------------------------


def _document(heading: str, body: str, figures: "dict[str, Figure]") -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="Sfumato {escape(version("sfumato"))}">
<title>{escape(heading)}</title>
<style>
{_asset("report.css")}</style>
</head>
<body>
{body}
<noscript><p>The charts need JavaScript; the words and the table do not.</p></noscript>
<script type="application/json" id="dark">{_json(DARK)}</script>
<script type="application/json" id="figures">{_json(written(figures))}</script>
<script>{_script(plotly_source())}</script>
<script>
{_asset("figures.js")}{_asset("rows.js")}{_asset("report.js")}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return files("sfumato.pages.report").joinpath(name).read_text(encoding="utf-8")


def _script(source: str) -> str:
    """A script that can stand in a page."""
    # Inside a string the two are one; in the page only the second is harmless.
    return source.replace("</script", r"<\/script").replace("<!--", r"<\!--")


def _json(data: object) -> str:
    """JSON that can stand in a script element: no ``<`` in it, so no end tag and no comment."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", r"\u003c")


def _check(survey: Survey, estimate: Estimate, certificate: Certificate) -> None:
    if certificate.mechanism != survey.mechanism.fingerprint:
        raise WrongSurvey(
            "the certificate is of another mechanism. Pass what survey.certify() returns."
        )
    if certificate.context != fingerprint(survey.context.record()):
        raise WrongSurvey(
            "the certificate is of another promise. Pass what survey.certify() returns."
        )
    if estimate.fingerprint != survey.fingerprint:
        raise WrongSurvey(
            "the estimate is of another survey. Pass what survey.estimate(tally) returns."
        )
