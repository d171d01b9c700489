"""The command, called in this process as the console script calls it, or as a process of its own."""

import gzip
import io
import subprocess
import sys
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli import main

LUNCH = """name = "lunch-2026"
[domain]
kind = "labels"
labels = ["park", "café", "clinic", "bar", "office"]
[context]
kind = "high-low"
epsilon = 1.0
sensitive = ["clinic", "bar"]
"""
OTHER = LUNCH.replace('"office"]', '"office"]\nother = "elsewhere"')
AGES = """name = "ages"
[domain]
kind = "range"
size = 10
start = -2
[context]
kind = "uniform"
epsilon = 1.0
"""
NUMBERED = """name = "numbered"
[domain]
kind = "labels"
labels = [1, 2, 30]
other = "another"
[context]
kind = "uniform"
epsilon = 1.0
"""
GRID = """name = "map"
[domain]
kind = "grid"
south = 0
north = 4
west = 0
east = 4
step = 1
[context]
kind = "blocks"
epsilon = 1.0
rows = 2
columns = 2
"""
H3 = """name = "cells"
[domain]
kind = "h3"
south = 40.70
north = 40.82
west = -74.02
east = -73.92
resolution = 7
[context]
kind = "uniform"
epsilon = 1.0
"""
PLACES = ["park", "café", "clinic", "bar", "office"] * 40
SURVEYS = {
    "lunch": LUNCH,
    "other": OTHER,
    "ages": AGES,
    "numbered": NUMBERED,
    "grid": GRID,
    "h3": H3,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with a survey of each kind."""
    monkeypatch.chdir(tmp_path)
    for name, text in SURVEYS.items():
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    (tmp_path / "answers.csv").write_text("place\n" + "\n".join(PLACES) + "\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def call(monkeypatch, folder):
    """Calls the console script's entry point in this process: ``call("verify", "lunch.toml", stdin=b"")``."""

    def called(*arguments, stdin=b""):
        out, err = (
            io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
        )
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["sfumato", *map(str, arguments)])
            patch.setattr(
                sys, "stdin", io.TextIOWrapper(io.BufferedReader(_Pipe(stdin)), encoding="utf-8")
            )
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            with pytest.raises(SystemExit) as left:
                main.run()
        texts = [stream.buffer.getvalue().decode("utf-8") for stream in (out, err)]
        return SimpleNamespace(
            code=left.value.code or 0, out=texts[0], err=texts[1], both="".join(texts)
        )

    return called


class _Pipe(io.RawIOBase):
    """Bytes that can be read once, as from a pipe."""

    def __init__(self, content):
        self._content = io.BytesIO(content)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self._content.readinto(buffer)


@pytest.fixture
def refused(call, folder):
    """Asserts that a call exits with 2, one message, no traceback, no new, changed or temporary file."""

    def checked(*arguments, stdin=b"", never=()):
        before = contents(folder)
        result = call(*arguments, stdin=stdin)
        assert result.code == 2, result.both
        assert result.out == ""
        assert result.err.strip()
        assert "Traceback" not in result.err
        assert contents(folder) == before
        for value in never:
            assert value not in result.err
        return result.err

    return checked


def contents(folder):
    """Every file of a folder, hidden ones too."""
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def process(*arguments, **options):
    """The command as a process of its own."""
    options = {"capture_output": True, "check": False, **options}
    return subprocess.run([sys.executable, "-m", "sfumato", *map(str, arguments)], **options)


def written_in_all_formats(folder, people):
    """The folder, with people's places in it as CSV, as CSV under gzip, and as Parquet."""
    content = ("place\n" + "\n".join(people) + "\n").encode()
    (folder / "people.csv").write_bytes(content)
    (folder / "people.csv.gz").write_bytes(gzip.compress(content))
    parquet(folder / "people.parquet", place=people)
    return folder


def parquet(path, **columns):
    """A Parquet file of these columns."""
    pq.write_table(pa.table(columns), path)
    return path
