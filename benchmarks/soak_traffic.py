"""The clients of a soak: senders, analysts, readers, operators, and clients that do wrong."""

import asyncio
import gzip
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.aggregator import Store
from sfumato.batches import parse_tally
from soak_connection import LOST, KeptConnection, Reply, abandon_request
from soak_ledger import Faults, SurveyRecord, Upload
from soak_plan import SoakPlan

__all__ = ["Traffic"]

_LABELS = ["park", "café", "clinic", "bar", "office"]
_RANGE = 1000
_SENDERS = 8
_REPEAT_SHARE = 0.1
_CLOSED_SHARE = 0.02
"""The share of uploads to surveys that are closed."""

_LEAVING_SHARE = 0.01
"""The share of senders that do not wait for the receipt, and send the same upload later."""

_MAX_ATTEMPTS = 3
_MAX_SILENT = 10
"""How many connections may wait for the server to close them."""

_NO_REPORTS = {200, 409}
"""The statuses of an estimate, which needs at least one report."""

_JSON = "Content-Type: application/json"


class _Gate:
    """Lets clients pass, and can wait until nobody is between request and response."""

    def __init__(self) -> None:
        self._inside = 0
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    @asynccontextmanager
    async def passage(self) -> AsyncIterator[None]:
        """Wait until the gate is open, and keep it from being paused meanwhile."""
        while not self._is_open.is_set():  # it may have closed again before a waiter runs
            await self._is_open.wait()
        self._inside += 1
        self._is_empty.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if self._inside == 0:
                self._is_empty.set()

    @asynccontextmanager
    async def pause(self) -> AsyncIterator[None]:
        """Close the gate until the end of the block, after everyone has left."""
        self._is_open.clear()
        await self._is_empty.wait()
        try:
            yield
        finally:
            self._is_open.set()


@dataclass(frozen=True)
class _Invalid:
    """An invalid request, and the status that it must get."""

    title: str
    request: bytes
    status: int
    may_be_lost: bool = False


