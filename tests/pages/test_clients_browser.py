"""The JavaScript client in a real browser, on a page from another origin."""

import json
import threading
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

pytest.importorskip("fastapi")

import sfumato as sf
from sfumato.conformance import read_cases
from sfumato.foundation.canonical import canonical_bytes, fingerprint
from sfumato.pages import TRY_POLICY, static_files
from support.browser import external_requests, run_aggregator, uploads

PEOPLE = 200
WITH_STORAGE = 20

SETTING = """async ({ url, fingerprint, patience = 10000 }) => {
  const sfumato = await import(`${url}static/client/index.js`);
  const survey = await sfumato.Survey.load(url, { fingerprint });
  const client = new sfumato.Client(survey, { url, patience, allowClear: true });
  Object.assign(window, { sfumato, survey, client });
  await client.resumed;
}"""
ANSWER = "(value) => client.answer(value)"
REFUSED = """async ([{ fingerprint, ...options }, value]) => {
  try {
    const sfumato = await import(`${options.url}static/client/index.js`);
    const survey = await sfumato.Survey.load(options.url, { fingerprint });
    await new sfumato.Client(survey, { allowClear: true, ...options }).answer(value);
    return ["nothing", ""];
  } catch (problem) {
    return [problem.name, problem.message];
  }
}"""


class Blank(BaseHTTPRequestHandler):
    """An independent site with an empty page."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(
            b"<!DOCTYPE html><title>A page of one's own</title><link rel=icon href=data:,>"
        )

    def log_message(self, *_):
        pass


@contextmanager
def serving(handler):
    """Run a server on loopback; yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def site():
    with serving(Blank) as url:
        yield url


@pytest.fixture(scope="module")
def aggregator(tmp_path_factory):
    with run_aggregator(tmp_path_factory.mktemp("store")) as server:
        yield server


@pytest.fixture(params=[1, 2], ids=["edition 1", "edition 2"])
def survey(aggregator, request):
    """Ten answers without protection: the reports are the answers."""
    context = sf.Uniform(sf.IntegerDomain(10), "inf")
    return aggregator.add(sf.Survey(request.node.name[:90], context, edition=request.param))


@pytest.fixture
def visit(browser, site, aggregator, survey):
    """Open the site in a person's browser, ready to answer."""

    def visiting(person, **setting):
        page = browser.new_page(person)
        page.goto(site)
        page.evaluate(
            SETTING, {"url": aggregator.url, "fingerprint": survey.fingerprint, **setting}
        )
        return page

    return visiting


# --- vectors --------------------------------------------------------------------------------------

WRONG_ANSWERS = """async ({ url, cases }) => {
  const { Survey } = await import(`${url}static/client/index.js`);
  const surveys = new Map();
  const words = (digits) => [0, 16].map((at) => BigInt(`0x${digits.slice(at, at + 16)}`));
  const operations = {
    async load({ text, fingerprint }) {
      const survey = await Survey.of(text, { fingerprint });
      surveys.set(fingerprint, survey);
      return survey.outputs;
    },
    async reports({ survey, symbols, words: digits }) {
      return symbols.map((x, i) => surveys.get(survey).reportFrom(x, words(digits[i])));
    },
  };
  const wrong = [];
  for (const { about, request, expected } of cases) {
    const answer = await operations[request.op](request).catch(({ name }) => name);
    if (JSON.stringify(answer) !== JSON.stringify(expected)) wrong.push(about);
  }
  return wrong;
}"""


def _cases(file):
    cases = []
    for case in read_cases(file):
        if case.request["op"] in ("load", "reports"):
            result = case.answer.get("ok", {})
            expected = result.get("reports", result.get("outputs", case.answer.get("error")))
            cases.append({"about": case.about, "request": case.request, "expected": expected})
    return cases


