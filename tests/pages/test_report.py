"""The report page as text: complete, self-contained and escaped."""

import base64
import gzip
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidContext, WrongSurvey
from sfumato.foundation.formatting import format_odds_factor
from sfumato.pages import label_page, report_page
from sfumato.pages.charts import privacy_heatmap, reports_over_time
from sfumato.pages.promise import promise_facts, promise_sentences
from sfumato.survey import results_as_json
from support.survey_results import HOSTILE, simulate_results

SECTIONS = ["estimate", "decoded", "numbers", "promise", "certificate", "fakes", "cite"]


class Page(HTMLParser):
    """Parse a page into elements, scripts and text."""

    def __init__(self, source):
        super().__init__()
        self.elements = []
        self.text = ""
        self.scripts = []
        self._open = ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        if self._open == "script":
            self.scripts[-1] += data
        elif self._open != "style":
            self.text += data

    def having(self, name):
        return [attrs[name] for _, attrs in self.elements if name in attrs]


def page_of(case, **options):
    return report_page(case.survey, case.estimate, case.certificate, **options)


@pytest.fixture(scope="module")
def lunch_page(lunch):
    return page_of(lunch)


def section_ids(source):
    return [attrs["id"] for tag, attrs in Page(source).elements if tag in ("section", "details")]


def test_the_result_comes_first_and_the_rest_is_folded(lunch, lunch_page):
    assert section_ids(lunch_page) == SECTIONS
    elements = Page(lunch_page).elements
    assert [attrs["id"] for tag, attrs in elements if tag == "details"] == SECTIONS[1:]
    opening = lunch_page[: lunch_page.index("<main>")]
    row = lunch.estimate["park"]
    for share in (row.unbiased, row.low, row.high):
        assert f"{100 * share:.1f}%" in opening
    assert "20,000 reports" in opening
    assert "One report can move the odds of a sensitive answer" in opening


def test_headline_is_the_answer_with_the_longest_bar():
    """Decoding can change the order of answers in blocks of different sizes."""
    context = sf.Blocks([0, 0, 1, 1, 1, 1, 1, 1], 1, domain=list("abcdefgh"))
    people = np.repeat(np.arange(8), [37, 75, 75, 20, 20, 20, 20, 20])
    result = simulate_results(sf.Survey("lunch", context), people)
    assert result.estimate.frequencies.argmax() == 1
    assert result.estimate.unbiased.argmax() == 2
    page = report_page(result.survey, result.estimate, result.certificate)
    assert re.search('<p class="headline"><b dir="auto">(.)</b>', page)[1] == "c"


def test_maps_come_before_the_bars(checkins):
    assert section_ids(page_of(checkins)) == ["map-section", *SECTIONS]


def test_pages_are_small(lunch_page, checkins):
    assert len(lunch_page.encode()) < 150_000
    assert len(page_of(checkins).encode()) < 2_400_000


@pytest.mark.parametrize("case", ["lunch", "checkins"])
def test_numbers_can_be_downloaded(case, request):
    answers = request.getfixturevalue(case)
    pattern = r'download="(estimate[^"]+)" href="data:[^;]+;base64,([^"]+)"'
    ((name, packed),) = re.findall(pattern, page_of(answers))
    content = base64.b64decode(packed)
    if name.endswith(".gz"):
        content = gzip.decompress(content)
    header, *rows = content.decode().splitlines()
    assert header == "label,frequency,unbiased,standard_error,low,high"
    assert len(rows) == answers.survey.context.size
    numbers = np.array([list(map(float, row.rsplit(",", 5)[1:])) for row in rows]).T
    estimate = answers.estimate
    expected = (estimate.frequencies, estimate.unbiased, estimate.standard_errors)
    for column, values in zip(numbers, (*expected, *estimate.interval()), strict=True):
        assert (np.abs(column - values) <= estimate.standard_errors / 100).all()


@pytest.mark.parametrize(
    ("case", "names"),
    [("lunch", ["shares", "decoded"]), ("checkins", ["map", "shares", "decoded"])],
)
def test_charts_can_be_downloaded_as_pictures(case, names, request):
    pattern = r'download="([^"]+)\.svg" href="data:image/svg\+xml;base64,([^"]+)"'
    found = re.findall(pattern, page_of(request.getfixturevalue(case)))
    assert [name for name, _ in found] == names
    for _, packed in found:
        svg = base64.b64decode(packed).decode()
        assert svg.startswith("<svg ")
        assert "var(" not in svg  # no colour depends on the page


