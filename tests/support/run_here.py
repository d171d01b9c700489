"""Run programs and the command in this process: as a new interpreter would, without its start."""

import io
import os
import runpy
import sys
import traceback
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from sfumato.cli import main
from support.paths import modules_in


class Finished(NamedTuple):
    """The exit code of a run, and what it printed: to stdout, to stderr, and to both."""

    code: int
    out: str
    err: str
    both: str


def run_program(path, *arguments, folder, environment=None):
    """Run a Python file in a folder, as `python` does."""
    file = Path(folder, path)

    def program():
        with modules_in(file.parent):
            runpy.run_path(str(file), run_name="__main__")

    return _run(program, [str(path), *arguments], folder, environment)


def run_command(*arguments, folder, environment=None):
    """Run the command in a folder, as the console script `sfumato` does."""
    return _run(main.run, ["sfumato", *arguments], folder, environment)


class _Copy(io.StringIO):
    """A stream that writes all text to a second stream, too."""

    def __init__(self, both):
        super().__init__()
        self._both = both

    def write(self, text):
        self._both.write(text)
        return super().write(text)


def _run(program, arguments, folder, environment):
    both = io.StringIO()
    out = _Copy(both)
    err = _Copy(both)
    with (
        chdir(folder),
        mock.patch.object(sys, "argv", arguments),
        mock.patch.dict(os.environ, environment or {}),
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        code = _exit_code_of(program)
    return Finished(code, out.getvalue(), err.getvalue(), both.getvalue())


def _exit_code_of(program):
    try:
        program()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    except Exception:  # noqa: BLE001 - an interpreter ends so, too
        traceback.print_exc()
        return 1
    return 0
