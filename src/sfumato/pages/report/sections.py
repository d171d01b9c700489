"""The sections that the report page and the dashboard share."""

import base64
import gzip
import math
from importlib.metadata import version

import numpy as np

from sfumato.charts import CurveChart
from sfumato.domains import GridDomain, H3Domain
from sfumato.estimation import Estimate, Manipulation
from sfumato.estimation.decoded_chart import draw_decoded
from sfumato.estimation.decoders import Unbiased
from sfumato.estimation.estimate_chart import answer_name, draw_bars, draw_map, sensitive_mask
from sfumato.estimation.model_summary import decoder_with_models
from sfumato.estimation.top_answers import (
    MAX_BARS,
    TopAnswers,
    decimal_places,
    most_frequent,
    typical_error,
)
from sfumato.foundation.formatting import (
    format_count,
    format_share,
    format_upper_bound,
    plural,
)
from sfumato.pages.charts import MAX_HEATMAP_SYMBOLS, privacy_heatmap
from sfumato.pages.markup import (
    EMPTY,
    Html,
    chart_html,
    chart_link,
    fact_rows,
    fill,
    fill_each,
    join,
    list_items,
    render,
)
from sfumato.pages.promise import promise_facts, promise_sentences, shorten_label
from sfumato.promises import Certificate
from sfumato.survey import FAKE_COUNTS, RESULT_COLUMNS, Survey, result_rows
from sfumato.tables import formula_note, table_csv

_MAX_TABLE_ROWS = 1000
_MAX_PLAIN_ROWS = 2000  # larger tables are compressed for download
_MAX_MAP_BARS = 10  # below a map
_PRINTED_ROW_COUNT = 40  # style.css hides the others in print
_COLUMN_NAMES = ("frequency", "unbiased", "low", "high")
_CAUTION = '<p class="caution" role="note"><strong>$heading</strong> $text</p>\n'


# --- the summary ----------------------------------------------------------------------------------


def summary(survey: Survey, estimate: Estimate) -> Html:
    """State the most frequent answer with its interval, the basis of it, and any warnings.

    It is the answer with the longest bar in the chart below.
    """
    count = _bar_count(survey)
    top = TopAnswers.from_estimate(estimate, count)
    first = int(np.argmax(top.points_to_draw))
    symbol = int(most_frequent(estimate, count)[first])
    low = float(top.low[first])
    high = float(top.high[first])
    headline = render(
        "report/headline.html",
        label=shorten_label(answer_name(survey.context.domain, symbol), 60),
        share=top.format_share(top.points_to_draw[first]),
        low=top.format_share(low),
        high=top.format_share(high),
        reports=plural(estimate.reports, "report"),
        answers=plural(survey.context.size, "possible answer"),
        promise=_one_line_promise(survey),
    )
    cautions = [
        _misfit_caution(estimate),
        _noise_caution(survey, estimate, low, high),
        _repeat_caution(survey),
    ]
    return join([headline, *cautions])


def _bar_count(survey: Survey) -> int:
    """Return the largest number of bars in the chart."""
    is_map = isinstance(survey.context.domain, GridDomain | H3Domain)
    return _MAX_MAP_BARS if is_map else MAX_BARS


def _one_line_promise(survey: Survey) -> str:
    """Return the sentence that says how far one report can move the odds."""
    sentences = promise_sentences(survey.context)
    for sentence in sentences:
        if "one report" in sentence.lower():
            return sentence
    return sentences[0]


def _misfit_caution(estimate: Estimate) -> Html:
    """Warn if the reports cannot have come from the mechanism."""
    fit = estimate.fit_result
    if fit.is_possible:
        return EMPTY
    text = (
        f"{fit.verdict} A broken client, a different version or a forger may have sent them. Do "
        "not rely on what follows."
    )
    return fill(_CAUTION, heading="These reports do not fit the mechanism.", text=text)


def _noise_caution(survey: Survey, estimate: Estimate, low: float, high: float) -> Html:
    """Warn if the interval of the most frequent answer is wide, or if there are too few reports.

    ``low`` and ``high`` are the ends of that interval.
    """
    has_too_few_reports = estimate.reports < survey.minimum_reports
    is_narrow = low > 0 and high < 3 * low
    if is_narrow and not has_too_few_reports:
        return EMPTY
    half_width = format_share((high - low) / 2, decimal_places(estimate.standard_errors))
    points_text = half_width.removesuffix("%").strip()
    text = (
        f"Even the most frequent answer is known only to within about {points_text} percentage "
        "points. Treat the order of the answers below as a hint, not as a result."
    )
    if has_too_few_reports:
        minimum_text = format_count(survey.minimum_reports)
        text = f"This survey should not show results for fewer than {minimum_text} reports. {text}"
    return fill(_CAUTION, heading="Few reports.", text=text)