def test_page_links_nowhere(lunch_page, checkins, hostile):
    for source, link_count in ((lunch_page, 5), (page_of(checkins), 6), (page_of(hostile), 5)):
        page = Page(source)
        assert page.having("src") == page.having("action") == []
        assert not {tag for tag, _ in page.elements} & {
            "iframe",
            "object",
            "embed",
            "img",
            "base",
            "form",
        }
        # The icon, the label, the numbers and the charts are in the page itself.
        links = [attrs["href"] for tag, attrs in page.elements if tag in ("a", "link")]
        assert len(links) == link_count
        assert all(link.startswith("data:") for link in links)
        styles = re.findall(r"<style>.*?</style>", source, re.DOTALL)
        assert styles
        assert not any("url(" in style or "@import" in style for style in styles)


def test_page_has_no_addresses(lunch_page):
    namespace = 'xmlns="http://www.w3.org/2000/svg"'
    assert "http" not in lunch_page.replace(namespace, "").replace("http-equiv", "")


def test_policy_allows_only_inline_content(lunch_page):
    policies = [
        attrs["content"] for _, attrs in Page(lunch_page).elements if attrs.get("http-equiv")
    ]
    inline = "script-src 'unsafe-inline'; style-src 'unsafe-inline'"
    assert policies == [
        f"default-src 'none'; {inline}; img-src data:; base-uri 'none'; form-action 'none'"
    ]
    assert "unsafe-eval" not in lunch_page
    assert lunch_page.index("Content-Security-Policy") < lunch_page.index("<style>")


def test_labels_titles_and_names_are_escaped(hostile):
    source = page_of(hostile)
    page = Page(source)
    assert len(page.scripts) == 1
    assert "<script>alert" not in source
    assert "<img" not in source
    assert page.text.count(HOSTILE) >= 3  # heading, table, summary …


def test_title_replaces_the_survey_title(lunch):
    page = page_of(lunch, title="Lunch & more")
    assert "<title>Lunch &amp; more</title>" in page
    assert '<h1 dir="auto">Lunch &amp; more</h1>' in page


def test_page_is_deterministic(lunch, lunch_page):
    assert page_of(lunch) == lunch_page


def test_page_shows_certificate_and_fingerprints(lunch, lunch_page):
    text = Page(lunch_page).text
    assert str(lunch.certificate) in text
    assert text.count(lunch.survey.fingerprint) == 2
    assert lunch.certificate.mechanism in text


def test_manipulation_bounds_are_rounded_up(lunch, lunch_page):
    section = lunch_page[lunch_page.index('id="fakes"') : lunch_page.index('id="cite"')]
    bounds = [float(cell) for cell in re.findall(r'<td class="number">([\d.,]+)</td>', section)]
    assert bounds[::3] == [1, 10, 100]
    reach = lunch.survey.mechanism.scores.reach
    for per_fake, column in (
        (reach.max_shift, bounds[1::3]),
        (reach.total_variation, bounds[2::3]),
    ):
        for m, points in zip((1, 10, 100), column, strict=True):
            exact = 100 * per_fake * m / 20_000
            assert exact * (1 - 1e-9) <= points <= exact * 1.11


def test_decoded_manipulation_bound_is_shown_if_known(lunch):
    tally = sf.Tally(lunch.estimate._tally.counts, lunch.survey.fingerprint)
    known = lunch.survey.estimate(tally, decoder="projection")
    text = " ".join(Page(report_page(lunch.survey, known, lunch.certificate)).text.split())
    assert re.search(
        r"100 fake reports move the decoded estimate by at most [\d.]+ points in the same measure, "
        r"compared with any other 100 reports in their place\.",
        text,
    )
    honest = "Compared with the average effect of an honest report in its place"
    assert f"{honest}, one fake report moves" in text
    assert "No bound is known" not in text
    unknown = Page(
        report_page(lunch.survey, lunch.survey.estimate(tally, decoder="auto"), lunch.certificate)
    ).text
    assert "No bound is known for the decoded estimate (decoder “auto”)." in unknown


def test_few_reports_raise_a_caution(lunch, lunch_page):
    few = page_of(simulate_results(lunch.survey, [0, 1, 2, 0, 1, 3, 4, 0]))
    assert "Few reports." in few
    assert "Few reports." not in lunch_page


