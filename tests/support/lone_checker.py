"""The lone checker, loaded by its path as `sfumato check` does, to run in this process."""

import importlib.util
import sys

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
