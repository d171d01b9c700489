"""An aggregator on loopback, and browsers that record the errors and requests of its pages."""

import hashlib
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np
import pytest
import uvicorn

from sfumato.aggregator import Settings, Token, create_app, listen
from sfumato.aggregator.store import Store, backend_for
from sfumato.batches import Batch
from support.paths import ROOT

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
FAILED_RESPONSE = "Failed to load resource"  # Chromium logs this for every HTTP error
_AXE = ROOT / "tests" / "browser" / "node_modules" / "axe-core" / "axe.min.js"


class Aggregator:
    """A running aggregator with its store and its token."""

    def __init__(self, store, clock, token, url):
        self.store = store
        self.clock = clock
        self.token = token
        self.url = url

    def add(self, survey):
        """Register a survey and return it."""
        self.store.register(survey)
        return survey

    def receive(self, survey, symbols, number, when=NOON):
        """Count one batch as if it had arrived at `when`; equal numbers make equal batches."""
        self.clock[0] = when
        generator = np.random.default_rng(number)
        words = generator.integers(
            0, 2**64, size=(len(symbols), survey.mechanism.words), dtype=np.uint64
        )
        reports = survey.mechanism.reports_from(symbols, words)
        batch_id = hashlib.sha256(f"{survey.fingerprint}/{number}".encode()).digest()[:16]
        self.store.commit([Batch(batch_id, survey.fingerprint, reports)])
        self.clock[0] = NOON

    def counts(self, survey):
        """Return how often each report was counted."""
        return self.store.tally(survey.fingerprint, survey.mechanism.outputs).counts.tolist()

    def wait_for_reports(self, survey, number):
        """Wait until `number` reports are counted: a beacon gets no response to wait for."""
        deadline = time.monotonic() + 10
        while sum(self.counts(survey)) < number and time.monotonic() < deadline:
            time.sleep(0.02)
        assert sum(self.counts(survey)) == number


@contextmanager
def run_aggregator(folder):
    """Run an aggregator in a thread, over a new store; its clock stands at noon."""
    clock = [NOON]
    store = Store(backend_for(f"sqlite:///{folder / 'reports.db'}"), now=lambda: clock[0])
    token = Token(store).create()
    app = create_app(
        store, Settings(requests_per_minute=0, reports_per_upload=65_536, now=lambda: clock[0])
    )
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, ws="none"))
    with listen("127.0.0.1", 0) as socket:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield Aggregator(store, clock, token, f"http://127.0.0.1:{socket.getsockname()[1]}/")
        finally:
            server.should_exit = True
            thread.join()
            store.close()


class Browser:
    """Chromium with a separate browser context for each person; `close` closes them all."""

    def __init__(self, chromium):
        self._chromium = chromium
        self._contexts = []

    def new_person(self, **options):
        """Open a browser context with empty storage."""
        context = self._chromium.new_context(**options)
        self._contexts.append(context)
        return context

    def new_page(self, person=None, **options):
        """Open a tab that records its console messages, policy violations and requests."""
        page = (person or self.new_person(**options)).new_page()
        page.complaints = []
        page.requests = []
        page.add_init_script(
            "addEventListener('securitypolicyviolation', "
            "(event) => console.error('policy', event.violatedDirective))"
        )
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.requests.append(request))
        return page

    def close(self):
        for context in self._contexts:
            context.close()


def uploads(page):
    """Return the POST requests of a page."""
    return [request for request in page.requests if request.method == "POST"]


def external_requests(page, *homes):
    """Return the URLs that a page requested from anywhere but its homes."""
    return [
        request.url
        for request in page.requests
        if not request.url.startswith((*homes, "data:", "blob:"))
    ]


def accessibility_violations(page):
    """Return the serious violations that axe finds in light and in dark mode.

    Folded parts are opened, because axe skips what is hidden.
    """
    serious = []
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for name, snippets in serious_violations(page):
            serious.append((scheme, name, snippets))
    return serious


def serious_violations(page):
    """Return the serious violations that axe finds in a page as it is: names and snippets."""
    if not _AXE.exists():
        pytest.skip("skipped: needs axe-core; make javascript installs it")
    page.evaluate(_AXE.read_text(encoding="utf-8"))
    serious = []
    # Without preload, axe does not fetch style sheets again, for rules that no page here needs.
    for violation in page.evaluate("axe.run({ preload: false }).then((run) => run.violations)"):
        if violation["impact"] in ("serious", "critical"):
            snippets = [node["html"][:200] for node in violation["nodes"]]
            serious.append((violation["id"], snippets[:3]))
    return serious