@pytest.mark.parametrize("file", ["format_2.json", "bad_format_2.json"])
def test_browsers_answer_the_vectors_of_format_2(browser, site, aggregator, file):
    page = browser.new_page()
    page.goto(site)
    cases = _cases(file)
    assert len(cases) > 15
    assert page.evaluate(WRONG_ANSWERS, {"url": aggregator.url, "cases": cases}) == []
    cases[-1]["expected"] = "another answer"  # a wrong vector is noticed
    wrong = page.evaluate(WRONG_ANSWERS, {"url": aggregator.url, "cases": cases})
    assert wrong == [cases[-1]["about"]]


# --- counting -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_hundred_visitors_count_exactly(browser, visit, aggregator, survey):
    answers = np.random.default_rng(1).integers(0, 10, PEOPLE).tolist()
    for answer in answers[:WITH_STORAGE]:
        page = visit(browser.new_person())
        assert page.evaluate(ANSWER, answer)["delivered"]
        assert page.evaluate("localStorage.length") == 2
        page.context.close()
    page = visit(browser.new_person())
    delivered = page.evaluate(
        """([url, answers]) => Promise.all(answers.map(async (answer) => {
          const client = new sfumato.Client(survey, { url, store: new Map(), allowClear: true });
          return (await client.answer(answer)).delivered;
        }))""",
        [aggregator.url, answers[WITH_STORAGE:]],
    )
    assert delivered == [True] * (PEOPLE - WITH_STORAGE)
    assert aggregator.counts(survey) == np.bincount(answers, minlength=10).tolist()
    assert page.complaints == []


def test_reloads_and_second_tabs_send_nothing_new(browser, visit, aggregator, survey):
    person = browser.new_person()
    first = visit(person)
    kept = first.evaluate(ANSWER, 3)
    for page in (first, visit(person)):
        page.reload()
        page.evaluate(SETTING, {"url": aggregator.url, "fingerprint": survey.fingerprint})
        sent = len(uploads(page))
        assert page.evaluate(ANSWER, 4)["batch"] == kept["batch"]
        assert len(uploads(page)) == sent
    assert aggregator.counts(survey) == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_concurrent_tabs_give_one_answer(browser, visit, aggregator, survey):
    person = browser.new_person()
    tabs = [visit(person), visit(person)]
    for value, tab in enumerate(tabs):
        tab.evaluate(
            "(value) => { window.answered = client.answer(value); }", value
        )  # without waiting
    answered = [tab.evaluate("answered") for tab in tabs]
    assert answered[0]["batch"] == answered[1]["batch"]
    assert all(answer["delivered"] for answer in answered)
    assert sum(aggregator.counts(survey)) == 1


