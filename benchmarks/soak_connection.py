"""Connections of the clients in a soak: kept alive, or left in the middle of a request."""

import asyncio
import contextlib
import socket
import struct
from time import monotonic
from typing import NamedTuple

__all__ = ["KeptConnection", "Reply", "abandon_request"]

LOST = 0
"""The status of a reply that did not arrive."""

_TIMEOUT = 60.0
_MAX_IDLE = 3.0
"""Seconds until a connection is opened again. The server closes it after five."""

_RESET = struct.pack("ii", 1, 0)
"""The SO_LINGER option with which closing a socket resets the connection."""


class Reply(NamedTuple):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes


class KeptConnection:
    """A connection that stays open for the next request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._used_at = 0.0

    async def send(self, request: bytes) -> Reply:
        """Send a request, and return the response. Its status is ``LOST`` if it does not arrive."""
        if monotonic() - self._used_at > _MAX_IDLE:
            await self.close()
        try:
            async with asyncio.timeout(_TIMEOUT):
                reply = await self._exchange(request)
        except (OSError, EOFError, TimeoutError):
            await self.close()
            return Reply(LOST, {}, b"")
        self._used_at = monotonic()
        if reply.headers.get("connection") == "close":
            await self.close()
        return reply

    async def _exchange(self, request: bytes) -> Reply:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status_line, *lines = head.decode("latin-1").split("\r\n")[:-2]
        headers = {}
        for line in lines:
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return Reply(int(status_line.split()[1]), headers, body)

    async def close(self) -> None:
        """Close the connection. The next request opens another."""
        if self._writer is not None:
            await _close(self._writer)
        self._reader = None
        self._writer = None


async def abandon_request(port: int, start: bytes, way: str) -> bytes:
    """Send the start of a request and go away. Return what the server sent nevertheless.

    ``way``: "close", "reset", or "wait" until the server closes the connection.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(start)
        await writer.drain()
        if way == "reset":
            client_socket = writer.get_extra_info("socket")
            client_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        if way != "wait":
            return b""
        async with asyncio.timeout(_TIMEOUT):
            return await reader.read()
    finally:
        await _close(writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
