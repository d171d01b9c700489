"""Limits on requests: their rate, the size of a body, and how long it may take to arrive.

The rate limit stops accidental and simple floods, not a determined attacker. It counts requests,
and each report of an anonymous upload.
"""

import asyncio
import zlib

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from sfumato.aggregator.http.client_limits import ClientLimits
from sfumato.aggregator.http.problems import Problem
from sfumato.errors import StoreUnavailable

__all__ = [
    "MemoryQuota",
    "admit",
    "admit_monitor",
    "charge",
    "client_address",
    "get_media_type",
    "read_body",
]

_CLOSE_CONNECTION = {"Connection": "close"}
"""Prevents the unread remainder of a body from being parsed as the next request."""

_GZIP_WBITS = 31  # zlib's wbits value for gzip format with the largest window


# --- requests per client --------------------------------------------------------------------------


async def admit(request: Request) -> None:
    """Reject a request from a client that exceeds the rate limit."""
    _admit(request, request.app.state.aggregator.limits)


async def admit_monitor(request: Request) -> None:
    """Reject a monitor that asks too often.

    Monitors have an allowance of their own, so that other requests from the same address cannot
    make the aggregator look as if it were down.
    """
    _admit(request, request.app.state.aggregator.monitor_limits)


def charge(request: Request, cost: int) -> None:
    """Charge a client for the reports of a request that was admitted."""
    request.app.state.aggregator.limits.charge(client_address(request.scope), cost)


def client_address(scope: Scope) -> str:
    """Return the address of the client of a request, or "" if the server does not know it."""
    return scope["client"][0] if scope.get("client") else ""


def _admit(request: Request, limits: ClientLimits) -> None:
    wait_seconds = limits.seconds_to_wait(client_address(request.scope))
    if wait_seconds:
        raise Problem(
            "too-many-requests",
            "Retry after the number of seconds given in Retry-After.",
            headers={"Retry-After": str(int(wait_seconds) + 1)},
        )


# --- bodies ---------------------------------------------------------------------------------------


class MemoryQuota:
    """Limits the memory for request bodies, so a flood of slow requests cannot exhaust it."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._used_bytes = 0

    def acquire(self, size: int) -> None:
        """Reserve ``size`` bytes; raise ``StoreUnavailable`` if that exceeds ``max_bytes``."""
        if self._used_bytes + size > self._max_bytes:
            raise StoreUnavailable(
                "there is not enough memory for more uploads. Try again in a moment."
            )
        self._used_bytes += size

    def release(self, size: int) -> None:
        """Release ``size`` bytes."""
        self._used_bytes -= size


def get_media_type(request: Request) -> str:
    """Return the media type of a request body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(request: Request, max_size: int) -> bytes:
    """Read and decompress an untrusted body. Reject it if it is too large, too slow or truncated.

    ``max_size`` is in bytes, and applies both before and after decompression.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise Problem(
            "unknown-media-type",
            "Content-Encoding must be gzip or absent.",
            headers=_CLOSE_CONNECTION,
        )
    aggregator = request.app.state.aggregator
    timeout = aggregator.settings.body_timeout
    content_length = request.headers.get("content-length", "")
    if content_length.isdecimal() and int(content_length[:20]) > max_size:
        raise _too_large(max_size)
    try:
        async with asyncio.timeout(timeout):
            body = await _receive(request, aggregator.quota, max_size)
    except TimeoutError:
        raise Problem(
            "body-too-slow",
            f"The body must arrive within {timeout:g} seconds.",
            headers=_CLOSE_CONNECTION,
        ) from None
    except ClientDisconnect:
        raise Problem("invalid-request", "The body is truncated.") from None
    return body if encoding == "identity" else _decompress(body, max_size)


async def _receive(request: Request, quota: MemoryQuota, max_size: int) -> bytes:
    chunks = []
    size = 0
    try:
        async for chunk in request.stream():
            quota.acquire(len(chunk))
            size += len(chunk)
            if size > max_size:
                raise _too_large(max_size)
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        quota.release(size)


def _decompress(compressed: bytes, max_size: int) -> bytes:
    decompressor = zlib.decompressobj(_GZIP_WBITS)
    try:
        body = decompressor.decompress(compressed, max_size + 1)
    except zlib.error:
        raise Problem("invalid-request", "The body is not valid gzip data.") from None
    if len(body) > max_size:
        raise _too_large(max_size)
    if not decompressor.eof or decompressor.unused_data:
        raise Problem("invalid-request", "The gzip data is truncated or has trailing data.")
    return body


def _too_large(max_size: int) -> Problem:
    return Problem(
        "body-too-large",
        f"The body must not exceed {max_size:,} bytes, before or after decompression.",
        headers=_CLOSE_CONNECTION,
    )
