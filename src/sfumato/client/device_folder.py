"""A device's folder: atomic, durable files whose records carry a checksum.

Every file is written to a temporary name, synced and renamed; then the folder is synced too. So a
crash leaves the old content or the new content. Records end with a checksum, so a file that was
truncated later, by a broken disk or a careless copy, is an error and never an older state.
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

from sfumato.errors import DamagedState
from sfumato.foundation.canonical import Json, canonical_bytes
from sfumato.foundation.files import write_atomically

__all__ = ["DeviceFolder", "sync_folder"]

_LOCK = "lock"
_CAN_LOCK = find_spec("fcntl") is not None  # not on Windows


class DeviceFolder:
    """The folder of one device, readable by its owner only.

    ``lock`` separates threads and processes that share the folder. It uses ``flock``. Where the
    system has none (Windows), callers must make sure that only one process at a time uses a folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).resolve()
        if not self.path.exists():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(self.path.parent)
        if os.name == "posix" and self.path.stat().st_mode & 0o077:
            reason = (
                "a device's folder holds a secret, so only its owner may have access. "
                "Run chmod 700 on it, or choose a new folder"
            )
            raise OSError(errno.EPERM, reason, str(path))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep everything else from reading and writing. Do not wait for a network inside."""
        if not _CAN_LOCK:
            yield
            return
        import fcntl

        with (self.path / _LOCK).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # a crash releases it
            try:
                yield
            finally:
                # Closing the file is not enough: a child that was forked meanwhile has it open too.
                fcntl.flock(file, fcntl.LOCK_UN)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or ``None`` if it does not exist."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Replace a file atomically and durably, readable by its owner only."""
        write_atomically(self.path / name, content, mode=0o600)
        sync_folder(self.path)

    def read_record(self, name: str, formats: Collection[int]) -> dict[str, Any] | None:
        """Read a record of one of these formats; ``None`` if the file does not exist.

        ``DamagedState`` if its checksum or its format is wrong.
        """
        content = self.read(name)
        if content is None:
            return None
        body, _, _ = content.partition(b"\n")
        if content != _with_checksum(body):
            raise DamagedState(
                f"{self.path / name} is damaged, so what this device has promised is unknown. "
                "Nothing was sent. Restore the file, or stop using this folder."
            )
        record: dict[str, Any] = json.loads(body)
        if record.get("format") not in formats:
            raise DamagedState(
                f"{self.path / name} was written by another version of Sfumato. Nothing was sent."
            )
        return record

    def write_record(self, name: str, record: Mapping[str, Json], version: int) -> None:
        """Replace a record, in this version of its format."""
        self.write(name, _with_checksum(canonical_bytes({**record, "format": version})))

    def delete(self, name: str) -> None:
        """Delete a file, and anything a crash left of an unfinished write to it."""
        (self.path / name).unlink(missing_ok=True)
        for leftover in self.path.glob(f".{name}.*"):
            leftover.unlink(missing_ok=True)
        sync_folder(self.path)

    def names(self, prefix: str) -> list[str]:
        """List the files whose names start with ``prefix``."""
        return sorted(path.name for path in self.path.glob(f"{prefix}*"))


def sync_folder(folder: Path) -> None:
    """Force a folder's directory entries to disk, where the system allows it."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _with_checksum(body: bytes) -> bytes:
    return body + b"\nsha256 " + hashlib.sha256(body).hexdigest().encode("ascii") + b"\n"
