"""Files that appear whole or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["whole_file", "write_whole"]


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that takes its name only once it is complete and on disk.

    If anything goes wrong, what was at ``path`` before is untouched and nothing is left behind.
    """
    target = Path(path).resolve()  # what a link points to is replaced, not the link
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file, so it cannot be replaced by a whole one", str(path))
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes that are all there already."""
    with whole_file(path) as file:
        file.write(content)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
