"""Connections without a proxy in front: endless heads, silent clients, clients that never read."""

import logging
import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import pytest

import sfumato as sf
from sfumato.aggregator import ConnectionLimits, Settings, create_app
from sfumato.aggregator.run import OncePerSecond
from sfumato.batches import to_json
from support.http_client import (
    batch_of,
    exchange,
    listen,
    parse_response,
    read_all,
    run_aggregator,
    upload_head,
)
from support.waiting import wait_until

SURVEY = sf.Survey("places", sf.Uniform(["park", "café", "clinic"], 1))
PATIENT = 60.0
"""Seconds: a limit that no test reaches."""

HEALTH = b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@contextmanager
def limited(folder, survey=SURVEY, *, max_head_bytes=2**16, patience=PATIENT, max_open=1000):
    """Run an aggregator on a socket, with these limits; yield its address and its state."""
    with run_aggregator(folder, survey) as aggregator:
        settings = Settings(
            requests_per_minute=0,
            connections=ConnectionLimits(max_head_bytes, patience, max_open),
        )
        app = create_app(aggregator.store, settings)
        with listen(app) as address:
            yield address, app.state.aggregator


def connect(address):
    return socket.create_connection(address, timeout=30)


def upload(address, number):
    body = to_json(batch_of(SURVEY, [1], number))
    head = upload_head(SURVEY.fingerprint, Content_Length=len(body), Connection="close")
    return parse_response(exchange(address, head, body, seconds=30)).status


def is_closed(connection):
    """Whether the server closes the connection, without a byte of an answer."""
    return read_all(connection) == b""


# --- heads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "start",
    [
        b"GET /health HTTP/1.1\r\nX: ",
        b"GET /",
        b"",
        b"POST /health HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.1\r\nX: ",
    ],
    ids=["value", "path", "nothing", "second request"],
)
def test_an_endless_head_is_refused(tmp_path, start):
    with limited(tmp_path, max_head_bytes=5000) as (address, state):
        with connect(address) as endless:
            endless.sendall(start)
            with pytest.raises(OSError):
                for _ in range(100_000):
                    endless.sendall(b"\r\n" * 1000 if start == b"" else b"a" * 2000)
        assert upload(address, 1) == 201
        assert b'problem="head-too-large"} 1.0' in state.metrics.render()


@pytest.mark.parametrize(
    "extra",
    [b"X: " + b"a" * 5000, b"\r\n".join(b"X%d: a" % i for i in range(1000))],
    ids=["one long header", "many headers"],
)
@pytest.mark.parametrize("pieces", [1, 7])
def test_a_large_head_is_431(tmp_path, extra, pieces):
    head = b"GET /health HTTP/1.1\r\nHost: a\r\n" + extra + b"\r\n\r\n"
    size = len(head) // pieces + 1
    parts = [head[start : start + size] for start in range(0, len(head), size)]
    with limited(tmp_path, max_head_bytes=5000) as (address, _):
        answer = parse_response(exchange(address, *parts))
        assert (answer.status, answer.problem) == (431, "head-too-large")
        assert answer.headers["connection"] == "close"
        assert parse_response(exchange(address, HEALTH)).status == 200


def test_the_default_limit_is_64_kib(tmp_path):
    for length, status in ((60_000, 200), (66_000, 431)):
        extra = b"X: " + b"a" * length + b"\r\n"
        with limited(tmp_path) as (address, _):
            raw = exchange(address, HEALTH.replace(b"\r\n\r\n", b"\r\n" + extra + b"\r\n"))
            assert parse_response(raw).status == status


def test_bodies_and_pipelined_requests_are_not_part_of_a_head(tmp_path):
    """All heads together are larger than one head may be, and so is each body."""
    with limited(tmp_path, max_head_bytes=500) as (address, _):
        requests = []
        for number in range(1, 61):
            body = to_json(batch_of(SURVEY, [1], number)) + b" " * 2000
            requests.append(upload_head(SURVEY.fingerprint, Content_Length=len(body)) + body)
        raw = exchange(address, *requests, HEALTH)
        assert raw.count(b"HTTP/1.1 201") == 60
        assert raw.count(b"HTTP/1.1 200") == 1


def test_requests_that_are_not_http_get_a_problem_document(tmp_path):
    with limited(tmp_path) as (address, _):
        answer = parse_response(exchange(address, b"?\r\n\r\n"))
        assert (answer.status, answer.problem) == (400, "invalid-request")


def test_a_bad_second_request_does_not_cost_the_first_its_answer(tmp_path):
    with limited(tmp_path) as (address, _):
        raw = exchange(address, HEALTH.replace(b"Connection: close\r\n", b"") + b"?\r\n\r\n")
        assert raw.count(b"HTTP/1.1 ") == raw.count(b"HTTP/1.1 200") == 1


# --- silent connections ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /hea",
        b"GET /health HTTP/1.1\r\nHost: a\r\n",
        b"\r\n",
    ],
    ids=["nothing", "half a line", "half a head", "an empty line"],
)
def test_connections_without_a_request_are_closed(tmp_path, sent):
    with limited(tmp_path, patience=0.3) as (address, state):
        with connect(address) as silent:
            silent.sendall(sent)
            assert is_closed(silent)
        with connect(address) as trickle, pytest.raises(OSError):
            for _ in range(10_000):
                trickle.sendall(b"a")
                time.sleep(0.01)
        wait_until(lambda: state.connections.open_count == 0)


