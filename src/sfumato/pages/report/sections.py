"""The sections of a page about an estimate: what is promised, what was learned, and how far to trust it."""

from html import escape
from importlib.metadata import version

import numpy as np

from sfumato.domains import GridDomain
from sfumato.estimation import Estimate
from sfumato.estimation.uncertainty.manipulation import Manipulation
from sfumato.foundation.formatting import format_count, format_share, format_upper_bound
from sfumato.pages.charts import LARGEST_HEATMAP
from sfumato.pages.promise import promise_facts, promise_sentences
from sfumato.pages.style import MOST_BARS, most_frequent, places_for
from sfumato.promises import Certificate
from sfumato.survey import Survey
from sfumato.survey.results import FAKES

__all__ = [
    "certificate_section",
    "cite_section",
    "estimate_section",
    "fakes_section",
    "map_section",
    "promise_section",
    "summary",
    "table_section",
]

_MOST_ROWS = 1000
_PAPER = (
    "J. Acharya, K. Bonawitz, P. Kairouz, D. Ramage and Z. Sun: “Context-Aware Local Differential Privacy”. "
    "International Conference on Machine Learning (ICML), 2020."
)


def summary(survey: Survey, estimate: Estimate) -> str:
    """The most frequent answer in one sentence, and what to beware of."""
    n, k = estimate.reports, survey.context.size
    top = int(most_frequent(estimate, 1)[0])
    low, high = (float(bound[top]) for bound in estimate.interval(0.95))
    places = places_for(estimate)
    share, unbiased = (float(reading[top]) for reading in (estimate.frequencies, estimate.unbiased))
    sentence = (
        f"{format_count(n)} randomised report{'s' * (n != 1)} on {format_count(k)} possible answer{'s' * (k != 1)}; the "
        f"most frequent, “{estimate.labels[top]}”, has about {format_share(share, places)} in the decoded picture. Its "
        f"unbiased estimate is {format_share(unbiased, places)}, with a 95\u00a0% interval from "
        f"{format_share(low, places)} to {format_share(high, places)}."
    )
    return f"""<p class="lead">{escape(sentence)}</p>
{_misfit(estimate)}{_caution(survey, estimate, low, high, places)}{_repeated(survey)}"""


def _misfit(estimate: Estimate) -> str:
    """A warning where the reports cannot have come from the mechanism."""
    fit = estimate.quiet_fit
    if fit.possible:
        return ""
    words = f"{fit.verdict} A broken client, another version or a forger may have sent them: do not rely on what follows."
    return f'<p class="caution" role="note"><strong>These reports do not fit.</strong> {escape(words)}</p>\n'


def _repeated(survey: Survey) -> str:
    """A warning where one person may have sent several of the reports: then they are not as many as they seem."""
    repeat = survey.description.about["repeat"]
    if repeat == "once":
        return ""
    words = (
        f"People may answer every {repeat['every']}, and a device repeats its report while its answer stays the same. "
        "The intervals take all reports to be from different people: over several periods they are too narrow."
    )
    return (
        f'<p class="caution" role="note"><strong>Repeated answers.</strong> {escape(words)}</p>\n'
    )


def _caution(survey: Survey, estimate: Estimate, low: float, high: float, places: int) -> str:
    """A warning where the noise is as large as what is to be seen."""
    few = estimate.reports < survey.minimum_reports
    if low > 0 and high < 3 * low and not few:
        return ""
    half = format_share((high - low) / 2, places).removesuffix("%").strip()
    words = (
        f"Even the most frequent answer is known only to about ± {half} percentage points. Take the order of the "
        "answers below as a hint, not as a result."
    )
    if few:
        words = f"This survey was to give results from {format_count(survey.minimum_reports)} reports on. {words}"
    return f'<p class="caution" role="note"><strong>Few reports.</strong> {escape(words)}</p>\n'


def promise_section(survey: Survey) -> str:
    """What is promised to whom, in sentences, numbers and a picture."""
    sentences = "".join(
        f"<li>{escape(sentence)}</li>" for sentence in promise_sentences(survey.context)
    )
    facts = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in promise_facts(survey.context)
    )
    picture = '<p class="note">There are too many pairs for a picture of each; the table counts them all.</p>'
    if survey.context.size <= LARGEST_HEATMAP:
        caption = (
            "Row against column: how far one report can move the odds. The stronger the colour, the stronger the "
            "promise; ∞ means that nothing is promised for the pair itself."
        )
        picture = _figure("privacy", "Picture of the promise for every pair of answers", caption)
    return f"""<section id="promise" aria-labelledby="promise-title">
<h2 id="promise-title">What is promised to whom</h2>
{_text(survey)}<p>Each report was made from one answer, and randomised. The promise holds against everybody who sees
reports and not the answers, whatever they believed before and whatever else they know:</p>
<ul class="promise">{sentences}</ul>
<p class="note">{escape(_repeat(survey))} The promise does not hide that somebody took part.</p>
<table class="facts names"><caption class="hidden">The promise in numbers</caption><tbody>{facts}</tbody></table>
{picture}
</section>"""