def estimate_forged(survey):
    """Return an estimate from forged reports, spread evenly."""
    counts = np.full(survey.mechanism.outputs, 3000)
    return survey.estimate(sf.Tally(counts, survey.fingerprint))


def test_misfitting_reports_raise_a_caution(lunch, lunch_page):
    page = report_page(lunch.survey, estimate_forged(lunch.survey), lunch.certificate)
    text = Page(page).text
    verdict = "The reports cannot have come from this mechanism"
    assert f"These reports do not fit the mechanism. {verdict}" in text
    assert text.index("do not fit") < text.index("What is promised")
    assert "These reports do not fit the mechanism." not in lunch_page
    assert "The reports fit the mechanism." in Page(lunch_page).text


def test_repeated_answers_raise_a_caution(lunch_page):
    """One device may send several reports over several periods."""
    context = sf.Uniform(["no", "yes"], 1)
    survey = sf.Survey("weekly", context, repeat={"every": "week", "distinct": 2})
    case = simulate_results(survey, np.arange(1000) % 2)
    text = " ".join(Page(page_of(case)).text.split())
    assert "Repeated answers. People may answer every week" in text
    assert "Repeated answers." not in lunch_page
    assert results_as_json(survey, case.estimate)["repeated"] is True


def test_page_embeds_the_privacy_label(lunch, lunch_page):
    (packed,) = re.findall(r'href="data:text/html;charset=utf-8;base64,([^"]+)"', lunch_page)
    assert base64.b64decode(packed).decode("utf-8") == label_page(lunch.survey)


def test_both_estimates_are_explained(lunch_page):
    text = " ".join(Page(lunch_page).text.split())
    assert "The decoded estimate (decoder “auto”) is a distribution" in text
    assert "The unbiased estimate is right on average for each single answer" in text


@pytest.fixture(scope="module")
def ages():
    """A survey with 100 labels in an order."""
    people = np.random.default_rng(1).binomial(99, 0.4, 5000)
    survey = sf.Survey("ages", sf.Uniform(sf.IntegerDomain(100, start=18), 1), title="Your age?")
    return simulate_results(survey, people)


def decoded_part(source):
    return source[source.index('<details id="decoded"') : source.index('<details id="numbers"')]


def test_models_of_the_estimate_are_named(ages):
    text = " ".join(Page(page_of(ages)).text.split())
    summary = ages.estimate.model_summary
    assert "smooth curve" in summary
    assert text.count(f": {summary}. ") == 2  # above the chart, and above the numbers
    projected = sf.estimate(
        ages.survey,
        sf.Tally(ages.estimate._tally.counts, ages.survey.fingerprint),
        decoder="projection",
    )
    page = report_page(ages.survey, projected, ages.certificate)
    assert "behind it" not in page


def test_decoded_and_unbiased_estimates_are_drawn_together(ages, lunch_page, checkins):
    curve = decoded_part(page_of(ages))
    assert "share of each answer" in curve
    assert curve.count("<circle") == 2 * 101  # two layouts: a dot for each label, and the legend's
    assert "A dot is the unbiased estimate" in curve
    assert "no place in the order" not in curve
    bars = decoded_part(lunch_page)
    assert bars.count("<circle") == 2 * 6
    assert "the ring is the decoded estimate" in bars
    assert decoded_part(page_of(checkins)).count("<circle") == 2 * 11
    for part in (curve, bars):
        text = " ".join(Page(part).text.split())
        assert (
            "The intervals belong to the unbiased estimate; the decoded estimate has none" in text
        )


def test_answers_outside_the_order_are_mentioned():
    labels = [*range(100), "no answer"]
    survey = sf.Survey("scores", sf.Uniform(sf.Domain(labels), 3))
    page = page_of(simulate_results(survey, np.arange(101).repeat(20)))
    assert "Answers that have no place in the order are left out." in decoded_part(page)


def test_unbiased_estimates_are_not_drawn_twice(lunch):
    tally = sf.Tally(lunch.estimate._tally.counts, lunch.survey.fingerprint)
    unbiased = lunch.survey.estimate(tally, decoder="unbiased")
    assert 'id="decoded"' not in report_page(lunch.survey, unbiased, lunch.certificate)


