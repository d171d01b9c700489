"""The page and the picture of a design."""

import importlib.util
import math
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.charts.chart import svg_to_png
from sfumato.charts.palette import FIXED
from sfumato.designer.design import Design
from sfumato.designer.exponential import exponential_response
from sfumato.errors import InvalidContext, MissingExtra
from sfumato.foundation.formatting import format_gap
from sfumato.mechanisms import TableResponse
from sfumato.pages.design import (
    Alternative,
    alternatives_to,
    bound_sentence,
    design_facts,
    design_page,
    name_of_closed_form,
)
from sfumato.pages.design.chart import (
    compute_used_promise,
    design_chart,
    design_png,
    order_reports,
    require_drawable,
)
from support.browser import Browser, accessibility_violations, external_requests
from support.survey_results import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"
STOPS = ["park", "café", "clinic", "bar"]
LINE = sf.PrivacyMatrix(
    [[0, 1, 2, "inf"], [1, 0, 1, "inf"], [2, 1, 0, "inf"], ["0.5", "0.5", "0.5", 0]], domain=STOPS
)


def make_design(context, mechanism, **changes):
    """Return a design with this mechanism, as if a search had found it."""
    k = context.size
    prior = np.full(k, 1 / k)
    risk = mechanism.scores.risk(prior)
    facts = {
        "risk": risk,
        "lower_bound": risk / 1.25,
        "certified": True,
        "round_count": 12,
        "stop_reason": "converged",
    }
    facts |= {"prior": prior, "weights": np.ones(k), "certificate": sf.certify(mechanism, context)}
    return Design(context=context, mechanism=mechanism, **{**facts, **changes})


@pytest.fixture(scope="module")
def stops():
    return make_design(LINE, exponential_response(LINE))


def page_of(design, **options):
    options = {"seconds": 2.5, "title": "Which stop?", **options}
    return design_page(design, alternatives_to(design), **options)


# --- the figures ----------------------------------------------------------------------------------


def test_facts_match_the_design(stops):
    facts = dict(design_facts(stops, 2.5))
    assert facts["symbols"] == "4"
    assert facts["closed form"].startswith("none")
    assert facts["risk"] == f"{stops.risk:.6g} at even shares"
    assert facts["lower bound"] == f"{stops.risk / 1.25:.6g} (certified)"
    assert facts["gap"] == "25% (certified)"
    assert facts["search"] == "12 rounds in 2.5 s, converged"
    assert facts["reports"] == "4 possible reports, 2 bits each"
    assert f"{stops.mechanism.scores.leverage:.3g}" in facts["leverage"]


@pytest.mark.parametrize(
    ("changes", "name", "text"),
    [
        (
            {"stop_reason": "interrupted", "round_count": 1},
            "search",
            "1 round in 2.5 s, stopped early",
        ),
        ({"stop_reason": "time limit"}, "search", "12 rounds in 2.5 s, stopped by the time limit"),
        ({"certified": False}, "lower bound", "(estimated)"),
        ({"certified": False}, "gap", "25% (estimated)"),
        ({"prior": np.array([0.4, 0.3, 0.2, 0.1])}, "risk", "at the shares of the prior"),
        ({"weights": np.array([1.0, 2, 3, 4])}, "risk", "at even shares, with weighted answers"),
    ],
)
def test_facts_follow_the_design(stops, changes, name, text):
    assert text in dict(design_facts(replace(stops, **changes), 2.5))[name]


def test_bounds_are_called_certified_or_estimated_never_both(stops):
    certified = stops
    estimated = replace(stops, certified=False)
    for design, word, other in (
        (certified, "certified", "estimated"),
        (estimated, "estimated", "certified"),
    ):
        text = " ".join([bound_sentence(design), *(fact for _, fact in design_facts(design, 1))])
        assert word in text
        assert other not in text


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        (sf.PrivacyMatrix([[0, 1, 1], [1, 0, 1], [1, 1, 0]]), "uniform"),
        (sf.PrivacyMatrix([[0, 1, 1], [1, 0, 1], ["inf", "inf", 0]]), "high-low"),
        (sf.PrivacyMatrix([[0, 1, 1], [2, 0, 2], ["inf", "inf", 0]]), "tiers"),
        (sf.PrivacyMatrix([[0, 1, "inf"], [1, 0, "inf"], ["inf", "inf", 0]]), "blocks"),
        (
            sf.PrivacyMatrix([[0, 1, "inf"], ["inf", 0, "inf"], ["inf", "inf", 0]]),
            "union",
        ),
        (sf.PrivacyMatrix([[0, 1], [3, 0]]), "two symbols"),
    ],
)
def test_closed_forms_are_named_and_have_no_search(context, kind):
    design = make_design(
        context, sf.mechanism_for(context), stop_reason="closed form", round_count=0
    )
    facts = dict(design_facts(design, 0.1))
    assert name_of_closed_form(design) == facts["closed form"] == kind
    assert "search" not in facts