def _text(survey: Survey) -> str:
    """What the survey's author says of it, and whom to ask."""
    said = [part for part in (survey.text, survey.contact and f"Contact: {survey.contact}") if part]
    return "".join(f"<p>{escape(part)}</p>" for part in said)


def _repeat(survey: Survey) -> str:
    promise = survey.promise
    repeat = promise["repeat"] if isinstance(promise, dict) else "once"
    if not isinstance(repeat, dict):
        return "This holds for one report of each person; promises about several reports of one person add up."
    return (
        f"This holds for one report. People may be asked every {repeat['every']}. A device that repeats its report "
        f"while its answer stays the same, for at most {repeat['distinct']} different answers, adds one such promise "
        "per different answer; a fresh report every time adds one per report."
    )


def estimate_section(survey: Survey, estimate: Estimate) -> str:
    """Both readings, side by side, under headings that keep them apart."""
    shown = min(survey.context.size, MOST_BARS)
    which = f"the {shown} most frequent of {format_count(survey.context.size)} answers"
    if shown == survey.context.size:
        which = f"all {shown} answers" if shown > 1 else "the one answer"
    verdict = escape(estimate.quiet_fit.verdict)
    decoded = (
        f"A distribution, shaped by the decoder “{estimate.decoder}” from all reports together: the better guess of "
        "the whole, without an error bar of its own."
    )
    unbiased = (
        "Right on average for each answer by itself, with an interval that covers its true share about 95 times in "
        "100; it may be negative, and is then drawn at the end of its interval."
    )
    return f"""<section id="estimate" aria-labelledby="estimate-title">
<h2 id="estimate-title">What was learned</h2>
<p>From {escape(format_count(estimate.reports))} reports. {verdict} Below are two readings of them,
for {which}, on the same scale. A bar may end outside the interval beside it; neither is wrong.</p>
<div class="readings">
<div><h3>The decoded picture</h3>
<p class="note">{escape(decoded)}</p>
<div class="plot" id="decoded" role="figure" aria-label="Bar chart of the decoded picture: {which}"></div></div>
<div><h3>The unbiased estimate</h3>
<p class="note">{escape(unbiased)}</p>
<div class="plot" id="unbiased" role="figure" aria-label="Unbiased estimates with intervals: {which}"></div></div>
</div>
</section>"""


def map_section(survey: Survey, estimate: Estimate) -> str:
    """The decoded picture of a grid."""
    grid = survey.context.domain
    caption = (
        "Each cell is coloured by the decoded share of people in it, on a logarithmic scale that spans at most four "
        "powers of ten; cells with no colour have a decoded share of nought."
    )
    known = estimate.standard_errors[
        np.isfinite(estimate.standard_errors) & (estimate.standard_errors > 0)
    ]
    if known.size:
        reach = format_share(1.96 * float(np.median(known)), places_for(estimate))
        caption += (
            f" Typically, a single cell below about {reach} cannot be told from an empty one; the intervals in the "
            "table say more."
        )
    if isinstance(grid, GridDomain) and grid.other is not None:
        share = format_share(float(estimate.frequencies[grid.cells]), places_for(estimate))
        caption += f" “{grid.other}”, which is on no map, has {share}."
    return f"""<section id="map-section" aria-labelledby="map-title">
<h2 id="map-title">Where</h2>
{_figure("map", "Map of the decoded share of people per cell", caption)}
</section>"""


