"""The dashboard in a real browser: what is public, what needs the token, and how it updates."""

import time
from datetime import timedelta

import numpy as np
import pytest

from sfumato.foundation.decoder_table import DECODER_TABLE

pytest.importorskip("fastapi")
import sfumato as sf
from sfumato.domains.partitions import grid_tiles
from sfumato.errors import StoreUnavailable
from sfumato.pages import report_page
from support.browser import (
    FAILED_RESPONSE,
    NOON,
    Browser,
    accessibility_violations,
    external_requests,
    run_aggregator,
    uploads,
)
from support.survey_results import HOSTILE

PLACES = ["park", "café", "clinic", "bar", "office"]
LUNCH = sf.Survey(
    "lunch", sf.HighLow(PLACES, ["clinic", "bar"], 1), title="Where did you have lunch?"
)
GRID_DOMAIN = sf.GridDomain(0, 5, 10, 20, 0.5)
GRID = sf.Survey(
    "grid", sf.Blocks(grid_tiles(GRID_DOMAIN, 2, 4), 1, domain=GRID_DOMAIN), title="Where are you?"
)
ODD = sf.Survey("odd", sf.Uniform([HOSTILE, "<b>bold</b>", "שלום", "$x^2$ %{y}"], 1), title=HOSTILE)
FEW = sf.Survey("few", sf.Uniform(["yes", "no"], 1), title="Too few", minimum_reports=1000)


@pytest.fixture(scope="module")
def aggregator(tmp_path_factory):
    """Four surveys: the answers to three changed since last week, and one has too few reports."""
    with run_aggregator(tmp_path_factory.mktemp("store")) as server:
        for survey in (LUNCH, GRID, ODD, FEW):
            server.add(survey)
        for survey in (LUNCH, GRID, ODD):
            people = np.minimum(
                np.random.default_rng(1).geometric(0.4, 6000) - 1, survey.context.size - 1
            )
            server.receive(survey, people, 1)
            server.receive(survey, people, 2, NOON - timedelta(days=1))
            server.receive(survey, (people + 1) % survey.context.size, 3, NOON - timedelta(days=9))
        server.receive(FEW, np.array([0, 1, 1]), 1)
        yield server


@pytest.fixture(scope="module")
def analyst(chromium):
    """One browser for many tabs; each tab has its own token."""
    people = Browser(chromium)
    yield people.new_person()
    people.close()


@pytest.fixture
def show(browser, analyst, aggregator):
    """Open the dashboard at a survey, and wait for its public part. Tests can advance its clock."""
    tabs = []

    def open_dashboard(survey=LUNCH, **options):
        tabs.append(page := browser.new_page(None if options else analyst, **options))
        page.clock.install()
        page.goto(f"{aggregator.url}#{survey.fingerprint}")
        certified(page, survey)
        return page

    yield open_dashboard
    for page in tabs:
        page.close()


@pytest.fixture
def show_all(show, aggregator):
    """Open the dashboard with the token."""

    def open_dashboard(survey=LUNCH, **options):
        page = show(survey, **options)
        enter(page, aggregator.token)
        learned(page)
        return page

    return open_dashboard


def enter(page, token):
    page.get_by_label("Enter the token that the aggregator printed").fill(token)
    page.get_by_role("button", name="Show results").click()


def learned(page):
    page.locator("#shares svg:visible").wait_for()


def unfold(page, name):
    page.locator(f"#{name} summary").click()


def certified(page, survey):
    page.locator("#certificate", has_text=survey.fingerprint).wait_for()


def look_again(page):
    """Advance the clock until the page polls."""
    with page.expect_response("**/v1/surveys"):
        page.clock.fast_forward(60_000)


def lead(page):
    return page.locator("[data-part=summary] .basis")


def rows(page):
    return page.locator("#rows tbody tr:visible th").all_inner_texts()


def unexpected(page):
    """Return the console messages, without those about error responses."""
    return [text for text in page.complaints if FAILED_RESPONSE not in text]


# --- floods ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1400, 390])
def test_a_day_is_left_out_and_included_again(show_all, width):
    page = show_all(LUNCH, viewport={"width": width, "height": 900})
    unfold(page, "days-section")
    days = page.locator("#days-section tbody tr")
    assert days.count() == 3
    before = lead(page).inner_text()
    assert accessibility_violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    days.first.get_by_role("button", name="leave out").click()
    notice = page.locator("[data-part=notices]", has_text="leave out: 20")
    notice.wait_for()
    page.locator("[data-part=summary] .basis", has_text="12,000").wait_for()
    days.first.get_by_role("button", name="include").click()
    notice.wait_for(state="detached")
    page.locator("[data-part=summary] .basis", has_text="18,000").wait_for()
    assert lead(page).inner_text() == before
    assert unexpected(page) == []


