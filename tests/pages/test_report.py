"""The report page as text: complete, self-contained and escaped."""

import base64
import json
import math
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidContext, MissingExtra, WrongSurvey
from sfumato.foundation.formatting import format_odds_factor
from sfumato.pages import label_page, report_page, save_png
from sfumato.pages.charts import (
    bar_chart,
    grid_map,
    privacy_heatmap,
    whisker_chart,
)
from sfumato.pages.promise import promise_facts, promise_sentences
from sfumato.survey import results_as_json
from support.survey_results import HOSTILE, simulate_results

pytest.importorskip("plotly")

SECTIONS = ["promise", "estimate", "numbers", "certificate", "fakes", "cite"]


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


def test_sections_are_in_order(lunch_page):
    sections = [attrs["id"] for tag, attrs in Page(lunch_page).elements if tag == "section"]
    assert sections == SECTIONS


def test_grids_have_a_map(checkins):
    sections = [attrs["id"] for tag, attrs in Page(page_of(checkins)).elements if tag == "section"]
    assert sections == [*SECTIONS[:2], "map-section", *SECTIONS[2:]]


def test_page_is_below_six_megabytes_and_has_plotly_once(lunch_page):
    assert len(lunch_page.encode()) < 6_000_000
    assert lunch_page.count("plotly.js v") == 1
    assert lunch_page.count("<script") - lunch_page.count("<script>alert") >= 4


def test_page_of_a_large_grid_is_below_six_megabytes(checkins):
    assert len(page_of(checkins).encode()) < 6_000_000


def test_page_links_nowhere(lunch_page, checkins, hostile):
    for source in (lunch_page, page_of(checkins), page_of(hostile)):
        page = Page(source)
        assert page.having("src") == page.having("action") == []
        assert not {tag for tag, _ in page.elements} & {
            "link",
            "iframe",
            "object",
            "embed",
            "img",
            "base",
            "form",
        }
        assert [tag for tag, _ in page.elements if tag == "a"] == [
            "a"
        ]  # the label, which is in the page itself
        styles = re.findall(r"<style>.*?</style>", source, re.DOTALL)
        assert styles
        assert not any("url(" in style or "@import" in style for style in styles)


def test_page_has_no_addresses_outside_plotly(lunch_page):
    from plotly.offline import get_plotlyjs

    assert "http" not in lunch_page.replace(get_plotlyjs(), "").replace("http-equiv", "")


def test_policy_allows_only_inline_content(lunch_page):
    policies = [
        attrs["content"] for _, attrs in Page(lunch_page).elements if attrs.get("http-equiv")
    ]
    inline = "script-src 'unsafe-inline'; style-src 'unsafe-inline'"
    assert policies == [f"default-src 'none'; {inline}; img-src data: blob:"]
    assert "unsafe-eval" not in lunch_page
    assert lunch_page.index("Content-Security-Policy") < lunch_page.index("<style>")


def test_labels_titles_and_names_are_escaped(hostile):
    source = page_of(hostile)
    page = Page(source)
    assert len(page.scripts) == 4  # colours, figures, plotly, ours
    assert "<script>alert" not in source
    assert "<img" not in source
    assert page.text.count(HOSTILE) >= 3  # heading, table, summary …
    json.loads(page.scripts[1])
    assert "<" not in page.scripts[1]


def test_hostile_labels_are_escaped_for_plotly(hostile):
    figure = privacy_heatmap(hostile.survey.context)
    assert "&lt;b&gt;bold&lt;/b&gt;" in figure.layout.xaxis.ticktext
    for figure in (bar_chart(hostile.estimate), whisker_chart(hostile.estimate)):
        texts = (*figure.layout.yaxis.ticktext, *figure.data[0].hovertext)
        assert not any("<a" in text or "<b>bold" in text for text in texts)


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


def test_decoded_estimate_has_no_interval(lunch_page):
    text = " ".join(Page(lunch_page).text.split())
    assert "in the decoded estimate. Its unbiased estimate is" in text
    assert "The decoded estimate A distribution, shaped by the decoder “auto”" in text
    assert "without error bars" in text
    assert "The unbiased estimate Correct on average for each individual answer" in text
    assert "less often" not in text


def test_negative_estimates_are_drawn_at_the_end_of_their_interval(lunch):
    with pytest.warns(sf.estimation.FitWarning):
        assert not estimate_forged(lunch.survey).check_fit().is_possible
    estimate = estimate_forged(lunch.survey)
    assert estimate.unbiased.min() < 0
    whiskers = whisker_chart(estimate).data[0]
    assert min(whiskers.x) == 0
    assert min(*whiskers.error_x.array, *whiskers.error_x.arrayminus) >= 0