def test_pages_of_ordered_answers_are_small(ages):
    assert len(decoded_part(page_of(ages)).encode()) < 120_000


def test_negative_estimates_are_drawn_at_the_end_of_their_interval(lunch):
    with pytest.warns(sf.estimation.FitWarning):
        assert not estimate_forged(lunch.survey).check_fit().is_possible
    estimate = estimate_forged(lunch.survey)
    assert estimate.unbiased.min() < 0
    bars = estimate.plot().bars
    assert min(bar.value for bar in bars) == 0
    assert all(bar.low <= bar.value <= bar.high for bar in bars)


def test_single_report_makes_a_page(lunch):
    page = page_of(simulate_results(lunch.survey, [0]))
    assert "Few reports." in page
    assert "nan" not in Page(page).text


def test_table_of_a_large_domain_has_a_thousand_rows(checkins):
    page = page_of(checkins)
    assert "The 1,000 most frequent of 43,750 answers." in page
    rows = re.findall(r'<tr><th scope="row" dir="auto">.*?data-v="([^"]+)"', page)
    frequencies = [float(row) for row in rows]
    assert len(frequencies) == 1000
    assert frequencies == sorted(frequencies, reverse=True)
    assert frequencies[0] == pytest.approx(checkins.estimate.frequencies.max())


def test_map_holds_the_numbers_of_each_cell(checkins):
    page = Page(page_of(checkins))
    (attrs,) = [attrs for _, attrs in page.elements if "data-grid" in attrs]
    grid = json.loads(attrs["data-grid"])
    assert (grid["rows"], grid["columns"], grid["south"], grid["west"]) == (125, 350, 25, -130)
    numbers = np.frombuffer(base64.b64decode(attrs["data-cells"]), dtype="<f4").reshape(3, -1)
    expected = (checkins.estimate.frequencies, *checkins.estimate.interval())
    assert np.allclose(numbers, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("lunch", "Every possible report was compared for 20 ordered pairs of answers"),
        ("checkins", "it follows from that structure by proof"),
    ],
)
def test_certificate_says_what_was_compared(case, words, request):
    answers = request.getfixturevalue(case)
    text = " ".join(Page(page_of(answers)).text.split())
    assert words in text
    if case == "checkins":
        assert (
            "The probabilities of 1,000 of 43,750 answers, chosen at random, were compared with"
            in text
        )
        assert "covers all" not in text


def test_certificates_and_estimates_of_other_surveys_are_rejected(lunch, hostile):
    with pytest.raises(WrongSurvey, match="different mechanism"):
        report_page(lunch.survey, lunch.estimate, hostile.certificate)
    with pytest.raises(WrongSurvey, match="different survey"):
        report_page(lunch.survey, hostile.estimate, lunch.certificate)
    weaker = sf.HighLow(lunch.survey.context.domain, ["clinic", "bar"], 2)
    with pytest.raises(WrongSurvey, match="different promise"):
        report_page(lunch.survey, lunch.estimate, sf.certify(lunch.survey.mechanism, weaker))


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon", [1e-9, 0.001, 0.1, 0.5, math.log(2), 1, 2, 4.7, 5, 10, 13.9, 40]
)
def test_odds_factors_round_up(epsilon):
    text = format_odds_factor(epsilon)
    number, _, power = text.replace(",", "").partition(" × 10^")
    factor = float(number) * 10.0 ** int(power or 0)
    assert math.exp(epsilon) * (1 - 1e-9) <= factor
    assert factor - 1 <= (math.exp(epsilon) - 1) * 1.11


def sentences_of(context):
    return " ".join(promise_sentences(context))


def test_high_low_sentences():
    text = sentences_of(sf.HighLow(["a", "b", "c"], ["b"], 1))
    assert "1 of 3 answers is sensitive: “b”." in text
    assert "at most 2.72:1" in text
    assert "For the other answers nothing is promised" in text
    assert "nothing is promised" not in sentences_of(sf.HighLow(2, [0, 1], 1))


def test_blocks_sentences():
    text = sentences_of(sf.Blocks([0, 0, 1], 1))
    assert "Between blocks nothing is promised" in text
    assert "One block has a single answer, for which nothing is promised at all." in text


def test_metric_sentences_name_the_extremes():
    text = sentences_of(sf.Metric([[0, 1, 3], [1, 0, 1], [3, 1, 0]], 0.5, domain=["x", "y", "z"]))
    assert "“x” against “y” from 1:1 to at most 1.65:1" in text
    assert "“x” against “z” from 1:1 to at most 4.49:1" in text


