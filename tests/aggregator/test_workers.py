"""`sfumato serve --workers N`: several processes, one aggregator."""

import asyncio
import errno
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.aggregator import WorkerSetup, listen_together, run_workers, workers
from sfumato.aggregator.http import METRICS_FOLDER
from sfumato.batches import to_json
from sfumato.errors import InvalidSetting
from support.http_client import batch_of, upload_path
from support.waiting import is_running, wait_until

SURVEY = sf.Survey("lunch", sf.Uniform(["park", "café", "clinic"], 1), edition=2)
ADDRESS = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
TOKEN = re.compile(r"not shown again\): (\S+)")
JSON = {"Content-Type": "application/json"}


class Aggregator:
    """A running `sfumato serve`: its process, address and token."""

    def __init__(self, process):
        self.process = process
        self.said = ""
        self.port = int(self.wait_for(ADDRESS)[1])
        self.token = TOKEN.search(self.said)[1]

    def wait_for(self, pattern):
        while not (match := re.search(pattern, self.said)):
            line = self.process.stderr.readline()
            assert line, self.said
            self.said += line
        return match

    @property
    def workers(self):
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def status(self):
        return self.ask("GET", f"/v1/surveys/{SURVEY.fingerprint}/status")["reports"]

    def metric(self, name):
        text = self.ask("GET", "/metrics", is_json=False)
        values = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, values))

    def ask(self, method, path, *, is_json=True):
        connection = self.connect()
        connection.request(method, path, headers={"Authorization": f"Bearer {self.token}"})
        body = connection.getresponse().read().decode()
        connection.close()
        return json.loads(body) if is_json else body


@contextmanager
def serving(folder, *options, url=None):
    resolved = Path(folder) / "lunch.json"
    SURVEY.save(resolved)
    command = [sys.executable, "-m", "sfumato", "serve", str(resolved), "--port", "0"]
    command += ["--store", url or f"sqlite:///{folder}/reports.db", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, bufsize=1) as process:
        try:
            yield Aggregator(process)
        finally:
            if process.poll() is None:
                process.kill()


def send(connection, number):
    """Send one report over a connection that stays open. Return the status of the response."""
    body = to_json(batch_of(SURVEY, [number % 3], number=number + 1))
    connection.request("POST", upload_path(SURVEY.fingerprint), body, JSON)
    response = connection.getresponse()
    response.read()
    return response.status


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/reports.db"
        return
    server = request.getfixturevalue("postgres")
    url = server.database()
    yield url
    server.release(url)


