"""How many reports per second an aggregator stores durably, on loopback.

    python benchmarks/aggregator.py --seconds 60 --connections 64

Bodies are encoded in advance; each gets a fresh identifier before it is sent. Every acknowledged
report must be in the counts at the end. The load generator runs on the same cores, so its CPU time
is printed too.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import numpy as np

from sfumato.batches import (
    ARROW_MEDIA_TYPE,
    JSON_MEDIA_TYPE,
    UploadRules,
    to_arrow,
    to_json,
)
from sfumato.cells import CellKey
from sfumato.foundation.periods import period_name
from sfumato.survey import Survey

_SURVEY = """
name = "load"
edition = {edition}
repeat = {repeat}
[domain]
kind = "range"
size = 43750
[context]
kind = "uniform"
epsilon = 1.0
[mechanism]
code = "hadamard"
"""
_IDENTIFIER = b"0" * 32  # replaced before a request is sent


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder, "survey.toml")
        repeat = '{ every = "week", distinct = 3 }' if options.repeated else '"once"'
        text = _SURVEY.format(edition=options.edition, repeat=repeat)
        path.write_text(text, encoding="utf-8")
        survey = Survey.load(path)
        store = options.store or f"sqlite:///{folder}/reports.db"
        command = [sys.executable, "-m", "sfumato", "serve", str(path), "--store", store]
        command += ["--port", "0", "--requests-per-minute", "0"]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            token, port = _read_announcement(server)
            for arm in options.arms:
                _run_arm(arm, survey, server.pid, token, port, options)
        finally:
            server.terminate()
            server.wait(30)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument(
        "--arms",
        nargs="*",
        default=["arrow", "json", "single"],
        choices=["arrow", "json", "single"],
    )
    parser.add_argument("--edition", type=int, default=1, choices=[1, 2])
    parser.add_argument("--repeated", action="store_true", help="a survey that repeats every week")
    parser.add_argument("--store", default=None, help="another store; otherwise a new SQLite file")
    parser.add_argument(
        "--folder", default=".", help="where the SQLite file goes: on a disk, not in memory"
    )
    return parser.parse_args()


def _read_announcement(server: subprocess.Popen[str]) -> tuple[str, int]:
    token = ""
    for line in server.stderr or ():
        if "token" in line:
            token = line.split()[-1]
        if "listening on" in line:
            return token, int(line.rsplit(":", 1)[1])
    raise SystemExit("the aggregator did not start")


def _run_arm(
    arm: str, survey: Survey, pid: int, token: str, port: int, options: argparse.Namespace
) -> None:
    per_batch = 1 if arm == "single" else 1000
    key = "" if arm == "single" else token  # large uploads need a key
    requests = [_request(survey, arm, per_batch, seed, key) for seed in range(64)]
    before = _count_reports(survey, token, port)
    own_start = _own_seconds()
    server_start = _seconds_of(pid)
    started = time.perf_counter()
    latencies = asyncio.run(_load(requests, port, options.connections, options.seconds))
    elapsed = time.perf_counter() - started
    own_cores = (_own_seconds() - own_start) / elapsed
    server_cores = (_seconds_of(pid) - server_start) / elapsed
    done = len(latencies)
    if _count_reports(survey, token, port) - before != done * per_batch:
        raise SystemExit("the counts differ from the acknowledged reports")
    p50, p99 = np.percentile(latencies, [50, 99]) * 1000
    print(
        f"{arm:>6}: {done * per_batch / elapsed:>12,.0f} reports/s  "
        f"{done / elapsed:>7,.0f} requests/s  p50 {p50:5.1f} ms  p99 {p99:5.1f} ms  "
        f"cores: server {server_cores:.2f}, generator {own_cores:.2f}",
        flush=True,
    )


def _request(survey: Survey, arm: str, reports: int, seed: int, token: str) -> tuple[bytes, bytes]:
    """Return a request in two halves, before and after its identifier."""
    generator = np.random.default_rng(seed)
    outputs = generator.integers(0, survey.mechanism.outputs, reports).astype(np.uint32)
    rules = UploadRules.from_survey(survey)
    key = CellKey(period_name(rules.every, datetime.now(UTC)) if rules.every else "")
    batch = rules.make_batch(bytes(16), outputs, key)
    body, kind = (
        (to_arrow(batch), ARROW_MEDIA_TYPE) if arm == "arrow" else (to_json(batch), JSON_MEDIA_TYPE)
    )
    head = f"POST /v1/surveys/{survey.fingerprint}/batches HTTP/1.1\r\nHost: localhost\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    first, _, second = (head.encode() + body).partition(_IDENTIFIER)
    return first, second


async def _load(
    requests: list[tuple[bytes, bytes]], port: int, connections: int, seconds: float
) -> list[float]:
    loop = asyncio.get_running_loop()
    end = time.perf_counter() + seconds
    clients = [_Client(requests, i, end) for i in range(connections)]
    for client in clients:
        await loop.create_connection(client.get_self, "127.0.0.1", port)
    await asyncio.gather(*(client.finished for client in clients))
    return [latency for client in clients for latency in client.latencies]


class _Client(asyncio.Protocol):
    """A connection that sends a request, waits for the response, and sends the next."""

    def __init__(self, requests: list[tuple[bytes, bytes]], first: int, end: float) -> None:
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
            self.finished.set_exception(SystemExit("the aggregator closed a connection"))


def _count_reports(survey: Survey, token: str, port: int) -> int:
    address = f"http://127.0.0.1:{port}/v1/surveys/{survey.fingerprint}/status"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return int(json.load(answer)["reports"])


def _own_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _seconds_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