class Traffic:
    """All clients of one server."""

    def __init__(self, plan: SoakPlan, url: str, port: int, token: str, faults: Faults) -> None:
        self._plan = plan
        self._url = url
        self._port = port
        self._token = token
        self._faults = faults
        self._generator = np.random.default_rng(plan.seed)
        self._gate = _Gate()
        self._run_name = f"soak-{os.urandom(4).hex()}"
        self._silent: set[asyncio.Task[None]] = set()
        self._group = asyncio.TaskGroup()
        self.records: list[SurveyRecord] = []
        self.statuses: Counter[int] = Counter()

    # --- requests ---------------------------------------------------------------------------------

    def _get(self, path: str, *headers: str, method: str = "GET") -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
        if method != "GET":
            lines.append("Content-Length: 0")
        return "\r\n".join([*lines, "", ""]).encode()

    def _with_token(self, path: str, method: str = "GET") -> bytes:
        return self._get(path, f"Authorization: Bearer {self._token}", method=method)

    async def _ask(
        self, connection: KeptConnection, title: str, request: bytes, expected: set[int]
    ) -> Reply:
        reply = await connection.send(request)
        self._judge(title, reply, expected)
        return reply

    def _judge(self, title: str, reply: Reply, expected: set[int]) -> None:
        self.statuses[reply.status] += 1
        if reply.status in expected:
            return
        if reply.status == LOST:
            self._faults.add(f"{title}: the server closed the connection or did not answer")
            return
        problem = ""
        if reply.headers.get("content-type") == "application/problem+json":
            document = json.loads(reply.body)
            problem = f" ({document['type'].rsplit(':', 1)[1]}: {document['detail']})"
        self._faults.add(f"{title}: status {reply.status}{problem}")

    # --- surveys ----------------------------------------------------------------------------------

    async def add_survey(self) -> SurveyRecord:
        """Register another survey in the store, while the server runs."""
        number = len(self.records)
        survey = await asyncio.to_thread(_make_survey, f"{self._run_name}-{number}", number)
        key = await asyncio.to_thread(_register, self._url, survey)
        record = SurveyRecord.make(survey, key)
        self.records.append(record)
        return record

    def _path(self, record: SurveyRecord, rest: str = "") -> str:
        return f"/v1/surveys/{record.survey.fingerprint}{rest}"

    def _choose(self) -> SurveyRecord:
        """Choose a survey to send to, rarely one that is closed."""
        is_any = self._generator.random() < _CLOSED_SHARE
        records = [record for record in self.records if is_any or record.state == "open"]
        return records[int(self._generator.integers(len(records)))]

    # --- clients ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Keep all clients busy until the end of the block. It ends when nobody waits."""
        clients: list[Coroutine[Any, Any, None]] = [self._send_singles() for _ in range(_SENDERS)]
        clients += [
            self._send_bulk(),
            self._send_invalid(),
            self._abandon_requests(),
            self._read_surveys(),
            self._analyse(),
            self._operate(),
        ]
        async with asyncio.TaskGroup() as group:
            self._group = group
            tasks = [group.create_task(client) for client in clients]
            yield
            async with self._gate.pause():
                for task in (*tasks, *self._silent):
                    task.cancel()
                await asyncio.wait(tasks)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[KeptConnection]:
        connection = KeptConnection(self._port)
        try:
            yield connection
        finally:
            await connection.close()

    async def _rest(self, seconds: float) -> None:
        """Wait for a random time with this mean."""
        await asyncio.sleep(seconds * self._generator.uniform(0.5, 1.5))

    async def _send_singles(self) -> None:
        async with self._connection() as connection:
            while True:
                await self._rest(_SENDERS / self._plan.reports_per_second)
                async with self._gate.passage():
                    record = self._choose()
                    await self._send_one(connection, record, record.singles)

    async def _send_bulk(self) -> None:
        """Send bulk uploads, each over a new connection, so that every worker gets some soon."""
        while True:
            await self._rest(self._plan.pause)
            async with self._gate.passage(), self._connection() as connection:
                record = self._choose()
                await self._send_one(connection, record, record.bulk)

    async def _send_one(
        self, connection: KeptConnection, record: SurveyRecord, uploads: Sequence[Upload]
    ) -> None:
        """Send an upload, or an earlier one again."""
        if record.earlier and self._generator.random() < _REPEAT_SHARE:
            upload, identifier = record.earlier[self._draw(len(record.earlier))]
            await self._repeat(connection, record, upload, identifier)
            return
        upload = uploads[self._draw(len(uploads))]
        identifier = os.urandom(16).hex().encode()
        has_left = self._generator.random() < _LEAVING_SHARE
        if has_left:
            await self._leave(upload.to_bytes(identifier), "close")
        await self._deliver(connection, record, upload, identifier, has_left=has_left)

    def _draw(self, count: int) -> int:
        return int(self._generator.integers(count))

    async def _repeat(
        self, connection: KeptConnection, record: SurveyRecord, upload: Upload, identifier: bytes
    ) -> None:
        version = record.version
        reply = await connection.send(upload.to_bytes(identifier))
        expected = record.statuses_to_expect(version, is_repeat=True)
        self._judge("repeated upload", reply, expected)

    async def _deliver(
        self,
        connection: KeptConnection,
        record: SurveyRecord,
        upload: Upload,
        identifier: bytes,
        *,
        has_left: bool,
    ) -> None:
        """Send a new upload until there is a receipt.

        ``has_left``: whether it was already sent, without waiting for the receipt.
        """
        is_uncertain = has_left
        for _ in range(_MAX_ATTEMPTS):
            version = record.version
            reply = await connection.send(upload.to_bytes(identifier))
            expected = record.statuses_to_expect(version, is_repeat=False)
            if is_uncertain:
                expected |= {200, 201}
            self._judge("upload", reply, expected)
            if reply.status in (200, 201):
                record.acknowledge(upload, identifier, self._generator)
            if LOST < reply.status < 500:
                return
            is_uncertain = True
            await asyncio.sleep(0.5)

    async def _read_surveys(self) -> None:
        async with self._connection() as connection:
            while True:
                await self._rest(self._plan.pause)
                async with self._gate.passage():
                    record = self.records[self._draw(len(self.records))]
                    await self._read_survey(connection, record)

    async def _read_survey(self, connection: KeptConnection, record: SurveyRecord) -> None:
        """Read a survey, and ask whether it has changed since."""
        reply = await self._ask(connection, "survey", self._get(self._path(record)), {200})
        if reply.status == 200 and reply.body != record.survey.resolved():
            self._faults.add("survey: other bytes than those that were registered")
        etag = f"If-None-Match: {reply.headers.get('etag', '')}"
        await self._ask(connection, "ETag", self._get(self._path(record), etag), {304})

    async def _analyse(self) -> None:
        """Read what analysts, their dashboard and monitoring read."""
        async with self._connection() as connection:
            while True:
                await self._rest(5 * self._plan.pause)
                record = self.records[self._draw(len(self.records))]
                for path, expected in self._analyst_paths(record).items():
                    async with self._gate.passage():
                        await self._ask(connection, _title(path), self._with_token(path), expected)
                async with self._gate.passage():
                    await self._check_visibility(connection, record)

    def _analyst_paths(self, record: SurveyRecord) -> dict[str, set[int]]:
        survey = record.survey.fingerprint
        return {
            "/": {200},
            "/v1/surveys": {200},
            self._path(record, "/estimate"): _NO_REPORTS,
            self._path(record, "/estimate?decoder=unbiased&level=0.9"): _NO_REPORTS,
            self._path(record, "/top?size=3"): _NO_REPORTS,
            self._path(record, "/exports"): {200},
            self._path(record, "/days"): {200},
            f"/dashboard/{survey}/results": _NO_REPORTS,
            f"/dashboard/{survey}/days": {200},
            f"/dashboard/{survey}/promise": {200},
            f"/dashboard/{survey}/certificate": {200},
            f"/label/{survey}": {200},
            f"/try/{survey}": {200},
            "/v1/openapi.json": {200},
            "/health": {200},
            "/ready": {200},
            "/dashboard/ready": {200},
            "/metrics": {200},
        }

    async def _check_visibility(self, connection: KeptConnection, record: SurveyRecord) -> None:
        """Check that the status shows all that was acknowledged before, by any worker."""
        count = record.report_count
        request = self._with_token(self._path(record, "/status"))
        reply = await self._ask(connection, "status", request, {200})
        if reply.status == 200 and json.loads(reply.body)["reports"] < count:
            self._faults.add("status: fewer reports than were acknowledged before")

    async def _operate(self) -> None:
        """Register surveys one after the other; close, open and end them."""
        async with self._connection() as connection:
            while True:
                async with self._gate.passage():
                    record = await self.add_survey()
                for action, state in (
                    ("close", "closed"),
                    ("open", "open"),
                    ("close", "closed"),
                    ("end", "ended"),
                ):
                    await self._rest(self._plan.change_seconds)
                    async with self._gate.passage():
                        await self._change(connection, record, action, state)

    async def _change(
        self, connection: KeptConnection, record: SurveyRecord, action: str, state: str
    ) -> None:
        record.state = "changing"
        request = self._with_token(self._path(record, f"/{action}"), "POST")
        reply = await self._ask(connection, action, request, {200})
        if reply.status == 200 and json.loads(reply.body)["state"] != state:
            self._faults.add(f"{action}: the survey is not {state} afterwards")
        record.changes += 1
        record.state = state

    # --- clients that do wrong --------------------------------------------------------------------

    async def _send_invalid(self) -> None:
        turn = 0
        while True:
            await self._rest(self._plan.pause)
            cases = self._invalid_requests(self.records[0])
            case = cases[turn % len(cases)]
            turn += 1
            async with self._gate.passage(), self._connection() as connection:
                lost = {LOST} if case.may_be_lost else set()
                await self._ask(connection, case.title, case.request, {case.status} | lost)

    def _invalid_requests(self, record: SurveyRecord) -> list[_Invalid]:
        """Return a request of each kind that must be refused. The survey must be open."""
        path = self._path(record, "/batches")
        unknown = "/v1/surveys/" + "0" * 64
        id_ = os.urandom(16).hex().encode()
        usual = record.singles[0].to_bytes(id_).partition(b"\r\n\r\n")[2]
        anonymous = self._without_key(record.bulk[-2].to_bytes(id_))
        token = f"Authorization: Bearer {self._token}"
        zipped = "Content-Encoding: gzip"
        large = f"POST {path} HTTP/1.1\r\n{_JSON}\r\nContent-Length: 99999999999\r\n\r\n"
        return [
            _Invalid("no JSON", _post(path, b"{", _JSON), 400),
            _Invalid("another field", _post(path, usual[:-1] + b',"a":1}', _JSON), 400),
            _Invalid("trailing data", _post(path, usual + usual, _JSON), 400),
            _Invalid("no gzip", _post(path, usual, _JSON, zipped), 400),
            _Invalid("an array", _post(path, gzip.compress(b"[]"), _JSON, zipped), 400),
            _Invalid("report out of range", _post(path, _out_of_range(usual), _JSON), 422),
            _Invalid("wrong key", _post(path, usual, _JSON, "Authorization: Bearer x"), 401),
            _Invalid("bulk without a key", anonymous, 403),
            _Invalid("media type", _post(path, usual, "Content-Type: text/plain"), 415),
            _Invalid("no Arrow", _post(path, usual, _ARROW), 400),
            _Invalid("unknown survey", _post(f"{unknown}/batches", usual, _JSON), 404),
            _Invalid("unknown page", self._get("/no/such/page"), 404),
            _Invalid("method", self._get(path), 405),
            _Invalid("no token", self._get(self._path(record, "/status")), 401),
            _Invalid("level", self._with_token(self._path(record, "/estimate?level=2")), 400),
            _Invalid("end of an open survey", self._with_token(self._end(record), "POST"), 409),
            _Invalid("no tally", _post(self._path(record, "/imports"), b"{}", _JSON, token), 400),
            _Invalid("no HTTP", b"nonsense\r\n\r\n", 400),
            _Invalid("large body", large.encode(), 413),
            # The server closes the connection while the rest of the head is on its way.
            _Invalid("large head", self._get("/", "a: " + "b" * 70_000), 431, may_be_lost=True),
        ]

    def _end(self, record: SurveyRecord) -> str:
        return self._path(record, "/end")

    def _without_key(self, request: bytes) -> bytes:
        lines = request.split(b"\r\n")
        return b"\r\n".join(line for line in lines if not line.startswith(b"Authorization:"))

    async def _abandon_requests(self) -> None:
        ways = ("close", "reset", "wait")
        turn = 0
        while True:
            await self._rest(self._plan.pause)
            request = self.records[0].singles[0].to_bytes(os.urandom(16).hex().encode())
            start = request[: 1 + self._draw(len(request) - 1)]
            way = ways[turn % len(ways)]
            turn += 1
            if way == "wait" and len(self._silent) < _MAX_SILENT:
                task = self._group.create_task(self._wait_in_silence(start))
                self._silent.add(task)
                task.add_done_callback(self._silent.discard)
            elif way != "wait":
                await self._leave(start, way)

    async def _leave(self, start: bytes, way: str) -> None:
        try:
            await abandon_request(self._port, start, way)
        except OSError:
            self._faults.add("half a request: no connection")

    async def _wait_in_silence(self, start: bytes) -> None:
        """Send the start of a request, and wait until the server closes the connection."""
        try:
            response = await abandon_request(self._port, start, "wait")
        except TimeoutError:
            self._faults.add("half a request: the server keeps the connection open")
            return
        except OSError:
            return
        # Half a head gets no response, and half a body an explanation.
        if response and not response.startswith(b"HTTP/1.1 408"):
            self._faults.add(f"half a request: {response[:12].decode('latin-1')}")

    # --- checks -----------------------------------------------------------------------------------

    async def check_counts(self) -> None:
        """Compare all counts with what was acknowledged, while no client sends anything."""
        async with self._gate.pause(), self._connection() as connection:
            for record in self.records:
                await self._check_status(connection, record)
                await self._check_export(connection, record)
            await self._check_metrics(connection)

    async def _check_status(self, connection: KeptConnection, record: SurveyRecord) -> None:
        request = self._with_token(self._path(record, "/status"))
        reply = await self._ask(connection, "status", request, {200})
        if reply.status != 200:
            return
        status = json.loads(reply.body)
        if status["reports"] != record.report_count:
            self._faults.add(
                f"status of {record.survey.name}: {status['reports']:,} reports, but "
                f"{record.report_count:,} were acknowledged"
            )
        if status["state"] != record.state:
            self._faults.add(f"status: {status['state']}, but the survey is {record.state}")

    async def _check_export(self, connection: KeptConnection, record: SurveyRecord) -> None:
        """Export the counts since the last export, and compare the sum of all exports."""
        is_new = record.report_count > record.last_export_count
        record.last_export_count = record.report_count
        path = self._path(record, f"/exports/{os.urandom(16).hex()}")
        request = self._with_token(path, "PUT")
        reply = await self._ask(connection, "export", request, {200} if is_new else {409})
        if reply.status != 200:
            return
        record.exported += parse_tally(reply.body).tally.counts
        if not np.array_equal(record.exported, record.acknowledged):
            self._faults.add(
                f"export of {record.survey.name}: {record.exported.sum():,} reports, but "
                f"{record.report_count:,} were acknowledged"
            )
        again = await self._ask(connection, "same export", request, {200})
        if again.body != reply.body:
            self._faults.add("export: the same identifier returned another tally")

    async def _check_metrics(self, connection: KeptConnection) -> None:
        reply = await self._ask(connection, "metrics", self._with_token("/metrics"), {200})
        counts = _reports_in_metrics(reply.body.decode())
        for record in self.records:
            count = counts.get(record.survey.fingerprint, 0)
            if count != record.report_count:
                self._faults.add(
                    f"metrics of {record.survey.name}: {count:,} reports, but "
                    f"{record.report_count:,} were acknowledged"
                )


