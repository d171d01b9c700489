"""An aggregator's dashboard: an empty page, and the parts that ``dashboard.js`` adds to it.

Most sections are the same as on the report page.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version

import numpy as np

from sfumato.estimation import Difference, Estimate
from sfumato.estimation.top_answers import decimal_places
from sfumato.foundation.decoder_table import DECODER_TABLE
from sfumato.foundation.formatting import format_count, format_share, plural
from sfumato.pages.charts import reports_over_time
from sfumato.pages.markup import (
    EMPTY,
    Html,
    chart_html,
    document,
    fill,
    fill_each,
    join,
    render,
)
from sfumato.pages.report.sections import (
    both_estimates_section,
    certificate_section,
    estimate_section,
    fakes_section,
    map_section,
    promise_section,
    summary,
    table_section,
)
from sfumato.promises import Certificate
from sfumato.survey import Survey

View = dict[str, dict[str, Html]]
"""The HTML of some parts of the page, keyed by name."""

DASHBOARD_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy that allows scripts from the aggregator and nothing from other sites."""

COMPARISON_PERIODS = {1: "the day before", 7: "the seven days before", 30: "the thirty days before"}
"""The periods that the dashboard can compare with, keyed by their length in days."""

_DEFAULT_PERIOD = 7  # days
_MAX_LISTED_CHANGES = 40


def dashboard_page() -> str:
    """Return the empty page. ``dashboard.js`` fills it with data from the aggregator."""
    titles = {name: text.title for name, text in DECODER_TABLE.items()}
    body = render(
        "dashboard/dashboard.html",
        decoders=_render_options(titles, "auto"),
        periods=_render_options(COMPARISON_PERIODS, _DEFAULT_PERIOD),
    )
    return document(
        "Sfumato aggregator",
        heading="Aggregator",
        kicker=f"Sfumato {version('sfumato')}",
        head=render("dashboard/head.html"),
        opening=Html('<p class="note">Status: <span id="health">…</span>.</p>'),
        body=body,
    )


def _render_options(choices: Mapping[str, str] | Mapping[int, str], default: str | int) -> Html:
    option = '<option value="$value"$selected>$text</option>'
    selected = [Html(" selected" if value == default else "") for value in choices]
    return fill_each(option, value=choices, selected=selected, text=choices.values())


# --- the parts ------------------------------------------------------------------------------------


def promise_view(survey: Survey) -> View:
    """Return the title and the promise, which everyone may see."""
    title = render("dashboard/title.html", title=survey.title, fingerprint=survey.fingerprint)
    return {"parts": {"title": title, "promise": promise_section(survey)}}


def certificate_view(survey: Survey, certificate: Certificate) -> View:
    """Return the certificate that the promise is kept, which everyone may see."""
    return {"parts": {"certificate": certificate_section(survey, certificate)}}


def results_view(
    survey: Survey,
    estimate: Estimate,
    reports_by_hour: Sequence[tuple[str, int]],
    changes: Difference | None,
    days: int,
) -> View:
    """Return the parts that only analysts may see: reports over time, estimates and changes.

    ``reports_by_hour``: each hour with its number of reports. ``changes``: the last ``days`` days
    compared with the previous period, or ``None`` if there are too few reports.
    """
    parts = {
        "summary": summary(survey, estimate),
        "hours": _hours_section(reports_by_hour),
        "estimate": estimate_section(survey, estimate),
        "map": map_section(survey, estimate),
        "decoded": both_estimates_section(survey, estimate),
        "changes": _changes_section(estimate, changes, days),
        "table": table_section(estimate),
        "fakes": fakes_section(survey, estimate),
    }
    return {"parts": parts}


def _hours_section(reports_by_hour: Sequence[tuple[str, int]]) -> Html:
    report_count = sum(count for _, count in reports_by_hour)
    return render(
        "dashboard/hours.html",
        reports=format_count(report_count),
        hours=plural(len(reports_by_hour), "hour"),
        chart=chart_html(reports_over_time(reports_by_hour)) if reports_by_hour else EMPTY,
    )


def _changes_section(estimate: Estimate, changes: Difference | None, days: int) -> Html:
    """Show which answers have become more or less frequent."""
    period = "day" if days == 1 else f"{days} days"
    if changes is None:
        sentence = (
            f"There are not enough reports in the last {period}, or in the {period} before, to "
            "compare the two."
        )
        note = fill('<p class="note">$sentence</p>', sentence=sentence)
        return render("dashboard/changes.html", text=note, table=EMPTY)
    symbols = _certain_changes(changes)
    answers = plural(len(changes.labels), "answer")
    text = (
        f"No change is certain. The reports of the last {period} and of the {period} before do not "
        f"tell whether any of the {answers} has become more or less frequent."
    )
    if symbols:
        text = (
            f"The last {period} compared with the {period} before: {format_count(len(symbols))} of "
            f"{answers} changed. For the others, the reports are inconclusive. With 95% "
            "probability, every change listed is real."
        )
    if len(symbols) > _MAX_LISTED_CHANGES:
        text += f" The {_MAX_LISTED_CHANGES} largest changes:"
    table = EMPTY
    if symbols:
        decimals = decimal_places(estimate.standard_errors) + 1
        rows = join(_render_change(changes, x, decimals) for x in symbols[:_MAX_LISTED_CHANGES])
        table = render("dashboard/changes_table.html", rows=rows)
    return render("dashboard/changes.html", text=fill("<p>$text</p>", text=text), table=table)


def _certain_changes(changes: Difference) -> list[int]:
    """Return the symbols whose interval excludes zero, with the largest change first."""
    order = np.argsort(-np.abs(changes.differences), kind="stable")
    excludes_zero = (changes.low > 0) | (changes.high < 0)
    return order[excludes_zero[order]].tolist()


def _render_change(changes: Difference, x: int, decimals: int) -> Html:
    direction = "more frequent"
    min_change = float(changes.low[x])
    if min_change <= 0:
        direction = "less frequent"
        min_change = -float(changes.high[x])
    row = (
        '<tr><th scope="row" dir="auto">$label</th><td class="text">$direction</td>'
        '<td class="number" data-name="by about">$estimate</td>'
        '<td class="number" data-name="by at least">$minimum</td></tr>'
    )
    return fill(
        row,
        label=changes.labels[x],
        direction=direction,
        estimate=format_share(abs(float(changes.differences[x])), decimals),
        minimum=format_share(min_change, decimals),
    )
