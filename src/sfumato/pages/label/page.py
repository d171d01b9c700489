"""The privacy label: on one page, what a survey asks, what a report gives away, and what is not protected.

It is for the people who are asked, and for those who decide whether they may be. Every number on it is exact or rounded
so that it promises less than is kept.
"""

import math
from collections.abc import Sequence
from html import escape
from importlib.resources import files

import numpy as np

from sfumato.errors import ContextMismatch, NoClosedForm
from sfumato.foundation.formatting import format_count
from sfumato.pages.document import sheet
from sfumato.pages.label.limits import kept_sentences, open_sentences
from sfumato.pages.label.names import collected_text
from sfumato.pages.label.odds import believed, everyday_text, moved_text, size_text
from sfumato.pages.label.protection import Shade, opening_text, shades_of
from sfumato.pages.label.schedule import different_answers, often_text, open_text
from sfumato.promises import Certificate
from sfumato.randomness import Epsilon
from sfumato.survey import Survey

__all__ = ["label_page"]

_PEOPLE = 10_000  # for whom the accuracy is told
_EXPLAINED = (
    "What leaves your device is a report: your answer, blurred. Suppose somebody has narrowed your answer down to two "
    "and thinks both equally likely, 50\u00a0:\u00a050. The table says what seeing the report can make of that at the "
    "most. Other odds are multiplied by as much."
)


def label_page(survey: Survey, certificate: Certificate | None = None) -> str:
    """The whole page as HTML. It has no scripts and needs no network, and its policy forbids to load anything.

    Without a certificate the mechanism is certified on the way; ``PrivacyViolation`` where it breaks its promise, since
    a label must not tell of a promise that is not kept.

    >>> from sfumato.contexts import HighLow
    >>> lunch = Survey("lunch-2026", HighLow(["park", "clinic", "bar"], ["clinic", "bar"], 1))
    >>> "73.2\u00a0:\u00a026.8" in label_page(lunch)
    True
    """
    checked = _certificate_text(survey, certificate)
    shades = shades_of(survey.context)
    pair = _listing("open", "What is not protected", open_sentences(survey, shades)) + _listing(
        "kept", "What is sent and kept", kept_sentences(survey)
    )
    body = "\n".join(
        (
            _given_away(survey, shades),
            f'<div class="pair">{pair}</div>',
            _reviewers(survey, checked),
        )
    )
    style = files("sfumato.pages.label").joinpath("label.css").read_text(encoding="utf-8")
    return sheet(
        survey.title, kicker="Privacy label", opening=_asked(survey), body=body, style=style
    )


def _asked(survey: Survey) -> str:
    """What is asked, by whom and when."""
    text = f'<p class="lead" dir="auto">{escape(survey.text)}</p>\n' if survey.text else ""
    facts = (
        ("Who asks", f'<span dir="auto">{escape(survey.contact or "not stated")}</span>'),
        ("When", escape(open_text(survey))),
        ("How often", escape(often_text(survey))),
        ("What is collected", collected_text(survey.context.domain)),
    )
    listed = "".join(f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in facts)
    return f'{text}<dl class="asked">{listed}</dl>'


# --- what a report gives away -----------------------------------------------------------------------------------------


def _given_away(survey: Survey, shades: Sequence[Shade]) -> str:
    opening = f"<p>{opening_text(survey.context)}</p>"
    if not shades:
        return _section("odds", "What a report gives away", opening)
    distinct = different_answers(survey)
    heads = ["If your answer is …", "one report can move its odds …"]
    if distinct > 1:
        heads.append(f"all of them, up to {format_count(distinct)} different answers")
    heads.append("In everyday words" + (", for all of them" if distinct > 1 else ""))
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    rows = "\n".join(_row(shade, distinct) for shade in shades)
    return _section(
        "odds",
        "What a report gives away",
        f"""{opening}
<table class="shades"><caption>{_EXPLAINED}</caption><thead><tr>{head}</tr></thead><tbody>
{rows}
</tbody></table>
<p class="note">Odds are rounded up to a tenth of a per cent.{_repeated(distinct)}</p>""",
    )


