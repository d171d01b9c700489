"""The dashboard of an aggregator: a frame that ``dashboard/dashboard.js`` fills, and the parts that it fills it with.

Sentences, tables and figures are those of the report page, from the same functions.
"""

import json
from collections.abc import Sequence
from html import escape
from importlib.metadata import version

import numpy as np

from sfumato.estimation import Estimate
from sfumato.estimation.uncertainty.differences import Difference
from sfumato.foundation.formatting import format_count, format_share
from sfumato.pages.charts import reports_over_time
from sfumato.pages.report.figures import (
    estimate_figures,
    plotly_style_ids,
    promise_figures,
    written,
)
from sfumato.pages.report.sections import (
    certificate_section,
    estimate_section,
    fakes_section,
    map_section,
    promise_section,
    summary,
    table_section,
)
from sfumato.pages.style import DARK, places_for
from sfumato.promises import Certificate
from sfumato.survey import Survey

__all__ = [
    "COMPARED",
    "DASHBOARD_POLICY",
    "certificate_view",
    "dashboard_page",
    "promise_view",
    "results_view",
]

View = dict[str, dict[str, object]]
"""Parts of the page by name, and figures by name."""

DASHBOARD_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data: blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; style-src-attr 'unsafe-inline'; "
    "style-src-elem 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
)
"""Scripts from the aggregator alone, and nothing from anywhere else.

The drawing library writes style attributes, which can run nothing, and makes an empty style element that it fills rule
by rule: the hash is that of nothing.
"""

_DECODERS = {
    "auto": "the one that the reports speak for",
    "projection": "projection",
    "likelihood": "likelihood",
    "empirical-bayes": "empirical Bayes",
    "spatial-bayes": "spatial Bayes (maps)",
    "unbiased": "unbiased, as it is",
}
COMPARED = {1: "the day before", 7: "the seven days before", 30: "the thirty days before"}
"""Periods that can be compared with the one before, in days."""

_MOST_CHANGES = 40