_ARROW = "Content-Type: application/vnd.apache.arrow.stream"


def _make_survey(name: str, number: int) -> sf.Survey:
    """Make a survey: one of labels, one of a range, or one that is answered every day."""
    if number % 3 == 0:
        return sf.Survey(name, sf.Uniform(_LABELS, 1), edition=2)
    if number % 3 == 1:
        return sf.Survey(name, sf.Uniform(sf.IntegerDomain(_RANGE), 1), edition=2)
    repeat = {"every": "day", "distinct": 5}
    return sf.Survey(name, sf.Uniform(_LABELS, 1), edition=2, repeat=repeat)


def _register(url: str, survey: sf.Survey) -> str:
    """Register a survey in the store. Return the key of a bulk sender."""
    with closing(Store.open(url)) as store:
        store.register(survey)
        return store.add_sender(survey.fingerprint, "clinic")


def _post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", *headers]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def _out_of_range(body: bytes) -> bytes:
    start, _, rest = body.partition(b'"reports":[')
    return start + b'"reports":[4000000000]' + rest.partition(b"]")[2]


def _title(path: str) -> str:
    """Return a path without the survey's fingerprint."""
    parts = path.partition("?")[0].split("/")
    return "/".join("…" if len(part) == 64 else part for part in parts)


def _reports_in_metrics(text: str) -> dict[str, int]:
    """Return the number of reports of each survey."""
    counts = {}
    for line in text.splitlines():
        if line.startswith("sfumato_reports_total{"):
            fingerprint = line.partition('fingerprint="')[2].partition('"')[0]
            counts[fingerprint] = int(float(line.rsplit(" ", 1)[1]))
    return counts