def _repeat_caution(survey: Survey) -> Html:
    """Warn if one person may have sent several of the reports."""
    repeat = survey.description.about["repeat"]
    if repeat == "once":
        return EMPTY
    text = (
        f"People may answer every {repeat['every']}, and a device repeats its report while its "
        "answer stays the same. The intervals assume that all reports come from different people: "
        "over several periods they are too narrow."
    )
    return fill(_CAUTION, heading="Repeated answers.", text=text)


# --- the promise ----------------------------------------------------------------------------------


def promise_section(survey: Survey) -> Html:
    """Show what is promised to whom, in sentences, numbers and a figure."""
    return render(
        "report/promise.html",
        text=_author_text(survey),
        sentences=list_items(promise_sentences(survey.context)),
        repeat=_repeat_sentence(survey),
        facts=fact_rows(promise_facts(survey.context)),
        figure=_render_promise_figure(survey),
    )


def _author_text(survey: Survey) -> Html:
    """Return the author's description of the survey, and the contact."""
    paragraphs = [survey.text] if survey.text else []
    if survey.contact:
        paragraphs.append(f"Contact: {survey.contact}")
    return fill_each("<p>$text</p>", text=paragraphs)


def _repeat_sentence(survey: Survey) -> str:
    repeat = survey.description.about["repeat"]
    if repeat == "once":
        return (
            "This holds for one report per person. If a person sends several, the ε values of "
            "these reports add up."
        )
    return (
        f"This holds for one report. People may be asked every {repeat['every']}. If a device "
        "repeats its report while its answer stays the same, with at most "
        f"{repeat['distinct']} different answers, then ε adds up once per different answer. If it "
        "sends a fresh report every time, ε adds up once per report."
    )


def _render_promise_figure(survey: Survey) -> Html:
    if survey.context.size > MAX_HEATMAP_SYMBOLS:
        return Html(
            '<p class="note">There are too many pairs to draw. The table counts them all.</p>'
        )
    caption = (
        "How far one report can move the odds of a row against a column. The stronger the colour, "
        "the stronger the promise; ∞ means that nothing is promised for the pair itself."
    )
    chart = chart_html(privacy_heatmap(survey.context))
    return render("report/figure.html", name="privacy", chart=chart, caption=caption)


# --- the estimate ---------------------------------------------------------------------------------


def estimate_section(survey: Survey, estimate: Estimate) -> Html:
    """Show the shares of the most frequent answers, each with its interval in the same mark."""
    count = _bar_count(survey)
    bars = draw_bars(estimate, survey.context, estimate.interval(0.95), 0.95, count)
    return render(
        "report/estimate.html",
        chart=chart_html(bars),
        key=_render_key(survey),
        answers=_describe_answers(survey.context.size, count),
        verdict=estimate.fit_result.verdict,
        numbers=_render_download(estimate),
        chart_file=chart_link(bars, "shares"),
        note=_render_formula_note(estimate),
    )


def _describe_answers(size: int, count: int) -> str:
    if size == 1:
        return "the one answer"
    if size <= count:
        return f"all {size} answers"
    return f"the {count} most frequent of {format_count(size)} answers"


def _render_key(survey: Survey) -> Html:
    """Explain the colours, if some answers are sensitive."""
    if not sensitive_mask(survey.context).any():
        return EMPTY
    return Html(
        '<span class="key sensitive">sensitive answers</span> '
        '<span class="key">other answers</span>'
    )


def _render_download(estimate: Estimate) -> Html:
    """Return a link that holds all numbers as CSV, compressed if there are many."""
    is_large = len(estimate.labels) >= _MAX_PLAIN_ROWS
    rows = []
    for label, *numbers in result_rows(estimate):
        if is_large:
            rows.append((label, *_drop_noise(numbers)))
        else:
            rows.append((label, *(float(f"{number:.9g}") for number in numbers)))
    content = table_csv(RESULT_COLUMNS, rows).encode("utf-8")
    name = "estimate.csv"
    media_type = "text/csv"
    if is_large:
        content = gzip.compress(content, mtime=0)
        name = "estimate.csv.gz"
        media_type = "application/gzip"
    data = base64.b64encode(content).decode("ascii")
    return fill(
        '<a download="$name" href="data:$media_type;base64,$data">Download all numbers</a>',
        name=name,
        media_type=media_type,
        data=data,
    )


