"""The playground in a real browser: it draws, reacts, sends no requests and matches Python."""

import importlib.util
import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest

from support.paths import ROOT

pytest.importorskip("sphinx")

import sfumato as sf
from sfumato.codes import RandomizedCode
from sfumato.designer.bounds import ye_barg_bound
from sfumato.planning.predict import UnbiasedForecast
from sfumato.planning.target import Target
from sfumato.promises import error_region

FEW = "park, open\ncafé, open\noffice, open\nbar, sensitive\nclinic, secret"
STREETS = "Rue A, Paris\nVia D, Rome\nRue B, Paris\nRue C, Paris\nVia E, Rome\nGasse G, Wien"
HOSTILE = (
    '"a ""quoted"" one, with a comma"\n'
    "<img src=x onerror=alert(1)>, open\nC:\\new\\table\nnaïve 🦊 = 1, open"
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Build the playground's folder as the documentation does."""
    spec = importlib.util.spec_from_file_location("conf_of_the_docs", ROOT / "docs" / "conf.py")
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)
    folder = tmp_path_factory.mktemp("site")
    conf.lay_out_playground(
        SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=folder), None
    )
    return folder


@pytest.fixture(scope="session")
def address(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/playground/"
        server.shutdown()
        thread.join()


@pytest.fixture
def show(chromium, address):
    """Open the playground, and record its errors and requests."""
    contexts = []

    def opened(text=FEW, kind="tiers", **options):
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        page.complaints = []
        page.requests = []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(address)
        page.get_by_text("checked in your browser: keeps E").wait_for()
        page.get_by_label("Labels, one per line").fill(text)
        page.locator(f"input[value={kind}]").check()
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()


def settle(page):
    """Wait until the page shows what was typed: the client uses promises, never timers."""
    page.evaluate("new Promise((done) => setTimeout(done, 60))")
    page.locator("#seen:not(.stale)").wait_for()


def set_epsilon(page, name, value):
    page.get_by_label(f"{name}, as a number").fill(value)
    settle(page)


def state(page):
    """Return the numbers that the page shows: E, Q, and the survey that the client read."""
    shown = page.evaluate(
        """import("./page.js").then(({ shown }) => ({
          E: shown.E.map((row) => row.map((e) => (e === Infinity ? "inf" : e))), Q: shown.Q,
          resolved: shown.resolved, checked: shown.survey.checked, kind: shown.promise.kind }))"""
    )
    E = np.array([[float(entry) for entry in row] for row in shown["E"]])
    return SimpleNamespace(**{**shown, "E": E, "Q": np.array(shown["Q"])})


def loaded(tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return sf.Survey.load(file)


def of_toml(page, tmp_path):
    return loaded(tmp_path, "survey.toml", page.locator("#toml").inner_text())


def of_page(page, tmp_path):
    """Read the playground's survey in Python."""
    return loaded(tmp_path, "survey.json", state(page).resolved)


# --- what is promised and drawn -------------------------------------------------------------------


def one_report_per_label(mechanism):
    """Order the columns of Q so that column x is the report that x sends more than any other."""
    Q = mechanism.matrix()
    return Q[:, np.argsort(Q.argmax(axis=0))]


CASES = {
    "uniform": (FEW, "uniform", {"ε": "0.7"}, sf.PlainResponse),
    "high-low": (
        "a\nb, open\nc\nd, open\ne",
        "tiers",
        {"ε of sensitive labels": "1.25"},
        sf.HighLowResponse,
    ),
    "tiers": (
        FEW,
        "tiers",
        {"ε of sensitive labels": "2", "ε of secret labels": "0.25"},
        sf.GroupResponse,
    ),
    "blocks": (STREETS, "blocks", {"ε inside blocks": "1.5"}, sf.BlockResponse),
}


@pytest.mark.parametrize("case", [*CASES])
def test_matrices_match_python_and_the_toml_file(show, tmp_path, case):
    text, kind, epsilons, frame = CASES[case]
    page = show(text, kind)
    for name, value in epsilons.items():
        set_epsilon(page, name, value)
    shown = state(page)
    survey = of_toml(page, tmp_path)
    assert (shown.kind, shown.checked) == (case, "whole")
    np.testing.assert_array_equal(shown.E, survey.context.matrix())
    own = of_page(page, tmp_path)
    assert own.context.to_record() == survey.context.to_record()
    assert 0 <= own.certify().slack < 1e-7
    np.testing.assert_allclose(shown.Q, own.mechanism.matrix(), rtol=1e-15)
    np.testing.assert_allclose(
        shown.Q, one_report_per_label(frame(survey.context, RandomizedCode)), atol=1e-8
    )
    survey.certify()


@pytest.mark.parametrize(
    ("inside", "across", "frame"),
    [
        ("1", "3", sf.GroupResponse),
        ("2", "2", sf.GroupResponse),
        ("0.05", "0.4", sf.GroupResponse),
        ("4", "0.5", None),
    ],
)
def test_blocks_with_a_promise_across(show, tmp_path, inside, across, frame):
    page = show(STREETS, "blocks")
    page.get_by_label("A report may show the block").uncheck()
    set_epsilon(page, "ε inside blocks", inside)
    set_epsilon(page, "ε across blocks", across)
    shown = state(page)
    survey = of_toml(page, tmp_path)
    np.testing.assert_array_equal(shown.E, survey.context.matrix())
    own = of_page(page, tmp_path)
    assert 0 <= own.certify().slack < 1e-7
    assert own.context.to_record() == survey.context.to_record()
    # Without anything to gain by blocks, randomised response at the smallest ε.
    expected = (
        frame(survey.context, RandomizedCode)
        if frame
        else sf.PlainResponse(sf.Uniform(6, across), RandomizedCode)
    )
    np.testing.assert_allclose(shown.Q, one_report_per_label(expected), atol=1e-8)
    assert ("smallest ε" in page.locator("#how").inner_text()) == (frame is None)


def test_hostile_labels_are_text_on_the_page_and_in_the_toml_file(show, tmp_path):
    page = show(HOSTILE)
    survey = of_toml(page, tmp_path)
    labels = [
        'a "quoted" one, with a comma',
        "<img src=x onerror=alert(1)>",
        "C:\\new\\table",
        "naïve 🦊 = 1",
    ]
    assert list(survey.context.domain.labels) == labels
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert page.locator("#tier-list span").all_inner_texts() == labels
    assert page.complaints == []


def test_many_promises_are_kept_and_a_broken_table_is_rejected(show):
    page = show()
    outcome = page.evaluate(
        """(async () => {
          const { Survey } = await import("./client/index.js");
          const { channelOf, tableRows } = await import("./channel.js");
          const { promiseOf } = await import("./promise.js");
          const { resolvedText } = await import("./resolved.js");
          const verdict = async (promise, rows) => {
            try { return (await Survey.of(resolvedText("net", promise, rows))).checked; }
            catch (problem) { return problem.name; }
          };
          const kept = [];
          for (const size of [2, 3, 24]) for (const kind of ["uniform", "tiers", "blocks"])
            for (const first of ["0.01", "1", "10"])
            for (const second of ["0.01", "0.6", "10", "inf"]) {
              const group = (x) => ["a", "b", "open"][x % 3];
              const row = (_, x) => ({ label: `${x}`, group: group(x) });
              const rows = Array.from({ length: size }, row);
              const other = second === "inf" ? "3" : second;
              const epsilons = new Map([["", first], ["a", first], ["b", other]]);
              const promise = promiseOf(rows, { kind, epsilons, across: second });
              kept.push(await verdict(promise, tableRows(channelOf(promise).Q)));
            }
          const rows = ["a", "b", "c"].map((label) => ({ label, group: "" }));
          const alike = (epsilon) =>
            promiseOf(rows, { kind: "uniform", epsilons: new Map([["", epsilon]]) });
          const [meant, loud] = ["1", "1.00001"].map(alike);
          return { kept, loud: await verdict(meant, tableRows(channelOf(loud).Q)) };
        })()"""
    )
    assert len(outcome["kept"]) == 108
    assert set(outcome["kept"]) == {"whole"}
    assert outcome["loud"] == "PrivacyViolation"


# --- numbers --------------------------------------------------------------------------------------


def people(page):
    rows = page.locator("#crowds li").all()
    return [int(row.locator(".number").inner_text().replace(",", "")) for row in rows]


def needed(one_person, error):
    return max(int(np.ceil((one_person / error) ** 2 * (1 - 1e-12))), 1)


@pytest.mark.parametrize("case", [*CASES])
def test_people_needed_match_python(show, tmp_path, case):
    text, kind, epsilons, _ = CASES[case]
    page = show(text, kind)
    for name, value in epsilons.items():
        set_epsilon(page, name, value)
    own = of_page(page, tmp_path)
    k = own.context.size
    p = np.full(k, 1 / k)
    assert isinstance(own.mechanism, sf.TableResponse)
    floor = ye_barg_bound(
        k, float(own.context.exact_minimum)
    )  # the least Σ_x σ_x²; all σ_x are the same
    in_clear = np.sqrt((k - 1) / k**2)
    page.get_by_label("at most, in percent").fill("2.5")

    worst = np.sqrt(own.mechanism.scores.variances(p, 1).max())
    assert people(page) == [needed(sigma, 0.025) for sigma in (in_clear, worst, np.sqrt(floor / k))]
    page.locator("#measure").select_option("tv")
    tv = UnbiasedForecast.for_target(own.mechanism, Target("tv", 0.95, p)).mean_error
    assert people(page)[1:] == [
        needed(tv, 0.025),
        needed(np.sqrt(2 / np.pi) * np.sqrt(floor * k) / 2, 0.025),
    ]


def test_simple_channels_are_not_called_the_best(show):
    page = show("\n".join(map(str, range(24))), "uniform")
    assert "its best mechanism needs" in page.locator("#needed").inner_text()
    page.get_by_label("Labels, one per line").fill("a\nb")
    settle(page)
    assert "no mechanism does better" in page.locator("#needed").inner_text()
    page.get_by_label("Labels, one per line").fill(
        "\n".join(f"{x}, {'open' if x % 4 else 's'}" for x in range(24))
    )
    page.locator("input[value=tiers]").check()
    settle(page)
    assert "times as many" in page.locator("#needed").inner_text()
    _, own, classical = people(page)
    assert own < classical
    page.get_by_label("Labels, one per line").fill(
        "\n".join(f"{x}, {'t' if x % 4 else 's'}" for x in range(24))
    )
    settle(page)
    _, own, classical = people(page)
    assert own > classical
    assert "simple channel" in page.locator("#needed").inner_text()


@pytest.mark.parametrize(("first", "second"), [(4, 0), (0, 4), (3, 4), (0, 1)])
def test_error_region_matches_python(show, tmp_path, first, second):
    page = show()
    page.get_by_label("The first").select_option(str(first))
    page.get_by_label("The second").select_option(str(second))
    region = error_region(of_page(page, tmp_path).mechanism, first, second)

    def drawn(kind):
        points = page.locator(f"#errors .{kind}").get_attribute("points").split()
        places = [[float(number) for number in point.split(",")] for point in points]
        return [(1 - (up - 10) / 260, (right - 44) / 260) for right, up in places]

    promised = [(float(fa), float(miss)) for fa, miss in region.promised]
    realised = [(float(fa), float(miss)) for fa, miss in region.realised]
    np.testing.assert_allclose(drawn("edge"), promised, atol=1e-4)
    np.testing.assert_allclose(drawn("reached"), realised, atol=1e-4)
    assert (
        page.locator("#errors").get_attribute("aria-label")
        == page.locator("#errors-told").inner_text()
    )


def test_open_promises_say_so(show, tmp_path):
    page = show("a, open\nb, open")
    assert page.locator("#how").inner_text() == "The answer itself."
    assert "Nothing is promised" in page.locator("#needed").inner_text()
    assert len(people(page)) == 2
    np.testing.assert_array_equal(of_toml(page, tmp_path).mechanism.matrix(), np.eye(2))


# --- what is typed --------------------------------------------------------------------------------


READ = [
    ("a\n\n  b  \r\nc", [["a", ""], ["b", ""], ["c", ""]]),
    ("label,tier\na,x\nb;y\nc\tz", [["a", "x"], ["b", "y"], ["c", "z"]]),
    ('"a, b", open, 7\n"say ""hi"""', [["a, b", "open"], ['say "hi"', ""]]),
    ("cafe\u0301\nb", [["caf\u00e9", ""], ["b", ""]]),
]


def test_labels_are_parsed_as_csv(show):
    page = show()
    for text, rows in READ:
        found = page.evaluate(
            f"import('./lines.js').then(({{ readLines }}) => readLines({json.dumps(text)}))"
        )
        assert [[row["label"], row["group"]] for row in found["rows"]] == rows
        assert found["problem"] == ""


SENSELESS = [
    ("alone", "at least two labels"),
    ("caf\u00e9\ncafe\u0301", "Duplicate label"),
    ("\n".join(map(str, range(25))), "up to 24 labels; you entered 25"),
    ("a\nb\u0007", "Line 2"),
]


def test_invalid_input_shows_a_message_and_keeps_the_picture(show):
    page = show()
    for text, said in SENSELESS:
        page.get_by_label("Labels, one per line").fill(text)
        page.locator("#problem", has_text=said).wait_for()
        assert page.locator("#seen.stale").count() == 1
        assert page.locator("#channel .cell").count() == 25
    page.get_by_label("Labels, one per line").fill("a\nb")
    settle(page)
    assert page.locator("#problem").is_hidden()
    assert page.locator("#channel .cell").count() == 4


def test_chosen_tiers_appear_in_the_text(show, tmp_path):
    page = show("park, open\n\nbar", viewport={"width": 1200, "height": 900})
    page.locator("#tier-list select").nth(1).select_option("secret")
    settle(page)
    assert page.get_by_label("Labels, one per line").input_value() == "park, open\n\nbar, secret"
    np.testing.assert_array_equal(of_toml(page, tmp_path).context.matrix(), [[0, np.inf], [0.5, 0]])


def test_epsilon_follows_its_slider_and_marks_invalid_values(show):
    page = show()
    page.get_by_label("ε of secret labels", exact=True).focus()
    page.keyboard.press("ArrowRight")
    settle(page)
    assert state(page).E[4, 0] == 0.6
    number = page.get_by_label("ε of secret labels, as a number")
    assert number.input_value() == "0.6"
    number.fill("-1")
    assert number.get_attribute("aria-invalid") == "true"
    assert state(page).E[4, 0] == 0.6


# --- the page -------------------------------------------------------------------------------------


def test_page_draws_without_errors_or_outside_requests(show, address):
    page = show(viewport={"width": 1200, "height": 900})
    assert page.locator("#promise .cell").all_inner_texts()[:2] == ["0", "∞"]
    assert page.locator("#asleep").count() == 0
    page.wait_for_timeout(300)
    assert page.complaints == []
    outside = [url for url in page.requests if not url.startswith((address, "data:"))]
    assert outside == []
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_client_draws_the_reports(show):
    page = show()
    page.get_by_role("button", name="Draw a report").click()
    assert page.locator("#drawn").inner_text().startswith("Report ")
    page.get_by_role("button", name="Draw 1,000").click()
    counts = [int(text) for text in page.locator("#draws .number").all_inner_texts()]
    assert sum(counts) == 1000
    assert counts[1:3] == [0, 0]  # no answer of park is reported as café or office
    page.get_by_label("The answer is").select_option("1")
    assert page.locator("#draws").is_hidden()


def test_arrow_keys_walk_grids_that_read_as_tables(show):
    page = show()
    page.locator("#channel .cell[tabindex='0']").focus()
    for key in ("ArrowDown", "End", "ArrowLeft", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    shown = state(page)
    assert (
        page.locator("#channel output").inner_text()
        == f"Q(bar | park) = {100 * shown.Q[0, 3]:.3g}%"
    )
    assert page.locator("#channel .cell[tabindex='0']").count() == 1
    page.locator("#promise .cell").nth(20).hover()
    assert (
        page.locator("#promise output").inner_text()
        == "E[clinic, park] = 0.5, odds of at most 1.65"
    )
    page.get_by_text("Show all numbers (Q)").click()
    assert page.locator("#channel table th[scope=row]").all_inner_texts() == [
        "park",
        "café",
        "office",
        "bar",
        "clinic",
    ]


def test_toml_file_is_copied_with_its_name(show, tmp_path):
    page = show(permissions=["clipboard-read", "clipboard-write"])
    page.get_by_label("Name of the survey").fill('a "name" \\ ')
    page.get_by_role("button", name="Copy the TOML").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#toml").text_content()
    assert of_toml(page, tmp_path).edition == 2
    assert of_toml(page, tmp_path).name == 'a "name" \\'
    page.get_by_label("Name of the survey").fill("a\u200bb")
    assert page.get_by_label("Name of the survey").get_attribute("aria-invalid") == "true"
    assert of_toml(page, tmp_path).name == "my-survey"


@pytest.mark.parametrize("width", [360, 700, 1280])
def test_page_fits_its_width(show, width):
    page = show(
        "\n".join(f"A rather long label number {x}, tier {x % 5}" for x in range(24)),
        viewport={"width": width, "height": 800},
    )
    assert page.locator("#channel .cell").count() == 576
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_dark_and_light_schemes_differ(show):
    page = show(color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    page.emulate_media(color_scheme="light")
    assert (dark, page.evaluate(paper)) == ("rgb(25, 24, 22)", "rgb(251, 250, 248)")


def test_every_control_has_a_name(show):
    page = show()
    nameless = page.evaluate(
        """[...document.querySelectorAll("input, select, textarea, button")].filter((control) =>
          !control.labels?.length && !control.getAttribute("aria-label")
          && !control.textContent.trim()).length"""
    )
    assert nameless == 0


def test_page_from_a_file_says_what_it_needs(chromium, site):
    page = chromium.new_page()
    page.goto((site / "playground" / "index.html").as_uri())
    assert page.locator("#asleep").is_visible()
    page.close()
