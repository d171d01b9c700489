"""A store that hangs: its server is frozen, its disk is stuck, or a row stays locked.

The server is frozen by SIGSTOP. Its kernel goes on answering, so the connections stay open.
"""

import asyncio
import contextlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from sfumato.aggregator import Settings, Token, create_app
from sfumato.aggregator.store import Outcome
from sfumato.aggregator.threads import StoreThreads
from sfumato.aggregator.writer import Writer
from sfumato.batches import to_json
from sfumato.errors import StoreUnavailable
from support.http_client import exchange, listen, parse_response, upload_head
from support.unrandomized import batch_of, counts_of

TIMEOUT = 0.4
"""Seconds after which the store is suspected to hang."""

UNKNOWN = "ab" * 32


class Client:
    """Sends requests to an aggregator, each on a connection of its own."""

    def __init__(self, address, token, seconds=30):
        self._address = address
        self._token = token
        self._seconds = seconds

    def get(self, path, *, token=False):
        head = f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        if token:
            head += f"Authorization: Bearer {self._token}\r\n"
        return self._exchange(head.encode() + b"\r\n")

    def upload(self, batch):
        body = to_json(batch)
        head = upload_head(batch.fingerprint, Content_Length=len(body), Connection="close")
        return self._exchange(head, body)

    def _exchange(self, *parts):
        raw = exchange(self._address, *parts, seconds=self._seconds)
        assert raw, "no answer"
        return parse_response(raw)


@contextlib.contextmanager
def serving(store):
    """Serve a store on a socket, with a short timeout; yield a client."""
    token = Token(store).create()
    app = create_app(store, Settings(requests_per_minute=0, store_timeout=TIMEOUT))
    with listen(app) as address:
        yield Client(address, token)


def require_unavailable(answers):
    for answer in answers:
        assert (answer.status, answer.problem) == (503, "store-unavailable")
        assert int(answer.headers["retry-after"]) >= 1


def at_once(*calls):
    """Make calls at the same time, and return their results."""
    with ThreadPoolExecutor(len(calls)) as threads:
        return [call.result() for call in [threads.submit(call) for call in calls]]


def wait_until_ready(client):
    deadline = time.monotonic() + 30
    while client.get("/ready").status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def server_store(postgres, open_store, survey):
    url = postgres.database()
    store = open_store(url)
    store.register(survey)
    yield store
    store.close()
    postgres.release(url)


def test_a_frozen_server_is_503_and_then_counts_again(postgres, server_store, survey):
    in_doubt = batch_of(survey, 2, 7)
    with serving(server_store) as client:
        assert client.upload(batch_of(survey, 1, 5)).status == 201
        with postgres.paused():
            status = f"/v1/surveys/{survey.fingerprint}/status"
            answers = at_once(
                lambda: client.upload(in_doubt),
                lambda: client.get("/v1/surveys"),
                lambda: client.get(status, token=True),
                lambda: client.get(f"/dashboard/{survey.fingerprint}/results", token=True),
                *[lambda: client.get(f"/v1/surveys/{UNKNOWN}")] * 50,
            )
            require_unavailable(answers)
            time.sleep(1.1)  # what it knows may be a second old
            require_unavailable([client.get("/ready")])
            assert client.get("/health").status == 200
            assert client.get("/static/rows.js").status == 200
            assert client.get(f"/v1/surveys/{survey.fingerprint}").status == 200  # in memory
            require_unavailable([client.upload(in_doubt), client.get(status, token=True)])
        wait_until_ready(client)
        assert client.upload(in_doubt).status in (200, 201)
        assert client.upload(in_doubt).status == 200
        assert client.upload(batch_of(survey, 3, 9)).status == 201
        assert client.get(status, token=True).status == 200
    assert counts_of(server_store, survey) == {5: 1, 7: 1, 9: 1}


