"""A byte stream that Arrow's threads read.

Python aborts the process if another thread needs the interpreter while it exits, even only to
release an object. So wait until Arrow has released the stream, and every block read from it.
"""

from threading import Event
from typing import Protocol

__all__ = ["LentStream", "Loan"]

_MAX_WAIT = 2.0  # seconds


class _Readable(Protocol):
    def read(self, size: int) -> bytes: ...


class Loan:
    """The time during which Arrow may use a stream. Keep no reference to what ``lend`` returns."""

    def __init__(self, stream: _Readable) -> None:
        self._stream = stream
        self._release = Event()

    def lend(self) -> "LentStream":
        """Return the stream, for Arrow."""
        return LentStream(self._stream, self._release)

    def wait_for_release(self) -> bool:
        """Wait until nobody refers to the stream and its blocks, and return whether that is so.

        This takes milliseconds.
        """
        return self._release.wait(_MAX_WAIT)


class LentStream:
    """A stream that knows when it was released."""

    closed = False  # Arrow reads this attribute

    def __init__(self, stream: _Readable, release: Event) -> None:
        self._stream = stream
        self._release = release

    def __del__(self) -> None:
        self._release.set()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        return _Block(self._stream.read(size), self)

    def close(self) -> None:
        """Do nothing: the stream belongs to the caller."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return False."""
        return False

    def seekable(self) -> bool:
        """Return False."""
        return False


class _Block(bytes):
    """Bytes that keep their stream alive. Arrow's threads release them, too."""

    _owner: LentStream

    def __new__(cls, content: bytes, owner: LentStream) -> "_Block":
        block = super().__new__(cls, content)
        block._owner = owner
        return block