# --- who may see what -----------------------------------------------------------------------------


def test_without_a_token_only_the_promise_shows(show, aggregator):
    page = show()
    assert page.locator("h2.title").inner_text() == "Where did you have lunch?"
    unfold(page, "promise")
    assert page.locator("#privacy svg:visible").count() == 1
    assert "Certified" in page.locator("#certificate").text_content()
    assert page.get_by_label("The token that").is_visible()
    assert page.locator("#options").is_hidden()
    assert page.evaluate(
        "[...document.querySelectorAll('[data-private]')].every((part) => !part.innerHTML)"
    )
    assert [
        request.url for request in page.requests if request.url.endswith(("/status", "/results"))
    ] == []
    assert external_requests(page, aggregator.url) == []
    assert page.complaints == []


def test_only_the_right_token_shows_results(show, aggregator):
    page = show()
    enter(page, "sfm_wrong")
    page.get_by_text("This token does not belong to this aggregator.").wait_for()
    look_again(page)
    assert page.locator("#problem").inner_text() == "This token does not belong to this aggregator."
    assert page.locator("#estimate").count() == 0
    enter(page, aggregator.token)
    learned(page)
    assert page.locator("#problem").is_hidden()
    assert page.locator("#token").is_hidden()
    assert unexpected(page) == []


def test_results_match_python(show_all, aggregator):
    page = show_all()
    tally = aggregator.store.tally(LUNCH.fingerprint, LUNCH.mechanism.outputs)
    estimate = LUNCH.estimate(tally)
    assert f"{tally.reports:,} reports" in lead(page).inner_text()
    unfold(page, "numbers")
    headings = page.locator("#rows th[scope=col]").all_inner_texts()
    low, high = estimate.interval(0.95)
    expected = {
        "frequency": estimate.frequencies,
        "unbiased": estimate.unbiased,
        "low": low,
        "high": high,
    }
    rows = page.locator("#rows tbody tr").all()
    assert {row.locator("th").inner_text() for row in rows} == set(PLACES)
    for row in rows:
        x = PLACES.index(row.locator("th").inner_text())
        cells = row.locator("td").all()
        for heading, numbers in expected.items():
            shown = cells[headings.index(heading) - 1].get_attribute("data-v")
            assert float(shown) == pytest.approx(numbers[x], rel=1e-8)
    assert page.locator("#shares .wide g").count() == 5
    notes = page.locator("#hours .wide title").all_text_contents()
    counts = [int(note.rpartition(": ")[2].split()[0].replace(",", "")) for note in notes]
    assert sum(counts) == tally.reports
    assert external_requests(page, aggregator.url) == []
    assert uploads(page) == []
    assert page.complaints == []


def test_token_stays_in_its_tab_until_forgotten(show_all, browser, analyst, aggregator):
    page = show_all()
    page.reload()
    learned(page)
    assert page.evaluate("localStorage.length") == 0
    assert all(aggregator.token not in request.url for request in page.requests)
    other = browser.new_page(analyst)
    other.goto(aggregator.url)
    other.get_by_label("The token that").wait_for()
    other.close()
    page.get_by_role("button", name="Forget the token").click()
    assert page.locator("#estimate").count() == 0
    assert page.evaluate("sessionStorage.length") == 0
    page.reload()
    page.get_by_label("The token that").wait_for()
    assert page.complaints == []


def test_token_in_the_fragment_is_used_and_removed(browser, analyst, aggregator):
    page = browser.new_page(analyst)
    requests = []

    def keep(request):  # Playwright cannot wrap a built-in method such as list.append
        requests.append(request)

    page.on("request", keep)
    page.goto(f"{aggregator.url}#token={aggregator.token}")
    page.get_by_role("link", name=LUNCH.title).click()
    learned(page)
    assert "token" not in page.url
    assert aggregator.token not in page.content()
    for request in requests:
        assert aggregator.token not in request.url
        assert aggregator.token not in request.headers.get("referer", "")
    page.reload()
    learned(page)
    page.close()


# --- keeping up -----------------------------------------------------------------------------------


