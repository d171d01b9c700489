"""Cut the power of a program that writes to a folder: only what it synchronised is sure to survive.

A library in the program records the content of each file at each fsync (`power_loss.c`). After the
program was killed, `Disk.lose_power` replaces the files by a state that a power loss could leave:
the recorded content, and any of the blocks, creations and deletions since then.
"""

import os
import shutil
import struct
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

_SOURCE = Path(__file__).with_suffix(".c")
_HEADER = struct.Struct("=Q")
_SHARES = (0.0, 0.5, 0.9)
_BLOCK_SIZES = (4096, 512)


def build_library(folder):
    """Compile the library that records what is durable. Return its path."""
    if sys.platform != "linux":
        pytest.skip("needs Linux: the library replaces functions of its C library")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is installed (on Debian: apt-get install gcc libc6-dev)")
    library = folder / "power_loss.so"
    options = ["-shared", "-fPIC", "-O2", "-Wall", "-Wno-format-truncation"]
    subprocess.run([compiler, *options, "-o", library, _SOURCE], check=True)
    return library


@dataclass(frozen=True)
class _Version:
    """The content of a file. Another file of the same name has another inode number."""

    inode: int
    content: bytes


class Disk:
    """The files in a folder, and the versions of them that a power loss spares.

    `record` is another folder, for the library and the versions; `owner` is the user who runs the
    program, if it is another one. Create the disk when the folder's files exist and are at rest.
    `events` counts what was kept and lost.
    """

    def __init__(self, folder, record, owner=None):
        self._folder = folder.resolve()
        self._record = record.resolve()
        self._owner = owner
        self._durable = self._record / "durable"
        self.events = Counter()
        self._record.mkdir()
        library = build_library(self._record)
        self.environment = {
            "LD_PRELOAD": str(library),
            "POWER_LOSS_FOLDER": str(self._folder),
            "POWER_LOSS_RECORD": str(self._record),
        }
        self._give_to_owner(self._record)
        self._settle()

    def lose_power(self, choose, share=None):
        """Leave the durable versions, and each later change with probability `share`.

        Without `share`, it is chosen at random, as the size of the blocks always is. The program
        must have ended.
        """
        block_size = choose.choice(_BLOCK_SIZES)
        if share is None:
            share = choose.choice(_SHARES)
        blend = _Blend(choose, share, block_size, self.events)
        current = _read_files(self._folder)
        durable = self._read_durable()
        for name in sorted(current.keys() | durable.keys()):
            content = blend.file(durable.get(name), current.get(name))
            self._replace(name, current.get(name), content)
        self.events["power losses"] += 1
        self._settle()

    def _read_durable(self):
        versions = {}
        for name, stored in _read_files(self._durable).items():
            (inode,) = _HEADER.unpack(stored.content[: _HEADER.size])
            versions[name] = _Version(inode, stored.content[_HEADER.size :])
        return versions

    def _replace(self, name, version, content):
        path = self._folder / name
        if content is None:
            path.unlink(missing_ok=True)
        elif version is None or version.content != content:
            path.write_bytes(content)
            self._give_to_owner(path)

    def _settle(self):
        """Make everything durable: what a machine reads after a power loss is on its disk."""
        shutil.rmtree(self._durable, ignore_errors=True)
        for folder, _, _ in os.walk(self._folder):
            copy = self._durable / Path(folder).relative_to(self._folder)
            copy.mkdir()
            self._give_to_owner(copy)
        for path in self._folder.rglob("*-shm"):
            path.unlink()
        for name, version in _read_files(self._folder).items():
            (self._durable / name).write_bytes(_HEADER.pack(version.inode) + version.content)

    def _give_to_owner(self, path):
        if self._owner:
            shutil.chown(path, self._owner)


def _read_files(folder):
    """Return the version of each file by its name relative to the folder."""
    versions = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.endswith("-shm"):
            name = str(path.relative_to(folder))
            versions[name] = _Version(path.stat().st_ino, path.read_bytes())
    return versions


class _Blend:
    """States between the durable version and the current one."""

    def __init__(self, choose, share, block_size, events):
        self._choose = choose
        self._share = share
        self._block_size = block_size
        self._events = events

    def file(self, durable, current):
        """Return the content that a power loss leaves, or None if there is no file."""
        if durable == current:
            return current.content
        if current is None:
            return None if self._keeps("deletions") else durable.content
        if durable is None:
            return self._content(b"", current.content) if self._keeps("creations") else None
        if durable.inode != current.inode:
            is_new = self._keeps("creations")
            return self._content(b"", current.content) if is_new else durable.content
        return self._content(durable.content, current.content)

    def _content(self, durable, current):
        length = self._length(len(durable), len(current))
        blocks = []
        for start in range(0, length, self._block_size):
            end = min(start + self._block_size, length)
            old = durable[start:end].ljust(end - start, b"\0")
            new = current[start:end].ljust(end - start, b"\0")
            blocks.append(new if old == new or self._keeps("blocks") else old)
        return b"".join(blocks)

    def _length(self, durable, current):
        """Return a length from the durable one to the current one."""
        if durable == current or self._keeps("lengths"):
            return current
        if self._choose.random() < self._share:
            return self._choose.randint(min(durable, current), max(durable, current))
        return durable

    def _keeps(self, what):
        is_kept = self._choose.random() < self._share
        self._events[f"{what} {'kept' if is_kept else 'lost'}"] += 1
        return is_kept
