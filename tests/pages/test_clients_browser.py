"""The JavaScript client in a real browser, on a page of another origin than the aggregator's."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

pytest.importorskip("fastapi")

from visits import outside, posts, running

import sfumato as sf
from sfumato.canonical import canonical_bytes, fingerprint

PEOPLE, WITH_STORAGE = 200, 20

SETTING = """async ({ url, fingerprint, patience = 10000 }) => {
  const sfumato = await import(`${url}static/client/index.js`);
  const survey = await sfumato.Survey.load(url, { fingerprint });
  const client = new sfumato.Client(survey, { url, patience });
  Object.assign(window, { sfumato, survey, client });
  await client.resumed;
}"""
ANSWER = "(value) => client.answer(value)"
REFUSED = """async ([setting, value]) => {
  try {
    const sfumato = await import(`${setting.url}static/client/index.js`);
    const survey = await sfumato.Survey.load(setting.url, setting);
    await new sfumato.Client(survey, setting).answer(value);
    return ["nothing", ""];
  } catch (problem) {
    return [problem.name, problem.message];
  }
}"""


class Blank(BaseHTTPRequestHandler):
    """A site of somebody's own: an empty page."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"<!DOCTYPE html><title>A page of one's own</title><link rel=icon href=data:,>")

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site():
    with ThreadingHTTPServer(("127.0.0.1", 0), Blank) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def aggregator(tmp_path_factory):
    with running(tmp_path_factory.mktemp("store")) as running_one:
        yield running_one


@pytest.fixture
def survey(aggregator, request):
    """Ten answers that are told as they are: what arrives is what was answered."""
    return aggregator.ask(sf.Survey(request.node.name[:90], sf.Uniform(sf.IntegerDomain(10), "inf")))


@pytest.fixture
def visit(visits, site, aggregator, survey):
    """Open the site in a person's browser, ready to answer."""

    def visiting(person, **setting):
        page = visits.page(person)
        page.goto(site)
        page.evaluate(SETTING, {"url": aggregator.url, "fingerprint": survey.fingerprint, **setting})
        return page

    return visiting


# --- counting ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_hundred_visitors_are_counted_exactly(visits, visit, aggregator, survey):
    answers = np.random.default_rng(1).integers(0, 10, PEOPLE).tolist()
    for answer in answers[:WITH_STORAGE]:
        page = visit(visits.person())
        assert page.evaluate(ANSWER, answer)["delivered"]
        assert page.evaluate("localStorage.length") == 2
        page.context.close()
    page = visit(visits.person())
    delivered = page.evaluate(
        """([url, answers]) => Promise.all(answers.map((answer) =>
          new sfumato.Client(survey, { url, store: new Map() }).answer(answer).then(({ delivered }) => delivered)))""",
        [aggregator.url, answers[WITH_STORAGE:]],
    )
    assert delivered == [True] * (PEOPLE - WITH_STORAGE)
    assert aggregator.counts(survey) == np.bincount(answers, minlength=10).tolist()
    assert page.complaints == []


def test_a_reload_and_a_second_tab_send_nothing_new(visits, visit, aggregator, survey):
    person = visits.person()
    first = visit(person)
    kept = first.evaluate(ANSWER, 3)
    for page in (first, visit(person)):
        page.reload()
        page.evaluate(SETTING, {"url": aggregator.url, "fingerprint": survey.fingerprint})
        sent = len(posts(page))
        assert page.evaluate(ANSWER, 4)["batch"] == kept["batch"]
        assert len(posts(page)) == sent
    assert aggregator.counts(survey) == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_two_tabs_at_the_same_moment_give_one_answer(visits, visit, aggregator, survey):
    person = visits.person()
    tabs = [visit(person), visit(person)]
    for value, tab in enumerate(tabs):
        tab.evaluate("(value) => { window.answered = client.answer(value); }", value)  # nobody waits
    answered = [tab.evaluate("answered") for tab in tabs]
    assert answered[0]["batch"] == answered[1]["batch"]
    assert all(answer["delivered"] for answer in answered)
    assert sum(aggregator.counts(survey)) == 1


