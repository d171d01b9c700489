"""Temporary copies of pipes, for formats that cannot be read as a stream."""

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

__all__ = ["copy_to_path", "make_seekable"]


def make_seekable(file: BinaryIO, stack: ExitStack) -> BinaryIO:
    """Return the file itself, or a temporary copy if it is a pipe."""
    if file.seekable():
        return file
    temporary_file = tempfile.TemporaryFile()  # noqa: SIM115 - the stack closes it
    copy: BinaryIO = stack.enter_context(temporary_file)
    shutil.copyfileobj(file, copy)
    copy.seek(0)
    return copy


def copy_to_path(file: BinaryIO, stack: ExitStack) -> str:
    """Copy a file to a temporary file that only its owner can read, and return its path.

    The stack removes the copy.
    """
    descriptor, path = tempfile.mkstemp(prefix="sfumato-")
    stack.callback(Path(path).unlink, missing_ok=True)
    with os.fdopen(descriptor, "wb") as copy:
        shutil.copyfileobj(file, copy)
    return path
