"""Limits on what a request may cost: the request rate, and the size and duration of a body.

The rate limit stops accidents and simple floods, not a determined attacker. It identifies clients
by a keyed hash of their address. The key is kept in memory and changes every hour. Nothing is
logged, so nobody can find out later who sent what.
"""

import asyncio
import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from fastapi import Request
from starlette.requests import ClientDisconnect

from sfumato.aggregator.http.problems import Problem
from sfumato.errors import StoreUnavailable
from sfumato.randomness import fresh_key

__all__ = ["ClientLimits", "MemoryQuota", "admit", "get_media_type", "read_body"]

_MAX_CLIENTS = 100_000
_KEY_LIFETIME = 3600.0  # seconds

_CLOSE_CONNECTION = {"Connection": "close"}
"""Prevents the unread remainder of a body from being parsed as the next request."""

_GZIP_WBITS = 31  # zlib's wbits value for gzip format with the largest window


# --- requests per client --------------------------------------------------------------------------


class ClientLimits:
    """A token bucket for each client, refilled at ``per_minute``; 0 means no limit.

    >>> limits = ClientLimits(per_minute=60, clock=lambda: 0.0)
    >>> [limits.seconds_to_wait("198.51.100.7") for _ in range(61)][-2:]
    [0.0, 1.0]
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = monotonic) -> None:
        self._rate = per_minute / 60
        self._capacity = float(per_minute)
        self._clock = clock
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()
        self._replace_key()

    def seconds_to_wait(self, address: str) -> float:
        """Count a request. Return 0 if it is allowed, otherwise the seconds to wait."""
        if self._capacity == 0:
            return 0.0
        now = self._clock()
        if now - self._key_created_at > _KEY_LIFETIME:
            self._replace_key()
        client = hashlib.blake2b(address.encode(), key=self._key, digest_size=16).digest()
        tokens, updated_at = self._buckets.pop(client, (self._capacity, now))
        tokens = min(self._capacity, tokens + (now - updated_at) * self._rate)
        is_allowed = tokens >= 1
        self._buckets[client] = (tokens - 1 if is_allowed else tokens, now)
        if len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if is_allowed else (1 - tokens) / self._rate

    def _replace_key(self) -> None:
        """Generate a new key, and forget all clients."""
        self._key = fresh_key()
        self._key_created_at = self._clock()
        self._buckets.clear()


async def admit(request: Request) -> None:
    """Reject a request from a client that exceeds the rate limit."""
    limits: ClientLimits = request.app.state.aggregator.limits
    wait = limits.seconds_to_wait(request.client.host if request.client else "")
    if wait:
        raise Problem(
            "too-many-requests",
            "Retry after the number of seconds given in Retry-After.",
            headers={"Retry-After": str(int(wait) + 1)},
        )


# --- bodies ---------------------------------------------------------------------------------------


class MemoryQuota:
    """Limits the memory for request bodies, so a flood of slow requests cannot exhaust it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0

    def acquire(self, size: int) -> None:
        """Reserve ``size`` bytes; raise ``StoreUnavailable`` if that exceeds the limit."""
        if self._used + size > self._limit:
            raise StoreUnavailable(
                "there is not enough memory for more uploads. Try again in a moment."
            )
        self._used += size

    def release(self, size: int) -> None:
        """Release ``size`` bytes."""
        self._used -= size


def get_media_type(request: Request) -> str:
    """Return the media type of a request body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(request: Request, limit: int) -> bytes:
    """Read and decompress an untrusted body. Reject it if it is too large, too slow or truncated.

    ``limit`` is the maximum size in bytes, both before and after decompression.
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
    if content_length.isdecimal() and int(content_length[:20]) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(timeout):
            body = await _receive(request, aggregator.quota, limit)
    except TimeoutError:
        raise Problem(
            "body-too-slow",
            f"The body must arrive within {timeout:g} seconds.",
            headers=_CLOSE_CONNECTION,
        ) from None
    except ClientDisconnect:
        raise Problem("invalid-request", "The body is truncated.") from None
    return body if encoding == "identity" else _decompress(body, limit)


async def _receive(request: Request, quota: MemoryQuota, limit: int) -> bytes:
    chunks = []
    size = 0
    try:
        async for chunk in request.stream():
            quota.acquire(len(chunk))
            size += len(chunk)
            if size > limit:
                raise _too_large(limit)
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        quota.release(size)


def _decompress(compressed: bytes, limit: int) -> bytes:
    decompressor = zlib.decompressobj(_GZIP_WBITS)
    try:
        body = decompressor.decompress(compressed, limit + 1)
    except zlib.error:
        raise Problem("invalid-request", "The body is not valid gzip data.") from None
    if len(body) > limit:
        raise _too_large(limit)
    if not decompressor.eof or decompressor.unused_data:
        raise Problem("invalid-request", "The gzip data is truncated or has trailing data.")
    return body


def _too_large(limit: int) -> Problem:
    return Problem(
        "body-too-large",
        f"The body must not exceed {limit:,} bytes, before or after decompression.",
        headers=_CLOSE_CONNECTION,
    )