@pytest.mark.parametrize("then", ["the connection is back", "the page is loaded again"])
def test_what_was_answered_offline_is_counted_once_when(visits, visit, aggregator, survey, then):
    person = visits.person()
    page = visit(person, patience=0)
    person.set_offline(True)
    assert page.evaluate(ANSWER, 7) | {"batch": ""} == {
        "survey": survey.fingerprint,
        "batch": "",
        "delivered": False,
        "waiting": 1,
    }
    assert sum(aggregator.counts(survey)) == 0
    if then == "the page is loaded again":
        page.close()
        person.set_offline(False)
        page = visit(person)
    else:
        person.set_offline(False)
    aggregator.await_reports(survey, 1)
    assert page.evaluate(ANSWER, 2)["waiting"] == 0
    assert aggregator.counts(survey) == [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("told", [True, False])
def test_a_page_that_goes_away_is_counted_once(visits, visit, aggregator, survey, told):
    """Even where the next load sends it once more, because nobody heard that it was counted."""
    person = visits.person()
    page = visit(person)
    page.evaluate(
        """async (value) => {
          const prepared = await client.prepare(value);
          addEventListener("pagehide", () => prepared.beacon());
        }""",
        5,
    )
    assert posts(page) == []
    if told:
        page.goto("about:blank")
    else:
        page.close(run_before_unload=True)
    aggregator.await_reports(survey, 1)
    later = visit(person)
    assert len(posts(later)) == 1
    later.evaluate(ANSWER, 6)
    assert aggregator.counts(survey) == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("own", [True, False])
def test_a_browser_without_lasting_requests_sends_a_beacon(visits, site, aggregator, survey, own):
    """A beacon carries cookies, so that no other origin may post one; the answer then waits for the next load."""
    person = visits.person()
    page = visits.page(person)
    page.goto(f"{aggregator.url}try/{survey.fingerprint}" if own else site)
    page.evaluate("delete Request.prototype.keepalive")
    setting = {"url": aggregator.url, "fingerprint": survey.fingerprint}
    page.evaluate(SETTING, setting)
    assert page.evaluate("client.prepare(8).then((prepared) => prepared.beacon())")
    if own:
        aggregator.await_reports(survey, 1)
    page.reload()
    page.evaluate(SETTING, setting)
    assert aggregator.counts(survey) == [0, 0, 0, 0, 0, 0, 0, 0, 1, 0]


# --- refusing ---------------------------------------------------------------------------------------------------------


def refusal(page, aggregator, fingerprint, value, **options):
    """The name and the words of the error, once it is sure that nothing was sent."""
    setting = {"url": aggregator.url, "fingerprint": fingerprint, "patience": 0, **options}
    found = page.evaluate(REFUSED, [setting, value])
    assert posts(page) == []
    return found


@pytest.fixture
def opened(visits, site):
    """A tab on the site."""
    page = visits.page()
    page.goto(site)
    return page


def test_a_survey_that_is_not_there_is_refused(opened, aggregator):
    assert refusal(opened, aggregator, "0" * 64, 1)[0] == "WrongSurvey"
    assert refusal(opened, aggregator, "short", 1)[0] == "WrongSurvey"


def serve_instead(page, survey, resolved):
    page.route(
        f"**/v1/surveys/{survey.fingerprint}",
        lambda route: route.fulfill(
            body=resolved, content_type="application/json", headers={"Access-Control-Allow-Origin": "*"}
        ),
    )


def test_another_survey_than_the_pinned_one_is_refused(opened, aggregator, survey):
    other = sf.Survey("another", sf.Uniform(sf.IntegerDomain(10), "inf"))
    serve_instead(opened, survey, other.resolved())
    name, words = refusal(opened, aggregator, survey.fingerprint, 1)
    assert name == "WrongSurvey"
    assert "pinned" in words


def test_a_kind_of_mechanism_that_is_not_known_is_refused(opened, aggregator, survey):
    resolved = json.loads(survey.resolved())
    resolved["promise"]["mechanism"]["kind"] = "wishful"
    pinned = fingerprint(resolved["promise"])
    opened.route(
        "**/v1/surveys/*",
        lambda route: route.fulfill(
            body=canonical_bytes(resolved),
            content_type="application/json",
            headers={"Access-Control-Allow-Origin": "*"},
        ),
    )
    assert refusal(opened, aggregator, pinned, 1)[0] == "InvalidSurvey"


def test_a_value_outside_the_domain_is_refused_and_not_repeated(opened, aggregator, survey):
    for value in (10, -1, 2.5, "park-on-the-hill", None, [1, 2]):
        name, words = refusal(opened, aggregator, survey.fingerprint, value)
        assert name == "UnknownValue"
        assert "park-on-the-hill" not in words


DENIALS = {
    "denied": "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no'); } })",
    "missing": "Object.defineProperty(window, 'localStorage', { get: () => undefined })",
    "forgetful": "Storage.prototype.setItem = () => {}",
    "full": "localStorage.setItem('mine', 'x'.repeat(5 * 1024 * 1024 - 10))",
}


@pytest.mark.parametrize("case", [*DENIALS])
def test_without_a_storage_that_keeps_nothing_is_sent(opened, aggregator, survey, case):
    opened.evaluate(DENIALS[case])
    assert refusal(opened, aggregator, survey.fingerprint, 1)[0] == "MemoryUnavailable"


def test_a_frame_without_an_origin_has_no_storage_and_sends_nothing(opened, aggregator, survey):
    opened.evaluate("document.body.innerHTML = '<iframe sandbox=allow-scripts srcdoc=\"<title>in</title>\"></iframe>'")
    frame = opened.frames[1]
    frame.wait_for_load_state()
    setting = {"url": aggregator.url, "fingerprint": survey.fingerprint}
    assert frame.evaluate("origin") == "null"
    assert frame.evaluate(REFUSED, [setting, 1])[0] == "MemoryUnavailable"
    assert posts(opened) == []


def test_without_web_crypto_nothing_is_sent(opened, aggregator, survey):
    opened.evaluate("Object.defineProperty(Crypto.prototype, 'subtle', { get: () => undefined })")
    assert refusal(opened, aggregator, survey.fingerprint, 1)[0] == "EntropyUnavailable"


@pytest.mark.parametrize("broken", ["ledger", "secret"])
def test_a_damaged_memory_is_an_error_and_not_an_empty_one(visits, visit, aggregator, survey, broken):
    person = visits.person()
    page = visit(person)
    page.evaluate(ANSWER, 1)
    key = {"ledger": "sfumato/1/book", "secret": "sfumato/1/secret"}[broken]
    page.evaluate("(key) => localStorage.setItem(key, localStorage.getItem(key).slice(0, -1))", key)
    page.requests.clear()
    assert refusal(page, aggregator, survey.fingerprint, 2)[0] == "BudgetExceeded"


# --- what others can see ----------------------------------------------------------------------------------------------


def test_no_request_depends_on_the_value(visits, visit, aggregator, survey, site):
    def seen(value):
        page = visit(visits.person())
        assert outside(page, site, aggregator.url) == []
        page.requests.clear()  # the survey and the client are here, and nobody has answered yet
        answered = page.evaluate(ANSWER, value)
        return [
            (
                request.method,
                request.url,
                sorted(request.all_headers().items()),
                len(request.post_data or ""),
                (request.post_data or "").replace(answered["batch"], "").replace(f"[{value}]", ""),
            )
            for request in page.requests
        ]

    first, second = seen(2), seen(9)
    assert first == second
    assert [method for method, *_ in first] == ["POST"]


def test_a_request_says_nothing_about_the_page_it_comes_from(visits, visit):
    page = visit(visits.person())
    page.evaluate("document.cookie = 'who=me'")
    page.evaluate(ANSWER, 1)
    headers = posts(page)[0].all_headers()
    assert "referer" not in headers
    assert "cookie" not in headers
    assert headers["content-type"] == "application/json"
