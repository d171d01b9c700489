"""The try page in a real browser: it matches Python's numbers, and sends one report."""

import itertools
import json
import re
import shutil

import numpy as np
import pytest

pytest.importorskip("fastapi")

import sfumato as sf
from sfumato.domains.partitions import grid_tiles
from sfumato.pages import static
from sfumato.survey import Question
from support.browser import (
    NOON,
    accessibility_violations,
    external_requests,
    run_aggregator,
    uploads,
)
from support.survey_results import HOSTILE

MANY = [f"town {x}" for x in range(1990)] + [
    "<script>alert(1)</script>",
    '"quoted"',
    "it's",
    "שלום עולם",
    "&amp;",
    "a,b",
    "7",
    "<b>",
    "🦊",
    "last",
]


def surveys():
    lunch = sf.HighLow(["park", "café", "clinic", "bar", "office"], ["clinic", "bar"], 1)
    grid = sf.GridDomain(0, 5, 10, 20, 0.5)
    return {
        "list": sf.Survey(
            "try-list", lunch, title="Where did you have lunch?", text="One question, once."
        ),
        "box": sf.Survey("try-box", sf.Uniform(MANY, 2), title="Which town?"),
        "map": sf.Survey(
            "try-map", sf.Blocks(grid_tiles(grid, 2, 4), 1, domain=grid), title="Where are you?"
        ),
        "hostile": sf.Survey(
            "try-hostile", sf.Uniform([HOSTILE, "<b>bold</b>", "שלום", "$x^2$"], 1), title=HOSTILE
        ),
        "clear": sf.Survey("try-clear", sf.Uniform(["yes", "no"], "inf")),
        "one": sf.Survey("try-one", sf.Uniform(["all"], 1)),
        "mixed": sf.Survey(
            "try-mixed", sf.Blocks({"park": "free time", "bar": "free time", "clinic": "health"}, 1)
        ),
        "many": sf.Survey("try-many", sf.HighLow(MANY, MANY[:2], 1)),
        "edition 2": sf.Survey(
            "try-edition-2",
            Question("place", lunch),
            repeat={"every": "week", "distinct": 2},
            edition=2,
        ),
    }


SURVEYS = surveys()


@pytest.fixture(scope="module")
def aggregator(tmp_path_factory):
    with run_aggregator(tmp_path_factory.mktemp("store")) as server:
        for survey in SURVEYS.values():
            server.add(survey)
        yield server


@pytest.fixture
def show(browser, aggregator):
    """Open the try page of a survey, ready to pick an answer."""

    def open_page(case, person=None, **options):
        page = browser.new_page(person, **options)
        page.goto(f"{aggregator.url}try/{SURVEYS[case].fingerprint}")
        page.locator("#choice").wait_for()
        return page

    return open_page


def pick(page, case):
    """Pick an answer: symbol 2 if there is one."""
    if case in ("box", "many"):
        page.get_by_label("one of").fill("town 2")
    elif case == "map":
        page.get_by_label("Latitude").fill("0.25")
        page.get_by_label("Longitude").fill("11.25")
    else:
        radios = page.get_by_role("radio")
        radios.nth(min(2, radios.count() - 1)).check()
    page.locator("#seen").wait_for()


def percents(text):
    return [float(found) for found in re.findall(r"([\d.]+)%", text)]


