"""Where the tokens of clients are kept: in one process, or in memory that several processes share.

A bucket holds a client's tokens and the time at which they were counted. Buckets are found by keyed
hashes of addresses. The key changes every hour, and all buckets are then forgotten.
"""

import mmap
import os
import struct
from abc import ABC, abstractmethod
from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext
from time import monotonic, sleep
from types import TracebackType

from sfumato.randomness import fresh_key

__all__ = ["HASH_BYTES", "Buckets", "LocalBuckets", "SharedBuckets"]

HASH_BYTES = 16
"""The size of the keyed hash that identifies a client."""

_MAX_CLIENTS = 100_000
_KEY_LIFETIME = 3600.0  # seconds


class Buckets(ABC):
    """Tokens by client. Hold ``lock`` from reading a bucket to writing it."""

    lock: AbstractContextManager[object]

    @abstractmethod
    def current_key(self, now: float) -> bytes:
        """Return the key of the hashes. Replace it, and forget all clients, once an hour."""

    @abstractmethod
    def read(self, client: bytes) -> tuple[float, float] | None:
        """Return a client's tokens and the time at which they were counted, if it is known."""

    @abstractmethod
    def write(self, client: bytes, tokens: float, now: float) -> None:
        """Set a client's tokens. If there are too many clients, forget one that was idle."""


class LocalBuckets(Buckets):
    """Buckets of a single process, which handles one request at a time."""

    def __init__(self) -> None:
        self.lock = nullcontext()
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()
        self._key = b""
        self._key_created_at = 0.0

    def current_key(self, now: float) -> bytes:
        """Return the key, which may be new."""
        if not self._key or now - self._key_created_at > _KEY_LIFETIME:
            self._key = fresh_key()
            self._key_created_at = now
            self._buckets.clear()
        return self._key

    def read(self, client: bytes) -> tuple[float, float] | None:
        """Return a client's bucket."""
        return self._buckets.get(client)

    def write(self, client: bytes, tokens: float, now: float) -> None:
        """Set a client's bucket."""
        self._buckets[client] = (tokens, now)
        self._buckets.move_to_end(client)
        if len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)


_LOCK_TIMEOUT = 0.25
_LOCK_PAUSE = 0.0002
_LOCK_RETRY = 5.0
"""Seconds to wait for the lock of shared buckets, between two attempts, and until waiting again."""

_KEY_BYTES = 32
_HEADER = struct.Struct(f"<d{_KEY_BYTES}s")
"""The time at which the key was created, and the key. Without a key, both are zero."""

_NO_KEY = bytes(_KEY_BYTES)

_BUCKET = struct.Struct("<dd")
"""A client's tokens, and the time at which they were counted."""

_WAYS = 8
"""How many clients a row has. When it is full, it forgets the one that was idle for longest."""

_ROW_COUNT = 2**14
_ROW_BYTES = _WAYS * (HASH_BYTES + _BUCKET.size)
_HEADER_BYTES = 64
_SIZE = _HEADER_BYTES + _ROW_COUNT * _ROW_BYTES


class SharedBuckets(Buckets):
    """Buckets in memory that several processes share: a table of rows, found by a part of the hash.

    ``descriptor`` is what ``create`` returned. The memory has no name and no file on a disk.
    """

    def __init__(self, descriptor: int) -> None:
        self.lock = _FileLock(descriptor)
        self._memory = mmap.mmap(descriptor, _SIZE)

    @staticmethod
    def create() -> int:
        """Return a descriptor of new memory. Linux only."""
        descriptor = os.memfd_create("sfumato-limits")
        os.ftruncate(descriptor, _SIZE)
        return descriptor

    def current_key(self, now: float) -> bytes:
        """Return the key, which may be new."""
        created_at, key = _HEADER.unpack_from(self._memory)
        if key == _NO_KEY or now - created_at > _KEY_LIFETIME:
            key = fresh_key()
            self._memory[_HEADER_BYTES:] = bytes(_SIZE - _HEADER_BYTES)
            _HEADER.pack_into(self._memory, 0, now, key)
        return bytes(key)

    def read(self, client: bytes) -> tuple[float, float] | None:
        """Return a client's bucket."""
        row = _row_start(client)
        way = self._find(row, client)
        if way is None:
            return None
        return self._bucket(row, way)

    def write(self, client: bytes, tokens: float, now: float) -> None:
        """Set a client's bucket."""
        row = _row_start(client)
        way = self._find(row, client)
        if way is None:
            way = min(range(_WAYS), key=lambda way: self._bucket(row, way)[1])
            start = row + way * HASH_BYTES
            self._memory[start : start + HASH_BYTES] = client
        _BUCKET.pack_into(self._memory, _bucket_start(row, way), tokens, now)

    def _find(self, row: int, client: bytes) -> int | None:
        """Return the position of a client in its row."""
        hashes = self._memory[row : row + _WAYS * HASH_BYTES]
        position = hashes.find(client)
        while position > 0 and position % HASH_BYTES:  # part of two hashes
            position = hashes.find(client, position + 1)
        return None if position < 0 else position // HASH_BYTES

    def _bucket(self, row: int, way: int) -> tuple[float, float]:
        tokens, updated_at = _BUCKET.unpack_from(self._memory, _bucket_start(row, way))
        return tokens, updated_at


def _row_start(client: bytes) -> int:
    """Return where the row of a client begins: first the hashes, then the buckets."""
    return _HEADER_BYTES + int.from_bytes(client[:4], "little") % _ROW_COUNT * _ROW_BYTES


def _bucket_start(row: int, way: int) -> int:
    return row + _WAYS * HASH_BYTES + way * _BUCKET.size


class _FileLock:
    """A lock between processes. The kernel releases it if its holder dies.

    If its holder is frozen, requests are let through without the lock: the worst that can happen is
    that two workers let through one request too many.
    """

    def __init__(self, descriptor: int) -> None:
        import fcntl

        self._descriptor = descriptor
        self._lock = fcntl.lockf
        self._acquire = fcntl.LOCK_EX | fcntl.LOCK_NB
        self._release = fcntl.LOCK_UN
        self._next_attempt = 0.0

    def __enter__(self) -> None:
        if self._try() or monotonic() < self._next_attempt:
            return
        deadline = monotonic() + _LOCK_TIMEOUT
        while not self._try():
            if monotonic() >= deadline:
                self._next_attempt = monotonic() + _LOCK_RETRY
                return
            sleep(_LOCK_PAUSE)

    def _try(self) -> bool:
        try:
            self._lock(self._descriptor, self._acquire)
        except BlockingIOError:
            return False
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock(self._descriptor, self._release)
