"""Bodies from strangers: bounded in size, before and after decompression, and in time, before anything is parsed."""

import asyncio
import zlib

from fastapi import Request
from starlette.requests import ClientDisconnect

from sfumato.aggregator.http.problems import Problem
from sfumato.errors import StoreUnavailable

__all__ = ["Room", "body_of", "media_type_of"]

_LAST = {"Connection": "close"}
"""The rest of a body that is not read must not be taken for the next request."""

_GZIP = 31  # zlib's number for a gzip header and trailer with the largest window


class Room:
    """Memory for bodies that are on their way, of all requests together: many slow ones must not fill the machine."""

    def __init__(self, most: int) -> None:
        self._most, self._taken = most, 0

    def take(self, size: int) -> None:
        """Room for so many bytes more; ``StoreUnavailable`` where there is none."""
        if self._taken + size > self._most:
            raise StoreUnavailable(
                "more uploads are on their way than there is memory for. Try again in a moment."
            )
        self._taken += size

    def give_back(self, size: int) -> None:
        """So many bytes are not on their way any more."""
        self._taken -= size


async def body_of(request: Request, room: Room, *, most: int, seconds: float) -> bytes:
    """The body of a request, decompressed; refused as soon as it is too large, too slow or cut off."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise Problem(
            "unknown-media-type", "Content-Encoding must be gzip or left out.", headers=_LAST
        )
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(seconds):
            received = await _received(request, room, most)
    except TimeoutError:
        raise Problem(
            "body-too-slow", f"A body must arrive within {seconds:g} seconds.", headers=_LAST
        ) from None
    except ClientDisconnect:
        raise Problem("invalid-request", "The body is cut off.") from None
    return received if encoding == "identity" else _inflated(received, most)


def media_type_of(request: Request) -> str:
    """The media type of a body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _received(request: Request, room: Room, most: int) -> bytes:
    chunks, size = [], 0
    try:
        async for chunk in request.stream():
            room.take(len(chunk))
            size += len(chunk)
            if size > most:
                raise _too_large(most)
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    finally:
        room.give_back(size)


def _inflated(packed: bytes, most: int) -> bytes:
    inflate = zlib.decompressobj(_GZIP)
    try:
        body = inflate.decompress(packed, most + 1)
    except zlib.error:
        raise Problem("invalid-request", "The body is not what gzip makes.") from None
    if len(body) > most:
        raise _too_large(most)
    if not inflate.eof or inflate.unused_data:
        raise Problem("invalid-request", "The compressed body is cut off, or something follows it.")
    return body


def _too_large(most: int) -> Problem:
    return Problem(
        "body-too-large", f"A body has at most {most:,} bytes, decompressed too.", headers=_LAST
    )