def bars(page):
    """Map the name of each row of the picture to its shares in percent."""
    rows = page.locator("#bars tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    return {name: percents(shares) for name, shares in rows}


def plain(text):
    """Remove the marks that isolate writing directions."""
    return text.replace("\u2068", "").replace("\u2069", "")


# --- picking --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["list", "box", "map", "hostile", "clear", "one"])
def test_every_kind_of_choice_works_without_errors_or_outside_requests(show, aggregator, case):
    page = show(case)
    pick(page, case)
    survey = SURVEYS[case]
    label = survey.context.domain.labels[min(2, survey.context.size - 1)]
    assert plain(page.locator("#answer").inner_text()) == f"“{label}”"
    assert page.locator("#outputs").inner_text() == f"{survey.mechanism.outputs:,}"
    page.get_by_role("button", name="Roll 1,000 times").click()
    assert uploads(page) == []
    page.get_by_role("button", name="Send one report").click()
    page.get_by_text("Counted.").wait_for()
    assert page.complaints == []
    assert external_requests(page, aggregator.url) == []


def test_typed_answers_must_be_labels(show):
    page = show("box")
    box = page.get_by_label("one of")
    for text in ("town", "town 1990", "", "Town 3"):
        box.fill(text)
        assert page.locator("#seen").is_hidden()
    for text in ("town 3", "<script>alert(1)</script>", "שלום עולם", "7", '"quoted"', "🦊"):
        box.fill(text)
        assert plain(page.locator("#answer").inner_text()) == f"“{text}”"
    box.fill("nowhere")
    assert page.locator("#seen").is_hidden()
    assert page.locator("#send").is_hidden()
    assert page.locator("#suggested option").count() == 2000


def test_clicks_and_typed_positions_pick_the_same_cell(show):
    page = show("map", viewport={"width": 800, "height": 700})
    canvas = page.locator("canvas")
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] * 0.725, "y": box["height"] * 0.25})
    assert float(page.get_by_label("Latitude").input_value()) == pytest.approx(3.75, abs=0.02)
    assert float(page.get_by_label("Longitude").input_value()) == pytest.approx(17.25, abs=0.02)
    assert plain(page.locator("#answer").inner_text()) == "“3.5,17”"
    page.get_by_label("Latitude").fill("3.51")
    page.get_by_label("Longitude").fill("17.49")
    assert plain(page.locator("#answer").inner_text()) == "“3.5,17”"
    for text in ("5.01", "", "-0.1"):
        page.get_by_label("Latitude").fill(text)
        assert page.locator("#seen").is_hidden()


def test_hostile_labels_are_text(show):
    page = show("hostile")
    pick(page, "hostile")
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator(".option span").first.inner_text() == HOSTILE
    page.get_by_label("Someone hesitates").select_option("0")
    assert f"“{HOSTILE}”" in plain(page.locator("#conclusion").inner_text())
    assert page.evaluate("document.querySelectorAll('img, script:not([src])').length") == 0
    assert page.complaints == []


# --- the numbers ----------------------------------------------------------------------------------


def test_bars_match_python(show):
    page = show("list")
    Q = SURVEYS["list"].mechanism.matrix()
    for answer, other in itertools.permutations(range(5), 2):
        page.get_by_role("radio").nth(answer).check()
        page.get_by_label("Someone hesitates").select_option(str(other))
        is_possible = Q[[answer, other]].any(axis=0)
        shown = bars(page)
        assert [*shown] == [f"report {y}" for y in np.flatnonzero(is_possible)]
        probabilities = np.array([*shown.values()]) / 100
        np.testing.assert_allclose(probabilities, Q[[answer, other]].T[is_possible], atol=0.0005)
        note = page.locator("#omitted")
        omitted = int((~is_possible).sum())
        assert note.is_visible() == (omitted > 0)
        assert f"{omitted} other report" in note.text_content()


def test_conclusion_follows_bayes_rule(show):
    page = show("list")
    pick(page, "list")  # clinic
    Q = SURVEYS["list"].mechanism.matrix()
    seen = set()
    for _ in range(20):
        y = int(page.locator("#report").inner_text())
        own, other = (float(Q[x, y]) for x in (2, 0))  # the first other is park
        words = plain(page.locator("#conclusion").inner_text())
        assert f"“clinic”, this report is sent with probability {100 * own:.1f}%" in words
        whole = round(100 * own / (own + other))
        assert f"now says {whole}:{100 - whole}, and no report can say more than 73:27." in words
        seen.add(y)
        page.get_by_role("button", name="Roll again").click()
    assert seen <= {y for y in range(5) if Q[2, y] > 0}