def _drop_noise(numbers: list[float]) -> list[float]:
    """Round the numbers of a row to a hundredth of its standard error: the other digits are noise.

    The numbers are those of ``RESULT_COLUMNS`` after the label. A large file is half as long.
    """
    standard_error = numbers[2]
    if not 0 < standard_error < math.inf:
        return numbers
    places = 2 - math.floor(math.log10(standard_error))
    return [round(number, places) for number in numbers]


def _render_formula_note(estimate: Estimate) -> Html:
    note = formula_note(estimate.labels)
    return fill('<p class="note">$note</p>', note=note) if note else EMPTY


def both_estimates_section(survey: Survey, estimate: Estimate) -> Html:
    """Show the decoded and the unbiased estimate together, unless they are the same."""
    if estimate.decoder == Unbiased.name:
        return EMPTY
    count = _bar_count(survey)
    bounds = estimate.interval(0.95)
    chart = draw_decoded(estimate, survey.context, bounds, 0.95, count)
    marks = (
        "A bar is the unbiased estimate, solid up to the low end of its 95% interval; the ring is "
        "the decoded estimate."
    )
    if isinstance(chart, CurveChart):
        marks = (
            "A dot is the unbiased estimate, and the band its 95% interval; the line is the "
            "decoded estimate."
        )
        if survey.context.domain.cells.size < survey.context.size:
            marks += " Answers that have no place in the order are left out."
    return render(
        "report/decoded.html",
        decoder=estimate.decoder,
        models=_describe_models(estimate),
        chart=chart_html(chart),
        marks=marks,
        chart_file=chart_link(chart, "decoded"),
    )


def _describe_models(estimate: Estimate) -> str:
    """Say which models carried the decoded estimate, if its decoder averages models."""
    summary = estimate.model_summary
    if decoder_with_models(estimate.decoder, summary) == estimate.decoder:
        return ""
    if "%" not in summary:
        return f"The model behind it: {summary}."
    return f"The models behind it, weighted by the evidence in the reports: {summary}."


def map_section(survey: Survey, estimate: Estimate) -> Html:
    """Show the estimate on a map, or return no markup if the answers are not places."""
    domain = survey.context.domain
    if not isinstance(domain, GridDomain | H3Domain):
        return EMPTY
    decimals = decimal_places(estimate.standard_errors)
    caption = (
        "The colour of a cell shows its share of people on a logarithmic scale. The shares are the "
        "decoded estimate, which suits the whole map. A cell whose 95% interval holds zero may be "
        "empty, whatever its estimate. Up to one empty cell in twenty is coloured by chance."
    )
    error = typical_error(estimate.standard_errors)
    if error:
        half_width = format_share(1.96 * error, decimals)
        caption += f" A typical interval reaches {half_width} to either side."
    if domain.other is not None:
        share = format_share(float(estimate.frequencies[domain.other_symbol]), decimals)
        caption += f" “{domain.other}”, which is not on the map, has {share}."
    chart = draw_map(estimate, domain, estimate.interval(0.95))
    figure = render(
        "report/figure.html",
        name="map",
        chart=chart_html(chart),
        caption=f"{caption} Outlines: Natural Earth.",
    )
    return render(
        "report/map.html", figure=figure, chart_file=chart_link(chart, "map", "Download the map")
    )


def table_section(estimate: Estimate) -> Html:
    """Show the most frequent answers in a sortable, searchable table."""
    answer_count = len(estimate.labels)
    shown_count = format_count(min(answer_count, _MAX_TABLE_ROWS))
    extent = ""
    if answer_count > _MAX_TABLE_ROWS:
        extent = f"The {shown_count} most frequent of {format_count(answer_count)} answers."
    print_note = ""
    if answer_count > _PRINTED_ROW_COUNT:
        print_note = f"Only the first {_PRINTED_ROW_COUNT} rows are printed."
    return render(
        "report/table.html",
        extent=extent,
        shown=shown_count,
        print_note=print_note,
        decoder=estimate.decoder,
        models=_describe_models(estimate),
        rows=_render_rows(estimate),
    )