def test_a_body_that_nobody_reads_does_not_hold_a_connection(tmp_path):
    """The request was answered, so what comes afterwards must not postpone the end."""
    with limited(tmp_path, patience=0.3) as (address, _), connect(address) as trickle:
        trickle.sendall(b"POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
        assert b"404" in trickle.recv(1000)
        with pytest.raises(OSError):
            for _ in range(10_000):
                trickle.sendall(b"a")
                time.sleep(0.01)


def test_slow_bodies_and_kept_connections_are_not_cut(tmp_path):
    """A body has a limit of its own, which is longer."""
    body = to_json(batch_of(SURVEY, [1], 1))
    with limited(tmp_path, patience=0.3) as (address, _), connect(address) as slow:
        for _ in range(2):
            slow.sendall(upload_head(SURVEY.fingerprint, Content_Length=len(body)))
            time.sleep(1)
            slow.sendall(body)
            raw = b""
            while not raw.endswith(b"}"):
                raw += slow.recv(1000)
            assert parse_response(raw).status in (200, 201)


def test_clients_that_do_not_read_are_dropped(tmp_path):
    """A survey of megabytes, asked for many times on one connection."""
    large = sf.Survey("large", sf.Uniform([f"place {i:050}" for i in range(20_000)], 1))
    request = f"GET /v1/surveys/{large.fingerprint} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    with limited(tmp_path, large, patience=0.3) as (address, state), socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.settimeout(30)
        deaf.connect(address)
        deaf.sendall(request * 20)
        wait_until(lambda: state.connections.open_count == 1)
        wait_until(lambda: state.connections.open_count == 0)


def test_clients_that_read_slowly_get_everything(tmp_path):
    large = sf.Survey("large", sf.Uniform([f"place {i:050}" for i in range(20_000)], 1))
    request = (
        f"GET /v1/surveys/{large.fingerprint} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    )
    with limited(tmp_path, large, patience=0.5) as (address, _), socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(30)
        slow.connect(address)
        slow.sendall(request.encode())
        raw = b""
        while chunk := slow.recv(20_000):
            raw += chunk
            time.sleep(0.02)
        assert raw.endswith(large.resolved())


# --- many connections -----------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", b"GET /hea", upload_head(SURVEY.fingerprint)[:-2]])
def test_silent_connections_make_room_for_others(tmp_path, sent):
    with limited(tmp_path, max_open=10) as (address, state), ExitStack() as stack:
        silent = []
        for _ in range(40):
            connection = stack.enter_context(connect(address))
            connection.sendall(sent)
            silent.append(connection)
        assert [upload(address, number) for number in range(1, 4)] == [201, 201, 201]
        wait_until(lambda: state.connections.open_count == 10 - 1)
        assert b"sfumato_open_connections 9.0" in state.metrics.render()
        assert all(map(is_closed, silent[:30]))  # the oldest first


def test_half_uploads_make_room_for_others(tmp_path):
    with limited(tmp_path, max_open=10) as (address, _), ExitStack() as stack:
        for _ in range(40):
            connection = stack.enter_context(connect(address))
            connection.sendall(upload_head(SURVEY.fingerprint, Content_Length=100) + b"{")
        assert [upload(address, number) for number in range(1, 4)] == [201, 201, 201]


def test_file_limits_are_raised():
    """In a process of its own, because hard limits cannot be raised again."""
    program = (
        "import resource\n"
        "from sfumato.aggregator import ConnectionLimits\n"
        "for soft, hard in ((1024, 15_000), (200, 2000), (100, 100)):\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))\n"
        "    print(ConnectionLimits.for_this_process().max_open)\n"
        "    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
    )
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
    assert printed == ["10000", "15000", "1872", "2000", "1", "100"]


def test_messages_are_logged_once_a_second(caplog):
    now = [0.0]
    log = logging.getLogger("sfumato.test_connections")
    log.addFilter(OncePerSecond(clock=lambda: now[0]))
    for step in range(30):
        now[0] = step / 10
        log.warning("Invalid HTTP request received.")
        log.warning("other %d", step)
    assert caplog.messages.count("Invalid HTTP request received.") == 3
    assert len(caplog.messages) == 6


@pytest.mark.slow
def test_three_thousand_silent_connections_do_not_stop_uploads(tmp_path):
    """With the real limits, and `sfumato serve` in a process of its own."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    (tmp_path / "survey.json").write_bytes(SURVEY.resolved())
    command = [sys.executable, "-m", "sfumato", "serve", str(tmp_path / "survey.json"), "--port=0"]
    command.append(f"--store=sqlite:///{tmp_path}/reports.db")
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))  # noqa: E731
    try:
        with (
            subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=limit) as serve,
            ExitStack() as stack,
        ):
            stack.callback(serve.terminate)
            while "listening" not in (line := serve.stderr.readline()):
                assert line
            address = ("127.0.0.1", int(line.rstrip().rpartition(":")[2]))
            silent = [stack.enter_context(connect(address)) for _ in range(3000)]
            assert [upload(address, number) for number in range(1, 21)] == [201] * 20
            assert all(map(is_closed, silent))
            assert len(os.listdir(f"/proc/{serve.pid}/fd")) < 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
