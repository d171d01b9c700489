"""Run the command in this process, as the console script does, or as a separate process."""

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
    """A working folder with a survey of each kind and a file of answers."""
    monkeypatch.chdir(tmp_path)
    for name, text in SURVEYS.items():
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    (tmp_path / "answers.csv").write_text("place\n" + "\n".join(PLACES) + "\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def call(monkeypatch, folder):
    """Call the command in this process: `call("verify", "lunch.toml", stdin=b"")`."""

    def call_command(*arguments, stdin=b""):
        pipe = io.TextIOWrapper(io.BufferedReader(_Pipe(stdin)), encoding="utf-8")
        stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        stderr = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["sfumato", *map(str, arguments)])
            patch.setattr(sys, "stdin", pipe)
            patch.setattr(sys, "stdout", stdout)
            patch.setattr(sys, "stderr", stderr)
            with pytest.raises(SystemExit) as exit_info:
                main.run()
        out = stdout.buffer.getvalue().decode("utf-8")
        err = stderr.buffer.getvalue().decode("utf-8")
        return SimpleNamespace(code=exit_info.value.code or 0, out=out, err=err, both=out + err)

    return call_command


class _Pipe(io.RawIOBase):
    """Bytes that cannot seek, like a pipe."""

    def __init__(self, content):
        self._content = io.BytesIO(content)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self._content.readinto(buffer)


@pytest.fixture
def error_from(call, folder):
    """Call the command and return its error message.

    Check that it exits with 2, prints no traceback, and leaves the folder as it was.
    """

    def call_and_check(*arguments, stdin=b"", never=()):
        before = read_folder(folder)
        result = call(*arguments, stdin=stdin)
        assert result.code == 2, result.both
        assert result.out == ""
        assert result.err.strip()
        assert "Traceback" not in result.err
        assert read_folder(folder) == before
        for value in never:
            assert value not in result.err
        return result.err

    return call_and_check


def read_folder(folder):
    """Return the contents of every file in a folder, by path."""
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def run_process(*arguments, **options):
    """Run the command as a separate process."""
    options = {"capture_output": True, "check": False, **options}
    return subprocess.run([sys.executable, "-m", "sfumato", *map(str, arguments)], **options)


def write_all_formats(folder, people):
    """Write a column `place` as CSV, as gzipped CSV and as Parquet; return the folder."""
    content = ("place\n" + "\n".join(people) + "\n").encode()
    (folder / "people.csv").write_bytes(content)
    (folder / "people.csv.gz").write_bytes(gzip.compress(content))
    write_parquet(folder / "people.parquet", place=people)
    return folder


def write_parquet(path, **columns):
    """Write a Parquet file with these columns; return its path."""
    pq.write_table(pa.table(columns), path)
    return path
