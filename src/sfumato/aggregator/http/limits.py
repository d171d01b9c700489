"""Limits on requests: their rate, the size of a body, and how long it may take to arrive.

The rate limit stops accidental and simple floods, not a determined attacker. It counts requests,
and each report of an anonymous upload. It identifies clients by a keyed hash of their IPv4 address,
or of the first 64 bits of their IPv6 address, which is what one subscriber gets. The key is kept in
memory and changes every hour. Nothing is logged, so nobody can find out later who sent what.
"""

import asyncio
import hashlib
import ipaddress
import zlib
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from fastapi import Request
from starlette.requests import ClientDisconnect

from sfumato.aggregator.http.problems import Problem
from sfumato.errors import StoreUnavailable
from sfumato.randomness import fresh_key

__all__ = [
    "ClientLimits",
    "MemoryQuota",
    "admit",
    "admit_monitor",
    "charge",
    "get_media_type",
    "read_body",
]

_MAX_CLIENTS = 100_000
_KEY_LIFETIME = 3600.0  # seconds

_CLOSE_CONNECTION = {"Connection": "close"}
"""Prevents the unread remainder of a body from being parsed as the next request."""

_GZIP_WBITS = 31  # zlib's wbits value for gzip format with the largest window


# --- requests per client --------------------------------------------------------------------------


class ClientLimits:
    """A token bucket for each client, with ``per_minute`` new tokens a minute; 0 means no limit.

    >>> limits = ClientLimits(per_minute=60, clock=lambda: 0.0)
    >>> [limits.seconds_to_wait("198.51.100.7") for _ in range(61)][-2:]
    [0.0, 1.0]
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = monotonic) -> None:
        self._tokens_per_second = per_minute / 60
        self._capacity = float(per_minute)
        self._clock = clock
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()
        self._replace_key()

    def seconds_to_wait(self, address: str) -> float:
        """Take a token. Return 0 if there is one, otherwise the seconds to wait for it."""
        if self._capacity == 0:
            return 0.0
        now = self._clock()
        client = self._client_hash(address, now)
        tokens = self._refill(client, now)
        is_allowed = tokens >= 1
        self._set_tokens(client, tokens - 1 if is_allowed else tokens, now)
        return 0.0 if is_allowed else (1 - tokens) / self._tokens_per_second

    def charge(self, address: str, cost: int) -> None:
        """Take ``cost`` tokens. If there are fewer, the client's next requests must wait longer."""
        if self._capacity == 0:
            return
        now = self._clock()
        client = self._client_hash(address, now)
        self._set_tokens(client, self._refill(client, now) - cost, now)

    def _client_hash(self, address: str, now: float) -> bytes:
        """Return the key of a client's bucket."""
        if now - self._key_created_at > _KEY_LIFETIME:
            self._replace_key()
        network = _client_network(address).encode()
        return hashlib.blake2b(network, key=self._key, digest_size=16).digest()

    def _refill(self, client: bytes, now: float) -> float:
        """Return the tokens of a client, including those of the time since its last request."""
        tokens, updated_at = self._buckets.get(client, (self._capacity, now))
        return min(self._capacity, tokens + (now - updated_at) * self._tokens_per_second)

    def _set_tokens(self, client: bytes, tokens: float, now: float) -> None:
        self._buckets[client] = (tokens, now)
        self._buckets.move_to_end(client)
        if len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)

    def _replace_key(self) -> None:
        """Generate a new key, and forget all clients."""
        self._key = fresh_key()
        self._key_created_at = self._clock()
        self._buckets.clear()


def _client_network(address: str) -> str:
    """Return what identifies a client: an IPv4 address, or the /64 network of an IPv6 address.

    >>> _client_network("2001:db8:0:7:1:2:3:4"), _client_network("::ffff:198.51.100.7")
    ('2001:db8:0:7::', '198.51.100.7')
    """
    if ":" not in address:  # nearly all addresses are of IPv4, and parsing takes long
        return address
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # for example, a Unix socket
        return address
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(parsed) >> 64 << 64))


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
    request.app.state.aggregator.limits.charge(_address(request), cost)


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _admit(request: Request, limits: ClientLimits) -> None:
    wait_seconds = limits.seconds_to_wait(_address(request))
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