@pytest.mark.parametrize("case", ["box", "map"])
def test_many_reports_are_grouped(show, case):
    page = show(case)
    pick(page, case)
    other = 1 if case == "box" else 3
    page.get_by_label("Someone hesitates").select_option(str(other))
    page.get_by_role("button", name="Roll 1,000 times").click()
    mechanism = SURVEYS[case].mechanism
    own, theirs = (np.array(mechanism.integer_row(x)) / mechanism.denominator for x in (2, other))
    sides = [own > theirs, (own == theirs) & (own > 0), own < theirs]
    shown = list(bars(page).values())
    expected = [(own[side].sum(), theirs[side].sum()) for side in sides if side.any()]
    np.testing.assert_allclose(
        [row[:2] for row in shown], 100 * np.array(expected), rtol=0.02, atol=0.06
    )
    assert sum(row[2] for row in shown) == pytest.approx(100, abs=0.2)


def test_thousand_rolls_are_near_the_row(show):
    """Five standard deviations of 1,001 draws, for each of two reports."""
    page = show("list")
    pick(page, "list")
    page.get_by_role("button", name="Roll 1,000 times").click()
    assert "1,001 rolls" in page.locator("#drawn-key").inner_text()
    for own, _, rolled in bars(page).values():
        deviation = 100 * np.sqrt(own / 100 * (1 - own / 100) / 1001)
        assert abs(rolled - own) <= 5 * deviation + 0.1
    page.get_by_role("button", name="Roll 1,000 times").click()
    assert "2,001 rolls" in page.locator("#drawn-key").inner_text()
    page.get_by_role("button", name="Roll again").click()
    assert page.locator("#drawn-key").is_hidden()


def test_page_says_if_nothing_is_promised(show):
    page = show("clear")
    page.get_by_role("radio").first.check()
    assert (
        "promises nothing: this report tells them apart" in page.locator("#conclusion").inner_text()
    )
    assert list(bars(page).values()) == [[100, 0], [0, 100]]


# --- sending --------------------------------------------------------------------------------------


def test_sending_again_sends_nothing_new(show, browser, aggregator):
    person = browser.new_person()
    page = show("list", person)
    pick(page, "list")
    before = sum(aggregator.counts(SURVEYS["list"]))
    send = page.get_by_role("button", name="Send one report")
    send.click()
    page.get_by_text("Counted.").wait_for()
    shown = page.locator("#body").inner_text()
    assert [request.post_data for request in uploads(page)] == [shown]
    assert len(json.loads(shown)["reports"]) == 1
    page.get_by_role("radio").first.check()
    send.click()
    send.and_(page.locator(":enabled")).wait_for()
    assert page.locator("#body").inner_text() == shown
    later = show("list", person)
    pick(later, "list")
    later.get_by_role("button", name="Send one report").click()
    later.get_by_text("Counted.").wait_for()
    assert "keeps no copy" in later.locator("#body").inner_text()
    assert uploads(later) == []
    assert len(uploads(page)) == 1
    assert sum(aggregator.counts(SURVEYS["list"])) == before + 1


def test_a_report_of_edition_2_carries_its_period(browser, aggregator):
    page = browser.new_page()
    page.clock.set_fixed_time(NOON)
    page.goto(f"{aggregator.url}try/{SURVEYS['edition 2'].fingerprint}")
    # A repeated survey needs storage that lasts, which a browser without a person does not grant.
    page.evaluate("() => { navigator.storage.persist = async () => true; }")
    pick(page, "edition 2")
    page.get_by_role("button", name="Send one report").click()
    page.get_by_text("Counted.").wait_for()
    assert page.complaints == []
    assert sum(aggregator.counts(SURVEYS["edition 2"])) == 1
    shown = json.loads(page.locator("#body").inner_text())
    assert (shown["format"], shown["period"]) == (2, "2026-W46")
    assert shown["survey"] == SURVEYS["edition 2"].fingerprint[:32]


