"""Atomic files, which appear under their name complete or not at all; files of the package."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from sfumato.errors import MissingExtra


def _read_umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# Read once at import: the umask belongs to the whole process, and other threads may create files.
_DEFAULT_MODE = 0o666 & ~_read_umask()


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, mode: int | None = None) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` atomically on success.

    ``mode`` sets the permissions; by default they are those of any new file. If anything goes
    wrong, ``path`` stays as it was and the temporary file is removed.
    """
    target = Path(path).resolve()  # replace what a link points to, not the link
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file, so it cannot be replaced", str(path))
    # Choose the name before creating the file, so that an interrupt at any point can clean it up.
    temporary = target.parent / f".{target.name}.{uuid4().hex}"
    try:
        with open(temporary, "xb", opener=_owner_only) as file:  # Path.open takes no opener
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_DEFAULT_MODE if mode is None else mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_atomically(
    path: str | os.PathLike[str], content: bytes, *, mode: int | None = None
) -> None:
    """Write ``content`` to ``path`` atomically."""
    with atomic_file(path, mode=mode) as file:
        file.write(content)


def _owner_only(path: str, flags: int) -> int:
    """Create the file readable by its owner only, until it is complete."""
    return os.open(path, flags, 0o600)


def find_shipped(package: str, name: str, in_repository: str) -> Traversable:
    """Return a file or folder that comes with a package: installed, or in the repository."""
    from importlib.resources import files

    installed = files(package).joinpath(name)
    if installed.is_file() or installed.is_dir():
        return installed
    path = Path(__file__).parents[3] / in_repository
    if path.exists():
        return path
    raise MissingExtra(f"{name} is missing from this installation. Reinstall Sfumato.")