def _row(shade: Shade, distinct: int) -> str:
    """A shade as a row; a survey of d different answers costs d · ε in all."""
    total = distinct * shade.epsilon
    several = [("one report", shade.epsilon), ("all of them", total)]
    cells = [_odds(epsilon, head) for head, epsilon in several] if distinct > 1 else [_odds(total)]
    mark = ' class="open"' if shade.epsilon == math.inf else ""
    return (
        f'<tr{mark}><th scope="row">{shade.answers}<span class="small">against {shade.against}</span></th>'
        f"{''.join(cells)}<td>{escape(everyday_text(total))}</td></tr>"
    )


def _odds(epsilon: Epsilon, head: str = "") -> str:
    """A cell; ``head`` is repeated in it where a narrow screen has no room for the table's own."""
    width = believed(epsilon) / 10
    bar = f'<span class="belief" aria-hidden="true"><span style="width: {width:g}%"></span></span>'
    words, size = escape(moved_text(epsilon)), escape(size_text(epsilon))
    named = f' data-head="{head}"' if head else ""
    return f'<td{named}>{words}{bar}<span class="small">{size}</span></td>'


def _repeated(distinct: int) -> str:
    if distinct == 1:
        return ""
    return (
        f" The same answer sends the same report and gives away nothing new; up to {format_count(distinct)} different "
        "answers multiply the odds once each. After them the last report is sent again."
    )


# --- for reviewers ----------------------------------------------------------------------------------------------------


def _reviewers(survey: Survey, certificate: str) -> str:
    mechanism = survey.mechanism
    kept = (
        f"<code>{type(survey.context).__name__}</code>, kept by <code>{type(mechanism).__name__}</code>: every "
        f"probability is a whole number over 2<sup>{mechanism.word_bits * mechanism.words}</sup>"
    )
    facts = [
        ("Promise", kept),
        ("Certificate", escape(certificate)),
        ("Accuracy", escape(_accuracy_text(survey))),
        ("Fingerprint", f"<code>{survey.fingerprint}</code><br>{_FINGERPRINT}"),
    ]
    rows = "".join(f'<tr><th scope="row">{name}</th><td>{fact}</td></tr>' for name, fact in facts)
    return _section(
        "reviewers", "For reviewers", f'<table class="reviewers"><tbody>{rows}</tbody></table>'
    )


_FINGERPRINT = (
    "It names the answers, the promise and every probability. A device computes it from what it loads, and so can you: "
    "another fingerprint is another promise."
)


def _certificate_text(survey: Survey, known: Certificate | None) -> str:
    """The outcome of the exact check in a line."""
    try:
        certificate = known or survey.certify()
    except (NoClosedForm, ContextMismatch):
        return "None: this channel is too large for an exact check. The promise rests on the proof of its mechanism."
    if certificate.tightest is None:
        return "Nothing is promised, so nothing can be broken."
    checked = "every pair of answers was compared on every report"
    if certificate.method == "structural":
        rows, inputs = format_count(certificate.rows), format_count(certificate.inputs)
        checked = f"shown from the structure of the channel, which was checked on {rows} of {inputs} answers"
    used, promised = certificate.realised_epsilon, certificate.promised_epsilon
    return f"Kept: {checked}, in whole numbers. The tightest place uses ε = {used!r} of {promised!r} promised."


def _accuracy_text(survey: Survey) -> str:
    """The largest standard error for people who are spread evenly over the answers."""
    k = survey.context.size
    variances = survey.mechanism.scores.variances(np.full(k, 1 / k), _PEOPLE)
    error = f"{100 * math.sqrt(max(float(variances.max()), 0.0)):#.2g}".rstrip(".")
    least = survey.minimum_reports
    shown = f" No results are shown below {format_count(least)} reports." if least > 1 else ""
    return (
        f"With {format_count(_PEOPLE)} reports the share of an answer has a standard error of up to {error} "
        f"percentage points, if all answers are equally frequent.{shown}"
    )


def _listing(name: str, heading: str, sentences: Sequence[str]) -> str:
    return _section(
        name, heading, f"<ul>{''.join(f'<li>{sentence}</li>' for sentence in sentences)}</ul>"
    )


def _section(name: str, heading: str, inside: str) -> str:
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{heading}</h2>\n{inside}\n</section>'
