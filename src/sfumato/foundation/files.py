"""Files that appear whole or not at all."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

__all__ = ["whole_file", "write_whole"]


def _umask() -> int:
    """The process's mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


_NEW_FILE = (
    0o666 & ~_umask()
)  # read once: the mask is the whole process's, and other threads make files meanwhile


@contextmanager
def whole_file(path: str | os.PathLike[str], *, mode: int | None = None) -> Iterator[BinaryIO]:
    """A file to write to that takes its name only once it is complete and on disk.

    Its permissions are those of any new file, unless ``mode`` says which. If anything goes wrong, what was at ``path``
    before is untouched and nothing is left behind.
    """
    target = Path(path).resolve()  # what a link points to is replaced, not the link
    if target.exists() and not target.is_file():
        raise OSError(
            errno.EINVAL, "not a regular file, so it cannot be replaced by a whole one", str(path)
        )
    # The name is known before there is a file of that name: whenever an interrupt comes, it can be taken away.
    temporary = target.parent / f".{target.name}.{uuid4().hex}"
    try:
        with open(temporary, "xb", opener=_for_the_owner) as file:  # a path has no opener
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_NEW_FILE if mode is None else mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_whole(path: str | os.PathLike[str], content: bytes, *, mode: int | None = None) -> None:
    """Write bytes that are all there already."""
    with whole_file(path, mode=mode) as file:
        file.write(content)


def _for_the_owner(path: str, flags: int) -> int:
    """Until it is whole, a file is nobody else's."""
    return os.open(path, flags, 0o600)
