"""An aggregator to be asked: in this process without sockets, or over real ones."""

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
from sfumato.aggregator.store import Store
from sfumato.batches import ARROW, JSON, Batch, to_arrow, to_json

PROBLEM = "urn:sfumato:problem:"


@dataclass(frozen=True)
class Answer:
    """A response, whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """The name of the problem; checks that the document is one (RFC 9457)."""
        assert self.headers["content-type"] == "application/problem+json", self
        document = self.json
        assert set(document) - {"index"} == {"type", "title", "status", "detail"}
        assert document["status"] == self.status
        assert document["title"]
        assert document["detail"]
        assert document["type"].startswith(PROBLEM)
        return document["type"].removeprefix(PROBLEM)


class Wire:
    """Calls an application as a server would, one request after the other or many at once."""

    def __init__(self, app):
        self.app = app
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
        return self._runner.run(self._asked(method, path, **options))

    def together(self, *requests):
        """Many requests at the same time: each is a pair of positional and named arguments of ``request``."""

        async def all_of_them():
            return await asyncio.gather(
                *(self._asked(*args, **options) for args, options in requests)
            )

        return self._runner.run(all_of_them())

    async def _asked(self, method, path, *, body=b"", headers=(), client="127.0.0.1", gone=False):
        """``body`` may be an iterable of chunks; ``gone``: the client hangs up after them."""
        address, _, query = path.partition("?")
        named = {name.replace("_", "-").lower(): value for name, value in dict(headers).items()}
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
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1")) for name, value in named.items()
            ],
            "client": (client, 50_000),
            "server": ("127.0.0.1", 80),
        }
        chunks = iter([body] if isinstance(body, bytes) else body)
        sent = []

        async def receive():
            chunk = next(chunks, None)
            if chunk is not None:
                return {"type": "http.request", "body": chunk, "more_body": True}
            return (
                {"type": "http.disconnect"}
                if gone
                else {"type": "http.request", "body": b"", "more_body": False}
            )

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        start, *rest = sent
        found = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], found, b"".join(part.get("body", b"") for part in rest))


@dataclass(frozen=True)
class Running:
    """An aggregator over a new SQLite store."""

    wire: Wire
    store: Store
    file: Path
    token: str

    def upload(self, batch, *, form=JSON, packed=False, **options):
        """A batch as a client sends it."""
        body = to_json(batch) if form == JSON else to_arrow(batch)
        headers = {"Content-Type": form} | ({"Content-Encoding": "gzip"} if packed else {})
        return self.post(
            batch.fingerprint, gzip.compress(body) if packed else body, headers, **options
        )

    def post(self, fingerprint, body, headers, **options):
        return self.wire.request(
            "POST", uploads_of(fingerprint), body=body, headers=headers, **options
        )

    def ask(self, path, *, method="GET", **options):
        """A request with the token."""
        headers = {"Authorization": f"Bearer {self.token}"} | options.pop("headers", {})
        return self.wire.request(method, path, headers=headers, **options)

    def dump(self):
        """All that the store holds, as text."""
        with closing(sqlite3.connect(self.file)) as connection:
            return list(connection.iterdump())


def uploads_of(fingerprint):
    return f"/v1/surveys/{fingerprint}/batches"


@contextmanager
def running(folder, *surveys, **settings):
    """An aggregator that serves these surveys; no limit on requests unless one is given."""
    file = Path(folder) / "reports.db"
    with ExitStack() as stack:
        store = Store.open(f"sqlite:///{file}")
        stack.callback(store.close)
        for survey in surveys:
            store.register(survey)
        token = Token(store).make()
        app = create_app(store, Settings(**{"requests_per_minute": 0, **settings}))
        yield Running(stack.enter_context(Wire(app)), store, file, token)


def batch_of(survey, reports, number=1):
    return Batch(number.to_bytes(16, "big"), survey.fingerprint, np.array(reports, dtype=np.uint32))


class _Listening(uvicorn.Server):
    """A server whose application runs already."""

    def __init__(self, app):
        super().__init__(uvicorn.Config(app, lifespan="off", log_config=None, access_log=False))


@contextmanager
def listen(app):
    """The application under uvicorn in a thread, with its writer; the address to connect to."""
    opened = socket.create_server(("127.0.0.1", 0))
    server = _Listening(app)

    async def serve():
        async with app.router.lifespan_context(app):
            await server.serve(sockets=[opened])

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield opened.getsockname()
    finally:
        server.should_exit = True
        thread.join()
        opened.close()


def conversation(address, *parts, seconds=10.0):
    """Send bytes over a socket and read until the other side hangs up."""
    with socket.create_connection(address, timeout=seconds) as line:
        for part in parts:
            line.sendall(part)
        return read_all(line)


def read_all(line):
    got = b""
    try:
        while more := line.recv(65536):
            got += more
    except ConnectionResetError:  # it hung up while there was more to be read
        pass
    return got


def answer_of(raw):
    """The first response in what a socket said."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    return Answer(int(status.split()[1]), headers, rest[: int(headers.get("content-length", 0))])


def head_of(fingerprint, **headers):
    """The beginning of an upload over a socket."""
    named = {
        "Host": "aggregator",
        "Content-Type": JSON,
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    lines = [
        f"POST {uploads_of(fingerprint)} HTTP/1.1",
        *(f"{name}: {value}" for name, value in named.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


__all__ = [
    "ARROW",
    "JSON",
    "Answer",
    "Running",
    "Wire",
    "answer_of",
    "batch_of",
    "conversation",
    "head_of",
    "listen",
    "read_all",
    "running",
    "uploads_of",
]
