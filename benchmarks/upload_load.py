"""A load generator for aggregators on loopback, shared by the benchmarks of uploads.

Bodies are encoded in advance; each gets a fresh identifier before it is sent.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.batches import ARROW_MEDIA_TYPE, JSON_MEDIA_TYPE, UploadRules, to_arrow, to_json
from sfumato.cells import CellKey
from sfumato.foundation.periods import period_name
from sfumato.survey import Survey

__all__ = [
    "Request",
    "RunningAggregator",
    "cpu_seconds",
    "make_request",
    "random_outputs",
    "read_announcement",
    "send_for",
    "serving",
]

Request = tuple[bytes, bytes]
"""A request in two parts, before and after its identifier."""

_IDENTIFIER = b"0" * 32  # replaced before a request is sent


def make_request(
    survey: Survey, reports: int, seed: int, *, token: str = "", arrow: bool = False
) -> Request:
    """Return a request that uploads random reports to a survey (see ``random_outputs``)."""
    outputs = random_outputs(survey, reports, seed)
    rules = UploadRules.from_survey(survey)
    key = CellKey(period_name(rules.every, datetime.now(UTC)) if rules.every else "")
    batch = rules.make_batch(bytes(16), outputs, key)
    body = to_arrow(batch) if arrow else to_json(batch)
    head = f"POST /v1/surveys/{survey.fingerprint}/batches HTTP/1.1\r\nHost: localhost\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    media_type = ARROW_MEDIA_TYPE if arrow else JSON_MEDIA_TYPE
    head += f"Content-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    first, _, second = (head.encode() + body).partition(_IDENTIFIER)
    return first, second


def random_outputs(survey: Survey, reports: int, seed: int) -> NDArray[np.uint32]:
    """Return random reports, the same ones for the same seed."""
    generator = np.random.default_rng(seed)
    return generator.integers(0, survey.mechanism.outputs, reports).astype(np.uint32)


async def send_for(
    seconds: float, requests: Sequence[Request], port: int, connections: int
) -> list[float]:
    """Send requests over several connections for some seconds. Return their latencies."""
    loop = asyncio.get_running_loop()
    end = time.perf_counter() + seconds
    clients = [_Client(requests, i, end) for i in range(connections)]
    for client in clients:
        await loop.create_connection(client.get_self, "127.0.0.1", port)
    await asyncio.gather(*(client.finished for client in clients))
    return [latency for client in clients for latency in client.latencies]


class _Client(asyncio.Protocol):
    """A connection that sends a request, waits for the response, and sends the next."""

    def __init__(self, requests: Sequence[Request], first: int, end: float) -> None:
        self._requests = requests
        self._next = first
        self._end = end
        self._response = b""
        self.latencies: list[float] = []
        self.finished = asyncio.get_running_loop().create_future()

    def get_self(self) -> "_Client":
        return self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def _send(self) -> None:
        first, second = self._requests[self._next % len(self._requests)]
        self._next += 1
        self._started = time.perf_counter()
        self._transport.write(b"".join((first, os.urandom(16).hex().encode(), second)))

    def data_received(self, data: bytes) -> None:
        self._response += data
        if not self._response.endswith(b"}"):  # responses are one JSON object
            return
        if not self._response.startswith(b"HTTP/1.1 201"):
            self.finished.set_exception(SystemExit(self._response.decode()))
            return
        now = time.perf_counter()
        self._response = b""
        self.latencies.append(now - self._started)
        if now < self._end:
            self._send()
        else:
            self._transport.close()
            self.finished.set_result(None)

    def connection_lost(self, problem: Exception | None) -> None:
        if not self.finished.done():
            self.finished.set_exception(SystemExit("the server closed a connection"))


class RunningAggregator(NamedTuple):
    """A running `sfumato serve`: its process, its token if that is new, and its port."""

    process: subprocess.Popen[str]
    token: str
    port: int


@contextmanager
def serving(*arguments: str) -> Iterator[RunningAggregator]:
    """Run `sfumato serve` with some arguments at a free port."""
    command = [sys.executable, "-m", "sfumato", "serve", "--port", "0", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        token, port = read_announcement(process)
        yield RunningAggregator(process, token, port)
    finally:
        process.terminate()
        process.wait(60)


def read_announcement(server: subprocess.Popen[str]) -> tuple[str, int]:
    """Wait until `sfumato serve` has started. Return the token, if it is new, and the port."""
    token = ""
    for line in server.stderr or ():
        if "token (" in line:
            token = line.split()[-1]
        if "listening on" in line:
            return token, int(line.rsplit(":", 1)[1])
    raise SystemExit("the aggregator did not start")


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and of its children that are running."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except FileNotFoundError:  # it has just ended
        return 0.0
    own_seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own_seconds + sum(cpu_seconds(int(child)) for child in children)