def test_single_report_makes_a_page(lunch):
    page = page_of(simulate_results(lunch.survey, [0]))
    assert "Few reports." in page
    assert "NaN" not in Page(page).scripts[1]


def test_table_of_a_large_domain_has_a_thousand_rows(checkins):
    page = page_of(checkins)
    assert "The 1,000 most frequent of 43,750 answers." in page
    rows = re.findall(r'<tr><th scope="row" dir="auto">.*?data-v="([^"]+)"', page)
    frequencies = [float(row) for row in rows]
    assert len(frequencies) == 1000
    assert frequencies == sorted(frequencies, reverse=True)
    assert frequencies[0] == pytest.approx(checkins.estimate.frequencies.max())


def test_packed_map_holds_log_shares(checkins):
    meta = json.loads(Page(page_of(checkins)).scripts[1])["map"]["layout"]["meta"]
    cells = np.frombuffer(base64.b64decode(meta["packed"]), dtype="<f4")
    shares = checkins.estimate.frequencies
    assert np.array_equal(np.isnan(cells), shares <= 0)
    assert np.allclose(10.0 ** cells[shares > 0], shares[shares > 0], rtol=1e-5)
    assert (meta["rows"][1], meta["columns"][1]) == ("25.2", "-129.8")


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


def test_bars_and_whiskers_show_both_readings(lunch):
    (bars,) = bar_chart(lunch.estimate).data
    (whiskers,) = whisker_chart(lunch.estimate).data
    order = np.argsort(-lunch.estimate.frequencies)
    low, high = lunch.estimate.interval(0.95)
    assert bars.x == pytest.approx(lunch.estimate.frequencies[order])
    middle = np.array(whiskers.x)
    assert middle - np.array(whiskers.error_x.arrayminus) == pytest.approx(low[order])
    assert middle + np.array(whiskers.error_x.array) == pytest.approx(high[order])
    assert (bars.name, whiskers.name) == ("decoded estimate", "unbiased estimate, 95% interval")


def test_map_places_cells_and_leaves_out_other():
    grid = sf.GridDomain(0, 2, 10, 13, 1, other="elsewhere")
    figure = grid_map(grid, np.array([0.1, 0, 0.2, 0.3, 0.1, 0.1, 0.2]))
    cells = np.asarray(figure.data[0].z)
    assert cells.shape == (2, 3)
    assert np.isnan(cells[0, 1])
    assert cells[1, 0] == pytest.approx(math.log10(0.3))
    assert (figure.layout.meta["rows"][1], figure.layout.meta["columns"][0]) == ("1", "10")
    assert figure.layout.yaxis.scaleanchor == "x"


def test_huge_maps_merge_cells():
    grid = sf.GridDomain(0, 50, 0, 50, "0.05")
    figure = grid_map(grid, np.full(grid.size, 1 / grid.size))
    cells = np.asarray(figure.data[0].z)
    assert cells.size <= 100_000
    assert (10.0**cells).sum() == pytest.approx(1, rel=1e-4)


def test_empty_map_is_drawn():
    assert np.isnan(np.asarray(grid_map(sf.GridDomain(0, 1, 0, 2, 1), np.zeros(2)).data[0].z)).all()


def test_heatmaps_of_large_contexts_are_rejected():
    with pytest.raises(InvalidContext, match="up to 30 symbols"):
        privacy_heatmap(sf.Uniform(31, 1))


@pytest.mark.parametrize("case", ["lunch", "hostile", "checkins"])
def test_save_png(case, request, tmp_path):
    answers = request.getfixturevalue(case)
    domain = answers.survey.context.domain
    save_png(
        answers.estimate, tmp_path / "a.png", domain if isinstance(domain, sf.GridDomain) else None
    )
    raw = (tmp_path / "a.png").read_bytes()
    assert raw.startswith(b"\x89PNG")
    assert len(raw) > 5000


@pytest.mark.parametrize("missing", ["plotly", "matplotlib"])
def test_missing_extras_name_the_command(missing, lunch, monkeypatch, tmp_path):
    for name in list(sys.modules):
        if name.partition(".")[0] == missing:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[charts\]'"):
        page_of(lunch) if missing == "plotly" else save_png(lunch.estimate, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


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
