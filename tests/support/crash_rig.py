"""A real `sfumato serve`, a crowd that sends to it, and kill -9 in the middle of it all.

Every report is a value that nobody else sends. A sender tries the same batch again until it is acknowledged, and one in
ten sends is a batch that was acknowledged long ago. One in four gives up when no answer comes. In the end every
acknowledged report must count exactly once, and every other one at most once.
"""

import contextlib
import http.client
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from sfumato.aggregator.store import Store
from sfumato.batches import to_json
from support.unrandomized import batch_of, counts_of, unrandomized_survey

SURVEY = unrandomized_survey("crash", 200_000)
SENDERS = 4
COMMAND = (str(Path(sys.executable).parent / "sfumato"),)


class Server:
    """`sfumato serve` in a process of its own, on any free port; it serves the survey that its store holds."""

    def __init__(self, command, url):
        store = Store.open(url)
        store.register(SURVEY)
        store.close()
        self._command = [
            *command,
            "serve",
            "--store",
            url,
            "--port",
            "0",
            "--requests-per-minute",
            "0",
        ]
        self._process = self.address = None

    def start(self):
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        said = []
        for line in self._process.stderr:
            said.append(line)
            if line.startswith("Sfumato listens on "):
                self.address = line.split("//")[1].strip()
                return
        raise RuntimeError(f"the aggregator did not start: {''.join(said)}")

    def end(self, how):
        """Send a signal and wait; the exit code."""
        if self._process is None:
            return None
        self.address = None
        self._process.send_signal(how)
        with self._process.stderr:
            code = self._process.wait(30)
        self._process = None
        return code


@dataclass
class Crowd:
    """Senders in threads, and what they know: which batches were acknowledged, and what was answered to whom."""

    server: Server
    seed: int
    sent: dict = field(default_factory=dict)
    acknowledged: list = field(default_factory=list)
    answers: Counter = field(default_factory=Counter)
    doubtful: list = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _values: count = field(default_factory=count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def sending(self):
        threads = [threading.Thread(target=self._send, args=(i,)) for i in range(SENDERS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _send(self, number):
        choose = random.Random(f"{self.seed}/{number}")
        while not self._stop.is_set():
            if choose.random() < 0.1 and self.acknowledged:
                self._deliver(choose.choice(self.acknowledged), again=True, patient=True)
            else:
                with self._lock:
                    values = [next(self._values) for _ in range(choose.randrange(1, 4))]
                    batch = batch_of(SURVEY, 1 + len(self.sent), *values)
                    self.sent[batch.id] = batch
                self._deliver(batch, again=False, patient=choose.random() < 0.75)

    def _deliver(self, batch, *, again, patient):
        """The same bytes until somebody says that they are counted; who is not patient tries once."""
        while not self._stop.is_set():
            status = self._attempt(to_json(batch))
            if status in (200, 201):
                self.answers["replayed" if again else "acknowledged"] += 1
                if again and status == 201:
                    self.doubtful.append(batch)
                if not again:
                    self.acknowledged.append(batch)
                return
            assert status in (None, 503), status
            self.answers["refused"] += 1
            time.sleep(0.02)
            if not patient:
                self.answers["given up"] += 1
                return

    def _attempt(self, body):
        """The status, or ``None`` where there was no answer."""
        address = self.server.address
        if address is None:
            return None
        connection = http.client.HTTPConnection(address, timeout=10)
        try:
            path = f"/v1/surveys/{SURVEY.fingerprint}/batches"
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            return None
        else:
            return answer.status
        finally:
            connection.close()

    def wait_for(self, more):
        """Until some more batches are acknowledged."""
        enough = len(self.acknowledged) + more
        _wait(lambda: len(self.acknowledged) >= enough)

    def wait_for_replays(self, enough):
        """Until some batches that had been acknowledged were sent once more."""
        _wait(lambda: self.answers["replayed"] >= enough)


def _wait(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the aggregator answers no more"
        time.sleep(0.002)


def crash(url, *, kills, seed, command=COMMAND, between=lambda kill: None, at_least=5):
    """Kill the aggregator again and again while a crowd sends, then hold the counts against what the crowd knows.

    ``at_least`` batches are acknowledged before each kill, and after the last one. Returns how often what happened, and
    the most seconds that passed from the start of the process to the first batch acknowledged.
    """
    server = Server(command, url)
    crowd, choose, recoveries = Crowd(server, seed), random.Random(seed), []
    server.start()
    try:
        with crowd.sending():
            for kill in range(kills):
                crowd.wait_for(at_least + choose.randrange(40))
                time.sleep(choose.random() * 0.05)
                server.end(signal.SIGKILL)
                between(kill)
                began = time.monotonic()
                server.start()
                crowd.wait_for(1)
                recoveries.append(time.monotonic() - began)
            crowd.wait_for(at_least)
            crowd.wait_for_replays(3)
        assert server.end(signal.SIGTERM) == 0, "it did not end in order"
    finally:
        server.end(signal.SIGKILL)
    judge(url, crowd)
    slowest = {"kills": kills, "slowest recovery": round(max(recoveries, default=0.0), 2)}
    return {**crowd.answers, **slowest}


def judge(url, crowd):
    """Exactly once if acknowledged, at most once if not, and nothing that nobody sent."""
    store = Store.open(url)
    counts, status = counts_of(store, SURVEY), store.status(SURVEY.fingerprint)
    store.close()
    assert not crowd.doubtful, "a batch that had been acknowledged was counted once more"
    acknowledged = {int(value) for batch in crowd.acknowledged for value in batch.reports}
    sent = {int(value) for batch in crowd.sent.values() for value in batch.reports}
    assert set(counts.values()) == {1}, "a report counts twice"
    assert acknowledged <= set(counts), "a report was acknowledged and is not there"
    assert set(counts) <= sent, "a report is there that nobody sent"
    assert status.reports == len(counts), "the number of reports is not that of the counts"
    # A batch is whole or not there.
    for batch in crowd.sent.values():
        assert len({int(value) in counts for value in batch.reports}) == 1, "half a batch"
