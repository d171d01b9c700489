"""The report page: an estimate in one HTML file that works offline and can be emailed."""

import base64

from sfumato.errors import WrongSurvey
from sfumato.estimation import Estimate
from sfumato.foundation.canonical import fingerprint
from sfumato.pages.label import label_page
from sfumato.pages.markup import Html, fill, join, offline_document, read_asset
from sfumato.pages.report.sections import (
    both_estimates_section,
    certificate_section,
    citation_section,
    estimate_section,
    fakes_section,
    map_section,
    promise_section,
    summary,
    table_section,
)
from sfumato.promises import Certificate
from sfumato.survey import Survey

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
_SCRIPTS = ("report/rows.js", "report/maps.js", "report/report.js")
_LABEL_LINK = (
    '<p class="note">For participants: the '
    '<a download="privacy-label.html" href="data:text/html;charset=utf-8;base64,$label">'
    "privacy label</a> of this survey, one page in plain language.</p>"
)


def report_page(
    survey: Survey, estimate: Estimate, certificate: Certificate, *, title: str | None = None
) -> str:
    """Return the report page: what is promised, what was learned, and how reliable it is.

    The HTML is self-contained: its content security policy prevents the browser from loading
    anything. Raise ``WrongSurvey`` if ``certificate`` or ``estimate`` is for a different survey.
    """
    _require_same_survey(survey, estimate, certificate)
    heading = title or survey.title
    sections = [
        map_section(survey, estimate),
        estimate_section(survey, estimate),
        both_estimates_section(survey, estimate),
        table_section(estimate),
        promise_section(survey),
        certificate_section(survey, certificate),
        fakes_section(survey, estimate),
        citation_section(survey, estimate, heading),
        _render_label_link(survey, certificate),
    ]
    return offline_document(
        heading,
        kicker="Sfumato report",
        opening=summary(survey, estimate),
        sections=join(sections, "\n"),
        policy=_POLICY,
        scripts=_render_scripts(),
    )


def _require_same_survey(survey: Survey, estimate: Estimate, certificate: Certificate) -> None:
    if certificate.mechanism != survey.mechanism.fingerprint:
        raise WrongSurvey(
            "the certificate is for a different mechanism. Pass the result of survey.certify()."
        )
    if certificate.context != fingerprint(survey.context.to_record()):
        raise WrongSurvey(
            "the certificate is for a different promise. Pass the result of survey.certify()."
        )
    if estimate.fingerprint != survey.fingerprint:
        raise WrongSurvey(
            "the estimate is for a different survey. Pass the result of survey.estimate(tally)."
        )


def _render_label_link(survey: Survey, certificate: Certificate) -> Html:
    """Embed the privacy label in a link, because an offline page cannot fetch it."""
    label = label_page(survey, certificate).encode("utf-8")
    return fill(_LABEL_LINK, label=base64.b64encode(label).decode("ascii"))


def _render_scripts() -> Html:
    return fill("<script>\n$scripts</script>", scripts=Html("".join(map(read_asset, _SCRIPTS))))