def _figure(name: str, spoken: str, caption: str) -> str:
    return (
        f'<figure><div class="plot" id="{name}" role="figure" aria-label="{escape(spoken)}"></div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def table_section(estimate: Estimate) -> str:
    """The most frequent answers as a table that can be sorted and searched."""
    total = len(estimate.labels)
    shown = min(total, _MOST_ROWS)
    extent = (
        f"The {format_count(shown)} most frequent of {format_count(total)} answers."
        if shown < total
        else ""
    )
    printed = "On paper: the first 40 rows." if shown > 40 else ""
    return f"""<section id="numbers" aria-labelledby="numbers-title">
<h2 id="numbers-title">All numbers</h2>
<p>{extent} The intervals are the unbiased estimate's; of many such intervals about one in twenty misses.</p>
<div class="search"><label for="search">Search labels</label><input id="search" type="search" autocomplete="off">
<span id="found" role="status" class="note">{format_count(shown)} of {format_count(shown)} rows</span></div>
<p class="hidden print">{printed}</p>
<div class="scroll" tabindex="0" role="region" aria-labelledby="numbers-title">
<table id="rows"><thead>{_table_head()}</thead>
<tbody>
{_rows(estimate)}
</tbody></table></div>
</section>"""


def _table_head() -> str:
    """Two rows: which reading a column belongs to, and its name with the button that sorts by it."""
    heads = [
        f'<th scope="col"{" class=number" * (name != "label")} aria-sort="{order}">'
        f'<button type="button">{name}</button></th>'
        for name, order in (
            ("label", "none"),
            ("frequency", "descending"),
            ("unbiased", "none"),
            ("low", "none"),
            ("high", "none"),
        )
    ]
    above = (
        '<td></td><th scope="colgroup" class=number>decoded picture</th>'
        '<th scope="colgroup" class=number colspan="3">unbiased estimate, 95\u00a0% interval</th>'
    )
    return f"<tr>{above}</tr><tr>{''.join(heads)}</tr>"


def _rows(estimate: Estimate) -> str:
    low, high = estimate.interval(0.95)
    places = places_for(estimate)
    lines = []
    for x in most_frequent(estimate, _MOST_ROWS).tolist():
        figures = (estimate.frequencies[x], estimate.unbiased[x], low[x], high[x])
        cells = "".join(
            f'<td class=number data-v="{v:.9g}">{format_share(float(v), places)}</td>'
            for v in figures
        )
        lines.append(
            f'<tr><th scope="row" dir="auto">{escape(str(estimate.labels[x]))}</th>{cells}</tr>'
        )
    return "\n".join(lines)


def certificate_section(survey: Survey, certificate: Certificate) -> str:
    """What was checked, and where the promise is closest to being broken."""
    place, named = certificate.tightest, ""
    if place is not None:
        labels = survey.context.domain.labels
        first, second = (escape(str(labels[symbol])) for symbol in (place.x, place.x2))
        named = f"<p>Symbol {place.x} is “{first}”; symbol {place.x2} is “{second}”.</p>"
    return f"""<section id="certificate" aria-labelledby="certificate-title">
<h2 id="certificate-title">The certificate</h2>
<p><span class="certified">✓</span> {escape(str(certificate))}</p>
{named}
<p>The check is exact, in whole numbers, and covers all {format_count(certificate.pairs)} ordered pairs of answers.</p>
<table class="facts names"><tbody>
<tr><th scope="row">Fingerprint of the survey</th><td><code>{escape(survey.fingerprint)}</code></td></tr>
<tr><th scope="row">Fingerprint of the mechanism</th><td><code>{escape(certificate.mechanism)}</code></td></tr>
</tbody></table>
</section>"""


def fakes_section(survey: Survey, estimate: Estimate) -> str:
    """How far forged reports could move the estimate."""
    n = estimate.reports
    weight = format_upper_bound(survey.mechanism.scores.reach.largest)
    found = [estimate.manipulation(m) for m in FAKES if m <= n]
    rows = "".join(
        f'<tr><td class="number">{each.fakes}</td><td class="number">{escape(_points(each.share))}</td>'
        f'<td class="number">{escape(_points(each.total_variation))}</td></tr>'
        for each in found
    )
    return f"""<section id="fakes" aria-labelledby="fakes-title">
<h2 id="fakes-title">How far fake people could move it</h2>
<p>Randomising protects the honest; it also gives a forged report more weight than one person should have. Compared
with what an honest report in its place would have meant on average, one fake report moves the unbiased estimate of any
one answer by at most {weight} people. Among {format_count(n)} reports, in the same comparison, fake ones could move it,
up or down, by this many percentage points:</p>
<table class="facts"><thead><tr><th scope="col" class="number">fake reports</th>
<th scope="col" class="number">one answer, at most</th>
<th scope="col" class="number">all together, at most</th></tr></thead><tbody>{rows}</tbody></table>
<p class="note">All together is the total variation, half the sum over all answers. {escape(_decoded_fakes(found[-1]))}
The check of fit notices one report that is sent many times. It cannot notice people who answer as if they held
something else.</p>
</section>"""


def _decoded_fakes(most: Manipulation) -> str:
    """What is known of the decoded picture: a bound, or nothing."""
    if most.decoded is None:
        return f"For the decoded picture no bound is known (decoder “{most.decoder}”)."
    one = most.fakes == 1
    people = "One fake report moves" if one else f"{most.fakes} fake reports move"
    others = "report in its place" if one else f"{most.fakes} reports in their place"
    return (
        f"{people} the decoded picture by at most {_points(most.decoded)} points in the same measure, compared with "
        f"any other {others}."
    )


def _points(share: float) -> str:
    """Percentage points, rounded up to two digits."""
    return "over 100" if share > 1 else format_upper_bound(100 * share, digits=2)


def cite_section(survey: Survey, estimate: Estimate, heading: str) -> str:
    """What to write below a figure that is taken from the page."""
    named = f"“{heading}” " if heading != survey.name else ""
    words = (
        f"{named}(survey {survey.name}, fingerprint {survey.fingerprint}), {format_count(estimate.reports)} reports, "
        f"decoder “{estimate.decoder}”. Sfumato {version('sfumato')}."
    )
    return f"""<section id="cite" aria-labelledby="cite-title">
<h2 id="cite-title">How to cite</h2>
<p>{escape(words)}</p>
<p>The method: {escape(_PAPER)}</p>
</section>"""
