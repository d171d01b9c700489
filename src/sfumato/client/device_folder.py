"""A device's folder: files that are there whole, or not at all, or known to be damaged.

Every file is written aside, forced to the disk and renamed; the folder is then forced to the disk too. So a crash
leaves the old content or the new one. Records end with a checksum, so that a file which was cut off later, by a broken
disk or a careless copy, is an error and never an older state.
"""

import errno
import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sfumato.errors import BudgetExceeded
from sfumato.foundation.canonical import Json, canonical_bytes
from sfumato.foundation.files import write_atomically

__all__ = ["Home", "sync_folder"]

_LOCK = "lock"
_CAN_LOCK = find_spec("fcntl") is not None  # not on Windows


class Home:
    """The folder of one device, for its owner alone.

    ``locked`` keeps threads and processes apart that share the folder. It rests on ``flock``; where the system has none
    (Windows), nothing keeps them apart, and it is the caller's duty that one process at a time uses a home.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder).resolve()
        if not self._folder.exists():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(self._folder.parent)
        if os.name == "posix" and self._folder.stat().st_mode & 0o077:
            reason = "a home must be its owner's alone, for it holds a secret; chmod 700 it, or name a new folder"
            raise OSError(errno.EPERM, reason, str(folder))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else reads or writes meanwhile. Not to be held while waiting for a network."""
        if not _CAN_LOCK:
            yield
            return
        import fcntl

        with (self._folder / _LOCK).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # a crash lets go of it
            try:
                yield
            finally:  # not left to the closing: a child that was forked meanwhile holds the file open, too
                fcntl.flock(file, fcntl.LOCK_UN)

    def bytes_of(self, name: str) -> bytes | None:
        """What stands in a file; ``None`` if there is none."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def keep_bytes(self, name: str, content: bytes) -> None:
        """Replace a file, durably, by one that its owner alone may read."""
        write_atomically(self._folder / name, content, mode=0o600)
        sync_folder(self._folder)

    def record_of(self, name: str, formats: Collection[int]) -> dict[str, Any] | None:
        """Read a record of one of these formats; ``None`` if there is no such file. A damaged one is an error."""
        content = self.bytes_of(name)
        if content is None:
            return None
        body, _, _ = content.partition(b"\n")
        if content != _sealed(body):
            raise BudgetExceeded(
                f"the file {name} in {self._folder} is damaged, so nobody can say what this device has promised. "
                "Nothing was sent. Put the file back as it was, or give up this home for good."
            )
        record: dict[str, Any] = json.loads(body)
        if record.get("format") not in formats:
            raise BudgetExceeded(
                f"the file {name} in {self._folder} was written by another version. Nothing was sent."
            )
        return record

    def keep_record(self, name: str, record: Mapping[str, Json], version: int) -> None:
        """Replace a record, durably, in this version of its format."""
        self.keep_bytes(name, _sealed(canonical_bytes({**record, "format": version})))

    def drop(self, name: str) -> None:
        """Remove a file, and what a crash may have left of one that was being written."""
        for path in (self._folder / name, *self._folder.glob(f".{name}.*")):
            path.unlink(missing_ok=True)
        sync_folder(self._folder)

    def names(self, prefix: str) -> list[str]:
        """The files whose names begin like this."""
        return sorted(path.name for path in self._folder.glob(f"{prefix}*"))

    def __repr__(self) -> str:
        return f"Home({str(self._folder)!r})"


def sync_folder(folder: Path) -> None:
    """Force a folder's list of names to the disk, where the system lets one."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sealed(body: bytes) -> bytes:
    return body + b"\nsha256 " + hashlib.sha256(body).hexdigest().encode("ascii") + b"\n"