def dashboard_page() -> str:
    """The frame. What it shows comes later, and only from the aggregator itself."""
    decoders = "".join(
        f'<option value="{name}">{words}</option>' for name, words in _DECODERS.items()
    )
    days = "".join(
        f'<option value="{number}"{" selected" * (number == 7)}>{words}</option>'
        for number, words in COMPARED.items()
    )
    public = "".join(f'<div data-part="{name}"></div>' for name in ("promise", "certificate"))
    # The drawing library leaves alone what carries these names; otherwise it would write a style of its own.
    planted = "".join(f'<meta id="{id_}">' for id_ in plotly_style_ids())
    private = "".join(
        f'<div data-part="{name}" data-private></div>'
        for name in ("summary", "hours", "estimate", "map", "changes", "table", "fakes")
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sfumato aggregator</title>
<link rel="icon" href="data:,">
{planted}
<link rel="stylesheet" href="static/report.css">
<link rel="stylesheet" href="static/dashboard/dashboard.css">
<script src="static/plotly.js" defer></script>
<script src="static/figures.js" defer></script>
<script src="static/rows.js" defer></script>
<script type="module" src="static/dashboard/dashboard.js"></script>
</head>
<body data-dark="{escape(json.dumps(DARK))}">
<header>
<p class="kicker">Sfumato {escape(version("sfumato"))}</p>
<h1>Aggregator</h1>
<p class="note">It is <span id="health">…</span>.</p>
</header>
<div class="house">
<nav aria-label="Surveys and access">
<h2>Surveys</h2>
<ul id="surveys"></ul>
<p id="none" class="note" hidden>There are none yet: <code>sfumato serve survey.toml</code></p>
<form id="token" autocomplete="off" hidden>
<p><label for="secret">What was learned is for analysts. The token that the aggregator printed:</label></p>
<p><input id="secret" type="password" autocomplete="off" spellcheck="false"></p>
<p><button>Show results</button></p>
</form>
<p><button id="leave" type="button" hidden>Forget the token</button></p>
</nav>
<main>
<p id="problem" class="caution" role="alert" hidden></p>
<p id="loading" class="note" role="status">Loading …</p>
<noscript><p class="caution">This page is filled by a script of the aggregator itself.</p></noscript>
<div data-part="title"></div>
<form id="asked" class="asked" hidden>
<label>decoded by<select id="decoder">{decoders}</select></label>
<label>changes against<select id="days">{days}</select></label>
</form>
{private}
{public}
</main>
</div>
</body>
</html>
"""


def promise_view(survey: Survey) -> View:
    """What everybody may see: the promise."""
    links = (
        f'<p class="links"><a href="try/{survey.fingerprint}">Try it</a> '
        f'<a href="label/{survey.fingerprint}">Privacy label</a></p>'
    )
    title = f'<h2 class="title" dir="auto">{escape(survey.title)}</h2>{links}'
    return {
        "parts": {"title": title, "promise": promise_section(survey)},
        "figures": written(promise_figures(survey)),
    }


def certificate_view(survey: Survey, certificate: Certificate) -> View:
    """What everybody may see, too: that the promise is kept."""
    return {"parts": {"certificate": certificate_section(survey, certificate)}, "figures": {}}


def results_view(
    survey: Survey,
    estimate: Estimate,
    hours: Sequence[tuple[str, int]],
    changes: Difference | None,
    days: int,
) -> View:
    """What analysts may see: what came in, what was learned, what has changed, how far it can be trusted."""
    figures = estimate_figures(survey, estimate) | {"hours": reports_over_time(hours)}
    parts = {
        "summary": summary(survey, estimate),
        "hours": _hours_section(hours),
        "estimate": estimate_section(survey, estimate),
        "map": map_section(survey, estimate) if "map" in figures else "",
        "changes": _changes_section(estimate, changes, days),
        "table": table_section(estimate),
        "fakes": fakes_section(survey, estimate),
    }
    return {"parts": dict(parts), "figures": written(figures)}


def _hours_section(hours: Sequence[tuple[str, int]]) -> str:
    total = sum(reports for _, reports in hours)
    return f"""<section id="hours-section" aria-labelledby="hours-title">
<h2 id="hours-title">What came in</h2>
<p>{format_count(total)} reports in {format_count(len(hours))} hour{"s" * (len(hours) != 1)}. Nothing finer than the hour is
kept.</p>
<div class="plot" id="hours" role="figure" aria-label="Bar chart of reports over time"></div>
</section>"""


def _changes_section(estimate: Estimate, changes: Difference | None, days: int) -> str:
    """Which answers have become more or less frequent, and for how many that cannot be told."""
    period = "day" if days == 1 else f"{days} days"
    if changes is None:
        words = f"There are not enough reports in the last {period}, or in the {period} before, to compare them."
        return f'{_CHANGES}<p class="note">{words}</p></section>'
    order = np.argsort(-np.abs(changes.differences), kind="stable")
    changed = [int(x) for x in order if changes.low[x] > 0 or changes.high[x] < 0]
    rows = "".join(_change(changes, x, places_for(estimate)) for x in changed[:_MOST_CHANGES])
    few = f"The {_MOST_CHANGES} largest changes:" if len(changed) > _MOST_CHANGES else ""
    return f"""{_CHANGES}
<p>The last {period} against the {period} before: {format_count(len(changed))} of {format_count(len(changes.labels))}
answers have changed; for the others one cannot tell. With 95 % probability nothing is called changed that is not.
{few}</p>
{_table_of_changes(rows) if rows else ""}</section>"""


def _table_of_changes(rows: str) -> str:
    return f"""<div class="wide" tabindex="0" role="region" aria-labelledby="changes-title">
<table class="changes"><thead><tr><th scope="col">answer</th><th scope="col">is</th>
<th scope="col" class="number">by about</th><th scope="col" class="number">by at least</th></tr></thead>
<tbody>{rows}</tbody></table></div>"""


def _change(changes: Difference, x: int, places: int) -> str:
    up = changes.low[x] > 0
    least = changes.low[x] if up else -changes.high[x]
    numbers = "".join(
        f'<td class="number">{format_share(float(abs(v)), places)}</td>'
        for v in (changes.differences[x], least)
    )
    word = '<td class="up">more frequent</td>' if up else '<td class="down">less frequent</td>'
    return (
        f'<tr><th scope="row" dir="auto">{escape(str(changes.labels[x]))}</th>{word}{numbers}</tr>'
    )


_CHANGES = '<section id="changes" aria-labelledby="changes-title"><h2 id="changes-title">What has changed</h2>'
