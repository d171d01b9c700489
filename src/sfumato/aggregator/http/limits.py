"""Limits on what a request may cost: how often a client asks, and how large and slow a body is.

The rate limit stops accidents and simple floods, not a determined attacker. It identifies clients
by a keyed hash of their address. The key lives in memory and changes every hour. Nothing is
written down, so no one can find out later who sent what.
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

__all__ = ["ClientLimits", "MemoryQuota", "admit", "media_type_of", "read_body"]

_MAX_CLIENTS = 100_000
_KEY_SECONDS = 3600.0

_CLOSE = {"Connection": "close"}
"""Close the connection, so that the unread rest of a body is not parsed as the next request."""

_GZIP = 31  # zlib's number for a gzip header and trailer with the largest window


# --- requests per client --------------------------------------------------------------------------


class ClientLimits:
    """A token bucket for each client, filled at ``per_minute``; 0 means no limit.

    >>> limits = ClientLimits(per_minute=60, clock=lambda: 0.0)
    >>> [limits.seconds_to_wait("198.51.100.7") for _ in range(61)][-2:]
    [0.0, 1.0]
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = monotonic) -> None:
        self._rate = per_minute / 60
        self._size = float(per_minute)
        self._clock = clock
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()
        self._replace_key()

    def seconds_to_wait(self, address: str) -> float:
        """Count a request. Return 0 if the client may make it, else how long it must wait."""
        if self._size == 0:
            return 0.0
        now = self._clock()
        if now - self._key_created > _KEY_SECONDS:
            self._replace_key()
        client = hashlib.blake2b(address.encode(), key=self._key, digest_size=16).digest()
        tokens, since = self._buckets.pop(client, (self._size, now))
        tokens = min(self._size, tokens + (now - since) * self._rate)
        allowed = tokens >= 1
        self._buckets[client] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) / self._rate

    def _replace_key(self) -> None:
        """Draw a new key, and so forget all clients."""
        self._key = fresh_key()
        self._key_created = self._clock()
        self._buckets.clear()


async def admit(request: Request) -> None:
    """Refuse a client that makes too many requests."""
    limits: ClientLimits = request.app.state.aggregator.limits
    wait = limits.seconds_to_wait(request.client.host if request.client else "")
    if wait:
        raise Problem(
            "too-many-requests",
            "Wait as long as Retry-After says, then try again.",
            headers={"Retry-After": str(int(wait) + 1)},
        )


# --- bodies ---------------------------------------------------------------------------------------


class MemoryQuota:
    """A limit on the memory for bodies in transit: many slow requests must not fill the machine."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0

    def acquire(self, size: int) -> None:
        """Reserve ``size`` bytes; ``StoreUnavailable`` if that exceeds the limit."""
        if self._used + size > self._limit:
            raise StoreUnavailable(
                "there is not enough memory for more uploads. Try again in a moment."
            )
        self._used += size

    def release(self, size: int) -> None:
        """Give ``size`` bytes back."""
        self._used -= size


def media_type_of(request: Request) -> str:
    """Return the media type of a body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(request: Request, limit: int) -> bytes:
    """Read and decompress an untrusted body. Refuse it if it is too large, too slow or truncated.

    ``limit`` applies to its bytes both before and after decompression.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise Problem(
            "unknown-media-type", "Content-Encoding must be gzip or absent.", headers=_CLOSE
        )
    aggregator = request.app.state.aggregator
    seconds = aggregator.settings.body_seconds
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(seconds):
            body = await _receive(request, aggregator.quota, limit)
    except TimeoutError:
        raise Problem(
            "body-too-slow", f"The body must arrive within {seconds:g} seconds.", headers=_CLOSE
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
    inflate = zlib.decompressobj(_GZIP)
    try:
        body = inflate.decompress(compressed, limit + 1)
    except zlib.error:
        raise Problem("invalid-request", "The body is not valid gzip data.") from None
    if len(body) > limit:
        raise _too_large(limit)
    if not inflate.eof or inflate.unused_data:
        raise Problem("invalid-request", "The gzip data is truncated or has trailing data.")
    return body


def _too_large(limit: int) -> Problem:
    return Problem(
        "body-too-large",
        f"A body may have at most {limit:,} bytes, before and after decompression.",
        headers=_CLOSE,
    )