@pytest.fixture
def growing(aggregator, request):
    """A survey that only this test uses, so that its numbers may change; 3,000 reports so far."""
    context = sf.HighLow(PLACES, ["clinic", "bar"], 2)
    survey = aggregator.add(sf.Survey(request.node.name[:90], context, minimum_reports=0))
    aggregator.receive(survey, np.arange(3000) % 5, 1)
    return survey


def test_new_reports_appear_and_the_focus_stays(show_all, aggregator, growing):
    page = show_all(growing)
    page.locator("#surveys a[aria-current]").focus()
    aggregator.receive(growing, np.arange(2000) % 5, 2)
    look_again(page)
    lead(page).get_by_text("5,000 reports").wait_for()
    assert page.evaluate("document.activeElement.hash") == f"#{growing.fingerprint}"
    requests = sum("/results" in request.url for request in page.requests)
    look_again(page)
    page.wait_for_timeout(200)
    assert (
        sum("/results" in request.url for request in page.requests) == requests
    )  # nothing new, so no request
    assert page.complaints == []


def test_search_and_order_survive_new_reports(show_all, aggregator, growing):
    page = show_all(growing)
    unfold(page, "numbers")
    page.get_by_role("button", name="label").click()
    page.get_by_role("button", name="label").click()
    page.get_by_label("Search labels").fill("a")
    expected = ["park", "café", "bar"]
    assert rows(page) == expected
    first = page.locator("#rows tbody td").first.get_attribute("data-v")

    aggregator.receive(growing, np.zeros(2000, dtype=np.int64), 2)
    look_again(page)
    lead(page).get_by_text("5,000 reports").wait_for()
    assert page.get_by_label("Search labels").input_value() == "a"
    assert page.evaluate("document.activeElement.id") == "search"
    assert (
        page.locator("#rows tbody td").first.get_attribute("data-v") == first
    )  # in use: it follows later

    page.locator("#decoder").focus()
    page.locator(f"#rows tbody td:not([data-v='{first}'])").first.wait_for()
    assert page.get_by_label("Search labels").input_value() == "a"
    assert rows(page) == expected
    assert page.locator("#row-count").inner_text() == "3 of 5 rows"
    assert page.locator("#rows th[scope=col]").first.get_attribute("aria-sort") == "descending"
    page.get_by_label("Search labels").fill("")
    assert len(rows(page)) == 5


def test_parts_stay_open_when_new_reports_arrive(show_all, aggregator, growing):
    page = show_all(growing)
    unfold(page, "fakes")
    aggregator.receive(growing, np.arange(2000) % 5, 2)
    look_again(page)
    lead(page).get_by_text("5,000 reports").wait_for()
    page.locator("#decoder").focus()
    page.wait_for_timeout(100)
    assert page.locator("#fakes").get_attribute("open") is not None
    assert page.locator("#numbers").get_attribute("open") is None


def test_closed_surveys_are_marked(show_all, aggregator, growing):
    page = show_all(growing)
    entry = page.locator("#surveys li", has=page.locator(f"a[href='#{growing.fingerprint}']"))
    assert entry.locator(".mark").inner_text() == "open"
    aggregator.store.set_closed(growing.fingerprint)
    look_again(page)
    entry.locator(".mark", has_text="closed").wait_for()
    assert entry.locator("a").get_attribute("aria-current") == "page"


# --- asking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "survey", [LUNCH, pytest.param(GRID, marks=pytest.mark.slow)], ids=["lunch", "grid"]
)
def test_changes_match_python(show_all, aggregator, survey):
    page = show_all(survey)
    days = [NOON.date() - timedelta(days=back) for back in (13, 7, 6, 0)]
    outputs = survey.mechanism.outputs
    before, after = (
        survey.estimate(
            aggregator.store.tally_between(survey.fingerprint, outputs, *ends), decoder="unbiased"
        )
        for ends in (days[:2], days[2:])
    )
    difference = before.difference(after)
    labels = difference.labels
    expected = {str(labels[x]): "more frequent" for x in np.flatnonzero(difference.low > 0)}
    expected |= {str(labels[x]): "less frequent" for x in np.flatnonzero(difference.high < 0)}
    assert {*expected.values()} == {"more frequent", "less frequent"}
    changes = page.locator("#changes")
    shown = {
        row.locator("th").inner_text(): row.locator("td").first.inner_text()
        for row in changes.locator("tbody tr").all()
    }
    assert shown == expected
    assert (
        f"{len(expected)} of {survey.context.size} answers changed"
        in changes.inner_text().replace("\n", " ")
    )