def test_offline_reports_wait(show, browser, aggregator):
    person = browser.new_person()
    page = show("clear", person)
    page.clock.install()
    page.get_by_role("radio").first.check()
    before = sum(aggregator.counts(SURVEYS["clear"]))
    person.set_offline(True)
    page.get_by_role("button", name="Send one report").click()
    for _ in range(60):  # the client tries for ten seconds before it says so
        if page.get_by_text("out of reach").is_visible():
            break
        page.clock.run_for(1000)
    page.get_by_text("out of reach").wait_for()
    assert sum(aggregator.counts(SURVEYS["clear"])) == before
    person.set_offline(False)
    aggregator.wait_for_reports(SURVEYS["clear"], before + 1)


def test_closed_survey_shows_a_message(show, browser, aggregator):
    survey = aggregator.add(sf.Survey("try-closed", sf.Uniform(["yes", "no"], 1)))
    aggregator.store.set_closed(survey.fingerprint)
    page = browser.new_page()
    page.goto(f"{aggregator.url}try/{survey.fingerprint}")
    page.get_by_role("radio").first.check()
    page.get_by_role("button", name="Send one report").click()
    page.get_by_text(
        "This survey is closed, or this site does not have it. Nothing was counted."
    ).wait_for()
    assert aggregator.counts(survey) == [0, 0]


def test_denied_storage_shows_a_message_and_sends_nothing(show):
    page = show("list")
    pick(page, "list")
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('denied'); }; }")
    page.get_by_role("button", name="Send one report").click()
    page.get_by_text("storage is blocked, full or not persistent. Nothing was sent.").wait_for()
    assert page.locator("#body").is_hidden()
    assert uploads(page) == []


# --- what is not protected ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("list", "These answers are sent as they are: park, café, office."),
        ("map", "A report may show which group of answers yours belongs to."),
        ("clear", "Every answer is sent as it is."),
        (
            "mixed",
            "These answers are sent as they are: clinic. "
            "A report may show which group of answers yours belongs to.",
        ),
        ("many", f"These answers are sent as they are: {', '.join(MANY[2:32])} and 1,968 more."),
    ],
)
def test_disclosure_is_above_the_button(show, case, sentence):
    page = show(case)
    pick(page, case)
    disclosure = page.locator("#open")
    button = page.locator("#post")
    assert plain(disclosure.inner_text()) == sentence
    assert disclosure.bounding_box()["y"] < button.bounding_box()["y"]


@pytest.mark.parametrize("case", ["box", "hostile", "one"])
def test_no_disclosure_if_all_is_protected(show, case):
    page = show(case)
    pick(page, case)
    assert page.locator("#open").is_hidden()


def test_spent_budget_shows_a_message_and_sends_nothing(browser, aggregator):
    person = browser.new_person()
    for i in range(5):
        survey = aggregator.add(
            sf.Survey(f"try-budget-{i}", sf.Uniform(["yes", "no", "perhaps"], 1))
        )
        page = browser.new_page(person)
        page.goto(f"{aggregator.url}try/{survey.fingerprint}")
        page.get_by_role("radio").first.check()
        page.get_by_role("button", name="Send one report").click()
        if i < 4:
            page.get_by_text("Counted.").wait_for()
            assert f"have spent ε = {i + 1} of 4" in page.locator("#spent").inner_text()
    page.get_by_text("This browser has no privacy budget left for this site").wait_for()
    assert uploads(page) == []
    assert page.locator("#receipt").inner_text().endswith("Nothing was sent.")
    assert "have spent ε = 4 of 4" in page.locator("#spent").inner_text()


