"""The page and the chart of a plan."""

import math
import re
import xml.etree.ElementTree as ET
from fractions import Fraction
from html import unescape

import numpy as np
import pytest

import sfumato as sf
from sfumato.designer.exponential import exponential_response
from sfumato.pages.plan import plan_chart, plan_page, plan_png, plan_svg
from sfumato.planning import plan
from support.browser import Browser, accessibility_violations, external_requests

LUNCH = sf.HighLow(["park", "café", "clinic", "bar"], ["clinic"], 1)
WITHOUT_CLOSED_FORM = sf.PrivacyMatrix([[0, 1, 2], [1, 0, 3], [2, 3, 0]])
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def few_draws(monkeypatch):
    """Predict from 40 draws: these tests do not compare predictions with real reports."""
    monkeypatch.setattr("sfumato.planning.decoded_forecast._MAX_DRAWS", 40)


def designed(context):
    """Return a plan for a survey whose mechanism was made for its matrix."""
    Q = 0.7 * exponential_response(context).matrix() + 0.3 / context.size
    rows = [[Fraction(q) for q in row] for row in Q.tolist()]
    table = [[q / sum(row) for q in row] for row in rows]
    return plan(context, error=0.05, mechanism=sf.TableResponse.from_fractions(context, table))


# --- the chart ------------------------------------------------------------------------------------


def test_every_available_mechanism_has_a_curve_through_its_figures():
    result = plan(LUNCH, error=0.03)
    chart = plan_chart(result)
    rows = {row.title: row for row in result.rows}
    assert [curve.label for curve in chart.curves] == [
        "best closed form",
        "classical LDP, ε = 1",
        "Hadamard code",
    ]
    assert [curve.is_chosen for curve in chart.curves] == [True, False, False]
    for curve in chart.curves:
        for people, error in curve.points:
            assert error == rows[curve.label].figures_at(round(people)).error
        # The error of an unbiased estimate falls with the square root of the number of people.
        (low, first), (high, last) = curve.points
        assert first / last == pytest.approx(math.sqrt(high / low))


def test_dots_are_the_numbers_of_the_table_and_the_ring_is_the_plan():
    result = plan(LUNCH, error=0.03)
    *dots, ring = plan_chart(result).markers
    found = {(dot.x, dot.y) for dot in dots}
    assert found == {(row.figures.people, row.figures.error) for row in result.rows}
    assert (ring.x, ring.y, ring.is_ring) == (result.people, result.error, True)
    assert ring.text == f"{result.people:,} people, 0.03"
    assert not any(dot.is_ring or dot.text for dot in dots)


def test_goal_is_a_line():
    assert [(rule.y, rule.text) for rule in plan_chart(plan(LUNCH, error=0.03)).rules] == [
        (0.03, "goal 0.03")
    ]
    assert plan_chart(plan(LUNCH, people=1000)).rules == ()


@pytest.mark.parametrize(
    ("measure", "highest"), [("tv", 1), ("symbol", 1), ("l2", math.sqrt(2)), ("total", 1)]
)
@pytest.mark.parametrize("people", [10, 100_000])
def test_error_axis_ends_at_the_largest_possible_error(measure, highest, people):
    labels = ["park", "clinic"] if measure == "total" else None
    chart = plan_chart(plan(LUNCH, people=people, measure=measure, labels=labels))
    error = chart.markers[-1].y if chart.markers else 0
    assert chart.y_axis.high == pytest.approx(max(highest, error if measure == "total" else 0))
    for curve in chart.curves:
        assert curve.points[-1][1] >= chart.y_axis.low


def test_too_few_people_are_not_marked():
    """An error above 1 is not on the axis. The axis shows how many people would be enough."""
    result = plan(sf.Uniform(100, 1), people=10)
    assert result.error > 20
    chart = plan_chart(result)
    assert chart.markers == ()
    errors = [error for _, error in chart.curves[0].points]
    assert errors[0] > 1 > 0.1 > errors[-1]
    assert "the ring" not in plan_page(result)


@pytest.mark.parametrize("goal", [0.05, 0.01, 0.002])
@pytest.mark.parametrize("context", [LUNCH, sf.Uniform(40, 1), WITHOUT_CLOSED_FORM])
def test_plan_is_right_of_the_middle(context, goal):
    """So that its text, on the left, does not hide its curve."""
    chart = plan_chart(plan(context, error=goal))
    ring = chart.markers[-1]
    assert 0.5 < chart.x_axis.position(ring.x) < 0.95
    assert all(0 < chart.x_axis.position(marker.x) < 0.95 for marker in chart.markers)