def test_matrix_sentences_count_pairs_without_a_promise():
    context = sf.PrivacyMatrix([[0, 1, "inf"], [2, 0, 1], [1, 3, 0]])
    assert "For 1 of 6 ordered pairs nothing is promised directly." in sentences_of(context)
    assert dict(promise_facts(context))["Ordered pairs with a promise"].startswith("5 of 6")


@pytest.mark.parametrize(
    "context",
    [sf.Uniform(3, math.inf), sf.HighLow(3, [], 1), sf.Blocks([0, 1, 2], 1), sf.Uniform(1, 1)],
)
def test_sentences_say_if_nothing_is_promised(context):
    assert promise_sentences(context) == ["Nothing is promised: a report may reveal the answer."]
    assert ("Strongest promise", "none: nothing is promised") in promise_facts(context)


def test_zero_epsilon_moves_no_odds():
    text = sentences_of(sf.Metric([[0, 0, 1], [0, 0, 1], [1, 1, 0]]))
    assert "one report cannot move the odds of “0” against “1” at all (ε = 0)" in text


# --- figures --------------------------------------------------------------------------------------


def test_bars_show_the_unbiased_estimate_and_its_interval(lunch):
    bars = lunch.estimate.plot().bars
    assert [bar.label for bar in bars] == ["park", "café", "office", "clinic", "bar"]
    for bar in bars:
        row = lunch.estimate[bar.label]
        assert (bar.value, bar.low, bar.high) == (row.unbiased, row.low, row.high)
        assert bar.is_accented == (bar.label in ("clinic", "bar"))


def test_heatmap_shows_the_promise_of_every_pair(lunch):
    chart = privacy_heatmap(lunch.survey.context)
    E = lunch.survey.context.matrix()
    for x, row in enumerate(chart.squares):
        for x2, square in enumerate(row):
            assert (square.strength is None) == (x == x2 or math.isinf(E[x, x2]))
    clinic = chart.labels.index("clinic")
    assert "at most 2.72:1 (ε = 1)" in chart.squares[clinic][0].note
    assert chart.squares[clinic][0].text == "1"


def test_stronger_promises_have_stronger_colours():
    weak, strong = (privacy_heatmap(sf.Uniform(2, e)).squares[0][1].strength for e in (3, 0.5))
    assert strong > weak


def test_heatmaps_of_large_contexts_are_rejected():
    with pytest.raises(InvalidContext, match="up to 30 symbols"):
        privacy_heatmap(sf.Uniform(31, 1))


@pytest.mark.parametrize(("hours", "duration"), [(48, 3600), (24 * 9, 86_400)])
def test_reports_are_added_up_by_hour_or_day(hours, duration):
    days = [(f"2026-11-{1 + hour // 24:02}T{hour % 24:02}", 10) for hour in range(hours)]
    chart = reports_over_time(days)
    assert chart.duration == duration
    assert sum(column.value for column in chart.columns) == 10 * hours
    assert chart.columns[1].start - chart.columns[0].start == duration


# --- notebooks ------------------------------------------------------------------------------------


def test_notebook_reprs_are_escaped(hostile):
    faces = (
        hostile.survey.context,
        hostile.survey.mechanism,
        hostile.estimate,
        hostile.certificate,
    )
    for face in faces:
        page = Page(face._repr_html_())
        assert not {tag for tag, _ in page.elements} & {"script", "img", "a", "link"}
        assert page.having("href") == page.having("src") == []
    context, mechanism, estimate, certificate = (Page(face._repr_html_()).text for face in faces)
    assert "4 symbols, smallest ε = 1" in context
    assert HOSTILE in context
    assert HOSTILE in estimate
    assert hostile.survey.mechanism.fingerprint in mechanism
    assert str(hostile.certificate) in certificate


def test_notebook_repr_of_a_large_context_is_one_line(checkins):
    assert "<table>" not in checkins.survey.context._repr_html_()
    assert "the 20 most frequent of 43,750" in checkins.estimate._repr_html_()


def test_notebook_repr_says_if_nothing_is_promised():
    html = sf.HighLow(["a", "b"], [], 1)._repr_html_()
    assert "nothing is promised" in html
    assert "∞" in html