def test_unreadable_ledger_leaves_the_receipt(show):
    page = show("list")
    page.evaluate(
        """async () => {
          const { Client } = await import(new URL("../static/client/core.js", location).href);
          window.asked = new Promise((resolve) => {
            Client.prototype.spent = async () => { resolve(); throw new Error("unreadable"); };
          });
        }"""
    )
    pick(page, "list")
    page.get_by_role("button", name="Send one report").click()
    page.evaluate("() => asked")
    page.get_by_text("Counted.").wait_for()
    assert page.locator("#spent").is_hidden()


def test_every_client_error_has_a_sentence(show):
    page = show("list")
    sentences = page.evaluate(
        """async () => {
          const client = await import(new URL("../static/client/core.js", location).href);
          const url = new URL("../static/try/explain.js", location);
          const { problemSentence } = await import(url.href);
          const errors = Object.values(client).filter((one) => one.prototype instanceof Error);
          const all = [...errors.map((one) => new one("")), new TypeError("")];
          return Object.fromEntries(all.map((error) => [error.name, problemSentence(error)]));
        }"""
    )
    unknown = sentences.pop("TypeError")
    assert "Something went wrong" in unknown
    assert sentences.pop("InvalidSymbols") == unknown  # an error of the page's author
    assert len(sentences) == 11
    assert all(
        sentence.endswith(".") and "Something went wrong" not in sentence
        for sentence in sentences.values()
    )


def test_missing_survey_shows_a_message(browser, aggregator):
    page = browser.new_page()
    page.route("**/v1/surveys/*", lambda route: route.fulfill(status=404, body="{}"))
    page.goto(f"{aggregator.url}try/{SURVEYS['list'].fingerprint}")
    page.get_by_text("This survey is closed, or this site does not have it.").wait_for()


def test_only_scripts_of_the_client_are_served(tmp_path, monkeypatch):
    """Other files in the client's folders, such as .DS_Store, are not served and do no harm."""
    copied = tmp_path / "javascript"
    shutil.copytree(static._client_folder(), copied)
    expected = static.static_files()
    for name in (".DS_Store", "modules/.DS_Store", "modules/tables.js~", "modules/notes"):
        (copied / name).write_bytes(b"")
    monkeypatch.setattr(static, "_client_folder", lambda: copied)
    assert static.static_files.__wrapped__() == expected


# --- people ---------------------------------------------------------------------------------------


def test_page_works_from_the_keyboard(show, aggregator):
    page = show("list")
    before = sum(aggregator.counts(SURVEYS["list"]))
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    assert plain(page.locator("#answer").inner_text()) == "“café”"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "again"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#drawn-key").is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert plain(page.locator("#other-name").inner_text()) == "“clinic”"
    page.keyboard.press("Tab")  # the picture, which can be scrolled
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "post"
    page.keyboard.press("Enter")
    page.get_by_text("Counted.").wait_for()
    assert sum(aggregator.counts(SURVEYS["list"])) == before + 1


@pytest.mark.parametrize("case", ["list", "box", "map"])
def test_page_is_accessible(show, case):
    page = show(case)
    pick(page, case)
    page.get_by_role("button", name="Roll 1,000 times").click()
    page.get_by_role("button", name="Send one report").click()
    page.get_by_text("Counted.").wait_for()
    assert accessibility_violations(page) == []


@pytest.mark.parametrize("case", ["list", "box", "map", "hostile"])
def test_page_fits_its_width(show, case):
    page = show(case, viewport={"width": 360, "height": 700})
    pick(page, case)
    page.get_by_role("button", name="Roll 1,000 times").click()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_page_links_to_an_accessible_label(show, aggregator):
    page = show("list")
    page.get_by_role("link", name="privacy label").click()
    page.wait_for_url(f"**/label/{SURVEYS['list'].fingerprint}")
    assert page.locator("h1").inner_text() == "Where did you have lunch?"
    assert page.complaints == []
    assert external_requests(page, aggregator.url) == []
    assert accessibility_violations(page) == []
