"""An aggregator on loopback, people who visit its pages, and notes of what those pages complain about and ask for."""

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

HOSTILE = "</script><script>alert(1)</script>\"'<img src=x onerror=alert(2)>&amp;"
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
REFUSALS = (
    "Failed to load resource"  # how Chromium logs every answer that is an error, expected or not
)
_AXE = ROOT / "tests" / "browser" / "node_modules" / "axe-core" / "axe.min.js"


class Aggregator:
    """One that runs, with its store and its token."""

    def __init__(self, store, clock, token, url):
        self.store, self.clock, self.token, self.url = store, clock, token, url

    def ask(self, survey):
        """Open a survey."""
        self.store.register(survey)
        return survey

    def receive(self, survey, symbols, number, when=NOON):
        """Count one batch as if it had come at some time; the same number makes the same batch."""
        self.clock[0] = when
        generator = np.random.default_rng(number)
        words = generator.integers(
            0, 2**64, size=(len(symbols), survey.mechanism.words), dtype=np.uint64
        )
        reports = survey.mechanism.reports_from(symbols, words)
        name = hashlib.sha256(f"{survey.fingerprint}/{number}".encode()).digest()[:16]
        self.store.commit([Batch(name, survey.fingerprint, reports)])
        self.clock[0] = NOON

    def counts(self, survey):
        """How often each report was counted."""
        return self.store.tally(survey.fingerprint, survey.mechanism.outputs).counts.tolist()

    def await_reports(self, survey, number):
        """Wait until so many reports are counted; beacons are not answered to anybody."""
        until = time.monotonic() + 10
        while sum(self.counts(survey)) < number and time.monotonic() < until:
            time.sleep(0.02)
        assert sum(self.counts(survey)) == number


@contextmanager
def running(folder):
    """An aggregator in a thread, over a new store; it believes that it is noon."""
    clock = [NOON]
    store = Store(backend_for(f"sqlite:///{folder / 'reports.db'}"), now=lambda: clock[0])
    token = Token(store).make()
    app = create_app(store, Settings(requests_per_minute=0, now=lambda: clock[0]))
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


class Visits:
    """Browser contexts, each a person's browser of its own; all of them closed in the end."""

    def __init__(self, chromium):
        self._chromium, self._contexts = chromium, []

    def person(self, **options):
        """A new browser, with empty storages."""
        self._contexts.append(self._chromium.new_context(**options))
        return self._contexts[-1]

    def page(self, person=None, **options):
        """A new tab that writes down what it complains about, breaks of its policy included, and what it asks for."""
        page = (person or self.person(**options)).new_page()
        page.complaints, page.requests = [], []
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error('policy', event.violatedDirective))"
        )
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.requests.append(request))
        return page

    def close(self):
        for context in self._contexts:
            context.close()


def posts(page):
    """The uploads among what a page asked for."""
    return [request for request in page.requests if request.method == "POST"]


def outside(page, *homes):
    """What a page asked for from anywhere else than its homes."""
    return [
        request.url
        for request in page.requests
        if not request.url.startswith((*homes, "data:", "blob:"))
    ]


def barriers(page):
    """What stands in the way of people who see, hear or move otherwise: axe's serious findings, by day and by night."""
    if not _AXE.exists():
        pytest.skip("skipped: needs axe-core; make javascript installs it")
    page.evaluate(_AXE.read_text(encoding="utf-8"))
    serious = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate("axe.run().then(({ violations }) => violations)")
        serious += [
            (scheme, finding) for finding in found if finding["impact"] in ("serious", "critical")
        ]
    return [
        (scheme, one["id"], [node["html"][:200] for node in one["nodes"]][:3])
        for scheme, one in serious
    ]
