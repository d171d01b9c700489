"""The try-it page: pick an answer, see what would be sent and what it reveals, then send it.

``try.js`` runs the JavaScript client in the browser, so the page shows exactly what a device does.
The page loads nothing from other sites, and answers leave the device only as reports.
"""

import json
from itertools import islice

from sfumato.charts.maps import MapProjection, OutlineMap
from sfumato.charts.outlines import Bounds
from sfumato.domains import Domain, GridDomain
from sfumato.foundation.formatting import format_count
from sfumato.pages.markup import Html, document, fill_each, lead_paragraph, list_items, render
from sfumato.pages.promise import promise_sentences
from sfumato.survey import Survey

TRY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy that restricts scripts, styles and connections to the aggregator."""

_MAX_LISTED_ANSWERS = 12  # if there are more answers, people type theirs in a box
_MAX_SUGGESTIONS = 2000
_MAP_WIDTH = 800  # pixels
_LABEL_HEIGHT = 18  # of the longitudes, which the page draws over the outlines


def try_page(survey: Survey) -> str:
    """Return the page for one survey. Its scripts and styles are under ``../static/``."""
    domain = survey.context.domain
    body = render(
        "try_it/try.html",
        fingerprint=survey.fingerprint,
        columns=domain.shape[1] if isinstance(domain, GridDomain) else 0,
        choice=_render_choice(domain),
        promise=list_items(promise_sentences(survey.context)),
    )
    return document(
        f"Try: {survey.title}",
        heading=survey.title,
        kicker="Try it · nothing leaves this page until you press “Send”",
        head=render("try_it/head.html"),
        opening=lead_paragraph(survey.text),
        body=body,
    )


def _render_choice(domain: Domain) -> Html:
    """Return the form for picking an answer: a map, a list, or a box with suggestions."""
    if isinstance(domain, GridDomain):
        return _render_map(domain)
    if domain.size <= _MAX_LISTED_ANSWERS:
        return _render_list(domain)
    suggestions = islice(domain.labels, _MAX_SUGGESTIONS)
    return render(
        "try_it/box.html",
        size=format_count(domain.size),
        first=domain.labels[0],
        suggestions=fill_each('<option value="$label"></option>', label=suggestions),
    )


def _render_list(domain: Domain) -> Html:
    option = (
        '<label class="option"><input type="radio" name="answer" value="$symbol">'
        '<span dir="auto">$label</span></label>'
    )
    options = fill_each(option, symbol=range(domain.size), label=domain.labels)
    return render("try_it/list.html", options=options)


def _render_map(grid: GridDomain) -> Html:
    record = grid.to_record()
    geometry = {name: float(record[name]) for name in ("south", "north", "west", "east", "step")}
    bounds = Bounds(geometry["south"], geometry["north"], geometry["west"], geometry["east"])
    outlines = OutlineMap("Outlines of countries and states", bounds, footer=_LABEL_HEIGHT)
    return render(
        "try_it/map.html",
        edges=json.dumps(geometry),
        outlines=Html(outlines.to_html()),
        width=_MAP_WIDTH,
        height=round(MapProjection(bounds, _MAP_WIDTH).height),
        **{name: record[name] for name in geometry},
    )
