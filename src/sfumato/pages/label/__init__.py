"""The privacy label: what a survey asks, what a report reveals, and what is not protected.

The label is for survey participants, and for those who decide whether to run a survey. Every number
about privacy is exact, or rounded so that the label never promises too much.
"""

import math
from collections.abc import Sequence

import numpy as np

from sfumato.errors import ContextMismatch, NoClosedForm
from sfumato.foundation.formatting import format_count
from sfumato.pages.label.protection import ProtectionLevel, opening_text, protection_levels
from sfumato.pages.label.text import (
    belief,
    dates_text,
    disclosure_sentences,
    domain_text,
    everyday_text,
    factor_text,
    max_different_answers,
    odds_text,
    repeat_text,
    storage_sentences,
)
from sfumato.pages.markup import (
    EMPTY,
    Html,
    fill,
    fill_each,
    join,
    lead_paragraph,
    list_items,
    offline_document,
    read_asset,
    render,
)
from sfumato.promises import Certificate
from sfumato.randomness import Epsilon
from sfumato.survey import Survey

_REPORT_COUNT = 10_000  # the label states the accuracy for this many reports


def label_page(survey: Survey, certificate: Certificate | None = None) -> str:
    """Return the privacy label as HTML: one page without scripts that works offline.

    Without a ``certificate``, certify the mechanism first, and raise ``PrivacyViolation`` if it
    breaks its promise, because a label must not state a promise that is not kept.

    >>> from sfumato.contexts import HighLow
    >>> lunch = Survey("lunch-2026", HighLow(["park", "clinic", "bar"], ["clinic", "bar"], 1))
    >>> "73.2\u00a0:\u00a026.8" in label_page(lunch)
    True
    """
    mechanism = survey.mechanism
    levels = protection_levels(survey.context)
    disclosures = [Html(level.disclosure) for level in levels if level.disclosure]
    sections = render(
        "label/label.html",
        opening=Html(opening_text(survey.context)),
        odds=_render_odds_table(survey, levels),
        unprotected=list_items(disclosure_sentences(survey, disclosures)),
        stored=list_items(storage_sentences(survey)),
        context=type(survey.context).__name__,
        mechanism=type(mechanism).__name__,
        bits=mechanism.word_bits * mechanism.words,
        certificate=_certificate_text(survey, certificate),
        accuracy=_accuracy_text(survey),
        fingerprint=survey.fingerprint,
    )
    return offline_document(
        survey.title,
        kicker="Privacy label",
        opening=_render_opening(survey),
        sections=sections,
        css=read_asset("label/label.css"),
    )


def _render_opening(survey: Survey) -> Html:
    """State what is asked, by whom, when and how often."""
    return render(
        "label/opening.html",
        text=lead_paragraph(survey.text),
        contact=survey.contact or "not stated",
        dates=dates_text(survey),
        repeat=repeat_text(survey),
        domain=domain_text(survey.context.domain),
    )


# --- what a report reveals ------------------------------------------------------------------------


def _render_odds_table(survey: Survey, levels: Sequence[ProtectionLevel]) -> Html:
    if not levels:
        return EMPTY
    distinct_count = max_different_answers(survey)
    headings = ["If your answer is …", "one report can move its odds …"]
    repeat_note = ""
    if distinct_count == 1:
        headings.append("In everyday words")
    else:
        count_text = format_count(distinct_count)
        headings.append(f"all reports together, for up to {count_text} different answers")
        headings.append("In everyday words, for all reports")
        repeat_note = (
            " Giving the same answer again sends the same report and reveals nothing new. Each "
            f"different answer, up to {count_text} of them, multiplies the odds once more. "
            "After that, the device repeats its last report."
        )
    return render(
        "label/odds.html",
        headings=fill_each('<th scope="col">$heading</th>', heading=headings),
        rows=join(_render_row(level, distinct_count) for level in levels),
        repeat_note=repeat_note,
    )


def _render_row(level: ProtectionLevel, distinct_count: int) -> Html:
    """Return a table row. Each of ``distinct_count`` different answers adds the level's ε."""
    total_epsilon = distinct_count * level.epsilon
    odds = _render_odds_cell(total_epsilon)
    if distinct_count > 1:
        one_report = _render_odds_cell(level.epsilon, "one report")
        odds = join([one_report, _render_odds_cell(total_epsilon, "all reports")])
    return render(
        "label/row.html",
        class_attribute=Html(' class="open"') if level.epsilon == math.inf else EMPTY,
        answers=Html(level.answers),
        against=Html(level.against),
        odds=odds,
        everyday=everyday_text(total_epsilon),
    )


def _render_odds_cell(epsilon: Epsilon, heading: str = "") -> Html:
    """Return a cell. Narrow screens hide the table's headings, and show ``heading`` instead."""
    return render(
        "label/cell.html",
        heading=fill(' data-heading="$heading"', heading=heading) if heading else EMPTY,
        odds=odds_text(epsilon),
        width=f"{belief(epsilon) / 10:g}",
        factor=factor_text(epsilon),
    )


# --- for reviewers --------------------------------------------------------------------------------


def _certificate_text(survey: Survey, certificate: Certificate | None) -> str:
    """State the result of the exact check, or why there was no check."""
    try:
        certificate = certificate or survey.certify()
    except (NoClosedForm, ContextMismatch):
        return (
            "None: this channel is too large for an exact check. The promise rests on the "
            "mechanism's proof."
        )
    if certificate.tightest is None:
        return "Nothing is promised, so nothing can be broken."
    check_text = "every pair of answers was compared for every report, in exact integer arithmetic."
    if certificate.method == "structural":
        choice = ", chosen at random," if certificate.rows < certificate.inputs else ""
        check_text = (
            f"the probabilities of {format_count(certificate.rows)} of "
            f"{format_count(certificate.inputs)} answers{choice} were compared with the structure "
            "of the mechanism, in exact integer arithmetic. From that structure, the promise for "
            "every pair follows by proof."
        )
    return (
        f"Kept: {check_text} The tightest case, "
        f"{certificate.tightest_pair}, uses ε = {certificate.realised_epsilon!r} of "
        f"{certificate.promised_epsilon!r} promised."
    )


def _accuracy_text(survey: Survey) -> str:
    """State the largest standard error of a share, and the minimum number of reports, if any."""
    k = survey.context.size
    variances = survey.mechanism.scores.variances(np.full(k, 1 / k), _REPORT_COUNT)
    error = math.sqrt(max(float(variances.max()), 0.0))
    points_text = f"{100 * error:#.2g}".rstrip(".")
    text = (
        f"With {format_count(_REPORT_COUNT)} reports, the share of an answer has a standard error "
        f"of up to {points_text} percentage points, if all answers are equally frequent."
    )
    if survey.minimum_reports > 1:
        minimum_text = format_count(survey.minimum_reports)
        text += f" No results are shown for fewer than {minimum_text} reports."
    return text
