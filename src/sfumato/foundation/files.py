"""Write files atomically, and find files that ship with the package."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from sfumato.errors import InvalidSetting, MissingExtra


def _read_umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# Read the umask only once, at import: setting it affects files that other threads create.
_DEFAULT_MODE = 0o666 & ~_read_umask()


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, mode: int | None = None) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` atomically on success.

    ``mode`` sets the permissions; the default follows the umask. If anything fails, ``path`` is
    left unchanged and the temporary file is removed. Raise ``InvalidSetting`` if there is no such
    folder, or if ``path`` is a symbolic link that another user put into a shared folder.
    """
    _require_own_link(Path(path))
    target = Path(path).resolve()  # replace the target of a symbolic link, not the link
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file, so it cannot be replaced", str(path))
    if not target.parent.is_dir():
        folder = Path(path).parent
        raise InvalidSetting(f"cannot write {path}: there is no folder {folder}. Create it first.")
    # Choose the name before creating the file, so the file can be removed after any interrupt.
    temporary = target.parent / f".{target.name}.{uuid4().hex}"
    try:
        with open(temporary, "xb", opener=_open_owner_only) as file:  # Path.open has no opener
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_DEFAULT_MODE if mode is None else mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _require_own_link(path: Path) -> None:
    """Reject a link in a folder such as /tmp that belongs neither to this user nor to root.

    Linux refuses to follow such links when it opens a file (``fs.protected_symlinks``), but not
    when a program resolves them itself, as ``atomic_file`` does.
    """
    if not path.is_symlink():
        return
    folder = path.parent.stat()
    is_shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    if is_shared and path.lstat().st_uid not in (os.geteuid(), 0):
        raise InvalidSetting(
            f"cannot write {path}: it is a symbolic link of another user. Remove it, or choose "
            "another name."
        )


def write_atomically(
    path: str | os.PathLike[str], content: bytes, *, mode: int | None = None
) -> None:
    """Write ``content`` to ``path`` atomically."""
    with atomic_file(path, mode=mode) as file:
        file.write(content)


def _open_owner_only(path: str, flags: int) -> int:
    """Create a file that only its owner can read. The final mode is set later."""
    return os.open(path, flags, 0o600)


def find_resource(package: str, name: str, repository_path: str) -> Traversable:
    """Return a file or folder that ships with a package, from the installation or a checkout."""
    from importlib.resources import files

    installed = files(package).joinpath(name)
    if installed.is_file() or installed.is_dir():
        return installed
    path = Path(__file__).parents[3] / repository_path
    if path.exists():
        return path
    raise MissingExtra(f"{name} is missing from this installation. Reinstall Sfumato.")
