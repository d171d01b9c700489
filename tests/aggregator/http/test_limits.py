"""Limits: how many requests a client may make, and how much of a body is read."""

import fcntl
import os
import re
import subprocess
import sys
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.aggregator.http import buckets as module
from sfumato.aggregator.http.buckets import LocalBuckets, SharedBuckets
from sfumato.aggregator.http.client_limits import ClientLimits
from sfumato.batches import JSON_MEDIA_TYPE, MAX_BATCH_BYTES, to_json
from support.http_client import batch_of, run_aggregator

SURVEY = sf.Survey("places", sf.Uniform(["no", "yes"], 1))
ADDRESS = "198.51.100.7"
NEIGHBOUR = "198.51.100.8"


class Clock:
    def __init__(self):
        self.time = 1000.0

    def __call__(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["of one process", "shared"])
def limits_of(request, clock):
    """Return limits on a number of requests per minute, in either kind of memory."""
    descriptors = []

    def new_limits(per_minute):
        if request.param == "of one process":
            return ClientLimits(per_minute, LocalBuckets(), clock=clock)
        descriptors.append(SharedBuckets.create())
        return ClientLimits(per_minute, SharedBuckets(descriptors[-1]), clock=clock)

    yield new_limits
    for descriptor in descriptors:
        os.close(descriptor)


def test_the_bucket_agrees_with_an_obvious_one(limits_of, clock):
    """A twin in fractions: the level rises with time up to its size; each request takes one."""
    limits = limits_of(30)
    level = Fraction(30)
    steps = [0] * 40 + [1] * 10 + [Fraction(1, 4)] * 40 + [100] + [0] * 35
    waits = []
    for step in steps:
        clock.time += float(step)
        level = min(Fraction(30), level + step * Fraction(30, 60))
        wait = limits.seconds_to_wait(ADDRESS)
        expected = Fraction(0) if level >= 1 else (1 - level) * 2
        level -= 1 if level >= 1 else 0
        assert wait == pytest.approx(float(expected), abs=1e-9)
        waits.append(wait)
    assert 0 < sum(wait > 0 for wait in waits) < len(waits)


def test_clients_may_continue_after_retry_after(limits_of, clock):
    limits = limits_of(7)
    for _ in range(50):
        clock.time += limits.seconds_to_wait(ADDRESS) + 1e-9
    while wait := limits.seconds_to_wait(ADDRESS):
        clock.time += wait + 1e-9
        assert limits.seconds_to_wait(ADDRESS) == 0


def test_clients_do_not_share_a_bucket(limits_of, clock):
    limits = limits_of(1)
    assert limits.seconds_to_wait(ADDRESS) == 0
    assert limits.seconds_to_wait(ADDRESS) == 60
    assert limits.seconds_to_wait(NEIGHBOUR) == 0


def test_zero_means_any_number(limits_of, clock):
    limits = limits_of(0)
    assert {limits.seconds_to_wait(ADDRESS) for _ in range(1000)} == {0.0}


def content_of(limits):
    """Return everything that limits keep, as text."""
    buckets = limits._buckets
    memory = buckets._memory[:] if isinstance(buckets, SharedBuckets) else b""
    return repr(vars(limits)) + repr(vars(buckets)) + repr(memory)


def hash_of(limits, address):
    return limits._client_hash(address, limits._clock())


def test_no_address_is_stored(limits_of):
    limits = limits_of(5)
    limits.seconds_to_wait(ADDRESS)
    content = content_of(limits)
    assert ADDRESS not in content
    client = hash_of(limits, ADDRESS)
    assert len(client) == 16
    # Whether a quotation mark is escaped depends on all bytes that are shown.
    assert repr(client)[2:-1].replace("\\'", "'") in content.replace("\\'", "'")


def test_hashes_change_with_the_key(limits_of, clock):
    """Under another key the same address has another hash, so no table of hashes can be built."""
    first = limits_of(1)
    second = limits_of(1)
    before = {hash_of(first, ADDRESS), hash_of(second, ADDRESS)}
    assert len(before) == 2
    assert first.seconds_to_wait(ADDRESS) == 0
    clock.time += 3601
    assert hash_of(first, ADDRESS) not in before
    for client in before:
        assert first._buckets.read(client) is None


def test_the_least_recent_clients_are_dropped_first(clock, monkeypatch):
    monkeypatch.setattr(module, "_MAX_CLIENTS", 10)
    limits = ClientLimits(1, clock=clock)
    limits.seconds_to_wait(ADDRESS)
    for number in range(50):
        limits.seconds_to_wait(f"client {number}")
        assert limits.seconds_to_wait(ADDRESS) > 0  # it asks all the time, and is remembered
        assert len(limits._buckets._buckets) <= 10
    assert limits.seconds_to_wait("client 0") == 0


