"""The lone checker, loaded by its path as `sfumato check` does, to be asked in this process."""

import importlib.util
import sys

from support.paths import CHECKER


def _loaded():
    spec = importlib.util.spec_from_file_location("check_certificate", CHECKER)
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_certificate"] = module
    spec.loader.exec_module(module)
    return module


check_certificate = _loaded()


def verdict_of(raw):
    """The exit code for a file of these bytes, and the lines that are printed."""
    try:
        return check_certificate.check(raw)
    except check_certificate.NotChecked as problem:
        return check_certificate.NOT_CHECKED, [str(problem)]