def test_a_locked_survey_is_not_ready(server_store, survey):
    """A forgotten transaction holds the row of the survey, but not the one that a check locks."""
    url = server_store._backend.engine.url.set(drivername="postgresql")
    with (
        serving(server_store) as client,
        contextlib.closing(psycopg.connect(url.render_as_string(hide_password=False))) as other,
    ):
        wait_until_ready(client)
        other.execute("SELECT * FROM surveys FOR UPDATE")
        require_unavailable([client.upload(batch_of(survey, 1, 5)), client.get("/ready")])
        other.rollback()
        wait_until_ready(client)
        assert client.upload(batch_of(survey, 1, 5)).status in (200, 201)
    assert counts_of(server_store, survey) == {5: 1}


def test_a_stuck_commit_is_503_and_not_ready(tmp_path, open_store, survey, monkeypatch):
    store = open_store(f"sqlite:///{tmp_path}/reports.db")
    store.register(survey)
    commit = store.commit
    is_free = threading.Event()
    monkeypatch.setattr(store, "commit", lambda group: is_free.wait(30) and commit(group))
    with serving(store) as client:
        require_unavailable([client.upload(batch_of(survey, 1, 5)), client.get("/ready")])
        is_free.set()
        wait_until_ready(client)
        assert client.upload(batch_of(survey, 1, 5)).status in (200, 201)
    assert counts_of(store, survey) == {5: 1}


# --- the parts ------------------------------------------------------------------------------------


@pytest.fixture
def file_store(tmp_path, open_store, survey):
    store = open_store(f"sqlite:///{tmp_path}/reports.db")
    store.register(survey)
    return store


def test_slow_operations_finish_while_the_store_answers(file_store):
    def work():
        time.sleep(1)
        return "result"

    async def run():
        return await StoreThreads(file_store, timeout=0.1).run(work)

    assert asyncio.run(run()) == "result"


def test_operations_fail_at_once_until_the_store_answers(file_store, monkeypatch):
    is_free = threading.Event()
    calls = []
    monkeypatch.setattr(file_store, "read_version", lambda: is_free.wait(30))

    def work():
        calls.append(None)
        is_free.wait(30)
        raise ValueError  # to nobody: its caller is gone

    async def run():
        threads = StoreThreads(file_store, timeout=0.1)
        first = await asyncio.gather(
            *[threads.run(work) for _ in range(50)], return_exceptions=True
        )
        started = len(calls)
        second = await asyncio.gather(threads.run(work), return_exceptions=True)
        assert len(calls) == started <= 10
        is_free.set()
        while True:
            with contextlib.suppress(StoreUnavailable):
                return [*first, *second], await threads.run(lambda: "result")
            await asyncio.sleep(0.01)

    errors, result = asyncio.run(run())
    assert {type(error) for error in errors} == {StoreUnavailable}
    assert result == "result"


def test_a_thread_that_cannot_start_takes_no_place(file_store, monkeypatch):
    def fail(_):
        raise RuntimeError("can't start new thread")

    async def run():
        threads = StoreThreads(file_store)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", fail)
            for _ in range(20):
                with pytest.raises(RuntimeError):
                    await threads.run(lambda: None)
        return await threads.run(lambda: "result")

    assert asyncio.run(run()) == "result"


def test_errors_of_the_store_reach_the_caller(file_store):
    def work():
        raise StoreUnavailable("away")

    with pytest.raises(StoreUnavailable, match="away"):
        asyncio.run(StoreThreads(file_store).run(work))


class Stuck:
    """A store whose commits wait until they are let through."""

    def __init__(self, store):
        self._store = store
        self.is_free = threading.Event()
        self.sizes = []

    def commit(self, group):
        self.sizes.append(len(group))
        assert self.is_free.wait(30)
        return self._store.commit(group)