def test_a_full_row_drops_the_client_that_was_idle_for_longest():
    descriptor = SharedBuckets.create()
    buckets = SharedBuckets(descriptor)
    clients = [bytes(4) + number.to_bytes(12, "big") for number in range(1, 10)]  # all in one row
    for time, client in enumerate(clients[:8]):
        buckets.write(client, 5.0, time + 1.0)
    buckets.write(clients[0], 4.0, 9.0)
    buckets.write(clients[8], 5.0, 10.0)
    assert buckets.read(clients[1]) is None
    assert buckets.read(clients[0]) == (4.0, 9.0)
    for time, client in list(enumerate(clients))[2:8]:
        assert buckets.read(client) == (5.0, time + 1.0)
    assert buckets.read(bytes(8) + clients[0][:8]) is None  # bytes of two hashes
    os.close(descriptor)


_PROCESS = """
import sys
from sfumato.aggregator.http.buckets import SharedBuckets
from sfumato.aggregator.http.client_limits import ClientLimits

limits = ClientLimits(600, SharedBuckets(int(sys.argv[1])), clock=lambda: 1.0)
print(sum(limits.seconds_to_wait(sys.argv[2]) == 0 for _ in range(1000)))
"""


def test_processes_share_what_a_client_may_do():
    """Two processes take tokens as fast as they can: no token is given twice."""
    descriptor = SharedBuckets.create()
    command = [sys.executable, "-c", _PROCESS, str(descriptor), ADDRESS]
    processes = []
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[descriptor])
        processes.append(process)
    admitted = [int(process.communicate(timeout=60)[0]) for process in processes]
    assert sum(admitted) == 600
    limits = ClientLimits(600, SharedBuckets(descriptor), clock=lambda: 1.0)
    assert limits.seconds_to_wait(ADDRESS) > 0
    assert limits.seconds_to_wait(NEIGHBOUR) == 0
    os.close(descriptor)


_HOLDER = """
import sys, time
from sfumato.aggregator.http.buckets import SharedBuckets

with SharedBuckets(int(sys.argv[1])).lock:
    print("locked", flush=True)
    time.sleep(60)
"""


def test_a_process_that_dies_leaves_no_lock():
    descriptor = SharedBuckets.create()
    command = [sys.executable, "-c", _HOLDER, str(descriptor)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[descriptor]) as process:
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(BlockingIOError):
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process.kill()
    limits = ClientLimits(1, SharedBuckets(descriptor))
    assert limits.seconds_to_wait(ADDRESS) == 0
    os.close(descriptor)


def test_a_frozen_process_holds_up_nobody_for_long():
    """It cannot release its lock, and the kernel does not, either."""
    descriptor = SharedBuckets.create()
    command = [sys.executable, "-c", _HOLDER, str(descriptor)]
    limits = ClientLimits(5, SharedBuckets(descriptor))
    with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[descriptor]) as process:
        assert process.stdout.readline() == b"locked\n"
        admitted = [limits.seconds_to_wait(ADDRESS) == 0 for _ in range(200)]
        process.kill()
    assert admitted.count(True) == 5
    os.close(descriptor)


# --- over HTTP ------------------------------------------------------------------------------------


def test_too_many_requests_get_retry_after(tmp_path):
    with run_aggregator(tmp_path, SURVEY, requests_per_minute=3) as aggregator:
        batch = batch_of(SURVEY, [1])
        assert [aggregator.upload(batch, client=ADDRESS).status for _ in range(3)] == [
            201,
            200,
            200,
        ]
        before = aggregator.dump()
        answer = aggregator.upload(batch_of(SURVEY, [1], 2), client=ADDRESS)
        assert (answer.status, answer.problem) == (429, "too-many-requests")
        assert 1 <= int(answer.headers["retry-after"]) <= 21
        assert ADDRESS not in answer.body.decode()
        assert aggregator.dump() == before
        for path in ("/v1/surveys", f"/v1/surveys/{SURVEY.fingerprint}"):
            assert aggregator.http.request("GET", path, client=ADDRESS).status == 429
            assert aggregator.http.request("GET", path, client=NEIGHBOUR).status == 200


def test_refused_requests_use_up_the_bucket_too(tmp_path):
    with run_aggregator(tmp_path, SURVEY, requests_per_minute=2) as aggregator:
        statuses = [
            aggregator.post(
                SURVEY.fingerprint, b"{", {"Content-Type": JSON_MEDIA_TYPE}, client=ADDRESS
            ).status
            for _ in range(3)
        ]
        assert statuses == [400, 400, 429]


MONITORS = ["/health", "/ready", "/dashboard/ready"]


