"""Kill a real `sfumato serve` with kill -9 while a crowd uploads to it.

Every report has a different value. A sender retries a batch until it is acknowledged; one time in
ten it resends a batch that was acknowledged before, and one time in four it gives up after the
first failure. In the end, every acknowledged report must count exactly once, and every other one
at most once.

Several servers can share one store. Then each attempt, also of the same batch, goes to any of them,
and they are killed in turn.
"""

import contextlib
import http.client
import os
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
    """`sfumato serve` as a process, on any free port."""

    def __init__(self, command, url, environment):
        self._environment = {**os.environ, **environment}
        self._command = [
            *command,
            "serve",
            "--store",
            url,
            "--port",
            "0",
            "--requests-per-minute",
            "0",
            "--reports-per-upload",
            "100",
        ]
        self._process = None
        self.address = None
        self.acknowledged = 0

    def start(self):
        self._process = subprocess.Popen(
            self._command, env=self._environment, stderr=subprocess.PIPE, text=True
        )
        output = []
        for line in self._process.stderr:
            output.append(line)
            if line.startswith("Sfumato is listening on "):
                self.address = line.split("//")[1].strip()
                return
        raise RuntimeError(f"the aggregator did not start: {''.join(output)}")

    def end(self, signal_number):
        """Send a signal, wait, and return the exit code."""
        if self._process is None:
            return None
        self.address = None
        self._process.send_signal(signal_number)
        with self._process.stderr:
            code = self._process.wait(30)
        self._process = None
        return code


@dataclass
class Crowd:
    """Senders in threads, and a record of what they sent and which batches were acknowledged."""

    servers: list
    seed: int
    sent: dict = field(default_factory=dict)
    acknowledged: list = field(default_factory=list)
    events: Counter = field(default_factory=Counter)
    recounted: list = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _values: count = field(default_factory=count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def send_all_the_time(self):
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
                batch = choose.choice(self.acknowledged)
                self._deliver(batch, choose, again=True, patient=True)
            else:
                with self._lock:
                    values = [next(self._values) for _ in range(choose.randrange(1, 4))]
                    batch = batch_of(SURVEY, 1 + len(self.sent), *values)
                    self.sent[batch.id] = batch
                patient = choose.random() < 0.75
                self._deliver(batch, choose, again=False, patient=patient)

    def _deliver(self, batch, choose, *, again, patient):
        """Send the same bytes until they are acknowledged; if not `patient`, only once."""
        while not self._stop.is_set():
            server = choose.choice(self.servers)
            status = self._attempt(server.address, to_json(batch))
            if status in (200, 201):
                with self._lock:
                    server.acknowledged += 1
                self.events["replayed" if again else "acknowledged"] += 1
                if again and status == 201:
                    self.recounted.append(batch)
                if not again:
                    self.acknowledged.append(batch)
                return
            assert status in (None, 503), status
            self.events["refused"] += 1
            time.sleep(0.02)
            if not patient:
                self.events["given up"] += 1
                return

    def _attempt(self, address, body):
        """Return the status, or None if there was no response."""
        if address is None:
            return None
        connection = http.client.HTTPConnection(address, timeout=10)
        try:
            path = f"/v1/surveys/{SURVEY.fingerprint}/batches"
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            return None
        else:
            return response.status
        finally:
            connection.close()

    def wait_for(self, more):
        """Wait until `more` batches are acknowledged."""
        target = len(self.acknowledged) + more
        _wait(lambda: len(self.acknowledged) >= target)

    def wait_for_server(self, server):
        """Wait until this server acknowledges another batch."""
        target = server.acknowledged + 1
        _wait(lambda: server.acknowledged >= target)

    def wait_for_replays(self, number):
        """Wait until `number` acknowledged batches were sent again."""
        _wait(lambda: self.events["replayed"] >= number)


def _wait(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the aggregator stopped responding"
        time.sleep(0.002)


def crash(
    url,
    *,
    kills,
    seed,
    command=COMMAND,
    between=lambda kill: None,
    at_least=5,
    servers=1,
    environment=None,
):
    """Kill the aggregator repeatedly while a crowd uploads, then check the counts.

    At least `at_least` batches are acknowledged before each kill and after the last one. `between`
    is called after each kill. `servers` is the number of aggregators on this store; they are killed
    in turn. `environment` adds variables to theirs. Return how often each event occurred, and the
    longest time in seconds from the start of a process to its first acknowledgement.
    """
    prepare_store(url)
    crew = [Server(command, url, environment or {}) for _ in range(servers)]
    crowd = Crowd(crew, seed)
    choose = random.Random(seed)
    recoveries = []
    try:
        for server in crew:
            server.start()
        with crowd.send_all_the_time():
            for kill in range(kills):
                server = crew[kill % servers]
                crowd.wait_for(at_least + choose.randrange(40))
                time.sleep(choose.random() * 0.05)
                server.end(signal.SIGKILL)
                between(kill)
                start = time.monotonic()
                server.start()
                crowd.wait_for_server(server)
                recoveries.append(time.monotonic() - start)
            crowd.wait_for(at_least)
            crowd.wait_for_replays(3)
        for server in crew:
            assert server.end(signal.SIGTERM) == 0, "the aggregator did not stop cleanly"
    finally:
        for server in crew:
            server.end(signal.SIGKILL)
    check_counts(url, crowd)
    slowest = round(max(recoveries, default=0.0), 2)
    return {**crowd.events, "kills": kills, "slowest recovery": slowest}


def prepare_store(url):
    """Register the survey in a store."""
    store = Store.open(url)
    store.register(SURVEY)
    store.close()


def check_counts(url, crowd):
    """Check that acknowledged reports count once, others at most once, and that no others count."""
    store = Store.open(url)
    counts = counts_of(store, SURVEY)
    status = store.read_status(SURVEY.fingerprint)
    store.close()
    assert not crowd.recounted, "an acknowledged batch was counted again"
    acknowledged = {int(value) for batch in crowd.acknowledged for value in batch.reports}
    sent = {int(value) for batch in crowd.sent.values() for value in batch.reports}
    assert set(counts.values()) == {1}, "a report counts twice"
    assert acknowledged <= set(counts), "an acknowledged report is missing"
    assert set(counts) <= sent, "a report counts that was never sent"
    assert status.reports == len(counts), "the number of reports differs from the counts"
    # A batch counts completely or not at all.
    for batch in crowd.sent.values():
        is_counted = {int(value) in counts for value in batch.reports}
        assert len(is_counted) == 1, "only part of a batch counts"
