"""The report page in a real browser: it draws, sorts, and sends no requests."""

import re
from pathlib import Path

import pytest

from sfumato.pages import report_page
from support.browser import accessibility_violations


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
        page.locator("#shares svg:visible").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()


def labels(page):
    return page.locator("#rows tbody tr:visible th").all_inner_texts()


def unfold(page, name):
    page.locator(f"#{name} summary").click()


def sorts(page):
    return [head.get_attribute("aria-sort") for head in page.locator("#rows th[scope=col]").all()]


@pytest.mark.parametrize("case", ["lunch", "hostile", "checkins"])
def test_page_draws_without_errors_or_requests(show, case, request):
    page = show(request.getfixturevalue(case), viewport={"width": 1000, "height": 800})
    for chart in page.locator(".chart svg:visible").all():
        box = chart.bounding_box()
        assert box["width"] > 300
        assert box["height"] > 100
    page.wait_for_timeout(300)
    assert page.complaints == []
    own = [url for url in page.requests if not url.startswith(("data:", "blob:"))]
    assert len(own) == 1
    assert own[0].startswith("file://")


@pytest.mark.parametrize(("width", "layout"), [(1000, "wide"), (390, "narrow")])
def test_charts_are_laid_out_for_the_width(show, lunch, width, layout):
    page = show(lunch, viewport={"width": width, "height": 800})
    chart = page.locator("#shares svg:visible")
    assert chart.get_attribute("class") == layout
    assert chart.bounding_box()["width"] <= width
    for label in ("park", "clinic"):
        row = lunch.estimate[label]
        for share in (row.unbiased, row.low, row.high):
            assert f"{100 * share:.1f}%" in chart.text_content()
    size = chart.locator("text", has_text="park").evaluate(
        "text => getComputedStyle(text).fontSize"
    )
    assert size == "13px"


def test_no_text_of_a_chart_is_cut_off_or_covered(show, lunch):
    """The widths of texts are estimated, so a browser checks them."""
    for width in (390, 1280):
        page = show(lunch, viewport={"width": width, "height": 800})
        chart = page.locator("#shares svg:visible")
        frame = chart.bounding_box()
        boxes = [text.bounding_box() for text in chart.locator("text").all()]
        for box in boxes:
            assert box["x"] >= frame["x"] - 1
            assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
        for i, one in enumerate(boxes):
            for other in boxes[i + 1 :]:
                is_apart = (
                    one["x"] + one["width"] <= other["x"] + 0.5
                    or other["x"] + other["width"] <= one["x"] + 0.5
                    or one["y"] + one["height"] <= other["y"] + 3
                    or other["y"] + other["height"] <= one["y"] + 3
                )
                assert is_apart


def test_pointing_at_a_cell_shows_its_interval(show, checkins):
    page = show(checkins, viewport={"width": 1280, "height": 900})
    box = page.locator("#map svg:visible").bounding_box()
    cell = int(checkins.estimate.frequencies.argmax())
    row, column = divmod(cell, 350)
    left = (column + 0.5) / 350 * box["width"]
    height = page.evaluate("JSON.parse(document.querySelector('.map').dataset.grid).height")
    top = (125 - row - 0.5) / 125 * height * box["width"]
    page.mouse.move(box["x"] + left, box["y"] + top)
    reading = page.locator(".reading").inner_text()
    place = f"{round(25 + row * 0.2, 6):g}, {round(-130 + column * 0.2, 6):g}"
    assert reading.startswith(f"Cell {place}: ")
    low, high = (float(bound[cell]) for bound in checkins.estimate.interval())
    shares = [float(text) for text in re.findall(r"([\d.]+)%", reading.partition(":")[2])]
    assert shares == [
        pytest.approx(100 * checkins.estimate.frequencies[cell], abs=0.01),
        95,
        pytest.approx(100 * low, abs=0.01),
        pytest.approx(100 * high, abs=0.01),
    ]


def test_arrow_keys_walk_from_the_largest_cell(show, checkins):
    page = show(checkins, viewport={"width": 1280, "height": 900})
    page.locator(".map").focus()
    page.keyboard.press("ArrowUp")
    row, column = divmod(int(checkins.estimate.frequencies.argmax()), 350)
    reading = page.locator(".reading")

    def place(row, column):
        return f"Cell {round(25 + row * 0.2, 6):g}, {round(-130 + column * 0.2, 6):g}: "

    assert reading.inner_text().startswith(place(row, column))
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowRight")
    assert reading.inner_text().startswith(place(row + 1, column + 10))
    # The marker is where a pointer would read the same cell.
    box = page.locator(".marker").bounding_box()
    text = reading.inner_text()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator(".marker").is_hidden()
    assert reading.inner_text() == text
    for _ in range(3):
        page.keyboard.press("Shift+ArrowDown")
    assert reading.inner_text().startswith(place(max(row + 1 - 30, 0), column + 10))


def test_folded_parts_open(show, lunch):
    page = show(lunch)
    assert not page.locator("#rows").is_visible()
    unfold(page, "numbers")
    assert page.locator("#rows").is_visible()
    page.locator("#promise summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("#privacy svg:visible").count() == 1


def test_table_sorts_on_click(show, lunch):
    page = show(lunch)
    unfold(page, "numbers")
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
    unfold(page, "numbers")
    decoded, unbiased = page.locator("#rows th[scope=colgroup]").all_inner_texts()
    assert decoded == "decoded estimate"
    assert unbiased.startswith("unbiased estimate")
    page.evaluate("document.querySelector('.scroll').scrollTop = 5000")
    box, head = (page.locator(name).bounding_box() for name in (".scroll", "#rows thead"))
    assert abs(head["y"] - box["y"]) <= 2


def test_table_sorts_from_the_keyboard(show, lunch):
    page = show(lunch)
    unfold(page, "numbers")
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
    unfold(page, "numbers")
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
    assert "<b>bold</b>" in page.locator("#shares svg:visible").text_content()


def test_colours_follow_the_scheme(show, lunch):
    page = show(lunch, color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    bar = "getComputedStyle(document.querySelector('#shares .wide rect')).fill"
    text = "getComputedStyle(document.querySelector('#shares .wide text')).fill"
    dark = page.evaluate(paper), page.evaluate(bar), page.evaluate(text)
    page.emulate_media(color_scheme="light")
    light = page.evaluate(paper), page.evaluate(bar), page.evaluate(text)
    assert (dark[0], light[0]) == ("rgb(25, 24, 22)", "rgb(251, 250, 248)")
    assert dark[1] != light[1]
    assert dark[2] != light[2]
    assert page.complaints == []


@pytest.mark.parametrize("width", [360, 400, 1280])
def test_page_fits_its_width(show, lunch, width):
    page = show(lunch, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_printing_unfolds_all_parts(show, lunch):
    page = show(lunch, color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every((part) => part.open)")
    page.emulate_media(media="print")
    bar = "getComputedStyle(document.querySelector('#shares .wide rect')).fill"
    assert page.evaluate(bar) == "rgb(79, 134, 173)"  # the light colour
    assert page.complaints == []


def test_phones_show_every_number_of_the_table(show, lunch):
    page = show(lunch, viewport={"width": 390, "height": 800})
    unfold(page, "numbers")
    for cell in page.locator("#rows tbody td").all():
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("case", ["lunch", "checkins"])
def test_page_is_accessible(show, case, scheme, request):
    page = show(request.getfixturevalue(case), color_scheme=scheme, bypass_csp=True)
    assert accessibility_violations(page) == []
