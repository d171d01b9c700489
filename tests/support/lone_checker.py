"""The lone checker, loaded by its path as `sfumato check` does, to run in this process or alone."""

import importlib.util
import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

from support.paths import CHECKER


def _load():
    spec = importlib.util.spec_from_file_location("check_certificate", CHECKER)
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_certificate"] = module
    spec.loader.exec_module(module)
    return module


check_certificate = _load()


def verdict_of(raw):
    """Return the checker's exit code for a file with these bytes, and the lines that it prints."""
    try:
        return check_certificate.check(raw)
    except check_certificate.NotChecked as problem:
        return check_certificate.NOT_CHECKED, [str(problem)]


def check_file(path):
    """Check a file in this process; return the exit code and all that is printed."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        code = check_certificate.main([str(path)])
    return code, printed.getvalue()


def check_file_alone(path):
    """Check a file in a process that cannot load the package; return the same."""
    run = subprocess.run(
        [sys.executable, "-E", "-s", "-S", CHECKER, path],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return run.returncode, run.stdout + run.stderr