@pytest.mark.parametrize("context", [sf.Uniform(1, 1), sf.Uniform(3, "inf"), LUNCH])
@pytest.mark.parametrize("goal", [{"people": 1}, {"error": 1e-9}, {"error": 0.9}])
def test_extreme_plans_are_drawn(context, goal):
    chart = plan_chart(plan(context, **goal))
    assert 0 < chart.y_axis.low < chart.y_axis.high
    assert 1 <= chart.x_axis.low < chart.x_axis.high <= 1e12
    ET.fromstring(chart.to_svg(340))  # noqa: S314 - our own text


def test_axes_are_written_in_plain_numbers():
    people = plan_chart(plan(LUNCH, error=1e-4)).x_axis
    assert [people.tick_text(10.0**exponent) for exponent in (3, 6, 8, 9, 12)] == [
        "1,000",
        "1 million",
        "100 million",
        "1 billion",
        "1 trillion",
    ]
    errors = plan_chart(plan(LUNCH, error=1e-9)).y_axis
    assert [errors.tick_text(10.0**exponent) for exponent in (0, -2, -5, -9)] == [
        "1",
        "0.01",
        "0.00001",
        "10^-9",
    ]


@pytest.mark.usefixtures("few_draws")
def test_decoded_curves_have_several_points():
    result = plan(LUNCH, people=1000, distribution="uniform", decoder="projection")
    chart = plan_chart(result)
    assert {len(curve.points) for curve in chart.curves} == {9}
    assert "even shares" in chart.y_axis.title


def test_missing_mechanisms_are_not_drawn():
    result = designed(WITHOUT_CLOSED_FORM)
    drawn = [curve.label for curve in plan_chart(result).curves]
    assert drawn == [
        "designed for this matrix",
        "classical LDP, ε = 1",
        "exponential mechanism",
    ]
    level = sf.Metric(2 * (np.ones((5, 5)) - np.eye(5)))
    all_five = designed(level)
    svg = unescape(plan_svg(all_five))
    assert [row.title in svg for row in all_five.rows] == [True] * 5
    colours = [curve.colour for curve in plan_chart(all_five).curves]
    assert len(set(colours)) == 5


def test_equal_plans_give_equal_bytes():
    first, second = (plan(LUNCH, error=0.03) for _ in range(2))
    assert plan_svg(first) == plan_svg(second)
    assert plan_page(first) == plan_page(second)


def test_png():
    pytest.importorskip("resvg_py")
    assert plan_png(plan(LUNCH, error=0.03)).startswith(b"\x89PNG")


# --- the page -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("goal", [{"people": 1000, "distribution": "uniform"}, {"error": 1e-9}])
def test_page_loads_nothing(goal):
    page = plan_page(plan(LUNCH, **goal), title="<b>lunch</b> & more")
    assert "&lt;b&gt;lunch&lt;/b&gt; &amp; more" in page
    assert "classical LDP, ε = 1" in page
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", page)
    assert len(page.encode()) < 40_000


def test_unreachable_goal_is_a_caution():
    assert 'class="lead caution"' in plan_page(plan(LUNCH, error=1e-9))
    assert 'class="lead caution"' not in plan_page(plan(LUNCH, error=0.05))


def test_table_names_every_number_for_narrow_screens():
    result = plan(LUNCH, error=0.03)
    page = plan_page(result)
    (_, *headings), *rows = result.table()
    cells = re.findall(r'<td class="number" data-name="([^"]*)">([^<]*)</td>', page)
    expected = [pair for _, *numbers in rows for pair in zip(headings, numbers, strict=True)]
    assert cells == expected
    assert page.count('<tr class="chosen">') == 1


def test_designed_survey_needs_no_advice_to_design_it():
    page = plan_page(designed(WITHOUT_CLOSED_FORM))
    assert "sf.design" not in page
    assert "best closed form" not in page
    assert '<td class="number" data-name="people">–' not in page
    assert "The risk ratio is for the worst population" in page
    assert "The bound of sfumato design is a different one" in page


def test_commands_in_notes_are_code():
    page = plan_page(plan(WITHOUT_CLOSED_FORM, error=0.05))
    assert "<code>sfumato design</code>" in page
    assert "`" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)


@pytest.mark.parametrize("width", [390, 1400])
def test_page_in_a_browser(chromium, tmp_path, width):
    file = tmp_path / "plan.html"
    file.write_text(plan_page(designed(WITHOUT_CLOSED_FORM)), encoding="utf-8")
    browser = Browser(chromium)
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(file.as_uri())
    page.click("summary")
    is_narrow = width < 640
    assert page.locator(".chart .narrow").is_visible() is is_narrow
    assert page.locator(".chart .wide").is_visible() is not is_narrow
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    for cell in page.locator(".cards td").all():  # every number is on the screen
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    assert page.complaints == []
    assert external_requests(page, file.as_uri()) == []
    assert accessibility_violations(page) == []
    browser.close()