def test_phones_show_every_number_of_the_changes(show_all):
    page = show_all(viewport={"width": 390, "height": 800})
    cells = page.locator("#changes td").all()
    assert len(cells) >= 3
    for cell in cells:
        box = cell.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= 390


def test_periods_without_reports_are_not_compared(show_all):
    page = show_all()
    page.get_by_label("Compare with").select_option("30")
    page.get_by_text("not enough reports in the last 30 days, or in the 30 days before").wait_for()
    page.get_by_label("Compare with").select_option("1")
    page.get_by_text("The last day compared with the day before").wait_for()


def test_choosing_a_decoder(show_all, aggregator):
    page = show_all()
    tally = aggregator.store.tally(LUNCH.fingerprint, LUNCH.mechanism.outputs)
    for decoder in set(DECODER_TABLE) - {"auto"}:
        page.get_by_label("Decoder").select_option(decoder)
        page.locator("#numbers", has_text=f"decoder “{decoder}”").wait_for()
        expected = LUNCH.estimate(tally, decoder=decoder).frequencies
        cells = page.locator("#rows td[data-name=frequency]").all()
        frequencies = [float(cell.get_attribute("data-v")) for cell in cells]
        np.testing.assert_allclose(sorted(frequencies), sorted(expected), rtol=1e-6)


def test_decoded_and_unbiased_estimates_are_shown_together(show_all, aggregator):
    """The section says what the chosen decoder did, stays open, and has no second copy."""
    page = show_all()
    unfold(page, "decoded")
    section = page.locator("#decoded")
    section.locator("svg:visible").wait_for()
    assert section.locator("svg:visible circle").count() == 1 + len(PLACES)
    tally = aggregator.store.tally(LUNCH.fingerprint, LUNCH.mechanism.outputs)
    summary = LUNCH.estimate(tally).model_summary
    assert f": {summary}." in section.inner_text()
    page.get_by_label("Decoder").focus()  # a part that has the focus is not replaced
    page.get_by_label("Decoder").select_option("likelihood")
    page.locator("#decoded", has_text="decoder “likelihood”").wait_for()
    assert "behind it" not in section.inner_text()
    assert section.locator("svg:visible").count() == 1
    page.get_by_label("Decoder").select_option("unbiased")
    page.locator("#numbers", has_text="“unbiased”").wait_for()
    assert section.count() == 0


def test_grids_have_a_map(show_all, aggregator):
    page = show_all(GRID)
    page.locator("#map svg:visible").wait_for()
    tally = aggregator.store.tally(GRID.fingerprint, GRID.mechanism.outputs)
    largest = page.evaluate(
        """() => {
          const map = document.querySelector("#map .map");
          const bytes = Uint8Array.from(atob(map.dataset.cells), (c) => c.charCodeAt(0));
          return Math.max(...new Float32Array(bytes.buffer).slice(0, 200));
        }"""
    )
    assert largest == pytest.approx(GRID.estimate(tally).frequencies.max(), rel=1e-3)
    page.locator("#map svg:visible").hover()
    assert "95% interval" in page.locator("#map .reading").inner_text()
    assert page.complaints == []


def test_too_few_reports_show_a_message(show, aggregator):
    page = show(FEW)
    enter(page, aggregator.token)
    page.locator(
        "#problem", has_text="This survey needs at least 1000 reports; there are 3."
    ).wait_for()
    assert page.locator("#estimate").count() == 0
    look_again(page)
    page.wait_for_timeout(200)
    assert page.locator("#problem").is_visible()
    page.get_by_role("link", name="Where did you have lunch?").click()
    learned(page)
    assert page.locator("#problem").is_hidden()
    assert unexpected(page) == []


def test_surveys_switch_by_link_address_and_history(show_all):
    page = show_all()
    page.get_by_role("link", name="Where are you?").click()
    certified(page, GRID)
    learned(page)
    assert page.title() == "Where are you? – Sfumato aggregator"
    assert page.locator("[aria-current]").all_inner_texts() == ["Where are you?"]
    assert page.locator("#map").count() == 1
    page.evaluate("(fingerprint) => { location.hash = fingerprint; }", ODD.fingerprint)
    certified(page, ODD)
    page.go_back()
    certified(page, GRID)
    page.go_back()
    certified(page, LUNCH)
    learned(page)
    assert page.locator("#map").count() == 0
    assert page.locator("h2.title").inner_text() == LUNCH.title
    assert page.locator("[aria-current]").all_inner_texts() == [LUNCH.title]
    assert page.complaints == []


