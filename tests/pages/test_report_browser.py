"""The report page in a real browser: it draws, sorts, and sends no requests."""

from pathlib import Path

import pytest

pytest.importorskip("plotly")

from sfumato.pages import report_page


@pytest.fixture
def show(chromium, tmp_path):
    """Open a case's page, and record its errors and requests."""
    contexts = []

    def open_page(case, **options):
        file = tmp_path / "report.html"
        file.write_text(report_page(case.survey, case.estimate, case.certificate), encoding="utf-8")
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        page.complaints = []
        page.requests = []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(file.as_uri())
        page.locator(
            "#decoded .main-svg"
        ).first.wait_for()  # the page forbids eval, so no wait_for_function
        return page

    yield open_page
    for context in contexts:
        context.close()


def labels(page):
    return page.locator("#rows tbody tr:visible th").all_inner_texts()


def sorts(page):
    return [head.get_attribute("aria-sort") for head in page.locator("#rows th[scope=col]").all()]


@pytest.mark.parametrize("case", ["lunch", "hostile", "checkins"])
def test_page_draws_without_errors_or_requests(show, case, request):
    page = show(request.getfixturevalue(case), viewport={"width": 1000, "height": 800})
    for plot in page.locator(".plot").all():
        box = plot.locator(".main-svg").first.bounding_box()
        assert box["width"] > 300
        assert box["height"] > 100
    page.wait_for_timeout(300)
    assert page.complaints == []
    own = [url for url in page.requests if not url.startswith(("data:", "blob:"))]
    assert len(own) == 1
    assert own[0].startswith("file://")


def test_charts_are_drawn(show, lunch):
    page = show(lunch)
    assert page.locator("#decoded .bars .point").count() == 5
    assert page.locator("#unbiased .errorbar").count() == 5
    assert page.locator("#privacy .heatmaplayer image").count() == 2
    assert "∞" in page.locator("#privacy .heatmaplayer").inner_html()


@pytest.mark.parametrize(("width", "side_by_side"), [(1000, True), (400, False)])
def test_both_readings_share_a_scale(show, lunch, width, side_by_side):
    page = show(lunch, viewport={"width": width, "height": 800})
    assert page.locator(".readings h3").all_inner_texts() == [
        "The decoded estimate",
        "The unbiased estimate",
    ]
    decoded, unbiased = (
        page.locator(f"#{name}").bounding_box() for name in ("decoded", "unbiased")
    )
    assert (decoded["y"] == unbiased["y"]) == side_by_side
    assert (decoded["x"] < unbiased["x"]) == side_by_side
    ranges = [
        page.evaluate(f"document.getElementById('{name}').layout.xaxis.range")
        for name in ("decoded", "unbiased")
    ]
    assert ranges[0] == ranges[1]


def test_map_has_a_text_per_cell(show, checkins):
    page = show(checkins)
    picture = page.evaluate("document.querySelector('#map .heatmaplayer image').href.baseVal")
    assert picture.startswith("data:image/png")
    assert len(picture) > 1000
    assert (
        page.evaluate("document.getElementById('map').data[0].text[1][1].split('<br>')[0]")
        == "25.2,-129.8"
    )
    largest = page.evaluate(
        "Math.max(...document.getElementById('map').data[0].z.flat().filter((z) => z === z))"
    )
    assert 10**largest == pytest.approx(checkins.estimate.frequencies.max(), rel=1e-4)


def test_table_sorts_on_click(show, lunch):
    page = show(lunch)
    assert labels(page) == ["park", "café", "office", "clinic", "bar"]
    assert sorts(page)[:2] == ["none", "descending"]
    assert set(sorts(page)[2:]) == {"none"}
    page.get_by_role("button", name="frequency").click()
    assert labels(page) == ["bar", "clinic", "office", "café", "park"]
    assert sorts(page)[1] == "ascending"
    page.get_by_role("button", name="label").click()
    assert labels(page) == ["bar", "café", "clinic", "office", "park"]
    assert sorts(page)[0] == "ascending"
    assert set(sorts(page)[1:]) == {"none"}


def test_table_head_is_sticky_and_names_the_readings(show, checkins):
    page = show(checkins)
    decoded, unbiased = page.locator("#rows th[scope=colgroup]").all_inner_texts()
    assert decoded == "decoded estimate"
    assert unbiased.startswith("unbiased estimate")
    page.evaluate("document.querySelector('.scroll').scrollTop = 5000")
    box, head = (page.locator(name).bounding_box() for name in (".scroll", "#rows thead"))
    assert abs(head["y"] - box["y"]) <= 2


def test_table_sorts_from_the_keyboard(show, lunch):
    page = show(lunch)
    page.get_by_role("button", name="unbiased").focus()
    page.keyboard.press("Enter")
    assert sorts(page)[2] == "descending"
    page.keyboard.press("Space")
    assert sorts(page)[2] == "ascending"
    assert labels(page)[-1] == "park"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert sorts(page)[3] == "descending"
    assert sorts(page).count("none") == len(sorts(page)) - 1


def test_search_filters_and_counts_rows(show, lunch):
    page = show(lunch)
    page.get_by_label("Search labels").fill("CAFÉ")
    assert labels(page) == ["café"]
    assert page.locator("#row-count").inner_text() == "1 of 5 rows"
    page.get_by_label("Search labels").fill("")
    assert len(labels(page)) == 5


def test_privacy_label_can_be_downloaded(show, lunch):
    page = show(lunch)
    with page.expect_download() as taken:
        page.get_by_role("link", name="privacy label").click()
    assert taken.value.suggested_filename == "privacy-label.html"
    assert "What a report gives away" in Path(taken.value.path()).read_text(encoding="utf-8")


def test_hostile_labels_are_text(show, hostile):
    page = show(hostile)
    assert page.evaluate("document.querySelectorAll('img, a[href]:not([download])').length") == 0
    assert page.locator("h1").inner_text() == hostile.survey.title
    assert "<b>bold</b>" in page.locator("#decoded .yaxislayer-above").text_content()


def test_switching_the_colour_scheme_redraws(show, lunch):
    page = show(lunch, color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('#decoded .ytick text')).fill"
    dark = page.evaluate(paper), page.evaluate(ink)
    page.emulate_media(color_scheme="light")
    page.wait_for_timeout(200)
    assert page.evaluate(ink) != dark[1]
    assert (dark[0], page.evaluate(paper)) == ("rgb(25, 24, 22)", "rgb(251, 250, 248)")
    assert page.complaints == []


@pytest.mark.parametrize("width", [360, 400, 1280])
def test_page_fits_its_width(show, lunch, width):
    page = show(lunch, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_printing_draws_light_charts_that_fit(show, lunch):
    page = show(lunch, color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#decoded .main-svg").first.bounding_box()["width"] == 680
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.complaints == []


def test_chart_buttons_lead_nowhere_else(show, checkins):
    page = show(checkins)
    titles = page.evaluate(
        "[...document.querySelectorAll('.modebar-btn')].map((button) => button.dataset.title)"
    )
    assert {title.lower() for title in titles} == {
        "download plot as a png",
        "zoom",
        "pan",
        "reset axes",
    }
    assert page.evaluate("document.getElementById('map')._context.plotlyServerURL") == ""


def test_charts_can_be_saved_as_pictures(show, lunch):
    page = show(lunch)
    picture = page.evaluate(
        "Plotly.toImage(document.getElementById('decoded'), "
        "{format: 'png', width: 600, height: 300})"
    )
    assert picture.startswith("data:image/png;base64,")
    assert page.complaints == []
