"""Untrusted bodies: limited in time, and in size before and after decompression."""

import asyncio
import zlib

from fastapi import Request
from starlette.requests import ClientDisconnect

from sfumato.aggregator.http.problems import Problem
from sfumato.errors import StoreUnavailable

__all__ = ["MemoryQuota", "media_type_of", "read_body"]

_CLOSE = {"Connection": "close"}
"""Close the connection, so that the unread rest of a body is not taken for the next request."""

_GZIP = 31  # zlib's number for a gzip header and trailer with the largest window


class MemoryQuota:
    """Limits the memory for bodies in transit: many slow requests must not fill the machine."""

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


async def read_body(request: Request, quota: MemoryQuota, *, limit: int, seconds: float) -> bytes:
    """Read and decompress a body. Refuse it once it is too large, too slow or truncated."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise Problem(
            "unknown-media-type", "Content-Encoding must be gzip or absent.", headers=_CLOSE
        )
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(seconds):
            body = await _receive(request, quota, limit)
    except TimeoutError:
        raise Problem(
            "body-too-slow", f"The body must arrive within {seconds:g} seconds.", headers=_CLOSE
        ) from None
    except ClientDisconnect:
        raise Problem("invalid-request", "The body is truncated.") from None
    return body if encoding == "identity" else _decompress(body, limit)


def media_type_of(request: Request) -> str:
    """Return the media type of a body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


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
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
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
        f"A body may have at most {limit:,} bytes, also after decompression.",
        headers=_CLOSE,
    )