def test_hostile_labels_are_text(show_all):
    page = show_all(ODD)
    assert page.locator("h2.title").inner_text() == HOSTILE
    unfold(page, "numbers")
    assert HOSTILE in rows(page)
    assert page.locator("#surveys a", has_text="alert(1)").inner_text() == HOSTILE
    assert (
        page.evaluate("document.querySelectorAll('main img, main script, a[href*=example]').length")
        == 0
    )
    assert page.complaints == []


# --- trouble --------------------------------------------------------------------------------------


def test_read_only_store_is_shown(show, aggregator, monkeypatch):
    page = show()
    assert page.locator("#health").inner_text() == "running and able to write"

    def down():
        raise StoreUnavailable("the store is down for a test.")

    monkeypatch.setattr(aggregator.store, "ping", down)
    time.sleep(1.1)  # the aggregator looks at its store once a second
    look_again(page)
    page.get_by_text("running, but unable to write").wait_for()
    monkeypatch.undo()
    time.sleep(1.1)
    look_again(page)
    page.get_by_text("running and able to write").wait_for()


def test_unreachable_aggregator_is_shown_until_it_is_back(show_all):
    page = show_all(locale="en")
    page.context.set_offline(True)
    page.clock.fast_forward(60_000)
    page.get_by_text("not reachable").wait_for()
    page.get_by_text("The aggregator cannot be reached.").wait_for()
    assert page.locator("#estimate").is_visible()
    page.context.set_offline(False)
    look_again(page)
    page.get_by_text("running and able to write").wait_for()
    page.locator("#problem", has_text="reached").wait_for(state="hidden")
    assert unexpected(page) == []


@pytest.mark.parametrize("view", ["promise", "certificate"])
def test_failed_parts_are_retried(browser, aggregator, view):
    page = browser.new_page()
    page.clock.install()
    page.route(
        f"**/{view}",
        lambda route: route.fulfill(status=503, json={"detail": "The store sleeps."}),
        times=1,
    )
    page.goto(f"{aggregator.url}#{LUNCH.fingerprint}")
    page.wait_for_timeout(300)
    assert page.locator("#certificate").count() == 0
    look_again(page)
    certified(page, LUNCH)
    page.locator("#loading").wait_for(state="hidden")
    assert page.locator("#promise").is_visible()


def test_without_storage_the_token_lasts_as_long_as_the_page(browser, aggregator):
    page = browser.new_page()
    page.add_init_script(
        "Object.defineProperty(window, 'sessionStorage', { get() { throw new Error('denied'); } })"
    )
    page.goto(aggregator.url)
    enter(page, aggregator.token)
    learned(page)
    assert page.complaints == []


def test_empty_aggregator_says_how_to_add_a_survey(browser, tmp_path):
    with run_aggregator(tmp_path) as empty:
        page = browser.new_page()
        page.goto(empty.url)
        page.get_by_text("None yet").wait_for()
        assert page.locator("#loading").is_hidden()
        page.close()


# --- people ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "survey", [LUNCH, pytest.param(GRID, marks=pytest.mark.slow)], ids=["lunch", "grid"]
)
def test_dashboard_is_accessible(show, aggregator, survey):
    page = show(survey)
    assert accessibility_violations(page) == []
    enter(page, aggregator.token)
    learned(page)
    assert accessibility_violations(page) == []


def test_report_page_is_accessible(browser, tmp_path, hostile):
    file = tmp_path / "report.html"
    file.write_text(
        report_page(hostile.survey, hostile.estimate, hostile.certificate), encoding="utf-8"
    )
    page = browser.new_page()
    page.goto(file.as_uri())
    page.locator("#shares svg:visible").wait_for()
    assert accessibility_violations(page) == []


def test_page_fits_its_width(show_all):
    page = show_all(viewport={"width": 360, "height": 700})
    for survey in (LUNCH, GRID, ODD):
        page.evaluate("(fingerprint) => { location.hash = fingerprint; }", survey.fingerprint)
        certified(page, survey)
        learned(page)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_page_works_from_the_keyboard(show, aggregator):
    page = show()
    page.locator("body").click(position={"x": 2, "y": 2})
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "secret":
            break
    page.keyboard.type(aggregator.token)
    page.keyboard.press("Enter")
    learned(page)
    page.locator("#forget").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.links') !== null")
    for _ in range(2):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "decoder"
    page.keyboard.press("ArrowDown")
    second = list(DECODER_TABLE)[1]
    page.locator("#numbers", has_text=f"“{second}”").wait_for()