@pytest.mark.parametrize("then", ["the connection is back", "the page is loaded again"])
def test_offline_answers_count_once_when(browser, visit, aggregator, survey, then):
    person = browser.new_person()
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
    aggregator.wait_for_reports(survey, 1)
    assert page.evaluate(ANSWER, 2)["waiting"] == 0
    assert aggregator.counts(survey) == [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("navigates", [True, False])
def test_closed_pages_count_once(browser, visit, aggregator, survey, navigates):
    """Even if the next load sends it again, because the page did not learn that it was counted."""
    person = browser.new_person()
    page = visit(person)
    page.evaluate(
        """async (value) => {
          const prepared = await client.prepare(value);
          addEventListener("pagehide", () => prepared.beacon());
        }""",
        5,
    )
    assert uploads(page) == []
    if navigates:
        page.goto("about:blank")
    else:
        page.close(run_before_unload=True)
    aggregator.wait_for_reports(survey, 1)
    later = visit(person)
    assert len(uploads(later)) == 1
    later.evaluate(ANSWER, 6)
    assert aggregator.counts(survey) == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("own", [True, False])
def test_browsers_without_keepalive_send_a_beacon(browser, site, aggregator, survey, own):
    """Beacons carry cookies, so other origins may not send one; the answer waits for a reload."""
    person = browser.new_person()
    page = browser.new_page(person)
    page.goto(f"{aggregator.url}try/{survey.fingerprint}" if own else site)
    page.evaluate("delete Request.prototype.keepalive")
    setting = {"url": aggregator.url, "fingerprint": survey.fingerprint}
    page.evaluate(SETTING, setting)
    assert page.evaluate("client.prepare(8).then((prepared) => prepared.beacon())")
    if own:
        aggregator.wait_for_reports(survey, 1)
    page.reload()
    page.evaluate(SETTING, setting)
    assert aggregator.counts(survey) == [0, 0, 0, 0, 0, 0, 0, 0, 1, 0]


# --- refusing -------------------------------------------------------------------------------------


def refusal(page, aggregator, fingerprint, value, **options):
    """Return the name and the message of the error, after checking that nothing was sent."""
    setting = {"url": aggregator.url, "fingerprint": fingerprint, "patience": 0, **options}
    found = page.evaluate(REFUSED, [setting, value])
    assert uploads(page) == []
    return found


@pytest.fixture
def opened(browser, site):
    """Open a tab on the site."""
    page = browser.new_page()
    page.goto(site)
    return page


def test_missing_survey_is_rejected(opened, aggregator):
    assert refusal(opened, aggregator, "0" * 64, 1)[0] == "WrongSurvey"
    assert refusal(opened, aggregator, "short", 1)[0] == "WrongSurvey"


def serve_instead(page, survey, resolved):
    page.route(
        f"**/v1/surveys/{survey.fingerprint}",
        lambda route: route.fulfill(
            body=resolved,
            content_type="application/json",
            headers={"Access-Control-Allow-Origin": "*"},
        ),
    )


def test_survey_other_than_the_pinned_one_is_rejected(opened, aggregator, survey):
    other = sf.Survey("another", sf.Uniform(sf.IntegerDomain(10), "inf"))
    serve_instead(opened, survey, other.resolved())
    name, words = refusal(opened, aggregator, survey.fingerprint, 1)
    assert name == "WrongSurvey"
    assert "pinned" in words


def test_unknown_mechanism_is_rejected(opened, aggregator, survey):
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


def test_unknown_values_are_rejected_without_echo(opened, aggregator, survey):
    for value in (10, -1, 2.5, "park-on-the-hill", None, [1, 2]):
        name, words = refusal(opened, aggregator, survey.fingerprint, value)
        assert name == "UnknownValue"
        assert "park-on-the-hill" not in words


DENIALS = {
    "denied": "Object.defineProperty(window, 'localStorage', {"
    " get() { throw new DOMException('no'); } })",
    "missing": "Object.defineProperty(window, 'localStorage', { get: () => undefined })",
    "forgetful": "Storage.prototype.setItem = () => {}",
    "full": "localStorage.setItem('mine', 'x'.repeat(5 * 1024 * 1024 - 10))",
}


@pytest.mark.parametrize("case", [*DENIALS])
def test_without_storage_nothing_is_sent(opened, aggregator, survey, case):
    opened.evaluate(DENIALS[case])
    assert refusal(opened, aggregator, survey.fingerprint, 1)[0] == "MemoryUnavailable"


def test_frames_without_an_origin_send_nothing(opened, aggregator, survey):
    opened.evaluate(
        "document.body.innerHTML ="
        " '<iframe sandbox=allow-scripts srcdoc=\"<title>in</title>\"></iframe>'"
    )
    frame = opened.frames[1]
    frame.wait_for_load_state()
    setting = {"url": aggregator.url, "fingerprint": survey.fingerprint}
    assert frame.evaluate("origin") == "null"
    assert frame.evaluate(REFUSED, [setting, 1])[0] == "MemoryUnavailable"
    assert uploads(opened) == []


def test_without_web_crypto_nothing_is_sent(opened, aggregator, survey):
    opened.evaluate("Object.defineProperty(Crypto.prototype, 'subtle', { get: () => undefined })")
    assert refusal(opened, aggregator, survey.fingerprint, 1)[0] == "EntropyUnavailable"


@pytest.mark.parametrize("broken", ["ledger", "secret"])
def test_damaged_memory_is_an_error(browser, visit, aggregator, survey, broken):
    person = browser.new_person()
    page = visit(person)
    page.evaluate(ANSWER, 1)
    key = {"ledger": "sfumato/1/book", "secret": "sfumato/1/secret"}[broken]
    page.evaluate("(key) => localStorage.setItem(key, localStorage.getItem(key).slice(0, -1))", key)
    page.requests.clear()
    assert refusal(page, aggregator, survey.fingerprint, 2)[0] == "BudgetExceeded"


# --- what others can see --------------------------------------------------------------------------


def test_no_request_depends_on_the_value(browser, visit, aggregator, survey, site):
    def seen(value):
        page = visit(browser.new_person())
        assert external_requests(page, site, aggregator.url) == []
        page.requests.clear()  # survey and client are loaded, and there is no answer yet
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

    first = seen(2)
    second = seen(9)
    assert first == second
    assert [method for method, *_ in first] == ["POST"]


def test_requests_have_no_referrer(browser, visit):
    page = visit(browser.new_person())
    page.evaluate("document.cookie = 'who=me'")
    page.evaluate(ANSWER, 1)
    headers = uploads(page)[0].all_headers()
    assert "referer" not in headers
    assert "cookie" not in headers
    assert headers["content-type"] == "application/json"


# --- modules that load when a survey needs them ---------------------------------------------------

TAMPERED = b"globalThis.tampered = true;\n"
NEEDS_TABLES = sf.Survey("tabled", sf.Uniform(["yes", "no"], 1)).resolved().decode()
LOAD = """async ([core, text]) => {
  try {
    return (await (await import(core)).Survey.of(text)).checked;
  } catch (problem) {
    return `${problem.name}: ${problem.message}`;
  }
}"""
WORKER = """([core, text]) => new Promise((resolve) => {
  const source = `(${"LOAD"})(${JSON.stringify([core, text])})
    .then((verdict) => postMessage([verdict, globalThis.tampered === true]));`;
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(address, { type: "module" });
  worker.onmessage = ({ data }) => resolve(data);
  worker.onerror = ({ message }) => resolve([message, false]);
})""".replace('"LOAD"', f"({json.dumps(LOAD)})")


WORKER_SCRIPT = f"""onmessage = async ({{ data }}) => {{
  const verdict = await ({LOAD})(data);
  postMessage([verdict, globalThis.tampered === true]);
}};"""
WORK = """(data) => new Promise((resolve) => {
  const worker = new Worker("/worker.js", { type: "module" });
  worker.onmessage = ({ data }) => resolve(data);
  worker.onerror = ({ message }) => resolve([message, false]);
  worker.postMessage(data);
})"""
HTML = "text/html; charset=utf-8"
SCRIPT = "text/javascript; charset=utf-8"


class Shelf:
    """A site that serves the client and an empty page, by default under the try page's policy."""

    def __init__(self, *tampered, link="", policy=TRY_POLICY, head="", hashes=None):
        """``tampered`` says for each request for the module of tables whether it gets other bytes.

        ``link`` and ``policy`` are headers of every response, ``head`` goes into the page, and
        ``hashes`` replaces the file with the hashes of the modules.
        """
        self.tampered = tampered
        self.link = link
        self.policy = policy
        self.head = head
        self.hashes = hashes
        self.requests = 0
        self.reached = threading.Event()  # the module was asked for
        self.released = threading.Event()  # the module may be answered
        self.released.set()

    def content(self, path):
        """Return the bytes of a path, and their media type."""
        if path == "/":
            page = (
                f"<!DOCTYPE html><title>A strict page</title><link rel=icon href=data:,>{self.head}"
            )
            return page.encode(), HTML
        if path == "/worker.js":
            return WORKER_SCRIPT.encode(), SCRIPT
        if path == "/static/client/hashes.js" and self.hashes is not None:
            return self.hashes.encode(), SCRIPT
        elsewhere = path.startswith("/elsewhere/")
        content, kind = static_files()[
            path.replace("/elsewhere/", "client/modules/").removeprefix("/static/")
        ]
        if elsewhere:
            return TAMPERED + content, kind
        if path.endswith("/modules/tables.js"):
            tampered = self.requests < len(self.tampered) and self.tampered[self.requests]
            self.requests += 1
            self.reached.set()
            self.released.wait()
            return (TAMPERED + content if tampered else content), kind
        return content, kind

    def handler(self):
        shelf = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                content, kind = shelf.content(self.path)
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Access-Control-Allow-Origin", "*")
                self.send_header("Cache-Control", "no-store")
                self.send_header("Content-Security-Policy", shelf.policy)
                if shelf.link:
                    self.send_header("Link", shelf.link)
                self.end_headers()
                with suppress(ConnectionError):  # the browser may have given up
                    self.wfile.write(content)

            def log_message(self, *_):
                pass

        return Handler


@pytest.fixture
def shelve():
    """Serve a shelf; yield it and its address."""
    with ExitStack() as stack:

        def put(*tampered, **options):
            shelf = Shelf(*tampered, **options)
            url = stack.enter_context(serving(shelf.handler()))
            stack.callback(shelf.released.set)  # before the server ends
            return shelf, url

        yield put


def ran_tampered(page):
    return page.evaluate("globalThis.tampered === true")


@pytest.mark.parametrize("own", [True, False], ids=["same origin, strict policy", "another origin"])
def test_modules_are_fetched_once_and_checked(browser, shelve, site, own):
    """A server cannot swap the bytes on a second request, since there is only one."""
    shelf, url = shelve(False, True, True)
    page = browser.new_page()
    page.goto(url if own else site)
    for _ in range(3):
        assert page.evaluate(LOAD, [f"{url}static/client/core.js", NEEDS_TABLES]) == "whole"
    assert shelf.requests == 1
    assert not ran_tampered(page)
    assert page.complaints == []


@pytest.mark.parametrize("own", [True, False], ids=["same origin, strict policy", "another origin"])
@pytest.mark.parametrize("later", [True, False], ids=["always", "at first"])
def test_modified_module_does_not_run(browser, shelve, site, own, later):
    _, url = shelve(True, later, later)
    page = browser.new_page()
    page.goto(url if own else site)
    said = page.evaluate(LOAD, [f"{url}static/client/core.js", NEEDS_TABLES])
    assert said.startswith("SfumatoError: the module tables cannot be loaded, or is of another")
    assert not ran_tampered(page)
    page.evaluate(LOAD, [f"{url}static/client/core.js", NEEDS_TABLES])
    assert not ran_tampered(page)


def test_preloaded_modified_module_does_not_run(browser, shelve):
    """A response header can preload a module without a pin, at the address the core will use."""
    shelf, url = shelve(
        True, True, True, link="</static/client/modules/tables.js>; rel=modulepreload"
    )
    page = browser.new_page()
    page.goto(url)
    core = f"{url}static/client/core.js"
    page.evaluate("(core) => import(core)", core)
    page.wait_for_function(
        "performance.getEntriesByType('resource').some(({ name }) => name.includes('tables.js'))"
    )
    assert shelf.requests >= 1  # the header works
    said = page.evaluate(LOAD, [core, NEEDS_TABLES])
    assert not ran_tampered(page)
    assert said.startswith("SfumatoError: the module tables cannot be loaded, or is of another")


def test_module_loads_once_the_right_file_is_back(browser, shelve, site):
    _, url = shelve(True, False)
    page = browser.new_page()
    page.goto(site)
    core = f"{url}static/client/core.js"
    assert page.evaluate(LOAD, [core, NEEDS_TABLES]).startswith("SfumatoError")
    assert page.evaluate(LOAD, [core, NEEDS_TABLES]) == "whole"
    assert not ran_tampered(page)


def test_unpinned_modified_module_would_run(browser, shelve):
    """The twin: a page that imports the module itself runs any bytes that are served."""
    _, url = shelve(True)
    page = browser.new_page()
    page.goto(url)
    page.evaluate("(url) => import(`${url}static/client/modules/tables.js`)", url)
    assert ran_tampered(page)


REFUSED_MODULE = "SfumatoError: the module tables cannot be loaded, or is of another"
NO_POLICY = "default-src * 'unsafe-inline' data:"
IMPORT_MAP = (
    """<script type="importmap">{"imports": {"/static/client/modules/": "/elsewhere/"}}</script>"""
)


def test_redirected_module_does_not_run(browser, shelve):
    _, url = shelve(policy=NO_POLICY, head=IMPORT_MAP)
    page = browser.new_page()
    page.goto(url)
    assert page.evaluate(LOAD, [f"{url}static/client/core.js", NEEDS_TABLES]).startswith(
        REFUSED_MODULE
    )
    assert not ran_tampered(page)
    # The map works: an import by the page itself runs the other bytes.
    page.evaluate("(url) => import(`${url}static/client/modules/tables.js`)", url)
    assert ran_tampered(page)


def test_import_map_for_the_core_is_harmless(browser, shelve):
    """The twin: a page may map the client's name, as the README says."""
    core = (
        '<script type="importmap">'
        '{"imports": {"@sfumato/client": "/static/client/core.js"}}</script>'
    )
    _, url = shelve(policy=NO_POLICY, head=core)
    page = browser.new_page()
    page.goto(url)
    assert page.evaluate(LOAD, ["@sfumato/client", NEEDS_TABLES]) == "whole"


@pytest.mark.parametrize("hashes", ["{}", "{ tables: 'sha256-' }", "{ tables: 'none' }"])
def test_module_without_a_hash_does_not_run(browser, shelve, hashes):
    """Browsers ignore an integrity that they cannot parse, and would run any bytes."""
    kinds = "export const KINDS = { tables: ['binary', 'table'] };"
    shelf, url = shelve(True, hashes=f"export const HASHES = {hashes}; {kinds}")
    page = browser.new_page()
    page.goto(url)
    assert page.evaluate(LOAD, [f"{url}static/client/core.js", NEEDS_TABLES]).startswith(
        REFUSED_MODULE
    )
    assert shelf.requests == 0
    assert not ran_tampered(page)


def test_missing_module_times_out(browser, shelve):
    shelf, url = shelve()
    shelf.released.clear()
    page = browser.new_page()
    page.goto(url)
    page.clock.install()
    page.evaluate(
        f"""(given) => {{
          const late = new Promise((resolve) => setTimeout(() => resolve("still waiting"), 60000));
          window.loaded = Promise.race([({LOAD})(given), late]);
        }}""",
        [f"{url}static/client/core.js", NEEDS_TABLES],
    )
    assert shelf.reached.wait(20)
    page.clock.fast_forward(31_000)
    page.clock.fast_forward(30_000)
    assert page.evaluate("() => loaded").startswith(REFUSED_MODULE)


def test_pages_with_trusted_types_are_rejected(browser, shelve):
    _, url = shelve(policy="script-src 'self'; require-trusted-types-for 'script'")
    page = browser.new_page()
    page.goto(url)
    assert page.evaluate(LOAD, [f"{url}static/client/core.js", NEEDS_TABLES]).startswith(
        REFUSED_MODULE
    )


@pytest.mark.parametrize("policy", ["script-src 'self'", "script-src 'self' data:"])
def test_module_workers_need_a_policy_that_allows_data(browser, shelve, policy):
    _, url = shelve(policy=f"{policy}; worker-src 'self'")
    page = browser.new_page()
    page.goto(url)
    verdict, ran = page.evaluate(WORK, [f"{url}static/client/core.js", NEEDS_TABLES])
    assert ran is False
    if "data:" in policy:
        assert verdict == "whole"
    else:
        assert verdict.startswith(REFUSED_MODULE)


def test_whole_client_loads_no_modules_at_run_time(browser, shelve, site):
    shelf, url = shelve(False, True)
    page = browser.new_page()
    page.goto(site)
    assert page.evaluate(LOAD, [f"{url}static/client/index.js", NEEDS_TABLES]) == "whole"
    assert shelf.requests == 1  # with the rest, before there is a survey


@pytest.mark.parametrize("tampered", [False, True])
def test_workers_hash_what_they_import(browser, shelve, site, tampered):
    _, url = shelve(tampered)
    page = browser.new_page()
    page.goto(site)
    verdict, ran = page.evaluate(WORKER, [f"{url}static/client/core.js", NEEDS_TABLES])
    assert ran is False
    if tampered:
        assert verdict.startswith(
            "SfumatoError: the module tables cannot be loaded, or is of another"
        )
    else:
        assert verdict == "whole"


# --- storage that lasts ---------------------------------------------------------------------------


@pytest.fixture
def weekly(aggregator, request):
    return aggregator.add(
        sf.Survey(
            request.node.name[:90],
            sf.Uniform(sf.IntegerDomain(10), 1),
            repeat={"every": "week", "distinct": 3},
        )
    )


def test_repeated_surveys_need_persistent_storage(browser, site, aggregator, weekly):
    page = browser.new_page()
    page.goto(site)
    assert page.evaluate("navigator.storage.persist()") is False
    name, words = refusal(page, aggregator, weekly.fingerprint, 1)
    assert name == "MemoryUnavailable"
    assert "storage may not last" in words
    assert page.evaluate("localStorage.length") == 0


def test_repeated_surveys_work_with_persistent_storage(browser, site, aggregator, weekly):
    person = browser.new_person()
    page = browser.new_page(person)
    page.goto(site)
    session = person.new_cdp_session(page)
    context_id = session.send("Target.getTargetInfo")["targetInfo"]["browserContextId"]
    granted = {
        "permissions": ["durableStorage"],
        "origin": site.rstrip("/"),
        "browserContextId": context_id,
    }
    session.send("Browser.grantPermissions", granted)
    page.evaluate(SETTING, {"url": aggregator.url, "fingerprint": weekly.fingerprint})
    assert page.evaluate(ANSWER, 3)["delivered"]
    assert sum(aggregator.counts(weekly)) == 1


def test_repeated_surveys_reject_stores_that_may_not_persist(opened, aggregator, weekly):
    said = opened.evaluate(
        """async ([url, fingerprint]) => {
          const { Client, Survey } = await import(`${url}static/client/index.js`);
          const survey = await Survey.load(url, { fingerprint });
          const stores = [new Map(), Object.assign(new Map(), { persist: () => true })];
          const answers = stores.map((store) => new Client(survey, { url, store }).answer(3));
          return (await Promise.allSettled(answers)).map(({ reason }) => reason?.name ?? "sent");
        }""",
        [aggregator.url, weekly.fingerprint],
    )
    assert said == ["MemoryUnavailable", "sent"]


def test_unprotected_answers_need_consent(opened, aggregator, survey):
    name, words = refusal(opened, aggregator, survey.fingerprint, 1, allowClear=False)
    assert name == "BudgetExceeded"
    assert "unprotected" in words


def test_surveys_of_a_site_share_its_budget(browser, site, aggregator):
    page = browser.new_page()
    page.goto(site)
    names = []
    for i in range(6):
        asked = aggregator.add(sf.Survey(f"one budget {i}", sf.Uniform(["a", "b", "c", str(i)], 1)))
        setting = {"url": aggregator.url, "fingerprint": asked.fingerprint}
        names.append(page.evaluate(REFUSED, [setting, "a"])[0])
    assert names == ["nothing"] * 4 + ["BudgetExceeded"] * 2