def _render_rows(estimate: Estimate) -> Html:
    """Return one row per answer. ``data-v`` is the number that the script sorts by."""
    answers = TopAnswers.from_estimate(estimate, _MAX_TABLE_ROWS)
    columns = (answers.decoded, answers.unbiased, answers.low, answers.high)
    cell = '<td class="number" data-v="$exact" data-name="$name">$share</td>'
    row = '<tr><th scope="row" dir="auto">$label</th>$cells</tr>'
    rows = []
    for label, *numbers in zip(answers.labels, *columns, strict=True):
        exact = [f"{number:.9g}" for number in numbers]
        shares = map(answers.format_share, numbers)
        cells = fill_each(cell, exact=exact, name=_COLUMN_NAMES, share=shares)
        rows.append(fill(row, label=label, cells=cells))
    return join(rows, "\n")


# --- how reliable it is ---------------------------------------------------------------------------


def certificate_section(survey: Survey, certificate: Certificate) -> Html:
    """Show what was compared, what follows by proof, and where the promise is tightest."""
    return render(
        "report/certificate.html",
        certificate=certificate,
        scope=_describe_check(certificate),
        survey=survey.fingerprint,
        mechanism=certificate.mechanism,
    )


def _describe_check(certificate: Certificate) -> str:
    """Say in plain words what was compared, and what follows by proof."""
    pairs = plural(certificate.pair_count, "ordered pair")
    if certificate.method != "structural":
        return (
            f"Every possible report was compared for {pairs} of answers, in the integers from "
            "which devices draw. Nothing was sampled or rounded."
        )
    answers = plural(certificate.inputs, "answer")
    choice = ", chosen at random," if certificate.rows < certificate.inputs else ""
    return (
        f"The probabilities of {format_count(certificate.rows)} of {answers}{choice} were compared "
        "with the structure that the mechanism claims, in the integers from which devices draw. "
        f"The promise for {pairs} of answers was not compared pair by pair: it follows from that "
        "structure by proof."
    )


def fakes_section(survey: Survey, estimate: Estimate) -> Html:
    """Show how far forged reports could move the estimate."""
    manipulations = [estimate.manipulation(m) for m in FAKE_COUNTS if m <= estimate.reports]
    template = (
        '<tr><td class="number">$fakes</td><td class="number">$share</td>'
        '<td class="number">$total</td></tr>'
    )
    rows = []
    for manipulation in manipulations:
        row = fill(
            template,
            fakes=manipulation.fake_count,
            share=_format_points(manipulation.largest_shift),
            total=_format_points(manipulation.total_variation),
        )
        rows.append(row)
    return render(
        "report/fakes.html",
        weight=format_upper_bound(survey.mechanism.scores.reach.max_shift),
        reports=format_count(estimate.reports),
        rows=join(rows),
        decoded=_describe_decoded_bound(manipulations[-1]),
    )


def _describe_decoded_bound(manipulation: Manipulation) -> str:
    """State the bound on the decoded estimate, or that none is known."""
    if manipulation.decoded is None:
        return f"No bound is known for the decoded estimate (decoder “{manipulation.decoder}”)."
    subject = "One fake report moves"
    replacement = "report in its place"
    fake_count = manipulation.fake_count
    if fake_count > 1:
        subject = f"{fake_count} fake reports move"
        replacement = f"{fake_count} reports in their place"
    return (
        f"{subject} the decoded estimate by at most {_format_points(manipulation.decoded)} points "
        f"in the same measure, compared with any other {replacement}."
    )


def _format_points(share: float) -> str:
    """Format a share in percentage points, rounded up to two significant digits, or "over 100"."""
    return "over 100" if share > 1 else format_upper_bound(100 * share, digits=2)


def citation_section(survey: Survey, estimate: Estimate, heading: str) -> Html:
    """Show how to cite a number from the page."""
    title = f"“{heading}” " if heading != survey.name else ""
    citation = (
        f"{title}(survey {survey.name}, fingerprint {survey.fingerprint}), "
        f"{format_count(estimate.reports)} reports, decoder “{estimate.decoder}”. "
        f"Sfumato {version('sfumato')}."
    )
    return render("report/citation.html", citation=citation)