def test_batches_that_nobody_waits_for_are_not_written(file_store, survey):
    stuck = Stuck(file_store)
    writer = Writer(stuck, timeout=0.3)
    writer.start()

    async def upload_all():
        first = asyncio.create_task(writer.count(batch_of(survey, 1, 1)))
        while not stuck.sizes:
            await asyncio.sleep(0.01)
        others = [writer.count(batch_of(survey, number, number)) for number in range(2, 6)]
        outcomes = await asyncio.gather(first, *others, return_exceptions=True)
        late = await asyncio.gather(writer.count(batch_of(survey, 9, 9)), return_exceptions=True)
        stuck.is_free.set()
        while writer.waiting_count:
            await asyncio.sleep(0.01)
        while True:
            with contextlib.suppress(StoreUnavailable):
                return [*outcomes, *late], await writer.count(batch_of(survey, 1, 1))
            await asyncio.sleep(0.01)

    outcomes, retried = asyncio.run(upload_all())
    assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
    assert retried is Outcome.REPLAYED
    assert counts_of(file_store, survey) == {1: 1}
    writer.stop()
    assert not writer.is_alive


def test_stopping_does_not_wait_for_a_stuck_commit(file_store, survey):
    stuck = Stuck(file_store)
    writer = Writer(stuck, timeout=0.1)
    writer.start()
    with pytest.raises(StoreUnavailable):
        asyncio.run(writer.count(batch_of(survey, 1, 1)))
    writer.stop()
    assert writer.is_alive  # abandoned: it is a daemon thread
    stuck.is_free.set()


# --- `sfumato serve` with its real limits ---------------------------------------------------------


@pytest.mark.slow
def test_serve_answers_within_ten_seconds_and_stops_while_the_server_is_frozen(
    postgres, server_store, survey, tmp_path
):
    url = server_store._backend.engine.url.set(drivername="postgresql")
    address = url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "sfumato", "serve", "--store", address, "--port", "0"]
    with (tmp_path / "messages").open("w+") as file:
        serve = subprocess.Popen(command, stderr=file)
        try:
            said = _wait_for_start(serve, tmp_path / "messages")
            token = re.search(r"not shown again\): (\S+)", said)[1]
            port = int(re.search(r"listening on http://127.0.0.1:(\d+)", said)[1])
            # The time-outs of these clients are what is to be shown.
            client = Client(("127.0.0.1", port), token, seconds=10)
            watcher = Client(("127.0.0.1", port), token, seconds=6)
            assert client.upload(batch_of(survey, 1, 5)).status == 201
            assert watcher.get("/ready").status == 200
            with postgres.paused():
                time.sleep(1.1)
                answers = at_once(
                    lambda: watcher.get("/ready"),
                    lambda: client.upload(batch_of(survey, 2, 7)),
                    lambda: client.get(f"/v1/surveys/{survey.fingerprint}/status", token=True),
                    *[lambda: client.get(f"/v1/surveys/{UNKNOWN}")] * 60,
                )
                require_unavailable(answers)
                assert watcher.get("/health").status == 200
                assert watcher.get("/static/rows.js").status == 200
                with socket.create_connection(("127.0.0.1", port), timeout=10) as waiting:
                    body = to_json(batch_of(survey, 2, 7))
                    waiting.sendall(upload_head(survey.fingerprint, Content_Length=len(body)))
                    waiting.sendall(body)
                    serve.send_signal(signal.SIGTERM)
                    answer = waiting.recv(10_000)
                    assert b" 503 " in answer
                    assert b"retry-after" in answer
                assert serve.wait(timeout=20) == 0  # TimeoutStopSec of the unit
        finally:
            serve.kill()
            serve.wait()
    assert "Traceback" not in (tmp_path / "messages").read_text()
    with serving(server_store) as client:
        assert client.upload(batch_of(survey, 2, 7)).status in (200, 201)
    assert counts_of(server_store, survey) == {5: 1, 7: 1}


def _wait_for_start(serve, messages):
    deadline = time.monotonic() + 60
    while "listening" not in messages.read_text():
        assert serve.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return messages.read_text()