def test_search_outcome_follows_the_closed_form():
    context = sf.PrivacyMatrix([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    kept = make_design(context, sf.mechanism_for(context))
    assert (
        dict(design_facts(kept, 1))["closed form"] == "uniform; a search found no better mechanism"
    )
    beaten = make_design(context, exponential_response(context))
    assert (
        dict(design_facts(beaten, 1))["closed form"] == "uniform; a search found a better mechanism"
    )


def test_alternatives_use_the_prior_and_weights_of_the_design(stops):
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    weights = np.array([1.0, 2, 3, 4])
    design = replace(stops, prior=prior, weights=weights, risk=10.0)
    rivals = {rival.name: rival for rival in alternatives_to(design)}
    classical = sf.mechanism_for(sf.Uniform(STOPS, "0.5"))
    assert rivals["classical"].what == "classical LDP, ε = 0.5"
    assert rivals["classical"].risk == pytest.approx(
        (weights * classical.scores.variances(prior, 1)).sum()
    )
    assert rivals["exponential"].risk == pytest.approx(
        (weights * stops.mechanism.scores.variances(prior, 1)).sum()
    )
    assert rivals["classical"].times == pytest.approx(rivals["classical"].risk / 10)


def test_alternatives_need_a_promise_and_few_symbols():
    for context in (sf.Uniform(3, "inf"), sf.Uniform(129, 1)):
        assert alternatives_to(make_design(context, sf.mechanism_for(context))) == []


def test_unknown_gaps():
    assert [format_gap(gap) for gap in (math.inf, math.nan, 0.0, 0.12345)] == [
        "unknown", "unknown", "below 0.0001%", "12.3%",
    ]  # fmt: skip


# --- the picture ----------------------------------------------------------------------------------


def _naive_used(Q):
    k, outputs = Q.shape
    T = np.zeros((k, k))
    for x in range(k):
        for x2 in range(k):
            losses = [
                math.log(Q[x, y] / Q[x2, y]) if Q[x2, y] else math.inf
                for y in range(outputs)
                if Q[x, y]
            ]
            T[x, x2] = max(losses)
    return T


@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_used_promise(zeros):
    generator = np.random.default_rng(3)
    Q = generator.random((5, 9)) * (generator.random((5, 9)) >= zeros) + np.eye(5, 9)
    Q /= Q.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(compute_used_promise(Q), _naive_used(Q), atol=1e-12)


def test_used_promise_stays_within_the_promise(stops):
    assert (compute_used_promise(stops.mechanism.matrix()) <= LINE.closure().matrix() + 1e-12).all()


def test_reports_are_ordered_by_symbol_and_narrowness():
    Q = np.array([[0.1, 0.5, 0.2, 0.2], [0.5, 0.1, 0.2, 0.2], [0.1, 0.2, 0.3, 0.4]])
    order, spoken = order_reports(Q)
    assert order.tolist() == [1, 0, 3, 2]
    assert spoken.tolist() == [0, 1, 2, 2]


def test_ties_between_symbols_go_to_the_first():
    Q = np.array([[0.5, 0.5], [0.5 * (1 + 1e-12), 0.5 * (1 - 1e-12)]])
    assert order_reports(Q)[1].tolist() == [0, 0]


def _many(context, outputs):
    """A channel of many reports, some of them rare, that keeps no promise."""
    generator = np.random.default_rng(outputs)
    Q = (
        np.exp(generator.uniform(0, 1, (context.size, outputs)))
        * generator.exponential(1, outputs) ** 3
    )
    counts = [[int(q) for q in row] for row in 2**62 * Q / Q.sum(axis=1, keepdims=True)]
    return TableResponse(context, [[2**64 - sum(row[1:]), *row[1:]] for row in counts])


def shares_drawn(chart):
    """Return how much of the axis each colour has in each row."""
    rows = []
    for strip in chart.strips:
        widths = {}
        for run in strip.runs:
            widths[run.strength] = widths.get(run.strength, 0) + run.end - run.start
        rows.append(widths)
    return rows


def test_squares_are_the_promise_and_what_is_used(stops):
    promise = design_chart(stops).promise
    assert [panel.heading for panel in promise.panels] == [
        "promised: ε",
        "used by the reports",
        "left over",
    ]
    E = LINE.closure().matrix()
    T = compute_used_promise(stops.mechanism.matrix())
    matrices = (E, T, E - T)
    largest = (4.0, 4.0, (E - T)[np.isfinite(E)].max())
    for panel, matrix, end in zip(promise.panels, matrices, largest, strict=True):
        assert panel.chart.labels == tuple(STOPS)
        for x, x2 in np.ndindex(4, 4):
            square = panel.chart.squares[x][x2]
            if x == x2:
                assert (square.strength, square.text) == (None, "–")
            elif math.isinf(E[x, x2]):
                assert (square.strength, square.text) == (None, "∞")
            else:
                share = matrix[x, x2] / end
                strength = share if panel.heading == "left over" else 1 - share
                assert square.strength == pytest.approx(strength, abs=1e-6)
    first = promise.panels[0].chart.squares
    assert (first[0][1].text, first[3][0].text) == ("1", "0.5")
    assert first[3][0].note == "odds of bar against park: ε = 0.5"


def test_nothing_left_over_needs_no_panel():
    context = sf.Uniform(STOPS, 1)
    design = make_design(context, sf.mechanism_for(context))
    chart = design_chart(design).promise
    assert [panel.heading for panel in chart.panels] == ["promised: ε", "used by the reports"]
    assert "The reports use all that is promised." in page_of(design)
    assert "left over" in page_of(make_design(LINE, exponential_response(LINE)))


def test_runs_are_as_wide_as_their_reports_are_frequent():
    """The second answer never sends the first of three reports."""
    context = sf.PrivacyMatrix([[0, "inf"], [2, 0]], domain=["a", "b"])
    Q = [["0.5", "0.25", "0.25"], ["0", "0.25", "0.75"]]
    mechanism = sf.TableResponse.from_fractions(context, Q)
    design = replace(make_design(sf.Uniform(["a", "b"], 1), _coin()), mechanism=mechanism)
    channel = design_chart(design).channel
    # Reports 0 and 1 are most often from a, with ties to the first; report 2 is from b.
    assert [(span.row, span.start) for span in channel.spans] == [
        (0, 0),
        (1, pytest.approx(0.5)),
    ]
    first, second = shares_drawn(channel)
    strongest = 6.5 / 7
    weakest = 0.5 / 7
    assert first == pytest.approx({strongest: 0.5, weakest: 0.5}, abs=0.002)
    assert second == pytest.approx({None: 0.25, strongest: 0.75}, abs=0.002)
    assert channel.scale_ends == ("3 times less often", "most often")
    assert channel.heading == "3 reports, grouped by their most likely answer"


def _coin():
    return sf.mechanism_for(sf.Uniform(["a", "b"], 1))


def test_widths_follow_the_prior():
    context = sf.Uniform(["a", "b"], 1)
    design = make_design(context, _coin(), prior=np.array([0.9, 0.1]))
    channel = design_chart(design).channel
    share = math.e / (1 + math.e)
    assert channel.spans[0].end == pytest.approx(0.9 * share + 0.1 * (1 - share))


@pytest.mark.slow
def test_large_designs_are_small_pictures():
    context = sf.Uniform(64, 3)
    few = make_design(context, sf.mechanism_for(context))
    many_reports = replace(few, mechanism=_many(context, 2000))
    assert len(design_chart(many_reports).channel.to_html()) < 300_000
    for large in (sf.Uniform(256, 1), sf.Blocks([x // 32 for x in range(256)], 1)):
        chart = design_chart(make_design(large, sf.mechanism_for(large)))
        assert len(chart.promise.to_html()) + len(chart.channel.to_html()) < 400_000
        if importlib.util.find_spec("resvg_py"):
            assert svg_to_png(chart.to_svg(palette=FIXED)).startswith(b"\x89PNG")


@pytest.mark.parametrize("k", [1, 2, 11, 30])
def test_designs_of_every_size_are_drawn(k):
    context = sf.Uniform([f"label {x} $x^2$" for x in range(k)], 1)
    chart = design_chart(make_design(context, sf.mechanism_for(context)))
    for width in (340, 820):
        root = ET.fromstring(chart.to_svg(width))  # noqa: S314 - our own text
        for rect in root.iter(f"{SVG}rect"):
            assert float(rect.get("x")) + float(rect.get("width")) <= width
    assert len(chart.to_text(60).splitlines()) >= 2 * k


@pytest.mark.slow
def test_crowded_labels_are_left_out():
    def names(k):
        context = sf.Uniform([f"L{x}." for x in range(k)], 1)
        chart = design_chart(make_design(context, sf.mechanism_for(context)))
        return set(re.findall(r"L\d+\.", chart.channel.to_svg()))

    assert len(names(24)) == 24
    assert len(names(60)) == 12


def test_designs_with_too_many_symbols_are_not_drawn(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # not needed
    require_drawable(256)
    with pytest.raises(InvalidContext, match="up to 256 symbols; this context has 257"):
        require_drawable(257)
    context = sf.Uniform(257, 1)
    with pytest.raises(InvalidContext, match="up to 256 symbols"):
        design_chart(make_design(context, sf.mechanism_for(context)))


def test_png_files_need_the_extra_but_pages_do_not(monkeypatch, stops):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    require_drawable(4)
    assert "<svg" in page_of(stops)
    for draw in (lambda: require_drawable(4, as_png=True), lambda: design_png(stops)):
        with pytest.raises(MissingExtra, match=r"pip install .*\[charts\]"):
            draw()


def test_equal_designs_give_equal_pictures(stops):
    assert design_chart(stops).to_html() == design_chart(stops).to_html()
    pytest.importorskip("resvg_py")
    assert design_png(stops) == design_png(stops)
    assert design_png(stops).startswith(b"\x89PNG")


# --- the page -------------------------------------------------------------------------------------


def test_page_contents(stops):
    page = page_of(stops)
    for text in (
        "Which stop?", "odds of “bar” against “park”", "12 rounds in 2.5 s", "(certified)", "25%",
        "classical LDP, ε = 0.5", "exponential mechanism", "this design",
        "Certified (every pair on every report)", "forged report outweighs",
        stops.mechanism.fingerprint,
    ):  # fmt: skip
        assert text in page, text
    assert "estimated" not in page
    assert page.count('<div class="chart">') == 2
    assert len(page.encode()) < 100_000


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({}, "At even shares, the risk of this mechanism is at most 25% above the smallest that"),
        (
            {"prior": np.array([0.4, 0.3, 0.2, 0.1])},
            "At the shares of the prior, the risk of this mechanism is at most 25% above",
        ),
        ({"lower_bound": 999.0}, "At even shares, no mechanism that keeps this promise has a"),
        ({"lower_bound": 0.0}, "At even shares, it is unknown how far this mechanism is from"),
        ({"certified": False}, "At even shares, the risk of this mechanism is about 25% above the"),
    ],
)
def test_page_says_first_how_good_the_mechanism_is(stops, changes, answer):
    page = page_of(replace(stops, **changes))
    assert page.partition('<p class="lead">')[2].startswith(answer)


def test_small_gaps_are_called_small(stops):
    page = page_of(replace(stops, lower_bound=stops.risk / 1.0001))
    assert "has a noticeably smaller risk than this one: at most 0.01% smaller." in page


def test_page_tells_its_bound_from_that_of_a_plan(stops):
    page = page_of(stops)
    assert "certified: at even shares, no mechanism for this promise has a smaller risk" in page
    assert "for the worst population" in page


def test_page_never_calls_an_estimated_bound_certified(stops):
    page = page_of(replace(stops, certified=False))
    words = [
        match.group(0) for match in re.finditer(r"(?i)\bcertified\b", re.sub(r"<[^>]*>", " ", page))
    ]
    assert "(estimated)" in page
    assert words == [
        "certified",
        "Certified",
    ]  # a rule of the style sheet, and the certificate of the promise


def test_page_links_nowhere(stops):
    page = page_of(stops)
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", page)


def test_labels_and_titles_are_escaped():
    context = sf.PrivacyMatrix(
        [[0, 1, 2], [1, 0, 3], [2, 3, 0]], domain=[HOSTILE, "<b>bold</b>", "$x^2$ %{y}"]
    )
    page = page_of(make_design(context, exponential_response(context)), title=HOSTILE)
    assert "<script" not in page
    assert "<img" not in page
    assert "<b>bold" not in page


def test_no_comparison_without_alternatives(stops):
    assert "Compared" not in design_page(stops, [], seconds=1)
    assert "7 ×" in design_page(stops, [Alternative("x", "another", 7.0, 7.0)], seconds=1)


@pytest.mark.parametrize("width", [390, 1400])
def test_page_in_a_browser(chromium, tmp_path, stops, width):
    file = tmp_path / "design.html"
    file.write_text(page_of(stops), encoding="utf-8")
    browser = Browser(chromium)
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(file.as_uri())
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    is_narrow = width < 640
    for chart in page.locator(".chart").all():
        assert chart.locator(".narrow").is_visible() is is_narrow
        assert chart.locator(".wide").is_visible() is not is_narrow
    colours = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colours.append(
            page.evaluate("getComputedStyle(document.querySelector('.chart rect')).fill")
        )
    assert colours[0] != colours[1]
    assert page.complaints == []
    assert external_requests(page, file.as_uri()) == []
    assert accessibility_violations(page) == []
    browser.close()
