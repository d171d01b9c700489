"""Requests to an aggregator: in this process without sockets, or over real sockets."""

import asyncio
import gzip
import json
import socket
import sqlite3
import threading
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn

from sfumato.aggregator import Settings, Token, create_app
from sfumato.aggregator.http import WHOLE_REQUEST, SingleUploads
from sfumato.aggregator.store import Store
from sfumato.batches import JSON_MEDIA_TYPE, Batch, to_arrow, to_json
from sfumato.cells import CellKey

PROBLEM = "urn:sfumato:problem:"

_NO_LIMITS = {"requests_per_minute": 0, "reports_per_upload": 65_536}


@dataclass(frozen=True)
class Response:
    """A complete HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """Check that the body is a problem document (RFC 9457) and return the problem's name."""
        assert self.headers["content-type"] == "application/problem+json", self
        document = self.json
        assert set(document) - {"index"} == {"type", "title", "status", "detail"}
        assert document["status"] == self.status
        assert document["title"]
        assert document["detail"]
        assert document["type"].startswith(PROBLEM)
        return document["type"].removeprefix(PROBLEM)


class AsgiClient:
    """Calls an ASGI application in this process, one request at a time or many at once."""

    def __init__(self, app):
        self.app = app
        self._served_app = SingleUploads(app, app.state.aggregator)
        self._runner = asyncio.Runner()
        self._lifespan = app.router.lifespan_context(app)

    def __enter__(self):
        self._runner.run(self._lifespan.__aenter__())
        return self

    def __exit__(self, *_):
        self._runner.run(self._lifespan.__aexit__(None, None, None))
        self._runner.close()

    def get(self, path, **headers):
        return self.request("GET", path, headers=headers)

    def request(self, method, path, **options):
        return self._runner.run(self._send(method, path, **options))

    def request_all(self, *requests):
        """Send requests at the same time. Each is a pair: arguments and options of `request`."""

        async def gather():
            return await asyncio.gather(
                *(self._send(*arguments, **options) for arguments, options in requests)
            )

        return self._runner.run(gather())

    async def _send(
        self,
        method,
        path,
        *,
        body=b"",
        headers=(),
        client="127.0.0.1",
        gone=False,
        is_general=False,
    ):
        """Send one request.

        `body` may be an iterable of chunks. With `gone`, the client disconnects after the body.
        With `is_general`, uploads go to the general endpoint even if they are usual.
        """
        address, _, query = path.partition("?")
        raw_headers = [
            (name.replace("_", "-").lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in dict(headers).items()
        ]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": address,
            "raw_path": address.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": raw_headers,
            "client": (client, 50_000),
            "server": ("127.0.0.1", 80),
        }
        is_whole = isinstance(body, bytes) and not gone
        if is_whole:
            scope["extensions"] = {WHOLE_REQUEST: {}}
        chunks = iter([body] if isinstance(body, bytes) else body)
        messages = []

        async def receive():
            chunk = next(chunks, None)
            if chunk is not None and is_whole:
                return {"type": "http.request", "body": chunk, "more_body": False}
            if chunk is not None:
                return {"type": "http.request", "body": chunk, "more_body": True}
            if gone:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            messages.append(message)

        app = self.app if is_general else self._served_app
        await app(scope, receive, send)
        start, *parts = messages
        response_headers = {name.decode(): value.decode() for name, value in start["headers"]}
        response_body = b"".join(part.get("body", b"") for part in parts)
        return Response(start["status"], response_headers, response_body)


@dataclass(frozen=True)
class RunningAggregator:
    """An aggregator over a store, which is a new SQLite file by default."""

    http: AsgiClient
    store: Store
    file: Path
    token: str

    def upload(self, batch, *, form=JSON_MEDIA_TYPE, packed=False, **options):
        """Upload a batch as a client does."""
        body = to_json(batch) if form == JSON_MEDIA_TYPE else to_arrow(batch)
        headers = {"Content-Type": form}
        if packed:
            body = gzip.compress(body)
            headers["Content-Encoding"] = "gzip"
        return self.post(batch.fingerprint, body, headers, **options)

    def post(self, fingerprint, body, headers, **options):
        path = upload_path(fingerprint)
        return self.http.request("POST", path, body=body, headers=headers, **options)

    def request_with_token(self, path, *, method="GET", **options):
        headers = {"Authorization": f"Bearer {self.token}"} | options.pop("headers", {})
        return self.http.request(method, path, headers=headers, **options)

    def dump(self):
        """Return the contents of a SQLite store as SQL statements."""
        with closing(sqlite3.connect(self.file)) as connection:
            return list(connection.iterdump())


def upload_path(fingerprint):
    return f"/v1/surveys/{fingerprint}/batches"


@contextmanager
def run_aggregator(folder, *surveys, url=None, **settings):
    """Run an aggregator with these surveys; by default, without limits on requests and reports."""
    file = Path(folder) / "reports.db"
    with ExitStack() as stack:
        store = Store.open(url or f"sqlite:///{file}")
        stack.callback(store.close)
        for survey in surveys:
            store.register(survey)
        token = Token(store).create()
        app = create_app(store, Settings(**{**_NO_LIMITS, **settings}))
        yield RunningAggregator(stack.enter_context(AsgiClient(app)), store, file, token)


def batch_of(survey, reports, number=1, period=""):
    return Batch(
        number.to_bytes(16, "big"),
        survey.fingerprint,
        np.array(reports, dtype=np.uint32),
        CellKey(period),
        survey.edition,
    )


class _Server(uvicorn.Server):
    """A server that leaves the application's lifespan to its caller."""

    def __init__(self, app):
        aggregator = app.state.aggregator
        protocol = aggregator.connections.protocol
        super().__init__(
            uvicorn.Config(
                SingleUploads(app, aggregator),
                http=protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
            )
        )


@contextmanager
def listen(app):
    """Serve the application with uvicorn in a thread; yield the address to connect to."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = _Server(app)

    async def serve():
        async with app.router.lifespan_context(app):
            await server.serve(sockets=[listener])

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def exchange(address, *parts, seconds=10.0):
    """Send bytes over a socket and read until the server hangs up."""
    with socket.create_connection(address, timeout=seconds) as connection:
        for part in parts:
            connection.sendall(part)
        return read_all(connection)


def read_all(connection):
    content = b""
    try:
        while chunk := connection.recv(65536):
            content += chunk
    except ConnectionResetError:  # the server hung up before it had read everything
        pass
    return content


def parse_response(raw):
    """Parse the first response in the bytes of a connection."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = rest[: int(headers.get("content-length", 0))]
    return Response(int(status_line.split()[1]), headers, body)


def upload_head(fingerprint, **headers):
    """Return the request line and headers of an upload, as bytes for a socket."""
    fields = {"Host": "aggregator", "Content-Type": JSON_MEDIA_TYPE}
    for name, value in headers.items():
        fields[name.replace("_", "-")] = value
    lines = [f"POST {upload_path(fingerprint)} HTTP/1.1"]
    for name, value in fields.items():
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
