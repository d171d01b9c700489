"""Limits on connections: the size of a request's head, how long it takes, how many are open.

uvicorn reads heads of any size and keeps silent connections for ever. ``Connection`` adds the
limits that make a reverse proxy optional. Each process has its own ``Connections``.
"""

import asyncio
import contextlib
import http
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Self, cast

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from sfumato.aggregator.http.headers import NO_SNIFFING
from sfumato.aggregator.http.problems import Problem, problem_response

__all__ = ["WHOLE_REQUEST", "ConnectionLimits", "Connections"]

WHOLE_REQUEST = "sfumato.whole_request"
"""The ASGI extension that marks a request whose body has arrived before the application starts."""

_MAX_OPEN_FILES = 65_536
_RESERVED_FILES = 128
"""File descriptors for everything but clients: the store, the listening socket, the log."""


@dataclass(frozen=True)
class ConnectionLimits:
    """How much clients may use of the server before their request is complete.

    ``max_head_bytes``: the size of a request line and its headers. ``patience``: the number of
    seconds to wait for a complete head, or for a client that does not read its response.
    ``max_open``: the number of open connections.
    """

    max_head_bytes: int = 2**16
    patience: float = 10.0
    max_open: int = 10_000

    @classmethod
    def for_this_process(cls) -> Self:
        """Return the default limits, or fewer connections if the process may open few files."""
        available = _raise_file_limit() - _RESERVED_FILES
        return cls(max_open=max(1, min(cls.max_open, available)))

    def divide(self, workers: int) -> Self:
        """Return the limits of each of several workers, which share the number of connections."""
        return replace(self, max_open=max(1, self.max_open // workers))


def _raise_file_limit() -> int:
    """Raise the number of files that the process may open, if possible. Return the number."""
    if sys.platform == "win32":
        return _MAX_OPEN_FILES
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    target = _MAX_OPEN_FILES if hard == unlimited else min(hard, _MAX_OPEN_FILES)
    if soft == unlimited or soft >= target:
        return _MAX_OPEN_FILES if soft == unlimited else soft
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        return target
    return soft


class Connections:
    """The open connections of a process.

    A connection *waits* while the client must act: send a complete request, or read a response. If
    too many connections are open, the one that has waited longest is closed. So silent connections
    cannot keep others out.

    ``on_problem`` is called with the name of each problem that is answered here.
    """

    def __init__(
        self, limits: ConnectionLimits, *, on_problem: Callable[[str], None] = lambda name: None
    ) -> None:
        self.limits = limits
        self.on_problem = on_problem
        self._open: set[Connection] = set()
        # The time at which each connection began to wait, the longest wait first.
        self._waiting: dict[Connection, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def open_count(self) -> int:
        """The number of open connections."""
        return len(self._open)

    @property
    def protocol(self) -> type[asyncio.Protocol]:
        """What uvicorn calls to create the protocol of a connection."""
        return cast("type[asyncio.Protocol]", partial(Connection, self))

    def add(self, connection: "Connection") -> None:
        """Add a new connection. If there are too many, close the one that waited longest."""
        self._open.add(connection)
        self.start_waiting(connection)
        if len(self._open) > self.limits.max_open:
            oldest = next(iter(self._waiting))
            self.remove(oldest)
            oldest.transport.abort()

    def remove(self, connection: "Connection") -> None:
        """Remove a connection that is closed."""
        self._open.discard(connection)
        self.stop_waiting(connection)

    def start_waiting(self, connection: "Connection") -> None:
        """Note that a connection waits for its client from now on."""
        self._waiting.pop(connection, None)
        self._waiting[connection] = connection.loop.time()
        if self._timer is None:
            self._set_timer(connection.loop)

    def stop_waiting(self, connection: "Connection") -> None:
        """Note that a connection does not wait for its client."""
        self._waiting.pop(connection, None)

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        longest_since = next(iter(self._waiting.values()))
        self._timer = loop.call_at(longest_since + self.limits.patience, self._end_waits, loop)

    def _end_waits(self, loop: asyncio.AbstractEventLoop) -> None:
        """Act on all connections that have waited too long."""
        latest_start = loop.time() - self.limits.patience
        overdue = []
        for connection, since in self._waiting.items():
            if since > latest_start:
                break
            overdue.append(connection)
        for connection in overdue:
            self.start_waiting(connection)
            connection.end_wait()
        self._timer = None
        if self._waiting:
            self._set_timer(loop)


class Connection(HttpToolsProtocol):
    """A connection that limits the size of heads and the time that it waits for its client."""

    def __init__(
        self,
        connections: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._group = connections
        self._is_in_head = True
        self._is_new_head = True  # whether the head began in the data that is being parsed
        self._head_bytes = 0
        self._unsent_bytes = 0  # when the connection last waited too long
        self._problem: Problem | None = None
        self._ignores_input = False

    # --- waiting ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for a request."""
        super().connection_made(transport)
        self._group.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._group.remove(self)
        super().connection_lost(exc)

    def on_message_complete(self) -> None:
        """Stop waiting: the request is complete."""
        super().on_message_complete()
        self.scope["extensions"] = {WHOLE_REQUEST: {}}
        self._is_in_head = True
        self._is_new_head = True
        self._head_bytes = 0
        if not self._is_idle:
            self._group.stop_waiting(self)

    def on_response_complete(self) -> None:
        """Wait for the next request, and for the client to read the response."""
        super().on_response_complete()
        if self._is_idle:
            self._group.start_waiting(self)

    def pause_writing(self) -> None:
        """Wait for the client to read a response."""
        super().pause_writing()
        self._group.start_waiting(self)

    def resume_writing(self) -> None:
        """Stop waiting for the client to read."""
        super().resume_writing()
        if not self._is_idle:
            self._group.stop_waiting(self)

    @property
    def _is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def end_wait(self) -> None:
        """Close the connection after too long a wait, unless the client is still reading."""
        unsent_bytes = self.transport.get_write_buffer_size()
        is_reading = unsent_bytes not in (0, self._unsent_bytes)
        self._unsent_bytes = unsent_bytes
        if is_reading:
            return
        if unsent_bytes or self.transport.is_closing():
            self.transport.abort()
        elif self._is_idle:
            self.transport.close()
        # Otherwise a body is being read, and its reader has a timeout of its own.

    # --- heads ------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse data, and refuse a head that is too large."""
        if self.transport.is_closing() or self._ignores_input:
            return
        self._is_new_head = False
        super().data_received(data)
        # Data that contain the end of one request count from the next time on.
        if self._is_in_head and not self._is_new_head:
            self._head_bytes += len(data)
            if self._head_bytes > self._group.limits.max_head_bytes:
                self._send_problem(self._head_too_large())

    def on_headers_complete(self) -> None:
        """Pass the request on, unless its head is too large."""
        head_bytes = len(self.url) + len(self.headers) * len(": \r\n")
        head_bytes += sum(map(len, chain.from_iterable(self.headers)))
        if head_bytes > self._group.limits.max_head_bytes:
            self._problem = self._head_too_large()
            raise ValueError("the head is too large")  # stops the parser, which sends a response
        self._is_in_head = False
        super().on_headers_complete()

    def _head_too_large(self) -> Problem:
        max_head_bytes = self._group.limits.max_head_bytes
        detail = f"The request line and the headers must not exceed {max_head_bytes:,} bytes."
        return Problem("head-too-large", detail)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed."""
        invalid = Problem("invalid-request", "The request must be valid HTTP/1.1.")
        self._send_problem(self._problem or invalid)

    def _send_problem(self, problem: Problem) -> None:
        """Send a problem document without the application's help, and close the connection."""
        if self.transport.is_closing():
            return
        self._group.on_problem(problem.name)
        self._ignores_input = True
        if self._is_idle:
            self._write_problem(problem)
        elif not self.cycle.more_body:
            # A problem document now would look like the answer to an earlier request.
            self.cycle.keep_alive = False
            return
        elif not (self.pipeline or self.cycle.response_started):
            self._write_problem(problem)
        self.transport.close()

    def _write_problem(self, problem: Problem) -> None:
        response = problem_response(problem)
        headers = [*self.server_state.default_headers, *response.raw_headers]
        headers += [(b"connection", b"close"), NO_SNIFFING]
        phrase = http.HTTPStatus(problem.status).phrase
        lines = [f"HTTP/1.1 {problem.status} {phrase}".encode()]
        lines += [name + b": " + value for name, value in headers]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(response.body)]))