def test_other_requests_do_not_use_up_the_allowance_of_monitors(tmp_path):
    with run_aggregator(tmp_path, SURVEY, requests_per_minute=3) as aggregator:
        statuses = [aggregator.http.get("/v1/surveys").status for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        assert [aggregator.http.get(path).status for path in MONITORS] == [200, 200, 200]
        assert [aggregator.http.get(path).status for path in MONITORS] == [429, 429, 429]
        assert {aggregator.request_with_token("/metrics").status for _ in range(5)} == {200}


def _addresses(routes):
    """Return every method and path of an application, for one survey."""
    addresses = []
    for route in routes:
        inner = getattr(route, "routes", None) or getattr(
            getattr(route, "original_router", None), "routes", None
        )
        if inner:
            addresses += _addresses(inner)
            continue
        path = re.sub(r"{\w+:path}", "x", route.path).format(
            fingerprint=SURVEY.fingerprint, tally="ab" * 16, day="2026-11-15", sender="north"
        )
        addresses += [(method, path) for method in sorted(route.methods)]
    return addresses


def test_all_requests_without_a_valid_token_are_limited(tmp_path):
    with run_aggregator(tmp_path, SURVEY, requests_per_minute=2) as aggregator:
        addresses = _addresses(aggregator.http.app.routes)
        assert ("GET", "/v1/openapi.json") in addresses
        assert ("POST", f"/v1/surveys/{SURVEY.fingerprint}/end") in addresses
        addresses += [("GET", "/nowhere"), ("PATCH", "/v1/surveys")]
        for number, (method, path) in enumerate(addresses):
            client = f"198.51.100.{number}"
            guess = {"Authorization": "Bearer guess"}
            statuses = [
                aggregator.http.request(method, path, headers=guess, client=client).status
                for _ in range(3)
            ]
            assert statuses[2] == 429 not in statuses[:2], (method, path)


def test_valid_tokens_are_not_limited(tmp_path):
    with run_aggregator(tmp_path, SURVEY, requests_per_minute=1) as aggregator:
        assert [aggregator.http.get("/v1/surveys").status for _ in range(2)] == [200, 429]
        status = f"/v1/surveys/{SURVEY.fingerprint}/status"
        assert {aggregator.request_with_token(status).status for _ in range(5)} == {200}
        close = f"/v1/surveys/{SURVEY.fingerprint}/close"
        assert aggregator.request_with_token(close, method="POST").status == 200


# --- bodies ---------------------------------------------------------------------------------------


class Endless:
    """A body of 100 MB in chunks, and how much of it was asked for."""

    def __init__(self, *, chunk=65_536, total=100_000_000):
        self._chunk = bytes(chunk)
        self._left = total
        self.read = 0

    def __iter__(self):
        while self._left > 0:
            self._left -= len(self._chunk)
            self.read += len(self._chunk)
            yield self._chunk


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize("chunk", [1_000, 65_536])
def test_a_large_body_is_refused_after_one_mebibyte(tmp_path, chunk, encoding):
    with run_aggregator(tmp_path, SURVEY) as aggregator:
        before = aggregator.dump()
        body = Endless(chunk=chunk)
        headers = {"Content-Type": JSON_MEDIA_TYPE, "Content-Encoding": encoding}
        answer = aggregator.post(SURVEY.fingerprint, body, headers)
        assert (answer.status, answer.problem) == (413, "body-too-large")
        assert answer.headers["connection"] == "close"
        assert MAX_BATCH_BYTES < body.read <= MAX_BATCH_BYTES + chunk
        assert aggregator.dump() == before


@pytest.mark.parametrize(
    ("fingerprint", "headers", "status"),
    [
        (SURVEY.fingerprint, {"Content-Type": JSON_MEDIA_TYPE, "Content-Length": "100000000"}, 413),
        (SURVEY.fingerprint, {"Content-Type": JSON_MEDIA_TYPE, "Content-Encoding": "br"}, 415),
        (SURVEY.fingerprint, {"Content-Type": "text/plain"}, 415),
        ("ab" * 32, {"Content-Type": JSON_MEDIA_TYPE}, 404),
    ],
)
def test_rejected_requests_are_not_read(tmp_path, fingerprint, headers, status):
    with run_aggregator(tmp_path, SURVEY) as aggregator:
        body = Endless()
        assert aggregator.post(fingerprint, body, headers).status == status
        assert body.read == 0


def test_disconnected_clients_count_nothing(tmp_path):
    with run_aggregator(tmp_path, SURVEY) as aggregator:
        before = aggregator.dump()
        answer = aggregator.post(
            SURVEY.fingerprint,
            to_json(batch_of(SURVEY, [1])),
            {"Content-Type": JSON_MEDIA_TYPE},
            gone=True,
        )
        assert (answer.status, answer.problem) == (400, "invalid-request")
        assert aggregator.dump() == before


def test_a_tally_may_be_as_large_as_its_survey_and_no_larger(tmp_path):
    with run_aggregator(tmp_path, SURVEY) as aggregator:
        body = Endless()
        path = f"/v1/surveys/{SURVEY.fingerprint}/imports"
        headers = {"Content-Type": JSON_MEDIA_TYPE}
        answer = aggregator.request_with_token(path, method="POST", body=body, headers=headers)
        assert (answer.status, answer.problem) == (413, "body-too-large")
        assert body.read < 1.2 * 2**20