def test_workers_are_one_aggregator(tmp_path, url):
    """Connections go to both workers. Reports, metrics and the limit add up."""
    limit = 70
    options = ("--workers", "2", "--requests-per-minute", str(limit))
    with serving(tmp_path, *options, url=url) as aggregator, ExitStack() as open_connections:
        assert len(aggregator.workers) == 2
        connections = [aggregator.connect() for _ in range(24)]
        for connection in connections:
            open_connections.callback(connection.close)
        start = time.monotonic()
        statuses = [send(connections[i % 24], i // 2) for i in range(200)]
        new_tokens = limit * (time.monotonic() - start) / 60
        counted = statuses.count(201)
        admitted = counted + statuses.count(200)
        assert set(statuses) == {200, 201, 429}
        assert limit <= admitted <= limit + new_tokens + 1
        assert admitted // 2 <= counted <= admitted // 2 + 1  # every batch was sent twice
        assert aggregator.status() == counted
        assert aggregator.metric("sfumato_reports_total") == counted
        assert aggregator.metric("sfumato_problems_total") == statuses.count(429)
        wait_until(lambda: aggregator.metric("sfumato_open_connections") == 25)
        shares = [count_connections(pid, aggregator.port) for pid in aggregator.workers]
        assert sum(shares) == 24
        assert min(shares) > 0  # chance that one worker gets all: 2 ** -23


def count_connections(pid, port):
    """Count the connections that a process has at a port of this machine."""
    sockets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except FileNotFoundError:  # the process closed it in the meantime
            continue
        if target.startswith("socket:["):
            sockets.add(target[8:-1])
    count = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        is_established = fields[3] == "01"
        if is_established and fields[1].endswith(f":{port:04X}") and fields[9] in sockets:
            count += 1
    return count


def test_a_worker_that_dies_is_replaced(tmp_path):
    with serving(tmp_path, "--workers", "2") as aggregator:
        for number in range(10):
            assert send_anew(aggregator, number) == 201
        before = aggregator.workers
        os.kill(before[0], signal.SIGKILL)
        aggregator.wait_for(r"a worker ended unexpectedly \(status -9\)")
        wait_until(lambda: len(aggregator.workers) == 2)
        assert set(aggregator.workers) != set(before)
        for number in range(20):
            assert send_anew(aggregator, number) == (200 if number < 10 else 201)
        assert aggregator.status() == 20
        assert aggregator.metric("sfumato_reports_total") == 20
        wait_until(lambda: aggregator.metric("sfumato_open_connections") == 1)


def send_anew(aggregator, number):
    """Send a report over a new connection, which may go to any worker."""
    connection = aggregator.connect()
    try:
        return send(connection, number)
    finally:
        connection.close()


def test_no_worker_is_started_while_others_stop(tmp_path):
    """A signal arrives after a worker has died. The other one waits for the rest of uploads."""
    with serving(tmp_path, "--workers", "2") as aggregator:
        before = aggregator.workers
        uploads = [aggregator.connect() for _ in range(12)]
        for upload in uploads:  # both workers have some; chance of the opposite: 2 ** -11
            upload.putrequest("POST", upload_path(SURVEY.fingerprint))
            upload.putheader("Content-Type", "application/json")
            upload.putheader("Content-Length", "100")
            upload.endheaders(b"{")
        wait_until(lambda: aggregator.metric("sfumato_open_connections") == 13)
        os.kill(before[0], signal.SIGKILL)
        aggregator.wait_for("ended unexpectedly")
        aggregator.process.send_signal(signal.SIGTERM)
        seen = set()
        for _ in range(50):  # for longer than it takes to replace a worker
            seen.update(aggregator.workers)
            time.sleep(0.05)
        assert seen <= set(before)
        for upload in uploads:
            upload.close()
        assert aggregator.process.wait(30) == 0
        assert "Traceback" not in aggregator.process.stderr.read()


def test_a_worker_that_cannot_be_replaced_now_is_replaced_later(tmp_path, monkeypatch, capfd):
    """The system may have no memory or no process to spare for a moment."""
    create = asyncio.create_subprocess_exec
    started = []

    async def create_sometimes(*arguments, **options):
        started.append(len(started))
        if len(started) in (3, 4):
            raise BlockingIOError(errno.EAGAIN, "no process to spare")
        if len(started) == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return await create(*arguments, **options)

    def kill_a_worker(_):
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", create_sometimes)
    monkeypatch.setattr(workers, "_RESTART_DELAY", 0.01)
    setup = WorkerSetup(f"sqlite:///{tmp_path}/reports.db", 2, 0, 1, None)
    run_workers(listen_together("127.0.0.1", 0, 2), setup, kill_a_worker)
    assert len(started) == 5
    assert capfd.readouterr().err.count("cannot be started") == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_all_workers(tmp_path, number):
    with serving(tmp_path, "--workers", "2") as aggregator:
        workers = aggregator.workers
        assert send_anew(aggregator, 1) == 201
        aggregator.process.send_signal(number)
        assert aggregator.process.wait(30) == 0
        assert not any(map(is_running, workers))
        assert "Traceback" not in aggregator.process.stderr.read()


def test_workers_stop_when_their_parent_is_killed(tmp_path):
    with serving(tmp_path, "--workers", "2") as aggregator:
        workers = aggregator.workers
        aggregator.process.kill()
        wait_until(lambda: not any(map(is_running, workers)))


def test_workers_that_cannot_start_end_the_aggregator(tmp_path, capfd):
    sockets = listen_together("127.0.0.1", 0, 2)
    setup = WorkerSetup(f"sqlite:///{tmp_path}/no/such/folder/reports.db", 2, 0, 1, None)
    with pytest.raises(InvalidSetting, match="could not start"):
        run_workers(sockets, setup, lambda url: pytest.fail("it started"))
    assert "does not exist" in capfd.readouterr().err
    assert all(each.fileno() == -1 for each in sockets)


def test_workers_import_nothing_from_the_current_folder(tmp_path, monkeypatch):
    """A program that is installed does not, and a folder of surveys may hold anybody's files."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "uvicorn.py").write_text("raise SystemExit('the wrong module')", encoding="utf-8")
    monkeypatch.chdir(elsewhere)
    setup = WorkerSetup(f"sqlite:///{tmp_path}/reports.db", 2, 0, 1, None)
    sockets = listen_together("127.0.0.1", 0, 2)
    run_workers(sockets, setup, lambda url: os.kill(os.getpid(), signal.SIGTERM))


def test_a_port_that_is_in_use_is_refused():
    """Sockets that share an address would not notice each other."""
    sockets = listen_together("127.0.0.1", 0, 2)
    port = sockets[0].getsockname()[1]
    assert {each.getsockname() for each in sockets} == {("127.0.0.1", port)}
    with pytest.raises(InvalidSetting, match="address already in use"):
        listen_together("127.0.0.1", port, 2)
    for each in sockets:
        each.close()


def test_the_setup_is_not_an_argument(tmp_path):
    """Every user can see arguments, and the store's URL may contain a password."""
    with serving(tmp_path, "--workers", "2") as aggregator:
        for pid in aggregator.workers:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            assert arguments[1:4] == [b"-P", b"-m", b"sfumato.aggregator.worker"]
            assert b"".join(arguments[4:]) == b""
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            assert b"sqlite" not in environment
            assert METRICS_FOLDER.encode() in environment


def test_workers_divide_the_limits():
    setup = WorkerSetup("sqlite:///reports.db", 4, 100, 3, None)
    assert WorkerSetup.from_json(setup.to_json()) == WorkerSetup(
        "sqlite:///reports.db", 4, 100, 3, None, []
    )
    settings = setup.settings()
    assert (settings.workers, settings.requests_per_minute, settings.reports_per_upload) == (
        4,
        100,
        3,
    )
    assert settings.connections.divide(4).max_open == settings.connections.max_open // 4


def test_address_of_sockets_in_ipv6():
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    for each in listen_together("::1", 0, 2):
        assert each.getsockname()[0] == "::1"
        each.close()
